/* SPDX-License-Identifier: Apache-2.0 */
/* See caches.h. */
#include "broker/caches.h"

#include <stdlib.h>

#include "base/clock.h"
#include "broker/claims.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "session/cache.h"

/* sessions looked at in one turn, */
#define PASS_SLICE 64
/* and slots taken from: a small buffer is emptied at once */
#define TAKE_SLICE 8
/* between looks at whether anybody still waits */
#define LOOK_MS 100

struct caches_done {
    uint64_t session;
    unsigned slot;
};

static void caches_turn(struct timer *timer);

void caches_init(struct caches *caches)
{
    *caches = (struct caches){.turn = TIMER_INIT(caches_turn)};
}

void caches_deinit(struct broker *broker)
{
    timer_disarm(&broker->timers, &broker->caches.turn);
    free(broker->caches.done);
    broker->caches.done = NULL;
}

/* ---- one hold ---------------------------------------------------------------------------------------------------- */

/* Each slot is taken once. Without memory to remember it, the slot stays the broker's, and the client has one less. */
static void caches_remember_done(struct caches *caches, struct client *client, unsigned slot)
{
    client->taken |= UINT64_C(1) << slot;
    if (caches->n_done == caches->done_max) {
        size_t max = caches->done_max ? 2 * caches->done_max : HOLD_CACHE_SLOTS;
        struct caches_done *more = reallocarray(caches->done, max, sizeof(*more));

        if (!more)
            return;
        caches->done = more;
        caches->done_max = max;
    }
    caches->done[caches->n_done++] = (struct caches_done){client->id, slot};
}

void caches_committed(struct broker *broker)
{
    struct caches *caches = &broker->caches;

    while (caches->n_done) {
        const struct caches_done *done = &caches->done[--caches->n_done];
        struct session *session = find_session(broker, done->session);

        if (!session)
            continue;
        client_of(session)->taken &= ~(UINT64_C(1) << done->slot);
        session_cache_done(session, done->slot);
    }
}

/* The names that go with it are those that the client would have unbound: its own, which end with its session. */
static void drop_names(struct broker *broker, const struct session *session, struct buffer *buffer)
{
    list_for_each_entry_safe(name, &buffer->names, struct name, in_buffer) {
        if (name->record->session == session->record->head.id && name->record->policy == NAME_FREE)
            drop_name(broker, name, true);
    }
}

/* The client put another buffer into the slot just before the broker took it: the next pass ends that one. */
static void caches_look_later(struct broker *broker)
{
    struct caches *caches = &broker->caches;

    caches->left_over = true;
    if (!caches->running && !timer_is_armed(&caches->turn))
        timer_arm(&broker->timers, &caches->turn, deadline_after_ms(LOOK_MS));
}

/*
 * Ends what the client has cached in this slot, if it is the buffer that is `wanted` (0: any). Returns that; NULL if
 * the slot is empty, or if the client has it again.
 */
static struct buffer *cache_take(struct broker *broker, struct session *session, unsigned slot, uint64_t wanted)
{
    struct hold_cache_slot cached;
    struct buffer *buffer;
    struct hold *hold;

    if (client_of(session)->taken >> slot & 1 || !session_take_cached(session, slot, &cached))
        return NULL;
    if (wanted && cached.buffer != wanted) {
        caches_look_later(broker);
        return NULL;
    }
    caches_remember_done(&broker->caches, client_of(session), slot);
    hold = session_hold(session, cached.buffer);
    if (!hold || !record_is_live(&hold->record->head))
        return NULL;
    buffer = hold->buffer;
    buffer_add_flags(&broker->buffers, buffer, BUFFER_WAS_CACHED);
    drop_names(broker, session, buffer);
    if (cached.claims >= hold->record->refs) {
        event_hold(broker, EVENT_LEFT, hold);
        hold_free(hold);
    } else {
        record_change(&broker->sessions.holds, hold)->refs -= cached.claims;
    }
    return buffer;
}

bool caches_have(const struct hold *hold)
{
    return session_find_cached(hold->session, hold->record->buffer) >= 0;
}

/* Takes it if it is cached. If it is not, tells the client not to cache it from now on. */
static bool cache_take_hold(struct broker *broker, struct hold *hold)
{
    struct session *session = hold->session;
    uint64_t id = hold->record->buffer;
    int slot = session_find_cached(session, id);

    if (slot < 0) {
        session_tell_change(session, id);
        slot = session_find_cached(session, id);
    }
    if (slot >= 0 && cache_take(broker, session, (unsigned)slot, id))
        return true;
    if (slot >= 0)
        session_tell_change(session, id);
    return false;
}

/* Stops at the oldest hold that is not cached: when that ends, this is called again. */
void caches_let_go(struct broker *broker, struct buffer *buffer)
{
    struct hold *hold;

    while (!buffer->n_names && !buffer->n_keeping && (hold = buffer_oldest_hold(buffer)) &&
           !client_of(hold->session)->ended && cache_take_hold(broker, hold))
        ;
}

bool caches_opened(struct broker *broker, const struct session *session, struct buffer *buffer)
{
    struct hold *hold = buffer_oldest_hold(buffer);

    if (!hold || hold->session == session || client_of(hold->session)->ended || !cache_take_hold(broker, hold))
        return false;
    lifecycle_claim_gone(broker, buffer);
    return true;
}

