/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HSA has at which address of this process.
 *
 * Whatever lies at an address embeds a struct address_range: allocations, attached IPC memory, registered memory and
 * mappings, which do not overlap, in one tree; reservations, which mappings lie in, in another. One lock is held to
 * change them or to read them, and it is the lock of all other records of HSA memory, too (handles, permissions,
 * callbacks). An index that is read without a lock would gain nothing by that; and inserting into a tree cannot fail.
 *
 * The lock is never held while the broker is called. So what is being made, or being taken away, is in the tree but
 * *busy*: its addresses are taken, and for everything else it does not exist.
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

/* What embeds it is found by range_allocation() and so on: NULL if it is NULL or of another kind. */
struct address_range {
    RB_ENTRY(address_range) entry;
    enum address_range_kind kind;
    bool busy;
    uint64_t start;
    uint64_t size;  /* as asked for: what is reported to the application */
    uint64_t bytes; /* that it occupies */
    void *userdata; /* the application's, for hsa_amd_pointer_info() */
    struct list callbacks; /* struct callback, callbacks.c: to be called when it goes */
};

void address_range_init(struct address_range *range, enum address_range_kind kind, const void *start, uint64_t size,
                        uint64_t bytes);

void address_map_lock(void);      /* to change anything */
void address_map_lock_read(void); /* to read */
void address_map_unlock(void);

/* The one whose `size` holds the address; NULL if there is none, or it is busy. Not reservations. */
struct address_range *address_map_find(const void *address);
/* The same, if it begins just there. */
struct address_range *address_map_find_base(const void *address);
/* The first that ends behind the address, busy or not, and the one behind another; NULL if there is none. */
struct address_range *address_map_first(uint64_t address);
struct address_range *address_map_next(struct address_range *range);
/* Does nothing, busy or not, occupy any of it? */
bool address_map_is_free(uint64_t start, uint64_t bytes);
/* The same, but for memory that was registered, whose record goes when something is inserted over it. */
bool address_map_is_only_locked(uint64_t start, uint64_t bytes);
/* It must be free, but for memory that was registered: that record goes. Reservations go to their own tree. */
void address_map_insert(struct address_range *range);
void address_map_remove(struct address_range *range);

/* What it is a mapping of, not counted up, and where in that it begins; NULL for memory that is the application's. */
struct memclient_buffer *address_range_buffer(struct address_range *range, uint64_t *offset);

/* The reservation that holds the address, busy ones excepted; the one that holds all of the range. */
struct address_range *reservation_find(const void *address);
struct address_range *reservation_around(uint64_t start, uint64_t bytes);
/* Does no reservation, busy or not, occupy any of it? */
bool reservation_is_none(uint64_t start, uint64_t bytes);

/* Removes any, reservations last; NULL when none is left. */
struct address_range *address_map_pop(void);
/* Around a fork. */
void address_map_fork_child(void);
