/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers ahead: what a program is about to allocate is there before it asks.
 *
 * A program that allocates again and again mostly wants the same again. Once it has had eight buffers of one kind in a
 * row, without a pause, the context asks the broker for a few more of them, and does not wait for the reply. The next
 * memclient_alloc() of that kind takes one and sends nothing: it locks a byte of it, by which the broker sees that it
 * is taken (PROTOCOL.md, section 17). New ones are asked for when half are gone and something is given back, since the
 * broker is woken for that anyway; and of a program that gives nothing back, when it takes one more. So a buffer costs
 * its program the lock instead of a round trip.
 *
 * The lock is the description's, so that must stay until the broker has been told in words as well: in the next request
 * for more, which says what was taken since the last, or by a request about the buffer itself. Until then the
 * descriptor is not pushed out of the cache. When the broker says that it has heard of it, the byte is unlocked, for
 * it is the program's again. What a request said that was refused, the next one says again.
 *
 * A program may close descriptors that it does not know. What it took is its own then, as the broker's words are that
 * it holds the buffer; only in listings it is missing until the broker is told.
 *
 * What is ahead is the session's like anything else: it counts against limits, is found again by another broker, and
 * ends with the session. But until it is taken nobody is shown it.
 *
 * There are 2, 4, at most 8 of them, as one after the other is found missing; the broker gives them only from stock,
 * where there is plenty. They go back when another kind is asked for eight times in a row, at the first call after a
 * second without any of this kind, when a pool is under pressure that the program wants to hear of, before anything is
 * refused for want of room or by a limit, before pools are listed, and with the context. In the child of a fork they
 * are the parent's, and so is what it has to tell.
 *
 * For a program that shares what it allocates they come with tokens (core/ready.h), so that it makes no call for those
 * either.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "base/fileid.h"
#include "proto/limits.h"
#include "rpc/stubs.h"

struct memclient;
struct memclient_buffer;

/* What makes one as good as another. */
struct ahead_kind {
    char pool[MEMORYD_POOL_NAME_MAX + 1];
    uint64_t size;
    uint64_t alignment;
    uint64_t page_size;
    unsigned pages;
    unsigned placement;
    unsigned flags;
    bool has_node;
    uint32_t node;
};

struct ahead_item {
    struct rpc_opened_item opened;
    struct file_id fd_id;
    struct memclient_buffer *handle; /* for it, once it is taken */
};

/* A context's, under its lock. */
struct ahead {
    /* what was asked for lately */
    struct ahead_kind last;
    unsigned in_a_row;
    uint64_t last_at;

    /* what there is */
    bool active;
    struct ahead_kind kind;
    uint64_t taken_at;   /* the last one */
    uint64_t not_before; /* the broker had no plenty; do not ask again before */
    unsigned pauses;     /* of that kind, in a row */
    unsigned generation; /* of the session */
    unsigned epoch;      /* replies to requests of an earlier one are too late */
    unsigned wanted;
    bool asking;      /* a request is under way: one at a time */
    unsigned n_asked; /* for, by that, unless they would come too late */
    unsigned n;
    struct ahead_item items[MEMORYD_AHEAD_MAX]; /* n of them, the oldest first */

    /* what was taken, and the broker has not said that it knows; the first of them are in the request under way */
    unsigned n_untold;
    unsigned n_telling;
    uint64_t untold[MEMORYD_AHEAD_MAX];
};

/* Can one like this be ahead at all? The options are checked. */
bool ahead_is_plain(uint64_t size, const struct memclient_alloc_options *options);

/* A plain one is wanted: true if there is one, and then it is the caller's. */
bool ahead_take(struct memclient *ctx, uint64_t size, const struct memclient_alloc_options *options,
                struct memclient_buffer **buf);
/* There was none, and it has been allocated now: asks for more if that is worth it. */
void ahead_ask(struct memclient *ctx);
/* Something was given back: likewise. */
void ahead_refill(struct memclient *ctx);

/* With the lock: was it taken, and must be told? Then its descriptor stays. */
bool ahead_is_untold(const struct memclient *ctx, uint64_t id);
/* With the lock: the broker knows, or will not care. */
void ahead_forget(struct memclient *ctx, uint64_t id);

/* All go back. False if there were none. */
bool ahead_give_back(struct memclient *ctx);
/* Evaluates `call`, and once more without them if it is refused for want of room or by a limit. */
#define WITHOUT_AHEAD(ctx, call)                                                      \
    ({                                                                               \
        int without_ = (call);                                                       \
                                                                                     \
        if ((without_ == -ENOMEM || without_ == -EDQUOT) && ahead_give_back(ctx))     \
            without_ = (call);                                                       \
        without_;                                                                    \
    })

/* With the lock: has the habit ended, or the session, so that they should go back? */
bool ahead_is_over(struct memclient *ctx);

/* In the child, with the context's lock. */
void ahead_fork_child(struct memclient *ctx);
