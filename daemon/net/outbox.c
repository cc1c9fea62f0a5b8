/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sending, and the packets that wait to be sent.
 *
 * A packet is sent at once, without copying it, if none waits before it and the socket and the budgets have room.
 * Otherwise it is copied, and its descriptors move with the copy. Our own descriptors are closed as soon as the
 * kernel has its references; they stay counted until the client has received them, since the kernel counts them until
 * then.
 */

#include "net/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/sockio.h"

struct waiting_packet {
    struct list link;
    size_t size; /* header and payload */
    bool is_event;
    uint64_t key;
    struct fdset fds;
    uint8_t bytes[];
};

/* ---- descriptors in flight --------------------------------------------------------------------------------------- */

static void fds_sent(struct connection *connection, unsigned n)
{
    if (!n)
        return;
    connection->fds_in_flight += n;
    connection->user->fds_in_flight += n;
    connection->net->fds_in_flight += n;
    connection->fds_sent_at = clock_now_ns();
    if (!list_is_linked(&connection->in_flight_link))
        list_append(&connection->net->in_flight, &connection->in_flight_link);
}

void outbox_fds_delivered(struct connection *connection)
{
    connection->user->fds_in_flight -= connection->fds_in_flight;
    connection->net->fds_in_flight -= connection->fds_in_flight;
    connection->fds_in_flight = 0;
    list_remove(&connection->in_flight_link);
}

bool connection_settle(struct connection *connection)
{
    bool drained;

    if (!connection->fds_in_flight)
        return true;
    if (sockio_is_drained(connection->fd, &drained) < 0 || !drained)
        return false;
    outbox_fds_delivered(connection);
    return true;
}

static bool fd_budget_ok(struct connection *connection, unsigned n)
{
    const struct net *net = connection->net;
    const struct net_limits *limits = &net->limits;

    if (!n)
        return true;
    /* a packet with more descriptors than a limit allows is sent when none are in flight */
    if (connection->fds_in_flight && connection->fds_in_flight + n > limits->fds_in_flight)
        return false;
    if (connection->user->fds_in_flight && connection->user->fds_in_flight + n > limits->fds_in_flight_uid)
        return false;
    return !net->fds_in_flight || net->fds_in_flight + n <= limits->fds_in_flight_all;
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
    (void)event_del(&connection->write_event);
    if (connection->finishing)
        connection_close(connection, LOG_LEVEL_INFO, "has closed its connection");
    else if (connection->established)
        (void)event_del(&connection->deadline_event);
}

static enum sent send_packet(struct connection *connection, const struct iovec *iov, unsigned n_iov,
                             const struct fdset *fds)
{
    unsigned n = fds ? fdset_count(fds) : 0;
    int r;

    if (!fd_budget_ok(connection, n) && (!connection_settle(connection) || !fd_budget_ok(connection, n))) {
        net_wait_for_budget(connection->net, connection);
        return SENT_LATER;
    }
    r = sockio_send(connection->fd, iov, n_iov, n ? fds->fds : NULL, n);
    switch (r) {
    case 0:
        fds_sent(connection, n);
        return SENT;
    case SOCKIO_E_AGAIN:
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
    fdset_deinit(&packet->fds);
    free(packet);
}

void outbox_clear(struct connection *connection)
{
    list_for_each_entry_safe(packet, &connection->outbox, struct waiting_packet, link)
        outbox_drop(connection, packet);
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
        struct iovec iov = {.iov_base = packet->bytes, .iov_len = packet->size};
        enum sent sent = send_packet(connection, &iov, 1, &packet->fds);

        if (sent == SENT_NEVER)
            return;
        if (sent == SENT_LATER)
            break;
        outbox_drop(connection, packet);
        progress = true;
    }
    if (list_is_empty(&connection->outbox) || list_is_linked(&connection->waiting_link))
        (void)event_del(&connection->write_event);
    if (list_is_empty(&connection->outbox) && connection->finishing) {
        connection_close(connection, LOG_LEVEL_DEBUG, "is served");
        return;
    }
    /* before HELLO the deadline is the handshake's */
    if (connection->established && !outbox_has_reply(connection) && !connection->finishing)
        (void)event_del(&connection->deadline_event);
    else if (connection->established && progress)
        connection_arm_deadline(connection, connection->net->limits.stall_ms);
    connection_update_reading(connection);
}

