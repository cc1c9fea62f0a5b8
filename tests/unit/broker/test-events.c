/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is told what of buffers: nothing before it is committed, no more than INFO says, in a queue of its own, and
 * charged.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/state.h"
#include "broker/subscriptions.h"
#include "broker/watchers.h"
#include "history/history.h"
#include "proto/status.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/pace.h"

#define SIZE     4096
#define UID_ONE  7001
#define UID_TWO  7002
#define OF_HOLDS (EVENT_HELD | EVENT_LEFT | EVENT_DIED)

/* Those that came to this connection, and the last of them. */
static unsigned told(uintptr_t connection, uint32_t kind, struct broker_event *last)
{
    unsigned n = 0;

    for (unsigned i = 0; i < host.n_events; i++) {
        if (host.events[i].connection != (void *)connection || !(host.events[i].event.kind & kind))
            continue;
        n++;
        if (last)
            *last = host.events[i].event;
    }
    return n;
}

static uint64_t session_of(uintptr_t connection, uid_t uid)
{
    return host_session_of(connection, getpid(), uid);
}

/* That session opens it by a token. */
static void let_in(uint64_t owner, uint64_t buffer, uint64_t session)
{
    const struct share_args terms = {.rights = RIGHT_READ | RIGHT_SHARE, .expiry_ms = 0};
    uint8_t token[32];

    assert_int_equal(host_share(owner, buffer, &terms, token), 0);
    assert_int_equal(host_open(session, token, RIGHT_READ, NULL), 0);
}

static void holders_come_and_leave(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), twin = session_of(2, UID_ONE), other = session_of(3, UID_TWO), buffer;
    struct broker_event event;

    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(owner, op_subscribe_to, OF_HOLDS | EVENT_DESTROYED, buffer, ""), 0);
    host_settle();
    host.n_events = 0;
    let_in(owner, buffer, twin);
    /* not before the next turn, when it is committed */
    assert_int_equal(host.n_events, 0);
    host_settle();
    assert_int_equal(told(1, UINT32_MAX, &event), 1);
    assert_int_equal(event.kind, EVENT_HELD);
    assert_int_equal(event.buffer, buffer);
    assert_int_equal(event.session, twin);
    assert_int_equal(event.uid, UID_ONE);
    assert_int_equal(event.pid, getpid());

    /* the owner may know the sessions of others, as in INFO, but not whose they are */
    let_in(owner, buffer, other);
    host_settle();
    assert_int_equal(told(1, EVENT_HELD, &event), 2);
    assert_int_equal(event.session, other);
    assert_int_equal(event.uid, UINT32_MAX);
    assert_int_equal(event.pid, 0);

    assert_int_equal(host_release(twin, buffer), 0);
    host_settle();
    assert_int_equal(told(1, EVENT_LEFT, &event), 1);
    assert_int_equal(event.session, twin);

    assert_int_equal(CALL(owner, op_destroy, buffer, false), 0);
    host_settle();
    assert_int_equal(told(1, EVENT_DESTROYED, &event), 1);
    assert_int_equal(event.buffer, buffer);
    assert_int_equal(CALL(owner, op_subscribe_to, EVENT_HELD, buffer, ""), STATUS_STALE);
}

static void all_who_may_see_it_learn_that_it_is_discarded(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), twin = session_of(2, UID_ONE), other = session_of(3, UID_TWO);
    uint64_t given = session_of(4, UID_TWO), one = session_of(5, UID_ONE), buffer, another;
    struct broker_event event;

    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(owner, SIZE, 0, &another), 0);
    let_in(owner, buffer, given);
    assert_int_equal(CALL(owner, op_subscribe, EVENT_DISCARDED), 0);
    assert_int_equal(CALL(twin, op_subscribe, EVENT_DISCARDED), 0);
    assert_int_equal(CALL(other, op_subscribe, EVENT_DISCARDED), 0);
    assert_int_equal(CALL(given, op_subscribe, EVENT_DISCARDED), 0);
    assert_int_equal(CALL(one, op_subscribe_to, EVENT_DISCARDED, buffer, ""), 0);
    assert_int_equal(CALL(owner, op_discard, another, 0, 0), 0);
    assert_int_equal(CALL(owner, op_discard, buffer, 0, 0), 0);
    host_settle();
    assert_int_equal(told(1, EVENT_DISCARDED, NULL), 0); /* it did that itself */
    assert_int_equal(told(2, EVENT_DISCARDED, &event), 2);
    assert_int_equal(event.buffer, buffer);
    assert_int_equal(told(3, EVENT_DISCARDED, NULL), 0);
    assert_int_equal(told(4, EVENT_DISCARDED, &event), 1);
    assert_int_equal(event.buffer, buffer);
    assert_int_equal(told(5, EVENT_DISCARDED, &event), 1);
    assert_int_equal(event.buffer, buffer);
}

