/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider and a pool: each is a table of operations and what they work on. A provider does nothing by itself, except
 * that it says which one failed last.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/memory_pool.h>

struct opened;

struct umf_memory_provider_t {
    umf_memory_provider_ops_t ops;
    void *priv;
    /*
     * Of a pool's tracking, the application's provider, which does all that the tracking has no operation for; it may be
     * anything but NULL. Of any other, NULL.
     */
    umf_memory_provider_handle_t upstream;
};

struct umf_memory_pool_t {
    umf_memory_pool_ops_t ops;
    void *priv;
    umf_memory_provider_handle_t provider; /* as it was given; it may be anything but NULL */
    struct umf_memory_provider_t tracking; /* what the pool gets instead, if it is tracked */
    umf_pool_create_flags_t flags;
    size_t n_owned;        /* what it got of the provider: see owned.h, with that lock */
    struct opened *opened; /* what is open in it, by handle: see opened.h */
};

static inline bool pool_is_tracked(umf_memory_pool_handle_t pool)
{
    return !(pool->flags & UMF_POOL_CREATE_FLAG_DISABLE_TRACKING);
}
