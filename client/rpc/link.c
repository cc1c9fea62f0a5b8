/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: each packet goes to the call that it answers, or to nobody. */
#include "rpc/link.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/sockio.h"
#include "proto/status.h"
#include "rpc/convert.h"
#include "rpc/requests.h"
#include "rpc/spin.h"

/* What a leader receives before it checks whether its own call is answered. */
#define PACKETS_PER_TURN 16

/* ---- undoing what nobody waits for any more; without the lock ---------------------------------------------------- */

static void undo_holds(struct channel *channel, const Memoryd__V1__Buffers *reply)
{
    uint64_t ids[MEMORYD_BATCH_MAX];
    size_t n = 0;

    for (size_t i = 0; i < reply->n_ids && i < MEMORYD_BATCH_MAX; i++)
        if (reply->ids[i])
            ids[n++] = reply->ids[i];
    if (n)
        channel_post(channel, METHOD_RELEASE, REQUEST(Release, release, .n_buffers = n, .buffers = ids));
}

static void undo_range(struct channel *channel, const Memoryd__V1__ReserveReply *reply)
{
    channel_post(channel, METHOD_UNRESERVE, REQUEST(Unreserve, unreserve, .reservation = reply->reservation));
}

static void undo_tokens(struct channel *channel, const Memoryd__V1__ShareReply *reply)
{
    static const uint8_t none[MEMORYD_TOKEN_SIZE];

    for (size_t i = 0; i + MEMORYD_TOKEN_SIZE <= reply->tokens.len; i += MEMORYD_TOKEN_SIZE) {
        const ProtobufCBinaryData token = {.data = reply->tokens.data + i, .len = MEMORYD_TOKEN_SIZE};

        if (memcmp(token.data, none, sizeof(none)) != 0)
            channel_post(channel, METHOD_REVOKE, REQUEST(Revoke, revoke, .token = token));
    }
}

/*
 * Gives back what a reply granted whose caller has given up. The requests are posted, since the leader waits for
 * something else. What a request changed for good (a name, a publication, a buffer's end) stays: its caller was told
 * that the outcome is unknown.
 */
static void undo_reply(struct channel *channel, const struct schema_method *row, const uint8_t *payload, size_t n)
{
    ProtobufCMessage *reply;

    if (envelope_unpack(row->reply, payload, n, &channel->arena, &reply))
        return;
    switch (row->grants) {
    case GRANTS_NOTHING:
        break;
    case GRANTS_HOLDS:
        undo_holds(channel, (const Memoryd__V1__Buffers *)reply);
        break;
    case GRANTS_RANGE:
        undo_range(channel, (const Memoryd__V1__ReserveReply *)reply);
        break;
    case GRANTS_TOKENS:
        undo_tokens(channel, (const Memoryd__V1__ShareReply *)reply);
        break;
    }
}

/* ---- a packet; without the lock ---------------------------------------------------------------------------------- */

/* The Problem of a refusal. If the broker sends none, or nonsense, only its status counts. */
static void link_decode_problem(struct channel *channel, struct call *call, const uint8_t *payload, size_t n)
{
    ProtobufCMessage *message;

    call->sentence[0] = '\0';
    if (!envelope_unpack(&memoryd__v1__problem__descriptor, payload, n, &channel->arena, &message)) {
        const Memoryd__V1__Problem *problem = (const Memoryd__V1__Problem *)message;

        COPY_TEXT(call->sentence, problem->sentence);
    }
}

static int link_decode_reply(struct channel *channel, const struct schema_method *row, struct call *call,
                             const uint8_t *payload, size_t n, struct fdset *fds)
{
    ProtobufCMessage *message;

    if (fdset_count(fds) > row->fds_out)
        return -EPROTO;
    if (call->raw) {
        memcpy(call->raw->bytes, payload, n);
        call->raw->n = n;
        return 0;
    }
    if (envelope_unpack(row->reply, payload, n, &channel->arena, &message))
        return -EPROTO;
    return call->decode ? call->decode(call->result, message, fds) : 0;
}

static int link_deliver_event(struct channel *channel, uint16_t id, const uint8_t *payload, size_t n)
{
    const struct schema_event *event = schema_event(id);
    ProtobufCMessage *message;

    /* an event of a later version is ignored */
    if (!event)
        return 0;
    if (envelope_unpack(event->message, payload, n, &channel->arena, &message))
        return -EPROTO;
    if (channel->owner.event)
        channel->owner.event(channel->owner.data, id, message);
    return 0;
}

