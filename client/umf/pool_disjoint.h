/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disjoint pool's parts.
 *
 * A *block* is what the provider gave in one piece: a slab that is cut into chunks of one bucket's size, a slab that is
 * one allocation, or a large allocation that the pool only passes on. The map finds it by an address. All records are
 * in malloc's memory: nobody looks at the provider's.
 *
 * Slabs that are cut belong to *heaps*. A thread has a heap of its own in each pool that it allocates from, so that
 * allocating, and freeing what is its own, take no lock and no atomic operation. What others free is put onto a list of
 * the slab, which the heap's thread collects when it runs out. When a thread ends, its heap stays with what is still
 * allocated, to be locked by whoever frees that, and to be taken over by the next thread that needs one.
 *
 * A pool has one lock, for what threads share: the map's changes, buckets, and heaps that no thread has. It is taken
 * behind that of the register of threads. No provider is called with either, nor is memory of others asked for but of
 * malloc(): around a fork they are all held.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/umf/umf/pools/pool_disjoint.h>

#include "base/list.h"
#include "umf/pool_threads.h"

#define BUCKETS_MAX 64

struct disjoint;

struct block {
    atomic_uintptr_t from; /* the addresses that the map finds it by */
    atomic_size_t span;
    struct bucket *bucket; /* NULL: a large allocation */
    struct heap *heap;     /* of a slab that is cut; else NULL */
    void *base;            /* as the provider knows it */
    size_t size;
    struct list link; /* of its bucket, its heap, or what is spare */
};

/*
 * A block that is cut. What is not atomic is its heap's, or its bucket's while that keeps it. Chunks are meant by where
 * they begin in the slab, in units of 8 bytes.
 */
struct slab {
    struct block block;
    uint32_t n_free;  /* of the stack */
    uint32_t n_fresh; /* so many were ever used */
    uint32_t n;       /* chunks */
    bool slow_free;   /* freeing is more than a push: it is not in its bin's list, `aligned`, or to be counted */
    bool listed;
    bool aligned;     /* allocations need not begin where chunks do */
    bool kept;        /* its bin keeps it when nothing is allocated of it */
    _Atomic uint32_t freed; /* a list of those that other threads have freed: the first one's number, plus 1; or 0 */
    struct slab *next_pending;
    uint32_t *next;    /* the list, by numbers */
    uint32_t stack[];  /* the free ones that were used */
};

/* What allocations of one size come from. */
struct bucket {
    struct disjoint *pool;
    size_t size;       /* of an allocation */
    size_t stride;     /* from chunk to chunk: every one begins at 8 bytes */
    size_t slab_size;
    bool is_cut;       /* slabs are cut into chunks; else each is one allocation */
    struct list kept;  /* slabs that are free; of those that are cut, what no heap keeps itself; with the lock */
    atomic_size_t n_kept; /* changed with the lock */
    struct list spare; /* records of slabs that were; with the lock */
    /* for traces only */
    atomic_size_t n_allocs, n_from_pool, n_frees, n_in_use, n_in_pool, max_in_use, max_in_pool;
};

/* A heap's part of a bucket. */
struct bin {
    struct slab *current;   /* where chunks are taken from; heap_no_slab: nowhere */
    struct list available;  /* slabs that may have chunks, an empty one last */
    struct slab *empty;     /* the one that is kept; NULL: none */
};

struct heap {
    struct thread_part part;
    struct disjoint *pool;
    struct slab *recent;          /* one of its own, of which something was freed; or heap_no_slab */
    atomic_bool attached;         /* a thread has it; else it takes the lock */
    struct list unused;           /* slabs that it gives up when the lock is free */
    _Atomic(struct slab *) pending; /* slabs that others have freed chunks of */
    struct bin bins[BUCKETS_MAX];
};

struct map_table {
    struct map_table *older;
    size_t mask;
    size_t used; /* live ones and gaps */
    _Atomic(struct block *) slots[];
};

struct map {
    _Atomic(struct map_table *) table;
    unsigned shift; /* of an address: its granule */
};

struct umf_disjoint_pool_shared_limits_t {
    size_t max;
    atomic_size_t total; /* bytes of slabs that are kept though free */
};

struct disjoint {
    struct thread_parts heaps;
    umf_memory_provider_handle_t provider;
    umf_disjoint_pool_params_t params;
    size_t cut_max;  /* the largest allocation that gets a chunk at once; 0 if something is to be counted */
    bool counted;    /* the limits, or for traces */
    bool is_tracked; /* the provider knows the large allocations; they need no records */
    size_t min_page_size;
    unsigned first_bucket; /* what the smallest's would be, were there buckets from 1 byte on */
    unsigned n_buckets;
    struct map map;
    pthread_mutex_t lock;
    struct list spare; /* records of large allocations that were; with the lock */
    struct bucket buckets[BUCKETS_MAX];
};

/* ---- pool_disjoint_map.c: which block is there ----------------------------------------------------------- */

bool map_init(struct map *map, size_t granule);
void map_deinit(struct map *map);
/* With the lock: from now on found. false without memory. */
bool map_insert(struct map *map, struct block *block, uintptr_t from, size_t span);
/* With the lock. */
void map_remove(struct map *map, struct block *block);
/* For a pool's end: all blocks, which are in no list that matters any more. */
void map_take_all(struct map *map, struct list *list);

