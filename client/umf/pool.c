/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's functions. */
#include "umf/pool.h"

#include <stdlib.h>

#include "umf/log.h"
#include "umf/opened.h"
#include "umf/owned.h"
#include "umf/tracking.h"

#define FLAGS_ALL ((umf_pool_create_flags_t)(UMF_POOL_CREATE_FLAG_OWN_PROVIDER | UMF_POOL_CREATE_FLAG_DISABLE_TRACKING))

/* ---- making one -------------------------------------------------------------------------------------------------- */

static umf_result_t pool_initialize(umf_memory_pool_handle_t pool, void *params)
{
    umf_result_t result;

    if (!pool_is_tracked(pool))
        return pool->ops.initialize(pool->provider, params, &pool->priv);
    tracking_init(pool);
    result = pool->ops.initialize(&pool->tracking, params, &pool->priv);
    if (result != UMF_RESULT_SUCCESS)
        tracking_deinit(pool);
    return result;
}

umf_result_t umfPoolCreate(const umf_memory_pool_ops_t *ops, umf_memory_provider_handle_t provider, void *params,
                           umf_pool_create_flags_t flags, umf_memory_pool_handle_t *hPool)
{
    umf_memory_pool_handle_t pool;
    umf_result_t result;

    if (!ops || !provider || !hPool || flags & ~FLAGS_ALL) {
        log_write(LOG_ERROR, __func__, "INVALID_ARGUMENT: an argument is NULL, or a flag unknown");
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    }
    if (UMF_MAJOR_VERSION(ops->version) > UMF_MAJOR_VERSION(UMF_VERSION_CURRENT))
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pool->ops = *ops;
    pool->provider = provider;
    pool->flags = flags;
    result = pool_initialize(pool, params);
    if (result != UMF_RESULT_SUCCESS) {
        log_write(LOG_ERROR, __func__, "initializing the pool failed: %s", log_name_of(result));
        free(pool);
        return result;
    }
    log_write(LOG_DEBUG, __func__, "pool at %p over the provider at %p", (void *)pool, (void *)provider);
    *hPool = pool;
    return UMF_RESULT_SUCCESS;
}

void umfPoolDestroy(umf_memory_pool_handle_t hPool)
{
    if (!hPool)
        return;
    hPool->ops.finalize(hPool->priv);
    opened_close_all(hPool);
    if (pool_is_tracked(hPool))
        tracking_deinit(hPool);
    if (hPool->flags & UMF_POOL_CREATE_FLAG_OWN_PROVIDER)
        umfMemoryProviderDestroy(hPool->provider);
    free(hPool);
}

umf_result_t umfPoolGetMemoryProvider(umf_memory_pool_handle_t hPool, umf_memory_provider_handle_t *hProvider)
{
    if (!hPool || !hProvider)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *hProvider = hPool->provider;
    return UMF_RESULT_SUCCESS;
}

/* ---- what it does ------------------------------------------------------------------------------------------------ */

void *umfPoolMalloc(umf_memory_pool_handle_t hPool, size_t size)
{
    return hPool ? hPool->ops.malloc(hPool->priv, size) : NULL;
}

void *umfPoolAlignedMalloc(umf_memory_pool_handle_t hPool, size_t size, size_t alignment)
{
    return hPool ? hPool->ops.aligned_malloc(hPool->priv, size, alignment) : NULL;
}

void *umfPoolCalloc(umf_memory_pool_handle_t hPool, size_t num, size_t size)
{
    return hPool ? hPool->ops.calloc(hPool->priv, num, size) : NULL;
}

void *umfPoolRealloc(umf_memory_pool_handle_t hPool, void *ptr, size_t size)
{
    return hPool ? hPool->ops.realloc(hPool->priv, ptr, size) : NULL;
}

size_t umfPoolMallocUsableSize(umf_memory_pool_handle_t hPool, void *ptr)
{
    return hPool ? hPool->ops.malloc_usable_size(hPool->priv, ptr) : 0;
}

umf_result_t umfPoolFree(umf_memory_pool_handle_t hPool, void *ptr)
{
    return hPool ? hPool->ops.free(hPool->priv, ptr) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_result_t umfPoolGetLastAllocationError(umf_memory_pool_handle_t hPool)
{
    return hPool ? hPool->ops.get_last_allocation_error(hPool->priv) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

/* ---- by an address ----------------------------------------------------------------------------------------------- */

umf_memory_pool_handle_t umfPoolByPtr(const void *ptr)
{
    struct owned owned;

    return owned_find(ptr, &owned) ? owned.pool : opened_pool(ptr);
}

/* Memory of other processes that was opened is closed, not freed. */
umf_result_t umfFree(void *ptr)
{
    struct owned owned;

    return ptr && owned_find(ptr, &owned) ? umfPoolFree(owned.pool, ptr) : UMF_RESULT_SUCCESS;
}
