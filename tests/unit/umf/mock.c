/* SPDX-License-Identifier: Apache-2.0 */
/* See mock.h. */
#include "tests/unit/umf/mock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_proxy.h>

#include "base/align.h"

#define KEY UINT64_C(0x4d4f434b4d4f434b)

struct mock_handle {
    uint64_t key;
    void *ptr;
    uint64_t size;
};
static_assert(sizeof(struct mock_handle) == MOCK_HANDLE_SIZE, "");

/* Returns from the function if it is to fail. */
#define called(mock, op)                             \
    do {                                             \
        (mock)->calls[op]++;                         \
        if ((mock)->fails[op] != UMF_RESULT_SUCCESS) \
            return (mock)->fails[op];                \
    } while (0)

/* ---- what all of them can ---------------------------------------------------------------------------------------- */

static umf_result_t initialize(void *params, enum mock_kind kind, void **provider)
{
    static struct mock nobodys[MOCK_KINDS] = {{.kind = MOCK_PAGES}, {.kind = MOCK_MALLOC}, {.kind = MOCK_NULL}};

    *provider = params ? params : &nobodys[kind];
    return UMF_RESULT_SUCCESS;
}

static umf_result_t initialize_pages(void *params, void **provider)
{
    return initialize(params, MOCK_PAGES, provider);
}

static umf_result_t initialize_malloc(void *params, void **provider)
{
    return initialize(params, MOCK_MALLOC, provider);
}

static umf_result_t initialize_null(void *params, void **provider)
{
    return initialize(params, MOCK_NULL, provider);
}

static void finalize(void *provider)
{
    (void)provider;
}

