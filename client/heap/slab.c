/* SPDX-License-Identifier: Apache-2.0 */
/* See slab.h. */
#include "heap/slab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "heap/cache.h"
#include "rpc/fail.h"

static struct slab_head *slab_head(const struct slab *slab)
{
    return (void *)(slab->base + slab->block_size * slab->n_blocks);
}

/* Somebody else may have written it, so it decides nothing that the class does not. */
static bool slab_head_fits(const struct memclient_heap *heap, const struct slab *slab)
{
    const struct slab_head *head = slab_head(slab);

    return head->magic == HEAP_SLAB && head->version == HEAP_VERSION && head->block_size == slab->block_size &&
           head->n_blocks == slab->n_blocks && head->number == slab->number &&
           !memcmp(head->id, heap->geometry.id, sizeof(head->id));
}

static void slab_head_write(const struct memclient_heap *heap, const struct slab *slab)
{
    struct slab_head *head = slab_head(slab);

    head->version = HEAP_VERSION;
    memcpy(head->id, heap->geometry.id, sizeof(head->id));
    head->block_size = slab->block_size;
    head->n_blocks = slab->n_blocks;
    head->number = slab->number;
    head->incarnation = slab->incarnation;
    __atomic_store_n(&head->magic, HEAP_SLAB, __ATOMIC_RELEASE);
}

static int slab_map_pages(struct memclient_heap *heap, struct memclient_buffer *buf, void **base)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    options.access = heap->control ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ;
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    return memclient_map(buf, &options, base);
}

static void slab_lay_out(const struct memclient_heap *heap, struct slab *slab, unsigned class, void *base)
{
    slab->class = class;
    slab->base = base;
    slab->block_size = heap->geometry.classes[class].block_size;
    slab->n_blocks = heap->geometry.classes[class].n_blocks;
    slab->words = (uint64_t *)(void *)(slab_head(slab) + 1);
    slab->hints = slab->words + slab->n_blocks;
}

static unsigned slab_class_of(const struct memclient_heap *heap, const struct memclient_buffer *buf, const void *base)
{
    for (unsigned class = 0; class < heap->geometry.n_classes; class ++) {
        const struct heap_class *is = &heap->geometry.classes[class];
        const struct slab_head *head = (const void *)((const uint8_t *)base + is->block_size * is->n_blocks);

        if (slab_bytes(is) <= memclient_buffer_bytes(buf) && head->magic == HEAP_SLAB &&
            head->block_size == is->block_size && head->n_blocks == is->n_blocks)
            return class;
    }
    return HEAP_CLASSES;
}

/* What this process remembers of its blocks. */
static int slab_add_records(const struct memclient_heap *heap, struct slab *slab)
{
    /* 64 of them have a cache line of their own, as their hints have a word */
    slab->taken = aligned_alloc(64, align_up(slab->n_blocks, 64));
    if (slab->taken && !heap->control)
        slab->given_back = calloc(slab->n_blocks, sizeof(*slab->given_back));
    if (!slab->taken || (!heap->control && !slab->given_back))
        return fail_with(ENOMEM, "no memory for a slab's record");
    memset(slab->taken, 0, slab->n_blocks);
    return 0;
}

/* NULL is ignored. */
static void slab_delete(struct slab *slab)
{
    if (!slab)
        return;
    free(slab->taken);
    free(slab->given_back);
    free(slab);
}

/* Of a mapped buffer. */
static int slab_check(const struct memclient_heap *heap, struct slab *slab, const struct slab_spec *spec, void *base)
{
    unsigned class = spec->class == HEAP_CLASSES ? slab_class_of(heap, slab->buf, base) : spec->class;

    if (class == HEAP_CLASSES || memclient_buffer_bytes(slab->buf) < slab_bytes(&heap->geometry.classes[class]))
        return fail_with(EBADMSG, "buffer %llu is no slab of this heap", ULL(memclient_buffer_id(slab->buf)));
    slab_lay_out(heap, slab, class, base);
    if (spec->fresh)
        slab_head_write(heap, slab);
    else if (!slab_head_fits(heap, slab))
        return fail_with(EBADMSG, "buffer %llu is not slab %u of this heap", ULL(memclient_buffer_id(slab->buf)),
                         slab->number);
    return slab_add_records(heap, slab);
}

