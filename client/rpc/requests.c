/* SPDX-License-Identifier: Apache-2.0 */
/* See requests.h. */
#include "rpc/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/release_log.h"
#include "proto/sockio.h"

static bool request_is_recorded(const struct pending *pending)
{
    return pending->row->repeat == REPEAT_RECORDED;
}

bool request_is_release(const struct pending *pending)
{
    return pending->row->id == METHOD_RELEASE || pending->row->id == METHOD_UNRESERVE;
}

static struct pending *pending_new(void)
{
    struct pending *pending = malloc(sizeof(*pending));

    if (pending)
        pthread_cond_init(&pending->wake, NULL);
    return pending;
}

struct pending *request_enter(struct channel *channel, const struct schema_method *row, const void *payload, size_t n,
                              struct call *call)
{
    struct list *link = list_pop(&channel->unused);
    struct pending *pending = link ? container_of(link, struct pending, link) : pending_new();

    if (!pending)
        return NULL;
    memset(pending, 0, offsetof(struct pending, wake));
    pending->row = row;
    pending->call = call;
    pending->payload = payload;
    pending->n = n;
    list_init(&pending->link);
    list_append(&channel->unsent[row->repeat], &pending->link);
    if (call)
        call->pending = pending;
    return pending;
}

void request_keep(struct pending *pending)
{
    pending->copy = pending->n ? malloc(pending->n) : NULL;
    if (pending->copy)
        memcpy(pending->copy, pending->payload, pending->n);
    else
        pending->n = 0;
    pending->payload = pending->copy;
}

void request_drop(struct channel *channel, struct pending *pending)
{
    if (pending->sequence && request_is_recorded(pending))
        channel->n_recorded--;
    if (pending->fire_and_forget)
        channel->n_fire_and_forget--;
    if (pending->in_log && channel->release_log)
        release_log_remove(channel->release_log, pending->in_log);
    free(pending->copy);
    pending->copy = NULL;
    list_remove(&pending->link);
    list_append(&channel->unused, &pending->link);
}

/*
 * A request that was not sent is dropped, unless it is a release. One that was sent and is recorded is sent again after
 * a lost connection, to learn what it granted. A broker that has done it needs nothing but its sequence, so it may be
 * empty and have no descriptors; a broker that has not done it refuses it.
 */
void request_abandon(struct channel *channel, struct pending *pending)
{
    pending->call = NULL;
    pending->fds = NULL;
    pending->n_fds = 0;
    if (request_is_recorded(pending) ? !pending->sequence && !request_is_release(pending)
                                     : !pending->sequence || pending->lost) {
        request_drop(channel, pending);
        return;
    }
    request_keep(pending);
    pending->fire_and_forget = request_is_release(pending);
    channel->n_fire_and_forget += pending->fire_and_forget;
}

static void request_end_call(struct call *call, int err, unsigned status, const char *sentence)
{
    call->state = status ? CALL_ANSWERED : CALL_FAILED;
    call->err = status ? 0 : err;
    call->status = status;
    snprintf(call->sentence, sizeof(call->sentence), "%s", sentence);
    pthread_cond_broadcast(&call->pending->wake);
}

/* Its call fails: with the broker's status, or else with `err` (positive). */
static void request_fail(struct channel *channel, struct pending *pending, int err, unsigned status,
                         const char *sentence)
{
    struct call *call = pending->call;

    /* while the result is made there is a reply */
    if (!call || call->state != CALL_WAITING)
        return;
    request_end_call(call, err, status, sentence);
    request_abandon(channel, pending);
}

struct pending *request_find(struct channel *channel, uint64_t sequence)
{
    list_for_each_entry(pending, &channel->waiting, struct pending, link)
        if (pending->sequence == sequence)
            return pending;
    return NULL;
}

/* ---- acknowledging ----------------------------------------------------------------------------------------------- */

static uint64_t requests_acknowledged(const struct channel *channel)
{
    struct list *first = list_first(&channel->waiting);

    return first ? container_of(first, struct pending, link)->sequence - 1 : channel->sequence;
}

