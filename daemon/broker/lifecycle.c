/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a buffer ends. All of this is about one buffer at a time, but for the scan after an overflow, which walks the
 * records in slices.
 */
#include "broker/lifecycle.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/probe.h"
#include "broker/caches.h"
#include "broker/claims.h"
#include "broker/closing.h"
#include "broker/export.h"
#include "broker/lookup.h"
#include "broker/sessions.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "mem/handle.h"
#include "proto/status.h"

/* ---- teardown ---------------------------------------------------------------------------------------------------- */

/* Tokens dropped in one turn. Many buffers may lose theirs at once, each in turns of its own. */
#define TOKENS_SLICE 8
/* Tokens dropped in one turn when an import waits for that. */
#define TOKENS_REVIVE 1024

/* The pauses between probes are 1, 2, 4 ... ms, and the last is this. After it somebody really has the buffer. */
#define PROBE_LAST_MS 1024

/* What is still to be done about an unreferenced buffer before T is closed: its tokens go, a slice at a turn; and then,
 * while it is DETACHED, it is probed. */
struct teardown {
    struct timer timer;
    struct broker *broker;
    struct buffer *buffer;
    uint64_t wait_ms; /* while it is DETACHED */
};

static void teardown_turn(struct timer *timer);

/* NULL without memory. */
static struct teardown *teardown_begin(struct broker *broker, struct buffer *buffer)
{
    struct teardown *teardown;

    if (buffer->exit_phase == BUFFER_EXIT_TEARDOWN)
        return buffer->exit.teardown;
    teardown = malloc(sizeof(*teardown));
    if (!teardown)
        return NULL;
    *teardown = (struct teardown){.timer = TIMER_INIT(teardown_turn), .broker = broker, .buffer = buffer};
    buffer->exit_phase = BUFFER_EXIT_TEARDOWN;
    buffer->exit.teardown = teardown;
    return teardown;
}

static void teardown_end(struct broker *broker, struct buffer *buffer)
{
    if (buffer->exit_phase != BUFFER_EXIT_TEARDOWN)
        return;
    timer_disarm(&broker->timers, &buffer->exit.teardown->timer);
    free(buffer->exit.teardown);
    buffer->exit_phase = BUFFER_EXIT_NONE;
}

/* Drops n tokens at most. True if none are left. */
static bool drop_tokens(struct broker *broker, struct buffer *buffer, unsigned n)
{
    for (; n && buffer->n_tokens; n--)
        drop_token(broker, container_of(list_first(&buffer->tokens), struct token, in_buffer), 0);
    return !buffer->n_tokens;
}

void lifecycle_abandon(struct broker *broker, struct buffer *buffer)
{
    if (buffer->record->state != BUFFER_DETACHED && !buffer->n_tokens)
        return;
    (void)drop_tokens(broker, buffer, UINT32_MAX);
    teardown_end(broker, buffer);
}

/*
 * `proven`: nobody else has it. Else the kernel does not say whether anybody has, as of pages of hugetlbfs from Linux
 * 7.0 on: T is closed and no page touched; the watch tells when the last has let go, and until then it stays charged.
 */
static void lifecycle_end(struct broker *broker, struct buffer *buffer, bool proven)
{
    if (!buffer->n_tokens)
        teardown_end(broker, buffer);
    if (proven) {
        buffer_set_state(&broker->buffers, buffer, BUFFER_ENDING);
        /* the memory is certain to come back: requests that find no room may wait for it (reclaim.h) */
        buffer_set_reclaiming(&broker->buffers, buffer, true);
    } else {
        buffer_set_unproven(&broker->buffers, buffer);
    }
    closing_request(broker, buffer);
}

void lifecycle_pin(struct buffer *buffer)
{
    buffer->pins++;
}

void lifecycle_unpin(struct broker *broker, struct buffer *buffer)
{
    assert(buffer->pins > 0);
    buffer->pins--;
    closing_request(broker, buffer);
}

static void lifecycle_probe(struct broker *broker, struct buffer *buffer);

static void lifecycle_probe_again(struct teardown *teardown)
{
    struct broker *broker = teardown->broker;
    struct buffer *buffer = teardown->buffer;

    teardown->wait_ms *= 2;
    if (teardown->wait_ms > PROBE_LAST_MS)
        teardown_end(broker, buffer);
    else
        timer_arm(&broker->timers, &teardown->timer, deadline_after_ms(teardown->wait_ms));
    lifecycle_probe(broker, buffer);
}

