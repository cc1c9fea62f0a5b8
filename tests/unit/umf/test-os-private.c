/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private memory of the OS provider: alignments and sizes, what may be freed, protections, purging, splitting, page
 * sizes, native errors, and parameters. There is no broker, and none is called.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"

static umf_memory_provider_handle_t provider;
static size_t page;

static umf_memory_provider_handle_t make(umf_os_memory_provider_params_t params)
{
    umf_memory_provider_handle_t made;

    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &made));
    return made;
}

static int setup(void **state)
{
    umf_profile(UMF_MEMORYD_PROFILE_DOCUMENT);
    page = (size_t)page_size();
    provider = make(umfOsMemoryProviderParamsDefault());
    return 0;
}

static int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    return 0;
}

static char *alloc(size_t size, size_t alignment)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(provider, size, alignment, &ptr));
    assert_non_null(ptr);
    return ptr;
}

/* Which pages are mapped. */
static bool is_mapped(const void *ptr)
{
    unsigned char resident;

    return !mincore((void *)((uintptr_t)ptr / page * page), 1, &resident);
}

/* Bytes of it that have pages. */
static size_t resident(void *ptr, size_t size)
{
    unsigned char pages[256];
    size_t n = 0;

    assert_true(size / page <= sizeof(pages));
    assert_ok(mincore(ptr, size, pages));
    for (size_t i = 0; i < size / page; i++)
        n += (pages[i] & 1) * page;
    return n;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

/* umfMemoryProviderCreate; umfMemoryProviderGetRecommendedPageSize, hProvider, pageSize;
 * umfMemoryProviderGetMinPageSize, hProvider, pageSize; umfMemoryProviderGetName, hProvider; umfOsMemoryProviderOps */
static void test_names_and_pages(void **state)
{
    size_t min = 0, best = 0, of = 0;
    char *ptr = alloc(page, 0);

    assert_string_equal(umfMemoryProviderGetName(provider), "OS");
    assert_success(umfMemoryProviderGetMinPageSize(provider, NULL, &min));
    assert_int_equal(min, page);
    assert_success(umfMemoryProviderGetMinPageSize(provider, ptr, &of));
    assert_int_equal(of, page);
    assert_success(umfMemoryProviderGetRecommendedPageSize(provider, 0, &best));
    assert_int_equal(best, page);
    assert_success(umfMemoryProviderGetRecommendedPageSize(provider, 64 * MIB, &best));
    assert_true(best >= min && best % min == 0);
    assert_true(best == page || best == thp_size());
    for (size_t size = 1; size < 64 * MIB; size *= 8) {
        assert_success(umfMemoryProviderGetRecommendedPageSize(provider, size, &best));
        assert_int_equal(best % min, 0);
    }
    assert_result(umfMemoryProviderGetMinPageSize(provider, NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetRecommendedPageSize(provider, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, page));
}

static void expect_no_provider(const umf_os_memory_provider_params_t *params)
{
    umf_memory_provider_handle_t none = NULL;

    assert_result(umfMemoryProviderCreate(umfOsMemoryProviderOps(), (void *)(uintptr_t)params, &none),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(none);
}

/* umf_mem_protection_flags_t, UMF_PROTECTION_MAX; umfOsMemoryProviderOps, INVALID_ARGUMENT */
static void test_parameters(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    assert_int_equal(params.protection, UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    assert_int_equal(params.visibility, UMF_MEM_MAP_PRIVATE);
    assert_int_equal(params.numa_mode, UMF_NUMA_MODE_DEFAULT);
    assert_true(!params.shm_name && !params.numa_list && !params.numa_list_len && !params.part_size &&
                !params.partitions && !params.partitions_len);
    expect_no_provider(NULL);
    params.protection = 0x10;
    expect_no_provider(&params);
    params.protection = UMF_PROTECTION_READ | 0x80000000;
    expect_no_provider(&params);
    params = umfOsMemoryProviderParamsDefault();
    params.visibility = (umf_memory_visibility_t)0;
    expect_no_provider(&params);
    params.visibility = (umf_memory_visibility_t)3;
    expect_no_provider(&params);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* umfMemoryProviderAlloc, hProvider, size, alignment; umfMemoryProviderFree, hProvider, size */
static void test_alignments(void **state)
{
    const size_t good[] = {0, 1, 8, page / 2, page, 2 * page, 3 * page, 5 * page, 512 * page, 4 * MIB};
    const size_t bad[] = {3, page - 1, page + 1, page + page / 2, 3 * page + 1};
    const size_t sizes[] = {1, page / 2, page, page + 64, 3 * page, 100 * page};
    void *ptr;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            char *at = alloc(sizes[k], good[i]);

            assert_int_equal((uintptr_t)at % (good[i] ? good[i] : 1), 0);
            assert_int_equal((uintptr_t)at % page, 0);
            for (size_t n = 0; n < sizes[k]; n += page)
                assert_int_equal(at[n], 0);
            memset(at, 1, sizes[k]);
            assert_success(umfMemoryProviderFree(provider, at, sizes[k]));
            assert_false(is_mapped(at));
            assert_false(is_mapped(at + sizes[k] - 1));
        }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        ptr = &ptr;
        assert_result(umfMemoryProviderAlloc(provider, page, bad[i], &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_ptr_equal(ptr, &ptr);
    }
    assert_result(umfMemoryProviderAlloc(provider, page, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* umfMemoryProviderAlloc, MEMORY_PROVIDER_SPECIFIC */
static void test_impossible(void **state)
{
    const size_t huge = SIZE_MAX / page * page;
    void *ptr = &ptr;

    assert_native(provider, umfMemoryProviderAlloc(provider, SIZE_MAX, 0, &ptr), UMF_OS_RESULT_ERROR_ALLOC_FAILED,
                  "memory allocation failed: ");
    assert_native(provider, umfMemoryProviderAlloc(provider, SIZE_MAX / 2, 0, &ptr), UMF_OS_RESULT_ERROR_ALLOC_FAILED,
                  "memory allocation failed: ");
    assert_native(provider, umfMemoryProviderAlloc(provider, 0, 0, &ptr), 1001, "memory allocation failed: ");
    assert_native(provider, umfMemoryProviderAlloc(provider, page, huge, &ptr), 1001, "memory allocation failed: ");
    assert_ptr_equal(ptr, &ptr);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

static void test_freeing(void **state)
{
    char *ptr = alloc(10 * page, 0);
    void *strange;

    assert_success(umfMemoryProviderFree(provider, NULL, 0));
    assert_native(provider, umfMemoryProviderFree(provider, (void *)1, 0), UMF_OS_RESULT_ERROR_FREE_FAILED,
                  "memory deallocation failed: ");
    assert_native(provider, umfMemoryProviderFree(provider, (void *)1, page + 64), 1004, "memory deallocation failed");
    assert_native(provider, umfMemoryProviderFree(provider, ptr, 0), 1004, "memory deallocation failed");
    assert_native(provider, umfMemoryProviderFree(provider, ptr, SIZE_MAX), 1004, "memory deallocation failed");
    /* a smaller size frees whole pages */
    assert_success(umfMemoryProviderFree(provider, ptr, page / 4));
    assert_false(is_mapped(ptr));
    assert_true(is_mapped(ptr + page));
    assert_result(umfMemoryProviderFree(provider, ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderFree(provider, ptr, 10 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    /* a hole in the middle, and then the two ends */
    assert_success(umfMemoryProviderFree(provider, ptr + 4 * page, page));
    ptr[3 * page] = ptr[5 * page] = 1;
    assert_success(umfMemoryProviderFree(provider, ptr + page, 3 * page));
    assert_success(umfMemoryProviderFree(provider, ptr + 5 * page, 5 * page));
    assert_result(umfMemoryProviderFree(provider, ptr + 5 * page, 5 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    /* another's memory stays */
    strange = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(strange != MAP_FAILED);
    assert_result(umfMemoryProviderFree(provider, strange, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_true(is_mapped(strange));
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderFree(provider, strange, page));
    assert_true(is_mapped(strange));
    assert_int_equal(munmap(strange, page), 0);
}

/* Programs written for upstream free less than they have, and free twice. */
static void test_free_upstream(void **state)
{
    char *ptr = alloc(1024 * page, 0);

    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderFree(provider, ptr, 1024));
    assert_success(umfMemoryProviderFree(provider, ptr, 1024));
    assert_success(umfMemoryProviderFree(provider, ptr, 1024 * page));
    assert_success(umfMemoryProviderFree(provider, ptr, 1024 * page));
    assert_native(provider, umfMemoryProviderFree(provider, (void *)1, page), 1004, "memory deallocation failed: ");
    assert_false(is_mapped(ptr + 1023 * page));
}

static void test_end_frees(void **state)
{
    umf_memory_provider_handle_t short_lived = make(umfOsMemoryProviderParamsDefault());
    void *ptr;

    assert_success(umfMemoryProviderAlloc(short_lived, 4 * page, 0, &ptr));
    /* each provider frees only its own memory */
    assert_result(umfMemoryProviderFree(provider, ptr, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(short_lived);
    assert_false(is_mapped(ptr));
}

/* ---- protection -------------------------------------------------------------------------------------------------- */

static umf_memory_provider_handle_t make_protected(unsigned protection)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.protection = protection;
    return make(params);
}

static void test_protections(void **state)
{
    umf_check_protections(make_protected);
}

#if defined(__x86_64__)
static void test_execute(void **state)
{
    const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; /* mov $42, %eax; ret */
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t executable;
    int (*function)(void);
    void *ptr;

    params.protection |= UMF_PROTECTION_EXEC;
    executable = make(params);
    assert_success(umfMemoryProviderAlloc(executable, page, 0, &ptr));
    memcpy(ptr, code, sizeof(code));
    memcpy(&function, &ptr, sizeof(ptr));
    assert_int_equal(function(), 42);
    umfMemoryProviderDestroy(executable);
}
#endif

/* ---- purging ----------------------------------------------------------------------------------------------------- */

/* umf_result_t; umfMemoryProviderPurgeLazy, hProvider; umfMemoryProviderPurgeForce, hProvider */
static void test_purge(void **state)
{
    const size_t size = 256 * page;
    char *ptr = alloc(size, 0);

    memset(ptr, 1, size);
    assert_int_equal(resident(ptr, size), size);
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, size));
    assert_int_equal(resident(ptr, size), 0);
    for (size_t n = 0; n < size; n += page)
        assert_int_equal(ptr[n], 0);
    memset(ptr, 2, size);
    assert_success(umfMemoryProviderPurgeForce(provider, ptr + page, page));
    assert_true(ptr[0] == 2 && ptr[page - 1] == 2 && ptr[page] == 0 && ptr[2 * page - 1] == 0 && ptr[2 * page] == 2);
    memset(ptr, 3, 4 * page);
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr + page, 2 * page));
    for (size_t i = 0; i < 4 * page; i += page) /* the others stay; these keep their contents or are zero */
        assert_true(ptr[i] == 3 || (ptr[i] == 0 && i && i < 3 * page));
    ptr[page] = 2; /* writing takes the page back */
    assert_int_equal(ptr[page], 2);
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, size));
    assert_true(ptr[0] == 3 || ptr[0] == 0);
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, 0));
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, 0));
    assert_result(umfMemoryProviderPurgeLazy(provider, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPurgeLazy(provider, (void *)1, 1), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, ptr + 1, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, ptr, page + 64), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeLazy(provider, ptr, page + 64), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, size));
    assert_native(provider, umfMemoryProviderPurgeLazy(provider, ptr, page), UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED,
                  "lazy purging failed: ");
    assert_native(provider, umfMemoryProviderPurgeForce(provider, ptr, page), UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED,
                  "force purging failed: ");
}

static void test_purge_upstream(void **state)
{
    char *ptr = alloc(page + 64, 0);

    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    ptr[page] = ptr[0] = 1;
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, page + 64));
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, page + 64));
    assert_true(!ptr[page] && !ptr[0]);
    assert_native(provider, umfMemoryProviderPurgeLazy(provider, (void *)1, 1), 1005, "lazy purging failed: ");
    assert_native(provider, umfMemoryProviderPurgeForce(provider, (void *)1, 1), 1006, "force purging failed: ");
    assert_result(umfMemoryProviderPurgeForce(provider, NULL, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, page + 64));
}

