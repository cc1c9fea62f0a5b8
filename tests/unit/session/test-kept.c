/* SPDX-License-Identifier: Apache-2.0 */
/* Kept replies: whole, found, bounded, forgotten when they may be, and taken over by another broker if sound. */
#include "tests/support/test.h"

#include <fcntl.h>

#include "proto/methods.h"
#include "session/kept.h"
#include "tests/unit/mem/faults.h"
#include "tests/unit/mem/state.h"

/* As kept.c has it. */
struct piece_object {
    OBJECT(struct kept_more_record);
    bool wanted;
};

static struct sessions sessions;
static struct session *session;
static uint8_t message[MEMORYD_PAYLOAD_MAX], back[MEMORYD_PAYLOAD_MAX];

static int setup(void **state)
{
    struct peer peer = PEER_NULL;

    state_setup(state);
    sessions_init(&sessions, s.ledger, &s.accounts);
    peer.uid = 1000;
    assert_int_equal(session_new(&sessions, &peer, "test", 0, &session, NULL), 0);
    record_commit(&sessions.table, session);
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)(i ^ i >> 8);
    return 0;
}

static int teardown(void **state)
{
    struct list *link;

    while ((link = list_first(&session->kept)))
        kept_free(container_of(link, struct kept, in_session));
    assert_int_equal(session->n_kept, 0);
    assert_int_equal(table_count(&sessions.kept), 0);
    assert_int_equal(table_count(&sessions.kept_more), 0);
    session_free(session);
    sessions_deinit(&sessions);
    return state_teardown(state);
}

static struct kept *begin(uint64_t sequence)
{
    struct kept *kept;

    assert_int_equal(kept_new(session, sequence, METHOD_ALLOC, &kept, NULL), 0);
    return kept;
}

static struct kept *keep(uint64_t sequence, size_t size)
{
    struct kept *kept = begin(sequence);

    kept_finish(kept, 0, message, size, 3);
    return kept;
}

static bool is_kept(uint64_t sequence)
{
    return session_kept(session, sequence);
}

static void reads_as(const struct kept *kept, size_t size)
{
    assert_true(record_is_live(&kept->record->head));
    assert_int_equal(kept->record->size, size);
    memset(back, 0xee, sizeof(back));
    kept_read(kept, back);
    assert_memory_equal(back, message, size);
    if (size < sizeof(back))
        assert_int_equal(back[size], 0xee);
}

/* ---- another broker: a second mapping of the same ledger --------------------------------------------------------- */

static struct sessions next;
static struct session *same, *same_other; /* in there: the first one's, and another user's */
static struct ledger *adopted;

static enum table_verdict recover_session(void *userdata, void *object, const char **why)
{
    (void)userdata;
    (void)why;
    struct session *one = object;

    one->sessions = &next;
    list_init(&one->kept);
    assert_int_equal(account_new_session(&s.accounts, one->record->uid, &one->account, NULL), 0);
    if (one->record->uid == session->record->uid)
        same = one;
    else
        same_other = one;
    return TABLE_KEEP;
}

static void another_broker(void)
{
    int fd = fcntl(ledger_fd(s.ledger), F_DUPFD_CLOEXEC, 3);

    assert_true(fd >= 0);
    assert_int_equal(ledger_adopt(&adopted, fd), 0);
    sessions_init(&next, adopted, &s.accounts);
    assert_int_equal(table_recover(&next.table, recover_session, NULL), 0);
    assert_int_equal(kept_recover(&next, adopted), 0);
    assert_int_equal(ledger_executing(adopted)->session, 0);
}

/* Forgets its kept replies without a word to the ledger. */
static void leave_kept(struct session *of)
{
    while (!list_is_empty(&of->kept))
        list_remove(list_first(&of->kept));
    of->n_kept = 0;
    account_lower_metadata(of->account, account_used(of->account, ACCOUNT_METADATA));
}

static void leave_session(struct session **of)
{
    if (!*of)
        return;
    leave_kept(*of);
    (*of)->account = account_unref((*of)->account);
    *of = NULL;
}

