/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that say their size: an old program with a shorter one, a new one with a longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sized.h"

struct first {
    size_t size;
    uint64_t a;
};

struct second {
    size_t size;
    uint64_t a;
    uint64_t b;
};

struct third {
    size_t size;
    uint64_t a;
    uint64_t b;
    uint64_t c;
};

static void what_an_older_program_has_not_is_zero(void **state)
{
    const struct first from = {.size = sizeof(from), .a = 1};
    struct second ours = {.b = 9};

    assert_int_equal(sized_read(&ours, sizeof(ours), &from), 0);
    assert_true(ours.size == sizeof(ours) && ours.a == 1 && !ours.b);
    ours = (struct second){.a = 9, .b = 9};
    assert_int_equal(sized_read(&ours, sizeof(ours), NULL), 0);
    assert_true(ours.size == sizeof(ours) && !ours.a && !ours.b);
}

static void what_a_newer_program_has_besides_must_be_zero(void **state)
{
    struct third from = {.size = sizeof(from), .a = 1, .b = 2};
    struct second ours;

    assert_int_equal(sized_read(&ours, sizeof(ours), &from), 0);
    assert_true(ours.size == sizeof(ours) && ours.a == 1 && ours.b == 2);
    ours.a = 7;
    from.c = UINT64_C(1) << 63;
    assert_int_equal(sized_accept(&from, sizeof(ours)), -E2BIG);
    assert_int_equal(sized_read(&ours, sizeof(ours), &from), -E2BIG);
    assert_true(ours.a == 7);
}

static void a_struct_without_a_size_is_refused(void **state)
{
    static int (*const volatile read)(void *, size_t, const void *) = sized_read;
    static const size_t none[] = {0, 1, sizeof(size_t) - 1, SIZED_MAX + 1, SIZE_MAX};
    struct second from = {.a = 1}, ours = {.a = 7};

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        from.size = none[i];
        assert_int_equal(sized_check(&from), -EINVAL);
        assert_int_equal(read(&ours, sizeof(ours), &from), -EINVAL);
    }
    assert_true(ours.a == 7);
}

static void a_result_goes_as_far_as_both_do(void **state)
{
    const struct second ours = {.size = sizeof(ours), .a = 1, .b = 2};
    struct second shorter = {.size = sizeof(struct first), .b = 9};
    struct third longer = {.size = sizeof(longer), .c = 9};

    sized_write(&shorter, &ours, sizeof(ours));
    assert_true(shorter.size == sizeof(struct first) && shorter.a == 1 && shorter.b == 9);
    sized_write(&longer, &ours, sizeof(ours));
    assert_true(longer.size == sizeof(longer) && longer.a == 1 && longer.b == 2 && longer.c == 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_older_program_has_not_is_zero),
        cmocka_unit_test(what_a_newer_program_has_besides_must_be_zero),
        cmocka_unit_test(a_struct_without_a_size_is_refused),
        cmocka_unit_test(a_result_goes_as_far_as_both_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
