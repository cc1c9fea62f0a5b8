/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sending, and the packets that wait to be sent.
 *
 * A packet is sent at once, without copying it, if none waits before it and the socket and the budgets have room.
 * Otherwise it is copied, and waits without descriptors.
 *
 * Descriptors are opened for the packet that is being sent, when the budgets have room for them, and closed before the
 * next one: the kernel has its references then, or the packet goes on waiting. Where there are many, that takes several
 * turns, which the user has one after the other. So however much waits, and for however many clients, this process has
 * those of one packet of each user open. What was sent stays counted until the client has received
 * it, since the kernel counts it until then. So are its bytes: the kernel has them in memory that is ours, not the
 * client's.
 */

#include "net/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/share.h"
#include "proto/sockio.h"

/* So many connections of a user are looked at for one packet. */
#define UNREAD_SLICE 64

struct waiting_packet {
    struct list link;
    struct outgoing packet; /* payload and list are in `bytes` */
    size_t size;            /* of all that waits */
    bool is_event;
    uint64_t key;
    uint8_t bytes[];
};

/* ---- in flight: descriptors and bytes ---------------------------------------------------------------------------- */

/* What a client has received is asked for only when it matters, so this is the most that it can be by now. */
static void outbox_count_unread(struct connection *connection, size_t unread)
{
    connection->user->unread += unread - connection->unread;
    connection->unread = unread;
    if (!unread)
        list_remove(&connection->unread_link);
    else if (!list_is_linked(&connection->unread_link))
        list_append(&connection->user->unread_by, &connection->unread_link);
}

static void outbox_sent(struct connection *connection, size_t size, unsigned n)
{
    if (!connection->unread)
        connection->unread_at = 0;
    outbox_count_unread(connection, connection->unread + sockio_unread_max(MEMORYD_HEADER_SIZE + size));
    if (!n)
        return;
    connection->fds_in_flight += n;
    connection->user->fds_in_flight += n;
    connection->net->fds_in_flight += n;
    connection->fds_sent_at = clock_now_ns();
    if (!list_is_linked(&connection->in_flight_link))
        list_append(&connection->net->in_flight, &connection->in_flight_link);
}

static void outbox_fds_delivered(struct connection *connection)
{
    connection->user->fds_in_flight -= connection->fds_in_flight;
    connection->net->fds_in_flight -= connection->fds_in_flight;
    connection->fds_in_flight = 0;
    list_remove(&connection->in_flight_link);
}

void outbox_delivered(struct connection *connection)
{
    outbox_fds_delivered(connection);
    outbox_count_unread(connection, 0);
}

bool connection_settle(struct connection *connection)
{
    size_t unread;

    if (!connection->unread)
        return true;
    if (sockio_unread(connection->fd, &unread) < 0)
        return false;
    if (unread < connection->unread || !connection->unread_at)
        connection->unread_at = clock_now_ns();
    outbox_count_unread(connection, unread < connection->unread ? unread : connection->unread);
    if (!unread)
        outbox_fds_delivered(connection);
    return !connection->fds_in_flight;
}

/*
 * May a packet of so many bytes be sent, or does the user have too much of the kernel's memory? Half of what it may
 * have is for any connection, and of the other half each has its part, however much is unread on the others.
 */
static bool unread_budget_ok(const struct connection *connection, size_t size)
{
    const struct net_user *user = connection->user;
    size_t half = connection->net->limits.queued_bytes_uid / 2;
    size_t more = sockio_unread_max(MEMORYD_HEADER_SIZE + size);

    if (user->unread + more <= half || connection->unread + more <= half / user->connections)
        return true;
    return !user->unread; /* a packet may be larger than all that */
}

/*
 * Looks at some of the user's connections, each time at others, until there is room for the packet. Who has received
 * nothing for so long that others cannot be expected to wait is disconnected.
 */
static bool outbox_make_room(struct connection *connection, size_t size)
{
    struct list *others = &connection->user->unread_by;
    uint64_t stall_ns = connection->net->limits.stall_ms * NSEC_PER_MSEC;

    if (unread_budget_ok(connection, size))
        return true;
    (void)connection_settle(connection);
    for (unsigned n = 0; n < UNREAD_SLICE && !unread_budget_ok(connection, size); n++) {
        struct connection *other = container_of(list_pop(others), struct connection, unread_link);

        list_append(others, &other->unread_link);
        (void)connection_settle(other);
        if (other->unread && other != connection && clock_now_ns() - other->unread_at > stall_ns)
            connection_close(other, LOG_LEVEL_WARNING,
                             "disconnected: it does not read its replies, and others of its user wait for that");
    }
    return unread_budget_ok(connection, size);
}

/* The most of this user, which is its share if that is less than the limit. */
static uint64_t fds_in_flight_of(const struct net *net, const struct net_user *user)
{
    const struct net_limits *limits = &net->limits;
    uint64_t share = share_of(limits->fds_in_flight_all, net->fds_in_flight - user->fds_in_flight, user->share);

    return share < limits->fds_in_flight_uid ? share : limits->fds_in_flight_uid;
}