/* It dies, without a word. The first one must not touch the ledger any more. */
static void another_broker_dies(void)
{
    leave_session(&same);
    leave_session(&same_other);
    next.table.count = next.kept.count = next.kept_more.count = 0;
    sessions_deinit(&next);
    adopted = ledger_free(adopted);
}

/* Leaves the first broker with nothing to clean up. */
static void another_broker_ends(void)
{
    struct list *link;

    while ((link = list_first(&same->kept)))
        kept_free(container_of(link, struct kept, in_session));
    assert_int_equal(table_count(&next.kept), 0);
    assert_int_equal(table_count(&next.kept_more), 0);
    ledger_commit(adopted);
    another_broker_dies();
    sessions.kept.count = sessions.kept_more.count = 0;
    leave_kept(session);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void a_reply_is_read_as_it_was(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 64 + 488, 64 + 489, 64 + 2 * 488, 5000, MEMORYD_PAYLOAD_MAX};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        reads_as(keep(10 + i, sizes[i]), sizes[i]);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_int_equal(session_kept(session, 10 + i)->record->n_fds, 3);
        reads_as(session_kept(session, 10 + i), sizes[i]);
    }
}

static void a_reply_is_found_by_its_sequence(void **state)
{
    static const uint64_t order[] = {5, 9, 2, 7, UINT64_MAX - 1};

    for (size_t i = 0; i < 5; i++)
        (void)begin(order[i]);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(session_kept(session, order[i])->record->sequence, order[i]);
    assert_false(is_kept(1));
    assert_false(is_kept(6));
    assert_false(is_kept(UINT64_MAX));
}

static void there_is_a_bound(void **state)
{
    struct problem problem = PROBLEM_NULL;
    struct kept *kept;

    for (uint64_t i = 1; i <= MEMORYD_UNACKNOWLEDGED_MAX; i++)
        (void)keep(i, 10);
    assert_int_equal(kept_new(session, 100, METHOD_ALLOC, &kept, &problem), STATUS_LIMIT);
    assert_true(problem.sentence[0]);
    kept_acknowledge(session, 0, 17);
    assert_int_equal(kept_new(session, 100, METHOD_ALLOC, &kept, NULL), 0);
    assert_int_equal(kept_new(session, 101, METHOD_ALLOC, &kept, NULL), STATUS_LIMIT);
}

static void acknowledged_replies_are_forgotten(void **state)
{
    for (uint64_t i = 1; i <= 6; i++)
        (void)keep(i, 2000);
    kept_acknowledge(session, 2, 5);
    assert_false(is_kept(1) || is_kept(2) || is_kept(5));
    assert_true(is_kept(3) && is_kept(4) && is_kept(6));
    assert_int_equal(session->record->acknowledged, 2);
    /* it only grows */
    kept_acknowledge(session, 1, 0);
    assert_int_equal(session->record->acknowledged, 2);
    kept_acknowledge(session, UINT64_MAX, 0);
    assert_int_equal(table_count(&sessions.kept), 0);
    assert_int_equal(table_count(&sessions.kept_more), 0);
}

/* What was done stays done, and a repeat learns that much. */
static void without_memory_the_status_says_so(void **state)
{
    uint64_t sequence = 0;

    fault_set(FAULT_fallocate, 1, ENOSPC);
    while (!fault_hit) {
        assert_true(++sequence <= MEMORYD_UNACKNOWLEDGED_MAX);
        keep(sequence, sizeof(message));
        ledger_commit(s.ledger);
    }
    fault_clear(state);
    assert_int_equal(session_kept(session, sequence)->record->status, STATUS_NO_MEMORY);
    assert_int_equal(session_kept(session, sequence)->record->n_fds, 0);
    reads_as(session_kept(session, sequence), 0);
    reads_as(session_kept(session, sequence - 1), sizeof(message));
}

