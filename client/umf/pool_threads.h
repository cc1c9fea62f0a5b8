/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread has for itself in a pool: a *part*, as a member of what the pool makes it of. A thread gets one when
 * it first allocates. When it ends, its part stays in the pool, and the next thread that needs one takes it over.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/umf/umf/base.h>

#include "base/list.h"

struct thread_part {
    struct thread_parts *parts;
    struct list in_pool;
    struct list in_thread;
    bool leaving; /* its thread is giving it up just now */
    bool lost;    /* this process was forked, and has not the thread: nobody knows what that was doing with it */
};

struct thread_parts_ops {
    struct thread_part *(*make)(struct thread_parts *parts); /* NULL without memory */
    void (*attach)(struct thread_part *part);                /* a thread gets it; with the register's lock; or NULL */
    void (*detach)(struct thread_part *part);                /* the thread ends; in that thread, without a lock */
};

struct thread_parts {
    uint64_t id; /* never the same again */
    const struct thread_parts_ops *ops;
    pthread_mutex_t *lock;    /* the pool's own, which is held around a fork, as the register's is */
    struct thread_part *none; /* what a thread has that has none */
    struct list all;          /* with the register's lock */
    struct list in_register;
};

/* What a thread remembers. */
#define THREAD_PARTS_NOW 8

struct thread_now {
    struct {
        uint64_t id;
        struct thread_part *part;
    } cache[THREAD_PARTS_NOW];
    umf_result_t disjoint_error, jemalloc_error; /* of its last allocation from such a pool */
};

extern __thread struct thread_now thread_now_here;
extern struct thread_now thread_now_unknown; /* without any part */
extern intptr_t thread_now_offset;           /* by the thread pointer; 0: nobody knows */

/*
 * The calling thread's; or thread_now_unknown, where finding it takes a call: a shared library's variables of threads
 * cost one, but where their place is known.
 */
static inline struct thread_now *thread_now_quick(void)
{
    intptr_t offset = __atomic_load_n(&thread_now_offset, __ATOMIC_RELAXED);

    if (__builtin_expect(!offset, false))
        return &thread_now_unknown;
    return (struct thread_now *)(void *)((char *)__builtin_thread_pointer() + offset);
}

/* The calling thread's. */
static inline struct thread_now *thread_now(void)
{
    struct thread_now *now = thread_now_quick();

    return now == &thread_now_unknown ? &thread_now_here : now;
}

/*
 * Are they at one place in all threads, by the thread pointer? So it is if the library was loaded with the program, and
 * not by dlopen(). Then *offset gets where `variable` is, as the calling thread sees it.
 */
bool static_tls(const void *variable, intptr_t *offset);

/* From now on a fork takes the pool's lock, which is there already. */
void thread_parts_init(struct thread_parts *parts, const struct thread_parts_ops *ops, pthread_mutex_t *pool_lock,
                       struct thread_part *none);
/* No thread has a part any more; all are left to be freed. */
void thread_parts_leave(struct thread_parts *parts);

void thread_part_init(struct thread_part *part, struct thread_parts *parts);
/* The calling thread's, or none. */
struct thread_part *thread_part_look(const struct thread_parts *parts);
/* One for the calling thread, which has none: one that was left, or a new one. NULL without memory. */
struct thread_part *thread_part_get(struct thread_parts *parts);

/* What the thread remembers; NULL: nothing. */
static inline struct thread_part *thread_part_quick(const struct thread_now *now, const struct thread_parts *parts)
{
    unsigned i = parts->id % THREAD_PARTS_NOW;

    return now->cache[i].id == parts->id ? now->cache[i].part : NULL;
}

/* thread_part_look(), and mostly at once. */
static inline struct thread_part *thread_part_mine(const struct thread_now *now, const struct thread_parts *parts)
{
    struct thread_part *part = thread_part_quick(now, parts);

    return part ? part : thread_part_look(parts);
}

/* Around a fork. */
void thread_parts_lock_all(void);
void thread_parts_unlock_all(void);
void thread_parts_in_child(void);
