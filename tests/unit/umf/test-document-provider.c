/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on providers, sentence by sentence, with private memory of the operating system and a provider that
 * counts. Each test quotes the function and what of it is checked.
 */
#include <pthread.h>
#include <string.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/support/memory.h"
#include "tests/unit/umf/document.h"

static size_t page;

static int setup(void **state)
{
    page = (size_t)page_size();
    return os_setup(state);
}

static char *alloc(size_t size)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(os, size, 0, &ptr));
    assert_non_null(ptr);
    return ptr;
}

/* ---- versions and results -------------------------------------------------------------------------------- */

/*  UMF_MAKE_VERSION(_major, _minor): generates a version; UMF_MAJOR_VERSION(_ver), UMF_MINOR_VERSION(_ver): extract
 * its parts; UMF_VERSION_CURRENT: that of the headers; umfGetCurrentVersion(): of the library, which umfInit() and
 * umfTearDown() begin and end. */
static void versions(void **state)
{
    (void)state;
    assert_int_equal(UMF_MAJOR_VERSION(UMF_MAKE_VERSION(3, 14)), 3);
    assert_int_equal(UMF_MINOR_VERSION(UMF_MAKE_VERSION(3, 14)), 14);
    assert_int_equal(UMF_VERSION_CURRENT, UMF_MAKE_VERSION(0, 9));
    assert_int_equal(umfInit(), 0);
    assert_int_equal(umfGetCurrentVersion(), UMF_VERSION_CURRENT);
    umfTearDown();
}

/* umf_result_t: UMF_RESULT_SUCCESS, UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
 * UMF_RESULT_ERROR_INVALID_ARGUMENT, UMF_RESULT_ERROR_INVALID_ALIGNMENT, UMF_RESULT_ERROR_NOT_SUPPORTED and
 * UMF_RESULT_ERROR_UNKNOWN come through as the provider returned them. */
static void results(void **state)
{
    const umf_result_t all[] = {
        UMF_RESULT_SUCCESS,
        UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
        UMF_RESULT_ERROR_INVALID_ARGUMENT,
        UMF_RESULT_ERROR_INVALID_ALIGNMENT,
        UMF_RESULT_ERROR_NOT_SUPPORTED,
        UMF_RESULT_ERROR_UNKNOWN,
    };
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        mock.fails[MOCK_PURGE_LAZY] = all[i];
        assert_result(umfMemoryProviderPurgeLazy(provider, NULL, 0), all[i]);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(all[i], all[k]);
    }
    umfMemoryProviderDestroy(provider);
}

/* ---- making one ------------------------------------------------------------------------------------------ */

static void *initialized_with;
static unsigned finalized;

static umf_result_t initialize(void *params, void **provider)
{
    initialized_with = params;
    return params ? mock_ops[MOCK_PAGES].initialize(params, provider) : UMF_RESULT_ERROR_UNKNOWN;
}

static void finalize(void *provider)
{
    assert_ptr_equal(provider, initialized_with);
    finalized++;
}

/* umfMemoryProviderCreate(ops, params, hProvider): UMF_RESULT_SUCCESS: hProvider is the newly created provider, an
 * umf_memory_provider_handle_t, and params was given to ops; umf_memory_provider_ops_t: initialize, finalize,
 * version. UMF_RESULT_ERROR_INVALID_ARGUMENT: ops or hProvider is NULL, or an operation is missing;
 * UMF_RESULT_ERROR_NOT_SUPPORTED: a version to come. umfMemoryProviderDestroy(hProvider): destroys it. umf_result_t:
 * UMF_RESULT_ERROR_INVALID_ARGUMENT: of arguments. */
