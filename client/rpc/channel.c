/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, their leader and followers; see channel.h. */
#include "rpc/channel.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proto/envelope.h"
#include "proto/release_log.h"
#include "proto/schema.h"
#include "proto/sockio.h"
#include "rpc/fail.h"
#include "rpc/interrupt.h"
#include "rpc/link.h"
#include "rpc/requests.h"

/* The largest request, an OPEN of 64 tokens or an ALLOC with 64 of everything, takes half of it. */
#define REQUEST_MAX 8192

/* How many releases may be under way without a caller that waits: half of all that may be. */
#define FIRE_AND_FORGET_MAX (MEMORYD_UNACKNOWLEDGED_MAX / 2)

/* How soon to try to send again while another thread leads. */
#define RESEND_NS (10 * NSEC_PER_MSEC)

int channel_new(int socket, const struct channel_owner *owner, struct channel **channelp)
{
    struct channel *channel;

    channel = calloc(1, sizeof(*channel));
    if (!channel)
        goto no_memory;
    channel->packet = malloc(MEMORYD_FRAME_MAX);
    if (!channel->packet || arena_init(&channel->arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES))
        goto no_memory;
    channel->refs = 1;
    channel->owner = *owner;
    channel->link = LINK_UP;
    channel->socket = socket;
    channel->socket_id = file_id_of(socket);
    channel->may_wait = !sockio_set_wait(socket, LINK_WAIT_MS);
    list_init(&channel->waiting);
    list_init(&channel->unsent[0]);
    list_init(&channel->unsent[1]);
    list_init(&channel->unused);
    pthread_mutex_init(&channel->lock, NULL);
    door_init(&channel->door);
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

struct channel *channel_unref(struct channel *channel)
{
    if (!channel || __atomic_sub_fetch(&channel->refs, 1, __ATOMIC_ACQ_REL))
        return NULL;
    requests_deinit(channel);
    resume_deinit(channel);
    if (channel->release_log)
        (void)munmap(channel->release_log, channel->cache ? SESSION_MEMORY_SIZE : RELEASE_LOG_SIZE);
    file_id_close(channel->socket_id, channel->socket);
    door_deinit(&channel->door);
    pthread_mutex_destroy(&channel->lock);
    arena_deinit(&channel->arena);
    free(channel->packet);
    channel_unref(channel->inherited);
    free(channel);
    return NULL;
}

void channel_break_locked(struct channel *channel, int err, const char *why)
{
    if (channel->broken)
        return;
    __atomic_store_n(&channel->broken, true, __ATOMIC_RELEASE);
    /* this wakes a thread that polls; the descriptor stays until no thread can be polling it */
    if (file_id_is(channel->socket_id, channel->socket))
        shutdown(channel->socket, SHUT_RDWR);
    requests_break(channel, err, why);
}

void channel_break(struct channel *channel, int err, const char *why)
{
    pthread_mutex_lock(&channel->lock);
    channel_break_locked(channel, err, why);
    pthread_mutex_unlock(&channel->lock);
}

void channel_cache_changes(struct channel *channel, uint32_t changes[static HOLD_CACHE_CHANGES])
{
    const struct hold_cache *cache = __atomic_load_n(&channel->cache, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < HOLD_CACHE_CHANGES; i++)
        changes[i] = cache ? __atomic_load_n(&cache->changes[i], __ATOMIC_RELAXED) : 0;
}

uint32_t channel_caller_node(struct channel *channel)
{
    unsigned cpu, node;

    return __atomic_load_n(&channel->has_nodes, __ATOMIC_RELAXED) && !getcpu(&cpu, &node) ? node + 1 : 0;
}

void channel_poll(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    if (!channel->led && !channel->broken && channel->link != LINK_DOWN) {
        requests_flush(channel);
        link_drain(channel);
        link_leave(channel);
    }
    pthread_mutex_unlock(&channel->lock);
}

bool channel_resume(struct channel *channel)
{
    bool up;

    pthread_mutex_lock(&channel->lock);
    if (!channel->led && !channel->broken && channel->resumption && channel->link == LINK_DOWN) {
        channel->led = true;
        resume_if_due(channel);
        channel->led = false;
        link_leave(channel);
    }
    up = channel->link == LINK_UP;
    pthread_mutex_unlock(&channel->lock);
    return up;
}

void channel_post(struct channel *channel, enum method method, const ProtobufCMessage *request)
{
    const struct schema_method *row = schema_method((uint16_t)method);
    uint8_t payload[REQUEST_MAX];
    struct pending *pending;
    size_t n;

    if (envelope_pack(request, payload, sizeof(payload), &n))
        return;
    pthread_mutex_lock(&channel->lock);
    pending = channel->broken ? NULL : request_enter(channel, row, payload, n, NULL);
    if (pending) {
        request_keep(pending);
        requests_flush(channel);
        link_leave(channel);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

static int call_give_up(struct channel *channel, struct call *call)
{
    bool unsent = !call->pending->sequence;

    request_abandon(channel, call->pending);
    if (channel->link != LINK_UP)
        return resume_timed_out(channel);
    return fail_with(ETIMEDOUT,
                     unsent ? "the broker did not take the request in time" : "the broker did not answer in time");
}

/* Another thread leads. */
static void call_follow(struct channel *channel, struct call *call, uint64_t deadline)
{
    uint64_t soon = deadline;

    if (call->state == CALL_DECODING)
        deadline = soon = DEADLINE_NEVER;
    else if (channel->send_blocked && !call->pending->sequence)
        soon = deadline_after_ns(RESEND_NS);
    else
        soon = interrupt_deadline(deadline);
    (void)deadline_cond_wait(&call->pending->wake, &channel->lock, soon < deadline ? soon : deadline);
    if (channel->send_blocked && !channel->broken)
        requests_flush(channel);
}

/*
 * Until when the caller waits at most. A release is not waited for if the next broker finds it in the log, nor for long
 * if the link is down. 0: not any longer.
 */
static uint64_t call_wait_at_most(const struct channel *channel, const struct call *call, uint64_t deadline)
{
    const struct pending *pending = call->pending;
    uint64_t until = deadline_at(channel->since, LINK_LEAVE_NS);

    if (!request_is_release(pending))
        return deadline;
    if (channel->link == LINK_UP)
        return !call->decode && pending->sequence && !pending->lost && channel->n_fire_and_forget < FIRE_AND_FORGET_MAX
                   ? 0
                   : deadline;
    if (!channel->release_log || pending->in_log || deadline_passed(until, clock_now_ns()))
        return 0;
    return until < deadline ? until : deadline;
}

static bool call_waits(const struct call *call)
{
    return call->state == CALL_WAITING || call->state == CALL_DECODING;
}

/* Does the program want the wait to end, before the reply has come? A release is not waited for long. */
static bool call_is_interrupted(struct channel *channel, const struct call *call)
{
    bool wanted;

    if (!interrupt_is_set() || call->state != CALL_WAITING || request_is_release(call->pending))
        return false;
    pthread_mutex_unlock(&channel->lock);
    wanted = interrupt_is_wanted();
    pthread_mutex_lock(&channel->lock);
    return wanted && call->state == CALL_WAITING;
}

/* With the lock. Afterwards the call has ended, or was given up: -ETIMEDOUT or -EINTR, or 0 for a release. */
static int call_await(struct channel *channel, struct call *call, uint64_t deadline)
{
    int r = 0;

    for (bool first = true; call_waits(call); first = false) {
        bool interrupted = !first && call_is_interrupted(channel, call);
        bool waits = call->state == CALL_WAITING;
        uint64_t until = waits ? call_wait_at_most(channel, call, deadline) : deadline;

        if (!call_waits(call))
            break;
        if (interrupted) {
            request_abandon(channel, call->pending);
            r = interrupt_fail();
            break;
        }
        if (!until) {
            request_abandon(channel, call->pending);
            call->state = CALL_ANSWERED;
        } else if (waits && deadline_passed(deadline, clock_now_ns())) {
            /* if the whole process was stopped, the reply may have come in time */
            if (!channel->led && channel->link != LINK_DOWN && !channel->send_blocked)
                link_drain(channel);
            if (call->state != CALL_WAITING)
                continue;
            r = call_give_up(channel, call);
            break;
        } else if (waits && !channel->led) {
            link_lead(channel, until, first && call->pending->sequence);
        } else {
            call_follow(channel, call, until);
        }
    }
    link_leave(channel);
    return r;
}

/*
 * Replies that nobody waits for are received together with others. Those after the last one must not stay in the
 * socket: while anything is in it, the broker counts its descriptors as not received.
 */
static void channel_receive_rest(struct channel *channel)
{
    if (channel->n_fire_and_forget && !channel->led && !channel->broken && channel->link == LINK_UP) {
        link_drain(channel);
        link_leave(channel);
    }
}

/* If the reply to HELLO is there, there is a broker, and a release waits for its turn. */
static void channel_receive_hello(struct channel *channel)
{
    if (channel->link == LINK_HANDSHAKING && !channel->led && !channel->fd_replaced && !channel->broken)
        link_drain(channel);
}

static int channel_make_call(struct channel *channel, struct pending *pending, struct call *call, uint64_t deadline)
{
    int r;

    if (!pending)
        return fail_with(ENOMEM, "no memory for a request");
    requests_flush(channel);
    if (request_is_release(pending))
        channel_receive_hello(channel);
    r = call_await(channel, call, deadline);
    if (!r && call->state == CALL_FAILED)
        r = fail_with(call->err, "%s", call->sentence);
    else if (!r && call->decode)
        channel_receive_rest(channel);
    return r;
}

static int call_result(const struct call *call)
{
    if (call->status)
        return fail_refused(call->status, call->sentence);
    switch (call->err) {
    case 0:
        return 0;
    case -EMFILE:
        return fail_with(EMFILE, "a descriptor of the broker could not be received: this process has as many "
                                 "descriptors as it may have (ulimit -n)");
    case -EPROTO:
        return fail_with(EPROTO, "the broker's reply makes no sense");
    default:
        return fail_with(-call->err, "the broker's reply could not be used");
    }
}

int channel_call(struct channel *channel, const struct channel_request *request, uint64_t deadline)
{
    struct call call = {
        .state = CALL_WAITING,
        .decode = request->decode,
        .result = request->result,
        .raw = request->raw,
    };
    uint8_t payload[REQUEST_MAX];
    size_t n;
    int r;

    r = envelope_pack(request->message, payload, sizeof(payload), &n);
    if (r)
        return fail_with(EMSGSIZE, "the request is longer than any packet may be");
    pthread_mutex_lock(&channel->lock);
    if (channel->broken) {
        r = fail_with(ENOTCONN, "the connection to the broker is lost");
    } else {
        const struct schema_method *row = schema_method((uint16_t)request->method);
        struct pending *pending = request_enter(channel, row, payload, n, &call);

        if (pending) {
            pending->fds = request->fds;
            pending->n_fds = request->n_fds;
        }
        r = channel_make_call(channel, pending, &call, deadline);
    }
    pthread_mutex_unlock(&channel->lock);
    return r ? r : call_result(&call);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

void channel_fork_child(struct channel *channel)
{
    /* the calls that wait are of threads that the child does not have */
    requests_orphan(channel);
    channel->led = false;
    channel->broken = true;
    channel->socket = file_id_close(channel->socket_id, channel->socket);
    door_fork_child(&channel->door);
    /* the parent's, and not mapped here */
    channel->release_log = NULL;
    channel->cache = NULL;
    pthread_mutex_unlock(&channel->lock);
    pthread_mutex_init(&channel->lock, NULL);
}