/* The request that a reply answers, which only the leader touches from now on; NULL if there is none. */
static struct pending *link_match_reply(struct channel *channel, const struct frame_header *header)
{
    struct pending *pending;

    pthread_mutex_lock(&channel->lock);
    pending = request_find(channel, header->sequence);
    if (pending && pending->row->id != header->method)
        pending = NULL;
    if (pending && pending->call)
        pending->call->state = CALL_DECODING;
    pthread_mutex_unlock(&channel->lock);
    return pending;
}

static void link_settle(struct channel *channel, struct pending *pending)
{
    struct call *call = pending->call;

    pthread_mutex_lock(&channel->lock);
    request_answered(channel, pending);
    resume_confirm(channel);
    if (call && call->state == CALL_DECODING)
        call->state = CALL_ANSWERED;
    /* that may have made room */
    requests_flush(channel);
    channel->others_wait = requests_has_waiting(channel);
    pthread_mutex_unlock(&channel->lock);
    /* not before, since the thread that wakes up wants the lock */
    if (call)
        pthread_cond_broadcast(&pending->wake);
}

/* Handles a packet of the broker. 0, or -EPROTO. `complete`: all its descriptors were received. */
static int link_deliver(struct channel *channel, size_t size, struct fdset *fds, bool complete)
{
    struct frame_header header;
    const uint8_t *payload;
    struct pending *pending;
    struct call *call;
    size_t n;
    int err = 0;

    if (frame_decode(channel->packet, size, complete ? fdset_count(fds) : FRAME_FDS_UNKNOWN, FRAME_FROM_BROKER, &header,
                     &payload))
        return -EPROTO;
    n = header.payload_length;
    if (!header.sequence)
        return link_deliver_event(channel, header.method, payload, n);
    /* HELLO was refused, and the broker has not looked at what was sent after it */
    if (channel->link == LINK_HANDSHAKING && header.status == STATUS_NO_SESSION)
        return 0;
    pending = link_match_reply(channel, &header);
    if (!pending)
        return -EPROTO;

    call = pending->call;
    /* a session can do without its release log, if this process cannot receive the descriptor */
    complete = complete || header.method == METHOD_HELLO;
    if (call && header.status) {
        call->status = header.status;
        link_decode_problem(channel, call, payload, n);
    } else if (call && complete) {
        call->err = err = link_decode_reply(channel, pending->row, call, payload, n, fds);
    } else if (!header.status && !pending->fire_and_forget) {
        /* nobody wants the reply any more, or it is incomplete */
        undo_reply(channel, pending->row, payload, n);
        if (call)
            call->err = -EMFILE;
    }
    link_settle(channel, pending);
    return err == -EPROTO ? err : 0;
}

/* ---- the socket -------------------------------------------------------------------------------------------------- */

/* The connection is lost. */
static void link_lose(struct channel *channel)
{
    bool was_up = channel->link == LINK_UP;

    if (channel->broken)
        return;
    if (!channel->resumption) {
        channel_break_locked(channel, ECONNRESET, "the broker closed the connection");
        return;
    }
    if (channel->link == LINK_HANDSHAKING)
        resume_lost_hello(channel);
    if (was_up)
        channel->since = clock_now_ns();
    channel->link = LINK_DOWN;
    requests_lost(channel);
    if (was_up && channel->owner.lost) {
        pthread_mutex_unlock(&channel->lock);
        channel->owner.lost(channel->owner.data, channel);
        pthread_mutex_lock(&channel->lock);
    }
    channel->socket = file_id_close(channel->socket_id, channel->socket);
    channel->fd_replaced = false;
    channel->send_blocked = 0;
}

/* The broker broke the protocol: all calls fail, and another connection may work. */
static void link_lose_to_nonsense(struct channel *channel)
{
    static const char why[] = "the broker sent a packet that breaks the protocol; the connection was given up";

    pthread_mutex_lock(&channel->lock);
    if (channel->resumption)
        requests_fail(channel, EPROTO, 0, why, true);
    else
        channel_break_locked(channel, EPROTO, why);
    link_lose(channel);
    pthread_mutex_unlock(&channel->lock);
}

