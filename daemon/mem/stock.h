/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm stock: which buffers are kept ready, and how many of each.
 *
 * Committing memory takes the longer the larger it is; taking a buffer from stock takes no time. So frequently
 * requested buffers are made ahead, as many as were asked for in a burst, and fewer when demand ends. A *key* is all by
 * which one buffer is as good as another; a *bin* is the stock of one key.
 *
 * The target of a bin, how many it is to have, follows demand. A key that is asked for again gets one; each request
 * that finds too few doubles it; a period in which half of it was never needed halves it, and one in which nobody
 * asked does so down to nothing. A bin is filled up again when half of it is gone and nobody has asked for the length
 * of the idle gap, so that filling does not compete with the burst, or at once if hardly any is left. The first ones
 * are urgent, since the next request would have to wait for them.
 *
 * All of this is arithmetic: the caller passes the time, and makes and ends buffers (broker/stocking.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/placement.h"

struct buffer;
struct pool;

#define STOCK_BINS 32
/* The most of one key if they are small; of large ones fewer, but at least two. */
#define STOCK_MOST       64
#define STOCK_MOST_BYTES (UINT64_C(64) << 20)
/* A key gets a target if it is asked for so often within this time. It is long, since a program that works with a
 * gigabyte may need the next one only seconds later. */
#define STOCK_ASKS    2
#define STOCK_ASKS_NS UINT64_C(60000000000)
/* The first target. */
#define STOCK_FIRST 4
/* The burst is over when nobody asked for so long. */
#define STOCK_IDLE_GAP_NS UINT64_C(1000000)
#define STOCK_PERIOD_NS   UINT64_C(10000000000)

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
    uint64_t asked_at;    /* the last time */
    uint64_t first_asked; /* of `asks`, by which it is seen whether it is worth a target */
    uint64_t period;      /* when it began */
    uint32_t asks;
    uint32_t target;
    uint32_t least;  /* that were there in this period */
    uint32_t coming; /* being made */
    uint32_t n;
    uint8_t fd_asks; /* 0-3: do those who take one want a descriptor? */
    bool filling;
    struct stock_item items[STOCK_MOST];
};

struct stock {
    struct stock_bin bins[STOCK_BINS];
};

/* The key of a buffer by this plan. False: there is no stock of such buffers. */
bool stock_key_of(struct pool *pool, const struct plan_brief *plan, bool publishable, struct stock_key *ret);

/* NULL if there is none. */
struct stock_bin *stock_find(struct stock *stock, const struct stock_key *key);
/* A new bin, if need be in place of one that has and wants nothing; NULL if all are in use. */
struct stock_bin *stock_add(struct stock *stock, const struct stock_key *key, uint64_t now);

/* The most that a bin of this key may have. */
uint32_t stock_most(const struct stock_key *key);

/* So many buffers were asked for at once, and all were in stock or not. */
void stock_asked(struct stock_bin *bin, uint32_t n, bool got, bool with_fds, uint64_t now);
/* Takes the buffer that was put last. There must be one. */
struct stock_item stock_take(struct stock_bin *bin);
/* Puts a buffer that was made, or was not taken after all. The bin must not be full. */
void stock_put(struct stock_bin *bin, struct stock_item item);
/* Do those who take one want a descriptor? */
bool stock_wants_fds(const struct stock_bin *bin);

/* How many should be made now, and when to ask again unless something changes (UINT64_MAX: never). */
uint32_t stock_wanted(struct stock_bin *bin, uint64_t now, uint64_t *ret_again);
/* How many of those are urgent. */
uint32_t stock_urgent(const struct stock_bin *bin);
/* How many there are too many, if a period is over or the target was lowered. A bin that has and wants nothing becomes
 * free. */
uint32_t stock_surplus(struct stock_bin *bin, uint64_t now);
/* Lowers the target, until there is demand again. */
void stock_lower(struct stock_bin *bin, uint32_t target);
