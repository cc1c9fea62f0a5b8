/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/umf/providers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <memclient/umf/pools/pool_proxy.h>

umf_memory_provider_handle_t provider_of(const umf_memory_provider_ops_t *ops)
{
    umf_memory_provider_handle_t provider = NULL;

    assert_success(umfMemoryProviderCreate(ops, NULL, &provider));
    assert_non_null(provider);
    return provider;
}

umf_memory_provider_handle_t mock_new(struct mock *mock)
{
    umf_memory_provider_handle_t provider = NULL;

    assert_success(umfMemoryProviderCreate(&mock_ops, mock, &provider));
    assert_non_null(provider);
    return provider;
}

umf_memory_pool_handle_t proxy_of(umf_memory_provider_handle_t provider)
{
    umf_memory_pool_handle_t pool = NULL;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_NONE, &pool));
    assert_non_null(pool);
    return pool;
}

unsigned mock_called(const struct mock *mock)
{
    unsigned called = 0;

    for (unsigned op = 0; op < MOCK_OPS; op++)
        if (mock->calls[op])
            called |= 1U << op;
    return called;
}

/* ---- the mock -------------------------------------------------------------------------------------------- */

#define PAGE ((size_t)4096)
#define KEY UINT64_C(0x4d4f434b4d4f434b)

struct mock_handle {
    uint64_t key;
    void *ptr;
    uint64_t size;
};
static_assert(sizeof(struct mock_handle) == MOCK_HANDLE_SIZE, "");

/* Leaves the function if it is to fail. */
#define called(mock, op)                              \
    do {                                              \
        (mock)->calls[op]++;                          \
        if ((mock)->fails[op] != UMF_RESULT_SUCCESS)  \
            return (mock)->fails[op];                 \
    } while (0)

static umf_result_t initialize(void *params, void **provider)
{
    *provider = params;
    return UMF_RESULT_SUCCESS;
}

static void finalize(void *provider)
{
    (void)provider;
}

