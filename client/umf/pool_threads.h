/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread has for itself in a pool: a *part*, as a member of what the pool makes it of. A thread gets one when
 * it first allocates. When it ends, its part stays in the pool, and the next thread that needs one takes it over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct thread_part {
    struct thread_parts *parts;
    struct list in_pool;
    struct list in_thread;
    bool leaving; /* its thread is giving it up just now */
};

struct thread_parts_ops {
    struct thread_part *(*make)(struct thread_parts *parts); /* NULL without memory */
    void (*attach)(struct thread_part *part);                /* a thread gets it; with the register's lock */
    void (*detach)(struct thread_part *part);                /* the thread ends; in that thread, without a lock */
};

struct thread_parts {
    uint64_t id; /* never the same again */
    const struct thread_parts_ops *ops;
    struct thread_part *none; /* what a thread has that has none */
    struct list all;          /* with the register's lock */
};

struct thread_part_cache {
    uint64_t id;
    struct thread_part *part;
};

#define THREAD_PART_CACHE 8

extern __thread struct thread_part_cache thread_part_cache[THREAD_PART_CACHE]
    __attribute__((__tls_model__("initial-exec")));

void thread_parts_init(struct thread_parts *parts, const struct thread_parts_ops *ops, struct thread_part *none);
/* No thread has a part any more; all are left to be freed. */
void thread_parts_leave(struct thread_parts *parts);

void thread_part_init(struct thread_part *part, struct thread_parts *parts);
/* The calling thread's, or none. */
struct thread_part *thread_part_look(const struct thread_parts *parts);
/* One for the calling thread, which has none: one that was left, or a new one. NULL without memory. */
struct thread_part *thread_part_get(struct thread_parts *parts);

/* thread_part_look(), and mostly at once. */
static inline struct thread_part *thread_part_mine(const struct thread_parts *parts)
{
    const struct thread_part_cache *cache = &thread_part_cache[parts->id % THREAD_PART_CACHE];

    return cache->id == parts->id ? cache->part : thread_part_look(parts);
}

/* Around a fork. */
void thread_parts_fork_prepare(void);
void thread_parts_fork_parent(void);
void thread_parts_fork_child(void);
