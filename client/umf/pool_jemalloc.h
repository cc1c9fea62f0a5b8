/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the jemalloc pool has from its provider, and the hooks by which jemalloc asks for it. */
#pragma once

#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdbool.h>

#include <memclient/umf/umf/memory_provider.h>

#include "base/range_index.h"

struct jemalloc_memory {
    extent_hooks_t hooks;
    umf_memory_provider_handle_t provider;
    bool disable_free;          /* nothing goes back before the pool ends */
    pthread_mutex_t lock;       /* guards changes of the index */
    struct range_index extents; /* allocations as the provider knows them */
    bool whole;                 /* the provider cannot split */
};

void jemalloc_memory_init(struct jemalloc_memory *memory, umf_memory_provider_handle_t provider, bool disable_free);
/* Gives everything back. */
void jemalloc_memory_deinit(struct jemalloc_memory *memory);
