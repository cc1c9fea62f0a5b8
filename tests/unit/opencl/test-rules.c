/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clSVMAlloc() allows and refuses, by its document: every flag word, sizes, alignments, devices. No memory is
 * needed for that, nor a broker.
 */
#include <errno.h>

#include <memclient/svm.h>

#include "tests/support/test.h"

#define MOST ((uint64_t)1 << 31)

enum {
    RW = MEMCLIENT_SVM_READ_WRITE,
    WO = MEMCLIENT_SVM_WRITE_ONLY,
    RO = MEMCLIENT_SVM_READ_ONLY,
    FINE = MEMCLIENT_SVM_FINE_GRAIN_BUFFER,
    ATOMIC = MEMCLIENT_SVM_ATOMICS,
    CAN_COARSE = MEMCLIENT_SVM_CAN_COARSE_GRAIN_BUFFER,
    CAN_FINE = MEMCLIENT_SVM_CAN_FINE_GRAIN_BUFFER,
    CAN_ATOMICS = MEMCLIENT_SVM_CAN_ATOMICS,
};

static const struct memclient_svm_device full = {MOST, CAN_COARSE | CAN_FINE | CAN_ATOMICS, 128, false};
static const struct memclient_svm_device coarse = {MOST, CAN_COARSE, 128, false};
static const struct memclient_svm_device fine = {MOST, CAN_COARSE | CAN_FINE, 128, false};
static const struct memclient_svm_device embedded = {MOST / 2, CAN_COARSE | CAN_FINE | CAN_ATOMICS, 64, false};
static const struct memclient_svm_device foreign = {MOST, CAN_COARSE | CAN_FINE | CAN_ATOMICS, 128, true};
static const struct memclient_svm_device without = {MOST, 0, 128, false};

static enum memclient_svm_rule ask(const struct memclient_svm_device *devices, size_t n, uint64_t flags, uint64_t size,
                                   uint32_t alignment)
{
    enum memclient_svm_rule broken = MEMCLIENT_SVM_RULE_NONE;
    int r = memclient_svm_check(n, devices, flags, size, alignment, &broken);

    assert_int_equal(r, broken == MEMCLIENT_SVM_RULE_NONE ? 0 : -EINVAL);
    if (r)
        assert_string_not_equal(memclient_svm_error(), "");
    return broken;
}

static bool is_one_of_twelve(uint64_t flags)
{
    static const uint64_t access[] = {0, RW, WO, RO}, sharing[] = {0, FINE, FINE | ATOMIC};

    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 3; j++)
            if (flags == (access[i] | sharing[j]))
                return true;
    return false;
}

/*
 * memclient_svm_check() of enum memclient_svm_flag: MEMCLIENT_SVM_READ_WRITE, MEMCLIENT_SVM_WRITE_ONLY and
 * MEMCLIENT_SVM_READ_ONLY exclude each other, and none is READ_WRITE.
 */
static void allows_twelve_flag_words_of_sixteen_bits(void **state)
{
    unsigned allowed = 0;

    for (uint64_t flags = 0; flags < 1 << 16; flags++) {
        bool ok = ask(&full, 1, flags, 1, 0) == MEMCLIENT_SVM_RULE_NONE;

        assert_int_equal(ok, is_one_of_twelve(flags));
        allowed += ok;
    }
    assert_int_equal(allowed, 12);
}

static void refuses_every_higher_bit(void **state)
{
    for (unsigned bit = 16; bit < 64; bit++)
        assert_int_equal(ask(&full, 1, (uint64_t)1 << bit, 1, 0), MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS);
}

/*
 * memclient_svm_check() tells enum memclient_svm_rule: MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS, _ACCESS, _ATOMICS_ALONE; or
 * MEMCLIENT_SVM_RULE_NONE.
 */
static void names_the_rule_of_flags(void **state)
{
    /* CL_MEM_USE_HOST_PTR, _ALLOC_HOST_PTR, _COPY_HOST_PTR, _KERNEL_READ_AND_WRITE */
    for (unsigned bit = 3; bit < 6; bit++)
        assert_int_equal(ask(&full, 1, RW | 1U << bit, 1, 0), MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS);
    assert_int_equal(ask(&full, 1, 1 << 12, 1, 0), MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS);
    assert_int_equal(ask(&full, 1, RW | WO, 1, 0), MEMCLIENT_SVM_RULE_ACCESS);
    assert_int_equal(ask(&full, 1, RW | RO, 1, 0), MEMCLIENT_SVM_RULE_ACCESS);
    assert_int_equal(ask(&full, 1, WO | RO, 1, 0), MEMCLIENT_SVM_RULE_ACCESS);
    assert_int_equal(ask(&full, 1, RW | WO | RO, 1, 0), MEMCLIENT_SVM_RULE_ACCESS);
    assert_int_equal(ask(&full, 1, ATOMIC, 1, 0), MEMCLIENT_SVM_RULE_ATOMICS_ALONE);
    assert_int_equal(ask(&full, 1, RO | ATOMIC, 1, 0), MEMCLIENT_SVM_RULE_ATOMICS_ALONE);
}

/*
 * memclient_svm_check() of MEMCLIENT_SVM_FINE_GRAIN_BUFFER and MEMCLIENT_SVM_ATOMICS (enum memclient_svm_flag), by each
 * struct memclient_svm_device's capabilities (enum memclient_svm_capability): MEMCLIENT_SVM_CAN_COARSE_GRAIN_BUFFER,
 * MEMCLIENT_SVM_CAN_FINE_GRAIN_BUFFER, MEMCLIENT_SVM_CAN_ATOMICS; MEMCLIENT_SVM_CAN_FINE_GRAIN_SYSTEM is of no concern.
 */
