/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and pools: each is a table of operations with their data. */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/memory_pool.h>

struct opened;

struct umf_memory_provider_t {
    umf_memory_provider_ops_t ops;
    void *priv;
    /* Of a pool's tracking: the application's provider, which does what the tracking has no operation for. Any value
     * but NULL is possible, and none is looked at before it is needed. Of other providers: NULL. */
    umf_memory_provider_handle_t upstream;
};

struct umf_memory_pool_t {
    umf_memory_pool_ops_t ops;
    void *priv;
    umf_memory_provider_handle_t provider; /* as given; any value but NULL */
    struct umf_memory_provider_t tracking; /* what a pool that is tracked gets instead */
    umf_pool_create_flags_t flags;
    size_t n_owned;        /* entries in owned.h, with its mutex */
    struct opened *opened; /* what it has opened, by handle: see opened.h */
};

static inline bool pool_is_tracked(umf_memory_pool_handle_t pool)
{
    return !(pool->flags & UMF_POOL_CREATE_FLAG_DISABLE_TRACKING);
}
