/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HSA has at which address of this process.
 *
 * Everything that lies at an address embeds a struct address_range. Allocations, attached IPC memory, registered memory
 * and mappings do not overlap and are in one tree; reservations, which contain mappings, are in another. One lock
 * protects both trees and all other records of HSA memory (handles, permissions, callbacks). An index that is read
 * without a lock would gain nothing, because of those records; and inserting into a tree cannot fail.
 *
 * The lock is never held while the broker is called. What is being created or removed is therefore in the tree, but
 * *busy*: its addresses are taken, and nothing else can find it.
 *
 *     address_map_lock();
 *     address_map_insert(&mapping->range)     busy: nothing else gets these addresses
 *     address_map_unlock();
 *     r = memclient_map(...)                  may call the broker
 *     address_map_lock();
 *     mapping->range.busy = false, or address_map_remove()
 *     address_map_unlock();
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/tree.h"

struct memclient_buffer;

enum address_range_kind {
    RANGE_ALLOCATION, /* struct allocation, memory.h */
    RANGE_ATTACHMENT, /* struct attachment, ipc.h */
    RANGE_LOCKED,     /* struct locked, memory.h: ordinary memory that was registered */
    RANGE_MAPPING,    /* struct vmem_mapping, vmem.h */
    RANGE_RESERVATION /* struct vmem_reservation, vmem.h */
};

/* range_allocation() and its like return the struct that embeds it, or NULL if it is NULL or of another kind. */
struct address_range {
    RB_ENTRY(address_range) entry;
    enum address_range_kind kind;
    bool busy;
    uint64_t start;
    uint64_t size;         /* as requested, and as reported to the application */
    uint64_t bytes;        /* as occupied */
    void *userdata;        /* the application's, for hsa_amd_pointer_info() */
    struct list callbacks; /* struct callback, callbacks.c: called when the range is freed */
};

void address_range_init(struct address_range *range, enum address_range_kind kind, const void *start, uint64_t size,
                        uint64_t bytes);

void address_map_lock(void);      /* for writing */
void address_map_lock_read(void); /* for reading */
void address_map_unlock(void);

/* The range, other than a reservation, whose `size` contains the address. NULL if there is none or it is busy. */
struct address_range *address_map_find(const void *address);
/* The same, if the range starts at the address. */
struct address_range *address_map_find_base(const void *address);
/* The first range that ends after the address, busy or not, and the one after a range; or NULL. */
struct address_range *address_map_first(uint64_t address);
struct address_range *address_map_next(struct address_range *range);
/* Is all of it outside of every range, busy or not? */
bool address_map_is_free(uint64_t start, uint64_t bytes);
/* The same, except that registered memory may be there: its record goes when a range is inserted over it. */
bool address_map_is_only_locked(uint64_t start, uint64_t bytes);
/*
 * Its addresses must be free, or be only registered memory, whose record is dropped. Reservations go to their own tree.
 */
void address_map_insert(struct address_range *range);
void address_map_remove(struct address_range *range);

/* The buffer that is mapped there, without a new reference, and the offset in it. NULL if the memory is the
 * application's. */
struct memclient_buffer *address_range_buffer(struct address_range *range, uint64_t *offset);

/* The reservation, unless it is busy, that contains the address; and the one that contains the whole range. */
struct address_range *reservation_find(const void *address);
struct address_range *reservation_around(uint64_t start, uint64_t bytes);
/* Is all of it outside of every reservation, busy or not? */
bool reservation_is_none(uint64_t start, uint64_t bytes);

/* Removes and returns some range, reservations last. NULL when none is left. */
struct address_range *address_map_pop(void);
/* In the child of a fork, whose parent held the lock. */
void address_map_fork_child(void);
