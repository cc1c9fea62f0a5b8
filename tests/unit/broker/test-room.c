/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who finds no room waits for what is on its way back, whatever he says of waiting: as long as that may still do and no
 * longer. Memory is held on its way here by leaving its end without a commit.
 */
#include "tests/unit/broker/host.h"

#include <string.h>
#include <unistd.h>

#include "mem/pool.h"
#include "mem/rights.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define HALF    (HOST_POOL_BYTES / 2)
#define QUARTER (HOST_POOL_BYTES / 4)
#define PAGE    page_bytes()

struct waiting {
    struct call call;
    struct alloc_spec args;
    struct opened result;
};

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int begin(struct waiting *waiting, uint64_t session, uint64_t size, uint64_t wait_ms)
{
    memset(waiting, 0, sizeof(*waiting));
    call_init(&waiting->call, session);
    waiting->args = (struct alloc_spec){.n = 1, .sizes = {size}, .wait_ms = wait_ms};
    return op_alloc(&waiting->call.op, &waiting->args, &waiting->result);
}

/* Ends it, and its memory does not come back before come_back(). */
static void release_slowly(uint64_t session, uint64_t buffer)
{
    host.no_commit = true;
    assert_int_equal(host_release(session, buffer), 0);
}

static void come_back(uint64_t session)
{
    host.no_commit = false;
    assert_int_equal(host_check(session), 0);
}

static bool see_pool(void *userdata, const union list_row *row)
{
    const char *name = row->pool.name;

    if (!strcmp(name, "node0-4k"))
        *(uint64_t *)userdata = row->pool.available;
    return true;
}

static uint64_t available(uint64_t session)
{
    struct list_args args = {.userdata = NULL};
    uint64_t next, bytes = 0;

    args.userdata = &bytes;
    assert_int_equal(CALL(session, op_list, LIST_POOLS, &args, &next, see_pool), 0);
    return bytes;
}

static void set_limit(bool of_session, enum account_slot slot, uint64_t limit)
{
    host_no_limits(&host.limits);
    (of_session ? host.limits.session : host.limits.user)[slot] = limit;
    broker_set_limits(host.broker, &host.limits);
}

/* ---- it does ----------------------------------------------------------------------------------------------------- */

static void reclaimed_memory_is_waited_for_and_counts_as_available(void **state)
{
    static struct waiting again;
    uint64_t session = host_session(1), all;

    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &all), 0);
    assert_int_equal(available(session), 0);
    release_slowly(session, all);
    assert_int_equal(host_used(), HOST_POOL_BYTES);
    assert_int_equal(available(session), HOST_POOL_BYTES);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(begin(&again, session, HOST_POOL_BYTES, 0), OP_PENDING);
    host_turn(5);
    assert_false(again.call.ended);
    come_back(session);
    assert_true(HOST_UNTIL(again.call.ended));
    assert_int_equal(again.call.status, 0);
    assert_int_equal(host_used(), HOST_POOL_BYTES);
    assert_int_equal(available(session), 0);
    assert_int_equal(host_check(session), 0);
}

static void limits_of_bytes_and_buffers_wait_for_reclaimed_memory_too(void **state)
{
    static struct waiting again;
    uint64_t session = host_session(1), other = host_session(2), one;

    for (unsigned turn = 0; turn < 3; turn++) {
        bool of_session = turn == 0;

        if (turn < 2)
            set_limit(of_session, ACCOUNT_BYTES, QUARTER + PAGE / 2);
        else
            set_limit(false, ACCOUNT_BUFFERS, 1);
        assert_int_equal(host_alloc(session, QUARTER, 0, &one), 0);
        /* a limit is told in whole pages; that of a session is not another one's */
        assert_int_equal(available(other), turn == 2 ? HOST_POOL_BYTES - QUARTER : of_session ? QUARTER : 0);
        assert_int_equal(begin(&again, session, QUARTER, 0), STATUS_LIMIT);
        release_slowly(session, one);
        assert_int_equal(begin(&again, session, QUARTER + PAGE, 0), turn < 2 ? STATUS_LIMIT : OP_PENDING);
        if (turn < 2)
            assert_int_equal(begin(&again, session, QUARTER, 0), OP_PENDING);
        come_back(session);
        assert_true(HOST_UNTIL(again.call.ended));
        assert_int_equal(again.call.status, 0);
        assert_int_equal(host_release(session, again.result.items[0].id), 0);
        assert_true(HOST_UNTIL(host_used() == 0));
        assert_int_equal(host_check(session), 0);
    }
}

static void a_deadline_that_passes_during_reclaim_does_not_fail_the_alloc(void **state)
{
    static struct waiting again;
    uint64_t session = host_session(1), all;

    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &all), 0);
    release_slowly(session, all);
    assert_int_equal(begin(&again, session, HOST_POOL_BYTES, 1), OP_PENDING);
    usleep(2000);
    host_turn(5);
    host_turn(5);
    assert_false(again.call.ended);
    come_back(session);
    assert_true(HOST_UNTIL(again.call.ended));
    assert_int_equal(again.call.status, 0);
}