/* ---- splitting --------------------------------------------------------------------------------------------------- */

/* umfMemoryProviderAllocationSplit, hProvider, totalSize, firstSize; umfMemoryProviderAllocationMerge, hProvider,
 * lowPtr, highPtr, totalSize */
static void test_split_and_merge(void **state)
{
    char *ptr = alloc(8 * page, 0);

    memset(ptr, 7, 8 * page);
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 8 * page, 2 * page));
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr + 2 * page, 6 * page, 2 * page));
    assert_success(umfMemoryProviderAllocationMerge(provider, ptr, ptr + 2 * page, 4 * page));
    assert_int_equal(ptr[8 * page - 1], 7);
    assert_success(umfMemoryProviderFree(provider, ptr, 4 * page));
    assert_int_equal(ptr[4 * page], 7);
    assert_result(umfMemoryProviderAllocationMerge(provider, ptr, ptr + 4 * page, 8 * page),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, ptr, 8 * page, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderAllocationMerge(provider, ptr, ptr + 4 * page, 8 * page));
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 8 * page, page));
    assert_success(umfMemoryProviderFree(provider, ptr + 4 * page, 4 * page));
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

static void test_no_handles(void **state)
{
    char *ptr = alloc(page, 0), data[1024] = {0};
    void *opened;
    size_t size = 0;

    assert_result(umfMemoryProviderGetIPCHandleSize(provider, &size), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, page, data), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPutIPCHandle(provider, data), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, data, &opened), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, ptr, page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &size));
    assert_true(size > 0 && size <= 1024);
    assert_result(umfMemoryProviderGetIPCHandleSize(provider, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, page, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(provider, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, data, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, page));
}