static struct slab *slab_new(struct memclient_buffer *buf, const struct slab_spec *spec)
{
    struct slab *slab = calloc(1, sizeof(*slab));

    if (!slab) {
        (void)fail_with(ENOMEM, "no memory for a slab's record");
        return NULL;
    }
    slab->number = spec->number;
    slab->incarnation = spec->incarnation;
    slab->buf = buf;
    return slab;
}

int slab_map(struct memclient_heap *heap, struct memclient_buffer *buf, const struct slab_spec *spec, struct slab **ret)
{
    struct fail_saved saved;
    struct slab *slab;
    void *base;
    int r;

    if (memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY)
        return fail_with(EOPNOTSUPP, "a heap's memory is committed: take it from a pool that is not lazy");
    r = slab_map_pages(heap, buf, &base);
    if (r)
        return r;
    slab = slab_new(buf, spec);
    r = slab ? slab_check(heap, slab, spec, base) : -ENOMEM;
    if (!r) {
        *ret = slab;
        return 0;
    }
    saved = fail_save(r);
    (void)memclient_unmap(heap->ctx, base, memclient_buffer_bytes(buf));
    slab_delete(slab);
    return fail_restore(&saved);
}

void slab_free(struct memclient_heap *heap, struct slab *slab)
{
    (void)memclient_unmap(heap->ctx, slab->base, memclient_buffer_bytes(slab->buf));
    memclient_buffer_unref(slab->buf);
    slab_delete(slab);
}

/* With the lock. A buffer cannot be two slabs, whatever a directory says. */
static int slab_enter_locked(struct memclient_heap *heap, struct slab *slab)
{
    int r;

    if (heap->slabs[slab->number])
        return fail_with(EBADMSG, "slab %u is mapped already", slab->number);
    r = range_index_insert(&heap->index, (uintptr_t)slab->base, slab->block_size * slab->n_blocks, slab);
    if (r)
        return fail_with(r == -EEXIST ? EBADMSG : ENOMEM, "slab %u: its memory is another slab's, or there is none",
                         slab->number);
    __atomic_store_n(&heap->slabs[slab->number], slab, __ATOMIC_RELEASE);
    if (slab->number >= heap->n_slabs)
        __atomic_store_n(&heap->n_slabs, slab->number + 1, __ATOMIC_RELEASE);
    return 0;
}

int slab_enter(struct memclient_heap *heap, struct slab *slab)
{
    int r;

    pthread_mutex_lock(&heap->lock);
    r = slab_enter_locked(heap, slab);
    pthread_mutex_unlock(&heap->lock);
    return r;
}

/* Others may say that it is gone, and lie. */
static bool slab_is_used(const struct slab *slab)
{
    for (uint64_t i = 0; i < slab->n_blocks; i++)
        if (__atomic_load_n(&slab->taken[i], __ATOMIC_RELAXED))
            return true;
    return false;
}

/* It is taken out only once it is known that it may go: another thread could have its number meanwhile. */
void slab_drop(struct memclient_heap *heap, struct slab *slab)
{
    __atomic_store_n(&slab->leaving, true, __ATOMIC_RELEASE);
    cache_forget_slab(heap, slab);
    if (slab_is_used(slab)) {
        __atomic_store_n(&slab->leaving, false, __ATOMIC_RELEASE);
        return;
    }
    pthread_mutex_lock(&heap->lock);
    (void)range_index_remove(&heap->index, (uintptr_t)slab->base);
    __atomic_store_n(&heap->slabs[slab->number], NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&heap->lock);
    /* who has found it before that is done with it */
    cache_forget_slab(heap, slab);
    slab_free(heap, slab);
}

struct slab *slab_find(struct memclient_heap *heap, struct heap_cache *cache, uint64_t address)
{
    struct slab *last = cache->last;
    struct range_entry entry;

    if (last && address - (uintptr_t)last->base < last->block_size * last->n_blocks)
        return last;
    if (!range_index_find(&heap->index, address, &entry))
        return NULL;
    cache->last = entry.value;
    return cache->last;
}
