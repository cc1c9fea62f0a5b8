/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_memory_copy and hsa_amd_memory_fill: every byte of the range and no other, at all sizes, by whatever way; and
 * what permissions forbid is a status. (Who owns coarse-grained memory is test-assign's.)
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/child.h"

#define BIG (96 * MIB) /* copied and filled by several threads, where there are several processors */

static char *from, *to; /* BIG and a page, of different nodes */

static int setup(void **state)
{
    int r = hsa_group_setup(state);

    assert_success(hsa_memory_allocate(regions[0][FINE], BIG + 4096, (void **)&from));
    assert_success(hsa_memory_allocate(regions[1][COARSE], BIG + 4096, (void **)&to));
    for (size_t i = 0; i < (BIG + 4096) / sizeof(uint64_t); i++)
        ((uint64_t *)(void *)from)[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    return r;
}

static int teardown(void **state)
{
    assert_success(hsa_memory_free(from));
    assert_success(hsa_memory_free(to));
    return hsa_group_teardown(state);
}

static void check_copy(size_t to_at, size_t from_at, size_t size)
{
    memset(to, 0x11, to_at + size + 64);
    assert_success(hsa_memory_copy(to + to_at, from + from_at, size));
    assert_memory_equal(to + to_at, from + from_at, size);
    for (size_t i = 0; i < to_at; i++)
        assert_int_equal(to[i], 0x11);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(to[to_at + size + i], 0x11);
}

/* hsa_memory_copy, dst, src, size: "Copy a block of memory from the location pointed to by src to the memory block
 * pointed to by dst". */
static void test_copy(void **state)
{
    const size_t sizes[] = {1, 63, 4096, MIB + 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 33 * MIB + 77, BIG};
    const size_t offsets[] = {0, 1, 31, 64};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (size_t i = 0; i < 4; i++)
            check_copy(offsets[i], offsets[(i + s) % 4], sizes[s]);
}

/* hsa_memory_copy, size: "If size is 0, no copy is performed and the function returns success"; INVALID_ARGUMENT "The
 * source or destination pointers are NULL". */
static void test_copy_arguments(void **state)
{
    char byte = 1, other = 2;

    assert_success(hsa_memory_copy(to, from, 0));
    assert_success(hsa_memory_copy(&byte, &other, 0));
    assert_int_equal(byte, 1);
    assert_status(hsa_memory_copy(NULL, &byte, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(&byte, NULL, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_copy((void *)8, (void *)8, 0));
    assert_status(hsa_memory_copy(NULL, &byte, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(&byte, NULL, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(NULL, NULL, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(to, from, SIZE_MAX), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_memory_copy, dst, src, size: just the "Number of bytes to copy", between HSA's and ordinary memory at any
 * address; src stays. */
static void test_copy_offsets(void **state)
{
    const size_t sizes[] = {1, 3, 63, 64, 65, 4095, 4096, 4097, MIB - 1, 20 * MIB + 5};
    char *ordinary = malloc(21 * MIB);

    assert_non_null(ordinary);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *at = to + 1 + i * 5, *wanted = from + i;
        size_t size = sizes[i];

        memset(to, 0, size + 128);
        memcpy(ordinary + 7, wanted, size);
        assert_success(hsa_memory_copy(at, ordinary + 7, size));
        assert_memory_equal(at, wanted, size);
        assert_memory_equal(ordinary + 7, wanted, size);
        assert_int_equal(at[-1], 0);
        assert_int_equal(at[size], 0);
        memset(ordinary, 0, size + 128);
        assert_success(hsa_memory_copy(ordinary, at, size));
        assert_memory_equal(ordinary, wanted, size);
        assert_int_equal(ordinary[size], 0);
    }
    free(ordinary);
}

/* hsa_memory_copy, src: "A valid pointer to the source of data": memory that is not HSA's as well. */
static void test_copy_host_memory(void **state)
{
    const size_t size = 20 * MIB;
    char *host = malloc(size);

    assert_non_null(host);
    assert_success(hsa_memory_copy(host, from, size));
    assert_memory_equal(host, from, size);
    memset(host, 7, size);
    assert_success(hsa_memory_copy(to, host, size));
    assert_memory_equal(to, host, size);
    assert_success(hsa_memory_copy(host, host + size / 2, size / 2));
    free(host);
}

/* hsa_memory_copy from and to virtual memory: as any agent may use the mapping, INVALID_ARGUMENT otherwise, also where
 * nothing is mapped. */
static void test_copy_mappings(void **state)
{
    const size_t size = 2 * MIB;
    hsa_amd_memory_access_desc_t access = {HSA_ACCESS_PERMISSION_NONE, agents[1]};
    hsa_amd_vmem_alloc_handle_t handle;
    char *va;

    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 3 * size, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], size, MEMORY_TYPE_NONE, 0, &handle));
    assert_success(hsa_amd_vmem_map(va + size, size, 0, handle, 0));
    for (int i = 0; i < 4; i++) {
        hsa_status_t status = HSA_STATUS_SUCCESS, no = HSA_STATUS_ERROR_INVALID_ARGUMENT;

        if (i) {
            access.permissions = (hsa_access_permission_t)i;
            assert_success(hsa_amd_vmem_set_access(va + size, size, &access, 1));
        }
        assert_status(hsa_memory_copy(va + size, from, size), i & 2 ? status : no);
        assert_status(hsa_amd_memory_fill(va + size, 1, 1), i & 2 ? status : no);
        assert_status(hsa_memory_copy(to, va + size, size), i & 1 ? status : no);
    }
    /* a part of it is only reserved */
    assert_status(hsa_memory_copy(to, va + size, size + 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(to, va + size - 1, size), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(va, from, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(va + 3 * size - 1, from, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_unmap(va + size, size));
    assert_status(hsa_memory_copy(to, va + size, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 3 * size));
}

/* ---- hsa_amd_memory_fill ----------------------------------------------------------------------------------------- */

static void check_fill(size_t at, size_t count)
{
    const uint32_t value = 0x01020304;

    memset(to, 0x11, at + count * sizeof(value) + 64);
    assert_success(hsa_amd_memory_fill(to + at, value, count));
    for (size_t i = 0; i < count; i++)
        if (memcmp(to + at + i * sizeof(value), &value, sizeof(value)) != 0)
            fail_msg("%zu of %zu at %zu is wrong", i, count, at);
    for (size_t i = 0; i < at; i++)
        assert_int_equal(to[i], 0x11);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(to[at + count * sizeof(value) + i], 0x11);
}

/* hsa_amd_memory_fill(ptr, value, count): SUCCESS, a pattern of 32 bits, count times. */
static void test_fill(void **state)
{
    const size_t counts[] = {1, 15, 1024, MIB, 16 * MIB - 1, 16 * MIB, 16 * MIB + 1, BIG / 4};

    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
        for (size_t at = 0; at < 64; at += 36)
            check_fill(at, counts[c]);
}

/* hsa_amd_memory_fill: INVALID_ARGUMENT "ptr is NULL or no multiple of 4"; count 0 is SUCCESS; INVALID_ALLOCATION for
 * what is not all HSA's. */
static void test_fill_errors(void **state)
{
    uint32_t host[16];
    char *small;

    assert_status(hsa_amd_memory_fill(NULL, 1, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_fill(to + 1, 1, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_fill(to + 2, 1, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    *(uint32_t *)(void *)to = 7;
    assert_success(hsa_amd_memory_fill(to, 1, 0));
    assert_int_equal(*(uint32_t *)(void *)to, 7);
    assert_status(hsa_amd_memory_fill(host, 1, 16), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_fill(to, 1, SIZE_MAX), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_fill(to, 1, SIZE_MAX / 4), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_allocate(regions[0][FINE], 10, (void **)&small));
    assert_success(hsa_amd_memory_fill(small, 1, 2));
    assert_status(hsa_amd_memory_fill(small, 1, 3), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_fill(small + 12, 1, 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_free(small));
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *copy_part(void *part)
{
    size_t size = 10 * MIB, at = (size_t)(uintptr_t)part * size;

    return (void *)(uintptr_t)hsa_memory_copy(to + at, from + at, size);
}

/* Many at once, each with threads of its own. */
static void test_threads(void **state)
{
    pthread_t threads[9];
    void *result;

    memset(to, 0, BIG);
    for (uintptr_t i = 0; i < 9; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_part, (void *)i), 0);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_success((hsa_status_t)(uintptr_t)result);
    }
    assert_memory_equal(to, from, 90 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),           cmocka_unit_test(test_copy_offsets),
        cmocka_unit_test(test_copy_arguments), cmocka_unit_test(test_copy_host_memory),
        cmocka_unit_test(test_copy_mappings),  cmocka_unit_test(test_fill),
        cmocka_unit_test(test_fill_errors),    cmocka_unit_test(test_threads),
    };

    return test_run(tests, setup, teardown);
}