static void create_and_destroy(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];
    umf_memory_provider_handle_t hProvider = NULL;

    (void)state;
    finalized = 0;
    assert_result(umfMemoryProviderCreate(NULL, &mock, &hProvider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCreate(&ops, &mock, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.initialize = NULL;
    assert_result(umfMemoryProviderCreate(&ops, &mock, &hProvider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.initialize = initialize;
    ops.finalize = NULL;
    assert_result(umfMemoryProviderCreate(&ops, &mock, &hProvider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.finalize = finalize;
    ops.version = UMF_MAKE_VERSION(1, 0);
    assert_result(umfMemoryProviderCreate(&ops, &mock, &hProvider), UMF_RESULT_ERROR_NOT_SUPPORTED);
    ops.version = UMF_VERSION_CURRENT;
    assert_result(umfMemoryProviderCreate(&ops, NULL, &hProvider), UMF_RESULT_ERROR_UNKNOWN);
    assert_null(hProvider);
    assert_int_equal(finalized, 0);

    assert_result(umfMemoryProviderCreate(&ops, &mock, &hProvider), UMF_RESULT_SUCCESS);
    assert_ptr_equal(initialized_with, &mock);
    assert_non_null(hProvider);
    umfMemoryProviderDestroy(hProvider);
    assert_int_equal(finalized, 1);
}

/* umfMemoryProviderCreate: providers that implement the API: umf_memory_provider_ops_t: alloc, free,
 * get_last_native_error, get_recommended_page_size, get_min_page_size, get_name, ext and ipc are each called by
 * their function, once; umf_memory_provider_ext_ops_t: purge_lazy, purge_force, allocation_merge, allocation_split;
 * umf_memory_provider_ipc_ops_t: get_ipc_handle_size, get_ipc_handle, put_ipc_handle, open_ipc_handle,
 * close_ipc_handle. */
static void operations(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    char handle[MOCK_HANDLE_SIZE];
    void *ptr, *opened;
    size_t size;

    (void)state;
    assert_success(umfMemoryProviderAlloc(provider, 2 * page, page, &ptr));
    umfMemoryProviderGetLastNativeError(provider, NULL, NULL);
    assert_success(umfMemoryProviderGetRecommendedPageSize(provider, 1, &size));
    assert_success(umfMemoryProviderGetMinPageSize(provider, NULL, &size));
    assert_string_equal(umfMemoryProviderGetName(provider), "mock");
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, page));
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, page));
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 2 * page, page));
    assert_success(umfMemoryProviderAllocationMerge(provider, ptr, (char *)ptr + page, 2 * page));
    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &size));
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, 2 * page, handle));
    assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, &opened));
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, 2 * page));
    assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    assert_success(umfMemoryProviderFree(provider, ptr, 2 * page));
    for (unsigned op = 0; op < MOCK_OPS; op++)
        assert_int_equal(mock.calls[op], 1);
    umfMemoryProviderDestroy(provider);
}

/* umfMemoryProviderGetName(hProvider): pointer to a string containing the name of the provider.
 * umfMemoryProviderCreate: predefined providers: umfOsMemoryProviderOps: memory of the operating system. */