/* ---- native errors and threads ----------------------------------------------------------------------------------- */

static void *other_thread(void *arg)
{
    const char *text = NULL;
    int32_t number = 0;
    void *ptr;

    (void)arg;
    umfMemoryProviderGetLastNativeError(provider, &text, &number);
    assert_int_equal(number, UMF_OS_RESULT_SUCCESS);
    assert_string_equal(text, "success");
    assert_null(umfGetLastFailedMemoryProvider());
    assert_native(provider, umfMemoryProviderAlloc(provider, SIZE_MAX, 0, &ptr), 1001, "memory allocation failed: ");
    return NULL;
}

/* umf_result_t, MEMORY_PROVIDER_SPECIFIC; umfMemoryProviderGetLastNativeError, hProvider, ppMessage, pError,
 * MEMORY_PROVIDER_SPECIFIC; umf_os_memory_provider_native_error_t, UMF_OS_RESULT_SUCCESS */
static void test_errors_are_a_threads(void **state)
{
    pthread_t thread;
    const char *text = NULL;
    int32_t number = 0;

    assert_native(provider, umfMemoryProviderFree(provider, (void *)1, 1), 1004, "memory deallocation failed: ");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    umfMemoryProviderGetLastNativeError(provider, NULL, &number);
    assert_int_equal(number, 1004);
    umfMemoryProviderGetLastNativeError(provider, &text, NULL);
    assert_non_null(strstr(text, ": "));
    umfMemoryProviderGetLastNativeError(provider, NULL, NULL);
    assert_int_equal(UMF_OS_RESULT_SUCCESS, UMF_OS_RESULTS_START_FROM);
}

