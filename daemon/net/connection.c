/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a connection: the listener opens it, it is read here and written in outbox.c, connection_close() marks
 * it, and net.c frees it.
 */

#include "net/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/sockio.h"

void connection_arm_deadline(struct connection *connection, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    (void)event_add(&connection->deadline_event, &tv);
}

void connection_update_reading(struct connection *connection)
{
    bool want = !connection->closing && !connection->finishing && connection->unanswered < MEMORYD_UNACKNOWLEDGED_MAX &&
                connection->queued <= connection->net->limits.queued_bytes;

    if (want == connection->reading)
        return;
    if (want ? event_add(&connection->read_event, NULL) : event_del(&connection->read_event)) {
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: the loop cannot watch it");
        return;
    }
    connection->reading = want;
}

/* What receiving found. */
enum found {
    FOUND_NOTHING, /* now, or ever again */
    FOUND_ONE,
    FOUND_ONE_OF_SEVERAL,
};

/* How many replies a client usually lacks when it sends a request: it does not wait for that to a release. */
#define REPLIES_LACKING_USUALLY 1

/* A client that had all its replies when it sent this request probably waits for the next one. */
static enum found handle_packet(struct connection *connection, size_t size, struct fdset *fds)
{
    struct net *net = connection->net;
    struct frame_header header;
    const uint8_t *payload;
    int r;

    if (sockio_has_socket(fds)) {
        connection_close(connection, LOG_LEVEL_WARNING,
                         "disconnected: it sent a socket as a descriptor, and no method wants one");
        return FOUND_NOTHING;
    }
    r = frame_decode(net->buffer, size, fdset_count(fds), FRAME_FROM_CLIENT, &header, &payload);
    if (r) {
        net->handler->refused(net->userdata, connection, r, net->buffer, size);
        if (!connection->closing) {
            log_client(LOG_LEVEL_WARNING, connection->who, "disconnected: %s", frame_error_text(r));
            connection_finish(connection);
        }
        return FOUND_NOTHING;
    }
    connection->unanswered++;
    net->n_packets++;
    r = net->handler->packet(net->userdata, connection, &header, payload, fds);
    if (r < 0)
        net_fail(net, r);
    return header.sequence - header.acknowledged > 1 + REPLIES_LACKING_USUALLY ? FOUND_ONE_OF_SEVERAL : FOUND_ONE;
}

/* Receives one packet and hands it up. */
static enum found read_one(struct connection *connection)
{
    struct net *net = connection->net;
    _cleanup_fdset_ struct fdset fds = {.closer = closer_fds(connection->user->closer)};
    size_t size;
    int r;

    if (net_user_is_backlogged(net, connection->user)) {
        connection_close(connection, LOG_LEVEL_WARNING,
                         "disconnected: %u descriptors that its user sent are not closed yet",
                         closer_pending(connection->user->closer));
        return FOUND_NOTHING;
    }
    r = sockio_recv(connection->fd, net->buffer, MEMORYD_FRAME_MAX + 1, &size, &fds);

    switch (r) {
    case 0:
        return handle_packet(connection, size, &fds);
    case SOCKIO_E_RESET:
        return FOUND_ONE_OF_SEVERAL; /* its last packets come after this */
    case SOCKIO_E_AGAIN:
        return FOUND_NOTHING;
    case SOCKIO_E_EOF:
        connection_close(connection, LOG_LEVEL_INFO, "has closed its connection");
        return FOUND_NOTHING;
    case SOCKIO_E_TRUNCATED:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: %s", frame_error_text(FRAME_E_LONG));
        return FOUND_NOTHING;
    case SOCKIO_E_TOO_MANY_FDS:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: %s", frame_error_text(FRAME_E_TOO_MANY_FDS));
        return FOUND_NOTHING;
    case SOCKIO_E_FDS_LOST:
        connection_close(connection, LOG_LEVEL_WARNING,
                         "disconnected: its descriptors could not be received; the broker is near its limit of open "
                         "files");
        return FOUND_NOTHING;
    default:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: receiving failed (%d)", r);
        return FOUND_NOTHING;
    }
}

static bool may_read(const struct connection *connection)
{
    return connection->reading && !connection->closing;
}

