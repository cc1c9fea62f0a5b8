/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HSA has at which address of this process.
 *
 * Whatever lies at an address embeds a struct place: allocations, attached IPC memory, registered ranges and mappings,
 * which do not overlap, in one tree; reservations, which mappings lie in, in another. Both are changed and looked
 * at under one lock, which is also that of all other records of HSA memory (handles, permissions, callbacks).
 *
 * The lock is never held while the broker is called. So what is being made, or being taken away, is in the tree but
 * *busy*: its addresses are taken, and for everything else it is not there.
 *
 *     places_lock();
 *     place_insert(&mapping->place)           busy: nobody else gets these addresses
 *     places_unlock();
 *     r = memclient_map(...)                  may call the broker
 *     places_lock();
 *     mapping->place.busy = false, or place_remove()
 *     places_unlock();
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/tree.h"

struct memclient_buffer;

enum place_kind {
    PLACE_ALLOCATION, /* struct allocation, memory.h */
    PLACE_ATTACHMENT, /* struct attachment, ipc.h */
    PLACE_LOCKED,     /* struct locked, memory.h: ordinary memory that was registered */
    PLACE_MAPPING,    /* struct mapping, vmem.h */
    PLACE_RESERVATION /* struct reservation, vmem.h */
};

/* What embeds it is found by place_allocation() and so on: NULL if it is NULL or of another kind. */
struct place {
    RB_ENTRY(place) entry;
    enum place_kind kind;
    bool busy;
    uint64_t start;
    uint64_t size;  /* as asked for: what the application may be told of */
    uint64_t bytes; /* that it occupies */
    void *userdata; /* the application's, for hsa_amd_pointer_info() */
    struct list callbacks; /* struct callback, callbacks.c: to be told when it goes */
};

void place_init(struct place *place, enum place_kind kind, const void *start, uint64_t size, uint64_t bytes);

void places_lock(void);      /* to change anything */
void places_lock_read(void); /* to look */
void places_unlock(void);

/* The one whose `size` holds the address; NULL if there is none, or it is busy. Not reservations. */
struct place *place_find(const void *address);
/* The same, if it begins just there. */
struct place *place_find_base(const void *address);
/* The first that ends behind the address, busy or not, and the one behind another; NULL if there is none. */
struct place *place_first(uint64_t address);
struct place *place_next(struct place *place);
/* Does nothing, busy or not, occupy any of it? */
bool place_is_free(uint64_t start, uint64_t bytes);
/* The same, but for memory that was registered, whose record goes when something is inserted over it. */
bool place_is_unclaimed(uint64_t start, uint64_t bytes);
/* It must be free, but for memory that was registered: that record goes. Reservations go to their own tree. */
void place_insert(struct place *place);
void place_remove(struct place *place);

/* What it is a mapping of, not counted up, and where in that it begins; NULL for memory that is the application's. */
struct memclient_buffer *place_buffer(struct place *place, uint64_t *offset);

/* The reservation that holds the address, busy ones excepted; the one that holds all of the range. */
struct place *reservation_find(const void *address);
struct place *reservation_around(uint64_t start, uint64_t bytes);
/* Does no reservation, busy or not, occupy any of it? */
bool reservation_is_none(uint64_t start, uint64_t bytes);

/* Removes any, reservations last; NULL when none is left. */
struct place *places_pop(void);
/* Around a fork. */
void places_fork_child(void);
