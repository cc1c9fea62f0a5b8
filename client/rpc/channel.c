/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader and followers; channel.h tells the idea.
 *
 * What is where: `struct call` is on the stack of the thread that makes it; `struct pending` is the
 * channel's note that a sequence awaits its reply, and outlives the call if that gives up. The
 * acknowledgement in each request is computed from these notes: the highest sequence that has no
 * unanswered one before it.
 */
#include "rpc/channel.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/sockio.h"
#include "rpc/convert.h"
#include "rpc/fail.h"
#include "rpc/undo.h"

/* The largest request, an OPEN of 64 tokens or an ALLOC with 64 of everything, has half of it. */
#define REQUEST_MAX 8192

/* How long a reply is waited for inside recvmsg(), which most are, before poll() is asked. */
#define WAIT_MS 1000

/* How soon to look again where poll() cannot tell. */
#define RETRY_NS (1 * NSEC_PER_MSEC)

enum call_state {
    CALL_WAITING,  /* for its reply */
    CALL_TAKING,   /* a leader is making its result */
    CALL_ANSWERED, /* `status` and `err` say how */
    CALL_LOST      /* with the connection */
};

struct call {
    enum call_state state;
    channel_take *take;
    void *result;
    struct channel_raw *raw;
    pthread_cond_t wake;
    int err;         /* of take() */
    unsigned status; /* the broker's */
    char sentence[MEMORYD_SENTENCE_MAX + 1];
};

struct pending {
    struct list link;
    uint64_t sequence;
    enum method method;
    struct call *call; /* NULL: nobody waits any more */
};

int channel_new(int socket, uint64_t sequence, channel_event *event, void *data, struct channel **channelp)
{
    struct channel *channel;

    channel = calloc(1, sizeof(*channel));
    if (!channel)
        goto no_memory;
    channel->packet = malloc(MEMORYD_FRAME_MAX);
    if (!channel->packet || arena_init(&channel->arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES))
        goto no_memory;
    channel->refs = 1;
    channel->socket = socket;
    channel->socket_id = file_id_of(socket);
    channel->may_wait = !sockio_set_wait(socket, WAIT_MS);
    channel->sequence = sequence;
    channel->event = event;
    channel->event_data = data;
    list_init(&channel->waiting);
    list_init(&channel->unused);
    pthread_mutex_init(&channel->lock, NULL);
    *channelp = channel;
    return 0;

no_memory:
    if (channel)
        free(channel->packet);
    free(channel);
    return fail_with(ENOMEM, "no memory for a connection to the broker");
}

struct channel *channel_ref(struct channel *channel)
{
    if (channel)
        __atomic_add_fetch(&channel->refs, 1, __ATOMIC_RELAXED);
    return channel;
}

static void free_pending(struct list *list)
{
    struct list *link;

    while ((link = list_pop(list)))
        free(container_of(link, struct pending, link));
}

struct channel *channel_unref(struct channel *channel)
{
    if (!channel || __atomic_sub_fetch(&channel->refs, 1, __ATOMIC_ACQ_REL))
        return NULL;
    free_pending(&channel->waiting);
    free_pending(&channel->unused);
    file_id_close(channel->socket_id, channel->socket);
    pthread_mutex_destroy(&channel->lock);
    arena_deinit(&channel->arena);
    free(channel->packet);
    channel_unref(channel->inherited);
    free(channel);
    return NULL;
}

static void break_locked(struct channel *channel, int err, const char *why)
{
    if (channel->broken)
        return;
    channel->broken = true;
    channel->broken_err = err;
    channel->broken_why = why;
    /* whoever polls wakes up; the descriptor itself stays until nobody can be polling it */
    if (file_id_is(channel->socket_id, channel->socket))
        shutdown(channel->socket, SHUT_RDWR);
    list_for_each_entry(pending, &channel->waiting, struct pending, link)
    {
        struct call *call = pending->call;

        if (call && call->state == CALL_WAITING) {
            /* the caller goes, and the call with it; what waits here is nobody's */
            pending->call = NULL;
            call->state = CALL_LOST;
            pthread_cond_signal(&call->wake);
        }
    }
}

void channel_break(struct channel *channel, int err, const char *why)
{
    pthread_mutex_lock(&channel->lock);
    break_locked(channel, err, why);
    pthread_mutex_unlock(&channel->lock);
}

bool channel_is_broken(struct channel *channel)
{
    bool broken;

    pthread_mutex_lock(&channel->lock);
    broken = channel->broken;
    pthread_mutex_unlock(&channel->lock);
    return broken;
}

