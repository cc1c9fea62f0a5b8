/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and holds: who may go on with a session, what a hold links, and what a buffer costs altogether. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "session/hold.h"
#include "session/session.h"
#include "tests/unit/mem/state.h"

static struct sessions sessions;

static int setup(void **state)
{
    state_setup(state);
    sessions_init(&sessions, s.ledger, &s.accounts);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(table_count(&sessions.holds), 0);
    sessions_deinit(&sessions);
    return state_teardown(state);
}

static struct peer peer_of(uid_t uid, pid_t pid, uint64_t identity)
{
    struct peer peer = PEER_NULL;

    peer.uid = uid;
    peer.gid = uid + 1;
    peer.pid = pid;
    peer.identity = identity;
    peer.pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_ok(peer.pidfd);
    peer.groups = malloc(sizeof(*peer.groups));
    assert_non_null(peer.groups);
    peer.groups[0] = 33;
    peer.n_groups = 1;
    return peer;
}

static struct session *session_of(uid_t uid, pid_t pid)
{
    struct peer peer = peer_of(uid, pid, 100);
    struct session *session;

    assert_int_equal(session_new(&sessions, &peer, "test", 0, &session, NULL), 0);
    /* taken over */
    assert_int_equal(peer.pidfd, -1);
    assert_null(peer.groups);
    session->connection = &sessions;
    record_commit(&sessions.table, session);
    return session;
}

static void test_made_and_ended(void **state)
{
    struct peer peer = peer_of(7, 70, 100);
    struct session *session, *beyond, *none = NULL;
    char program[200];
    uint64_t id;
    int pidfd = peer.pidfd;

    memset(program, 'p', sizeof(program));
    program[sizeof(program) - 1] = '\0';
    s.accounts.limits.user[ACCOUNT_SESSIONS] = 1;
    assert_int_equal(session_new(&sessions, &peer, program, 0, &session, NULL), 0);
    id = session->record->head.id;
    assert_null(sessions_find(&sessions, id));
    record_commit(&sessions.table, session);
    assert_ptr_equal(sessions_find(&sessions, id), session);
    assert_int_equal(strlen(session->record->program), MEMORYD_PROGRAM_MAX);
    assert_int_equal(session->record->uid, 7);
    assert_int_equal(session->record->gid, 8);
    assert_int_equal(session->record->pid, 70);
    assert_true(peer_in_group(&session->peer, 33));

    peer = peer_of(7, 71, 100);
    assert_int_equal(session_new(&sessions, &peer, "", 0, &none, NULL), STATUS_LIMIT);
    assert_null(none);
    /* what was not taken over is still the caller's */
    assert_true(fcntl(peer.pidfd, F_GETFD) >= 0);
    peer_deinit(&peer);
    peer = peer_of(7, 73, 100);
    /* beyond the limit, as far as it was said, and counted like any */
    assert_int_equal(session_new(&sessions, &peer, "", 1, &beyond, NULL), 0);
    assert_int_equal(account_used(account_find(&s.accounts, 7), ACCOUNT_SESSIONS), 2);
    peer = peer_of(7, 72, 100);
    assert_int_equal(session_new(&sessions, &peer, "", 1, &none, NULL), STATUS_LIMIT);
    peer_deinit(&peer);
    assert_null(session_free(beyond));
    assert_int_equal(account_used(account_find(&s.accounts, 7), ACCOUNT_SESSIONS), 1);

    assert_null(session_free(session));
    assert_errno(fcntl(pidfd, F_GETFD), EBADF);
    assert_null(account_find(&s.accounts, 7));
    assert_null(sessions_find(&sessions, id));
}

/* I3: only the very process may resume, and only with the secret. */
static void test_I3_who_may_resume(void **state)
{
    struct session *session = session_of(7, 70), *other = session_of(7, 71);
    uint8_t secret[MEMORYD_SECRET_SIZE];
    struct peer same = peer_of(7, 70, 100), later = peer_of(7, 70, 101), child = peer_of(7, 72, 100),
                user = peer_of(8, 70, 100);

    memcpy(secret, session->record->secret, sizeof(secret));
    assert_memory_not_equal(secret, other->record->secret, sizeof(secret));
    assert_int_equal(session_may_resume(session, secret, &same, NULL), 0);
    assert_int_equal(session_may_resume(session, secret, &later, NULL), STATUS_SESSION_REJECTED);
    assert_int_equal(session_may_resume(session, secret, &child, NULL), STATUS_SESSION_REJECTED);
    assert_int_equal(session_may_resume(session, secret, &user, NULL), STATUS_SESSION_REJECTED);
    for (unsigned i = 0; i < sizeof(secret); i++) {
        secret[i] ^= 1;
        assert_int_equal(session_may_resume(session, secret, &same, NULL), STATUS_SESSION_REJECTED);
        secret[i] ^= 1;
    }

    session_detach(session);
    assert_null(session->connection);
    assert_int_not_equal(session->record->lost_at, 0);
    same.groups[0] = 44;
    session_attach(session, &secret, &same);
    assert_ptr_equal(session->connection, &secret);
    assert_int_equal(session->record->lost_at, 0);
    assert_true(peer_in_group(&session->peer, 44));
    assert_false(peer_in_group(&session->peer, 33));
    peer_deinit(&same);
    peer_deinit(&later);
    peer_deinit(&child);
    peer_deinit(&user);
    session_free(session);
    session_free(other);
}

