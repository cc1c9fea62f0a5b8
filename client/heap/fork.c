/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child made by fork() finds of its parent's heaps.
 *
 * The child is another member: it closes its copy of the descriptor that says that the parent lives, and has no number
 * until its first call. It keeps the mappings, and throws the caches away, which are no more than hints. Nothing is
 * checked where blocks are allocated: the caches are empty, and who fills them finds out. (A process made by _Fork() or
 * vfork() has the parent's descriptor until it executes a program, so that the parent's end is seen later. It may not
 * call anything here.)
 */
#include "heap/fork.h"

#include <string.h>

#include "base/cleanup.h"
#include "heap/cache.h"

static struct list heaps = LIST_INIT(heaps);
static pthread_mutex_t heaps_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t heaps_once = PTHREAD_ONCE_INIT;

static void heap_fork_prepare(void)
{
    pthread_mutex_lock(&heaps_lock);
    list_for_each_entry(heap, &heaps, struct memclient_heap, in_process)
        pthread_mutex_lock(&heap->lock);
}

static void heap_fork_in_parent(void)
{
    list_for_each_entry(heap, &heaps, struct memclient_heap, in_process)
        pthread_mutex_unlock(&heap->lock);
    pthread_mutex_unlock(&heaps_lock);
}

/* It is the child's, and may count waiters that the child does not have. */
static void heap_fork_renew(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    pthread_mutex_init(mutex, NULL);
}

/* The child has none of its blocks, nor the thread that was about to drop it. */
static void heap_fork_slab(struct slab *slab)
{
    if (!slab)
        return;
    memset(slab->taken, 0, slab->n_blocks);
    slab->leaving = false;
}

static void heap_fork_in_child(void)
{
    list_for_each_entry(heap, &heaps, struct memclient_heap, in_process) {
        heap->lock_fd = fd_close(heap->lock_fd);
        heap->member = 0;
        for (unsigned i = 0; i < heap->n_slabs; i++)
            heap_fork_slab(heap->slabs[i]);
        cache_fork_child(heap);
        /* another thread may have had these two */
        pthread_mutex_init(&heap->grow, NULL);
        pthread_mutex_init(&heap->sweep, NULL);
        heap_fork_renew(&heap->lock);
    }
    heap_fork_renew(&heaps_lock);
}

static void heap_register_fork(void)
{
    pthread_atfork(heap_fork_prepare, heap_fork_in_parent, heap_fork_in_child);
}

void heap_register(struct memclient_heap *heap)
{
    pthread_once(&heaps_once, heap_register_fork);
    pthread_mutex_lock(&heaps_lock);
    list_append(&heaps, &heap->in_process);
    pthread_mutex_unlock(&heaps_lock);
}

void heap_unregister(struct memclient_heap *heap)
{
    pthread_mutex_lock(&heaps_lock);
    list_remove(&heap->in_process);
    pthread_mutex_unlock(&heaps_lock);
}
