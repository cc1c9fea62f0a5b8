/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/umf/mock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"

static umf_result_t initialize(void *params, void **provider)
{
    *provider = params;
    return UMF_RESULT_SUCCESS;
}

static void finalize(void *provider)
{
    (void)provider;
}

/* Pages at any alignment: what is too much is unmapped. */
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

static umf_result_t do_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct mock *mock = provider;

    if (mock->fail_alloc != UMF_RESULT_SUCCESS)
        return mock->fail_alloc;
    mock->allocs++;
    switch (mock->kind) {
    case MOCK_NULL:
        return UMF_RESULT_SUCCESS;
    case MOCK_MALLOC:
        *ptr = alignment > 16 ? aligned_alloc(alignment, align_up(size, alignment)) : malloc(size);
        break;
    case MOCK_PAGES:
        *ptr = map_pages(size, alignment, mock->is_guarded ? PROT_NONE : PROT_READ | PROT_WRITE);
        break;
    }
    mock->bytes += size;
    return *ptr ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

static umf_result_t do_free(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    if (mock->fail_free != UMF_RESULT_SUCCESS)
        return mock->fail_free;
    mock->frees++;
    mock->wrong += size > mock->bytes || (mock->kind == MOCK_PAGES && !size);
    mock->bytes -= size;
    if (mock->kind == MOCK_MALLOC)
        free(ptr);
    else if (mock->kind == MOCK_PAGES)
        mock->wrong += munmap(ptr, page_align_up(size)) < 0;
    return UMF_RESULT_SUCCESS;
}

static void get_last_native_error(void *provider, const char **message, int32_t *error)
{
    (void)provider;
    *message = "";
    *error = 0;
}

static umf_result_t get_recommended_page_size(void *provider, size_t size, size_t *ret)
{
    (void)provider;
    (void)size;
    *ret = page_size();
    return UMF_RESULT_SUCCESS;
}

static umf_result_t get_min_page_size(void *provider, void *ptr, size_t *ret)
{
    struct mock *mock = provider;

    (void)ptr;
    mock->page_sizes++;
    if (mock->kind == MOCK_MALLOC)
        return UMF_RESULT_ERROR_UNKNOWN;
    if (mock->kind == MOCK_PAGES)
        *ret = page_size();
    return UMF_RESULT_SUCCESS;
}

static const char *get_name(void *provider)
{
    (void)provider;
    return "mock";
}

static umf_result_t purge(void *provider, void *ptr, size_t size)
{
    struct mock *mock = provider;

    mock->purges++;
    mock->wrong += madvise(ptr, size, MADV_DONTNEED) < 0;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t split(void *provider, void *ptr, size_t total, size_t first)
{
    struct mock *mock = provider;

    (void)ptr;
    (void)total;
    (void)first;
    mock->splits++;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t merge(void *provider, void *low, void *high, size_t total)
{
    struct mock *mock = provider;

    (void)low;
    (void)high;
    (void)total;
    mock->merges++;
    return UMF_RESULT_SUCCESS;
}

umf_memory_provider_handle_t mock_provider(struct mock *mock)
{
    umf_memory_provider_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = initialize,
        .finalize = finalize,
        .alloc = do_alloc,
        .free = do_free,
        .get_last_native_error = get_last_native_error,
        .get_recommended_page_size = get_recommended_page_size,
        .get_min_page_size = get_min_page_size,
        .get_name = get_name,
    };
    umf_memory_provider_handle_t provider = NULL;

    if (mock->kind == MOCK_PAGES) {
        ops.ext.purge_lazy = ops.ext.purge_force = purge;
        ops.ext.allocation_split = split;
        ops.ext.allocation_merge = merge;
    }
    assert_success(umfMemoryProviderCreate(&ops, mock, &provider));
    return provider;
}

umf_memory_pool_handle_t mock_pool(const umf_memory_pool_ops_t *ops, void *params, struct mock *mock)
{
    umf_memory_provider_handle_t provider = mock_provider(mock);
    umf_memory_pool_handle_t pool = NULL;
    umf_result_t result = umfPoolCreate(ops, provider, params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);

    if (result == UMF_RESULT_SUCCESS)
        return pool;
    umfMemoryProviderDestroy(provider);
    if (result == UMF_RESULT_ERROR_NOT_SUPPORTED)
        test_skip("this pool is not in this build, or on this machine");
    fail_msg("umfPoolCreate: %d", result);
    return NULL;
}
