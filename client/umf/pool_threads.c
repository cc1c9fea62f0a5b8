/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A register has all parts, with one lock. It is used when a thread comes to a pool for the first time, when the thread
 * ends, and when the pool does. Each thread has a cache of it by the pools' ids, which are never used again, so an old
 * entry matches no other pool.
 *
 * A fork takes the lock of the register and those of all pools, so that the child finds what threads share in a valid
 * state. What other threads had for themselves is lost to the child. It is neither taken over nor looked into, and
 * memory of it that the child frees is not used again.
 */
#include "umf/pool_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "umf/mutex.h"

/* ---- the place of threads' variables, found out by looking from two threads -------------------------------------- */

static __thread char here;
static bool is_static;

static intptr_t offset_of(const void *variable)
{
    return (intptr_t)variable - (intptr_t)__builtin_thread_pointer();
}

static void *offset_in_thread(void *ret)
{
    *(intptr_t *)ret = offset_of(&here);
    return NULL;
}

/* If offsets differ from thread to thread, these two are equal by chance at most. */
static void find_out(void)
{
    intptr_t there;
    pthread_t thread;

    if (pthread_create(&thread, NULL, offset_in_thread, &there))
        return;
    (void)pthread_join(thread, NULL);
    is_static = there == offset_of(&here);
}

bool static_tls(const void *variable, intptr_t *offset)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, find_out);
    if (is_static)
        *offset = offset_of(variable);
    return is_static;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

struct thread {
    struct list parts;
};

__thread struct thread_now thread_now_here;
struct thread_now thread_now_unknown;
intptr_t thread_now_offset;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static struct list pools = LIST_INIT(pools);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static atomic_bool have_key;

/* Detaching a part calls providers, so it is done without the lock. The end of a pool waits for it. */
static void thread_end(void *arg)
{
    struct thread *thread = arg;
    struct list *link;

    memset(thread_now_here.cache, 0, sizeof(thread_now_here.cache));
    pthread_mutex_lock(&lock);
    while ((link = list_pop(&thread->parts))) {
        struct thread_part *part = container_of(link, struct thread_part, in_thread);

        part->leaving = true;
        pthread_mutex_unlock(&lock);
        part->parts->ops->detach(part);
        pthread_mutex_lock(&lock);
        part->leaving = false;
        pthread_cond_broadcast(&left);
    }
    pthread_mutex_unlock(&lock);
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
    list_init(&thread->parts);
    if (pthread_setspecific(key, thread)) {
        free(thread);
        return NULL;
    }
    return thread;
}

static struct thread_part *part_find(const struct thread *thread, const struct thread_parts *parts)
{
    list_for_each_entry(part, &thread->parts, struct thread_part, in_thread)
        if (part->parts == parts)
            return part;
    return NULL;
}

/* Finds a part that its thread has left. */
static struct thread_part *part_find_left(const struct thread_parts *parts)
{
    list_for_each_entry(part, &parts->all, struct thread_part, in_pool)
        if (!list_is_linked(&part->in_thread) && !part->leaving && !part->lost)
            return part;
    return NULL;
}

static void part_remember(const struct thread_parts *parts, struct thread_part *part)
{
    unsigned i = parts->id % THREAD_PARTS_NOW;

    thread_now_here.cache[i].id = parts->id;
    thread_now_here.cache[i].part = part;
}

struct thread_part *thread_part_look(const struct thread_parts *parts)
{
    const struct thread *thread = have_key ? pthread_getspecific(key) : NULL;
    struct thread_part *part = NULL;

    if (thread) {
        pthread_mutex_lock(&lock);
        part = part_find(thread, parts);
        pthread_mutex_unlock(&lock);
    }
    if (!part)
        part = parts->none;
    part_remember(parts, part);
    return part;
}

/* With the lock. */
static void part_hand_over(struct thread_part *part, struct thread *thread)
{
    list_append(&thread->parts, &part->in_thread);
    if (part->parts->ops->attach)
        part->parts->ops->attach(part);
}

/* The part is made without the lock: what that calls may have locks of its own that a fork takes first. */
static struct thread_part *part_make(struct thread_parts *parts, struct thread *thread)
{
    struct thread_part *part = parts->ops->make(parts);

    if (!part)
        return NULL;
    pthread_mutex_lock(&lock);
    list_append(&parts->all, &part->in_pool);
    part_hand_over(part, thread);
    pthread_mutex_unlock(&lock);
    return part;
}

struct thread_part *thread_part_get(struct thread_parts *parts)
{
    struct thread *thread = this_thread();
    struct thread_part *part;

    if (!thread)
        return NULL;
    pthread_mutex_lock(&lock);
    part = part_find_left(parts);
    if (part)
        part_hand_over(part, thread);
    pthread_mutex_unlock(&lock);
    if (!part)
        part = part_make(parts, thread);
    if (part)
        part_remember(parts, part);
    return part;
}

void thread_part_init(struct thread_part *part, struct thread_parts *parts)
{
    part->parts = parts;
    part->leaving = part->lost = false;
    list_init(&part->in_pool);
    list_init(&part->in_thread);
}

void thread_parts_init(struct thread_parts *parts, const struct thread_parts_ops *ops, pthread_mutex_t *pool_lock,
                       struct thread_part *none)
{
    static _Atomic uint64_t ids;
    intptr_t offset;

    if (static_tls(&thread_now_here, &offset))
        __atomic_store_n(&thread_now_offset, offset, __ATOMIC_RELAXED);
    parts->id = ++ids;
    parts->ops = ops;
    parts->lock = pool_lock;
    parts->none = none;
    list_init(&parts->all);
    list_init(&parts->in_register);
    pthread_mutex_lock(&lock);
    list_append(&pools, &parts->in_register);
    pthread_mutex_unlock(&lock);
}

void thread_parts_leave(struct thread_parts *parts)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&lock);

    list_for_each_entry(part, &parts->all, struct thread_part, in_pool) {
        while (part->leaving)
            pthread_cond_wait(&left, &lock);
        list_remove(&part->in_thread);
    }
    list_remove(&parts->in_register);
}

/* ---- around a fork ----------------------------------------------------------------------------------------------- */

void thread_parts_lock_all(void)
{
    pthread_mutex_lock(&lock);
    list_for_each_entry(parts, &pools, struct thread_parts, in_register)
        pthread_mutex_lock(parts->lock);
}

void thread_parts_unlock_all(void)
{
    list_for_each_entry(parts, &pools, struct thread_parts, in_register)
        pthread_mutex_unlock(parts->lock);
    pthread_mutex_unlock(&lock);
}

static void parts_lose(struct thread_parts *parts, const struct thread *thread)
{
    const struct thread_part *mine = thread ? part_find(thread, parts) : NULL;

    list_for_each_entry(part, &parts->all, struct thread_part, in_pool)
        if (part != mine && (part->leaving || list_is_linked(&part->in_thread))) {
            part->lost = true;
            part->leaving = false;
        }
}

void thread_parts_in_child(void)
{
    const struct thread *thread = have_key ? pthread_getspecific(key) : NULL;

    list_for_each_entry(parts, &pools, struct thread_parts, in_register)
        parts_lose(parts, thread);
    thread_parts_unlock_all();
    /* they may count waiters that the child does not have */
    (void)pthread_mutex_init(&lock, NULL);
    (void)pthread_cond_init(&left, NULL);
}
