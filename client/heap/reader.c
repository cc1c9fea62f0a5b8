/* SPDX-License-Identifier: Apache-2.0 */
/* See reader.h. */
#include "heap/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "heap/block.h"
#include "heap/cache.h"
#include "heap/lock.h"
#include "heap/slab.h"
#include "rpc/fail.h"

#define ALL_WRITING (MEMCLIENT_READ | MEMCLIENT_WRITE)

/* ---- queues, as members have them open --------------------------------------------------------------------------- */

static void queue_free(struct heap_queue_open *open)
{
    if (open->queue)
        (void)memclient_unmap(memclient_buffer_context(open->buf), open->queue, memclient_buffer_bytes(open->buf));
    memclient_buffer_unref(open->buf);
    (void)fd_close(open->fd);
    free(open);
}
DEFINE_CLEANUP(struct heap_queue_open *, queue_free);

void queue_close(struct memclient_heap *heap, unsigned number)
{
    struct heap_queue_open *open = heap->queues[number];

    heap->queues[number] = NULL;
    if (open)
        queue_free(open);
}

/* Takes the buffer. */
static int queue_map(struct memclient_buffer *buf, uint32_t incarnation, struct heap_queue_open **ret)
{
    _cleanup_(queue_freep) struct heap_queue_open *open = calloc(1, sizeof(*open));
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *address;
    int r;

    if (!open) {
        memclient_buffer_unref(buf);
        return fail_with(ENOMEM, "no memory for a reader's record");
    }
    open->buf = buf;
    open->fd = -1;
    open->incarnation = incarnation;
    if (memclient_buffer_bytes(buf) < sizeof(struct heap_queue) || memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY)
        return fail_with(EBADMSG, "buffer %llu is no reader's queue", ULL(memclient_buffer_id(buf)));
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    options.access = ALL_WRITING;
    r = memclient_map(buf, &options, &address);
    if (r)
        return r;
    open->queue = address;
    r = memclient_export_fd(buf, ALL_WRITING, &open->fd);
    if (r)
        return r;
    *ret = steal_ptr(&open);
    return 0;
}

static bool queue_head_fits(const struct memclient_heap *heap, const struct heap_queue *queue, unsigned number,
                            uint32_t incarnation)
{
    return __atomic_load_n(&queue->magic, __ATOMIC_ACQUIRE) == HEAP_QUEUE && queue->version == HEAP_VERSION &&
           queue->number == number && queue->incarnation == incarnation &&
           !memcmp(queue->id, heap->geometry.id, sizeof(queue->id));
}

/* That of a reader's entry. A call that leads to something else, or to nothing, is noted. */
static int queue_open(struct memclient_heap *heap, unsigned number, uint64_t word, struct failure_budget *budget,
                      struct heap_queue_open **ret)
{
    struct memclient_token token = heap->control->members[number].queue;
    struct heap_queue_open *open = heap->queues[number];
    struct memclient_buffer *buf;
    int r;

    if (open && open->incarnation != entry_incarnation(word)) {
        queue_close(heap, number);
        open = NULL;
    }
    if (!open) {
        if (!failure_budget_allows(budget, number))
            return fail_with(EAGAIN, "too many readers' entries lead to no queue: try again");
        r = memclient_open_token(heap->ctx, &token, ALL_WRITING, &buf);
        if (!r)
            r = queue_map(buf, entry_incarnation(word), &open);
        if (r) {
            failure_budget_spend(budget);
            return r;
        }
        open->fits = queue_head_fits(heap, open->queue, number, entry_incarnation(word));
        if (!open->fits)
            failure_budget_spend(budget);
        heap->queues[number] = open;
    }
    *ret = open;
    return 0;
}