static void who_was_only_given_it_is_not_told_whose_it_is(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), given = session_of(2, UID_TWO), third = session_of(3, 7003), buffer;
    struct broker_event event;

    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(given, op_subscribe_to, EVENT_HELD, buffer, ""), STATUS_NO_RIGHT);
    assert_int_equal(CALL(given, op_subscribe_to, EVENT_HELD, buffer + 1000, ""), STATUS_NO_SUCH_ID);
    assert_int_equal(CALL(given, op_subscribe, OF_HOLDS | EVENT_DESTROYED | EVENT_HISTORY), 0);
    assert_int_equal(CALL(third, op_subscribe, OF_HOLDS | EVENT_DESTROYED | EVENT_DEATH), 0);
    let_in(owner, buffer, session_of(4, UID_ONE));
    host_settle();
    assert_int_equal(host.n_events, 0);

    let_in(owner, buffer, given);
    let_in(owner, buffer, session_of(5, UID_ONE));
    host_settle();
    assert_int_equal(told(2, UINT32_MAX, &event), 1);
    assert_int_equal(event.kind, EVENT_HELD);
    assert_int_equal(event.session, 0);
    assert_int_equal(event.uid, UINT32_MAX);
    assert_int_equal(event.pid, 0);

    /* once it has given it up, that is no business of its own any more */
    assert_int_equal(host_release(given, buffer), 0);
    host.n_events = 0;
    let_in(owner, buffer, session_of(6, UID_ONE));
    assert_int_equal(CALL(owner, op_destroy, buffer, false), 0);
    host_settle();
    assert_int_equal(host.n_events, 0);
}

static void an_administrator_is_told_of_everybody(void **state)
{
    uint64_t admin = session_of(1, 0), owner = session_of(2, UID_ONE), buffer;
    struct broker_event event;

    assert_int_equal(CALL(admin, op_subscribe, OF_HOLDS), 0);
    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    host_settle();
    assert_int_equal(told(1, EVENT_HELD, &event), 1);
    assert_int_equal(event.uid, UID_ONE);
    assert_int_equal(event.session, owner);
}

/* Somebody makes more than fits into a queue: others miss nothing for that. */
static void I7_a_flood_is_lost_by_those_only_who_may_see_it(void **state)
{
    uint64_t busy = session_of(1, UID_ONE), watcher = session_of(2, UID_ONE), quiet = session_of(3, UID_TWO);
    uint64_t of_quiet = session_of(4, UID_TWO), buffer;

    assert_int_equal(CALL(watcher, op_subscribe, EVENT_HELD), 0);
    assert_int_equal(CALL(of_quiet, op_subscribe, EVENT_HELD), 0);
    assert_int_equal(host_alloc(quiet, SIZE, 0, &buffer), 0);
    host_settle();
    host.n_events = 0;
    for (unsigned i = 0; i <= RING_MAX; i++)
        assert_int_equal(host_alloc(busy, SIZE, BUFFER_NO_ADDRESS, &buffer), 0);
    host_settle();
    assert_int_equal(told(2, EVENT_LOST, NULL), 1);
    assert_int_equal(told(4, UINT32_MAX, NULL), 0);
    /* and it goes on */
    host.n_events = 0;
    assert_int_equal(host_alloc(busy, SIZE, 0, &buffer), 0);
    host_settle();
    assert_int_equal(told(2, EVENT_HELD, NULL), 1);
    assert_int_equal(told(2, EVENT_LOST, NULL), 0);
}

