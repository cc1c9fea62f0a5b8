/* SPDX-License-Identifier: Apache-2.0 */
/* When to spin and when to sleep. The time is told: nothing here waits. */
#include "tests/support/test.h"

#include <sched.h>

#include "base/spin.h"

#define STEP (1 * NSEC_PER_USEC)

static uint64_t lost; /* what the kernel would say */

static uint64_t count_preempted(void)
{
    return lost;
}

struct clocked {
    struct spin spin;
    uint64_t now;
};

static struct clocked start(bool may)
{
    struct clocked c = {.now = NSEC_PER_SEC};

    lost = 0;
    spin_init(&c.spin, may, count_preempted);
    return c;
}

/* One attempt that fails: how long it spun, 0 if it did not at all. */
static uint64_t in_vain(struct clocked *c)
{
    uint64_t began = c->now;

    if (!spin_begin(&c->spin, c->now))
        return 0;
    do
        c->now += STEP;
    while (spin_again(&c->spin, c->now));
    return c->now - began;
}

/* One attempt that succeeds after `n` checks. */
static bool finds(struct clocked *c, unsigned n)
{
    if (!spin_begin(&c->spin, c->now))
        return false;
    for (c->now += STEP; n; n--, c->now += STEP)
        if (!spin_again(&c->spin, c->now))
            return false;
    spin_found(&c->spin);
    return true;
}

static void it_ends_soon(void **state)
{
    struct clocked c = start(true);

    assert_int_equal(in_vain(&c), SPIN_NS);
}

static void with_one_processor_it_never_begins(void **state)
{
    struct clocked c = start(false);

    for (unsigned i = 0; i < 1000; i++, c.now += NSEC_PER_MSEC)
        assert_int_equal(in_vain(&c), 0);
}

static void who_finds_goes_on(void **state)
{
    struct clocked c = start(true);

    for (unsigned i = 0; i < 100000; i++)
        assert_true(finds(&c, i % 40));
}

/* In how many of `n` attempts, which fail, it spun. */
static unsigned tries(struct clocked *c, unsigned n)
{
    unsigned spun = 0;

    for (unsigned i = 0; i < n; i++)
        spun += in_vain(c) > 0;
    return spun;
}

static void in_vain_it_becomes_rare(void **state)
{
    struct clocked c = start(true);

    assert_int_equal(tries(&c, SPIN_FAILURES), SPIN_FAILURES);
    assert_int_equal(tries(&c, 1), 0);
    (void)tries(&c, 4 * SPIN_SKIP_MAX);
    assert_true(tries(&c, 10 * (SPIN_SKIP_MAX + 1)) == 10);
    /* and never stays away for good, however long it was in vain */
    (void)tries(&c, 100000);
    assert_true(tries(&c, 10 * (SPIN_SKIP_MAX + 1)) == 10);
}

static void once_found_it_is_as_new(void **state)
{
    struct clocked c = start(true);
    unsigned n = 0;

    (void)tries(&c, 4 * SPIN_SKIP_MAX);
    while (!finds(&c, 3))
        assert_true(n++ <= SPIN_SKIP_MAX);
    assert_int_equal(tries(&c, SPIN_FAILURES), SPIN_FAILURES);
}

static void what_is_there_at_once_proves_nothing(void **state)
{
    struct clocked c = start(true);
    unsigned spun = 0;

    for (unsigned i = 0; i < 1000 * SPIN_SKIP_MAX; i++) {
        spun += in_vain(&c) > 0;
        (void)finds(&c, 0);
    }
    assert_true(spun <= 1000 * 2 + SPIN_FAILURES + SPIN_SKIP_DOUBLES);
}

/* Spins with success for `ns`, and is preempted once in `every`. False: it did not spin any more at the end. */
static bool run(struct clocked *c, uint64_t ns, uint64_t every)
{
    uint64_t end = c->now + ns, next = c->now + every;
    bool found = false;

    while (c->now < end) {
        found = finds(c, 5);
        c->now += 10 * STEP;
        if (c->now >= next) {
            lost++;
            next += every;
        }
    }
    return found;
}

static void in_a_crowd_it_stays_away(void **state)
{
    struct clocked c = start(true);

    assert_false(run(&c, 3 * SPIN_CHECK_NS, 3 * NSEC_PER_MSEC));
    /* longer, each time it finds the crowd again */
    for (unsigned i = 0; i < 100; i++)
        (void)run(&c, SPIN_CHECK_NS, 3 * NSEC_PER_MSEC);
    assert_true(c.spin.not_before - c.spin.checked == SPIN_CHECK_NS << SPIN_CROWDS_MAX);
    /* but it comes back when the others have gone */
    c.now = c.spin.not_before;
    assert_true(run(&c, NSEC_PER_SEC, NSEC_PER_SEC));
    assert_int_equal(c.spin.crowds, 0);
}

static void an_accident_is_no_crowd(void **state)
{
    struct clocked c = start(true);

    for (unsigned i = 0; i < 100; i++)
        assert_true(run(&c, SPIN_CHECK_NS, SPIN_CHECK_NS));
}

/* What happened while the thread did other things says nothing. */
static void what_was_before_does_not_count(void **state)
{
    struct clocked c = start(true);

    assert_true(finds(&c, 1));
    c.now += NSEC_PER_SEC;
    lost += 1000;
    assert_true(finds(&c, 1));
    assert_true(run(&c, SPIN_CHECK_NS / 2, SPIN_CHECK_NS));
}

static void only_one_processor_is_seen(void **state)
{
    cpu_set_t all, one;
    bool may;

    assert_ok(sched_getaffinity(0, sizeof(all), &all));
    assert_true(CPU_COUNT(&all) > 1 || !spin_may_pay());
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_ok(sched_setaffinity(0, sizeof(one), &one));
    may = spin_may_pay();
    assert_ok(sched_setaffinity(0, sizeof(all), &all));
    assert_false(may);
}

static void a_quota_counts_in_whole_processors(void **state)
{
    assert_true(processors_of_quota("max 100000") == UINT_MAX);
    assert_int_equal(processors_of_quota("400000 100000"), 4);
    assert_int_equal(processors_of_quota("200000 100000"), 2);
    assert_int_equal(processors_of_quota("199999 100000"), 1);
    assert_int_equal(processors_of_quota("50000 100000"), 0);
    /* what is no quota is no limit */
    assert_true(processors_of_quota("") == UINT_MAX);
    assert_true(processors_of_quota("100000") == UINT_MAX);
    assert_true(processors_of_quota("100000 0") == UINT_MAX);
    assert_true(processors_of_quota("99999999999999999999 1") == UINT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_soon),
        cmocka_unit_test(with_one_processor_it_never_begins),
        cmocka_unit_test(who_finds_goes_on),
        cmocka_unit_test(in_vain_it_becomes_rare),
        cmocka_unit_test(once_found_it_is_as_new),
        cmocka_unit_test(what_is_there_at_once_proves_nothing),
        cmocka_unit_test(in_a_crowd_it_stays_away),
        cmocka_unit_test(an_accident_is_no_crowd),
        cmocka_unit_test(what_was_before_does_not_count),
        cmocka_unit_test(only_one_processor_is_seen),
        cmocka_unit_test(a_quota_counts_in_whole_processors),
    };

    return test_run(tests, NULL, NULL);
}
