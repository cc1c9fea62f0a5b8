/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the disjoint pool.
 *
 * A *block* is memory that the provider allocated as one: a slab that is cut into chunks of one bucket's size, a slab
 * that is one allocation, or a large allocation that the pool only passes on. The map finds a block by an address. All
 * records are in malloc()'s memory, since the provider's memory may not be accessible.
 *
 * Slabs that are cut belong to *heaps*. A thread has a heap of its own in each pool that it allocates from. So it
 * allocates, and frees what is its own, without a lock or an atomic operation. What other threads free goes to a list
 * of the slab, which the heap's thread collects when it runs out. When the thread ends, its heap remains with what is
 * still allocated. Whoever frees that takes the lock, and the next thread that needs a heap takes it over.
 *
 * A pool has one lock for what threads share: changes of the map, buckets, and heaps without a thread. It is taken
 * after the lock of the register of threads. A fork takes both, so neither may be held when a provider is called, or
 * anything else that allocates, except malloc().
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
    atomic_uintptr_t from; /* the addresses by which the map finds it */
    atomic_size_t span;
    struct bucket *bucket; /* NULL: a large allocation */
    struct heap *heap;     /* of a slab that is cut; else NULL */
    void *base;            /* as the provider returned it */
    size_t size;
    struct list link; /* of its bucket, its heap, or spare records */
};

/* A block that is cut. Members that are not atomic belong to its heap, or to its bucket if that keeps it. A chunk is
 * denoted by its start in the slab, in units of 8 bytes. */
struct slab {
    struct block block;
    uint32_t n_free;  /* chunks on the stack */
    uint32_t n_fresh; /* chunks that were ever used */
    uint32_t n;       /* chunks */
    bool slow_free;   /* heap_push() is not enough: not `listed`, `aligned`, or something is counted */
    bool listed;
    bool aligned;           /* allocations may begin inside chunks */
    bool kept;              /* its bin keeps it if it is empty */
    _Atomic uint32_t freed; /* list of chunks that other threads freed: the first one's number plus 1; 0: none */
    struct slab *next_pending;
    uint32_t *next;   /* the links of that list */
    uint32_t stack[]; /* free chunks that were used */
};

/* The source of all allocations of one size. */
struct bucket {
    struct disjoint *pool;
    size_t size;   /* of an allocation */
    size_t stride; /* from chunk to chunk, a multiple of 8 */
    size_t slab_size;
    bool is_cut;          /* slabs are cut into chunks; else each is one allocation */
    struct list kept;     /* free slabs; of those that are cut, without the ones that heaps keep; with the lock */
    atomic_size_t n_kept; /* changed with the lock */
    struct list spare;    /* records without a slab; with the lock */
    /* only for traces */
    atomic_size_t n_allocs, n_from_pool, n_frees, n_in_use, n_in_pool, max_in_use, max_in_pool;
};

/* A heap's part of a bucket. */
struct bin {
    struct slab *current;  /* where chunks are taken from; or heap_no_slab */
    struct list available; /* slabs that may have free chunks; an empty one is last */
    struct slab *empty;    /* the one that is kept, or NULL */
};

struct heap {
    struct thread_part part;
    struct disjoint *pool;
    struct slab *recent;            /* the one of its slabs that was freed to last; or heap_no_slab */
    atomic_bool attached;           /* a thread has it; otherwise using it takes the lock */
    struct list unused;             /* slabs to give up once the lock is dropped */
    _Atomic(struct slab *) pending; /* slabs with chunks that other threads freed */
    struct bin bins[BUCKETS_MAX];
};

struct map_table {
    struct map_table *older;
    size_t mask;
    size_t used; /* slots with blocks and gaps */
    _Atomic(struct block *) slots[];
};

struct map {
    _Atomic(struct map_table *) table;
    unsigned shift; /* log2 of the granule */
};

struct umf_disjoint_pool_shared_limits_t {
    size_t max;
    atomic_size_t total; /* bytes of free slabs that are kept */
};

struct disjoint {
    struct thread_parts heaps;
    umf_memory_provider_handle_t provider;
    umf_disjoint_pool_params_t params;
    size_t cut_max;  /* the largest size that disjoint_malloc() takes chunks for; 0 if something is counted */
    bool counted;    /* limits or traces count */
    bool is_tracked; /* the provider knows the sizes of large allocations, so they have no records */
    size_t min_page_size;
    unsigned first_bucket; /* the number that the first would have if buckets began at 1 byte */
    unsigned n_buckets;
    struct map map;
    pthread_mutex_t lock;
    struct list spare; /* records without a large allocation; with the lock */
    struct bucket buckets[BUCKETS_MAX];
};

