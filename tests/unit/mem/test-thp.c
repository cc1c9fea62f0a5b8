/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads at one commit: all of it once, an end as soon as one fails, and no more of them than allowed. */
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/commit.h"
#include "proto/status.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"

#define SLICE     (COMMIT_SLICE)
#define CALLS_MAX 64

static struct topology machine;
static struct sys_calls calls;
static struct call {
    pthread_t thread;
    char *address;
    size_t length;
} populated[CALLS_MAX];
static atomic_uint n_populated;
static atomic_uint n_asked; /* how much memory there is */
static atomic_bool stopped; /* until then whoever populates waits */
static unsigned fails_at;   /* the n-th */
static struct commit *cancelled;
static pthread_t impatient; /* the test's own thread */

static unsigned note(void *address, size_t length)
{
    unsigned i = atomic_fetch_add(&n_populated, 1);

    if (i < CALLS_MAX)
        populated[i] = (struct call){pthread_self(), address, length};
    return i + 1;
}

/* Populates nothing. */
static int made_up_madvise(void *address, size_t length, int advice)
{
    unsigned nth;

    if (advice == MADV_HUGEPAGE)
        return 0;
    assert(advice == MADV_POPULATE_WRITE);
    nth = note(address, length);
    if (cancelled)
        atomic_store(&cancelled->cancel, true);
    if (nth == fails_at) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

static int slow_madvise(void *address, size_t length, int advice)
{
    if (advice == MADV_POPULATE_WRITE) {
        note(address, length);
        if (!pthread_equal(pthread_self(), impatient))
            (void)WAIT_UNTIL(atomic_load(&stopped));
    }
    return 0;
}

static int real_madvise(void *address, size_t length, int advice)
{
    if (advice == MADV_POPULATE_WRITE)
        note(address, length);
    return sys_kernel.madvise(address, length, advice);
}

static uint64_t plenty(int node)
{
    (void)node;
    atomic_fetch_add(&n_asked, 1);
    return UINT64_C(1) << 50;
}

/* For one slice, besides what is always left to others, and not for a second one. */
static uint64_t room_for_one(int node)
{
    (void)node;
    if (atomic_fetch_add(&n_asked, 1))
        atomic_store(&stopped, true);
    return 2 * SLICE + SLICE / 2;
}

static int setup(void **state)
{
    impatient = pthread_self();
    assert_int_equal(topology_load(&machine, 0), 0);
    calls = sys_kernel;
    calls.madvise = made_up_madvise;
    calls.available = plenty;
    sys = &calls;
    n_populated = n_asked = fails_at = 0;
    stopped = false;
    cancelled = NULL;
    return 0;
}

static int teardown(void **state)
{
    sys = &sys_kernel;
    return 0;
}

static uint32_t a_node(void)
{
    for (uint32_t i = 0; i < machine.n_nodes; i++)
        if (machine.nodes[i].total)
            return machine.nodes[i].number;
    return 0;
}

static void prepare(struct commit *c, uint64_t bytes, unsigned threads)
{
    size_t huge = thp_size();

    if (!huge || huge > SLICE)
        test_skip("this kernel has no transparent huge pages");
    commit_init(c);
    c->topology = &machine;
    memcpy(c->label, "memoryd-test", sizeof("memoryd-test"));
    c->pages = PAGES_THP;
    c->page_size = huge;
    c->threads = threads;
    plan_unpack(&c->plan,
                &(struct plan_brief){.bytes = bytes, .n_nodes = 1, .node = a_node(), .placement = PLACEMENT_PREFERRED},
                NULL);
}

static int by_address(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

/* Who populated it, and that it was all and nothing twice. */
static unsigned by_this_thread(uint64_t bytes)
{
    unsigned n = n_populated, mine = 0;
    uint64_t sum = 0;

    assert_in_range(n, 1, CALLS_MAX);
    qsort(populated, n, sizeof(*populated), by_address);
    for (unsigned i = 0; i < n; i++) {
        if (i)
            assert_true(populated[i].address == populated[i - 1].address + populated[i - 1].length);
        sum += populated[i].length;
        mine += pthread_equal(populated[i].thread, pthread_self()) != 0;
    }
    assert_int_equal(sum, bytes / thp_size() * thp_size());
    return mine;
}

static void all_of_it_is_done_once(void **state)
{
    static const struct {
        unsigned threads;
        uint64_t bytes;
        bool together;
    } cases[] = {
        {0, 5 * SLICE, false},
        {1, 5 * SLICE, false},
        {2, 5 * SLICE, true},
        {3, 5 * SLICE + SLICE / 2, true},
        {60, 2 * SLICE, true},
        {1000, 3 * SLICE, true},
        /* not worth a thread */
        {3, 2 * SLICE - 4096, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct commit c;
        unsigned mine;

        n_populated = 0;
        prepare(&c, cases[i].bytes / page_size() * page_size(), cases[i].threads);
        assert_int_equal(commit_run(&c), 0);
        mine = by_this_thread(c.plan.brief.bytes);
        assert_int_equal(mine, cases[i].together ? 0 : n_populated);
        commit_deinit(&c);
    }
}

static void every_byte_has_its_page(void **state)
{
    uint64_t bytes = 2 * SLICE + thp_size() + 3 * page_size();
    struct commit c;

    calls.madvise = real_madvise;
    prepare(&c, bytes, 2);
    if (sys_kernel.available(-1) < 4 * bytes)
        test_skip("there is little memory");
    assert_int_equal(commit_run(&c), 0);
    assert_int_equal(by_this_thread(bytes), 0);
    assert_int_equal(memfd_allocated(c.fd), bytes);
    assert_in_range(c.huge_bytes, 0, bytes);
    commit_deinit(&c);
}

static void it_goes_on_where_it_paused(void **state)
{
    static const atomic_bool pause = true;
    uint64_t bytes = 4 * SLICE + page_size();
    unsigned runs = 1, fds = fd_count();
    struct commit c;

    calls.madvise = real_madvise;
    prepare(&c, bytes, 2);
    if (sys_kernel.available(-1) < 4 * bytes)
        test_skip("there is little memory");
    c.pause = &pause;
    for (; commit_run(&c) == 0 && c.paused; runs++) {
        assert_int_equal(c.fd, -1);
        assert_int_equal(c.done, runs * SLICE);
    }
    assert_int_equal(c.status, 0);
    assert_int_equal(runs, 5);
    assert_int_equal(memfd_allocated(c.fd), bytes);
    assert_in_range(c.huge_bytes, 0, bytes);
    commit_deinit(&c);
    assert_int_equal(fd_count(), fds);
}

static void one_that_fails_ends_it(void **state)
{
    unsigned fds = fd_count();

    for (unsigned threads = 0; threads < 4; threads++)
        for (fails_at = 1; fails_at < 5; fails_at++) {
            struct commit c;

            n_populated = 0;
            prepare(&c, 64 * SLICE, threads);
            assert_int_equal(commit_run(&c), STATUS_NO_MEMORY);
            assert_true(strlen(c.problem.sentence) > 10);
            assert_int_equal(c.fd, -1);
            assert_int_equal(fd_count(), fds);
        }
}

static void who_cancels_waits_for_one_slice_each(void **state)
{
    unsigned fds = fd_count();

    for (unsigned threads = 0; threads < 4; threads++) {
        struct commit c;

        n_populated = 0;
        prepare(&c, 64 * SLICE, threads);
        cancelled = &c;
        assert_int_equal(commit_run(&c), STATUS_TIMED_OUT);
        assert_int_equal(c.fd, -1);
        assert_in_range(n_populated, 1, threads > 1 ? threads : 1);
        assert_int_equal(fd_count(), fds);
        cancelled = NULL;
    }
}

/* What another thread is about to take is not free, though nobody has it yet. */
static void memory_promised_to_another_thread_is_not_free(void **state)
{
    struct commit c;

    calls.madvise = slow_madvise;
    calls.available = room_for_one;
    prepare(&c, 8 * SLICE, 2);
    assert_int_equal(commit_run(&c), STATUS_NO_MEMORY);
    assert_int_equal(n_populated, 1);
    assert_int_equal(n_asked, 2);
}

static void *run_one(void *argument)
{
    commit_run(argument);
    return NULL;
}

static void commits_share_the_threads(void **state)
{
    struct commit first, second;
    pthread_t thread;
    unsigned before;

    calls.madvise = slow_madvise;
    prepare(&first, 4 * SLICE, 2);
    assert_int_equal(pthread_create(&thread, NULL, run_one, &first), 0);
    assert_true(WAIT_UNTIL(n_populated == 2)); /* both are at it */
    atomic_store(&stopped, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(first.status, 0);
    assert_int_equal(by_this_thread(4 * SLICE), 0);
    commit_deinit(&first);

    /* and while they are, another one is alone */
    stopped = false;
    n_populated = 0;
    prepare(&first, 4 * SLICE, 3);
    prepare(&second, 3 * SLICE, 4);
    assert_int_equal(pthread_create(&thread, NULL, run_one, &first), 0);
    assert_true(WAIT_UNTIL(n_populated == 3));
    before = n_populated;
    /* one is left, which is no more than this one itself */
    assert_int_equal(commit_run(&second), 0);
    for (unsigned i = before; i < n_populated; i++)
        assert_true(pthread_equal(populated[i].thread, pthread_self()));
    assert_int_equal(n_populated, before + 3);
    atomic_store(&stopped, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(first.status, 0);
    commit_deinit(&first);
    commit_deinit(&second);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_of_it_is_done_once),
        TEST(every_byte_has_its_page),
        TEST(it_goes_on_where_it_paused),
        TEST(one_that_fails_ends_it),
        TEST(who_cancels_waits_for_one_slice_each),
        TEST(memory_promised_to_another_thread_is_not_free),
        TEST(commits_share_the_threads),
    };

    return test_run(tests, NULL, NULL);
}
