/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread has which heap: a register of all, with one lock, that is asked when a thread comes to a pool for the
 * first time, when it ends, and when a pool does; and in each thread a cache of it, by the pool's id, so that what a
 * cache says of a pool that is no more is never believed.
 */
#include "umf/pool_disjoint.h"

#include <stdlib.h>
#include <string.h>

struct thread {
    struct list heaps;
};

__thread struct heap_cache heap_cache[HEAP_CACHE] __attribute__((__tls_model__("initial-exec")));

static pthread_mutex_t reg = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static atomic_bool have_key;

/* Giving back what a heap keeps calls the provider, so it is done without the lock; a pool's end waits for it. */
static void thread_end(void *arg)
{
    struct thread *thread = arg;
    struct list *link;

    memset(heap_cache, 0, sizeof(heap_cache));
    pthread_mutex_lock(&reg);
    while ((link = list_pop(&thread->heaps))) {
        struct heap *heap = container_of(link, struct heap, in_thread);

        heap->leaving = true;
        pthread_mutex_unlock(&reg);
        heap_detach(heap);
        pthread_mutex_lock(&reg);
        heap->leaving = false;
        pthread_cond_broadcast(&left);
    }
    pthread_mutex_unlock(&reg);
    free(thread);
}

static void make_key(void)
{
    have_key = !pthread_key_create(&key, thread_end);
}

static struct thread *this_thread(void)
{
    struct thread *thread;

    (void)pthread_once(&once, make_key);
    if (!have_key)
        return NULL;
    thread = pthread_getspecific(key);
    if (thread)
        return thread;
    thread = malloc(sizeof(*thread));
    if (!thread)
        return NULL;
    list_init(&thread->heaps);
    if (pthread_setspecific(key, thread)) {
        free(thread);
        return NULL;
    }
    return thread;
}

static struct heap *find_of(const struct thread *thread, const struct disjoint *pool)
{
    list_for_each_entry(heap, &thread->heaps, struct heap, in_thread)
        if (heap->pool == pool)
            return heap;
    return NULL;
}

/* One that its thread has left. */
static struct heap *find_left(const struct disjoint *pool)
{
    list_for_each_entry(heap, &pool->heaps, struct heap, in_pool)
        if (!list_is_linked(&heap->in_thread) && !heap->leaving)
            return heap;
    return NULL;
}

static struct heap *take_over_or_make(struct disjoint *pool)
{
    struct heap *heap = find_left(pool);

    if (heap)
        return heap;
    heap = heap_new(pool);
    if (heap)
        list_append(&pool->heaps, &heap->in_pool);
    return heap;
}

static void remember(const struct disjoint *pool, struct heap *heap)
{
    heap_cache[pool->id % HEAP_CACHE] = (struct heap_cache){.pool = pool->id, .heap = heap};
}

struct heap *heap_look(const struct disjoint *pool)
{
    const struct thread *thread = have_key ? pthread_getspecific(key) : NULL;
    struct heap *heap = NULL;

    if (thread) {
        pthread_mutex_lock(&reg);
        heap = find_of(thread, pool);
        pthread_mutex_unlock(&reg);
    }
    if (!heap)
        heap = &heap_none;
    remember(pool, heap);
    return heap;
}

struct heap *heap_get(struct disjoint *pool)
{
    struct thread *thread = this_thread();
    struct heap *heap;

    if (!thread)
        return NULL;
    pthread_mutex_lock(&reg);
    heap = take_over_or_make(pool);
    if (heap) {
        list_append(&thread->heaps, &heap->in_thread);
        heap_attach(heap);
    }
    pthread_mutex_unlock(&reg);
    if (heap)
        remember(pool, heap);
    return heap;
}

void heap_leave_all(struct disjoint *pool)
{
    pthread_mutex_lock(&reg);
    list_for_each_entry(heap, &pool->heaps, struct heap, in_pool) {
        while (heap->leaving)
            pthread_cond_wait(&left, &reg);
        list_remove(&heap->in_thread);
    }
    pthread_mutex_unlock(&reg);
}
