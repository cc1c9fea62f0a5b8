/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools: allocators over a memory provider.
 *
 * The library knows what a pool has from its provider (the memory is *tracked*), so any address in it leads to the
 * pool.
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

/* How to create a pool; a bit mask. */
typedef enum umf_pool_create_flag_t {
    UMF_POOL_CREATE_FLAG_NONE = 0,
    UMF_POOL_CREATE_FLAG_OWN_PROVIDER = 1,     /* umfPoolDestroy() also destroys the provider */
    UMF_POOL_CREATE_FLAG_DISABLE_TRACKING = 2, /* umfPoolByPtr(), umfFree() and handles do not know its memory */
    UMF_POOL_CREATE_FLAG_FORCE_UINT32 = 0x7fffffff
} umf_pool_create_flag_t;

typedef uint32_t umf_pool_create_flags_t;

/*
 * Makes a pool over a provider. ops is copied. params is passed to its `initialize`, whose failure is returned. The
 * provider is not called until the pool needs memory. On failure the provider stays the caller's, whatever the flags.
 *     INVALID_ARGUMENT   ops, provider or hPool is NULL, or flags has an unknown bit
 *     NOT_SUPPORTED      ops->version has a higher major number than this library
 */
UMF_API umf_result_t umfPoolCreate(const umf_memory_pool_ops_t *ops, umf_memory_provider_handle_t provider,
                                   void *params, umf_pool_create_flags_t flags, umf_memory_pool_handle_t *hPool);

/* Destroys a pool with its memory, and closes what umfOpenIPCHandle() opened in it. NULL is ignored. Whether memory
 * that was not freed goes back to the provider depends on the pool. */
UMF_API void umfPoolDestroy(umf_memory_pool_handle_t hPool);

/* Allocates. NULL: it failed, and umfPoolGetLastAllocationError() has the reason; or the pool is NULL. */
UMF_API void *umfPoolMalloc(umf_memory_pool_handle_t hPool, size_t size);

/* The same at a multiple of alignment, a power of two. */
UMF_API void *umfPoolAlignedMalloc(umf_memory_pool_handle_t hPool, size_t size, size_t alignment);

/* The same for num times size bytes of zeros. A product that overflows fails with OUT_OF_HOST_MEMORY. */
UMF_API void *umfPoolCalloc(umf_memory_pool_handle_t hPool, size_t num, size_t size);

/* Changes the size of an allocation, which may move, with its contents. ptr NULL: as umfPoolMalloc(). */
UMF_API void *umfPoolRealloc(umf_memory_pool_handle_t hPool, void *ptr, size_t size);

/* The usable size of an allocation, at least what was requested. 0: ptr is NULL, or the pool cannot tell. */
UMF_API size_t umfPoolMallocUsableSize(umf_memory_pool_handle_t hPool, void *ptr);

/* Frees an allocation of this pool. INVALID_ARGUMENT: hPool is NULL. A failure of the provider is returned. */
UMF_API umf_result_t umfPoolFree(umf_memory_pool_handle_t hPool, void *ptr);

/* Frees an allocation of any pool. NULL and addresses of no pool are ignored: SUCCESS. */
UMF_API umf_result_t umfFree(void *ptr);

/* Why this thread's last allocation from the pool failed. INVALID_ARGUMENT: hPool is NULL. Lock-free. */
UMF_API umf_result_t umfPoolGetLastAllocationError(umf_memory_pool_handle_t hPool);

/* The pool that has, or has opened, the memory at ptr, which may be any address in it. NULL: there is none. */
UMF_API umf_memory_pool_handle_t umfPoolByPtr(const void *ptr);

/* The provider that the pool was created with. INVALID_ARGUMENT: hPool or hProvider is NULL. */
UMF_API umf_result_t umfPoolGetMemoryProvider(umf_memory_pool_handle_t hPool, umf_memory_provider_handle_t *hProvider);

#ifdef __cplusplus
}
#endif

#endif