/* One block that the reader says it has done with. */
static void queue_free_block(struct memclient_heap *heap, unsigned number, uint64_t back)
{
    struct slab *slab = heap_slab(heap, back & (HEAP_SLABS - 1));
    uint64_t index = back >> RETURN_INDEX_SHIFT & (HEAP_SLAB_MAX - 1), word;

    if (!slab || index >= slab->n_blocks)
        return;
    word = word_load(&slab->words[index]);
    if (word_owner(word) != number || word_to(word) ||
        (word_generation(word) & RETURN_GENERATIONS) != back >> RETURN_SHIFT)
        return;
    if (word_swap(&slab->words[index], word, word_pass(word, 0, 0)))
        cache_note_free(slab, index / 64, UINT64_C(1) << index % 64);
}

/* False: there is more in it than `left`. */
static bool queue_drain(struct memclient_heap *heap, unsigned number, struct heap_queue *queue, uint64_t *left)
{
    uint64_t tail = word_load(&queue->tail), n = word_load(&queue->head) - tail;
    bool all;

    if (n > HEAP_QUEUE_ENTRIES)
        n = HEAP_QUEUE_ENTRIES;
    all = n <= *left;
    if (!all)
        n = *left;
    *left -= n;
    for (uint64_t i = 0; i < n; i++)
        queue_free_block(heap, number, word_load(&queue->entries[(tail + i) % HEAP_QUEUE_ENTRIES]));
    if (n)
        (void)word_swap(&queue->tail, tail, tail + n);
    return all;
}

/* A block is in one queue at a time. */
static uint64_t queue_entries_max(struct memclient_heap *heap)
{
    uint64_t n = HEAP_QUEUE_ENTRIES;

    for (unsigned number = 0; number < heap_n_slabs(heap); number++)
        if (heap_slab(heap, number))
            n += heap_slab(heap, number)->n_blocks;
    return n;
}

void queue_drain_all(struct memclient_heap *heap)
{
    uint64_t left = queue_entries_max(heap);
    unsigned first = heap->in_queues.next;

    for (unsigned i = 0; i < HEAP_MEMBERS; i++) {
        unsigned number = (first + i) % HEAP_MEMBERS;
        uint64_t word = word_load(&heap->control->members[number].word);
        struct heap_queue_open *open;

        if (!number || entry_kind(word) != ENTRY_READER)
            queue_close(heap, number);
        else if (!queue_open(heap, number, word, &heap->in_queues, &open) && open->fits &&
                 !queue_drain(heap, number, open->queue, &left)) {
            heap->in_queues.next = number;
            return;
        }
    }
}

bool queue_reader_is_gone(struct memclient_heap *heap, unsigned number)
{
    uint64_t word = word_load(&heap->control->members[number].word);
    struct heap_queue_open *open;
    int r = queue_open(heap, number, word, &heap->in_readers, &open);

    /* a reader holds its queue, so that it would not have ended */
    if (r == -ESTALE)
        return true;
    if (r || lock_is_held(open->fd, 0))
        return false;
    /* the reader has spoilt its queue and has ended, or another member leads to what is none */
    if (!open->fits)
        return true;
    /* it was not there yet, and may come */
    if (!__atomic_load_n(&open->queue->joined, __ATOMIC_ACQUIRE) && entry_member(word))
        return false;
    if (lock_try(open->fd, 0) <= 0)
        return false;
    __atomic_store_n(&open->queue->revoked, 1, __ATOMIC_SEQ_CST);
    lock_drop(open->fd, 0);
    return true;
}

/* ---- inviting ---------------------------------------------------------------------------------------------------- */

static void queue_write(const struct memclient_heap *heap, struct heap_queue *queue, unsigned number,
                        uint32_t incarnation)
{
    queue->version = HEAP_VERSION;
    memcpy(queue->id, heap->geometry.id, sizeof(queue->id));
    queue->number = number;
    queue->incarnation = incarnation;
    queue->n_classes = heap->geometry.n_classes;
    memcpy(queue->classes, heap->geometry.classes, sizeof(queue->classes));
    __atomic_store_n(&queue->magic, HEAP_QUEUE, __ATOMIC_RELEASE);
}