uint64_t channel_sequence(struct channel *channel)
{
    uint64_t sequence;

    pthread_mutex_lock(&channel->lock);
    sequence = channel->sequence;
    pthread_mutex_unlock(&channel->lock);
    return sequence;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static struct pending *find_pending(struct channel *channel, uint64_t sequence)
{
    list_for_each_entry(pending, &channel->waiting, struct pending, link)
        if (pending->sequence == sequence)
            return pending;
    return NULL;
}

/* The Problem of a refusal; a broker that sends none, or nonsense, is believed the number only. */
static void take_problem(struct channel *channel, struct call *call, const uint8_t *payload,
                         size_t n)
{
    ProtobufCMessage *message;

    call->sentence[0] = '\0';
    if (!envelope_unpack(&memoryd__v1__problem__descriptor, payload, n, &channel->arena,
                         &message)) {
        const Memoryd__V1__Problem *problem = (const Memoryd__V1__Problem *)message;

        COPY_TEXT(call->sentence, problem->sentence);
    }
}

static int take_reply(struct channel *channel, const struct schema_method *row, struct call *call,
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
    return call->take ? call->take(call->result, message, fds) : 0;
}

/* A packet of the broker, by the leader, without the lock. 0, or a frame that cannot be. */
static int deliver(struct channel *channel, size_t size, struct fdset *fds)
{
    struct frame_header header;
    const uint8_t *payload;
    const struct schema_method *row;
    struct pending *pending;
    struct call *call;
    int err = 0;

    if (frame_decode(channel->packet, size, fdset_count(fds), FRAME_FROM_BROKER, &header,
                     &payload))
        return -EPROTO;

    if (!header.sequence) {
        const struct schema_event *event = schema_event(header.method);
        ProtobufCMessage *message;

        /* an event that a later version invented is none of our business */
        if (!event)
            return 0;
        if (envelope_unpack(event->message, payload, header.payload_length, &channel->arena,
                            &message))
            return -EPROTO;
        if (channel->event)
            channel->event(channel->event_data, header.method, message);
        return 0;
    }

    pthread_mutex_lock(&channel->lock);
    pending = find_pending(channel, header.sequence);
    row = pending ? schema_method((uint16_t)pending->method) : NULL;
    if (!row || header.method != row->id) {
        pthread_mutex_unlock(&channel->lock);
        return -EPROTO;
    }
    call = pending->call;
    if (call)
        call->state = CALL_TAKING;
    pthread_mutex_unlock(&channel->lock);

    if (!call) {
        ProtobufCMessage *message;

        if (!header.status && !envelope_unpack(row->reply, payload, header.payload_length,
                                               &channel->arena, &message))
            undo_reply(channel, pending->method, message);
    } else if (header.status) {
        call->status = header.status;
        take_problem(channel, call, payload, header.payload_length);
    } else {
        call->err = err =
            take_reply(channel, row, call, payload, header.payload_length, fds);
    }

    pthread_mutex_lock(&channel->lock);
    list_remove(&pending->link);
    list_append(&channel->unused, &pending->link);
    if (call) {
        call->state = CALL_ANSWERED;
        pthread_cond_signal(&call->wake);
    }
    pthread_mutex_unlock(&channel->lock);
    return err == -EPROTO ? err : 0;
}

/* By the leader, without the lock. True if there may be more. */
static bool receive_one(struct channel *channel, bool wait)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    size_t size;
    int r;

    if (wait)
        r = sockio_recv_wait(channel->socket, channel->packet, MEMORYD_FRAME_MAX, &size, &fds);
    else
        r = sockio_recv(channel->socket, channel->packet, MEMORYD_FRAME_MAX, &size, &fds);
    switch (r) {
    case 0:
        if (deliver(channel, size, &fds)) {
            channel_break(channel, EPROTO,
                          "the broker sent a packet that breaks the protocol; the connection was given up");
            return false;
        }
        return true;
    case SOCKIO_E_RESET: /* replies may lie behind it */
        return true;
    case SOCKIO_E_AGAIN:
        return false;
    case SOCKIO_E_EOF:
        channel_break(channel, ECONNRESET, "the broker closed the connection");
        return false;
    case SOCKIO_E_FDS_LOST:
        channel_break(channel, EMFILE,
                      "a descriptor of the broker could not be received: this process has as many "
                      "descriptors as it may have (ulimit -n)");
        return false;
    default: /* too large, too many descriptors, or a socket that is none */
        channel_break(channel, EPROTO,
                      "the broker sent a packet that breaks the protocol; the connection was given up");
        return false;
    }
}

/* Somebody who waits must lead if nobody does. With the lock. */
static void wake_a_leader(struct channel *channel)
{
    list_for_each_entry(pending, &channel->waiting, struct pending, link)
    {
        if (pending->call && pending->call->state == CALL_WAITING) {
            pthread_cond_signal(&pending->call->wake);
            return;
        }
    }
}