static void test_claims_are_counted(void **state)
{
    struct session *session = session_of(7, 70);
    struct buffer *buffer = state_live_buffer();
    struct hold *hold, *again;

    assert_null(session_hold(session, buffer->record->head.id));
    assert_int_equal(hold_ref(session, buffer, 1, &hold, NULL), 0);
    assert_int_equal(hold->record->head.state, RECORD_INTENT);
    record_commit(&sessions.holds, hold);
    assert_int_equal(hold_ref(session, buffer, 4, &again, NULL), 0);
    assert_ptr_equal(again, hold);
    assert_int_equal(hold->record->rights, 5);
    assert_int_equal(hold->record->refs, 2);
    assert_int_equal(buffer->n_holds, 1);
    assert_int_equal(session->n_holds, 1);
    assert_ptr_equal(session_hold(session, buffer->record->head.id), hold);
    assert_ptr_equal(hold_release(hold), hold);
    assert_null(hold_release(hold));
    assert_null(session_hold(session, buffer->record->head.id));
    assert_false(buffer_is_kept(buffer));
    /* a count that would wrap */
    assert_int_equal(hold_ref(session, buffer, 1, &hold, NULL), 0);
    record_change(&sessions.holds, hold)->refs = UINT32_MAX;
    assert_int_equal(hold_ref(session, buffer, 8, &again, NULL), STATUS_LIMIT);
    assert_int_equal(hold->record->rights, 1);
    hold_free(hold);
    buffer_free(&s.buffers, buffer);
    session_free(session);
}

static void test_order_of_holds(void **state)
{
    struct session *all[3] = {session_of(7, 1), session_of(8, 2), session_of(9, 3)};
    struct buffer *buffers[50];
    struct hold *hold;
    uint64_t from = 0;
    int n = 0;

    for (int i = 0; i < 50; i++) {
        buffers[i] = state_live_buffer();
        for (int k = 0; k < 3; k++)
            assert_int_equal(hold_ref(all[(i + k) % 3], buffers[i], 1, &hold, NULL), 0);
    }
    /* I5 wants the oldest that is left */
    for (int i = 0; i < 50; i++) {
        assert_ptr_equal(buffer_oldest_hold(buffers[i])->session, all[i % 3]);
        hold_free(buffer_oldest_hold(buffers[i]));
        assert_ptr_equal(buffer_oldest_hold(buffers[i])->session, all[(i + 1) % 3]);
        assert_int_equal(buffers[i]->n_holds, 2);
    }
    /* a session's in slices, while they go */
    while ((hold = session_next_hold(all[0], from))) {
        assert_int_equal(hold->record->session, all[0]->record->head.id);
        assert_true(hold->record->buffer >= from);
        from = hold->record->buffer + 1;
        hold_free(hold);
        n++;
    }
    assert_int_equal(n, 33);
    assert_int_equal(all[0]->n_holds, 0);
    for (int i = 0; i < 50; i++) {
        while ((hold = buffer_oldest_hold(buffers[i])))
            hold_free(hold);
        buffer_free(&s.buffers, buffers[i]);
    }
    for (int k = 0; k < 3; k++)
        session_free(all[k]);
}

/* The allocator's and the ledger's. Under a sanitizer the allocator is another one and says 0. */
static uint64_t memory_used(void)
{
    struct mallinfo2 heap = mallinfo2();
    struct stat st;

    assert_ok(fstat(ledger_fd(s.ledger), &st));
    return heap.uordblks + heap.hblkhd + (uint64_t)st.st_blocks * 512;
}

/* Of a session's hold and a home address, too, whose sizes hold.c asserts: no allocator, index or extent adds much. */
static void test_memory_for_many_buffers(void **state)
{
    enum { N = 100000 };
    struct session *session = session_of(7, 70);
    struct buffer *buffer;
    struct hold *hold;
    uint64_t before, used, cursor = 0;
    unsigned budget = UINT32_MAX;

    before = memory_used();
    for (int i = 0; i < N; i++) {
        buffer = state_live_buffer();
        assert_int_equal(hold_ref(session, buffer, 15, &hold, NULL), 0);
        assert_int_not_equal(buffer->record->address, 0);
        ledger_commit(s.ledger);
    }
    used = memory_used() - before;
    print_message("%d buffers: %.1f bytes each\n", N, (double)used / N);
    /* the last extents are not full: 512 each, and a piece of the ledger and of each table's growth */
    assert_true(used <= 512 * (uint64_t)N + (UINT64_C(2) << 20));
    while ((buffer = table_next(&s.buffers.table, &cursor, &budget))) {
        hold_free(buffer_oldest_hold(buffer));
        buffer_free(&s.buffers, buffer);
    }
    session_free(session);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_made_and_ended), T(test_I3_who_may_resume),       T(test_claims_are_counted),
        T(test_order_of_holds), T(test_memory_for_many_buffers),
    };

    return test_run(tests, NULL, NULL);
}