static void *churn(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < 500; i++) {
        size_t n = 2 + (seed = seed * 1103515245 + 12345) / 65536 % 20;
        void *ptr;

        assert_success(umfMemoryProviderAlloc(provider, n * page, seed % 2 ? 0 : 4 * page, &ptr));
        *(char *)ptr = 1;
        assert_success(umfMemoryProviderFree(provider, (char *)ptr + page, (n - 1) * page));
        assert_success(umfMemoryProviderFree(provider, ptr, page));
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void in_child(int channel, void *context)
{
    void *ptr;

    (void)channel;
    *(char *)context = 6; /* its own copy */
    CHECK(umfMemoryProviderAlloc(provider, page, 0, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(umfMemoryProviderFree(provider, ptr, page) == UMF_RESULT_SUCCESS);
    CHECK(umfMemoryProviderFree(provider, context, page) == UMF_RESULT_SUCCESS);
}

/* umf_memory_visibility_t, UMF_MEM_MAP_PRIVATE */
static void test_fork(void **state)
{
    char *ptr = alloc(page, 0);

    *ptr = 5;
    child_run(in_child, ptr);
    assert_int_equal(*ptr, 5);
    assert_success(umfMemoryProviderFree(provider, ptr, page));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names_and_pages),
        TEST(test_parameters),
        TEST(test_alignments),
        TEST(test_impossible),
        TEST(test_freeing),
        TEST(test_free_upstream),
        TEST(test_end_frees),
        TEST(test_protections),
#if defined(__x86_64__)
        TEST(test_execute),
#endif
        TEST(test_purge),
        TEST(test_purge_upstream),
        TEST(test_split_and_merge),
        TEST(test_no_handles),
        TEST(test_errors_are_a_threads),
        TEST(test_threads),
        TEST(test_fork),
    };

    /* there is no broker to be found */
    setenv("MEMORYD_SOCKET", "/nonexistent/socket", 1);
    return test_run(tests, NULL, NULL);
}
