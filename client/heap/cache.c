/* SPDX-License-Identifier: Apache-2.0 */
/* See cache.h. */
#include "heap/cache.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "rpc/fail.h"

#define CACHES_MAX 64
/* What the blocks that a cache has in mind have in all. */
#define CACHE_BYTES (UINT64_C(1) << 18)

static unsigned cache_max(uint64_t block_size)
{
    uint64_t max = CACHE_BYTES / block_size;

    return max > CACHE_HINTS ? CACHE_HINTS : (unsigned)max;
}

int cache_init(struct memclient_heap *heap)
{
    unsigned processors = (unsigned)processors_usable();
    size_t classes = heap->geometry.n_classes;

    for (heap->n_caches = 2; heap->n_caches < 2 * processors && heap->n_caches < CACHES_MAX;)
        heap->n_caches *= 2;
    if (posix_memalign((void **)&heap->caches, _Alignof(struct heap_cache), heap->n_caches * sizeof(*heap->caches)))
        return fail_with(ENOMEM, "no memory for the caches of a heap");
    memset(heap->caches, 0, heap->n_caches * sizeof(*heap->caches));
    for (unsigned i = 0; i < heap->n_caches; i++) {
        heap->caches[i].classes = calloc(classes, sizeof(*heap->caches[i].classes));
        if (!heap->caches[i].classes)
            return fail_with(ENOMEM, "no memory for the caches of a heap");
        for (unsigned class = 0; class < heap->geometry.n_classes; class ++) {
            heap->caches[i].classes[class].max = cache_max(heap->geometry.classes[class].block_size);
            heap->caches[i].classes[class].word = UINT64_MAX;
        }
    }
    return 0;
}

void cache_deinit(struct memclient_heap *heap)
{
    for (unsigned i = 0; heap->caches && i < heap->n_caches; i++)
        free(heap->caches[i].classes);
    free(heap->caches);
    heap->caches = NULL;
}