static void get_name(void **state)
{
    (void)state;
    assert_string_equal(umfMemoryProviderGetName(os), "OS");
    assert_null(umfMemoryProviderGetName(NULL));
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* umfMemoryProviderAlloc(hProvider, size, alignment, ptr): UMF_RESULT_SUCCESS: size bytes with the alignment, which has
 * to be a multiple or a divider of the minimum page size; UMF_RESULT_ERROR_INVALID_ARGUMENT where it is neither or
 * hProvider is NULL; UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC where there is no such memory. umfMemoryProviderFree(
 * hProvider, ptr, size): UMF_RESULT_SUCCESS: frees it; UMF_RESULT_ERROR_INVALID_ARGUMENT: hProvider is NULL. */
static void alloc_and_free(void **state)
{
    const size_t alignments[] = {0, 1, page / 4, page, 3 * page, 8 * page};
    void *ptr = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(alignments) / sizeof(*alignments); i++) {
        const size_t alignment = alignments[i], size = page + 64;

        assert_result(umfMemoryProviderAlloc(os, size, alignment, &ptr), UMF_RESULT_SUCCESS);
        assert_int_equal((uintptr_t)ptr % (alignment ? alignment : 1), 0);
        memset(ptr, 1, size);
        assert_result(umfMemoryProviderFree(os, ptr, size), UMF_RESULT_SUCCESS);
    }
    ptr = NULL;
    assert_result(umfMemoryProviderAlloc(os, page, page + 1, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAlloc(NULL, page, 0, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAlloc(os, SIZE_MAX, 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_null(ptr);
    assert_result(umfMemoryProviderFree(NULL, ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* umfMemoryProviderGetRecommendedPageSize(hProvider, size, pageSize): UMF_RESULT_SUCCESS: for that allocation size;
 * umfMemoryProviderGetMinPageSize(hProvider, ptr, pageSize): UMF_RESULT_SUCCESS: of the region at ptr, or the
 * minimum of the provider if ptr is NULL; both UMF_RESULT_ERROR_INVALID_ARGUMENT: hProvider or pageSize is NULL. */
static void page_sizes(void **state)
{
    size_t least = 0, pageSize = 0;
    char *ptr = alloc(3 * page);

    (void)state;
    assert_result(umfMemoryProviderGetMinPageSize(os, NULL, &least), UMF_RESULT_SUCCESS);
    assert_int_equal(least, page);
    assert_result(umfMemoryProviderGetMinPageSize(os, ptr, &pageSize), UMF_RESULT_SUCCESS);
    assert_int_equal(pageSize, page);
    for (size_t size = 1; size < 64 * MIB; size *= 8) {
        assert_result(umfMemoryProviderGetRecommendedPageSize(os, size, &pageSize), UMF_RESULT_SUCCESS);
        assert_int_equal(pageSize % least, 0);
    }
    assert_result(umfMemoryProviderGetMinPageSize(NULL, ptr, &pageSize), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetMinPageSize(os, ptr, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetRecommendedPageSize(NULL, 1, &pageSize), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetRecommendedPageSize(os, 1, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(os, ptr, 3 * page));
}

/* umfMemoryProviderPurgeLazy(hProvider, ptr, size): UMF_RESULT_SUCCESS: the pages may be discarded, now or never;
 * UMF_RESULT_ERROR_INVALID_ALIGNMENT if ptr or size is not page-aligned; UMF_RESULT_ERROR_NOT_SUPPORTED if the
 * provider has no such operation; UMF_RESULT_ERROR_INVALID_ARGUMENT: hProvider or ptr is NULL. umf_result_t. */
static void purge_lazy(void **state)
{
    umf_memory_provider_handle_t cannot = mock_of(MOCK_NULL);
    char *ptr = alloc(4 * page);

    (void)state;
    memset(ptr, 1, 4 * page);
    assert_result(umfMemoryProviderPurgeLazy(os, ptr + page, 2 * page), UMF_RESULT_SUCCESS);
    for (size_t i = 0; i < 4 * page; i += page) /* the others' stay; these are what they were or zeros */
        assert_true(ptr[i] == 1 || (ptr[i] == 0 && i && i < 3 * page));
    ptr[page] = 2; /* which takes them back */
    assert_int_equal(ptr[page], 2);
    assert_result(umfMemoryProviderPurgeLazy(os, ptr + 1, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeLazy(os, ptr, page + 1), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeLazy(cannot, ptr, page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPurgeLazy(NULL, ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPurgeLazy(os, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(os, ptr, 4 * page));
    umfMemoryProviderDestroy(cannot);
}

/* umfMemoryProviderPurgeForce(hProvider, ptr, size): UMF_RESULT_SUCCESS: synchronous, the pages are guaranteed to be
 * zero-filled on the next access; UMF_RESULT_ERROR_INVALID_ALIGNMENT if ptr or size is not page-aligned;
 * UMF_RESULT_ERROR_NOT_SUPPORTED if the provider has no such operation. */
static void purge_force(void **state)
{
    umf_memory_provider_handle_t cannot = mock_of(MOCK_NULL);
    char *ptr = alloc(4 * page);

    (void)state;
    memset(ptr, 1, 4 * page);
    assert_result(umfMemoryProviderPurgeForce(os, ptr + page, 2 * page), UMF_RESULT_SUCCESS);
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(ptr[i], i < page || i >= 3 * page);
    assert_result(umfMemoryProviderPurgeForce(os, ptr + 1, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(os, ptr, page + 1), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(cannot, ptr, page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPurgeForce(NULL, ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(os, ptr, 4 * page));
    umfMemoryProviderDestroy(cannot);
}

/* umfMemoryProviderAllocationSplit(hProvider, ptr, totalSize, firstSize): UMF_RESULT_SUCCESS: 2 adjacent allocations
 * that are freed separately; UMF_RESULT_ERROR_INVALID_ARGUMENT: hProvider or ptr is NULL, or the sizes cannot be;
 * UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void split(void **state)
{
    umf_memory_provider_handle_t cannot = mock_of(MOCK_NULL);
    char *ptr = alloc(4 * page);

    (void)state;
    memset(ptr, 1, 4 * page);
    assert_result(umfMemoryProviderAllocationSplit(NULL, ptr, 4 * page, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(os, NULL, 4 * page, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(os, ptr, 4 * page, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(os, ptr, 4 * page, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(cannot, ptr, 4 * page, page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderAllocationSplit(os, ptr, 4 * page, page), UMF_RESULT_SUCCESS);
    assert_success(umfMemoryProviderFree(os, ptr, page));
    assert_int_equal(ptr[page], 1);
    assert_int_equal(ptr[4 * page - 1], 1);
    assert_success(umfMemoryProviderFree(os, ptr + page, 3 * page));
    umfMemoryProviderDestroy(cannot);
}

/* umfMemoryProviderAllocationMerge(hProvider, lowPtr, highPtr, totalSize): UMF_RESULT_SUCCESS: a single allocation
 * that is freed as a whole; UMF_RESULT_ERROR_INVALID_ARGUMENT: highPtr should be > lowPtr, totalSize the sum of both;
 * UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void merge(void **state)
{
    umf_memory_provider_handle_t cannot = mock_of(MOCK_NULL);
    char *lowPtr = alloc(4 * page), *highPtr = lowPtr + page;

    (void)state;
    assert_success(umfMemoryProviderAllocationSplit(os, lowPtr, 4 * page, page));
    assert_result(umfMemoryProviderAllocationMerge(NULL, lowPtr, highPtr, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(os, NULL, highPtr, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(os, lowPtr, NULL, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(os, lowPtr, lowPtr, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(os, highPtr, lowPtr, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(os, lowPtr, highPtr, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(cannot, lowPtr, highPtr, 4 * page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderAllocationMerge(os, lowPtr, highPtr, 4 * page), UMF_RESULT_SUCCESS);
    memset(lowPtr, 1, 4 * page);
    assert_success(umfMemoryProviderFree(os, lowPtr, 4 * page));
    umfMemoryProviderDestroy(cannot);
}

/* ---- failures -------------------------------------------------------------------------------------------- */

static void *ask_elsewhere(void *argument)
{
    const char *text = NULL;
    int32_t number = -1;

    umfMemoryProviderGetLastNativeError(os, &text, &number);
    assert_int_equal(number, UMF_OS_RESULT_SUCCESS);
    assert_string_equal(text, "success");
    return argument;
}

/* umfMemoryProviderGetLastNativeError(hProvider, ppMessage, pError): what the provider reported when it returned
 * UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC; stored in thread-local storage; the string in ppMessage is null
 * terminated and the provider's; it may be called from simultaneous threads. umf_result_t:
 * UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC. Threads that had none see UMF_OS_RESULT_SUCCESS of
 * umf_os_memory_provider_native_error_t. */
static void native_error(void **state)
{
    const char *ppMessage = NULL;
    int32_t pError = 0;
    void *ptr = NULL;
    pthread_t threads[4];

    (void)state;
    assert_result(umfMemoryProviderAlloc(os, SIZE_MAX, 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_elsewhere, NULL), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    umfMemoryProviderGetLastNativeError(os, &ppMessage, &pError);
    assert_int_equal(pError, UMF_OS_RESULT_ERROR_ALLOC_FAILED);
    assert_true(strlen(ppMessage) > strlen("memory allocation failed"));
    /* another one takes its place */
    assert_result(umfMemoryProviderFree(os, (void *)1, page), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderGetLastNativeError(os, &ppMessage, &pError);
    assert_int_equal(pError, UMF_OS_RESULT_ERROR_FREE_FAILED);
}

static pthread_barrier_t within, go_on;

static void block(void)
{
    pthread_barrier_wait(&within);
    pthread_barrier_wait(&go_on);
}

static void *open_blocked(void *argument)
{
    umf_memory_provider_handle_t provider = argument;
    char handle[MOCK_HANDLE_SIZE] = {0};
    void *ptr;

    return umfMemoryProviderOpenIPCHandle(provider, handle, &ptr) == UMF_RESULT_SUCCESS ? provider : NULL;
}

/* umfMemoryProviderGetLastNativeError and umfGetLastFailedMemoryProvider are lock-free: they answer while another
 * thread is held up within the provider. */
static void lock_free(void **state)
{
    struct mock mock = {.on_open = block};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    pthread_t thread;
    int32_t error = 0;
    void *opened;

    (void)state;
    pthread_barrier_init(&within, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, open_blocked, provider), 0);
    pthread_barrier_wait(&within);
    umfMemoryProviderGetLastNativeError(provider, NULL, &error);
    assert_int_equal(error, MOCK_NATIVE_ERROR);
    assert_result(umfMemoryProviderPurgeLazy(os, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), os);
    pthread_barrier_wait(&go_on);
    assert_int_equal(pthread_join(thread, &opened), 0);
    assert_null(opened); /* its bytes were no handle */
    pthread_barrier_destroy(&within);
    pthread_barrier_destroy(&go_on);
    umfMemoryProviderDestroy(provider);
}

static void *last_failed_elsewhere(void *argument)
{
    (void)argument;
    return umfGetLastFailedMemoryProvider();
}

/* umfGetLastFailedMemoryProvider: the last provider that returned a status other than UMF_RESULT_SUCCESS on the calling
 * thread; stored in thread local storage; updated every time. */
static void last_failed(void **state)
{
    umf_memory_provider_handle_t cannot = mock_of(MOCK_NULL);
    char *ptr = alloc(page);
    pthread_t thread;
    void *elsewhere;

    (void)state;
    assert_result(umfMemoryProviderPurgeLazy(os, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), os);
    assert_result(umfMemoryProviderPurgeLazy(cannot, ptr, page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), cannot);
    assert_result(umfMemoryProviderFree(os, ptr, page), UMF_RESULT_SUCCESS);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), cannot);
    assert_int_equal(pthread_create(&thread, NULL, last_failed_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, &elsewhere), 0);
    assert_null(elsewhere);
    umfMemoryProviderDestroy(cannot);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, os_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(versions),
        TEST(results),
        TEST(create_and_destroy),
        TEST(operations),
        TEST(get_name),
        TEST(alloc_and_free),
        TEST(page_sizes),
        TEST(purge_lazy),
        TEST(purge_force),
        TEST(split),
        TEST(merge),
        TEST(native_error),
        TEST(lock_free),
        TEST(last_failed),
    };

    return test_run(tests, NULL, NULL);
}
