/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: reservations of addresses, handles of physical memory, mappings of handles in reservations, and the
 * access of agents to mappings.
 *
 * A handle is a buffer of the broker, and its number is the buffer's id, unless that number is taken. Importing memory
 * that the process has already gives the same handle. A handle has two counts: references of the application (refs:
 * create, import, retain) and mappings (uses). Its memory is released when both are 0. A handle with uses only is found
 * by retain, which looks for its address, and by import, which looks for its memory; to all other functions it is
 * unknown.
 *
 * All agents are CPUs that run the same process, so the protection of a page is the union of the access of all agents.
 */
#pragma once

#include "base/hash.h"
#include "hsa/address_map.h"
#include "hsa/topology.h"

struct vmem_reservation {
    struct address_range range;
    struct memclient_reservation *res;
    bool no_register;  /* HSA_AMD_VMEM_ADDRESS_NO_REGISTER */
    unsigned mappings; /* including busy ones */
};

struct vmem_handle {
    uint64_t number;
    UT_hash_handle by_number;
    UT_hash_handle by_buffer;
    struct memclient_buffer *buffer; /* one reference */
    uint64_t size;
    bool is_described;       /* the next two are valid; those of imported memory are requested on first use */
    const struct pool *pool; /* of imported memory: the standard pool of its first node, or NULL */
    hsa_amd_memory_type_t type;
    uint64_t refs;
    uint64_t uses;
    struct list ended; /* once both counts are 0 */
};

/* The access of agents, as sets of them. */
struct permissions {
    uint64_t set; /* whose access was set, even to none */
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

/* ---- handle.c; with the lock ------------------------------------------------------------------------------------- */

/* A handle with references of the application, or NULL. */
struct vmem_handle *handle_find(hsa_amd_vmem_alloc_handle_t handle);
/* Drops a use. If nothing is left, the handle moves from the table to the list. */
void handle_unuse(struct vmem_handle *handle, struct list *ended);
/* Releases the buffers of the handles of the list, and frees them. The lock must not be held. */
void handles_end(struct list *ended);
/* Sets the description of its buffer, unless it is known. */
void handle_describe(struct vmem_handle *handle, const struct memclient_buffer_info *info);
/* Frees all records, without releasing memory. */
void handles_forget(void);

/* ---- map.c ------------------------------------------------------------------------------------------------------- */

/*
 * The first of the mappings that make up exactly this range, or NULL. mapping_next() gives the others. Needs the lock.
 */
struct vmem_mapping *mapping_run(const void *address, uint64_t size);
/* The mapping after it, or NULL at the end of the run. */
struct vmem_mapping *mapping_next(struct vmem_mapping *mapping, uint64_t end);