/* Nobody should say so, but who does must not end what goes on. */
static void what_is_at_work_is_not_forgotten_before_its_end(void **state)
{
    struct kept *kept = begin(4);

    kept->running = state;
    kept_acknowledge(session, 4, 0);
    assert_true(is_kept(4));
    assert_int_equal(session->n_kept, 1);
    kept_finish(kept, 0, message, 5000, 0);
    assert_false(is_kept(4));
    assert_int_equal(session->n_kept, 0);
}

static void another_broker_has_the_replies(void **state)
{
    keep(3, 0);
    keep(1, 5000);
    keep(2, 64);
    ledger_commit(s.ledger);
    another_broker();
    assert_int_equal(same->n_kept, 3);
    reads_as(session_kept(same, 1), 5000);
    reads_as(session_kept(same, 2), 64);
    reads_as(session_kept(same, 3), 0);
    another_broker_ends();
}

static void what_was_not_committed_never_was(void **state)
{
    struct kept *kept = begin(1);

    keep(2, 5000);
    ledger_commit(s.ledger);
    kept_finish(kept, 0, message, 5000, 0);
    kept_free(session_kept(session, 2));
    another_broker();
    assert_int_equal(session_kept(same, 1)->record->head.state, RECORD_INTENT);
    reads_as(session_kept(same, 2), 5000);
    another_broker_ends();
}

static void deaths_are_counted(void **state)
{
    struct ledger_executing *executing = ledger_executing(s.ledger);

    (void)begin(1);                   /* waited for room */
    kept_set_working(begin(2), true); /* at work */
    kept_set_working(begin(3), true); /* at work, and the loop was at it: once */
    keep(4, 10);                      /* done */
    ledger_commit(s.ledger);
    ledger_executing_begin(executing, session->record->head.id, 3, METHOD_ALLOC);
    another_broker();
    assert_int_equal(session_kept(same, 1)->record->deaths, 0);
    assert_int_equal(session_kept(same, 2)->record->deaths, 1);
    assert_int_equal(session_kept(same, 3)->record->deaths, 1);
    assert_int_equal(session_kept(same, 4)->record->deaths, 0);

    /* the next one dies over number 2 again, and over one that left no record; the rest is not at work any more */
    kept_set_working(session_kept(same, 2), true);
    ledger_commit(adopted);
    ledger_executing_begin(ledger_executing(adopted), session->record->head.id, 9, METHOD_PING);
    another_broker_dies();
    another_broker();
    assert_int_equal(session_kept(same, 2)->record->deaths, 2);
    assert_int_equal(session_kept(same, 3)->record->deaths, 1);
    assert_int_equal(session_kept(same, 9)->record->deaths, 1);
    assert_int_equal(session_kept(same, 9)->record->method, METHOD_PING);
    /* which takes nobody's place */
    assert_int_equal(same->n_kept, 4);
    another_broker_ends();
}

/* Any of them may be of somebody who kills brokers, so that the others are innocent. */
static void requests_of_several_users_are_suspected_only(void **state)
{
    struct peer peer = PEER_NULL;
    struct session *other;
    struct kept *theirs;

    peer.uid = 1001;
    assert_int_equal(session_new(&sessions, &peer, "other", 0, &other, NULL), 0);
    record_commit(&sessions.table, other);
    assert_int_equal(kept_new(other, 1, METHOD_ALLOC, &theirs, NULL), 0);
    kept_set_working(theirs, true);
    kept_set_working(begin(1), true);
    (void)begin(2);
    ledger_commit(s.ledger);
    another_broker();
    assert_int_equal(session_kept(same, 1)->record->deaths, 0);
    assert_int_equal(session_kept(same, 1)->record->suspicions, 1);
    assert_int_equal(session_kept(same_other, 1)->record->deaths, 0);
    assert_int_equal(session_kept(same_other, 1)->record->suspicions, 1);
    assert_int_equal(session_kept(same, 2)->record->suspicions, 0);

    /* a worker was at it, and the loop at somebody's first message; then at another user's request */
    for (unsigned i = 0; i < 2; i++) {
        kept_set_working(session_kept(same, 1), true);
        ledger_commit(adopted);
        ledger_executing_begin(ledger_executing(adopted), i ? other->record->head.id : LEDGER_NO_SESSION, 1,
                               METHOD_HELLO);
        another_broker_dies();
        another_broker();
        assert_int_equal(session_kept(same, 1)->record->deaths, 0);
        assert_int_equal(session_kept(same, 1)->record->suspicions, 2 + i);
        assert_int_equal(session_kept(same_other, 1)->record->suspicions, 1 + i);
    }

    /* alone */
    kept_set_working(session_kept(same, 1), true);
    ledger_commit(adopted);
    another_broker_dies();
    another_broker();
    assert_int_equal(session_kept(same, 1)->record->deaths, 1);
    assert_int_equal(session_kept(same, 1)->record->suspicions, 3);
    kept_free(session_kept(same_other, 1));
    another_broker_ends();
    leave_kept(other);
    session_free(other);
}