static void teardown_turn(struct timer *timer)
{
    struct teardown *teardown = container_of(timer, struct teardown, timer);
    struct broker *broker = teardown->broker;
    struct buffer *buffer = teardown->buffer;

    if (!drop_tokens(broker, buffer, TOKENS_SLICE)) {
        timer_arm(&broker->timers, timer, 0);
    } else if (buffer->record->state == BUFFER_DETACHED) {
        lifecycle_probe_again(teardown);
    } else {
        teardown_end(broker, buffer);
        closing_request(broker, buffer);
    }
}

/*
 * The kernel reports a close a moment before it is done. A process that is interrupted in between still counts when the
 * kernel is asked at once, and there is no second event. So it is asked again for a while.
 */
static void lifecycle_probe_for_a_while(struct broker *broker, struct buffer *buffer)
{
    struct teardown *teardown = teardown_begin(broker, buffer);

    if (!teardown)
        return; /* without memory it stays DETACHED, and charged, until the next event */
    teardown->wait_ms = 1;
    timer_arm(&broker->timers, &teardown->timer, deadline_after_ms(teardown->wait_ms));
}

/* It is unreferenced, and a descriptor has left: does anybody still have it? */
static void lifecycle_probe(struct broker *broker, struct buffer *buffer)
{
    bool sole = caches_alone_have(buffer);
    int r = sole ? 0 : handle_sole(buffer->fd, &sole, NULL);

    if (r || sole)
        lifecycle_end(broker, buffer, sole);
    else if (buffer->record->state != BUFFER_DETACHED) {
        buffer_set_state(&broker->buffers, buffer, BUFFER_DETACHED);
        /* the event may have come while it was LIVE */
        lifecycle_probe_for_a_while(broker, buffer);
    }
}

static void lifecycle_unreferenced(struct broker *broker, struct buffer *buffer)
{
    struct teardown *teardown;

    event_buffer(broker, EVENT_DESTROYED, buffer, 0);
    PROBE(buffer_free, buffer->record->head.id, buffer->record->bytes, buffer->record->charged_uid);
    if (!drop_tokens(broker, buffer, TOKENS_SLICE)) {
        teardown = teardown_begin(broker, buffer);
        if (teardown)
            timer_arm(&broker->timers, &teardown->timer, 0);
        else
            (void)drop_tokens(broker, buffer, UINT32_MAX);
    }
    if (!(buffer->record->flags & BUFFER_EXPORTED)) {
        lifecycle_end(broker, buffer, true);
        return;
    }
    /* there may have been no room for its watch when this broker took over */
    if (buffer->record->watch < 0)
        (void)buffer_watch(broker, buffer, NULL);
    lifecycle_probe(broker, buffer);
}

/* ---- who pays ---------------------------------------------------------------------------------------------------- */

static bool has_claim(const struct broker *broker, const struct buffer *buffer, uid_t uid)
{
    const struct token *token = tokens_keeping(&broker->tokens, buffer, uid);

    if (token && token->record->maker_uid == uid)
        return true;
    if (buffer_next_hold_of(buffer, uid, NULL))
        return true;
    list_for_each_entry(name, &buffer->names, struct name, in_buffer) {
        if (name->record->uid == uid)
            return true;
    }
    return false;
}

/* The user whose name or keeping token keeps a buffer that nobody holds. */
static uid_t keeper_of(const struct broker *broker, const struct buffer *buffer)
{
    const struct token *token = tokens_keeping(&broker->tokens, buffer, 0);

    if (!list_is_empty(&buffer->names))
        return container_of(list_first(&buffer->names), struct name, in_buffer)->record->uid;
    return token ? token->record->maker_uid : buffer->record->charged_uid;
}