/* A process that does not cache it may be using it: then the broker must not empty it. */
bool caches_destroyed(struct broker *broker, struct hold *hold)
{
    if (cache_take_hold(broker, hold))
        return true;
    buffer_remove_flags(&broker->buffers, hold->buffer, BUFFER_IN_HAND);
    return false;
}

void caches_hold_ends(struct broker *broker, const struct hold *hold)
{
    struct buffer *buffer = hold->buffer;
    const uint32_t flags = BUFFER_IN_HAND | BUFFER_EXPORTED;

    if ((buffer->record->flags & flags) != flags)
        return;
    if (buffer->n_holds == 1 && !buffer->n_names && !buffer->n_keeping && !(buffer->record->flags & BUFFER_WAS_CACHED))
        return;
    if (session_has_let_out(hold->session))
        buffer_remove_flags(&broker->buffers, buffer, BUFFER_IN_HAND);
}

bool caches_alone_have(const struct buffer *buffer)
{
    const uint32_t flags = BUFFER_IN_HAND | BUFFER_WAS_CACHED;

    /* what could be sealed might not be emptied, and would be on its way back forever */
    return (buffer->record->flags & (flags | BUFFER_PUBLISHABLE)) == flags && !buffer->record->plan;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* From a slot on, as many as are left for this turn; returns the slot where it is to go on, which is behind the last
 * one in the end. */
static unsigned cache_visit(struct broker *broker, struct session *session, unsigned slot, unsigned *left)
{
    const struct caches *caches = &broker->caches;
    bool taking = caches->taking && (caches->uid == CACHES_ALL || caches->uid == session->record->uid);
    struct hold_cache_slot slots[HOLD_CACHE_SLOTS];

    if (client_of(session)->ended || session->release_log < 0)
        return HOLD_CACHE_SLOTS;
    (void)session_tell_wanted(session, taking);
    if (!session_read_cache(session, slots))
        return HOLD_CACHE_SLOTS;
    for (; slot < HOLD_CACHE_SLOTS; slot++) {
        struct buffer *buffer;

        if (!hold_cache_is_open(&slots[slot]) || (!taking && !(slots[slot].state & HOLD_TAKEN)))
            continue;
        if (!*left)
            return slot;
        --*left;
        buffer = cache_take(broker, session, slot, 0);
        if (buffer)
            lifecycle_claim_gone(broker, buffer);
    }
    return HOLD_CACHE_SLOTS;
}

static void caches_begin_pass(struct caches *caches, bool taking, uid_t uid)
{
    caches->pass++;
    caches->cursor = 0;
    caches->session = 0;
    caches->left_over = false;
    caches->running = true;
    caches->taking = taking;
    caches->uid = uid;
}

static void caches_end_pass(struct broker *broker)
{
    struct caches *caches = &broker->caches;

    caches->running = false;
    caches->completed = caches->pass;
    waiters_wake(&broker->waiters);
    if (caches->again) {
        caches->again = false;
        caches_begin_pass(caches, true, caches->next_uid);
        timer_arm(&broker->timers, &caches->turn, 0);
    } else if (caches->taking || caches->left_over) {
        timer_arm(&broker->timers, &caches->turn, deadline_after_ms(LOOK_MS));
    }
}

static void caches_run_pass(struct broker *broker)
{
    struct caches *caches = &broker->caches;
    unsigned budget = PASS_SLICE, left = TAKE_SLICE;
    struct session *session = sessions_find(&broker->sessions, caches->session);

    if (!session)
        caches->slot = 0;
    while (session || (session = table_next(&broker->sessions.table, &caches->cursor, &budget))) {
        caches->slot = cache_visit(broker, session, caches->slot, &left);
        caches->session = caches->slot < HOLD_CACHE_SLOTS ? session->record->head.id : 0;
        if (caches->session)
            break;
        caches->slot = 0;
        session = NULL;
    }
    if (caches->cursor || caches->session)
        timer_arm(&broker->timers, &caches->turn, 0);
    else
        caches_end_pass(broker);
}

/* A client may have cached something since the last pass: that of a new session, say. */
static void caches_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, caches.turn);
    struct caches *caches = &broker->caches;

    if (!caches->running)
        caches_begin_pass(caches, broker->waiters.waiting, CACHES_ALL);
    caches_run_pass(broker);
}

bool caches_are_taken(const struct broker *broker, uint64_t ticket)
{
    return broker->caches.completed >= ticket;
}

bool caches_wanted(struct broker *broker, uint64_t *ticket, uid_t uid)
{
    struct caches *caches = &broker->caches;

    if (*ticket)
        return !caches_are_taken(broker, *ticket);
    if (caches->running) {
        *ticket = caches->pass + 1;
        caches->next_uid = caches->again && caches->next_uid != uid ? CACHES_ALL : uid;
        caches->again = true;
    } else {
        caches_begin_pass(caches, true, uid);
        *ticket = caches->pass;
        caches_run_pass(broker);
    }
    return !caches_are_taken(broker, *ticket);
}

/* A client waits for what was taken, and may say of all that it was: others are served meanwhile. */
void caches_restore(struct broker *broker)
{
    if (!table_count(&broker->sessions.table))
        return;
    caches_begin_pass(&broker->caches, false, CACHES_ALL);
    timer_arm(&broker->timers, &broker->caches.turn, 0);
}
