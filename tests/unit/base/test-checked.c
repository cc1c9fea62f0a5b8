/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic and alignment, at the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/align.h"
#include "base/checked.h"

#define UNTOUCHED 0x5555

static void test_add(void **state)
{
    uint64_t v = UNTOUCHED;
    size_t s = UNTOUCHED;

    assert_false(checked_add_u64(UINT64_MAX, 1, &v));
    assert_false(checked_add_u64(UINT64_MAX, UINT64_MAX, &v));
    assert_false(checked_add_u64(UINT64_C(1) << 63, UINT64_C(1) << 63, &v));
    assert_true(v == UNTOUCHED);
    assert_true(checked_add_u64(UINT64_MAX, 0, &v) && v == UINT64_MAX);
    assert_true(checked_add_u64(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
    assert_true(checked_add_u64(0, 0, &v) && v == 0);
    /* the result may be one of the operands */
    v = 3;
    assert_true(checked_add_u64(v, 4, &v) && v == 7);

    assert_false(checked_add_size(SIZE_MAX, 1, &s));
    assert_true(s == UNTOUCHED);
    assert_true(checked_add_size(SIZE_MAX - 1, 1, &s) && s == SIZE_MAX);
}

static void test_mul(void **state)
{
    uint64_t v = UNTOUCHED;
    size_t s = UNTOUCHED;

    assert_false(checked_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &v));
    assert_false(checked_mul_u64(UINT64_MAX, 2, &v));
    assert_true(v == UNTOUCHED);
    assert_true(checked_mul_u64(UINT64_MAX, 1, &v) && v == UINT64_MAX);
    assert_true(checked_mul_u64(UINT64_MAX, 0, &v) && v == 0);
    assert_true(checked_mul_u64(UINT32_MAX, UINT32_MAX, &v) && v == (uint64_t)UINT32_MAX * UINT32_MAX);
    assert_true(checked_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 31, &v) && v == UINT64_C(1) << 63);

    assert_false(checked_mul_size(SIZE_MAX / 2 + 1, 2, &s));
    assert_true(s == UNTOUCHED);
    assert_true(checked_mul_size(SIZE_MAX / 2, 2, &s) && s == SIZE_MAX - 1);
}

static void test_align_up(void **state)
{
    uint64_t v = UNTOUCHED;
    size_t s = UNTOUCHED;

    assert_false(checked_align_up_u64(1, 0, &v));
    assert_false(checked_align_up_u64(1, 3, &v));
    assert_false(checked_align_up_u64(1, UINT64_MAX, &v));
    assert_false(checked_align_up_u64(UINT64_MAX, 2, &v));
    assert_false(checked_align_up_u64(UINT64_MAX - 4094, 4096, &v));
    assert_false(checked_align_up_u64((UINT64_C(1) << 63) + 1, UINT64_C(1) << 63, &v));
    assert_true(v == UNTOUCHED);
    assert_true(checked_align_up_u64(UINT64_MAX, 1, &v) && v == UINT64_MAX);
    assert_true(checked_align_up_u64(UINT64_MAX - 4095, 4096, &v) && v == UINT64_MAX - 4095);
    assert_true(checked_align_up_u64(0, UINT64_C(1) << 63, &v) && v == 0);
    assert_true(checked_align_up_u64(1, UINT64_C(1) << 63, &v) && v == UINT64_C(1) << 63);
    assert_true(checked_align_up_u64(4097, 4096, &v) && v == 8192);

    assert_false(checked_align_up_size(SIZE_MAX, 16, &s));
    assert_false(checked_align_up_size(1, 12, &s));
    assert_true(s == UNTOUCHED);
    assert_true(checked_align_up_size(17, 16, &s) && s == 32);
}

static void test_narrowing(void **state)
{
    size_t s = UNTOUCHED;
    off_t off = UNTOUCHED;

    assert_false(checked_size((uint64_t)PTRDIFF_MAX + 1, &s));
    assert_false(checked_size(UINT64_MAX, &s));
    assert_true(s == UNTOUCHED);
    assert_true(checked_size(PTRDIFF_MAX, &s) && s == PTRDIFF_MAX);
    assert_true(checked_size(0, &s) && s == 0);

    assert_false(checked_off((uint64_t)INT64_MAX + 1, &off));
    assert_false(checked_off(UINT64_MAX, &off));
    assert_true(off == UNTOUCHED);
    assert_true(checked_off(INT64_MAX, &off) && off == INT64_MAX);
}

static void test_powers_of_two(void **state)
{
    assert_false(is_power_of_two(0));
    assert_false(is_power_of_two(UINT64_MAX));
    for (int i = 0; i < 64; i++) {
        uint64_t v = UINT64_C(1) << i;

        assert_true(is_power_of_two(v));
        if (i > 0)
            assert_false(is_power_of_two(v + 1));
        if (i > 1)
            assert_false(is_power_of_two(v - 1));
    }
}

static void test_aligning(void **state)
{
    assert_true(align_down(4095, 4096) == 0);
    assert_true(align_down(UINT64_MAX, 4096) == UINT64_MAX - 4095);
    assert_true(align_up(4095, 4096) == 4096);
    assert_true(align_up(4096, 4096) == 4096);
    assert_true(align_up(UINT64_MAX - 4095, 4096) == UINT64_MAX - 4095);
    assert_true(is_aligned(0, 4096));
    assert_true(is_aligned(UINT64_C(1) << 63, 4096));
    assert_false(is_aligned(4097, 4096));
    assert_true(is_aligned(4097, 1));
}

static void test_pages(void **state)
{
    uint64_t page = page_size();

    assert_true(is_power_of_two(page));
    assert_true(page >= 4096);
    assert_true(page_align_up(1) == page);
    assert_true(page_align_down(page + 1) == page);
    assert_true(is_page_aligned(2 * page));
    assert_false(is_page_aligned(page / 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),       cmocka_unit_test(test_mul),           cmocka_unit_test(test_align_up),
        cmocka_unit_test(test_narrowing), cmocka_unit_test(test_powers_of_two), cmocka_unit_test(test_aligning),
        cmocka_unit_test(test_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