static void one_that_was_done_did_not_kill(void **state)
{
    keep(4, 10);
    ledger_commit(s.ledger);
    ledger_executing_begin(ledger_executing(s.ledger), session->record->head.id, 4, METHOD_ALLOC);
    another_broker();
    assert_int_equal(session_kept(same, 4)->record->deaths, 0);
    reads_as(session_kept(same, 4), 10);
    another_broker_ends();
}

static void those_of_ended_sessions_go(void **state)
{
    keep(1, 5000);
    ledger_commit(s.ledger);
    session->writable->ended = 1;
    another_broker();
    assert_int_equal(table_count(&next.kept), 0);
    assert_int_equal(table_count(&next.kept_more), 0);
    another_broker_ends();
}

static void damaged_ones_are_left_alone(void **state)
{
    keep(1, 5000)->writable->more = 0;     /* its rest is missing */
    keep(2, 10)->writable->more = 12345;   /* it has one that is not there */
    keep(3, 10)->writable->size = 1 << 20; /* it is too long */
    keep(4, 10)->writable->sequence = 0;
    keep(5, 10)->writable->n_fds = 65;
    keep(6, 5000);
    keep(7, 5000)->writable->more = session_kept(session, 6)->record->more; /* another one's */
    keep(8, 10);
    keep(9, 10)->writable->sequence = 8; /* twice */
    ledger_commit(s.ledger);
    another_broker();
    assert_int_equal(next.kept.n_quarantined, 7);
    assert_int_equal(same->n_kept, 2);
    assert_true(session_kept(same, 8));
    /* of the two that want the same pieces one has them */
    assert_true(!session_kept(same, 6) != !session_kept(same, 7));
    another_broker_ends();
}

static void pieces_of_damaged_ones_go(void **state)
{
    uint64_t more = keep(1, 5000)->record->more;
    struct kept *twice = keep(3, 5000);

    /* the first piece is there, the second is not */
    ((struct piece_object *)table_find(&sessions.kept_more, more))->writable->next = 12345;
    keep(2, 5000);
    twice->writable->sequence = 2;
    ledger_commit(s.ledger);
    another_broker();
    assert_int_equal(next.kept.n_quarantined, 2);
    assert_int_equal(same->n_kept, 1);
    reads_as(session_kept(same, 2), 5000);
    /* which asserts that no piece is left */
    another_broker_ends();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reply_is_read_as_it_was),
        TEST(a_reply_is_found_by_its_sequence),
        TEST(there_is_a_bound),
        TEST(acknowledged_replies_are_forgotten),
        TEST(without_memory_the_status_says_so),
        TEST(what_is_at_work_is_not_forgotten_before_its_end),
        TEST(another_broker_has_the_replies),
        TEST(what_was_not_committed_never_was),
        TEST(deaths_are_counted),
        TEST(requests_of_several_users_are_suspected_only),
        TEST(one_that_was_done_did_not_kill),
        TEST(those_of_ended_sessions_go),
        TEST(damaged_ones_are_left_alone),
        TEST(pieces_of_damaged_ones_go),
    };

    return test_run(tests, NULL, NULL);
}
