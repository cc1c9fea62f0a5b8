/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of what this process has allocated and imported, of all heaps: by address, so that every pointer that
 * comes from outside is looked up here; and then in the quarantine of its heap. A record that is taken out belongs to
 * the caller. The lock is never held over a call of anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/interval.h"
#include "base/list.h"
#include "opencl/free_queue.h"

struct import;

struct entry {
    struct interval range; /* its owner is an OpenCL context, or NULL */
    uintptr_t start;
    size_t size;
    struct memclient_svm *svm;
    uint64_t flags;
    unsigned generation;   /* table_generation() when it was made: in a child of fork() the parent's is another */
    struct svm_heap *heap; /* that it was allocated from; NULL: imported */
    struct import *import; /* or NULL */
    struct list waiting;   /* to be released */
    struct queued_free queued;
};

/* Freed records that wait for being released, first in, first out. */
struct quarantine {
    struct list entries; /* by `waiting` */
    uint64_t bytes;
    uint64_t max_bytes;
};

/* Adds the entry, with its ordinal, which is its range's serial, and its generation. */
void table_add(struct entry *entry, const void *owner);
/*
 * Copies the entry that holds the address: of several the one that starts last, and of those the newest. With an owner,
 * it is one of the owner's. False: there is none.
 */
bool table_find(const void *ptr, const void *owner, struct entry *ret);
/* The bytes from the address to the end of its entry; 0: it is in none. */
size_t table_left(const void *ptr);
/* Takes out the newest entry of that heap and owner that starts there; NULL: there is none. */
struct entry *table_take(const void *ptr, const struct memclient_svm *svm, const void *owner);
/* Moves all entries of svm to the list, by `waiting`. */
void table_take_all(const struct memclient_svm *svm, struct list *list);

void quarantine_put(struct quarantine *quarantine, struct entry *entry);
/* Takes out the oldest entry if there are more than max_bytes; NULL if not. */
struct entry *quarantine_take(struct quarantine *quarantine, uint64_t max_bytes);

/* The number of forks between this process and the one that loaded the library. */
unsigned table_generation(void);

void table_before_fork(void);
void table_in_parent(void);
void table_in_child(void);
