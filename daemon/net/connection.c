/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a connection: the listener opens it; in turns of its user it is identified, read here and written in
 * outbox.c; connection_close() marks it, and a last turn frees it.
 */

#include "net/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/sockio.h"

void connection_arm_deadline(struct connection *connection, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    connection->overdue = false;
    (void)event_add(&connection->deadline_event, &tv);
}

void connection_disarm_deadline(struct connection *connection)
{
    connection->overdue = false;
    (void)event_del(&connection->deadline_event);
}

/* Nothing remembers that reading has stopped: whatever is done for the connection asks anew. */
static bool connection_may_read(const struct connection *connection)
{
    return connection->readable && !connection->finishing && !connection->held &&
           connection->unanswered < MEMORYD_UNACKNOWLEDGED_MAX &&
           connection->queued <= connection->net->limits.queued_bytes;
}

void connection_schedule(struct connection *connection)
{
    if (connection->closing || !connection->identified || connection->writable || connection->overdue ||
        connection_may_read(connection))
        fair_queue_add(&connection->net->queue, &connection->user->flow, &connection->task);
    /* else many connections of a user could have some open */
    if (connection->opening)
        fair_queue_put_first(&connection->user->flow, &connection->task);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The packet in the buffer is not sound: an enum frame_error. */
static void connection_refuse(struct connection *connection, int error, size_t size)
{
    struct net *net = connection->net;

    net->handler->refused(net->userdata, connection, error, net->buffer, size);
    if (connection->closing)
        return;
    log_client(LOG_LEVEL_WARNING, connection->who, "disconnected: %s", frame_error_text(error));
    connection_finish(connection);
}

static void handle_packet(struct connection *connection, size_t size, struct fdset *fds)
{
    struct net *net = connection->net;
    struct frame_header header;
    const uint8_t *payload;
    int r;

    r = frame_decode(net->buffer, size, fdset_count(fds), FRAME_FROM_CLIENT, &header, &payload);
    if (r) {
        connection_refuse(connection, r, size);
        return;
    }
    connection->unanswered++;
    net->n_packets++;
    fair_queue_note_request(&net->queue);
    r = net->handler->packet(net->userdata, connection, &header, payload, fds);
    if (r < 0)
        net_fail(net, r);
}

/*
 * Receives one packet and hands it up. Whoever receives a descriptor of a client closes it, and that may take for ever
 * (daemon/door/door.h). From 6.16 on the kernel refuses to send any here. Before, and on a connection that was made
 * before it was told to, the next packet is looked at first, and one that brings descriptors is never received.
 */
static void read_one(struct connection *connection)
{
    struct net *net = connection->net;
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    size_t size;
    int r = connection->peeks ? sockio_peek(connection->fd, net->buffer, MEMORYD_FRAME_MAX, &size) : 0;

    if (r == SOCKIO_E_FDS_LOST) {
        connection_refuse(connection, FRAME_E_DESCRIPTORS, size);
        return;
    }
    if (!r)
        r = sockio_recv(connection->fd, net->buffer, MEMORYD_FRAME_MAX + 1, &size, &fds);
    switch (r) {
    case 0:
        handle_packet(connection, size, &fds);
        return;
    case SOCKIO_E_RESET:
        return; /* its last packets come after this */
    case SOCKIO_E_AGAIN:
        /* without memory to deliver it, the packet stays there, and nothing would tell of it again */
        connection->readable = errno != EAGAIN;
        return;
    case SOCKIO_E_EOF:
        connection_close(connection, LOG_LEVEL_INFO, "has closed its connection");
        return;
    case SOCKIO_E_TRUNCATED:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: %s", frame_error_text(FRAME_E_LONG));
        return;
    case SOCKIO_E_TOO_MANY_FDS:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: %s", frame_error_text(FRAME_E_TOO_MANY_FDS));
        return;
    case SOCKIO_E_FDS_LOST:
        connection_close(connection, LOG_LEVEL_WARNING,
                         "disconnected: its descriptors could not be received; the broker is near its limit of open "
                         "files");
        return;
    default:
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: receiving failed (%d)", r);
        return;
    }
}

static void connection_read(struct connection *connection)
{
    if (connection->arrived && connection->fds_in_flight)
        (void)connection_settle(connection);
    connection->arrived = false;
    read_one(connection);
    connection_schedule(connection);
    connection->burst = connection->readable ? connection->burst + 1 : 0;
    if (connection->burst % CONNECTION_BURST && list_is_linked(&connection->task.link))
        fair_queue_put_first(&connection->user->flow, &connection->task);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

bool socket_is_left(int fd)
{
    struct pollfd polled = {.fd = fd};

    return poll(&polled, 1, 0) > 0 && (polled.revents & POLLHUP);
}

static void connection_wait_no_more(struct connection *connection)
{
    connection->user->n_unidentified -= list_is_linked(&connection->unidentified_link);
    list_remove(&connection->unidentified_link);
}

/* What is dear about a new connection is done here, so that a storm of them takes turns with other users' requests. */
static void connection_identify(struct connection *connection)
{
    struct net *net = connection->net;
    int r;

    connection_wait_no_more(connection);
    if (socket_is_left(connection->fd)) {
        connection_close(connection, LOG_LEVEL_DEBUG, "has left before it was its turn");
        return;
    }
    r = peer_identify(&connection->peer, connection->fd);
    if (r == PEER_NO_ROOM)
        connection_close(connection, LOG_LEVEL_WARNING, "turned away: no descriptor is left (LimitNOFILE=)");
    else if (r)
        connection_close(connection, LOG_LEVEL_INFO, "turned away: its process cannot be identified (%d)", r);
    else if (event_add(&connection->read_event, NULL) < 0 || !net->handler->opened(net->userdata, connection))
        connection_close(connection, LOG_LEVEL_WARNING, "turned away: no memory");
    if (r || connection->closing)
        return;
    connection->identified = true;
    connection_arm_deadline(connection, net->limits.handshake_ms);
}

static void connection_check_deadline(struct connection *connection)
{
    if (!connection->established && !connection->finishing)
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: it connected and did not send HELLO");
    else if (list_is_linked(&connection->waiting_link) && connection_settle(connection) && !connection->unread)
        connection_arm_deadline(connection, connection->net->limits.stall_ms); /* others make it wait */
    else
        connection_close(connection, LOG_LEVEL_WARNING, "disconnected: it does not read its replies");
}

static void connection_end(struct connection *connection)
{
    struct net *net = connection->net;
    int r = net->handler->closed(net->userdata, connection);

    connection_free(connection);
    if (r < 0)
        net_fail(net, r);
}

void user_end_left(struct net_user *user)
{
    struct list *link = list_pop(&user->unidentified);
    struct connection *connection = container_of(link, struct connection, unidentified_link);

    list_append(&user->unidentified, link);
    if (!socket_is_left(connection->fd))
        return;
    connection_close(connection, LOG_LEVEL_DEBUG, "has left before it was its turn");
    connection_end(connection);
}

/* A turn: one thing. */
static void connection_serve(struct fair_task *task)
{
    struct connection *connection = container_of(task, struct connection, task);

    if (connection->closing) {
        connection_end(connection);
        return;
    }
    if (!connection->identified) {
        connection_identify(connection);
    } else if (connection->writable) {
        connection->writable = false;
        connection_flush(connection);
    } else if (connection->overdue) {
        connection->overdue = false;
        connection_check_deadline(connection);
    } else if (connection_may_read(connection)) {
        connection_read(connection);
    }
    connection_schedule(connection);
}

static void connection_leaves(struct connection *connection)
{
    if (!connection->leaving)
        connection->net->n_leaving++;
    connection->leaving = true;
}

static void on_readable(evutil_socket_t fd, short events, void *userdata)
{
    struct connection *connection = userdata;

    if (events & EV_CLOSED)
        connection_leaves(connection);
    connection->arrived = connection->readable = true;
    connection_schedule(connection);
}

static void on_writable(evutil_socket_t fd, short events, void *userdata)
{
    struct connection *connection = userdata;

    connection->writable = true;
    connection_schedule(connection);
}

static void on_deadline(evutil_socket_t fd, short events, void *userdata)
{
    struct connection *connection = userdata;

    connection->overdue = true;
    connection_schedule(connection);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

struct connection *connection_new(struct net *net, int fd, struct peer *peer, struct net_user *user, bool peeks)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        return NULL;
    if (event_assign(&connection->read_event, net->base, fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_readable,
                     connection) < 0 ||
        event_assign(&connection->write_event, net->base, fd, EV_WRITE | EV_ET | EV_PERSIST, on_writable, connection) <
            0 ||
        event_assign(&connection->deadline_event, net->base, -1, 0, on_deadline, connection) < 0) {
        free(connection);
        return NULL;
    }
    connection->net = net;
    connection->user = user;
    connection->fd = fd;
    connection->peeks = peeks;
    connection->who = (struct log_client){.uid = peer->uid, .pid = peer->pid};
    connection->peer = *peer;
    *peer = (struct peer)PEER_NULL;
    fair_task_init(&connection->task, connection_serve);
    list_init(&connection->unidentified_link);
    list_append(&user->unidentified, &connection->unidentified_link);
    user->n_unidentified++;
    list_init(&connection->in_flight_link);
    list_init(&connection->waiting_link);
    list_init(&connection->unread_link);
    list_init(&connection->outbox);
    list_append(&net->connections, &connection->in_connections);
    net->n_connections++;
    user->connections++;
    user->refs++;
    connection_schedule(connection);
    return connection;
}

struct connection *connection_free(struct connection *connection)
{
    struct net *net = connection->net;

    outbox_clear(connection);
    outbox_delivered(connection);
    connection_wait_no_more(connection);
    list_remove(&connection->in_connections);
    fair_queue_remove(&net->queue, &connection->user->flow, &connection->task);
    net->n_connections--;
    net->n_leaving -= connection->leaving;
    connection->user->connections--;
    net_close_socket(net, connection->user->uid, connection->fd, connection->peeks);
    net_user_unref(net, connection->user);
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
        connection_disarm_deadline(connection);
}

void connection_hold(struct connection *connection, bool held)
{
    connection->held = held;
    connection_schedule(connection);
}

void connection_finish(struct connection *connection)
{
    if (connection->closing || connection->finishing)
        return;
    connection->finishing = true;
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
    connection_leaves(connection);
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    log_client(level, connection->who, "%s", reason);
    (void)event_del(&connection->read_event);
    (void)event_del(&connection->write_event);
    connection_disarm_deadline(connection);
    list_remove(&connection->waiting_link);
    connection_schedule(connection);
}

unsigned connection_fds_in_flight(struct connection *connection)
{
    if (connection->fds_in_flight)
        (void)connection_settle(connection);
    return connection->fds_in_flight;
}