/* In a session's queue there may be one that waits for much more, and for long. */
static void a_short_alloc_passes_longer_waiters_of_its_session(void **state)
{
    static struct waiting patient, behind, hoping;
    uint64_t session = host_session(1), one, two;

    assert_int_equal(host_alloc(session, HALF, 0, &one), 0);
    assert_int_equal(host_alloc(session, HALF, 0, &two), 0);
    assert_int_equal(begin(&patient, session, HOST_POOL_BYTES, UINT64_MAX), OP_PENDING);
    release_slowly(session, one);
    assert_int_equal(begin(&behind, session, HALF, UINT64_MAX), OP_PENDING);
    assert_int_equal(begin(&hoping, session, HALF, 0), OP_PENDING);
    come_back(session);
    assert_true(HOST_UNTIL(hoping.call.ended));
    assert_int_equal(hoping.call.status, 0);
    assert_false(patient.call.ended || behind.call.ended);
    op_cancel(&patient.call.op);
    op_cancel(&behind.call.op);
    assert_true(HOST_UNTIL(patient.call.ended && behind.call.ended));
}

/* ---- it does not ------------------------------------------------------------------------------------------------- */

static void an_alloc_larger_than_what_is_reclaimed_is_refused_at_once(void **state)
{
    static struct waiting none;
    uint64_t session = host_session(1), one, two;

    assert_int_equal(host_alloc(session, HALF, 0, &one), 0);
    assert_int_equal(host_alloc(session, HALF, 0, &two), 0);
    release_slowly(session, one);
    assert_int_equal(available(session), HALF);
    assert_int_equal(begin(&none, session, HALF + PAGE, 0), STATUS_POOL_FULL);
    memset(&none, 0, sizeof(none));
    call_init(&none.call, session);
    none.args = (struct alloc_spec){.n = 2, .sizes = {HALF, PAGE}};
    assert_int_equal(op_alloc(&none.call.op, &none.args, &none.result), STATUS_POOL_FULL);
    come_back(session);
    assert_int_equal(host_check(session), 0);
}

static void an_alloc_fails_when_another_took_what_was_reclaimed(void **state)
{
    static struct waiting first, second, late;
    uint64_t session = host_session(1), all;

    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &all), 0);
    release_slowly(session, all);
    assert_int_equal(begin(&first, session, HALF + PAGE, 0), OP_PENDING);
    assert_int_equal(begin(&second, session, HALF, 0), OP_PENDING);
    assert_int_equal(begin(&late, session, HALF, 1), OP_PENDING);
    usleep(2000);
    host_turn(5);
    come_back(session);
    assert_true(HOST_UNTIL(first.call.ended && second.call.ended && late.call.ended));
    assert_int_equal(first.call.status, 0);
    assert_int_equal(second.call.status, STATUS_POOL_FULL);
    assert_int_equal(late.call.status, STATUS_TIMED_OUT);
    assert_int_equal(host_check(session), 0);
}

static void memory_that_is_still_exported_is_not_available(void **state)
{
    static struct waiting none, again;
    uint64_t session = host_session(1), all;
    int fd;

    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &all), 0);
    fd = host_export(session, all, RIGHT_READ);
    assert_true(fd >= 0);
    assert_int_equal(host_release(session, all), 0);
    assert_int_equal(available(session), 0);
    assert_int_equal(begin(&none, session, PAGE, 0), STATUS_POOL_FULL);
    /* it ends now; the broker hears of that, and from then on it is waited for */
    host.no_commit = true;
    close(fd);
    assert_true(HOST_UNTIL(available(session) == HOST_POOL_BYTES));
    assert_int_equal(begin(&again, session, PAGE, 0), host_used() ? OP_PENDING : 0);
    come_back(session);
    assert_true(HOST_UNTIL(host_used() == PAGE));
    assert_int_equal(host_check(session), 0);
}

static void an_alloc_that_waits_for_reclaimed_memory_can_be_cancelled(void **state)
{
    static struct waiting gone, cancelled;
    uint64_t session = host_session(1), other = host_session(2), all;

    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &all), 0);
    release_slowly(session, all);
    assert_int_equal(begin(&gone, other, HALF, 0), OP_PENDING);
    assert_int_equal(begin(&cancelled, session, HALF, 0), OP_PENDING);
    op_cancel(&cancelled.call.op);
    assert_int_equal(CALL(other, op_goodbye), 0);
    assert_true(HOST_UNTIL(gone.call.ended && cancelled.call.ended));
    assert_int_not_equal(gone.call.status, 0);
    assert_int_equal(cancelled.call.status, STATUS_TIMED_OUT);
    come_back(session);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(session), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reclaimed_memory_is_waited_for_and_counts_as_available),
        TEST(limits_of_bytes_and_buffers_wait_for_reclaimed_memory_too),
        TEST(a_deadline_that_passes_during_reclaim_does_not_fail_the_alloc),
        TEST(a_short_alloc_passes_longer_waiters_of_its_session),
        TEST(an_alloc_larger_than_what_is_reclaimed_is_refused_at_once),
        TEST(an_alloc_fails_when_another_took_what_was_reclaimed),
        TEST(memory_that_is_still_exported_is_not_available),
        TEST(an_alloc_that_waits_for_reclaimed_memory_can_be_cancelled),
    };

    return test_run(tests, NULL, NULL);
}