static bool fd_budget_ok(struct connection *connection, unsigned n)
{
    const struct net *net = connection->net;
    const struct net_user *user = connection->user;

    /* a packet with more descriptors than a limit allows is sent when none are in flight */
    if (connection->fds_in_flight && connection->fds_in_flight + n > net->limits.fds_in_flight)
        return false;
    if (user->fds_in_flight && user->fds_in_flight + n > fds_in_flight_of(net, user))
        return false;
    return !net->fds_in_flight || net->fds_in_flight + n <= net->limits.fds_in_flight_all;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

enum sent { SENT, SENT_LATER, SENT_NEVER };

/*
 * The client has gone and reads nothing any more. What it sent before is still read and served, since a client need not
 * wait for the reply to a release. The connection closes at the end of that.
 */
static void outbox_close_writing(struct connection *connection)
{
    connection->write_closed = true;
    outbox_clear(connection);
    list_remove(&connection->waiting_link);
    (void)event_del(&connection->write_event);
    if (connection->finishing)
        connection_close(connection, LOG_LEVEL_INFO, "has closed its connection");
    else if (connection->established)
        connection_disarm_deadline(connection);
    connection_schedule(connection);
}

/* With its descriptors, which are the caller's to close; NULL: none. */
static enum sent send_with_fds(struct connection *connection, const struct outgoing *packet, const struct fdset *fds)
{
    struct frame_header header = packet->header;
    uint8_t head[MEMORYD_HEADER_SIZE];
    struct iovec iov[2] = {{.iov_base = head, .iov_len = sizeof(head)},
                           {.iov_base = (void *)(uintptr_t)packet->payload, .iov_len = packet->size}};
    unsigned n = fds ? fdset_count(fds) : 0;
    int r;

    header.payload_length = (uint32_t)packet->size;
    header.fd_count = (uint16_t)n;
    frame_encode(head, FRAME_FROM_BROKER, &header);
    r = sockio_send(connection->fd, iov, packet->size ? 2 : 1, n ? fds->fds : NULL, n);
    switch (r) {
    case 0:
        outbox_sent(connection, packet->size, n);
        return SENT;
    case SOCKIO_E_AGAIN:
        if (errno != EAGAIN) { /* no memory */
            net_wait_for_budget(connection->net, connection);
            return SENT_LATER;
        }
        list_remove(&connection->waiting_link);
        if (event_add(&connection->write_event, NULL) < 0) {
            connection_close(connection, LOG_LEVEL_WARNING, "disconnected: the loop cannot watch it");
            return SENT_NEVER;
        }
        return SENT_LATER;
    case SOCKIO_E_TOO_MANY_IN_FLIGHT:
        net_wait_for_budget(connection->net, connection);
        return SENT_LATER;
    case SOCKIO_E_GONE:
        outbox_close_writing(connection);
        return SENT_NEVER;
    default:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: sending failed (%d)", r);
        return SENT_NEVER;
    }
}

static void outbox_close_opening(struct connection *connection)
{
    if (connection->opening)
        fdset_deinit(connection->opening);
    free(connection->opening);
    connection->opening = NULL;
}

/* Without memory to keep them it begins anew. */
static enum sent outbox_keep_opening(struct connection *connection, struct fdset *fds)
{
    connection->opening = malloc(sizeof(*connection->opening));
    if (!connection->opening) {
        net_wait_for_budget(connection->net, connection);
        return SENT_LATER;
    }
    fdset_init(connection->opening);
    fdset_move(connection->opening, fds);
    connection->writable = true;
    return SENT_LATER;
}

static bool may_have_fds(struct connection *connection, unsigned n)
{
    return fd_budget_ok(connection, n) || (connection_settle(connection) && fd_budget_ok(connection, n));
}

static enum sent send_packet(struct connection *connection, const struct outgoing *packet)
{
    _cleanup_fdset_ struct fdset fds;
    struct net *net = connection->net;
    struct outgoing leaving;

    fdset_init(&fds);
    if (!outbox_make_room(connection, packet->size)) {
        net_wait_for_budget(net, connection);
        return SENT_LATER;
    }
    if (!packet->n_fds)
        return send_with_fds(connection, packet, NULL);
    leaving = *packet;
    if (connection->opening)
        fdset_move(&fds, connection->opening);
    outbox_close_opening(connection);
    if (may_have_fds(connection, packet->n_fds)) {
        switch (net->handler->open_fds(net->userdata, connection, &leaving, &fds)) {
        case OUTGOING_OPEN:
            return send_with_fds(connection, &leaving, &fds);
        case OUTGOING_SOME:
            return outbox_keep_opening(connection, &fds);
        case OUTGOING_LATER:
            break;
        }
    }
    net_wait_for_budget(net, connection);
    return SENT_LATER;
}

static void outbox_uncount(struct connection *connection, const struct waiting_packet *packet)
{
    connection->queued -= packet->size;
    connection->user->queued -= packet->size;
    if (packet->is_event)
        connection->n_events--;
}

static void outbox_drop(struct connection *connection, struct waiting_packet *packet)
{
    list_remove(&packet->link);
    outbox_uncount(connection, packet);
    free(packet);
}

void outbox_clear(struct connection *connection)
{
    outbox_close_opening(connection);
    list_for_each_entry_safe(packet, &connection->outbox, struct waiting_packet, link)
        outbox_drop(connection, packet);
}

bool connection_has_room(struct connection *connection)
{
    struct list *first = list_first(&connection->outbox);

    (void)connection_settle(connection);
    return !first || unread_budget_ok(connection, container_of(first, struct waiting_packet, link)->packet.size);
}

bool outbox_has_reply(const struct connection *connection)
{
    list_for_each_entry(packet, &connection->outbox, struct waiting_packet, link)
        if (!packet->is_event)
            return true;
    return false;
}

void connection_flush(struct connection *connection)
{
    bool progress = false;

    if (connection->closing)
        return;
    while (!list_is_empty(&connection->outbox)) {
        struct waiting_packet *packet = container_of(list_first(&connection->outbox), struct waiting_packet, link);
        enum sent sent = send_packet(connection, &packet->packet);

        if (sent == SENT_NEVER)
            return;
        if (sent == SENT_LATER)
            break;
        outbox_drop(connection, packet);
        if (list_is_linked(&connection->waiting_link))
            net_budget_helped(connection->net);
        list_remove(&connection->waiting_link); /* it waits for the next one behind those who have got nothing */
        progress = true;
    }
    if (list_is_empty(&connection->outbox))
        list_remove(&connection->waiting_link);
    if (list_is_empty(&connection->outbox) || list_is_linked(&connection->waiting_link))
        (void)event_del(&connection->write_event);
    if (list_is_empty(&connection->outbox) && connection->finishing) {
        connection_close(connection, LOG_LEVEL_DEBUG, "is served");
        return;
    }
    /* before HELLO the deadline is the handshake's */
    if (connection->established && !outbox_has_reply(connection) && !connection->finishing)
        connection_disarm_deadline(connection);
    else if (connection->established && progress)
        connection_arm_deadline(connection, connection->net->limits.stall_ms);
}

/* Copies a packet to the end of the outbox, and returns it there; NULL: the connection is closed instead. */
static struct waiting_packet *outbox_add(struct connection *connection, const struct outgoing *packet)
{
    size_t size = MEMORYD_HEADER_SIZE + packet->fd_list_size + packet->size;
    struct waiting_packet *waiting;

    if (connection->user->queued + size > connection->net->limits.queued_bytes_uid) {
        connection_close(connection, LOG_LEVEL_WARNING,
                         "disconnected: its user's clients leave more than %zu bytes of replies unread",
                         connection->net->limits.queued_bytes_uid);
        return NULL;
    }
    waiting = malloc(sizeof(*waiting) + size);
    if (!waiting) {
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: no memory for its replies");
        return NULL;
    }
    *waiting = (struct waiting_packet){.packet = *packet, .size = size};
    waiting->packet.fd_list = waiting->bytes;
    waiting->packet.payload = waiting->bytes + packet->fd_list_size;
    if (packet->fd_list_size)
        memcpy(waiting->bytes, packet->fd_list, packet->fd_list_size);
    if (packet->size)
        memcpy(waiting->bytes + packet->fd_list_size, packet->payload, packet->size);
    list_append(&connection->outbox, &waiting->link);
    connection->queued += size;
    connection->user->queued += size;
    return waiting;
}

/* Is it sent, or will it never be? */
static bool sent_at_once(struct connection *connection, const struct outgoing *packet)
{
    return list_is_empty(&connection->outbox) && send_packet(connection, packet) != SENT_LATER;
}

void connection_reply(struct connection *connection, const struct outgoing *reply)
{
    if (connection->unanswered)
        connection->unanswered--;
    if (connection->closing)
        return;
    if (!connection->write_closed && !sent_at_once(connection, reply) && outbox_add(connection, reply) &&
        connection->established && !connection->overdue &&
        !event_pending(&connection->deadline_event, EV_TIMEOUT, NULL))
        connection_arm_deadline(connection, connection->net->limits.stall_ms);
    connection_schedule(connection);
}

bool connection_event(struct connection *connection, const struct frame_header *header, const void *payload,
                      size_t size, uint64_t key)
{
    const struct outgoing event = {.header = *header, .payload = payload, .size = size};
    struct waiting_packet *waiting;

    if (connection->closing || connection->finishing || connection->write_closed)
        return true;
    list_for_each_entry_safe(packet, &connection->outbox, struct waiting_packet, link) {
        if (packet->is_event && packet->key == key)
            outbox_drop(connection, packet);
    }
    if (connection->n_events >= CONNECTION_EVENTS_MAX)
        return false;
    if (sent_at_once(connection, &event))
        return true;
    waiting = outbox_add(connection, &event);
    if (waiting) {
        waiting->is_event = true;
        waiting->key = key;
        connection->n_events++;
    }
    connection_schedule(connection);
    return true;
}

void connection_drop_events(struct connection *connection)
{
    list_for_each_entry_safe(packet, &connection->outbox, struct waiting_packet, link) {
        if (packet->is_event)
            outbox_drop(connection, packet);
    }
    connection_schedule(connection);
}
