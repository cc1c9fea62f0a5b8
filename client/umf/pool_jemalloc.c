/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jemalloc pool is an arena of a private jemalloc (see private-jemalloc.pl). Hooks get its memory from the
 * provider; its records are elsewhere. Each thread has a cache, which is emptied when the thread ends.
 *
 * jemalloc's functions that take an arena and a cache are several times slower than its malloc(). So a thread keeps the
 * last few small pieces that it freed, on a shelf for each of jemalloc's sizes, and allocates from there. To jemalloc
 * these pieces are still allocated.
 *
 * A provider that cannot split gets its allocations back whole, at the latest when the pool ends. After the first
 * refusal it is not asked again, and only jemalloc knows of parts.
 */
#include <memclient/umf/umf/pools/pool_jemalloc.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#ifdef HAVE_JEMALLOC

#include <jemalloc/jemalloc.h>

#include "base/align.h"
#include "umf/pool_jemalloc.h"
#include "umf/pool_threads.h"

extern __typeof__(mallocx) umf_je_mallocx;
extern __typeof__(dallocx) umf_je_dallocx;
extern __typeof__(rallocx) umf_je_rallocx;
extern __typeof__(sallocx) umf_je_sallocx;
extern __typeof__(nallocx) umf_je_nallocx;
extern __typeof__(mallctl) umf_je_mallctl;
extern intptr_t umf_je_tls_offset;
extern __thread char umf_je_tsd_tls[];

struct jemalloc {
    struct jemalloc_memory memory;
    struct thread_parts caches;
    unsigned arena;
};

/* All small sizes of jemalloc are multiples of this, but for a smaller one that is never requested. */
#define STEP    ((size_t)16)
#define SHELVES 28 /* for sizes up to 4 KiB */
#define PIECES  30 /* a shelf takes 256 bytes with these */

struct shelf {
    size_t size; /* of its pieces; 0: the shelf is not used */
    unsigned n;
    void *pieces[PIECES];
};

/* A thread's cache. */
struct cache {
    struct thread_part part;
    unsigned id;          /* of jemalloc's cache */
    struct shelf *recent; /* where a piece was put last */
    struct shelf shelves[SHELVES];
};

static struct cache no_cache = {.recent = no_cache.shelves}; /* its id is never used, and its shelves are empty */

/* ---- shelves ----------------------------------------------------------------------------------------------------- */

static uint8_t shelf_of[4096 / STEP + 1]; /* by size in steps */
static size_t shelved_max;                /* the largest size with a shelf */

/* Sizes that jemalloc rounds up to the same share a shelf. */
static void number_shelves(void)
{
    size_t last = umf_je_nallocx(STEP, 0);
    uint8_t shelf = 0;

    for (size_t i = 1; i < sizeof(shelf_of) / sizeof(*shelf_of); i++) {
        size_t size = umf_je_nallocx(i * STEP, 0);

        shelf += size != last;
        if (shelf == SHELVES)
            return;
        shelf_of[i] = shelf;
        shelved_max = i * STEP;
        last = size;
    }
}

/* For sizes from 1 to shelved_max. */
static struct shelf *find_shelf(struct cache *cache, size_t size)
{
    return &cache->shelves[shelf_of[(size + STEP - 1) / STEP]];
}

static void label_shelves(struct cache *cache)
{
    for (size_t size = STEP; size <= shelved_max; size += STEP)
        find_shelf(cache, size)->size = size;
    cache->recent = cache->shelves;
}

/* Finds the shelf for pieces of exactly this size, or NULL. The processor can predict that it is the same as last time,
 * and need not wait for jemalloc to find the size. */