/* Maps pages at any alignment, and unmaps the excess. */
static void *map_pages(size_t size, size_t alignment, int protection)
{
    size_t length = page_align_up(size), slack = alignment > page_size() ? alignment : 0;
    char *there = mmap(NULL, length + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *ptr;

    if (there == MAP_FAILED)
        return NULL;
    ptr = (char *)(uintptr_t)align_up((uintptr_t)there, slack ? slack : 1);
    if (ptr > there)
        (void)munmap(there, (size_t)(ptr - there));
    if (there + slack > ptr)
        (void)munmap(ptr + length, (size_t)(there + slack - ptr));
    return ptr;
}

static void *malloc_aligned(size_t size, size_t alignment)
{
    void *ptr = NULL;

    return posix_memalign(&ptr, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) ? NULL : ptr;
}

static umf_result_t do_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct mock *mock = provider;
    void *got = NULL;

    mock->size = size;
    mock->alignment = alignment;
    called(mock, MOCK_ALLOC);
    if (mock->kind == MOCK_NULL) {
        *ptr = NULL;
        return UMF_RESULT_SUCCESS;
    }
    if (size >= SIZE_MAX / 2)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (mock->kind == MOCK_MALLOC)
        got = malloc_aligned(size, alignment);
    else if (!size)
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    else
        got = map_pages(size, alignment, mock->is_guarded ? PROT_NONE : PROT_READ | PROT_WRITE);
    if (!got)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    *ptr = got;
    mock->bytes += size;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t do_free(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    mock->ptr = ptr;
    mock->size = size;
    called(mock, MOCK_FREE);
    if (!ptr || mock->kind == MOCK_NULL)
        return UMF_RESULT_SUCCESS;
    mock->wrong += size > mock->bytes;
    mock->bytes -= size;
    if (mock->kind == MOCK_MALLOC) {
        free(ptr);
    } else if (munmap(ptr, page_align_up(size)) < 0) {
        mock->wrong++;
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    }
    return UMF_RESULT_SUCCESS;
}

static void get_last_native_error(void *provider, const char **message, int32_t *error)
{
    struct mock *mock = provider;

    mock->calls[MOCK_LAST_NATIVE_ERROR]++;
    if (message && mock->kind != MOCK_NULL)
        *message = "mock";
    if (error && mock->kind != MOCK_NULL)
        *error = MOCK_NATIVE_ERROR;
}

static umf_result_t get_recommended_page_size(void *provider, size_t size, size_t *ret)
{
    struct mock *mock = provider;

    (void)size;
    called(mock, MOCK_RECOMMENDED_PAGE_SIZE);
    if (ret && mock->kind != MOCK_NULL)
        *ret = 2 * page_size();
    return UMF_RESULT_SUCCESS;
}

static umf_result_t get_min_page_size(void *provider, void *ptr, size_t *ret)
{
    struct mock *mock = provider;

    mock->ptr = ptr;
    called(mock, MOCK_MIN_PAGE_SIZE);
    if (mock->kind == MOCK_MALLOC)
        return UMF_RESULT_ERROR_UNKNOWN;
    if (ret && mock->kind == MOCK_PAGES)
        *ret = page_size();
    return UMF_RESULT_SUCCESS;
}

static const char *get_name(void *provider)
{
    ((struct mock *)provider)->calls[MOCK_NAME]++;
    return "mock";
}

/* ---- what only pages can ----------------------------------------------------------------------------------------- */

static umf_result_t purge(struct mock *mock, enum mock_op op, void *ptr, size_t size)
{
    mock->ptr = ptr;
    mock->size = size;
    called(mock, op);
    mock->wrong += madvise(ptr, size, MADV_DONTNEED) < 0;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t purge_lazy(void *provider, void *ptr, size_t size)
{
    return purge((struct mock *)provider, MOCK_PURGE_LAZY, ptr, size);
}

static umf_result_t purge_force(void *provider, void *ptr, size_t size)
{
    return purge((struct mock *)provider, MOCK_PURGE_FORCE, ptr, size);
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
    *ptr = mock->opens_in_place ? handle.ptr : map_pages(handle.size, 0, PROT_READ | PROT_WRITE);
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
    if (!mock->opens_in_place && munmap(ptr, page_align_up(size)) < 0)
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    return UMF_RESULT_SUCCESS;
}

#define WHAT_ALL_CAN                                                                                        \
    .version = UMF_VERSION_CURRENT, .finalize = finalize, .alloc = do_alloc, .free = do_free,               \
    .get_last_native_error = get_last_native_error, .get_recommended_page_size = get_recommended_page_size, \
    .get_min_page_size = get_min_page_size, .get_name = get_name

const umf_memory_provider_ops_t mock_ops[MOCK_KINDS] = {
    [MOCK_PAGES] =
        {
            WHAT_ALL_CAN,
            .initialize = initialize_pages,
            .ext = {purge_lazy, purge_force, merge, split},
            .ipc = {get_ipc_handle_size, get_ipc_handle, put_ipc_handle, open_ipc_handle, close_ipc_handle},
        },
    [MOCK_MALLOC] = {WHAT_ALL_CAN, .initialize = initialize_malloc},
    [MOCK_NULL] = {WHAT_ALL_CAN, .initialize = initialize_null},
};

/* ---- for tests --------------------------------------------------------------------------------------------------- */

static umf_memory_provider_handle_t create(const umf_memory_provider_ops_t *ops, struct mock *mock)
{
    umf_memory_provider_handle_t provider = NULL;

    assert_success(umfMemoryProviderCreate(ops, mock, &provider));
    assert_non_null(provider);
    return provider;
}

umf_memory_provider_handle_t mock_new(struct mock *mock)
{
    return create(&mock_ops[mock->kind], mock);
}

umf_memory_provider_handle_t mock_of(enum mock_kind kind)
{
    return create(&mock_ops[kind], NULL);
}

umf_memory_provider_handle_t provider_of(const umf_memory_provider_ops_t *ops)
{
    return create(ops, NULL);
}

umf_memory_pool_handle_t mock_pool(const umf_memory_pool_ops_t *ops, void *params, struct mock *mock)
{
    umf_memory_provider_handle_t provider = mock_new(mock);
    umf_memory_pool_handle_t pool = NULL;
    umf_result_t result = umfPoolCreate(ops, provider, params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);

    if (result == UMF_RESULT_ERROR_NOT_SUPPORTED) {
        umfMemoryProviderDestroy(provider);
        test_skip("this pool is not in this build, or on this machine");
    }
    assert_success(result);
    return pool;
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