/* With the number's lock. */
static int queue_make(struct memclient_heap *heap, unsigned number, struct memclient_token *token)
{
    struct member_entry *entry = &heap->control->members[number];
    uint32_t incarnation = entry_incarnation(word_load(&entry->word));
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct heap_queue_open *open = NULL;
    struct memclient_buffer *buf;
    int r;

    r = memclient_alloc(heap->ctx, sizeof(struct heap_queue), NULL, &buf);
    if (!r)
        r = queue_map(buf, incarnation, &open);
    if (r)
        return r;
    queue_write(heap, open->queue, number, incarnation);
    open->fits = true;
    options.rights = ALL_WRITING;
    r = memclient_share(buf, &options, token);
    if (r) {
        struct fail_saved saved = fail_save(r);

        queue_free(open);
        return fail_restore(&saved);
    }
    entry->queue = *token;
    /* another member may have swept a former reader of that number */
    queue_close(heap, number);
    heap->queues[number] = open;
    __atomic_store_n(&entry->word, entry_make(ENTRY_READER, heap_member(heap), incarnation), __ATOMIC_SEQ_CST);
    return 0;
}

int queue_invite(struct memclient_heap *heap, struct memclient_token *token, uint64_t *member)
{
    for (unsigned number = 1; number < HEAP_MEMBERS; number++) {
        const uint64_t *word = &heap->control->members[number].word;
        struct memclient_token made;
        int r;

        if (number == heap_member(heap) || entry_kind(word_load(word)) != ENTRY_FREE ||
            lock_try(heap->lock_fd, number) <= 0)
            continue;
        r = entry_kind(word_load(word)) == ENTRY_FREE ? queue_make(heap, number, &made) : 1;
        lock_drop(heap->lock_fd, number);
        if (r > 0)
            continue;
        if (r)
            return r;
        *token = made;
        *member = (uint64_t)entry_incarnation(word_load(word)) << 32 | number;
        return 0;
    }
    return fail_with(EUSERS, "the heap has %d members and readers, as many as it may have: one must leave first",
                     HEAP_MEMBERS - 1);
}

/* ---- the reader -------------------------------------------------------------------------------------------------- */

int reader_join(struct memclient_heap *heap)
{
    struct heap_queue *queue = heap->queue;
    unsigned number = __atomic_load_n(&queue->number, __ATOMIC_RELAXED);
    int r;

    if (!number || number >= HEAP_MEMBERS)
        return fail_with(EBADMSG, "the invitation is for no reader");
    r = memclient_export_fd(heap->control_buf, ALL_WRITING, &heap->lock_fd);
    if (r)
        return r;
    r = lock_try(heap->lock_fd, 0);
    if (r < 0)
        return fail_with(-r, "no lock on a reader's queue: %s", strerror(-r));
    if (!r)
        return fail_with(EBUSY, "another reader has come by this invitation");
    __atomic_store_n(&queue->joined, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&queue->revoked, __ATOMIC_SEQ_CST))
        return fail_with(ESTALE, "nobody waits for this reader any more: ask for another invitation");
    heap->incarnation = __atomic_load_n(&queue->incarnation, __ATOMIC_RELAXED);
    __atomic_store_n(&heap->member, number, __ATOMIC_RELAXED);
    return 0;
}

/* What `taken` says to a reader. No thread takes a block again while it is put into the queue. */
enum { READER_HAS_NOT, READER_TAKEN, READER_FREES };

