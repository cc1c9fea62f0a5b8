/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that was allocated from a pool or region, and ordinary memory that was registered.
 *
 * An allocation is one buffer of the broker, mapped whole, at its home if that is free. Both APIs make the same:
 * hsa_amd_memory_pool_free() takes back what hsa_memory_allocate() gave.
 */
#pragma once

#include "hsa/address_map.h"
#include "hsa/topology.h"

struct allocation {
    struct address_range range;
    struct memclient_buffer *buffer; /* counted */
    const struct pool *pool;
    uint32_t flags; /* hsa_amd_memory_pool_flag_t, as passed */
    /* of coarse-grained memory: who may use it, and how */
    const struct agent *owner;
    hsa_access_permission_t access;
    bool has_token;
    struct memclient_token token; /* its IPC handle, once requested */
};

struct locked {
    struct address_range range;
    bool registered; /* by hsa_memory_register() */
    uint64_t locks;  /* by hsa_amd_memory_lock(), less unlocked */
};

static inline struct allocation *range_allocation(struct address_range *range)
{
    return range && range->kind == RANGE_ALLOCATION ? container_of(range, struct allocation, range) : NULL;
}

static inline struct locked *range_locked(struct address_range *range)
{
    return range && range->kind == RANGE_LOCKED ? container_of(range, struct locked, range) : NULL;
}

/* memory.c: unmaps what was allocated or attached, and releases the buffer. ctx is the present session, or NULL. If the
 * buffer is of another session, shutting HSA down has unmapped it already. */
void memory_release(const struct address_range *range, struct memclient_buffer *buffer, struct memclient_context *ctx);

/* callbacks.c: moves the range's callbacks to a list, to be called when no lock is held. */
void callbacks_take(struct address_range *range, struct list *taken);
/* Calls each of them, outside of the runtime, and frees them. */
void callbacks_run(struct list *taken);
/* The same, leaving the runtime and entering it again if there are any. *ctx is NULL if HSA is not up any more. */
void callbacks_run_outside(struct list *taken, struct memclient_context **ctx);
/* Frees them without calling them. */
void callbacks_drop(struct address_range *range);

/* pointer.c: may the owner, or any agent, read (RO) or write (WO) all of [address, address + size)? True for memory
 * that is not HSA's. Needs the lock. */
bool pointer_allows(const void *address, size_t size, hsa_access_permission_t access);
/* May `size` bytes be copied? Takes the lock. */
bool pointer_allows_copy(const void *to, const void *from, size_t size);

/* copier.c: copies between ranges that do not overlap. It divides large ranges among several threads if that is faster,
 * and returns when all is done. */
void copier_copy(void *to, const void *from, size_t size);
/* `to` and size, in bytes, are multiples of 4. */
void copier_fill(void *to, uint32_t pattern, size_t size);
