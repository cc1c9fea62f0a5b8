/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, near both ends of the number space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/range.h"

#define MAX UINT64_MAX

/* An unchecked one, to show that no answer depends on start + size. */
static struct range at(uint64_t start, uint64_t size)
{
    return (struct range){.start = start, .size = size};
}

static void test_end(void **state)
{
    assert_true(range_end(at(0, MAX)) == MAX);
    assert_true(range_end(at(MAX, 0)) == MAX);
    assert_true(range_end(at(4096, 4096)) == 8192);
}

static void test_in_bounds(void **state)
{
    assert_true(range_in_bounds(0, 0, 0));
    assert_true(range_in_bounds(0, 10, 10));
    assert_true(range_in_bounds(9, 1, 10));
    assert_true(range_in_bounds(10, 0, 10));
    assert_true(range_in_bounds(0, MAX, MAX));
    assert_true(range_in_bounds(MAX, 0, MAX));
    assert_false(range_in_bounds(0, 11, 10));
    assert_false(range_in_bounds(9, 2, 10));
    assert_false(range_in_bounds(11, 0, 10));
    /* would wrap to something small */
    assert_false(range_in_bounds(MAX, 2, 10));
    assert_false(range_in_bounds(2, MAX, 10));
    assert_false(range_in_bounds(MAX, MAX, MAX));
}

static void test_contains(void **state)
{
    assert_false(range_contains(at(10, 5), 9));
    assert_true(range_contains(at(10, 5), 10));
    assert_true(range_contains(at(10, 5), 14));
    assert_false(range_contains(at(10, 5), 15));
    assert_false(range_contains(at(10, 0), 10));
    assert_true(range_contains(at(MAX, 1), MAX));
    assert_true(range_contains(at(MAX - 1, MAX), MAX));
    assert_false(range_contains(at(MAX - 1, MAX), 0));
}

static void test_encloses(void **state)
{
    assert_true(range_encloses(at(10, 5), at(10, 5)));
    assert_true(range_encloses(at(10, 5), at(12, 1)));
    assert_true(range_encloses(at(10, 5), at(15, 0)));
    assert_false(range_encloses(at(10, 5), at(9, 2)));
    assert_false(range_encloses(at(10, 5), at(14, 2)));
    assert_false(range_encloses(at(10, 5), at(16, 0)));
    assert_false(range_encloses(at(10, 5), at(12, MAX)));
    assert_true(range_encloses(at(0, MAX), at(MAX - 1, 1)));
}

static void test_overlaps(void **state)
{
    static const struct {
        struct range a, b;
        bool overlap;
    } cases[] = {
        {{10, 5}, {10, 5}, true},  {{10, 5}, {14, 1}, true},   {{10, 5}, {15, 5}, false},
        {{10, 5}, {5, 5}, false},  {{10, 5}, {5, 6}, true},    {{10, 5}, {0, 100}, true},
        {{10, 5}, {12, 0}, false}, {{10, 0}, {10, 0}, false},  {{0, MAX}, {MAX - 1, 1}, true},
        {{0, 1}, {MAX, 1}, false}, {{MAX, 5}, {0, 10}, false}, {{1, MAX}, {0, 1}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(range_overlaps(cases[i].a, cases[i].b), cases[i].overlap);
        assert_int_equal(range_overlaps(cases[i].b, cases[i].a), cases[i].overlap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end),      cmocka_unit_test(test_in_bounds), cmocka_unit_test(test_contains),
        cmocka_unit_test(test_encloses), cmocka_unit_test(test_overlaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
