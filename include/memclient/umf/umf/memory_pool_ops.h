/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a memory pool, for programs that have pools of their own.
 *
 * All get what `initialize` returned, and are called from any thread, several at once. The table is copied when a pool
 * is created. An allocation that fails returns NULL, and the reason is kept for get_last_allocation_error().
 */
#ifndef UMF_MEMORY_POOL_OPS_H
#define UMF_MEMORY_POOL_OPS_H 1

#include "base.h"
#include "memory_pool.h"
#include "memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

struct umf_memory_pool_ops_t {
    /* UMF_VERSION_CURRENT. A different minor version is accepted, a higher major version is not. */
    uint32_t version;
    /* Makes a pool. Its memory comes from `provider`, and from nowhere else if umfPoolByPtr() is to find it. That one
     * stands for the provider that was passed to umfPoolCreate(), and lives as long as the pool. */
    umf_result_t (*initialize)(umf_memory_provider_handle_t provider, void *params, void **pool);
    void (*finalize)(void *pool);
    void *(*malloc)(void *pool, size_t size);
    void *(*calloc)(void *pool, size_t num, size_t size);
    void *(*realloc)(void *pool, void *ptr, size_t size);
    void *(*aligned_malloc)(void *pool, size_t size, size_t alignment);
    size_t (*malloc_usable_size)(void *pool, void *ptr);
    umf_result_t (*free)(void *pool, void *ptr);
    umf_result_t (*get_last_allocation_error)(void *pool);
};

#ifdef __cplusplus
}
#endif

#endif