/* However many sessions of another user watch what is theirs: an event costs a look at that user. */
static void I7_an_event_is_compared_with_those_only_whom_it_concerns(void **state)
{
    uint64_t one = session_of(300, UID_ONE), two = session_of(301, UID_TWO), watcher = session_of(302, UID_TWO), own,
             buffer, before;

    assert_int_equal(host_alloc(one, SIZE, 0, &own), 0);
    for (unsigned i = 0; i < SUBSCRIPTIONS_USER_MAX; i++) {
        uint64_t session = session_of(1 + i, UID_ONE);

        assert_int_equal(CALL(session, op_subscribe, i % 2 ? OF_HOLDS | EVENT_DESTROYED : 0), 0);
        assert_int_equal(CALL(session, op_subscribe_to, OF_HOLDS | EVENT_DESTROYED, own, ""), 0);
    }
    assert_int_equal(host_alloc(two, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(watcher, op_subscribe_to, OF_HOLDS | EVENT_DESTROYED, buffer, ""), 0);
    host_settle();
    host.n_events = 0;
    before = host.broker->watchers.n_compared;
    /* an event each: two users, and who watches this buffer */
    let_in(two, buffer, session_of(303, UID_TWO));
    assert_int_equal(host.broker->watchers.n_compared - before, 3);
    assert_int_equal(CALL(two, op_destroy, buffer, false), 0);
    /* and then it ends, which two sessions notice that had it; twice, since it was destroyed */
    assert_in_range(host.broker->watchers.n_compared - before, 4 * 3, 5 * 3);
    host_settle();
    assert_int_equal(told(302, UINT32_MAX, NULL), 3);
    assert_int_equal(host.n_events, 3);
    assert_int_equal(host_check(host_session(90)), 0);
}

/* Who has subscribed to everything and to one of it is told once, in the order in which it happened. */
static void one_who_has_subscribed_twice_is_told_once(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), twin = session_of(2, UID_ONE), buffer;

    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(owner, op_subscribe, EVENT_LEFT), 0);
    assert_int_equal(CALL(owner, op_subscribe_to, OF_HOLDS, buffer, ""), 0);
    host_settle();
    host.n_events = 0;
    let_in(owner, buffer, twin);
    assert_int_equal(host_release(twin, buffer), 0);
    host_settle();
    assert_int_equal(host.n_events, 2);
    assert_int_equal(host.events[0].event.kind, EVENT_HELD);
    assert_int_equal(host.events[1].event.kind, EVENT_LEFT);
}

/* Who watches one of a user's buffers has a queue for that. */
static void I7_who_watches_one_buffer_loses_nothing_for_others(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), watcher = session_of(2, UID_ONE), all = session_of(3, UID_ONE), watched,
             buffer;

    assert_int_equal(host_alloc(owner, SIZE, 0, &watched), 0);
    assert_int_equal(CALL(watcher, op_subscribe_to, OF_HOLDS, watched, ""), 0);
    assert_int_equal(CALL(all, op_subscribe, OF_HOLDS), 0);
    let_in(owner, watched, session_of(4, UID_ONE));
    for (unsigned i = 0; i < 2 * RING_MAX; i++)
        assert_int_equal(host_alloc(owner, SIZE, BUFFER_NO_ADDRESS, &buffer), 0);
    host_settle();
    assert_int_equal(told(3, EVENT_LOST, NULL), 1);
    assert_int_equal(told(2, EVENT_LOST, NULL), 0);
    assert_int_equal(told(2, EVENT_HELD, NULL), 1);
}

/* Their turns are those of the user who is told, and go when nobody is there any more. */
static void who_goes_is_told_nothing_more(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), watcher = session_of(2, UID_ONE), buffer;

    assert_int_equal(CALL(watcher, op_subscribe, OF_HOLDS), 0);
    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_false(list_is_empty(&host.turns));
    assert_int_equal(CALL(watcher, op_goodbye), 0);
    assert_true(list_is_empty(&host.turns));
    host_settle();
    assert_int_equal(told(2, UINT32_MAX, NULL), 0);
}

/* Of two, the first has had its turn, and nothing to be told: the other one's comes all the same. */
static void who_goes_keeps_nothing_from_others(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), first = session_of(2, UID_ONE), second = session_of(3, UID_ONE), buffer;

    assert_int_equal(CALL(first, op_subscribe, EVENT_LEFT), 0);
    assert_int_equal(CALL(second, op_subscribe, EVENT_HELD), 0);
    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    pace_ns = TURN_SLICE_NS;
    host_take_turns();
    pace_ns = 0;
    assert_int_equal(told(3, UINT32_MAX, NULL), 0);
    assert_int_equal(CALL(first, op_goodbye), 0);
    host_settle();
    assert_int_equal(told(3, EVENT_HELD, NULL), 1);
}