/* Is a second packet likely? One that is there although it is not read wakes the loop again. */
static bool expects_burst(struct connection *connection)
{
    return connection->bursts || ++connection->lone_turns % CONNECTION_LONE_TURNS == 0;
}

static void on_readable(evutil_socket_t fd, short events, void *userdata)
{
    struct connection *connection = userdata;
    enum found found = FOUND_NOTHING;
    unsigned n = 0;

    if (connection->fds_in_flight)
        (void)connection_settle(connection);
    while (n < CONNECTION_PACKETS_PER_TURN && may_read(connection)) {
        if (n == 1 && found == FOUND_ONE && !expects_burst(connection))
            return;
        found = read_one(connection);
        if (found == FOUND_NOTHING)
            break;
        connection_update_reading(connection);
        n++;
    }
    if (n > 1)
        connection->bursts = CONNECTION_BURSTS;
    else if (connection->bursts)
        connection->bursts--;
}

static void on_writable(evutil_socket_t fd, short events, void *userdata)
{
    connection_flush(userdata);
}

static void on_deadline(evutil_socket_t fd, short events, void *userdata)
{
    struct connection *connection = userdata;

    if (!connection->established && !connection->finishing)
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: it connected and did not send HELLO");
    else if (list_is_linked(&connection->waiting_link) && !connection->fds_in_flight)
        connection_arm_deadline(connection, connection->net->limits.stall_ms); /* others make it wait */
    else
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: it does not read its replies");
}

struct connection *connection_new(struct net *net, int fd, struct peer *peer, struct net_user *user)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        return NULL;
    if (event_assign(&connection->read_event, net->base, fd, EV_READ | EV_PERSIST, on_readable, connection) < 0 ||
        event_assign(&connection->write_event, net->base, fd, EV_WRITE | EV_PERSIST, on_writable, connection) < 0 ||
        event_assign(&connection->deadline_event, net->base, -1, 0, on_deadline, connection) < 0) {
        free(connection);
        return NULL;
    }
    connection->net = net;
    connection->user = user;
    connection->fd = fd;
    connection->who = (struct log_client){.uid = peer->uid, .pid = peer->pid};
    connection->peer = *peer;
    *peer = (struct peer)PEER_NULL;
    list_init(&connection->in_flight_link);
    list_init(&connection->waiting_link);
    list_init(&connection->closing_link);
    list_init(&connection->outbox);
    list_append(&net->connections, &connection->in_connections);
    net->n_connections++;
    user->connections++;
    connection_arm_deadline(connection, net->limits.handshake_ms);
    connection_update_reading(connection);
    return connection;
}

struct connection *connection_free(struct connection *connection)
{
    struct net *net = connection->net;

    outbox_clear(connection);
    outbox_fds_delivered(connection);
    list_remove(&connection->in_connections);
    list_remove(&connection->closing_link);
    net->n_connections--;
    connection->user->connections--;
    net_close_socket(connection->user->closer, connection->fd);
    net_user_drop(net, connection->user);
    peer_deinit(&connection->peer);
    free(connection);
    return NULL;
}

void connection_established(struct connection *connection)
{
    if (connection->established)
        return;
    connection->established = true;
    if (!outbox_has_reply(connection))
        (void)event_del(&connection->deadline_event);
}

void connection_finish(struct connection *connection)
{
    if (connection->closing || connection->finishing)
        return;
    connection->finishing = true;
    connection_update_reading(connection);
    connection_arm_deadline(connection, connection->net->limits.stall_ms);
    connection_flush(connection);
}

void connection_close(struct connection *connection, enum log_level level, const char *format, ...)
{
    char reason[256];
    va_list arguments;

    if (connection->closing)
        return;
    connection->closing = true;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    log_client(level, connection->who, "%s", reason);
    (void)event_del(&connection->read_event);
    (void)event_del(&connection->write_event);
    (void)event_del(&connection->deadline_event);
    list_remove(&connection->waiting_link);
    list_append(&connection->net->closing, &connection->closing_link);
    event_active(&connection->net->reap_event, 0, 0);
}

unsigned connection_fds_in_flight(struct connection *connection)
{
    if (connection->fds_in_flight)
        (void)connection_settle(connection);
    return connection->fds_in_flight;
}
