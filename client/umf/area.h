/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our providers have at which address of the process: allocations or what is left of them, and memory that was
 * opened. Whole pages. No two allocations overlap, so a provider frees nothing that is not its own, whatever it is told
 * to. What was opened overlaps where it is of the same buffer: each opening has an area.
 *
 * An allocation that was split is one area still: only freeing a part of it makes two.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

/* A buffer of which something is mapped. Counted; the last is released with calls to the broker. */
struct shared_buffer {
    unsigned refs;
    struct memclient_buffer *handle;
    struct memclient_reservation *reservation; /* where it lies, or NULL */
    struct memclient_token *token;             /* once there is a handle; or NULL */
    bool token_keeps;
    bool may_be_shared; /* others may know of it */
    char *name;         /* that it was given, or NULL */
    void *opened_by;    /* the handle's bytes, or NULL */
    int pid;            /* who made this */
    /* of what was allocated: the provider, and where the first byte is mapped, as area.c has it */
    const void *owner;
    uint64_t base;
};

enum area_kind { AREA_ALLOCATED, AREA_OPENED };

struct area {
    const void *owner; /* the provider */
    enum area_kind kind;
    uint64_t start;
    uint64_t length;
    struct shared_buffer *buffer; /* what is mapped there, counted; NULL = private memory */
    uint64_t offset;              /* of `start`, in the buffer; an allocation's is always mapped at one place */
};

/* ---- buffers ---------------------------------------------------------------------------------------------- */

void shared_buffer_ref(struct shared_buffer *buffer);
void shared_buffer_unref(struct shared_buffer *buffer);
/* Takes the handle, on success. NULL without memory. */
struct shared_buffer *shared_buffer_new(struct memclient_buffer *handle);
/* An area that was taken out: unmaps it, and gives it back. */
void shared_buffer_release(const struct area *taken);

/* ---- areas ------------------------------------------------------------------------------------------------ */

/* Notes a copy of it, with its count of the buffer. What is noted there already was unmapped behind our back, and is
 * forgotten. -ENOMEM. */
int area_add(const struct area *area);

/*
 * Takes out the first of what the owner has allocated from *from on to `end`, as far as it lies there, and says where
 * that ends in *from; `whole`: only if there is no gap. *taken has its count of the buffer. 1; 0: there is nothing;
 * -ENOMEM, and nothing was done, which is so for the first of a range only.
 */
int area_take(const void *owner, uint64_t *from, uint64_t end, bool whole, struct area *taken);
/* What the owner opened at just this address, of several the shortest. */
bool area_take_opened(const void *owner, uint64_t start, struct area *taken);
/* Any that the owner has, from *from on, which is 0 at first; when there are no more of those, what it has opened. */
bool area_take_any(const void *owner, uint64_t *from, struct area *taken);
/* An allocation that was taken goes back where it was. */
void area_put_back(const struct area *taken);

/* A copy of the owner's area (NULL: of anybody's) around the address; its buffer is counted up. */
bool area_find(const void *owner, const void *address, struct area *copy);
/* Has anybody allocated any of it? */
bool area_is_allocated(uint64_t start, uint64_t length);
/* Does the owner have all of the range, allocated or opened? */
bool area_covers(const void *owner, uint64_t start, uint64_t length);
/* Has it allocated the range as one? */
bool area_is_one(const void *owner, uint64_t start, uint64_t length);

/* Guards the areas, and what closed.c keeps. It is never held while the kernel or the broker is called. */
extern pthread_mutex_t area_mutex;
