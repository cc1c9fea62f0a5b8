/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deallocation callbacks: hsa_amd_register_deallocation_callback and hsa_amd_deregister_deallocation_callback.
 */
#include "tests/unit/hsa/hsa.h"

#include <string.h>

/* What was called, with what. */
static struct call {
    void *ptr;
    void *data;
    int which;
} calls[16];
static int n_calls;

static void note(void *ptr, void *data, int which)
{
    assert_in_range(n_calls, 0, 15);
    calls[n_calls++] = (struct call){ptr, data, which};
}

static void first(void *ptr, void *data)
{
    note(ptr, data, 1);
}

static void second(void *ptr, void *data)
{
    note(ptr, data, 2);
}

static char *allocate(size_t size)
{
    void *ptr = NULL;

    n_calls = 0;
    assert_success(hsa_memory_allocate(regions[0][FINE], size, &ptr));
    return ptr;
}

/* hsa_amd_register_deallocation_callback(ptr, callback, user_data): SUCCESS. ptr: any address of the allocation, and
 * what the callback gets; user_data likewise; in the order of registration, and as often as registered. */
static void test_calls(void **state)
{
    char *ptr = allocate(8192);
    int data;

    assert_success(hsa_amd_register_deallocation_callback(ptr + 100, first, &data));
    assert_success(hsa_amd_register_deallocation_callback(ptr, second, NULL));
    assert_success(hsa_amd_register_deallocation_callback(ptr + 100, first, ptr));
    assert_int_equal(n_calls, 0);
    assert_success(hsa_amd_memory_pool_free(ptr));
    assert_int_equal(n_calls, 3);
    assert_memory_equal(&calls[0], (&(struct call){ptr + 100, &data, 1}), sizeof(void *) * 2);
    assert_int_equal(calls[0].which, 1);
    assert_ptr_equal(calls[1].ptr, ptr);
    assert_null(calls[1].data);
    assert_int_equal(calls[1].which, 2);
    assert_ptr_equal(calls[2].data, ptr);
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(n_calls, 3);
}

/* hsa_amd_register_deallocation_callback: INVALID_ARGUMENT "ptr or callback is NULL"; INVALID_ALLOCATION "ptr is in no
 * allocation". */
static void test_register_errors(void **state)
{
    char *ptr = allocate(100);

    assert_status(hsa_amd_register_deallocation_callback(NULL, first, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_register_deallocation_callback(ptr, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_register_deallocation_callback(ptr + 100, first, NULL), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_register_deallocation_callback(&ptr, first, NULL), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_register(&ptr, sizeof(ptr)));
    assert_status(hsa_amd_register_deallocation_callback(&ptr, first, NULL), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_deregister(&ptr, sizeof(ptr)));
    assert_success(hsa_memory_free(ptr));
    assert_status(hsa_amd_register_deallocation_callback(ptr, first, NULL), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(n_calls, 0);
}

/* hsa_amd_deregister_deallocation_callback(ptr, callback): SUCCESS, that one of them; INVALID_ARGUMENT for what was not
 * registered so. */
static void test_deregister(void **state)
{
    char *ptr = allocate(100);

    assert_success(hsa_amd_register_deallocation_callback(ptr, first, NULL));
    assert_success(hsa_amd_register_deallocation_callback(ptr, second, NULL));
    assert_status(hsa_amd_deregister_deallocation_callback(NULL, first), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(ptr, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(ptr + 1, first), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(&ptr, first), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_deregister_deallocation_callback(ptr, first));
    assert_status(hsa_amd_deregister_deallocation_callback(ptr, first), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(n_calls, 1);
    assert_int_equal(calls[0].which, 2);
    assert_status(hsa_amd_deregister_deallocation_callback(ptr, second), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* ---- what a callback may do -------------------------------------------------------------------------------------- */

static void free_again(void *ptr, void *data)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    (void)data;
    n_calls++;
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_register_deallocation_callback(ptr, first, NULL), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_int_equal(*(char *)ptr, 0x5a);
}

/* "when the allocation is already unknown to the runtime and its memory still there" */
static void test_is_unknown(void **state)
{
    char *ptr = allocate(MIB);

    memset(ptr, 0x5a, MIB);
    assert_success(hsa_amd_register_deallocation_callback(ptr, free_again, NULL));
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(n_calls, 1);
}

static void nest(void *ptr, void *data)
{
    intptr_t depth = (intptr_t)data;
    void *other;

    n_calls++;
    assert_success(hsa_memory_allocate(regions[1][COARSE], MIB, &other));
    assert_ptr_not_equal(other, ptr);
    if (depth)
        assert_success(hsa_amd_register_deallocation_callback(other, nest, (void *)(depth - 1)));
    assert_success(hsa_memory_free(other));
}

/* "It may call everything here": allocate, register, and free, which calls again. */
static void test_nested(void **state)
{
    char *ptr = allocate(MIB);

    assert_success(hsa_amd_register_deallocation_callback(ptr, nest, (void *)8));
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(n_calls, 9);
}

static void shut_down(void *ptr, void *data)
{
    (void)ptr;
    n_calls++;
    assert_success(hsa_shut_down());
    if (data)
        assert_success(hsa_init());
}

/* Even the last hsa_shut_down(), with or without another hsa_init(). */
static void test_shut_down(void **state)
{
    char *ptr = allocate(MIB);

    assert_success(hsa_amd_register_deallocation_callback(ptr, shut_down, NULL));
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(n_calls, 1);
    hsa_nothing_left(state);
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_success(hsa_init());
    ptr = allocate(MIB);
    assert_success(hsa_amd_register_deallocation_callback(ptr, shut_down, ptr));
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(n_calls, 1);
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_shut_down frees memory and calls nobody. */
static void test_shut_down_calls_nobody(void **state)
{
    char *ptr = allocate(MIB);

    assert_success(hsa_amd_register_deallocation_callback(ptr, first, NULL));
    assert_success(hsa_shut_down());
    assert_success(hsa_init());
    assert_int_equal(n_calls, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_calls),
        TEST(test_register_errors),
        TEST(test_deregister),
        TEST(test_is_unknown),
        TEST(test_nested),
        TEST(test_shut_down),
        TEST(test_shut_down_calls_nobody),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