static void settle_charge(struct broker *broker, struct buffer *buffer)
{
    struct hold *hold = buffer_oldest_hold(buffer);
    struct account *account = NULL;
    uint64_t session = 0;

    if (hold && hold->session->record->uid == buffer->record->charged_uid)
        return;
    if (has_claim(broker, buffer, buffer->record->charged_uid))
        return;
    if (hold) {
        account = account_ref(hold->session->account);
        session = hold->record->session;
    } else if (account_of_user(&broker->accounts, keeper_of(broker, buffer), &account, NULL)) {
        return; /* no memory for the account: the charge stays where it is, and the sum exact */
    }
    buffer_charge_to(&broker->buffers, buffer, account, session);
    account_unref(account);
}

/* ---- the events of a life ---------------------------------------------------------------------------------------- */

static void lifecycle_keep_or_end(struct broker *broker, struct buffer *buffer)
{
    if (buffer_is_kept(buffer))
        settle_charge(broker, buffer);
    else
        lifecycle_unreferenced(broker, buffer);
}

void lifecycle_claim_gone(struct broker *broker, struct buffer *buffer)
{
    if (buffer->record->state != BUFFER_LIVE)
        return;
    caches_let_go(broker, buffer);
    lifecycle_keep_or_end(broker, buffer);
}

void lifecycle_destroy(struct broker *broker, struct buffer *buffer)
{
    uint64_t id = buffer->record->head.id;
    struct hold *hold;

    event_buffer(broker, EVENT_DESTROYED, buffer, 0);
    while (!list_is_empty(&buffer->names))
        drop_name(broker, container_of(list_first(&buffer->names), struct name, in_buffer), true);
    while ((hold = buffer_oldest_hold(buffer))) {
        if (!client_of(hold->session)->ended && caches_destroyed(broker, hold))
            continue;
        event_hold(broker, EVENT_LEFT, hold);
        caches_hold_ends(broker, hold);
        hold_free(hold);
    }
    if (buffer->record->state == BUFFER_LIVE)
        lifecycle_unreferenced(broker, buffer);
    sessions_stop_lingering(broker, id);
}

int lifecycle_may_revive(struct broker *broker, struct buffer *buffer, struct problem *problem)
{
    if (buffer->record->state != BUFFER_DETACHED || drop_tokens(broker, buffer, TOKENS_REVIVE))
        return 0;
    return refuse(problem, STATUS_BUSY,
                  "buffer %llu ended a moment ago, and it takes a while until all of its tokens are gone; try again",
                  (unsigned long long)buffer->record->head.id);
}

void lifecycle_revived(struct broker *broker, struct buffer *buffer)
{
    if (buffer->record->state == BUFFER_DETACHED) {
        assert(!buffer->n_tokens);
        teardown_end(broker, buffer);
        buffer_set_state(&broker->buffers, buffer, BUFFER_LIVE);
    }
    settle_charge(broker, buffer);
}

void lifecycle_abort(struct broker *broker, struct buffer *buffer)
{
    if (buffer->fd >= 0)
        lifecycle_end(broker, buffer, true);
    else
        closing_ended(broker, buffer);
}

/* It was on its way to be closed. An older broker did not note it if the kernel had not said who else has it. */
static void lifecycle_doubt(struct broker *broker, struct buffer *buffer)
{
    bool sole;

    if (buffer->fd >= 0 && buffer->record->watch >= 0 && !buffer_is_unproven(buffer) && !caches_alone_have(buffer) &&
        handle_sole(buffer->fd, &sole, NULL))
        buffer_set_unproven(&broker->buffers, buffer);
}

void lifecycle_restore(struct broker *broker, struct buffer *buffer)
{
    if (buffer->record->state == BUFFER_LIVE) {
        lifecycle_keep_or_end(broker, buffer);
        return;
    }
    if (buffer->record->state != BUFFER_ENDING)
        return;
    if (buffer->fd < 0 && buffer->record->watch < 0) {
        closing_ended(broker, buffer);
        return;
    }
    lifecycle_doubt(broker, buffer);
    /* what is left of one that caches have mapped comes back when they let go */
    if (!buffer_is_unproven(buffer) && (buffer->fd >= 0 || !(buffer->record->flags & BUFFER_WAS_CACHED)))
        buffer_set_reclaiming(&broker->buffers, buffer, true);
    closing_request(broker, buffer);
}

/* ---- what the watch says ----------------------------------------------------------------------------------------- */

