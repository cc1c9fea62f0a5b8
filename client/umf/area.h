/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that our providers have, by its address in the process: allocations or what is left of them, and memory of
 * other processes that was opened. All areas are of whole pages. No two allocations overlap, so a provider never frees
 * memory that is not its own, whatever it is called with. Opened areas overlap where they are of one buffer, since each
 * opening has its own.
 *
 * A split makes no new area. Only freeing a part of an allocation does.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

/* A buffer that is mapped, counted by its areas. Dropping the last reference calls the broker. */
struct shared_buffer {
    unsigned refs;
    struct memclient_buffer *handle;
    struct memclient_reservation *reservation; /* where it is mapped, or NULL */
    struct memclient_token *token;             /* made for the first handle; or NULL */
    bool token_keeps;
    bool may_be_shared; /* others may know its memory */
    char *name;         /* the name it is bound to, or NULL */
    void *opened_by;    /* the handle that opened it, or NULL */
    int pid;            /* the process that made this */
    /* of an allocation: the provider, and the address of the buffer's first byte */
    const void *owner;
    uint64_t base;
};

enum area_kind { AREA_ALLOCATED, AREA_OPENED };

struct area {
    const void *owner; /* the provider */
    enum area_kind kind;
    uint64_t start;
    uint64_t length;
    struct shared_buffer *buffer; /* what is mapped there, with a reference; NULL: private memory */
    uint64_t offset;              /* of `start` in the buffer */
};

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

void shared_buffer_ref(struct shared_buffer *buffer);
/* NULL is ignored. */
void shared_buffer_unref(struct shared_buffer *buffer);
/* Takes the handle on success. NULL: no memory. */
struct shared_buffer *shared_buffer_new(struct memclient_buffer *handle);
/* Unmaps an area that was taken out, and drops its reference. */
void shared_buffer_release(const struct area *taken);

/* ---- areas ------------------------------------------------------------------------------------------------------- */

/* Adds a copy, and with it the reference to the buffer. Areas that it overlaps were unmapped without our knowledge, and
 * are dropped. 0 or -ENOMEM. */
int area_add(const struct area *area);

/*
 * Takes out the first piece of the owner's allocations between *from and `end`, and sets *from to its end. With `whole`
 * there must be no gap in the range. *taken gets the reference to the buffer. Returns 1; 0 if nothing is there; or
 * -ENOMEM with nothing changed, which only the first piece of a range can give.
 */
int area_take(const void *owner, uint64_t *from, uint64_t end, bool whole, struct area *taken);
/* Takes out what the owner opened at exactly this address; of several, the shortest. */
bool area_take_opened(const void *owner, uint64_t start, struct area *taken);
/* Takes out anything that the owner has: allocations from *from on, which starts as 0, and then what it opened. */
bool area_take_any(const void *owner, uint64_t *from, struct area *taken);
/* Puts an allocation back that was taken out. */
void area_put_back(const struct area *taken);

/* Copies the owner's area (NULL: anybody's) around the address, with a reference to the buffer. */
bool area_find(const void *owner, const void *address, struct area *copy);
/* Is any of the range allocated, by anybody? */
bool area_is_allocated(uint64_t start, uint64_t length);
/* Does the owner have all of the range, allocated or opened? */
bool area_covers(const void *owner, uint64_t start, uint64_t length);
/* Is all of the range private memory of the owner, or of one of its buffers? */
bool area_is_one(const void *owner, uint64_t start, uint64_t length);

/* Guards the areas and closed.c's cache. It is never held during a call of the kernel or the broker. */
extern pthread_mutex_t area_mutex;
