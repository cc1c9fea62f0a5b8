/* SPDX-License-Identifier: Apache-2.0 */
/* See member.h. */
#include "heap/member.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "heap/directory.h"
#include "heap/lock.h"
#include "heap/reader.h"
#include "heap/sweep.h"
#include "rpc/fail.h"

#define ALL_WRITING  (MEMCLIENT_READ | MEMCLIENT_WRITE)
#define FAILURES_MAX 4

/* With the number's lock: nobody has it any more, and no block bears it. What cannot be swept is not tried for ever. */
static bool member_is_vacant(struct memclient_heap *heap, unsigned number, unsigned *failures)
{
    const uint64_t *word = &heap->control->members[number].word;

    if (entry_kind(word_load(word)) == ENTRY_FREE)
        return true;
    if (*failures == FAILURES_MAX || !sweep_is_dead(heap, number))
        return false;
    if (sweep_number(heap, number))
        return true;
    ++*failures;
    return false;
}

/* With `sweep`. A number that nobody has, or else one of the dead: the others' locks are not even tried at first. */
static int member_find_number(struct memclient_heap *heap)
{
    unsigned failures = 0;

    for (unsigned i = 0; i < 2 * HEAP_MEMBERS; i++) {
        unsigned number = i % HEAP_MEMBERS;
        uint64_t *word = &heap->control->members[number].word;
        int r;

        if (!number || (i < HEAP_MEMBERS && entry_kind(word_load(word)) != ENTRY_FREE))
            continue;
        r = lock_try(heap->lock_fd, number);
        if (r < 0)
            return fail_with(-r, "no lock on a heap's control buffer: %s", strerror(-r));
        if (!r)
            continue;
        if (member_is_vacant(heap, number, &failures)) {
            heap->incarnation = entry_incarnation(word_load(word));
            __atomic_store_n(word, entry_make(ENTRY_LIVE, 0, heap->incarnation), __ATOMIC_SEQ_CST);
            __atomic_store_n(&heap->member, number, __ATOMIC_RELAXED);
            return 0;
        }
        lock_drop(heap->lock_fd, number);
    }
    return fail_with(EUSERS, "the heap has %d members and readers, as many as it may have: one must leave first",
                     HEAP_MEMBERS - 1);
}

/* With `sweep`. */
static int member_join_locked(struct memclient_heap *heap)
{
    int r;

    heap_begin_asking(heap, FAILED_CALLS_MAX_ALL);
    if (heap->lock_fd < 0) {
        r = memclient_export_fd(heap->control_buf, ALL_WRITING, &heap->lock_fd);
        if (r)
            return r;
    }
    return member_find_number(heap);
}

int member_join(struct memclient_heap *heap)
{
    int r;

    pthread_mutex_lock(&heap->sweep);
    r = member_join_locked(heap);
    pthread_mutex_unlock(&heap->sweep);
    return r;
}

/* The parent's session holds them, and may end. */
static void member_hold_slabs(struct memclient_heap *heap)
{
    for (unsigned number = 0; number < heap_n_slabs(heap); number++) {
        struct memclient_token token = heap->control->slabs[number].writing;
        struct slab *slab = heap_slab(heap, number);
        struct memclient_buffer *buf;

        if (!slab || memclient_open_token(heap->ctx, &token, ALL_WRITING, &buf))
            continue;
        /* what others have written there may lead to other memory, of another size */
        if (memclient_buffer_id(buf) == memclient_buffer_id(slab->buf)) {
            memclient_buffer_unref(slab->buf);
            slab->buf = buf;
        } else {
            memclient_buffer_unref(buf);
        }
    }
}

int member_join_again(struct memclient_heap *heap)
{
    struct memclient_buffer *buf;
    int r = 0;

    if (heap_member(heap))
        return 0;
    if (!heap->control)
        return fail_with(ESTALE, "a reader's child has no part in the heap: ask for an invitation of its own");
    pthread_mutex_lock(&heap->sweep);
    if (!heap_member(heap)) {
        r = memclient_import_fd(heap->ctx, heap->import_fd, &buf);
        if (!r) {
            memclient_buffer_unref(heap->control_buf);
            heap->control_buf = buf;
            member_hold_slabs(heap);
            r = member_join_locked(heap);
        }
    }
    pthread_mutex_unlock(&heap->sweep);
    return r;
}

void member_leave(struct memclient_heap *heap)
{
    unsigned number = heap_member(heap);

    if (!number || !heap->control)
        return;
    pthread_mutex_lock(&heap->sweep);
    heap_begin_asking(heap, FAILED_CALLS_MAX);
    /* what is left undone here, the next one does */
    (void)sweep_number(heap, number);
    __atomic_store_n(&heap->member, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < HEAP_MEMBERS; i++)
        queue_close(heap, i);
    pthread_mutex_unlock(&heap->sweep);
}

void member_sweep_others(struct memclient_heap *heap, unsigned keep, unsigned failed_calls_max)
{
    pthread_mutex_lock(&heap->sweep);
    heap_begin_asking(heap, failed_calls_max);
    (void)directory_refresh_all(heap);
    /* twice: who was invited by one of the dead is dead as well */
    if (sweep_all(heap))
        (void)sweep_all(heap);
    directory_trim(heap, keep);
    pthread_mutex_unlock(&heap->sweep);
}