/*
 * Leads for one turn: waits for `events` or a packet until the deadline, and receives what is one.
 * With the lock, which is given up meanwhile. `just_sent`: the socket has been seen to be ours a moment ago, so that
 * a deadline that is far off allows to wait in the one call that also receives.
 */
static void lead(struct channel *channel, short events, uint64_t deadline, bool just_sent)
{
    struct pollfd p = {.fd = channel->socket, .events = (short)(events | POLLIN)};
    bool wait = just_sent && channel->may_wait && !deadline_passed(deadline, clock_now_ns() + WAIT_MS * NSEC_PER_MSEC);

    assert(!channel->led);
    channel->led = true;
    pthread_mutex_unlock(&channel->lock);
    if (!(wait && receive_one(channel, true)) && poll(&p, 1, deadline_poll_ms(deadline, clock_now_ns())) > 0 &&
        (p.revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)))
        receive_one(channel, false);
    pthread_mutex_lock(&channel->lock);
    channel->led = false;
}

void channel_poll(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    if (!channel->led && !channel->broken) {
        channel->led = true;
        pthread_mutex_unlock(&channel->lock);
        while (receive_one(channel, false))
            ;
        pthread_mutex_lock(&channel->lock);
        channel->led = false;
        wake_a_leader(channel);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* ---- sending -------------------------------------------------------------------------------- */

static struct pending *new_pending(struct channel *channel)
{
    struct list *link = list_pop(&channel->unused);
    struct pending *pending;

    if (link)
        return container_of(link, struct pending, link);
    pending = malloc(sizeof(*pending));
    if (pending)
        list_init(&pending->link);
    return pending;
}

static uint64_t acknowledged(const struct channel *channel)
{
    struct list *first = list_first(&channel->waiting);

    return first ? container_of(first, struct pending, link)->sequence - 1 : channel->sequence;
}

/* With the lock: a sequence is taken and sent in one piece, so that they leave in order. */
static int send_locked(struct channel *channel, enum method method, const void *payload, size_t n,
                       const int *fds, unsigned n_fds, struct call *call)
{
    struct pending *pending = new_pending(channel);
    uint8_t header[MEMORYD_HEADER_SIZE];
    struct iovec iov[2] = {
        {.iov_base = header, .iov_len = sizeof(header)},
        {.iov_base = (void *)payload, .iov_len = n},
    };
    int r;

    if (!pending)
        return -ENOMEM;
    frame_encode(header, FRAME_FROM_CLIENT,
                 &(struct frame_header){
                     .method = (uint16_t)method,
                     .fd_count = (uint16_t)n_fds,
                     .payload_length = (uint32_t)n,
                     .sequence = channel->sequence + 1,
                     .acknowledged = acknowledged(channel),
                 });
    r = sockio_send(channel->socket, iov, n ? 2 : 1, fds, n_fds);
    if (r) {
        list_append(&channel->unused, &pending->link);
        return r;
    }
    pending->sequence = ++channel->sequence;
    pending->method = method;
    pending->call = call;
    list_append(&channel->waiting, &pending->link);
    return 0;
}

/* With the lock. Sends, waiting for room until the deadline; what arrives meanwhile is received. */
static int send_request(struct channel *channel, enum method method, const void *payload,
                        size_t n, const int *fds, unsigned n_fds, uint64_t deadline,
                        struct call *call)
{
    for (;;) {
        uint64_t now;
        int r;

        if (!channel->broken && !file_id_is(channel->socket_id, channel->socket))
            break_locked(channel, ECONNRESET, "this program has closed the descriptor of its connection to the broker");
        if (channel->broken)
            return fail_with(ENOTCONN, "the connection to the broker is lost");
        r = send_locked(channel, method, payload, n, fds, n_fds, call);
        if (!r)
            return 0;
        now = clock_now_ns();
        switch (r) {
        case SOCKIO_E_AGAIN:
        case SOCKIO_E_TOO_MANY_IN_FLIGHT:
            if (deadline_passed(deadline, now))
                return fail_with(ETIMEDOUT, "the broker did not take the request in time");
            if (r == SOCKIO_E_AGAIN && !channel->led) {
                lead(channel, POLLOUT, deadline, false);
                wake_a_leader(channel);
            } else {
                struct pollfd p = {.fd = channel->socket,
                                   .events = r == SOCKIO_E_AGAIN ? POLLOUT : 0};
                uint64_t until =
                    r == SOCKIO_E_AGAIN ? deadline : deadline_at(now, RETRY_NS);

                pthread_mutex_unlock(&channel->lock);
                poll(&p, 1, deadline_poll_ms(until < deadline ? until : deadline, now));
                pthread_mutex_lock(&channel->lock);
            }
            break;
        case SOCKIO_E_GONE:
            /* replies to earlier requests may still lie there: they are read to the end first */
            if (!channel->led) {
                lead(channel, 0, deadline, false);
                wake_a_leader(channel);
            } else {
                pthread_mutex_unlock(&channel->lock);
                poll(NULL, 0, 1);
                pthread_mutex_lock(&channel->lock);
            }
            break;
        case -ENOMEM:
            return fail_with(ENOMEM, "no memory for a request");
        case -EBADF:
            return fail_with(EBADF, "not an open descriptor");
        default:
            return fail_with(r < 0 ? -r : EMSGSIZE, "the request could not be sent");
        }
    }
}

void channel_post(struct channel *channel, enum method method, const ProtobufCMessage *request)
{
    uint8_t payload[REQUEST_MAX];
    struct pollfd p = {.fd = channel->socket, .events = POLLOUT};
    size_t n;

    if (envelope_pack(request, payload, sizeof(payload), &n))
        return;
    for (unsigned i = 0; i < 10; i++) {
        int r = SOCKIO_E_GONE;

        pthread_mutex_lock(&channel->lock);
        if (!channel->broken && file_id_is(channel->socket_id, channel->socket))
            r = send_locked(channel, method, payload, n, NULL, 0, NULL);
        pthread_mutex_unlock(&channel->lock);
        if (r != SOCKIO_E_AGAIN)
            return;
        poll(&p, 1, 100);
    }
}

/* ---- a call --------------------------------------------------------------------------------- */

static void deadline_to_timespec(uint64_t deadline, struct timespec *ts)
{
    ts->tv_sec = (time_t)(deadline / NSEC_PER_SEC);
    ts->tv_nsec = (long)(deadline % NSEC_PER_SEC);
}

static void init_wake(pthread_cond_t *wake)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attr);
    pthread_condattr_destroy(&attr);
}