static void lifecycle_inode_gone(struct broker *broker, struct buffer *buffer)
{
    buffer_set_watch(&broker->buffers, buffer, -1);
    if (closing_awaits_inode(buffer))
        closing_ended(broker, buffer);
}

static void lifecycle_overflow(struct broker *broker);

void lifecycle_watch_event(void *userdata, int wd, enum watch_event event)
{
    struct broker *broker = userdata;
    struct buffer *buffer;

    if (event == WATCH_OVERFLOW) {
        lifecycle_overflow(broker);
        return;
    }
    buffer = buffers_by_watch(&broker->buffers, wd);
    if (!buffer)
        return;
    if (event == WATCH_GONE)
        lifecycle_inode_gone(broker, buffer);
    else if (buffer->record->state == BUFFER_DETACHED) {
        lifecycle_probe_for_a_while(broker, buffer);
        lifecycle_probe(broker, buffer);
    } else if (buffer->record->state == BUFFER_LIVE)
        sessions_stop_lingering(broker, buffer->record->head.id);
}

/* ---- events were lost -------------------------------------------------------------------------------------------- */

/* The scan begins so late since clients come first. */
#define LOOK_LATER_MS 100

void lifecycle_rescan(struct broker *broker)
{
    broker->overflow_again = true;
    timer_arm(&broker->timers, &broker->overflow_turn, deadline_after_ms(LOOK_LATER_MS));
}

static void live_watches_listed(struct job *job)
{
    struct broker *broker = container_of(job->jobs, struct broker, jobs);

    broker->overflow_cursor = 0;
    timer_arm(&broker->timers, &broker->overflow_turn, 0);
}

/*
 * First a worker reads the kernel's list of watches; then all buffers that end are looked at. Those that are DETACHED
 * are probed. Those that are ENDING, and have a watch that was set before the list was read and is not in it, are gone.
 */
static void lifecycle_overflow(struct broker *broker)
{
    struct live_watches_job *job;

    sessions_stop_lingering(broker, 0);
    if (broker->live_watches) {
        broker->overflow_again = true;
        return;
    }
    job = calloc(1, sizeof(*job));
    if (!job) {
        /* as if it had happened a little later */
        lifecycle_rescan(broker);
        return;
    }
    job->watch = broker->watch.fd;
    job->job.done = live_watches_listed;
    broker->live_watches = job;
    broker->overflow_again = false;
    broker->overflow_newest = broker->newest_watch;
    live_watches_job_submit(&broker->jobs, job);
}

/* After another broker the watch of each record is checked once: the same inode gives the same number. */
static void lifecycle_prove_watch(struct broker *broker, struct buffer *buffer)
{
    int wd;

    if (broker->watches_proven || buffer->fd < 0 || !(buffer->record->flags & BUFFER_EXPORTED))
        return;
    if (watch_add(&broker->watch, buffer->fd, &wd, NULL) || wd == buffer->record->watch)
        return;
    buffer_set_watch(&broker->buffers, buffer, wd);
    if (wd > broker->newest_watch)
        broker->newest_watch = wd;
}

static void lifecycle_rescan_one(struct broker *broker, struct buffer *buffer)
{
    const struct live_watches_job *list = broker->live_watches;
    int wd;

    lifecycle_prove_watch(broker, buffer);
    wd = buffer->record->watch;
    if (buffer->record->state == BUFFER_DETACHED)
        lifecycle_probe(broker, buffer);
    else if (closing_awaits_inode(buffer) && wd >= 0 && !list->status && wd <= broker->overflow_newest &&
             !live_watches_has(list, wd))
        lifecycle_inode_gone(broker, buffer);
}

void lifecycle_overflow_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, overflow_turn);
    unsigned budget = SLICE;
    struct buffer *buffer;

    if (broker->live_watches) {
        while ((buffer = table_next(&broker->buffers.table, &broker->overflow_cursor, &budget)))
            lifecycle_rescan_one(broker, buffer);
        if (broker->overflow_cursor) {
            timer_arm(&broker->timers, timer, 0);
            return;
        }
        broker->watches_proven = true;
        broker->overflow_again = broker->overflow_again || broker->live_watches->status;
        free(broker->live_watches->wds);
        free(broker->live_watches);
        broker->live_watches = NULL;
    }
    if (broker->overflow_again)
        lifecycle_overflow(broker);
}
