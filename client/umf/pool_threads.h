/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread has for itself in a pool is a *part*, a member of a struct of the pool's. A thread gets one at its
 * first allocation. When the thread ends, its part stays in the pool, and the next thread that needs one takes it over.
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
    bool leaving; /* its thread is in detach() for it */
    bool lost;    /* in a forked child: its thread, which may have been changing it, does not exist here */
};

struct thread_parts_ops {
    struct thread_part *(*make)(struct thread_parts *parts); /* NULL: no memory */
    void (*attach)(struct thread_part *part);                /* a thread gets it; with the register's lock; or NULL */
    void (*detach)(struct thread_part *part);                /* the thread ends; called in it, without a lock */
};

struct thread_parts {
    uint64_t id; /* never used again */
    const struct thread_parts_ops *ops;
    pthread_mutex_t *lock;    /* the pool's own; a fork takes it, too */
    struct thread_part *none; /* stands for the part of a thread that has none */
    struct list all;          /* with the register's lock */
    struct list in_register;
};

/* A thread's cache of its parts. */
#define THREAD_PARTS_NOW 8

struct thread_now {
    struct {
        uint64_t id;
        struct thread_part *part;
    } cache[THREAD_PARTS_NOW];
    umf_result_t disjoint_error, jemalloc_error; /* of its last allocation from such a pool */
    bool disjoint_grew;                          /* the disjoint pool has called its provider for it */
};

extern __thread struct thread_now thread_now_here;
extern struct thread_now thread_now_unknown; /* has no part */
extern intptr_t thread_now_offset;           /* from the thread pointer; 0: unknown */

/* The calling thread's, or thread_now_unknown if finding it takes a call. A shared library needs one for a thread's
 * variable, unless its offset is known. */
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

/* Do this library's variables have the same offset from the thread pointer in all threads? They do if it was loaded
 * with the program, and not by dlopen(). Then *offset is set to that of `variable`, which is the calling thread's. */
bool static_tls(const void *variable, intptr_t *offset);

/* The pool's lock must be ready: from now on a fork takes it. */
void thread_parts_init(struct thread_parts *parts, const struct thread_parts_ops *ops, pthread_mutex_t *pool_lock,
                       struct thread_part *none);
/* Takes all parts away from their threads, so that they can be freed. */
void thread_parts_leave(struct thread_parts *parts);

void thread_part_init(struct thread_part *part, struct thread_parts *parts);
/* Returns the calling thread's part, or `none`. */
struct thread_part *thread_part_look(const struct thread_parts *parts);
/* Gets a part for a thread that has none: one that its thread has left, or a new one. NULL: no memory. */
struct thread_part *thread_part_get(struct thread_parts *parts);

/* Returns what the cache has, or NULL. */
static inline struct thread_part *thread_part_quick(const struct thread_now *now, const struct thread_parts *parts)
{
    unsigned i = parts->id % THREAD_PARTS_NOW;

    return now->cache[i].id == parts->id ? now->cache[i].part : NULL;
}

/* The same as thread_part_look(), but mostly without a call. */
static inline struct thread_part *thread_part_mine(const struct thread_now *now, const struct thread_parts *parts)
{
    struct thread_part *part = thread_part_quick(now, parts);

    return part ? part : thread_part_look(parts);
}

/* Around a fork. */
void thread_parts_lock_all(void);
void thread_parts_unlock_all(void);
void thread_parts_in_child(void);
