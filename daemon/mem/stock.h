/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm stock: which kinds of buffers are kept ready, and how many of each.
 *
 * Committing memory takes as long as it is large; taking a buffer that is there takes no time. So what is asked for
 * again and again is made ahead, as many as were asked for in a burst, and fewer again when it is not. A *kind* is all
 * that makes the memory of one buffer as good as that of another; a *class* is the stock of one kind.
 *
 * How many a class is to have, its target, follows demand. A kind that is asked for again gets one; each
 * request that finds too few doubles it; a period in which half of it was never needed halves it, and one in which
 * nobody asked does so down to nothing. It is filled up again when half of it is gone, and when the burst that took it
 * has paused, so that it does not compete with that: or at once, if hardly any is left. The first of them are urgent,
 * since the next who asks would have to wait for them; the rest has time.
 *
 * All of this is arithmetic: whoever calls says what time it is, and makes and ends buffers (broker/stocking.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/placement.h"

struct buffer;
struct pool;

#define STOCK_CLASSES 32
/* Of one kind, as long as they are small; of large ones less, but two at least. */
#define STOCK_MOST       64
#define STOCK_MOST_BYTES (UINT64_C(64) << 20)
/* So often within this time: who works with a gigabyte may well need the next one only seconds later. */
#define STOCK_ASKS    2
#define STOCK_ASKS_NS UINT64_C(60000000000)
/* The first target. */
#define STOCK_FIRST     4
/* The burst is over when nobody asked for so long. */
#define STOCK_LULL_NS   UINT64_C(1000000)
#define STOCK_PERIOD_NS UINT64_C(10000000000)

struct stock_kind {
    struct pool *pool;
    uint64_t bytes; /* 0: none */
    uint32_t node;
    uint8_t placement;
    bool strict;
    bool publishable;
};

struct stock_item {
    struct buffer *buffer;
    int fd; /* opened beforehand for its first user, or -1 */
};

struct stock_class {
    struct stock_kind kind; /* bytes 0: the class is free */
    uint64_t asked_at;      /* the last time */
    uint64_t first_asked;   /* of `asks`, by which it is seen whether it is worth a target */
    uint64_t period;        /* when it began */
    uint32_t asks;
    uint32_t target;
    uint32_t least; /* that were there in this period */
    uint32_t coming; /* being made */
    uint32_t n;
    uint8_t fd_asks; /* 0-3: do those who take one want a descriptor? */
    bool filling;
    struct stock_item items[STOCK_MOST];
};

struct stock {
    struct stock_class classes[STOCK_CLASSES];
};

/* Of a buffer by this plan. False: there is no stock of such ones. */
bool stock_kind_of(struct pool *pool, const struct plan_brief *plan, bool publishable, struct stock_kind *ret);

/* NULL if there is none. */
struct stock_class *stock_find(struct stock *stock, const struct stock_kind *kind);
/* There is one from now on, in place of one that has and wants nothing if need be; NULL if all are in use. */
struct stock_class *stock_add(struct stock *stock, const struct stock_kind *kind, uint64_t now);

/* The most that a class of this kind may have. */
uint32_t stock_most(const struct stock_kind *kind);

/* So many were asked for at once, and all were in stock or not. */
void stock_asked(struct stock_class *class, uint32_t n, bool got, bool with_fds, uint64_t now);
/* The one that was put last. There must be one. */
struct stock_item stock_take(struct stock_class *class);
/* One that has come, or was not taken after all. There must be room. */
void stock_put(struct stock_class *class, struct stock_item item);
/* Does whoever takes one want a descriptor? */
bool stock_wants_fds(const struct stock_class *class);

/* How many should be made now; and when that should be asked again, unless something changes (UINT64_MAX: never). */
uint32_t stock_wanted(struct stock_class *class, uint64_t now, uint64_t *ret_again);
/* Of those, the first so many are urgent. */
uint32_t stock_urgent(const struct stock_class *class);
/* How many too many there are, if a period is over or the target was lowered. A class without any target, and without
 * anything that is there or coming, is free then. */
uint32_t stock_surplus(struct stock_class *class, uint64_t now);
/* No more than so many, until there is demand again. */
void stock_lower(struct stock_class *class, uint32_t target);
