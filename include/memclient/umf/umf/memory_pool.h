/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools: allocators over a memory provider.
 *
 * What a pool gets of its provider is known to the library (*tracked*), so that an address anywhere in it leads back
 * to the pool.
 */
#ifndef UMF_MEMORY_POOL_H
#define UMF_MEMORY_POOL_H 1

#include "base.h"
#include "memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct umf_memory_pool_t *umf_memory_pool_handle_t;

/* See memory_pool_ops.h. */
typedef struct umf_memory_pool_ops_t umf_memory_pool_ops_t;

/* How a pool is created; a bit mask. */
typedef enum umf_pool_create_flag_t {
    UMF_POOL_CREATE_FLAG_NONE = 0,
    UMF_POOL_CREATE_FLAG_OWN_PROVIDER = 1,     /* umfPoolDestroy() destroys the provider too */
    UMF_POOL_CREATE_FLAG_DISABLE_TRACKING = 2, /* umfPoolByPtr(), umfFree() and handles do not know its memory */
    UMF_POOL_CREATE_FLAG_FORCE_UINT32 = 0x7fffffff
} umf_pool_create_flag_t;

typedef uint32_t umf_pool_create_flags_t;

/*
 * Makes a pool over a provider. ops is copied; params is for its `initialize`, whose failure is returned. The provider
 * is not looked at until the pool needs memory. If it fails, the provider stays the caller's, whatever the flags.
 *     INVALID_ARGUMENT   ops, provider or hPool is NULL, or flags has an unknown bit
 *     NOT_SUPPORTED      ops->version has a higher major number than this library
 */
UMF_API umf_result_t umfPoolCreate(const umf_memory_pool_ops_t *ops, umf_memory_provider_handle_t provider,
                                   void *params, umf_pool_create_flags_t flags, umf_memory_pool_handle_t *hPool);

/*
 * Ends a pool, its memory with it, and what was opened in it by umfOpenIPCHandle(). NULL is ignored. Whether memory
 * that was not freed goes back to the provider is the pool's business.
 */
UMF_API void umfPoolDestroy(umf_memory_pool_handle_t hPool);

/* Allocates. NULL if it fails, umfPoolGetLastAllocationError() has the reason; NULL for a NULL pool. */
UMF_API void *umfPoolMalloc(umf_memory_pool_handle_t hPool, size_t size);

/* Likewise, at a multiple of alignment, a power of two. */
UMF_API void *umfPoolAlignedMalloc(umf_memory_pool_handle_t hPool, size_t size, size_t alignment);

/* Likewise, num times size bytes of zeros; a product that overflows fails with OUT_OF_HOST_MEMORY. */
UMF_API void *umfPoolCalloc(umf_memory_pool_handle_t hPool, size_t num, size_t size);

/* Makes an allocation larger or smaller, which may move it; its contents stay. ptr NULL: umfPoolMalloc(). */
UMF_API void *umfPoolRealloc(umf_memory_pool_handle_t hPool, void *ptr, size_t size);

/* Bytes that may be used of an allocation, at least what was asked for; 0 for NULL, or where the pool cannot tell. */
UMF_API size_t umfPoolMallocUsableSize(umf_memory_pool_handle_t hPool, void *ptr);

/* Frees what this pool allocated. INVALID_ARGUMENT: hPool is NULL. What the provider's failure is, is returned. */
UMF_API umf_result_t umfPoolFree(umf_memory_pool_handle_t hPool, void *ptr);

/* Frees what any pool allocated. Addresses that are no pool's, NULL too, are left alone: SUCCESS. */
UMF_API umf_result_t umfFree(void *ptr);

/* Why this thread's last allocation of the pool failed. INVALID_ARGUMENT: hPool is NULL. Lock-free. */
UMF_API umf_result_t umfPoolGetLastAllocationError(umf_memory_pool_handle_t hPool);

/* The pool whose provider gave the memory at ptr, or that opened it; any address within. NULL if there is none. */
UMF_API umf_memory_pool_handle_t umfPoolByPtr(const void *ptr);

/* The provider that the pool was created with. INVALID_ARGUMENT: hPool or hProvider is NULL. */
UMF_API umf_result_t umfPoolGetMemoryProvider(umf_memory_pool_handle_t hPool, umf_memory_provider_handle_t *hProvider);

#ifdef __cplusplus
}
#endif

#endif
