/* SPDX-License-Identifier: Apache-2.0 */
/* See directory.h. */
#include "heap/directory.h"

#include <errno.h>
#include <stdio.h>

#include "heap/cache.h"
#include "heap/slab.h"
#include "rpc/fail.h"

#define ALL_WRITING (MEMCLIENT_READ | MEMCLIENT_WRITE)

static uint64_t *directory_word(struct memclient_heap *heap, unsigned number)
{
    return &heap->control->slabs[number].word;
}

/* ---- what others have added or taken away ------------------------------------------------------------------------ */

/* Its buffer has ended with the last member that held it, and the blocks with it. */
static void directory_forget(struct memclient_heap *heap, unsigned number, uint64_t word)
{
    (void)word_swap(directory_word(heap, number), word, entry_make(ENTRY_FREE, 0, entry_incarnation(word) + 1));
}

static int directory_open(struct memclient_heap *heap, unsigned number, uint64_t word)
{
    struct memclient_buffer *buf;
    struct slab_entry entry;
    struct slab *slab;
    int r;

    layout_copy(&entry, &heap->control->slabs[number], sizeof(entry));
    if (entry.class >= heap->geometry.n_classes)
        return fail_with(EBADMSG, "slab %u: there are no blocks of class %llu", number, ULL(entry.class));
    r = memclient_open_token(heap->ctx, &entry.writing, ALL_WRITING, &buf);
    if (r)
        return r;
    r = slab_map(
        heap, buf,
        &(struct slab_spec){.number = number, .incarnation = entry_incarnation(word), .class = (unsigned)entry.class},
        &slab);
    if (r) {
        struct fail_saved saved = fail_save(r);

        memclient_buffer_unref(buf);
        return fail_restore(&saved);
    }
    r = slab_enter(heap, slab);
    if (r) {
        struct fail_saved saved = fail_save(r);

        slab_free(heap, slab);
        return fail_restore(&saved);
    }
    return 0;
}

/* What is no slab never becomes one, as long as the entry is the same. The rest may be tried again. */
static bool directory_is_refusal(int r)
{
    return r == -EBADMSG || r == -EREMOTE || r == -EKEYREVOKED || r == -EKEYREJECTED || r == -EKEYEXPIRED ||
           r == -EACCES || r == -EROFS || r == -EOPNOTSUPP;
}

static int directory_look(struct memclient_heap *heap, unsigned number)
{
    uint64_t word = word_load(directory_word(heap, number));
    struct slab *slab = heap_slab(heap, number);
    int r;

    if (entry_kind(word) == ENTRY_BUSY && entry_member(word) == heap_member(heap))
        return 0;
    if (slab && (entry_kind(word) != ENTRY_LIVE || entry_incarnation(word) != slab->incarnation)) {
        slab_drop(heap, slab);
        slab = heap_slab(heap, number);
    }
    if (slab || entry_kind(word) != ENTRY_LIVE || heap->refused[number] == word)
        return 0;
    if (!failure_budget_allows(&heap->in_slabs, number))
        return fail_with(EAGAIN, "too many slabs have ended, or the heap's directory of them is damaged: try again");
    r = directory_open(heap, number, word);
    if (r == -ESTALE)
        directory_forget(heap, number, word);
    else if (directory_is_refusal(r))
        heap->refused[number] = word;
    else
        return r;
    failure_budget_spend(&heap->in_slabs);
    return 0;
}

int directory_refresh(struct memclient_heap *heap, unsigned first)
{
    struct fail_saved failed = fail_save(0);

    for (unsigned i = 0; i < HEAP_SLABS; i++) {
        int r = directory_look(heap, (first + i) % HEAP_SLABS);

        if (r && (!failed.err || failed.err == -EAGAIN))
            failed = fail_save(r);
    }
    return failed.err ? fail_restore(&failed) : 0;
}