static bool reader_swap(struct slab *slab, uint64_t index, uint8_t from, uint8_t to)
{
    return __atomic_compare_exchange_n(&slab->taken[index], &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/*
 * A reader cannot swap the word. What was given to it is its own; it remembers what it has taken, and what it has
 * freed, which the word shows only when a member has looked into the queue.
 */
int reader_take(struct memclient_heap *heap, struct slab *slab, uint64_t index, uint64_t word)
{
    if (word_owner(word) != heap_member(heap) || word_to(word))
        return fail_with(EPERM, "the block is for another member");
    if (!reader_swap(slab, index, READER_HAS_NOT, READER_TAKEN))
        return fail_with(EALREADY, "this reader has the block already");
    if (slab->given_back[index] != word_generation(word) + 1)
        return 0;
    __atomic_store_n(&slab->taken[index], READER_HAS_NOT, __ATOMIC_RELEASE);
    return fail_with(ESTALE, "this reader has freed the block since");
}

/* False: the queue is full. */
static bool reader_put(struct memclient_heap *heap, uint64_t entry)
{
    struct heap_queue *queue = heap->queue;
    uint64_t head;
    bool put;

    pthread_mutex_lock(&heap->lock);
    head = word_load(&queue->head);
    put = head - word_load(&queue->tail) < HEAP_QUEUE_ENTRIES;
    if (put) {
        __atomic_store_n(&queue->entries[head % HEAP_QUEUE_ENTRIES], entry, __ATOMIC_RELEASE);
        __atomic_store_n(&queue->head, head + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&heap->lock);
    return put;
}

int reader_free(struct memclient_heap *heap, struct slab *slab, uint64_t index)
{
    uint64_t word = word_load(&slab->words[index]);

    if (!reader_swap(slab, index, READER_TAKEN, READER_FREES))
        return block_refuse(heap, word);
    if (reader_put(heap, return_make(slab->number, index, word_generation(word)))) {
        slab->given_back[index] = word_generation(word) + 1;
        __atomic_store_n(&slab->taken[index], READER_HAS_NOT, __ATOMIC_RELEASE);
        return 0;
    }
    __atomic_store_n(&slab->taken[index], READER_TAKEN, __ATOMIC_RELEASE);
    return fail_with(EAGAIN, "the queue is full: no member has looked into it for %d blocks", HEAP_QUEUE_ENTRIES);
}

static bool reader_is_retired(const struct slab *slab)
{
    return word_load(&slab->words[0]) == WORD_RETIRED;
}

/* A reader hears of slabs that were given back only when it looks, and would keep their memory. */
static void reader_drop_retired(struct memclient_heap *heap)
{
    for (unsigned number = 0; number < heap_n_slabs(heap); number++) {
        struct slab *slab = heap_slab(heap, number);

        if (slab && reader_is_retired(slab))
            slab_drop(heap, slab);
    }
}

static int reader_map_slab(struct memclient_heap *heap, const struct memclient_block_token *token, struct slab **slab)
{
    const struct slab_spec spec = {
        .number = block_slab(&token->block), .incarnation = block_incarnation(&token->block), .class = HEAP_CLASSES};
    struct memclient_buffer *buf;
    struct fail_saved saved;
    int r = memclient_open_token(heap->ctx, &token->slab, MEMCLIENT_READ, &buf);

    if (r)
        return r;
    r = slab_map(heap, buf, &spec, slab);
    if (!r)
        return 0;
    saved = fail_save(r);
    memclient_buffer_unref(buf);
    return fail_restore(&saved);
}

/* With `sweep`. */
static int reader_open_locked(struct memclient_heap *heap, const struct memclient_block_token *token)
{
    unsigned number = block_slab(&token->block);
    struct fail_saved saved;
    struct slab *slab;
    int r;

    reader_drop_retired(heap);
    slab = heap_slab(heap, number);
    /* another thread has opened it meanwhile */
    if (slab && (slab->incarnation & 0xffff) == block_incarnation(&token->block))
        return 0;
    r = reader_map_slab(heap, token, &slab);
    if (r)
        return r;
    /* another reader has it still; the number may be another slab's by now */
    if (reader_is_retired(slab)) {
        slab_free(heap, slab);
        return fail_with(ESTALE, "slab %u, of which the block is, is gone", number);
    }
    /* the number was another slab's before */
    if (heap_slab(heap, number))
        slab_drop(heap, heap_slab(heap, number));
    r = slab_enter(heap, slab);
    if (r) {
        saved = fail_save(r);
        slab_free(heap, slab);
        return fail_restore(&saved);
    }
    return 0;
}

int reader_open_slab(struct memclient_heap *heap, const struct memclient_block_token *token)
{
    int r;

    pthread_mutex_lock(&heap->sweep);
    r = reader_open_locked(heap, token);
    pthread_mutex_unlock(&heap->sweep);
    return r;
}