static void asks_every_device_for_what_flags_need(void **state)
{
    const struct memclient_svm_device mixed[] = {full, fine, coarse};

    assert_int_equal(ask(mixed, 3, RW, 1, 0), MEMCLIENT_SVM_RULE_NONE);
    assert_int_equal(ask(mixed, 2, FINE, 1, 0), MEMCLIENT_SVM_RULE_NONE);
    assert_int_equal(ask(mixed, 3, FINE, 1, 0), MEMCLIENT_SVM_RULE_FINE_GRAIN);
    assert_int_equal(ask(mixed, 1, FINE | ATOMIC, 1, 0), MEMCLIENT_SVM_RULE_NONE);
    assert_int_equal(ask(mixed, 2, FINE | ATOMIC, 1, 0), MEMCLIENT_SVM_RULE_ATOMICS);
    assert_int_equal(ask(mixed, 3, FINE | ATOMIC, 1, 0), MEMCLIENT_SVM_RULE_FINE_GRAIN);
}

/* memclient_svm_check() */
static void needs_a_device_with_shared_memory(void **state)
{
    const struct memclient_svm_device mixed[] = {without, coarse};

    assert_int_equal(ask(NULL, 0, RW, 1, 0), MEMCLIENT_SVM_RULE_DEVICES);
    assert_int_equal(ask(&without, 1, RW, 1, 0), MEMCLIENT_SVM_RULE_DEVICES);
    assert_int_equal(ask(mixed, 2, RW, 1, 0), MEMCLIENT_SVM_RULE_NONE);
    assert_int_equal(ask(mixed, 2, FINE, 1, 0), MEMCLIENT_SVM_RULE_FINE_GRAIN);
}

/* memclient_svm_check(): size, by struct memclient_svm_device's max_alloc_size. */
static void bounds_sizes_by_every_device(void **state)
{
    const struct memclient_svm_device mixed[] = {full, embedded};

    assert_int_equal(ask(&full, 1, RW, 0, 0), MEMCLIENT_SVM_RULE_SIZE);
    assert_int_equal(ask(&full, 1, RW, MOST, 0), MEMCLIENT_SVM_RULE_NONE);
    assert_int_equal(ask(&full, 1, RW, MOST + 1, 0), MEMCLIENT_SVM_RULE_SIZE);
    assert_int_equal(ask(&full, 1, RW, UINT64_MAX, 0), MEMCLIENT_SVM_RULE_SIZE);
    assert_int_equal(ask(mixed, 2, RW, MOST / 2, 0), MEMCLIENT_SVM_RULE_NONE);
    assert_int_equal(ask(mixed, 2, RW, MOST / 2 + 1, 0), MEMCLIENT_SVM_RULE_SIZE);
}

/* memclient_svm_check(): alignment, by struct memclient_svm_device's largest_type. */
static void takes_powers_of_two_up_to_the_largest_type(void **state)
{
    const struct memclient_svm_device mixed[] = {full, embedded};

    for (uint32_t alignment = 0; alignment <= 4096; alignment++) {
        bool is_power = !(alignment & (alignment - 1));

        assert_int_equal(ask(&full, 1, RW, 1, alignment),
                         is_power && alignment <= 128 ? MEMCLIENT_SVM_RULE_NONE : MEMCLIENT_SVM_RULE_ALIGNMENT);
        assert_int_equal(ask(mixed, 2, RW, 1, alignment),
                         is_power && alignment <= 64 ? MEMCLIENT_SVM_RULE_NONE : MEMCLIENT_SVM_RULE_ALIGNMENT);
    }
    assert_int_equal(ask(&full, 1, RW, 1, UINT32_MAX), MEMCLIENT_SVM_RULE_ALIGNMENT);
    assert_int_equal(ask(&full, 1, RW, 1, (uint32_t)1 << 31), MEMCLIENT_SVM_RULE_ALIGNMENT);
}

/* memclient_svm_check(): struct memclient_svm_device's other_endian. */
static void refuses_the_other_byte_order(void **state)
{
    const struct memclient_svm_device mixed[] = {full, foreign};

    assert_int_equal(ask(mixed, 2, RW, 1, 0), MEMCLIENT_SVM_RULE_ENDIAN);
}

/* memclient_svm_check(): of n devices, flags, size and alignment; broken may be NULL. */
static void need_not_tell_the_rule(void **state)
{
    assert_int_equal(memclient_svm_check(1, &full, RW, 1, 0, NULL), 0);
    assert_int_equal(memclient_svm_check(1, &full, RW, 0, 0, NULL), -EINVAL);
    assert_string_equal(memclient_svm_error(), "size 0: ask for a byte at least");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allows_twelve_flag_words_of_sixteen_bits),
        cmocka_unit_test(refuses_every_higher_bit),
        cmocka_unit_test(names_the_rule_of_flags),
        cmocka_unit_test(asks_every_device_for_what_flags_need),
        cmocka_unit_test(needs_a_device_with_shared_memory),
        cmocka_unit_test(bounds_sizes_by_every_device),
        cmocka_unit_test(takes_powers_of_two_up_to_the_largest_type),
        cmocka_unit_test(refuses_the_other_byte_order),
        cmocka_unit_test(need_not_tell_the_rule),
    };

    return test_run(tests, NULL, NULL);
}
