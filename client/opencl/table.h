/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is allocated and imported in this process, of all heaps, by address: every pointer that comes from outside is
 * looked up here. An entry that is taken out is its taker's alone. The lock is never held over a call of anything.
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
    struct interval range; /* its owner is for whom it is: an OpenCL context, or NULL */
    uintptr_t start;
    size_t size;
    struct memclient_svm *svm;
    uint64_t flags;
    unsigned generation;   /* table_generation() when it was made: in a child of fork() it is the parent's */
    struct svm_heap *heap; /* what it was allocated from; NULL: imported */
    struct import *import; /* or NULL: mapped by somebody else */
    struct list waiting;   /* to be released */
    struct queued_free queued;
};

/* Enters it with its ordinal, which is its range's serial, and its generation. */
void table_add(struct entry *entry, const void *owner);
/*
 * Copies out what the address is in; of several the one that starts last, and of those the newest. With an owner, only
 * his count. False: there is none.
 */
bool table_find(const void *ptr, const void *owner, struct entry *ret);
/* How many bytes from the address on are in one entry; 0: it is in none. */
size_t table_left(const void *ptr);
/* Takes out the newest that starts there and is of that heap and owner; NULL: there is none. */
struct entry *table_take(const void *ptr, const struct memclient_svm *svm, const void *owner);
/* Takes out all of svm's, into the list, by `waiting`. */
void table_take_all(const struct memclient_svm *svm, struct list *list);

/* How many forks this process is away from where the library was loaded. */
unsigned table_generation(void);

void table_before_fork(void);
void table_in_parent(void);
void table_in_child(void);