/* Where the search for an address begins. */
static inline size_t map_hash(uintptr_t granule)
{
    return (size_t)((uint64_t)granule * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline bool block_holds(struct block *block, uintptr_t address)
{
    uintptr_t from = atomic_load_explicit(&block->from, memory_order_relaxed);

    return address - from < atomic_load_explicit(&block->span, memory_order_relaxed);
}

/* What holds the address; NULL if nothing does. Without a lock: records are reused, never freed, and whoever asks for
 * an address has it allocated, so that what holds it stays. */
static inline struct block *map_find(struct map *map, const void *ptr)
{
    struct map_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
    size_t i = map_hash((uintptr_t)ptr >> map->shift);
    struct block *block;

    while ((block = atomic_load_explicit(&table->slots[i++ & table->mask], memory_order_acquire)))
        if (block_holds(block, (uintptr_t)ptr))
            return block;
    return NULL;
}

/* ---- pool_disjoint_slab.c: slabs, and what is kept of them ------------------------------------------------ */

void bucket_init(struct bucket *bucket, struct disjoint *pool, size_t size);
/* Gives the provider what is kept, and forgets the records. */
void bucket_deinit(struct bucket *bucket);
/* A slab that is cut: one that is kept, or a new one; it is all free. NULL and *result if there is none. */
struct slab *slab_get(struct bucket *bucket, bool *from_pool, umf_result_t *result);
/* May a free slab of this bucket be kept by a heap? It is counted, then. */
bool slab_keep(struct bucket *bucket);
/* It is not kept any more. */
void slab_unkeep(struct bucket *bucket);
/* A free slab, which no heap keeps: to the bucket, if it may keep one, or the provider. True: to the bucket. */
bool slab_put(struct slab *slab, bool may_keep);
/* A slab that is one allocation, handed out as the pointer aligned up. */
void *whole_get(struct bucket *bucket, size_t alignment, bool *from_pool, umf_result_t *result);
bool whole_put(struct block *block);
/* An allocation that the pool only passes on, with a record. */
void *large_get(struct disjoint *pool, size_t size, size_t alignment, umf_result_t *result);
umf_result_t large_put(struct disjoint *pool, struct block *block);
void block_list_free(struct list *list);

/* ---- pool_disjoint_heap.c: chunks ------------------------------------------------------------------------- */

extern const struct thread_parts_ops heap_ops;

void *heap_malloc(struct heap *heap, struct bucket *bucket, bool aligned, bool *from_pool, umf_result_t *result);
/* A chunk back; `mine` is the heap of the calling thread. False: its slab went to the provider. */
bool heap_put(struct heap *mine, struct slab *slab, const void *ptr);
/* No thread has it any more, and it keeps no slab that is free. */
void heap_detach(struct thread_part *part);

static inline struct heap *heap_of(struct thread_part *part)
{
    return container_of(part, struct heap, part);
}

/* The calling thread's, or heap_none. */
static inline struct heap *heap_mine(const struct thread_now *now, const struct disjoint *pool)
{
    return heap_of(thread_part_mine(now, &pool->heaps));
}

/* ---- what is done most: a chunk of this thread's heap ----------------------------------------------------- */

/* Nothing is free there, and no address in it. */
extern struct slab heap_no_slab;
/* It has no slab, and never gets one. */
extern struct heap heap_none;

/* NULL: the heap has to look further. */
static inline void *heap_pop(const struct bin *bin)
{
    struct slab *slab = bin->current;

    if (!slab->n_free)
        return NULL;
    return (char *)slab->block.base + (size_t)slab->stack[--slab->n_free] * 8;
}

/* The heap's slab that the address is in; NULL if it is in none. That it is the one of last time the processor can
 * foresee, so it need not wait for the map. */
static inline struct slab *heap_find(struct disjoint *pool, struct heap *heap, const void *ptr)
{
    struct slab *slab = heap->recent;
    struct block *block;

    if (block_holds(&slab->block, (uintptr_t)ptr))
        return slab;
    block = map_find(&pool->map, ptr);
    if (!block || block->heap != heap)
        return NULL;
    heap->recent = container_of(block, struct slab, block);
    return heap->recent;
}

bool heap_emptied(struct slab *slab);

/* A chunk of the thread's own, of a slab without slow_free. */
static inline void heap_push(struct slab *slab, const void *ptr)
{
    slab->stack[slab->n_free++] = (uint32_t)((size_t)((const char *)ptr - (const char *)slab->block.base) / 8);
    if (slab->n_free == slab->n_fresh && !slab->kept)
        (void)heap_emptied(slab);
}

/* ---- pool_disjoint_trace.c ------------------------------------------------------------------------------- */

void trace_alloc(struct disjoint *pool, struct bucket *bucket, const void *ptr, size_t size, size_t alignment,
                 bool from_pool);
void trace_free(struct disjoint *pool, struct bucket *bucket, const void *ptr, bool to_pool);
/* Slabs are used and kept: by how many more. */
void trace_slabs(struct bucket *bucket, int in_use, int in_pool);
void trace_end(struct disjoint *pool);
