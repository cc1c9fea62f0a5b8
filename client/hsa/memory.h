/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that was allocated from a pool or region, and ordinary memory that was registered.
 *
 * An allocation is one buffer of the broker's, mapped whole, at its home wherever that is free. Both APIs make the
 * same thing: what hsa_memory_allocate() gave, hsa_amd_memory_pool_free() takes back.
 */
#pragma once

#include "hsa/address_map.h"
#include "hsa/topology.h"

struct allocation {
    struct address_range range;
    struct memclient_buffer *buffer; /* counted */
    const struct pool *pool;
    uint32_t flags; /* hsa_amd_memory_pool_flag_t, as given */
    /* of coarse-grained memory: who may use it, and how */
    const struct agent *owner;
    hsa_access_permission_t access;
    bool has_token;
    struct memclient_token token; /* its IPC handle, once it has been asked for */
};

struct locked {
    struct address_range range;
    bool registered; /* by hsa_memory_register() */
    uint64_t locks;  /* by hsa_amd_memory_lock(), and not unlocked */
};

static inline struct allocation *range_allocation(struct address_range *range)
{
    return range && range->kind == RANGE_ALLOCATION ? container_of(range, struct allocation, range) : NULL;
}

static inline struct locked *range_locked(struct address_range *range)
{
    return range && range->kind == RANGE_LOCKED ? container_of(range, struct locked, range) : NULL;
}

/* memory.c: unmaps what was allocated or attached and releases the buffer. ctx is the session of now, or NULL: if the
 * buffer's was another one, HSA was shut down meanwhile, which has unmapped it. */
void memory_release(const struct address_range *range, struct memclient_buffer *buffer, struct memclient *ctx);

/* callbacks.c: takes the range's callbacks, to be called when no lock is held. */
void callbacks_take(struct address_range *range, struct list *taken);
/* Calls each, outside of the runtime, and frees them. */
void callbacks_run(struct list *taken);
/* Leaves the runtime for that, and enters it again, if there are any; *ctx is NULL if it is not up any more. */
void callbacks_run_outside(struct list *taken, struct memclient **ctx);
/* Frees them uncalled. */
void callbacks_drop(struct address_range *range);

/* pointer.c: may the owner, or any agent, read (RO) or write (WO) all of [address, address + size)? True for memory
 * that is not HSA's. With the lock. */
bool pointer_allows(const void *address, size_t size, hsa_access_permission_t access);
/* May so much be read there and written here? Takes the lock. */
bool pointer_allows_copy(const void *to, const void *from, size_t size);

/* copier.c: copies ranges that do not overlap. Large ones are shared out to several threads where that is faster; all is
 * done when it returns. */
void copier_copy(void *to, const void *from, size_t size);
/* `to` and size, in bytes, are multiples of 4. */
void copier_fill(void *to, uint32_t pattern, size_t size);
