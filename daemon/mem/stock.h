/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm stock: which buffers are kept ready, and how many of each.
 *
 * Committing memory takes as long as it is large; taking a buffer that is there takes no time. So frequently requested
 * buffers are made ahead, as many as were asked for in a burst, and fewer again when demand ends. A *key* is all that
 * makes the memory of one buffer as good as that of another; a *bin* is the stock of one key.
 *
 * The target of a bin, how many it is to have, follows demand. A key that is asked for again gets one; each request
 * that finds too few doubles it; a period in which half of it was never needed halves it, and one in which nobody
 * asked does so down to nothing. A bin is filled up again when half of it is gone and nobody has asked for the length
 * of the idle gap, so that filling does not compete with the burst; or at once, if hardly any is left. The first of
 * them are urgent, since the next request would have to wait for them; the rest has time.
 *
 * All of this is arithmetic: whoever calls says what time it is, and makes and ends buffers (broker/stocking.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/placement.h"

struct buffer;
struct pool;

#define STOCK_BINS 32
/* Of one key, as long as they are small; of large ones less, but two at least. */
#define STOCK_MOST       64
#define STOCK_MOST_BYTES (UINT64_C(64) << 20)
/* So often within this time: who works with a gigabyte may well need the next one only seconds later. */
#define STOCK_ASKS    2
#define STOCK_ASKS_NS UINT64_C(60000000000)
/* The first target. */
#define STOCK_FIRST     4
/* The burst is over when nobody asked for so long. */
#define STOCK_IDLE_GAP_NS   UINT64_C(1000000)
#define STOCK_PERIOD_NS UINT64_C(10000000000)

struct stock_key {
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

struct stock_bin {
    struct stock_key key; /* bytes 0: the bin is free */
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
    struct stock_bin bins[STOCK_BINS];
};

/* Of a buffer by this plan. False: there is no stock of such ones. */
bool stock_key_of(struct pool *pool, const struct plan_brief *plan, bool publishable, struct stock_key *ret);

/* NULL if there is none. */
struct stock_bin *stock_find(struct stock *stock, const struct stock_key *key);
/* There is one from now on, in place of one that has and wants nothing if need be; NULL if all are in use. */
struct stock_bin *stock_add(struct stock *stock, const struct stock_key *key, uint64_t now);

/* The most that a bin of this key may have. */
uint32_t stock_most(const struct stock_key *key);

/* So many were asked for at once, and all were in stock or not. */
void stock_asked(struct stock_bin *bin, uint32_t n, bool got, bool with_fds, uint64_t now);
/* The one that was put last. There must be one. */
struct stock_item stock_take(struct stock_bin *bin);
/* One that has come, or was not taken after all. There must be room. */
void stock_put(struct stock_bin *bin, struct stock_item item);
/* Does whoever takes one want a descriptor? */
bool stock_wants_fds(const struct stock_bin *bin);

/* How many should be made now; and when that should be asked again, unless something changes (UINT64_MAX: never). */
uint32_t stock_wanted(struct stock_bin *bin, uint64_t now, uint64_t *ret_again);
/* Of those, the first so many are urgent. */
uint32_t stock_urgent(const struct stock_bin *bin);
/* How many too many there are, if a period is over or the target was lowered. A bin without any target, and without
 * anything that is there or coming, is free then. */
uint32_t stock_surplus(struct stock_bin *bin, uint64_t now);
/* No more than so many, until there is demand again. */
void stock_lower(struct stock_bin *bin, uint32_t target);
