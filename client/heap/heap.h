/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap as one member has it open. layout.h says what members share, and what of that may be believed.
 *
 * Locks, in the order in which they are taken: `grow` (one thread at a time makes a slab), `sweep` (one thread at a
 * time uses the locks by which members live, since the kernel does not tell threads apart), a cache's, `lock` (which
 * slabs are mapped). Only the first two are held while a thread waits for the broker. A fork takes `lock` alone: what
 * the others protect is shared memory, or is made anew in the child.
 *
 * The disjoint pool of the UMF facade, on which OpenCL's heap stands too, cuts slabs by code of its own
 * (client/umf/pool_disjoint.h). Its books are the threads' own, so that a pair of calls has no atomic operation and
 * takes a third to two fifths of a heap's (the row pool_pair_vs_disjoint of the benchmark), and it has some sixty
 * sizes. What a heap pays for, that other processes take a block over and know whose it was, those interfaces cannot
 * ask for. nbla cuts nothing: each of its chunks is a buffer, which is mapped wherever its program wants.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/heap.h>

#include "base/list.h"
#include "base/range_index.h"
#include "heap/layout.h"

/* A slab that is mapped here. Nothing of it changes but `leaving`. */
struct slab {
    unsigned number;
    unsigned class;
    uint32_t incarnation;
    uint8_t *base;
    uint64_t block_size;
    uint64_t n_blocks;
    uint64_t *words;
    uint64_t *hints;
    uint8_t *taken;       /* this process's own memory: which blocks it has, whatever the words say */
    uint64_t *given_back; /* a reader's: the generation in which it has last freed each block, plus 1. Else NULL */
    bool leaving;         /* atomic: no thread gets a block of it */
    struct memclient_buffer *buf;
};

struct hint {
    struct slab *slab;
    uint64_t index;
};

#define CACHE_HINTS 128

/* Blocks are aligned to the power of two of which their size is a multiple, up to this one. */
#define HEAP_ALIGNMENT_MAX (UINT64_C(2) << 20)

struct cache_class {
    unsigned max; /* hints: fewer of large blocks, so that memory that processors have in their caches is used again */
    unsigned n;
    unsigned slab; /* where to look for hints next */
    uint64_t word;
    struct hint hints[CACHE_HINTS];
};

/* cache.h */
struct heap_cache {
    bool locked;
    struct slab *last; /* of the last block that was freed */
    struct cache_class *classes;
} __attribute__((__aligned__(128)));

/* A reader's queue, as a member has it open. */
struct heap_queue_open {
    struct heap_queue *queue;
    struct memclient_buffer *buf;
    int fd;
    uint32_t incarnation;
    bool fits; /* it was a queue, of this reader, when it was opened; else nothing is written to it */
};

/*
 * What others have written leads to calls of the broker. Those that lead to nothing are counted, since who writes such
 * entries again and again could keep everybody busy with them. There may be many honest ones, where members with slabs
 * or readers have died: who allocates does a part, and begins the next time where it has stopped, so that no entry is
 * left out; who sweeps or opens the heap does all.
 */
#define FAILED_CALLS_MAX     32
#define FAILED_CALLS_MAX_ALL HEAP_SLABS

struct failure_budget {
    unsigned left; /* of this call of the program */
    unsigned next; /* which entry to begin with */
};

struct memclient_heap {
    struct list in_process;
    struct memclient_context *ctx;
    struct heap_geometry geometry;  /* checked. A reader has only id and classes */
    char name[MEMCLIENT_NAME_SIZE]; /* or "" */
    bool named_by_other;            /* a user in whose names this member can bind none */
    unsigned member;                /* atomic; 0 in a child, before its first call */
    uint32_t incarnation;

    struct memclient_buffer *control_buf; /* or, of a reader, its queue's */
    struct heap_control *control;         /* NULL: it is a reader's */
    struct heap_queue *queue;             /* a reader's */
    int lock_fd;                          /* whose lock says that this member lives */
    int import_fd;                        /* by which a child opens the control buffer again */

    pthread_mutex_t grow, sweep, lock;
    struct slab *slabs[HEAP_SLABS]; /* atomic; changed with `lock`, freed when no cache is locked */
    unsigned n_slabs;               /* atomic: all numbers are below */
    struct range_index index;       /* of their addresses */
    uint64_t refused[HEAP_SLABS];   /* words of entries that lead to no slab; with `sweep` */
    struct failure_budget in_slabs, in_names, in_queues, in_readers; /* with `sweep` */
    struct heap_queue_open *queues[HEAP_MEMBERS];                    /* with `sweep` */

    unsigned n_caches; /* a power of two */
    struct heap_cache *caches;
};

static inline unsigned heap_member(const struct memclient_heap *heap)
{
    return __atomic_load_n(&heap->member, __ATOMIC_RELAXED);
}

static inline struct slab *heap_slab(struct memclient_heap *heap, unsigned number)
{
    return __atomic_load_n(&heap->slabs[number], __ATOMIC_ACQUIRE);
}

static inline unsigned heap_n_slabs(const struct memclient_heap *heap)
{
    return __atomic_load_n(&heap->n_slabs, __ATOMIC_ACQUIRE);
}

static inline bool slab_is_leaving(const struct slab *slab)
{
    return __atomic_load_n(&slab->leaving, __ATOMIC_ACQUIRE);
}

/* With `sweep`: another call of the program begins. */
static inline void heap_begin_asking(struct memclient_heap *heap, unsigned failed_calls_max)
{
    heap->in_slabs.left = heap->in_names.left = heap->in_queues.left = heap->in_readers.left = failed_calls_max;
}

/* False: there were too many, so that entry is for the next time. */
static inline bool failure_budget_allows(struct failure_budget *budget, unsigned entry)
{
    if (budget->left == 1)
        budget->next = entry;
    return budget->left > 0;
}

static inline void failure_budget_spend(struct failure_budget *budget)
{
    budget->left -= budget->left > 0;
}

/* The address of a block. */
static inline void *slab_block(const struct slab *slab, uint64_t index)
{
    return slab->base + index * slab->block_size;
}
