/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is allocated and imported in this process, of all heaps, by address: every pointer that comes from outside is
 * looked up here. An entry that is taken out is its taker's alone. The lock is never held over a call of anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/tree.h"
#include "opencl/returns.h"

struct import;

struct entry {
    RB_ENTRY(entry) by_address;
    uintptr_t start;
    size_t size;
    uintptr_t reach;       /* the last end of what is below it in the tree, and of itself */
    struct memclient_svm *svm;
    const void *owner;     /* for whom: an OpenCL context, or NULL */
    uint64_t flags;
    uint64_t ordinal;
    unsigned life;         /* table_life() when it was made: in a child of fork() it is the parent's */
    struct heap *heap;     /* what it was allocated from; NULL: imported */
    struct import *import; /* or NULL: mapped by somebody else */
    struct list waiting;   /* to be released */
    struct returned returned;
};

/* Enters it with its ordinal and life. */
void table_add(struct entry *entry);
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
unsigned table_life(void);

void table_before_fork(void);
void table_in_parent(void);
void table_in_child(void);
