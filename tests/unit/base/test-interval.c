/* SPDX-License-Identifier: Apache-2.0 */
/* Overlapping ranges: what lookups say is what looking at each of them says, whatever comes and goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/interval.h"

enum { N = 200, ADDRESSES = 100, ROUNDS = 4000 };

static struct interval_tree tree;
static struct interval intervals[N];
static bool is_in[N];
static const char owners[2];

static int empty_tree(void **state)
{
    tree = (struct interval_tree){.serials = 0};
    for (unsigned i = 0; i < N; i++)
        is_in[i] = false;
    srandom(1);
    return 0;
}

static bool holds(const struct interval *interval, uint64_t address)
{
    return interval->start <= address && interval->last >= address;
}

static void check_address(uint64_t address, const void *owner)
{
    const struct interval *innermost = NULL, *found;
    uint64_t furthest = 0;

    for (unsigned i = 0; i < N; i++) {
        if (!is_in[i] || !holds(&intervals[i], address) || (owner && intervals[i].owner != owner))
            continue;
        if (!innermost || interval_compare(&intervals[i], innermost) > 0)
            innermost = &intervals[i];
        if (intervals[i].last > furthest)
            furthest = intervals[i].last;
    }
    assert_ptr_equal(interval_innermost(&tree, address, owner), innermost);
    found = interval_furthest(&tree, address, owner);
    assert_int_equal(!found, !innermost);
    if (found) {
        assert_true(holds(found, address) && (!owner || found->owner == owner));
        assert_int_equal(found->last, furthest);
    }
}

static void check_range(uint64_t start, uint64_t last)
{
    const struct interval *found = interval_overlapping(&tree, start, last), *before = NULL;
    unsigned n = 0, expected = 0;

    for (unsigned i = 0; i < N; i++)
        expected += is_in[i] && intervals[i].start <= last && intervals[i].last >= start;
    for (; found; before = found, found = found->found, n++) {
        assert_true(found->start <= last && found->last >= start);
        assert_true(!before || interval_compare(before, found) < 0);
    }
    assert_int_equal(n, expected);
}

static void check_order(void)
{
    const struct interval *before = NULL;
    unsigned n = 0, expected = 0;

    for (unsigned i = 0; i < N; i++)
        expected += is_in[i];
    for (struct interval *at = interval_from(&tree, 0); at; before = at, at = interval_next(at), n++) {
        assert_true(!before || interval_compare(before, at) < 0);
        assert_ptr_equal(interval_previous(at), before);
    }
    assert_int_equal(n, expected);
}

static void test_lookups(void **state)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (unsigned)random() % N;
        uint64_t address = (uint64_t)random() % ADDRESSES;

        if (is_in[i]) {
            interval_remove(&tree, &intervals[i]);
        } else {
            intervals[i] = (struct interval){.start = address, .owner = &owners[random() % 2]};
            intervals[i].last = address + (uint64_t)random() % (random() % 8 ? 4 : ADDRESSES);
            intervals[i].rank = (uint64_t)random() % 3;
            interval_insert(&tree, &intervals[i]);
        }
        is_in[i] = !is_in[i];
        check_address((uint64_t)random() % ADDRESSES, NULL);
        check_address((uint64_t)random() % ADDRESSES, &owners[random() % 2]);
        check_range(address, address + (uint64_t)random() % ADDRESSES);
    }
    check_order();
}

static void test_order_of_those_that_start_together(void **state)
{
    intervals[0] = (struct interval){.start = 5, .last = 9, .rank = 1};
    intervals[1] = (struct interval){.start = 5, .last = 9};
    intervals[2] = (struct interval){.start = 5, .last = 7, .rank = 1};
    for (unsigned i = 0; i < 3; i++)
        interval_insert(&tree, &intervals[i]);
    assert_ptr_equal(interval_from(&tree, 5), &intervals[1]);
    assert_ptr_equal(interval_at(&tree, 5), &intervals[1]);
    assert_null(interval_at(&tree, 4));
    assert_ptr_equal(interval_next(&intervals[1]), &intervals[0]);
    assert_ptr_equal(interval_next(&intervals[0]), &intervals[2]);
    assert_null(interval_next(&intervals[2]));
    assert_null(interval_from(&tree, 6));
}

static void test_the_last_address(void **state)
{
    intervals[0] = (struct interval){.start = UINT64_MAX, .last = UINT64_MAX};
    intervals[1] = (struct interval){.start = 0, .last = UINT64_MAX};
    interval_insert(&tree, &intervals[0]);
    interval_insert(&tree, &intervals[1]);
    assert_ptr_equal(interval_innermost(&tree, UINT64_MAX, NULL), &intervals[0]);
    assert_ptr_equal(interval_innermost(&tree, UINT64_MAX - 1, NULL), &intervals[1]);
    assert_ptr_equal(interval_overlapping(&tree, UINT64_MAX, UINT64_MAX), &intervals[1]);
    assert_ptr_equal(intervals[1].found, &intervals[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lookups, empty_tree),
        cmocka_unit_test_setup(test_order_of_those_that_start_together, empty_tree),
        cmocka_unit_test_setup(test_the_last_address, empty_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
