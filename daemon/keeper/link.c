/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. */

#include "keeper/link.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "log/log.h"
#include "proto/sockio.h"

/* Drops that the keeper has not answered: the socket has room for so many answers while nobody reads it. */
#define ASKED_MAX 64
/* Packets a turn. */
#define PACKETS_AT_ONCE 64

struct keeper_link {
    int socket;
    bool gone; /* its end was seen */
    pid_t pid;
    struct list asked; /* of struct keeper_drop */
    unsigned n_asked;
    struct list waiting; /* likewise, not asked for yet */
};

int keeper_link_new(struct keeper_link **ret, int socket)
{
    struct keeper_link *link = malloc(sizeof(*link));

    if (!link)
        return -ENOMEM;
    *link = (struct keeper_link){.socket = socket};
    list_init(&link->asked);
    list_init(&link->waiting);
    *ret = link;
    return 0;
}

struct keeper_link *keeper_link_free(struct keeper_link *link)
{
    if (!link)
        return NULL;
    link->socket = fd_close(link->socket);
    free(link);
    return NULL;
}

int keeper_link_fd(const struct keeper_link *link)
{
    return link ? link->socket : -1;
}

pid_t keeper_pid(const struct keeper_link *link)
{
    return link ? link->pid : 0;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* The keeper never waits for us, so there will be room; and a turn, when clients have received what is in flight. */
static int link_send_packet(struct keeper_link *link, const struct packet *packet, const int *fds)
{
    int r;

    while ((r = packet_send(link->socket, packet, fds))) {
        if (r == SOCKIO_E_AGAIN)
            (void)poll(&(struct pollfd){.fd = link->socket, .events = POLLOUT}, 1, -1);
        else if (r == SOCKIO_E_TOO_MANY_IN_FLIGHT)
            (void)poll(NULL, 0, PACKET_TURN_MS);
        else
            return r < 0 ? fatal(r) : -EPIPE;
    }
    return 0;
}

int keeper_hold_many(struct keeper_link *link, enum keeper_kind kind, unsigned n, const uint64_t *ids, const int *fds)
{
    struct packet packet = {.type = PACKET_HOLD, .n = (uint16_t)n};

    assert(n <= KEEPER_BATCH_MAX);
    if (!link || !n)
        return 0;
    for (unsigned i = 0; i < n; i++)
        packet.keys[i] = KEEPER_KEY(kind, ids[i]);
    return link_send_packet(link, &packet, fds);
}

int keeper_hold(struct keeper_link *link, enum keeper_kind kind, uint64_t id, int fd)
{
    return keeper_hold_many(link, kind, 1, &id, &fd);
}

void keeper_drop(struct keeper_link *link, enum keeper_kind kind, uint64_t id)
{
    const struct packet packet = {.type = PACKET_DROP, .n = 1, .keys = {KEEPER_KEY(kind, id)}};

    if (link)
        (void)link_send_packet(link, &packet, NULL);
}

static void link_ask_drop(struct keeper_link *link, struct keeper_drop *drop)
{
    const struct packet packet = {.type = PACKET_DROP_ASK, .n = 1, .keys = {drop->key}};

    list_append(&link->asked, &drop->in_link);
    link->n_asked++;
    (void)link_send_packet(link, &packet, NULL);
}

void keeper_drop_then(struct keeper_link *link, enum keeper_kind kind, uint64_t id, struct keeper_drop *drop)
{
    if (!link) {
        drop->done(drop);
        return;
    }
    drop->key = KEEPER_KEY(kind, id);
    if (link->n_asked < ASKED_MAX)
        link_ask_drop(link, drop);
    else
        list_append(&link->waiting, &drop->in_link);
}

void keeper_link_tell_cleaner(struct keeper_link *link, pid_t pid)
{
    const struct packet packet = {.type = PACKET_CLEANER, .value = (uint32_t)pid};

    if (link)
        (void)link_send_packet(link, &packet, NULL);
}

/* It does not wait: where there is no room the keeper has enough to read. */
void keeper_link_heartbeat(struct keeper_link *link, const uint64_t figures[static KEEPER_FIGURES])
{
    struct packet packet = {.type = PACKET_HEARTBEAT, .n = KEEPER_FIGURES};

    for (unsigned i = 0; i < KEEPER_FIGURES; i++)
        packet.keys[i].id = figures[i];
    if (link)
        (void)packet_send(link->socket, &packet, NULL);
}

void keeper_link_send(struct keeper_link *link, enum packet_type type)
{
    const struct packet packet = {.type = type};

    if (link)
        (void)link_send_packet(link, &packet, NULL);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static int link_receive(struct keeper_link *link, struct packet *packet, struct fdset *fds)
{
    int r;

    do
        r = packet_receive(link->socket, packet, fds);
    while (r == SOCKIO_E_RESET); /* what the keeper sent before comes after it */
    if (r == SOCKIO_E_EOF)
        link->gone = true;
    if (r && r != SOCKIO_E_EOF && r != SOCKIO_E_AGAIN)
        log_error("what came from the keeper cannot be used (%d)", r);
    return r;
}

static int link_take_all(const struct packet *packet, struct fdset *fds, keeper_take_fn *fn, void *userdata)
{
    for (unsigned i = 0; i < packet->n; i++) {
        int r = fn(userdata, (enum keeper_kind)packet->keys[i].kind, packet->keys[i].id, fdset_steal(fds, i));

        if (r)
            return r;
    }
    return 0;
}

int keeper_link_receive(struct keeper_link *link, keeper_count_fn *count, keeper_take_fn *take, void *userdata)
{
    if (!link)
        return 0;
    for (;;) {
        _cleanup_fdset_ struct fdset fds = FDSET_NULL;
        struct packet packet;
        int r = link_receive(link, &packet, &fds);

        if (r == SOCKIO_E_AGAIN) {
            (void)poll(&(struct pollfd){.fd = link->socket, .events = POLLIN}, 1, -1);
            continue;
        }
        if (r)
            return r < 0 ? r : link->gone ? -EPIPE : -EPROTO;
        if (packet.type == PACKET_HOLD)
            r = link_take_all(&packet, &fds, take, userdata);
        else if (packet.type == PACKET_COUNT)
            count(userdata, packet.value);
        if (r)
            return r;
        if (packet.type == PACKET_END) {
            link->pid = (pid_t)packet.value;
            return 0;
        }
    }
}

static void link_dropped(struct keeper_link *link, const struct keeper_key *key)
{
    list_for_each_entry_safe(drop, &link->asked, struct keeper_drop, in_link) {
        struct list *next;

        if (drop->key.kind != key->kind || drop->key.id != key->id)
            continue;
        list_remove(&drop->in_link);
        link->n_asked--;
        next = list_pop(&link->waiting);
        if (next)
            link_ask_drop(link, container_of(next, struct keeper_drop, in_link));
        drop->done(drop);
        return;
    }
}

int keeper_link_dispatch(struct keeper_link *link, const struct keeper_link_events *events, void *userdata)
{
    if (!link || link->gone)
        return 0;
    for (unsigned n = 0; n < PACKETS_AT_ONCE; n++) {
        _cleanup_fdset_ struct fdset fds = FDSET_NULL;
        struct packet packet;
        int r = link_receive(link, &packet, &fds);

        if (link->gone)
            events->orphaned(userdata);
        if (r)
            return r < 0 ? r : r == SOCKIO_E_AGAIN || link->gone ? 0 : -EPROTO;
        if (packet.type == PACKET_STOP)
            events->stop(userdata, (enum keeper_stop)packet.value);
        else if (packet.type == PACKET_UPGRADE_REFUSED)
            events->upgrade_refused(userdata, (int)packet.value);
        else if (packet.type == PACKET_RELOAD)
            events->reload(userdata);
        else if (packet.type == PACKET_DROPPED)
            for (unsigned i = 0; i < packet.n; i++)
                link_dropped(link, &packet.keys[i]);
    }
    return 0;
}