static void what_is_newer_replaces_what_waits(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), twin = session_of(2, UID_ONE), buffer;
    struct broker_event event;

    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(owner, op_subscribe_to, OF_HOLDS, buffer, ""), 0);
    host_settle();
    host.n_events = 0;
    for (unsigned i = 0; i < 100; i++) {
        let_in(owner, buffer, twin);
        assert_int_equal(host_release(twin, buffer), 0);
    }
    let_in(owner, buffer, twin);
    assert_int_equal(host.n_events, 0);
    host_settle();
    assert_int_equal(told(1, UINT32_MAX, &event), 1);
    assert_int_equal(event.kind, EVENT_HELD);
}

static void subscriptions_are_limited_and_charged(void **state)
{
    uint64_t admin = host_session(90), session = session_of(1, UID_ONE), buffer, last = 0, before;
    char name[32];

    before = account_used(host_account(session), ACCOUNT_METADATA);
    for (unsigned i = 0; i < SUBSCRIPTION_NAMES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n/%u", i);
        assert_int_equal(CALL(session, op_subscribe_to, EVENT_NAME, 0, name), 0);
        assert_int_equal(CALL(session, op_subscribe_to, EVENT_NAME, 0, name), 0);
    }
    assert_int_equal(CALL(session, op_subscribe_to, EVENT_NAME, 0, "one/more"), STATUS_LIMIT);
    assert_true(account_used(host_account(session), ACCOUNT_METADATA) > before);
    assert_int_equal(host_check(admin), 0);
    for (unsigned i = 0; i < SUBSCRIPTION_NAMES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n/%u", i);
        assert_int_equal(CALL(session, op_subscribe_to, 0, 0, name), 0);
    }
    assert_int_equal(account_used(host_account(session), ACCOUNT_METADATA), before);

    for (unsigned i = 0; i <= SUBSCRIPTION_BUFFERS_MAX; i++) {
        assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
        assert_int_equal(CALL(session, op_subscribe_to, EVENT_HELD, buffer, ""),
                         i < SUBSCRIPTION_BUFFERS_MAX ? 0 : STATUS_LIMIT);
        if (i < SUBSCRIPTION_BUFFERS_MAX)
            last = buffer;
    }
    /* those that have ended make room */
    assert_int_equal(CALL(session, op_destroy, last, false), 0);
    assert_int_equal(CALL(session, op_subscribe_to, EVENT_HELD, buffer, ""), 0);
    assert_int_equal(host_check(admin), 0);

    for (unsigned i = 1; i <= SUBSCRIPTIONS_USER_MAX; i++) {
        uint64_t one = session_of(1 + i, UID_ONE);

        assert_int_equal(CALL(one, op_subscribe, EVENT_HELD), i < SUBSCRIPTIONS_USER_MAX ? 0 : STATUS_LIMIT);
    }
    /* others have as many of their own, and the end of a session makes room */
    assert_int_equal(CALL(session_of(200, UID_TWO), op_subscribe, EVENT_HELD), 0);
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_int_equal(CALL(session_of(201, UID_ONE), op_subscribe, EVENT_HELD), 0);
    assert_int_equal(host_check(admin), 0);
}

/* Of one name only, bound or not. */
static void a_name_is_told_of_before_it_is_there(void **state)
{
    uint64_t session = session_of(1, UID_ONE), owner = session_of(2, UID_ONE), stranger = session_of(3, UID_TWO),
             buffer;

    assert_int_equal(CALL(session, op_subscribe_to, EVENT_NAME, 0, "a/b"), 0);
    assert_int_equal(CALL(stranger, op_subscribe_to, EVENT_NAME, 0, "uid:7001/a/b"), 0);
    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(host_bind(owner, buffer, "a/c", 0, 0), 0);
    assert_int_equal(host_bind(owner, buffer, "a/b", 0, 0), 0);
    host_settle();
    assert_int_equal(host.n_events, 1);
    assert_ptr_equal(host.events[0].connection, (void *)1);
    assert_string_equal(host.events[0].name, "a/b");
    assert_true(host.events[0].event.bound);
    host.n_events = 0;
    assert_int_equal(CALL(owner, op_name_unbind, "a/b"), 0);
    host_settle();
    assert_int_equal(host.n_events, 1);
    assert_false(host.events[0].event.bound);
}

static void be_there(int channel, void *context)
{
    (void)context;
    hear(channel);
}