static struct shelf *find_shelf_of(struct cache *cache, size_t size)
{
    if (cache->recent->size != size) {
        if (size > shelved_max || cache == &no_cache)
            return NULL;
        cache->recent = find_shelf(cache, size);
    }
    return cache->recent;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static struct thread_part *cache_make(struct thread_parts *parts)
{
    struct cache *cache = calloc(1, sizeof(*cache));
    size_t size = sizeof(cache->id);

    if (!cache)
        return NULL;
    if (umf_je_mallctl("tcache.create", &cache->id, &size, NULL, 0)) {
        free(cache);
        return NULL;
    }
    label_shelves(cache);
    thread_part_init(&cache->part, parts);
    return &cache->part;
}

static void cache_detach(struct thread_part *part)
{
    struct cache *cache = container_of(part, struct cache, part);

    for (unsigned i = 0; i < SHELVES; i++)
        while (cache->shelves[i].n)
            umf_je_dallocx(cache->shelves[i].pieces[--cache->shelves[i].n], MALLOCX_TCACHE(cache->id));
    (void)umf_je_mallctl("tcache.flush", NULL, NULL, &cache->id, sizeof(cache->id));
}

static void cache_free(struct cache *cache)
{
    if (!cache->part.lost)
        (void)umf_je_mallctl("tcache.destroy", NULL, NULL, &cache->id, sizeof(cache->id));
    free(cache);
}

static const struct thread_parts_ops cache_ops = {
    .make = cache_make,
    .detach = cache_detach,
};

static int jemalloc_flags(struct jemalloc *pool)
{
    struct thread_part *part = thread_part_mine(thread_now(), &pool->caches);

    if (part == &no_cache.part)
        part = thread_part_get(&pool->caches);
    return MALLOCX_ARENA(pool->arena) |
           (part ? MALLOCX_TCACHE(container_of(part, struct cache, part)->id) : MALLOCX_TCACHE_NONE);
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* The arena's own records are allocated before it has hooks, so they do not come from the provider. */
static umf_result_t jemalloc_make_arena(struct jemalloc *pool)
{
    extent_hooks_t *hooks = &pool->memory.hooks;
    size_t size = sizeof(pool->arena);
    char name[64];

    if (umf_je_mallctl("arenas.create", &pool->arena, &size, NULL, 0))
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    (void)snprintf(name, sizeof(name), "arena.%u.extent_hooks", pool->arena);
    return umf_je_mallctl(name, NULL, NULL, &hooks, sizeof(hooks)) ? UMF_RESULT_ERROR_UNKNOWN : UMF_RESULT_SUCCESS;
}

static umf_result_t jemalloc_initialize(umf_memory_provider_handle_t provider, void *arg, void **ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const umf_jemalloc_pool_params_t *params = arg;
    struct jemalloc *pool;
    umf_result_t result;

    /* jemalloc's own thread variable needs a fixed offset */
    if (!static_tls(umf_je_tsd_tls, &umf_je_tls_offset))
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    (void)pthread_once(&once, number_shelves);
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    jemalloc_memory_init(&pool->memory, provider, params && params->disable_provider_free);
    result = jemalloc_make_arena(pool);
    if (result != UMF_RESULT_SUCCESS) {
        free(pool);
        return result;
    }
    thread_parts_init(&pool->caches, &cache_ops, &pool->memory.lock, &no_cache.part);
    *ret = pool;
    return UMF_RESULT_SUCCESS;
}

static void jemalloc_finalize(void *arg)
{
    struct jemalloc *pool = arg;
    char name[64];

    thread_parts_leave(&pool->caches);
    list_for_each_entry_safe(part, &pool->caches.all, struct thread_part, in_pool)
        cache_free(container_of(part, struct cache, part));
    (void)snprintf(name, sizeof(name), "arena.%u.destroy", pool->arena);
    (void)umf_je_mallctl(name, NULL, NULL, NULL, 0);
    jemalloc_memory_deinit(&pool->memory);
    free(pool);
}

/* ---- the pool's operations --------------------------------------------------------------------------------------- */

static void *jemalloc_note(void *ptr)
{
    thread_now()->jemalloc_error = ptr ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return ptr;
}

/* It is a function of its own so that jemalloc_malloc() is a leaf, without a frame. */
__attribute__((__noinline__)) static void *jemalloc_malloc_slow(struct jemalloc *pool, size_t size)
{
    return jemalloc_note(umf_je_mallocx(MAX(size, STEP), jemalloc_flags(pool)));
}

static void *jemalloc_malloc(void *arg, size_t size)
{
    struct jemalloc *pool = arg;
    struct thread_now *now = thread_now_quick();
    struct thread_part *part = thread_part_quick(now, &pool->caches);
    struct shelf *shelf;

    if (!part || size - 1 >= shelved_max)
        return jemalloc_malloc_slow(pool, size);
    shelf = find_shelf(container_of(part, struct cache, part), size);
    if (!shelf->n)
        return jemalloc_malloc_slow(pool, size);
    now->jemalloc_error = UMF_RESULT_SUCCESS;
    return shelf->pieces[--shelf->n];
}

static void *jemalloc_calloc(void *pool, size_t num, size_t size)
{
    if (__builtin_mul_overflow(num, size, &size))
        return jemalloc_note(NULL);
    return jemalloc_note(umf_je_mallocx(MAX(size, STEP), jemalloc_flags(pool) | MALLOCX_ZERO));
}

static umf_result_t jemalloc_free(void *arg, void *ptr)
{
    struct jemalloc *pool = arg;
    struct thread_part *part = thread_part_quick(thread_now_quick(), &pool->caches);
    struct shelf *shelf;

    if (!ptr)
        return UMF_RESULT_SUCCESS;
    shelf = part ? find_shelf_of(container_of(part, struct cache, part), umf_je_sallocx(ptr, 0)) : NULL;
    if (shelf && shelf->n < PIECES)
        shelf->pieces[shelf->n++] = ptr;
    else
        umf_je_dallocx(ptr, jemalloc_flags(pool));
    return UMF_RESULT_SUCCESS;
}

/* Size 0 frees. */
static void *jemalloc_realloc(void *pool, void *ptr, size_t size)
{
    if (!ptr)
        return jemalloc_malloc(pool, size);
    if (size)
        return jemalloc_note(umf_je_rallocx(ptr, MAX(size, STEP), jemalloc_flags(pool)));
    thread_now()->jemalloc_error = jemalloc_free(pool, ptr);
    return NULL;
}

static void *jemalloc_aligned_malloc(void *pool, size_t size, size_t alignment)
{
    if (!alignment)
        return jemalloc_malloc(pool, size);
    if (!is_power_of_two(alignment)) {
        thread_now()->jemalloc_error = UMF_RESULT_ERROR_INVALID_ALIGNMENT;
        return NULL;
    }
    return jemalloc_note(umf_je_mallocx(MAX(size, STEP), jemalloc_flags(pool) | MALLOCX_ALIGN(alignment)));
}

static size_t jemalloc_malloc_usable_size(void *pool, void *ptr)
{
    return ptr ? umf_je_sallocx(ptr, 0) : 0;
}

static umf_result_t jemalloc_get_last_allocation_error(void *pool)
{
    return thread_now()->jemalloc_error;
}

static umf_memory_pool_ops_t ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = jemalloc_initialize,
    .finalize = jemalloc_finalize,
    .malloc = jemalloc_malloc,
    .calloc = jemalloc_calloc,
    .realloc = jemalloc_realloc,
    .aligned_malloc = jemalloc_aligned_malloc,
    .malloc_usable_size = jemalloc_malloc_usable_size,
    .free = jemalloc_free,
    .get_last_allocation_error = jemalloc_get_last_allocation_error,
};

#else

static umf_result_t jemalloc_refuse(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    return UMF_RESULT_ERROR_NOT_SUPPORTED;
}

/* No such pool is ever made, so no other operation is called. */
static umf_memory_pool_ops_t ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = jemalloc_refuse,
};

#endif

umf_memory_pool_ops_t *umfJemallocPoolOps(void)
{
    return &ops;
}
