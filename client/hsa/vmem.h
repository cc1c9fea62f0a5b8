/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: reservations of addresses, handles of physical memory, mappings of the one in the other, and who may
 * use a mapping how.
 *
 * A handle is a buffer of the broker's, and its number is the buffer's id, unless that is taken. Importing memory that
 * the process has already gives the same handle. A handle is counted twice, by references of the application (refs:
 * create, import, retain) and by mappings (uses); its memory is released when both are 0. A handle with uses only is
 * unknown to everything but retain, which finds it by an address, and import, which finds it by the memory.
 *
 * Agents are the CPUs of one process, so a page's protection is the union of what the agents of its mapping may do.
 */
#pragma once

#include "base/hash.h"
#include "hsa/address_map.h"
#include "hsa/topology.h"

struct vmem_reservation {
    struct address_range range;
    struct memclient_reservation *res;
    bool no_register; /* the flag of that name was given */
    unsigned mappings; /* in it, busy ones included */
};

struct vmem_handle {
    uint64_t number;
    UT_hash_handle by_number;
    UT_hash_handle by_buffer;
    struct memclient_buffer *buffer; /* one reference, however many refs and uses */
    uint64_t size;
    bool is_described; /* by what follows: of imported memory it is asked for when it is first needed */
    const struct pool *pool; /* of imported memory: the standard one of its first node; NULL if none is */
    hsa_amd_memory_type_t type;
    uint64_t refs;
    uint64_t uses;
    struct list ended; /* once both are 0 */
};

/* What agents may do, as sets of agents by index. */
struct permissions {
    uint64_t set; /* for whom access was set, be it to none */
    uint64_t read;
    uint64_t write;
};

struct vmem_mapping {
    struct address_range range;
    struct vmem_handle *handle;
    struct vmem_reservation *reservation;
    uint64_t offset; /* in the handle's memory */
    struct permissions permissions;
};

static inline struct vmem_reservation *range_reservation(struct address_range *range)
{
    return range && range->kind == RANGE_RESERVATION ? container_of(range, struct vmem_reservation, range) : NULL;
}

static inline struct vmem_mapping *range_mapping(struct address_range *range)
{
    return range && range->kind == RANGE_MAPPING ? container_of(range, struct vmem_mapping, range) : NULL;
}

/* ---- handle.c; with the lock ----------------------------------------------------------------------------- */

/* One that the application has references to (refs > 0); NULL if there is none. */
struct vmem_handle *handle_find(hsa_amd_vmem_alloc_handle_t handle);
/* Counts uses down. Where that was the last, and there is no ref, the handle leaves the table for the list. */
void handle_unuse(struct vmem_handle *handle, struct list *ended);
/* Without the lock: releases the buffers of the handles of the list, and frees them. */
void handles_end(struct list *ended);
/* Enters what its buffer is, once. */
void handle_describe(struct vmem_handle *handle, const struct memclient_buffer_info *info);
/* Frees all records, not what they describe. */
void handles_forget(void);

/* ---- map.c ----------------------------------------------------------------------------------------------- */

/* With the lock: the first of the mappings that the range consists of; NULL if it begins or ends inside of one, or
 * there is a gap. The others follow by mapping_next(). */
struct vmem_mapping *mapping_run(const void *address, uint64_t size);
/* The one behind it; NULL at the end of the run. */
struct vmem_mapping *mapping_next(struct vmem_mapping *mapping, uint64_t end);