/* ---- pool_disjoint_map.c: which block is there ------------------------------------------------------------------- */

bool map_init(struct map *map, size_t granule);
void map_deinit(struct map *map);
/* With the lock. false: no memory. */
bool map_insert(struct map *map, struct block *block, uintptr_t from, size_t span);
/* With the lock. */
void map_remove(struct map *map, struct block *block);
/* When the pool ends: puts all blocks into the list, whatever list they were in. */
void map_take_all(struct map *map, struct list *list);

/* Where the search for a granule begins. */
static inline size_t map_hash(uintptr_t granule)
{
    return (size_t)((uint64_t)granule * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline bool block_holds(struct block *block, uintptr_t address)
{
    uintptr_t from = atomic_load_explicit(&block->from, memory_order_relaxed);

    return address - from < atomic_load_explicit(&block->span, memory_order_relaxed);
}

/* Returns the block that holds the address, or NULL. No lock is needed: records are reused but never freed, and the
 * caller has the address allocated, so its block stays. */
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

/* ---- pool_disjoint_slab.c: slabs, and what is kept of them ------------------------------------------------------- */

void bucket_init(struct bucket *bucket, struct disjoint *pool, size_t size);
/* Gives what is kept back to the provider, and frees the records. */
void bucket_deinit(struct bucket *bucket);
/* Gets a slab that is cut and empty, a kept one or a new one. NULL: *result says why. */
struct slab *slab_get(struct bucket *bucket, umf_result_t *result);
/* May a heap keep a free slab of this bucket? If so, it is counted. */
bool slab_keep(struct bucket *bucket);
/* Counts it out again. */
void slab_unkeep(struct bucket *bucket);
/*
 * Gives an empty slab that no heap keeps to its bucket if that may keep it, else to the provider. True: to the bucket.
 */
bool slab_put(struct slab *slab, bool may_keep);
/* Gets a slab that is one allocation. Returns its base, aligned up. */
void *whole_get(struct bucket *bucket, size_t alignment, umf_result_t *result);
bool whole_put(struct block *block);
/* Gets an allocation that the pool only passes on. */
void *large_get(struct disjoint *pool, size_t size, size_t alignment, umf_result_t *result);
umf_result_t large_put(struct disjoint *pool, struct block *block);
void block_list_free(struct list *list);

/* ---- pool_disjoint_heap.c: chunks -------------------------------------------------------------------------------- */

extern const struct thread_parts_ops heap_ops;

void *heap_malloc(struct heap *heap, struct bucket *bucket, bool aligned, umf_result_t *result);
/* Frees a chunk. `mine` is the calling thread's heap. False: its slab went to the provider. */
bool heap_put(struct heap *mine, struct slab *slab, const void *ptr);
/* The heap's thread ends, or the pool does. The heap gives its free slabs up. */
void heap_detach(struct thread_part *part);

static inline struct heap *heap_of(struct thread_part *part)
{
    return container_of(part, struct heap, part);
}

/* Returns the calling thread's heap, or heap_none. */
static inline struct heap *heap_mine(const struct thread_now *now, const struct disjoint *pool)
{
    return heap_of(thread_part_mine(now, &pool->heaps));
}

/* ---- what is done most: a chunk of this thread's heap ------------------------------------------------------------ */

/* Has no free chunk, and holds no address. */
extern struct slab heap_no_slab;
/* Has no slab, and never gets one. */
extern struct heap heap_none;

/* NULL: heap_malloc() has to look further. */
static inline void *heap_pop(const struct bin *bin)
{
    struct slab *slab = bin->current;

    if (!slab->n_free)
        return NULL;
    return (char *)slab->block.base + (size_t)slab->stack[--slab->n_free] * 8;
}

/* Finds the heap's slab that holds the address, or NULL. The processor can predict that it is the same as last time,
 * and need not wait for the map. */
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

/* Frees a chunk of the thread's own heap, whose slab has no slow_free. */
static inline void heap_push(struct slab *slab, const void *ptr)
{
    slab->stack[slab->n_free++] = (uint32_t)((size_t)((const char *)ptr - (const char *)slab->block.base) / 8);
    if (slab->n_free == slab->n_fresh && !slab->kept)
        (void)heap_emptied(slab);
}

/* ---- pool_disjoint_trace.c --------------------------------------------------------------------------------------- */

void trace_alloc(struct disjoint *pool, struct bucket *bucket, const void *ptr, size_t size, size_t alignment);
void trace_free(struct disjoint *pool, struct bucket *bucket, const void *ptr, bool to_pool);
/* Changes the numbers of slabs in use and kept. */
void trace_slabs(struct bucket *bucket, int in_use, int in_pool);
void trace_end(struct disjoint *pool);
