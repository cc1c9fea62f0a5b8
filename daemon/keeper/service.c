/* SPDX-License-Identifier: Apache-2.0 */
/* See service.h. */

#include "keeper/service.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-daemon.h>

bool service_has_store(void)
{
    const char *most = secure_getenv("FDSTORE");

    return secure_getenv("NOTIFY_SOCKET") && (!most || strcmp(most, "0") != 0);
}

enum keeper_stop service_at_stop(void)
{
    if (!service_has_store())
        return KEEPER_STOP_LOST;
    return secure_getenv("FDSTORE") ? KEEPER_STOP_STORED : KEEPER_STOP_RESTART;
}

uint64_t service_watchdog_ms(void)
{
    uint64_t usec;

    return sd_watchdog_enabled(0, &usec) > 0 ? usec / 1000 : 0;
}

static void service_store(const char *state, int fd)
{
    if (fd >= 0)
        (void)sd_pid_notify_with_fds(0, 0, state, &fd, 1);
}

void service_store_ledger(int fd)
{
    (void)sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" SERVICE_NAME_LEDGER);
    service_store("FDSTORE=1\nFDNAME=" SERVICE_NAME_LEDGER, fd);
}

void service_ready(const struct store *store, bool first, bool store_listener)
{
    if (first && service_has_store()) {
        service_store_ledger(store_get(store, KEEPER_KEY(KEEPER_LEDGER, 0)));
        if (store_listener)
            service_store("FDSTORE=1\nFDNAME=" SERVICE_NAME_LISTENER, store_get(store, KEEPER_KEY(KEEPER_LISTENER, 0)));
        /* the manager drops ends that it has already */
        service_store("FDSTORE=1\nFDNAME=" SERVICE_NAME_FD_STASH, store_get(store, KEEPER_KEY(KEEPER_FD_STASH, 0)));
        service_store("FDSTORE=1\nFDNAME=" SERVICE_NAME_FD_STASH, store_get(store, KEEPER_KEY(KEEPER_FD_STASH, 1)));
    }
    /* last, since the manager reads in order: when it is ready, all of it is stored */
    (void)sd_notify(0, "READY=1\nSTATUS=Serving");
}

/* ---- the line that it shows -------------------------------------------------------------------------------------- */

/* Heartbeats that a line stays. */
#define LINE_STAYS 5

/* "7.2 G" */
static const char *service_bytes(uint64_t bytes, char text[static 24])
{
    static const char units[] = "KMGTPE";
    double value = (double)bytes / 1024;
    unsigned unit = 0;

    while (value >= 1023.95 && unit + 2 < sizeof(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(text, 24, "%.1f %c", value, units[unit]);
    return text;
}

static const char *service_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void service_show(const uint64_t figures[static KEEPER_FIGURES])
{
    char used[24], capacity[24];

    (void)sd_notifyf(0, "STATUS=Serving %" PRIu64 " pool%s, %" PRIu64 " buffer%s, %s of %s, %" PRIu64 " client%s",
                     figures[FIGURE_POOLS], service_plural(figures[FIGURE_POOLS]), figures[FIGURE_BUFFERS],
                     service_plural(figures[FIGURE_BUFFERS]), service_bytes(figures[FIGURE_USED], used),
                     service_bytes(figures[FIGURE_CAPACITY], capacity), figures[FIGURE_CLIENTS],
                     service_plural(figures[FIGURE_CLIENTS]));
}

void service_heartbeat(struct service_line *line, const struct packet *heartbeat)
{
    bool changed = false;

    /* an older broker sends none */
    if (heartbeat->n < KEEPER_FIGURES)
        return;
    if (line->pause) {
        line->pause--;
        return;
    }
    for (unsigned i = 0; i < KEEPER_FIGURES; i++) {
        changed = changed || line->figures[i] != heartbeat->keys[i].id;
        line->figures[i] = heartbeat->keys[i].id;
    }
    if (!changed)
        return;
    service_show(line->figures);
    line->pause = LINE_STAYS - 1;
}