void request_answered(struct channel *channel, struct pending *pending)
{
    bool recorded = request_is_recorded(pending);
    uint64_t sequence = pending->sequence;

    request_drop(channel, pending);
    if (recorded && sequence > requests_acknowledged(channel))
        channel->answered[channel->n_answered++] = sequence;
}

/* What the next request acknowledges anyway need not be acknowledged one by one. */
static void requests_forget_acknowledged(struct channel *channel)
{
    uint64_t done = requests_acknowledged(channel);
    unsigned n = 0;

    for (unsigned i = 0; i < channel->n_answered; i++)
        if (channel->answered[i] > done)
            channel->answered[n++] = channel->answered[i];
    channel->n_answered = n;
}

/* Is there room for one more? It acknowledges one itself, which then does not count any more. */
static bool requests_have_room(struct channel *channel)
{
    requests_forget_acknowledged(channel);
    return channel->n_recorded + channel->n_answered - !!channel->n_answered < MEMORYD_UNACKNOWLEDGED_MAX;
}

static void request_pop_answered(struct channel *channel, struct pending *pending)
{
    pending->answered = channel->answered[0];
    channel->n_answered--;
    memmove(channel->answered, channel->answered + 1, channel->n_answered * sizeof(channel->answered[0]));
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* A request as it travels. */
struct outgoing {
    uint8_t header[MEMORYD_HEADER_LONG];
    struct iovec iov[2];
    bool is_new;
    bool acknowledges_one;
};

static void request_prepare(const struct channel *channel, const struct pending *pending, struct outgoing *out)
{
    uint64_t done = requests_acknowledged(channel);
    uint64_t answered;

    out->is_new = !pending->sequence;
    out->acknowledges_one = out->is_new && request_is_recorded(pending) && channel->n_answered;
    answered = out->acknowledges_one ? channel->answered[0] : pending->answered;
    out->iov[0].iov_base = out->header;
    out->iov[0].iov_len = frame_encode(out->header, FRAME_FROM_CLIENT,
                                       &(struct frame_header){
                                           .method = pending->row->id,
                                           .fd_count = (uint16_t)pending->n_fds,
                                           .payload_length = (uint32_t)pending->n,
                                           .sequence = out->is_new ? channel->sequence + 1 : pending->sequence,
                                           .acknowledged = done,
                                           .answered = answered > done ? answered : 0,
                                       });
    out->iov[1] = (struct iovec){.iov_base = (void *)(uintptr_t)pending->payload, .iov_len = pending->n};
}

/* Before it is sent: if this broker does not read it, the next one does. */
static void request_note_in_log(struct channel *channel, struct pending *pending, const struct outgoing *out)
{
    if (out->is_new && channel->release_log && request_is_release(pending))
        pending->in_log = release_log_put(channel->release_log, out->iov);
}

/* It has a sequence from now on, whether it was sent or only noted in the log. */
static void request_enter_waiting(struct channel *channel, struct pending *pending, const struct outgoing *out)
{
    pending->sequence = ++channel->sequence;
    if (request_is_recorded(pending))
        channel->n_recorded++;
    if (out->acknowledges_one)
        request_pop_answered(channel, pending);
    list_remove(&pending->link);
    list_append(&channel->waiting, &pending->link);
}

/* Without a connection it is only noted in the log. */
static int request_send_or_log(struct channel *channel, struct pending *pending, bool connected)
{
    struct outgoing out;
    int r = SOCKIO_E_GONE;

    request_prepare(channel, pending, &out);
    request_note_in_log(channel, pending, &out);
    if (connected)
        r = sockio_send(channel->socket, out.iov, pending->n ? 2 : 1, pending->fds, pending->n_fds);
    if (r && !(out.is_new && pending->in_log))
        return r;
    if (out.is_new)
        request_enter_waiting(channel, pending, &out);
    pending->lost = r;
    channel->needs_resend |= pending->lost;
    return r;
}

int request_send(struct channel *channel, struct pending *pending)
{
    return request_send_or_log(channel, pending, true);
}

/* The kernel refuses to send it, and will always do. */
static int request_give_up(struct channel *channel, struct pending *pending, int r)
{
    /* the broker has done it, or needs no descriptors to say that it has not; see request_abandon() */
    if (pending->lost && pending->n_fds) {
        pending->n_fds = 0;
        return request_send(channel, pending);
    }
    if (!pending->call)
        request_drop(channel, pending);
    else if (r == -EBADF)
        request_fail(channel, pending, EBADF, 0, "not an open descriptor");
    else
        request_fail(channel, pending, r < 0 ? -r : EMSGSIZE, 0, "the request could not be sent");
    return 0;
}

static int request_try_send(struct channel *channel, struct pending *pending)
{
    int r = request_send(channel, pending);

    if (!r || r == SOCKIO_E_AGAIN || r == SOCKIO_E_TOO_MANY_IN_FLIGHT || r == SOCKIO_E_GONE)
        return r;
    return request_give_up(channel, pending, r);
}

/* Until HELLO is answered the others wait: if it is refused for good, they can go to another session. */
static bool request_may_go(const struct channel *channel, const struct pending *pending)
{
    return channel->link == LINK_UP || request_is_release(pending);
}

static int requests_send_all(struct channel *channel)
{
    int r;

    if (channel->needs_resend)
        list_for_each_entry_safe(pending, &channel->waiting, struct pending, link) {
            r = pending->lost && request_may_go(channel, pending) ? request_try_send(channel, pending) : 0;
            if (r)
                return r;
        }
    channel->needs_resend = channel->needs_resend && channel->link != LINK_UP;
    /* requests that change something go first, so that a later one sees it; without room, it is sent all the same */
    list_for_each_entry_safe(pending, &channel->unsent[REPEAT_RECORDED], struct pending, link) {
        if (!request_may_go(channel, pending))
            continue;
        if (!requests_have_room(channel))
            break;
        r = request_try_send(channel, pending);
        if (r)
            return r;
    }
    list_for_each_entry_safe(pending, &channel->unsent[REPEAT_HARMLESS], struct pending, link) {
        r = request_may_go(channel, pending) ? request_try_send(channel, pending) : 0;
        if (r)
            return r;
    }
    return 0;
}

/* Without a connection: the next broker finds the releases in the log. */
static void requests_log_unsent(struct channel *channel)
{
    list_for_each_entry_safe(pending, &channel->unsent[REPEAT_RECORDED], struct pending, link) {
        if (!request_is_release(pending))
            continue;
        if (!requests_have_room(channel))
            return;
        (void)request_send_or_log(channel, pending, false);
        if (!pending->in_log)
            return;
    }
}

int requests_flush(struct channel *channel)
{
    int r = 0;

    if (!channel->needs_resend && list_is_empty(&channel->unsent[0]) && list_is_empty(&channel->unsent[1]))
        return channel->send_blocked = 0;
    if (channel->link != LINK_DOWN && !file_id_is(channel->socket_id, channel->socket)) {
        /* the program has closed it; the leader will make another connection */
        channel->fd_replaced = true;
        r = SOCKIO_E_GONE;
    } else if (channel->link != LINK_DOWN) {
        r = requests_send_all(channel);
    }
    if (channel->link != LINK_UP)
        requests_log_unsent(channel);
    return channel->send_blocked = r;
}

bool requests_have_release(const struct channel *channel)
{
    list_for_each_entry(pending, &channel->waiting, struct pending, link)
        if (pending->lost && request_is_release(pending))
            return true;
    list_for_each_entry(pending, &channel->unsent[REPEAT_RECORDED], struct pending, link)
        if (request_is_release(pending))
            return true;
    return false;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void requests_lost(struct channel *channel)
{
    list_for_each_entry_safe(pending, &channel->waiting, struct pending, link) {
        if (request_is_recorded(pending) && !channel->minor) {
            request_fail(channel, pending, ECONNRESET, 0,
                         "the connection was lost, and this old broker cannot say whether it has done the request");
            request_drop(channel, pending);
        } else if (!request_is_recorded(pending) && !pending->call) {
            request_drop(channel, pending);
        } else {
            pending->lost = true;
            channel->needs_resend = true;
            if (pending->call && request_is_release(pending))
                pthread_cond_broadcast(&pending->wake);
        }
    }
    list_for_each_entry(pending, &channel->unsent[REPEAT_RECORDED], struct pending, link)
        if (pending->call && request_is_release(pending))
            pthread_cond_broadcast(&pending->wake);
}

static void requests_fail_list(struct channel *channel, struct list *list, int err, unsigned status,
                               const char *sentence, bool forget)
{
    list_for_each_entry_safe(pending, list, struct pending, link) {
        if (!forget) {
            request_fail(channel, pending, err, status, sentence);
        } else if (!pending->call || pending->call->state == CALL_WAITING) {
            if (pending->call)
                request_end_call(pending->call, err, status, sentence);
            request_answered(channel, pending);
        }
    }
}

void requests_fail(struct channel *channel, int err, unsigned status, const char *sentence, bool forget)
{
    requests_fail_list(channel, &channel->waiting, err, status, sentence, forget);
    if (forget)
        return;
    for (unsigned repeat = 0; repeat < 2; repeat++)
        requests_fail_list(channel, &channel->unsent[repeat], err, status, sentence, false);
}

/* The lists stay as they are, since a leader may be at one of the requests. */
static void requests_break_list(struct list *list, int err, const char *why)
{
    list_for_each_entry(pending, list, struct pending, link) {
        bool elsewhere = !pending->sequence || (!request_is_recorded(pending) && err == ECONNRESET);
        struct call *call = pending->call;

        if (call && call->state == CALL_WAITING) {
            pending->call = NULL;
            request_end_call(call, elsewhere ? ENOTCONN : err, 0, why);
        }
    }
}

void requests_break(struct channel *channel, int err, const char *why)
{
    requests_break_list(&channel->waiting, err, why);
    requests_break_list(&channel->unsent[0], err, why);
    requests_break_list(&channel->unsent[1], err, why);
}

static void requests_orphan_list(struct list *list)
{
    list_for_each_entry(pending, list, struct pending, link)
        pending->call = NULL;
}

void requests_orphan(struct channel *channel)
{
    requests_orphan_list(&channel->waiting);
    requests_orphan_list(&channel->unsent[0]);
    requests_orphan_list(&channel->unsent[1]);
}

static struct pending *requests_first_waiting(const struct list *list)
{
    list_for_each_entry(pending, list, struct pending, link)
        if (pending->call && pending->call->state == CALL_WAITING)
            return pending;
    return NULL;
}

bool requests_has_waiting(const struct channel *channel)
{
    return requests_first_waiting(&channel->waiting);
}

static bool requests_wake_first(const struct list *list)
{
    struct pending *pending = requests_first_waiting(list);

    if (pending)
        pthread_cond_broadcast(&pending->wake);
    return pending;
}

bool requests_wake_one(struct channel *channel)
{
    return requests_wake_first(&channel->waiting) || requests_wake_first(&channel->unsent[0]) ||
           requests_wake_first(&channel->unsent[1]);
}

/* Conditions are not destroyed: in the child of a fork they may count sleepers that only the parent has. */
static void requests_free_list(struct list *list)
{
    struct list *link;

    while ((link = list_pop(list))) {
        struct pending *pending = container_of(link, struct pending, link);

        free(pending->copy);
        free(pending);
    }
}

void requests_deinit(struct channel *channel)
{
    requests_free_list(&channel->waiting);
    requests_free_list(&channel->unsent[0]);
    requests_free_list(&channel->unsent[1]);
    requests_free_list(&channel->unused);
}
