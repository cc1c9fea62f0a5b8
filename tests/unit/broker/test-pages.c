/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who does not say which pages gets huge ones, and where they cannot be had ordinary ones, without a word. The huge
 * pages are made up here: files of ordinary ones.
 */
#include "tests/unit/broker/host.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/buffer.h"
#include "mem/pool.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define N_HUGE 16

static struct sys_calls calls;
static atomic_bool used_up; /* by other processes */
static atomic_uint refused;

static int made_up_huge_pages(int physical_node, uint64_t size, enum sys_huge what, uint64_t *ret)
{
    (void)physical_node;
    *ret = size == huge_page_size() && (what == SYS_HUGE_ALL || what == SYS_HUGE_FREE) ? N_HUGE : 0;
    return 0;
}

static int made_up_memfd_create(const char *name, unsigned flags)
{
    if (flags & MFD_HUGETLB && used_up) {
        refused++;
        errno = ENOSPC;
        return -1;
    }
    return sys_kernel.memfd_create(name, flags & MFD_HUGETLB ? flags & (MFD_CLOEXEC | MFD_ALLOW_SEALING) : flags);
}

static int setup(void **state)
{
    calls = sys_kernel;
    calls.huge_pages = made_up_huge_pages;
    calls.memfd_create = made_up_memfd_create;
    used_up = false;
    refused = 0;
    host_reset(0);
    sys = &calls;
    host.pages_by_size = true;
    host_start();
    return 0;
}

static int teardown(void **state)
{
    int r = host_teardown(state);

    host.pages_by_size = false;
    sys = &sys_kernel;
    return r;
}

static void need_huge_pages(void)
{
    if (!huge_page_size() || N_HUGE * huge_page_size() > HOST_POOL_BYTES)
        test_skip("this kernel has no huge pages, or none of which some fit into a small pool");
}

static uint64_t used(enum pages pages)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pools_count(host.pools); i++)
        if (pools_get(host.pools, i)->pages == pages)
            sum += tally_used(&pools_get(host.pools, i)->bytes);
    return sum;
}

static uint64_t used_of_ordinary(void)
{
    return used(PAGES_BASE) + used(PAGES_THP);
}

static void large_ones_get_huge_pages_as_long_as_there_are(void **state)
{
    uint64_t huge = huge_page_size(), size = N_HUGE / 2 * huge, session = host_session(1), buffers[4];
    struct buffer_info info;

    need_huge_pages();
    assert_int_equal(host_alloc(session, size - 1, 0, &buffers[0]), 0);
    assert_int_equal(host_info(session, buffers[0], &info), 0);
    assert_int_equal(info.pages, PAGES_HUGETLB);
    assert_int_equal(info.page_size, huge);
    assert_int_equal(info.bytes, size);
    assert_int_equal(info.address % huge, 0);
    assert_int_equal(host_alloc(session, size, 0, &buffers[1]), 0);
    assert_int_equal(used(PAGES_HUGETLB), N_HUGE * huge);
    /* and when there are no more, and for what has to be in small parts */
    assert_int_equal(host_alloc(session, size, 0, &buffers[2]), 0);
    assert_int_equal(used_of_ordinary(), size);
    assert_int_equal(host_release(session, buffers[0]), 0);
    assert_true(HOST_UNTIL(used(PAGES_HUGETLB) == size));
    assert_int_equal(host_alloc(session, size, BUFFER_NO_ADDRESS, &buffers[3]), 0);
    assert_int_equal(used_of_ordinary(), 2 * size);
    assert_int_equal(host_check(session), 0);
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(host_release(session, buffers[i]), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(session), 0);
}

static void those_that_others_used_up_are_not_missed(void **state)
{
    uint64_t size = 4 * huge_page_size(), session = host_session(1), buffer;
    unsigned fds = fd_count();
    struct opened result = {0};
    struct alloc_spec args = {.n = 2, .sizes = {size, size}};

    need_huge_pages();
    used_up = true;
    assert_int_equal(host_alloc(session, size, 0, &buffer), 0);
    assert_int_equal(refused, 1);
    assert_int_equal(used(PAGES_HUGETLB), 0);
    assert_int_equal(used_of_ordinary(), size);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));

    assert_int_equal(CALL(session, op_alloc, &args, &result), 0);
    assert_int_equal(result.n, 2);
    assert_int_equal(used_of_ordinary(), 2 * size);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(host_release(session, result.items[i].id), 0);
    assert_true(HOST_UNTIL(host_used() == 0));

    /* who asks for them is told */
    args.memory.pages = PAGES_HUGETLB;
    assert_int_equal(CALL(session, op_alloc, &args, &result), STATUS_NO_MEMORY);
    assert_non_null(strstr(host_sentence, "huge pages"));
    host_settle();
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(fd_count(), fds);
}

/* What waits, waits for ordinary pages, also if it has been refused huge ones before. */
static void room_is_waited_for_in_the_last_pool(void **state)
{
    static struct call call;
    static struct alloc_spec args;
    static struct opened result;
    uint64_t size = 4 * huge_page_size(), session = host_session(1), buffer;
    struct alloc_spec all = {.n = 1, .sizes = {HOST_POOL_BYTES}, .memory.pages = PAGES_BASE};
    struct opened base = {0};

    need_huge_pages();
    used_up = true;
    assert_int_equal(CALL(session, op_alloc, &all, &base), 0);
    assert_int_equal(host_alloc(session, size, 0, &buffer), STATUS_POOL_FULL);
    for (unsigned patient = 0; patient < 2; patient++) {
        call_init(&call, session);
        args = (struct alloc_spec){.n = 1, .sizes = {size}, .wait_ms = patient ? UINT64_MAX : 3600 * 1000};
        assert_int_equal(op_alloc(&call.op, &args, &result), OP_PENDING);
        assert_true(HOST_UNTIL(refused == 2 + patient));
        host_settle();
        assert_false(call.ended);
        if (patient)
            break;
        op_cancel(&call.op);
        assert_true(HOST_UNTIL(call.ended));
        assert_int_equal(call.status, STATUS_TIMED_OUT);
    }
    assert_int_equal(host_release(session, base.items[0].id), 0);
    assert_true(HOST_UNTIL(call.ended));
    assert_int_equal(call.status, 0);
    assert_int_equal(used_of_ordinary(), size);
    assert_int_equal(host_release(session, result.items[0].id), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(session), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_ones_get_huge_pages_as_long_as_there_are, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_others_used_up_are_not_missed, setup, teardown),
        cmocka_unit_test_setup_teardown(room_is_waited_for_in_the_last_pool, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