/* With the lock. Afterwards the call is answered or lost, or nobody's any more: -ETIMEDOUT. */
static int await(struct channel *channel, struct call *call, uint64_t deadline)
{
    for (bool first = true; call->state == CALL_WAITING || call->state == CALL_TAKING; first = false) {
        if (call->state == CALL_WAITING && deadline_passed(deadline, clock_now_ns())) {
            list_for_each_entry(pending, &channel->waiting, struct pending, link)
                if (pending->call == call)
                    pending->call = NULL;
            wake_a_leader(channel);
            return fail_with(ETIMEDOUT, "the broker did not answer in time");
        }
        if (!channel->led && call->state == CALL_WAITING) {
            lead(channel, 0, deadline, first);
        } else if (call->state == CALL_TAKING || deadline == DEADLINE_NEVER) {
            pthread_cond_wait(&call->wake, &channel->lock);
        } else {
            struct timespec ts;

            deadline_to_timespec(deadline, &ts);
            pthread_cond_timedwait(&call->wake, &channel->lock, &ts);
        }
    }
    if (!channel->led)
        wake_a_leader(channel);
    return 0;
}

int channel_call(struct channel *channel, enum method method, const ProtobufCMessage *request,
                 const int *fds, unsigned n_fds, uint64_t deadline, channel_take *take,
                 void *result, struct channel_raw *raw)
{
    struct call call = {.state = CALL_WAITING, .take = take, .result = result, .raw = raw};
    uint8_t payload[REQUEST_MAX];
    size_t n;
    int r;

    r = envelope_pack(request, payload, sizeof(payload), &n);
    if (r)
        return fail_with(EMSGSIZE, "the request is longer than any packet may be");
    init_wake(&call.wake);
    pthread_mutex_lock(&channel->lock);
    r = send_request(channel, method, payload, n, fds, n_fds, deadline, &call);
    if (!r)
        r = await(channel, &call, deadline);
    if (!r && call.state == CALL_LOST)
        r = fail_with(channel->broken_err, "%s", channel->broken_why);
    pthread_mutex_unlock(&channel->lock);
    pthread_cond_destroy(&call.wake);
    if (r)
        return r;
    if (call.status)
        return fail_refused(call.status, call.sentence);
    if (call.err)
        return fail_with(-call.err, call.err == -EPROTO ? "the broker's reply makes no sense"
                                                   : "the broker's reply could not be used");
    return 0;
}

/* ---- fork ----------------------------------------------------------------------------------- */

void channel_fork_prepare(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
}

void channel_fork_parent(struct channel *channel)
{
    pthread_mutex_unlock(&channel->lock);
}

void channel_fork_child(struct channel *channel)
{
    /* The calls that wait are of threads that the child does not have. */
    list_for_each_entry(pending, &channel->waiting, struct pending, link)
        pending->call = NULL;
    channel->led = false;
    channel->broken = true;
    channel->broken_err = ECONNRESET;
    channel->broken_why = "the connection is that of the parent process";
    channel->socket = file_id_close(channel->socket_id, channel->socket);
    pthread_mutex_unlock(&channel->lock);
    pthread_mutex_init(&channel->lock, NULL);
}