/* A packet in the buffer of the function that made it. */
struct outgoing {
    const void *payload;
    size_t size;
    struct fdset *fds; /* or NULL */
    bool is_event;
    uint64_t key; /* of an event */
};

/* Copies a packet to the end of the outbox. */
static void outbox_add(struct connection *connection, const struct iovec iov[static 2], const struct outgoing *outgoing)
{
    size_t size = iov[0].iov_len + iov[1].iov_len;
    struct waiting_packet *packet;

    if (connection->user->queued + size > connection->net->limits.queued_bytes_uid) {
        connection_close(connection, LOG_LEVEL_WARNING,
                         "disconnected: its user's clients leave more than %zu bytes of replies unread",
                         connection->net->limits.queued_bytes_uid);
        return;
    }
    packet = malloc(sizeof(*packet) + size);
    if (!packet) {
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: no memory for its replies");
        return;
    }
    packet->size = size;
    packet->is_event = outgoing->is_event;
    packet->key = outgoing->key;
    fdset_init(&packet->fds);
    if (outgoing->fds)
        fdset_move(&packet->fds, outgoing->fds);
    memcpy(packet->bytes, iov[0].iov_base, iov[0].iov_len);
    if (iov[1].iov_len)
        memcpy(packet->bytes + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
    list_append(&connection->outbox, &packet->link);
    connection->queued += size;
    connection->user->queued += size;
    if (packet->is_event)
        connection->n_events++;
    else if (connection->established && !event_pending(&connection->deadline_event, EV_TIMEOUT, NULL))
        connection_arm_deadline(connection, connection->net->limits.stall_ms);
}

static void send_or_wait(struct connection *connection, struct frame_header header, const struct outgoing *outgoing)
{
    struct fdset *fds = outgoing->fds;
    uint8_t head[MEMORYD_HEADER_SIZE];
    struct iovec iov[2] = {{.iov_base = head, .iov_len = sizeof(head)},
                           {.iov_base = (void *)(uintptr_t)outgoing->payload, .iov_len = outgoing->size}};

    header.payload_length = (uint32_t)outgoing->size;
    header.fd_count = (uint16_t)(fds ? fdset_count(fds) : 0);
    frame_encode(head, FRAME_FROM_BROKER, &header);
    if (list_is_empty(&connection->outbox)) {
        enum sent sent = send_packet(connection, iov, outgoing->size ? 2 : 1, fds);

        if (sent == SENT && fds)
            fdset_deinit(fds);
        if (sent != SENT_LATER)
            return;
    }
    outbox_add(connection, iov, outgoing);
}

void connection_reply(struct connection *connection, const struct frame_header *header, const void *payload,
                      size_t size, struct fdset *fds)
{
    if (connection->unanswered)
        connection->unanswered--;
    if (connection->closing)
        return;
    if (!connection->write_closed)
        send_or_wait(connection, *header, &(struct outgoing){.payload = payload, .size = size, .fds = fds});
    connection_update_reading(connection);
}

bool connection_event(struct connection *connection, const struct frame_header *header, const void *payload,
                      size_t size, uint64_t key)
{
    if (connection->closing || connection->finishing || connection->write_closed)
        return true;
    list_for_each_entry_safe(packet, &connection->outbox, struct waiting_packet, link) {
        if (packet->is_event && packet->key == key)
            outbox_drop(connection, packet);
    }
    if (connection->n_events >= CONNECTION_EVENTS_MAX)
        return false;
    send_or_wait(connection, *header,
                 &(struct outgoing){.payload = payload, .size = size, .is_event = true, .key = key});
    return true;
}

void connection_drop_events(struct connection *connection)
{
    list_for_each_entry_safe(packet, &connection->outbox, struct waiting_packet, link) {
        if (packet->is_event)
            outbox_drop(connection, packet);
    }
}