/* Without the lock. True if more may be there. */
static bool link_receive_one(struct channel *channel, bool wait)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    size_t size;
    int r = wait ? spin_recv(channel->socket, channel->packet, &size, &fds)
                 : sockio_recv(channel->socket, channel->packet, MEMORYD_FRAME_MAX, &size, &fds);

    switch (r) {
    case 0:
    case SOCKIO_E_FDS_LOST:
        if (!link_deliver(channel, size, &fds, !r))
            return true;
        link_lose_to_nonsense(channel);
        return false;
    case SOCKIO_E_RESET: /* replies may come after it */
        return true;
    case SOCKIO_E_AGAIN:
        return false;
    case SOCKIO_E_EOF:
        pthread_mutex_lock(&channel->lock);
        link_lose(channel);
        pthread_mutex_unlock(&channel->lock);
        return false;
    default: /* too large, too many descriptors, or no socket */
        link_lose_to_nonsense(channel);
        return false;
    }
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

/* Without the lock. Replies to several calls come together; the leader receives for the others, but not forever. */
static void link_receive_some(struct channel *channel, bool wait)
{
    channel->others_wait = false;
    for (unsigned n = 0; n < PACKETS_PER_TURN && link_receive_one(channel, wait) && channel->others_wait; n++)
        wait = false;
}

static void link_listen(struct channel *channel, uint64_t deadline)
{
    uint64_t now = clock_now_ns();
    uint64_t until = deadline_at(
        now, channel->send_blocked == SOCKIO_E_TOO_MANY_IN_FLIGHT ? LINK_RETRY_NS : LINK_WAIT_MS * NSEC_PER_MSEC);
    struct pollfd p = {.fd = channel->socket,
                       .events = channel->send_blocked == SOCKIO_E_AGAIN ? POLLIN | POLLOUT : POLLIN};
    bool wait = channel->may_wait && !channel->send_blocked && until < deadline;

    pthread_mutex_unlock(&channel->lock);
    if (wait)
        link_receive_some(channel, true);
    else if (poll(&p, 1, deadline_poll_ms(until < deadline ? until : deadline, now)) > 0 &&
             (p.revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)))
        link_receive_some(channel, false);
    pthread_mutex_lock(&channel->lock);
}

void link_lead(struct channel *channel, uint64_t deadline, bool just_sent)
{
    assert(!channel->led);
    channel->led = true;
    if (!just_sent && channel->link != LINK_DOWN && !file_id_is(channel->socket_id, channel->socket))
        channel->fd_replaced = true;
    if (channel->fd_replaced)
        link_lose(channel);
    if (!just_sent)
        requests_flush(channel);
    if (channel->broken)
        ;
    else if (channel->link == LINK_DOWN)
        resume_step(channel, deadline);
    else
        link_listen(channel, deadline);
    if (channel->link == LINK_HANDSHAKING)
        resume_check_hello(channel);
    channel->led = false;
}

void link_drain(struct channel *channel)
{
    channel->led = true;
    pthread_mutex_unlock(&channel->lock);
    while (link_receive_one(channel, false))
        ;
    pthread_mutex_lock(&channel->lock);
    if (channel->link == LINK_HANDSHAKING)
        resume_check_hello(channel);
    channel->led = false;
}

/* Receives what the broker sent last, and the end of the connection. */
static void link_receive_last(struct channel *channel)
{
    if (channel->fd_replaced) {
        channel->led = true;
        link_lose(channel);
        channel->led = false;
    } else {
        link_drain(channel);
    }
}

static void link_reconnect(struct channel *channel)
{
    /* the next brokers may die as well, but the attempts are limited */
    for (unsigned n = 0; n < 4 && !channel->led && !channel->broken && channel->resumption; n++) {
        if (channel->link == LINK_DOWN) {
            channel->led = true;
            resume_at_once(channel);
            channel->led = false;
            if (channel->link == LINK_DOWN)
                break;
        } else if (channel->send_blocked == SOCKIO_E_GONE) {
            link_receive_last(channel);
        } else if (channel->link == LINK_UP || requests_flush(channel) != SOCKIO_E_GONE) {
            break;
        }
    }
}

void link_leave(struct channel *channel)
{
    if (channel->led || requests_wake_one(channel))
        return;
    if ((channel->link != LINK_UP || channel->send_blocked == SOCKIO_E_GONE) && requests_have_release(channel)) {
        link_reconnect(channel);
        if (!channel->led)
            requests_wake_one(channel);
    }
}