int directory_refresh_all(struct memclient_heap *heap)
{
    return directory_refresh(heap, heap->in_slabs.next);
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static void directory_name(const char *heap_name, unsigned number, char name[MEMCLIENT_NAME_SIZE])
{
    (void)snprintf(name, MEMCLIENT_NAME_SIZE, "%.*s/%u", MEMCLIENT_NAME_MAX - 5, heap_name, number);
}

/* Is it that slab, as it is mapped here, or one of its number that a member left when it died? */
static bool directory_is_slab(struct memclient_heap *heap, unsigned number, struct memclient_buffer *buf)
{
    const struct slab_spec spec = {.number = number, .class = HEAP_CLASSES};
    struct slab *slab = heap_slab(heap, number);

    if (slab && memclient_buffer_id(slab->buf) == memclient_buffer_id(buf))
        return true;
    if (slab_map(heap, memclient_buffer_ref(buf), &spec, &slab)) {
        memclient_buffer_unref(buf);
        return false;
    }
    slab_free(heap, slab);
    return true;
}

/* 1: the name is another buffer's, which the user has given it. */
static int directory_unbind_below(struct memclient_heap *heap, const char *heap_name, unsigned number)
{
    char name[MEMCLIENT_NAME_SIZE];
    struct memclient_buffer *buf;
    int r;

    if (!*heap_name)
        return 0;
    directory_name(heap_name, number, name);
    r = memclient_open_name(heap->ctx, name, ALL_WRITING, &buf);
    if (r)
        return r == -ENOENT ? 0 : directory_is_refusal(r) ? 1 : r;
    r = directory_is_slab(heap, number, buf) ? memclient_unbind_name(heap->ctx, name) : 1;
    memclient_buffer_unref(buf);
    return r == -ENOENT ? 0 : r;
}

static int directory_unbind_one(struct memclient_heap *heap, unsigned number)
{
    return directory_unbind_below(heap, heap->name, number);
}

/*
 * A slab has its name when it has its head, so that whatever has the name can be told from other buffers of the user.
 * Once the heap is destroyed nobody would unbind it.
 */
static int directory_bind(struct memclient_heap *heap, const struct slab *slab)
{
    char name[MEMCLIENT_NAME_SIZE];
    int r;

    if (!*heap->name || __atomic_load_n(&heap->control->destroyed, __ATOMIC_SEQ_CST))
        return 0;
    directory_name(heap->name, slab->number, name);
    r = memclient_bind_name(slab->buf, name, NULL);
    if (r == -EEXIST) {
        r = directory_unbind_one(heap, slab->number);
        if (r > 0)
            return fail_with(EEXIST, "a slab needs the name \"%s\", which another buffer has: unbind that one", name);
        r = r ? r : memclient_bind_name(slab->buf, name, NULL);
    }
    if (!r && __atomic_load_n(&heap->control->destroyed, __ATOMIC_SEQ_CST))
        r = memclient_unbind_name(heap->ctx, name);
    return r;
}

static int directory_alloc(struct memclient_heap *heap, unsigned class, struct memclient_buffer **buf)
{
    const struct heap_geometry *geometry = &heap->geometry;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    uint64_t block_size = geometry->classes[class].block_size;

    options.pool = *geometry->memory ? geometry->memory : NULL;
    options.nodes = geometry->n_nodes ? geometry->nodes : NULL;
    options.n_nodes = geometry->n_nodes;
    options.pages = geometry->pages;
    options.page_size = geometry->page_size;
    options.placement = geometry->placement;
    options.part_size = geometry->part_size;
    options.weights = geometry->has_weights ? geometry->weights : NULL;
    /* what a block's size is a multiple of, its address is, too */
    options.alignment = block_size & -block_size;
    if (options.alignment > HEAP_ALIGNMENT_MAX)
        options.alignment = HEAP_ALIGNMENT_MAX;
    if (options.alignment < 4096)
        options.alignment = 0;
    return memclient_alloc(heap->ctx, slab_bytes(&geometry->classes[class]), &options, buf);
}

static int directory_make_tokens(struct memclient_buffer *buf, struct slab_entry *entry)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    int r;

    options.rights = ALL_WRITING;
    r = memclient_share(buf, &options, &entry->writing);
    options.rights = MEMCLIENT_READ;
    return r ? r : memclient_share(buf, &options, &entry->reading);
}

static int directory_make(struct memclient_heap *heap, const struct slab_spec *spec, struct slab **slab)
{
    struct memclient_buffer *buf;
    int r;

    r = directory_alloc(heap, spec->class, &buf);
    if (r)
        return r;
    r = slab_map(heap, buf, spec, slab);
    if (r) {
        struct fail_saved saved = fail_save(r);

        memclient_buffer_unref(buf);
        return fail_restore(&saved);
    }
    return 0;
}

/* The entry is this member's. */
static int directory_fill(struct memclient_heap *heap, const struct slab_spec *spec)
{
    struct slab_entry *entry = &heap->control->slabs[spec->number];
    struct fail_saved saved;
    struct slab *slab;
    int r;

    r = directory_make(heap, spec, &slab);
    if (r)
        return r;
    entry->class = spec->class;
    r = directory_make_tokens(slab->buf, entry);
    if (!r)
        r = directory_bind(heap, slab);
    if (!r) {
        r = slab_enter(heap, slab);
        if (!r)
            return 0;
        saved = fail_save(r);
        (void)directory_unbind_one(heap, spec->number);
    } else {
        saved = fail_save(r);
    }
    slab_free(heap, slab);
    return fail_restore(&saved);
}