static bool is_told(uint32_t kind, struct broker_event *event)
{
    host_turn(1);
    return told(1, kind, event);
}

/* That it died is told at once, how when its parent has asked. */
static void a_death_does_not_wait_for_its_cause(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), worker, buffer;
    struct broker_event event;
    struct child child;
    int status;

    if (host_no_pidfds)
        test_skip("valgrind knows no pidfds");
    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(owner, op_subscribe_to, OF_HOLDS | EVENT_DEATH, buffer, ""), 0);
    child_start(&child, be_there, NULL);
    worker = host_session_of(7, child.pid, UID_ONE);
    let_in(owner, buffer, worker);
    host_settle();
    child_kill_unreaped(&child);
    assert_true(WAIT_UNTIL(is_told(EVENT_DIED, &event)));
    assert_int_equal(event.session, worker);
    assert_int_equal(event.pid, child.pid);
    if (child_ends_are_told())
        assert_int_equal(told(1, EVENT_DEATH, NULL), 0);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    close(child.channel);
    assert_true(WAIT_UNTIL(is_told(EVENT_DEATH, &event)));
    assert_int_equal(event.session, worker);
    assert_int_equal(event.end, child_ends_are_told() ? HISTORY_END_SIGNAL : HISTORY_END_UNKNOWN);
    assert_int_equal(event.status, child_ends_are_told() ? SIGKILL : 0);
    assert_int_equal(told(1, EVENT_LEFT, NULL), 0);
}

/* If both are known at once, what it held is told first. */
static void a_cause_comes_after_what_it_explains(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), worker, buffers[8];
    struct broker_event event;
    struct child child;
    unsigned i;

    if (host_no_pidfds)
        test_skip("valgrind knows no pidfds");
    assert_int_equal(CALL(owner, op_subscribe, EVENT_DIED | EVENT_DEATH), 0);
    child_start(&child, be_there, NULL);
    worker = host_session_of(7, child.pid, UID_ONE);
    for (i = 0; i < 8; i++) {
        assert_int_equal(host_alloc(owner, SIZE, 0, &buffers[i]), 0);
        let_in(owner, buffers[i], worker);
    }
    child_tell(&child);
    child_finish(&child);
    assert_true(WAIT_UNTIL(is_told(EVENT_DEATH, &event)));
    assert_int_equal(host.n_events, 9);
    for (i = 0; i < 8; i++)
        assert_int_equal(host.events[i].event.kind, EVENT_DIED);
    assert_int_equal(host.events[8].event.kind, EVENT_DEATH);
    assert_int_equal(host.events[8].event.session, worker);
}

static void publishing_is_told_to_others(void **state)
{
    uint64_t owner = session_of(1, UID_ONE), twin = session_of(2, UID_ONE), buffer;

    assert_int_equal(host_alloc(owner, SIZE, BUFFER_PUBLISHABLE, &buffer), 0);
    assert_int_equal(CALL(owner, op_subscribe_to, EVENT_PUBLISHED, buffer, ""), 0);
    assert_int_equal(CALL(twin, op_subscribe_to, EVENT_PUBLISHED, buffer, ""), 0);
    assert_int_equal(CALL(owner, op_publish, buffer, false), 0);
    host_settle();
    assert_int_equal(told(2, EVENT_PUBLISHED, NULL), 1);
    assert_int_equal(told(1, UINT32_MAX, NULL), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, host_setup, host_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(holders_come_and_leave),
        TEST(all_who_may_see_it_learn_that_it_is_discarded),
        TEST(who_was_only_given_it_is_not_told_whose_it_is),
        TEST(an_administrator_is_told_of_everybody),
        TEST(I7_a_flood_is_lost_by_those_only_who_may_see_it),
        TEST(what_is_newer_replaces_what_waits),
        TEST(I7_an_event_is_compared_with_those_only_whom_it_concerns),
        TEST(one_who_has_subscribed_twice_is_told_once),
        TEST(I7_who_watches_one_buffer_loses_nothing_for_others),
        TEST(who_goes_is_told_nothing_more),
        TEST(who_goes_keeps_nothing_from_others),
        TEST(subscriptions_are_limited_and_charged),
        TEST(a_name_is_told_of_before_it_is_there),
        TEST(a_death_does_not_wait_for_its_cause),
        TEST(a_cause_comes_after_what_it_explains),
        TEST(publishing_is_told_to_others),
    };

    return test_run(tests, NULL, NULL);
}
