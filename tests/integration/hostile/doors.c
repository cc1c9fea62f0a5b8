/* SPDX-License-Identifier: Apache-2.0 */
/* See doors.h. */
#include "tests/integration/hostile/doors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/methods.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SEEN_MAX 512

static pid_t seen[SEEN_MAX];
static unsigned n_seen;

void doors_forget(void)
{
    n_seen = 0;
}

pid_t doors_seen(unsigned i)
{
    assert_true(i < n_seen);
    return seen[i];
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static bool doors_read_stat(const char *pid, char name[32], char *state, pid_t *parent)
{
    char path[300], line[256] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (!fgets(line, sizeof(line), f))
        line[0] = '\0';
    fclose(f);
    return sscanf(line, "%*d (%31[^)]) %c %d", name, state, parent) == 3;
}

unsigned doors_count(pid_t of)
{
    DIR *proc = opendir("/proc");
    unsigned n = 0;

    assert_non_null(proc);
    for (struct dirent *entry; (entry = readdir(proc));) {
        char name[32], state;
        pid_t parent, pid = (pid_t)strtol(entry->d_name, NULL, 10);
        bool known = false;

        if (!pid || !doors_read_stat(entry->d_name, name, &state, &parent) || strcmp(name, "memoryd-door") ||
            parent != of)
            continue;
        n++;
        for (unsigned i = 0; i < n_seen; i++)
            known |= seen[i] == pid;
        if (!known && n_seen < sizeof(seen) / sizeof(*seen))
            seen[n_seen++] = pid;
    }
    closedir(proc);
    return n;
}

unsigned doors_living(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_seen; i++) {
        char pid[16], name[32], state;
        pid_t parent;

        snprintf(pid, sizeof(pid), "%d", (int)seen[i]);
        n += doors_read_stat(pid, name, &state, &parent) && state != 'Z' && state != 'X';
    }
    return n;
}

int doors_ask(struct wire *wire, uint32_t *status)
{
    struct wire_packet door, *reply;

    wire_request(wire, &door, METHOD_DOOR, NULL);
    reply = wire_call(wire, &door);
    *status = reply->status;
    assert_int_equal(reply->n_fds, reply->status ? 0 : 1);
    return reply->status ? -1 : reply->fds[0];
}

void doors_show(int door, enum door_kind kind, int fd)
{
    uint8_t packet[MEMORYD_DOOR_REQUEST];

    door_request_encode(packet, kind);
    assert_int_equal(fd_send(door, packet, sizeof(packet), &fd, 1, 0), sizeof(packet));
}

bool doors_hear(int door, struct door_answer *answer)
{
    uint8_t packet[DOOR_ANSWER_MAX];
    ssize_t n;

    assert_true(wait_readable(door));
    n = recv(door, packet, sizeof(packet), 0);
    return n > 0 && door_answer_decode(packet, (size_t)n, answer);
}

uint32_t doors_show_and_hear(struct wire *wire, enum door_kind kind, int fd, uint64_t *ticket)
{
    struct door_answer answer = {.status = STATUS_PROTOCOL};
    uint32_t status;
    FD_AUTO int door = doors_ask(wire, &status);

    if (door < 0)
        return status;
    doors_show(door, kind, fd);
    *ticket = doors_hear(door, &answer) ? answer.ticket : 0;
    return answer.status;
}