int directory_add(struct memclient_heap *heap, unsigned class)
{
    unsigned number = 0, member = heap_member(heap);
    uint64_t word, busy = 0;
    int r;

    if (heap->named_by_other)
        return fail_with(EACCES,
                         "all blocks are taken, and only members of the user whose name the heap has add slabs");
    for (; number < heap->geometry.slabs_max; number++) {
        word = word_load(directory_word(heap, number));
        busy = entry_make(ENTRY_BUSY, member, entry_incarnation(word));
        if (entry_kind(word) == ENTRY_FREE && !heap_slab(heap, number) &&
            word_swap(directory_word(heap, number), word, busy))
            break;
    }
    if (number == heap->geometry.slabs_max)
        return fail_with(
            ENOMEM,
            "all blocks are taken, and slabs_max of the heap allows no slab beside its %u: free a block, or "
            "make a heap that may have more",
            number);
    r = directory_fill(
        heap,
        &(struct slab_spec){.number = number, .incarnation = entry_incarnation(busy), .class = class, .fresh = true});
    /* nobody else changes it while this member lives */
    (void)word_swap(directory_word(heap, number), busy,
                    entry_make(r ? ENTRY_FREE : ENTRY_LIVE, 0, entry_incarnation(busy)));
    return r;
}

/* ---- giving back ------------------------------------------------------------------------------------------------- */

static void directory_untake(struct slab *slab, uint64_t taken, unsigned member)
{
    while (taken-- > 0) {
        uint64_t word = word_load(&slab->words[taken]);

        if (word_owner(word) == member)
            (void)word_swap(&slab->words[taken], word, word_pass(word, 0, 0));
    }
}

/* Takes every block of it, or none. */
static bool directory_take_all(struct slab *slab, unsigned member)
{
    uint64_t taken = 0;

    for (; taken < slab->n_blocks; taken++) {
        uint64_t word = word_load(&slab->words[taken]);

        if (!word_is_free(word) || !word_swap(&slab->words[taken], word, word_make(word_generation(word), 0, member)))
            break;
    }
    if (taken < slab->n_blocks)
        directory_untake(slab, taken, member);
    return taken == slab->n_blocks;
}

/* A block that is taken, at a glance. */
static bool directory_is_used(const struct slab *slab)
{
    for (uint64_t i = 0; i < slab->n_blocks; i++)
        if (!word_is_free(word_load(&slab->words[i])))
            return true;
    return false;
}

/* Whoever dies on the way has blocks that are swept, or an entry that is ended. */
static void directory_give_back(struct memclient_heap *heap, struct slab *slab)
{
    unsigned number = slab->number, member = heap_member(heap);
    uint64_t live = entry_make(ENTRY_LIVE, 0, slab->incarnation);
    uint64_t busy = entry_make(ENTRY_BUSY, member, slab->incarnation);

    if (directory_is_used(slab) || !directory_take_all(slab, member))
        return;
    if (!word_swap(directory_word(heap, number), live, busy)) {
        directory_untake(slab, slab->n_blocks, member);
        return;
    }
    for (uint64_t i = 0; i < slab->n_blocks; i++)
        __atomic_store_n(&slab->words[i], WORD_RETIRED, __ATOMIC_RELAXED);
    (void)directory_unbind_one(heap, number);
    slab_drop(heap, slab);
    (void)word_swap(directory_word(heap, number), busy, entry_make(ENTRY_FREE, 0, entry_incarnation(busy) + 1));
}

void directory_trim(struct memclient_heap *heap, unsigned keep)
{
    unsigned kept[HEAP_CLASSES] = {0};

    for (unsigned number = 0; number < heap_n_slabs(heap); number++) {
        struct slab *slab = heap_slab(heap, number);

        if (!slab || directory_is_used(slab))
            continue;
        if (kept[slab->class] < keep)
            kept[slab->class]++;
        else
            directory_give_back(heap, slab);
    }
}

/* ---- others that died -------------------------------------------------------------------------------------------- */

bool directory_sweep(struct memclient_heap *heap, const bool *members)
{
    unsigned first = heap->in_names.next;
    bool done = true;

    for (unsigned i = 0; i < HEAP_SLABS; i++) {
        unsigned number = (first + i) % HEAP_SLABS;
        uint64_t word = word_load(directory_word(heap, number));

        if (entry_kind(word) != ENTRY_BUSY || !members[entry_member(word)])
            continue;
        /* a member is busy with one slab at a time, or few */
        if (*heap->name && !failure_budget_allows(&heap->in_names, number)) {
            done = false;
            continue;
        }
        failure_budget_spend(&heap->in_names);
        (void)directory_unbind_one(heap, number);
        (void)word_swap(directory_word(heap, number), word, entry_make(ENTRY_FREE, 0, entry_incarnation(word) + 1));
    }
    return done;
}

int directory_destroy(struct memclient_heap *heap, const char *name)
{
    int r = 0;

    /* whoever is about to name a slab sees it, or is seen by its entry */
    __atomic_store_n(&heap->control->destroyed, 1, __ATOMIC_SEQ_CST);
    /* of numbers that were ever used: the broker may serve a member's last request once that one was swept */
    for (unsigned number = 0; number < HEAP_SLABS && r >= 0; number++)
        if (word_load(directory_word(heap, number)))
            r = directory_unbind_below(heap, name, number);
    return r < 0 ? r : 0;
}