static size_t pages_of(size_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

static void *map(size_t size)
{
    void *ptr = mmap(NULL, pages_of(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return ptr == MAP_FAILED ? NULL : ptr;
}

static umf_result_t do_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct mock *mock = provider;
    void *got;

    mock->size = size;
    mock->alignment = alignment;
    called(mock, MOCK_ALLOC);
    got = size <= SIZE_MAX / 2 ? map(size) : NULL;
    if (!got)
        return size ? UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY : UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    *ptr = got;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t do_free(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    mock->ptr = ptr;
    mock->size = size;
    called(mock, MOCK_FREE);
    if (ptr && munmap(ptr, pages_of(size)) < 0)
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    return UMF_RESULT_SUCCESS;
}

static void get_last_native_error(void *provider, const char **message, int32_t *error)
{
    ((struct mock *)provider)->calls[MOCK_LAST_NATIVE_ERROR]++;
    if (message)
        *message = "mock";
    if (error)
        *error = MOCK_NATIVE_ERROR;
}

static umf_result_t get_recommended_page_size(void *provider, size_t size, size_t *page_size)
{
    (void)size;
    called((struct mock *)provider, MOCK_RECOMMENDED_PAGE_SIZE);
    if (page_size)
        *page_size = 2 * PAGE;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t get_min_page_size(void *provider, void *ptr, size_t *page_size)
{
    ((struct mock *)provider)->ptr = ptr;
    called((struct mock *)provider, MOCK_MIN_PAGE_SIZE);
    if (page_size)
        *page_size = PAGE;
    return UMF_RESULT_SUCCESS;
}

static const char *get_name(void *provider)
{
    ((struct mock *)provider)->calls[MOCK_NAME]++;
    return "mock";
}

static umf_result_t purge_lazy(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    mock->ptr = ptr;
    mock->size = size;
    called(mock, MOCK_PURGE_LAZY);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t purge_force(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    mock->ptr = ptr;
    mock->size = size;
    called(mock, MOCK_PURGE_FORCE);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t merge(void *provider, void *low, void *high, size_t total)
{
    struct mock *mock = provider;

    mock->ptr = low;
    mock->first_size = (size_t)((char *)high - (char *)low);
    mock->size = total;
    called(mock, MOCK_MERGE);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t split(void *provider, void *ptr, size_t total, size_t first)
{
    struct mock *mock = provider;

    mock->ptr = ptr;
    mock->size = total;
    mock->first_size = first;
    called(mock, MOCK_SPLIT);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t get_ipc_handle_size(void *provider, size_t *size)
{
    called((struct mock *)provider, MOCK_IPC_SIZE);
    *size = sizeof(struct mock_handle);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t get_ipc_handle(void *provider, const void *ptr, size_t size, void *data)
{
    struct mock_handle handle = {.key = KEY, .ptr = (void *)(uintptr_t)ptr, .size = size};
    struct mock *mock = provider;

    mock->ipc_ptr = ptr;
    mock->ipc_size = size;
    called(mock, MOCK_IPC_GET);
    memcpy(data, &handle, sizeof(handle));
    return UMF_RESULT_SUCCESS;
}

static umf_result_t put_ipc_handle(void *provider, void *data)
{
    called((struct mock *)provider, MOCK_IPC_PUT);
    return ((struct mock_handle *)data)->key == KEY ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

static umf_result_t open_ipc_handle(void *provider, void *data, void **ptr)
{
    struct mock *mock = provider;
    struct mock_handle handle;

    called(mock, MOCK_IPC_OPEN);
    if (mock->on_open)
        mock->on_open();
    memcpy(&handle, data, sizeof(handle));
    if (handle.key != KEY)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *ptr = mock->opens_in_place ? handle.ptr : map(handle.size);
    if (!mock->opens_in_place)
        memcpy(*ptr, handle.ptr, handle.size);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t close_ipc_handle(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    if (mock->on_close)
        mock->on_close();
    called(mock, MOCK_IPC_CLOSE);
    if (!mock->opens_in_place && munmap(ptr, pages_of(size)) < 0)
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    return UMF_RESULT_SUCCESS;
}

const umf_memory_provider_ops_t mock_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = initialize,
    .finalize = finalize,
    .alloc = do_alloc,
    .free = do_free,
    .get_last_native_error = get_last_native_error,
    .get_recommended_page_size = get_recommended_page_size,
    .get_min_page_size = get_min_page_size,
    .get_name = get_name,
    .ext = {purge_lazy, purge_force, merge, split},
    .ipc = {get_ipc_handle_size, get_ipc_handle, put_ipc_handle, open_ipc_handle, close_ipc_handle},
};

/* ---- malloc() -------------------------------------------------------------------------------------------- */

static umf_result_t no_params(void *params, void **provider)
{
    (void)params;
    *provider = NULL;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t malloc_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    (void)provider;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    return posix_memalign(ptr, alignment, size) ? UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY : UMF_RESULT_SUCCESS;
}

static umf_result_t malloc_free(void *provider, void *ptr, size_t size)
{
    (void)provider;
    (void)size;
    free(ptr);
    return UMF_RESULT_SUCCESS;
}

static void no_native_error(void *provider, const char **message, int32_t *error)
{
    (void)provider;
    (void)message;
    (void)error;
}

static umf_result_t no_recommended_page_size(void *provider, size_t size, size_t *page_size)
{
    (void)provider;
    (void)size;
    (void)page_size;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t no_min_page_size(void *provider, void *ptr, size_t *page_size)
{
    (void)provider;
    (void)ptr;
    (void)page_size;
    return UMF_RESULT_SUCCESS;
}

static const char *malloc_name(void *provider)
{
    (void)provider;
    return "malloc";
}

const umf_memory_provider_ops_t malloc_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = no_params,
    .finalize = finalize,
    .alloc = malloc_alloc,
    .free = malloc_free,
    .get_last_native_error = no_native_error,
    .get_recommended_page_size = no_recommended_page_size,
    .get_min_page_size = no_min_page_size,
    .get_name = malloc_name,
};

/* ---- nothing --------------------------------------------------------------------------------------------- */

static umf_result_t null_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    (void)provider;
    (void)size;
    (void)alignment;
    *ptr = NULL;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t null_free(void *provider, void *ptr, size_t size)
{
    (void)provider;
    (void)ptr;
    (void)size;
    return UMF_RESULT_SUCCESS;
}

static const char *null_name(void *provider)
{
    (void)provider;
    return "null";
}

const umf_memory_provider_ops_t null_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = no_params,
    .finalize = finalize,
    .alloc = null_alloc,
    .free = null_free,
    .get_last_native_error = no_native_error,
    .get_recommended_page_size = no_recommended_page_size,
    .get_min_page_size = no_min_page_size,
    .get_name = null_name,
};
