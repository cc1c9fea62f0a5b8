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
    struct memclient_svm *svm;
    const void *owner;     /* for whom: an OpenCL context, or NULL */
    uint64_t flags;
    uint64_t ordinal;
    unsigned life;         /* table_life() when it was made: in a child of fork() it is the parent's */
    struct heap *heap;     /* what it was allocated from; NULL: imported */
    struct import *import; /* or NULL: mapped by somebody else */
    struct list quarantined;
    struct returned returned;
};

/* Enters it with its ordinal and life. */
void table_add(struct entry *entry);
/* Copies out what the address is in. False: in nothing. */
bool table_find(const void *ptr, struct entry *ret);
/* Takes out what starts there, if it is of that heap and owner; else NULL. */
struct entry *table_take(const void *ptr, const struct memclient_svm *svm, const void *owner);
/* Takes out any of svm's; NULL if none is left. */
struct entry *table_take_any(const struct memclient_svm *svm);

/* How many forks this process is away from where the library was loaded. */
unsigned table_life(void);

void table_before_fork(void);
void table_in_parent(void);
void table_in_child(void);
