/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy pool passes every allocation on to the provider. */
#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_proxy.h>

static __thread umf_result_t last_error;

static umf_result_t proxy_initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    *pool = provider;
    return UMF_RESULT_SUCCESS;
}

static void proxy_finalize(void *pool) {}

static void *proxy_aligned_malloc(void *pool, size_t size, size_t alignment)
{
    void *ptr = NULL;

    last_error = umfMemoryProviderAlloc(pool, size, alignment, &ptr);
    return last_error == UMF_RESULT_SUCCESS ? ptr : NULL;
}

static void *proxy_malloc(void *pool, size_t size)
{
    return proxy_aligned_malloc(pool, size, 0);
}

static void *proxy_calloc(void *pool, size_t num, size_t size)
{
    last_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return NULL;
}

static void *proxy_realloc(void *pool, void *ptr, size_t size)
{
    last_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return NULL;
}

static size_t proxy_malloc_usable_size(void *pool, void *ptr)
{
    last_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return 0;
}

/* With size 0, the pool's tracking looks the size up. Without tracking nobody knows it. */
static umf_result_t proxy_free(void *pool, void *ptr)
{
    return umfMemoryProviderFree(pool, ptr, 0);
}

static umf_result_t proxy_get_last_allocation_error(void *pool)
{
    return last_error;
}

umf_memory_pool_ops_t *umfProxyPoolOps(void)
{
    static umf_memory_pool_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = proxy_initialize,
        .finalize = proxy_finalize,
        .malloc = proxy_malloc,
        .calloc = proxy_calloc,
        .realloc = proxy_realloc,
        .aligned_malloc = proxy_aligned_malloc,
        .malloc_usable_size = proxy_malloc_usable_size,
        .free = proxy_free,
        .get_last_allocation_error = proxy_get_last_allocation_error,
    };

    return &ops;
}