static bool cache_try_lock(struct heap_cache *cache)
{
    return !__atomic_load_n(&cache->locked, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(&cache->locked, true, __ATOMIC_ACQUIRE);
}

struct heap_cache *cache_lock(struct memclient_heap *heap)
{
    uint64_t thread = (uint64_t)(uintptr_t)__builtin_thread_pointer() * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    for (;;) {
        for (unsigned i = 0; i < heap->n_caches; i++) {
            struct heap_cache *cache = &heap->caches[(thread + i) & (heap->n_caches - 1)];

            if (cache_try_lock(cache))
                return cache;
        }
        sched_yield();
    }
}

/* Which of these 64 blocks there are. */
static uint64_t cache_mask(const struct slab *slab, uint64_t word)
{
    uint64_t left = slab->n_blocks - word * 64;

    return left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
}

/* The lowest bits, as many as a cache gets at a time. */
static uint64_t cache_lowest(uint64_t bits, unsigned n)
{
    uint64_t rest = bits;

    while (rest && n--)
        rest &= rest - 1;
    return bits & ~rest;
}

/* From where the last ones were, round the slab. Each cache begins elsewhere, so that threads share no cache line. */
static bool cache_refill_from(struct cache_class *cached, struct slab *slab, uint64_t first, uint64_t *left)
{
    uint64_t n = slab_hint_words(slab->n_blocks);

    if (cached->word >= n)
        cached->word = first;
    for (uint64_t i = 0; i < n && *left; i++, --*left, cached->word = cached->word + 1 < n ? cached->word + 1 : 0) {
        uint64_t *hints = &slab->hints[cached->word], seen = __atomic_load_n(hints, __ATOMIC_RELAXED);
        uint64_t bits = cache_lowest(~seen & cache_mask(slab, cached->word), cached->max / 2 + 1);

        if (!bits)
            continue;
        /* those that another thread was faster to take are its own */
        bits &= ~__atomic_fetch_or(hints, bits, __ATOMIC_RELAXED);
        /* the lowest one is used first */
        while (bits) {
            unsigned bit = 63 - (unsigned)__builtin_clzll(bits);

            bits &= ~(UINT64_C(1) << bit);
            cached->hints[cached->n++] = (struct hint){.slab = slab, .index = cached->word * 64 + bit};
        }
        if (cached->n)
            return true;
    }
    return false;
}

bool cache_refill(struct memclient_heap *heap, struct heap_cache *cache, unsigned class, uint64_t *left)
{
    struct cache_class *cached = &cache->classes[class];
    uint64_t words = slab_hint_words(heap->geometry.classes[class].n_blocks);
    uint64_t first = words * (unsigned)(cache - heap->caches) / heap->n_caches;
    unsigned n_slabs = heap_n_slabs(heap);

    for (unsigned i = 0; i < n_slabs && *left; i++, --*left) {
        struct slab *slab = heap_slab(heap, cached->slab);

        if (slab && slab->class == class && !slab_is_leaving(slab) && cache_refill_from(cached, slab, first, left))
            return true;
        if (!*left)
            return false;
        cached->slab = cached->slab + 1 < n_slabs ? cached->slab + 1 : 0;
        cached->word = UINT64_MAX;
    }
    return false;
}

/* The older half, so that there is room. */
static void cache_flush(struct cache_class *cached)
{
    unsigned half = (cached->n + 1) / 2;

    for (unsigned i = 0; i < half; i++)
        cache_note_free(cached->hints[i].slab, cached->hints[i].index / 64, UINT64_C(1) << cached->hints[i].index % 64);
    memmove(cached->hints, &cached->hints[half], (cached->n - half) * sizeof(*cached->hints));
    cached->n -= half;
}

void cache_put(struct heap_cache *cache, struct slab *slab, uint64_t index)
{
    struct cache_class *cached = &cache->classes[slab->class];

    if (cached->n >= cached->max)
        cache_flush(cached);
    if (cached->n < cached->max && !slab_is_leaving(slab))
        cached->hints[cached->n++] = (struct hint){.slab = slab, .index = index};
    else
        cache_note_free(slab, index / 64, UINT64_C(1) << index % 64);
}

/* One that is freed meanwhile may be noted as taken, until this is done again. */
static bool cache_rebuild_word(struct slab *slab, uint64_t word)
{
    uint64_t free = 0, first = word * 64, seen;

    for (unsigned bit = 0; bit < 64 && first + bit < slab->n_blocks; bit++)
        if (word_is_free(__atomic_load_n(&slab->words[first + bit], __ATOMIC_RELAXED)))
            free |= UINT64_C(1) << bit;
    seen = __atomic_load_n(&slab->hints[word], __ATOMIC_RELAXED);
    if (free & seen)
        cache_note_free(slab, word, free);
    if (~free & ~seen)
        (void)__atomic_or_fetch(&slab->hints[word], ~free, __ATOMIC_RELAXED);
    return free;
}

static bool cache_rebuild_slab(struct slab *slab)
{
    bool found = false;

    for (uint64_t word = 0; word < slab_hint_words(slab->n_blocks); word++)
        found = cache_rebuild_word(slab, word) || found;
    return found;
}

bool cache_rebuild(struct memclient_heap *heap, unsigned class)
{
    struct heap_cache *cache = cache_lock(heap);
    bool found = false;

    for (unsigned i = 0; i < heap_n_slabs(heap); i++) {
        struct slab *slab = heap_slab(heap, i);

        if (slab && slab->class == class && cache_rebuild_slab(slab))
            found = true;
    }
    cache_unlock(cache);
    return found;
}

static void cache_forget_in(struct heap_cache *cache, const struct slab *slab)
{
    struct cache_class *cached = &cache->classes[slab->class];
    unsigned kept = 0;

    for (unsigned i = 0; i < cached->n; i++)
        if (cached->hints[i].slab != slab)
            cached->hints[kept++] = cached->hints[i];
    cached->n = kept;
    if (cache->last == slab)
        cache->last = NULL;
}

void cache_forget_slab(struct memclient_heap *heap, const struct slab *slab)
{
    for (unsigned i = 0; i < heap->n_caches; i++) {
        while (!cache_try_lock(&heap->caches[i]))
            sched_yield();
        cache_forget_in(&heap->caches[i], slab);
        cache_unlock(&heap->caches[i]);
    }
}

void cache_fork_child(struct memclient_heap *heap)
{
    for (unsigned i = 0; i < heap->n_caches; i++) {
        heap->caches[i].last = NULL;
        for (unsigned class = 0; class < heap->geometry.n_classes; class ++)
            heap->caches[i].classes[class].n = 0;
        cache_unlock(&heap->caches[i]);
    }
}
