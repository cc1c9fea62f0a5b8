/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: what the broker knows of each memfd, and what it keeps charged for it.
 *
 * A buffer owns what it costs: the bytes of its pool, its user's charges, its home address, its descriptor T.
 * Making it takes all of them or none, and buffer_free() gives all back, so that the sums are exact by construction
 * (I5). The broker decides when that may happen (I4). Holds, tokens and names link themselves here, and unlink
 * themselves when they end.
 *
 * A foreign buffer has memory that the broker did not make: T is a descriptor that a client gave it. It has no pool,
 * no plan, no bytes and no home. It is in no index of inodes and never watched, since its maker decides how long its
 * memory lives. So it ends with its last reference, and nothing of it is emptied.
 *
 * A buffer of the warm stock is unowned: the broker has made its memory, nobody else has seen it, and it is charged to
 * the stock of its pool and to no user. Nobody finds it until buffer_take() gives it to a user. Before that it is
 * earmarked: the user is charged for it, and it has its home.
 *
 * A buffer, one session's hold on it and its home address take 520 bytes altogether (session/hold.c proves it), beside
 * what tables leave unused of their pages. Hence the trees: a hash table's handle takes nearly twice a tree's link.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "account/account.h"
#include "base/list.h"
#include "base/problem.h"
#include "base/tree.h"
#include "ledger/table.h"
#include "mem/handle.h"
#include "mem/placement.h"
#include "mem/pool.h"
#include "va/arena.h"
#include "va/reservation.h"

/* BufferState on the wire, except STOCK. */
enum buffer_state {
    BUFFER_COMMITTING = 0,
    BUFFER_LIVE = 1,
    BUFFER_DETACHED = 2,
    BUFFER_ENDING = 3,
    BUFFER_STOCK = 4, /* nobody's */
};

/* AllocRequest.Flag and BufferInfo.Flag on the wire, except the last ones. */
enum buffer_flag {
    BUFFER_PUBLISHABLE = 1,
    BUFFER_NO_ADDRESS = 2,
    BUFFER_WANT_FDS = 4,    /* of a request only */
    BUFFER_WANT_TOKENS = 8, /* likewise */
    BUFFER_AHEAD = 16,      /* out of use: of a record of a broker that made buffers ahead, until it is recovered */
    BUFFER_PUBLISHED = 256, /* of a record: by PUBLISH */
    BUFFER_PUBLISHED_FUTURE_ONLY = 512,
    BUFFER_LAZY = 1024,
    BUFFER_EXPORTED = 2048,
    BUFFER_VERIFIED = 4096,
    BUFFER_FOREIGN = 8192,
    BUFFER_CLIENT_CHARGED = 16384,
    BUFFER_WANTS_THP = 32768, /* on the wire only */
    /* these are kept to ourselves */
    BUFFER_HOME_WASTE = 63 << 16, /* waste_note() of what its home wasted when it was taken, if that is charged */
    BUFFER_IN_HAND = 1 << 28,     /* who held it says that nobody else can have it open or mapped */
    BUFFER_WAS_CACHED = 1 << 29,  /* some client's cache had it, and may still have it mapped */
    BUFFER_STRICT = 1 << 30,      /* its plan is */
};

#define BUFFER_FLAGS_ALL                                                                                      \
    (BUFFER_PUBLISHABLE | BUFFER_NO_ADDRESS | BUFFER_PUBLISHED | BUFFER_PUBLISHED_FUTURE_ONLY | BUFFER_LAZY | \
     BUFFER_EXPORTED | BUFFER_VERIFIED | BUFFER_FOREIGN | BUFFER_AHEAD | BUFFER_IN_HAND | BUFFER_WAS_CACHED | \
     BUFFER_STRICT | BUFFER_CLIENT_CHARGED | BUFFER_HOME_WASTE)
#define BUFFER_FLAGS_ON_WIRE    ((uint32_t)0xffff)
#define BUFFER_HOME_WASTE_SHIFT 16

/* What the broker does about its end; its pointer is in `exit` meanwhile. */
enum buffer_exit {
    BUFFER_EXIT_NONE,
    BUFFER_EXIT_TEARDOWN, /* broker/lifecycle.c: its tokens go, or the kernel is asked who has it */
    BUFFER_EXIT_QUEUED,   /* broker/closing.c: its memory goes at the next commit */
    BUFFER_EXIT_CLOSING,  /* … and is on its way back */
};

struct buffer;
struct closing;
struct teardown;
struct hold;
RB_HEAD(buffer_hold_tree, hold);
RB_HEAD(buffer_inode_tree, buffer);
RB_HEAD(buffer_watch_tree, buffer);

struct buffers {
    struct table table;
    struct table plans;
    struct pools *pools; /* borrowed, as the rest here */
    struct arena *arena;
    struct reservations *reservations;
    struct buffer_inode_tree by_inode;
    struct buffer_watch_tree by_watch;
    uint64_t bytes;      /* of all of them */
    uint64_t n_detached; /* DETACHED, or ENDING by buffer_set_unproven() */
    uint64_t n_ending;   /* ENDING */
    uint64_t n_stock;    /* unowned, in any state, and not counted above */
};

struct buffer {
    OBJECT(struct buffer_record);
    RB_ENTRY(buffer) by_inode;     /* once it has memory */
    RB_ENTRY(buffer) by_watch;     /* once it is watched */
    struct arena_extent home;      /* of the arena or, if it is placed in one, of the reservation */
    struct buffer_hold_tree holds; /* session/hold.h */
    struct list tokens;            /* struct token's in_buffer */
    struct list names;             /* struct name's in_buffer */
    struct charge charge;          /* of its bytes */
    union {
        struct teardown *teardown;
        struct buffer *next;
        struct closing *closing;
    } exit;                  /* of exit_phase */
    int fd;                  /* T, owned; -1 without */
    uint32_t pins : 28;      /* operations in progress that need it */
    uint32_t exit_phase : 4; /* enum buffer_exit */
    uint32_t n_holds;
    uint32_t n_tokens;
    uint32_t n_names;
    uint32_t n_keeping; /* of the tokens: those that keep it alive */
};

/* Who has one made, and so pays for it. */
struct buffer_owner {
    struct account *account;
    uint64_t session;
    pid_t pid;
};

void buffers_init(struct buffers *buffers, struct ledger *ledger, struct pools *pools, struct arena *arena,
                  struct reservations *reservations);
void buffers_deinit(struct buffers *buffers);

/*
 * An INTENT record in state COMMITTING without memory, everything charged: user, pool, home address. Of `spec` only
 * flags, alignment and address matter, the plan has the rest. Without a pool it is foreign; without an owner (NULL) it
 * is for the stock, and has no home. LIMIT, POOL_FULL, NO_MEMORY, outcomes of arena_take().
 */
int buffer_new(struct buffers *buffers, const struct plan *plan, const struct memory_spec *spec,
               const struct buffer_owner *owner, struct buffer **ret, struct problem *problem);
/* Gives back all that it has, and closes T. Holds, tokens, names and pins must be gone. The home's reservation ends if
 * nothing else keeps it. */
struct buffer *buffer_free(struct buffers *buffers, struct buffer *buffer);

/* What a later broker finds out about one. */
struct buffer_found {
    struct account *account;          /* who pays, NULL if it is nobody's … */
    uint64_t session;                 /* … if it is a session that lives */
    int *fd;                          /* what the keeper has for it, to be taken; NULL = nothing */
    const struct handle_probe *probe; /* what was seen of that already, or NULL */
    uid_t owner;                      /* of all memory: the broker's own */
    struct buffer *near;              /* one that was recovered before, the last one best; or NULL */
};

/* Makes a buffer of its record again (table.h), charged, with its home and its memory. The plans must be recovered by
 * then. Once all buffers are, buffers_recovered() frees the plans that none has found. */
enum table_verdict buffer_recover(struct buffers *buffers, struct buffer *buffer, const struct buffer_found *found,
                                  const char **why);
void buffers_recovered(struct buffers *buffers);
/* Charges what its home wastes (va/waste.h), once all that takes addresses is recovered. */
void buffer_recover_waste(struct buffers *buffers, struct buffer *buffer);

/* Gives it its memory: T (taken over on success), and what commit.h says of it. 0, or BUSY if a buffer has this inode
 * already: then the memory must be made again. A foreign buffer is never BUSY. */
int buffer_set_memory(struct buffers *buffers, struct buffer *buffer, int fd, const struct handle_identity *identity,
                      uint64_t huge_bytes, bool verified);
/* Makes its record LIVE, and the buffer too; an unowned one is in stock then. */
void buffer_commit(struct buffers *buffers, struct buffer *buffer);
/* Charges a buffer in stock to this account and gives it its home; no record changes. LIMIT, outcomes of
 * arena_take(). */
int buffer_earmark(struct buffers *buffers, struct buffer *buffer, const struct memory_spec *spec,
                   struct account *account, struct problem *problem);
void buffer_unearmark(struct buffers *buffers, struct buffer *buffer);
/* Gives an earmarked buffer to its owner, who asked for this size: it is LIVE. Its pool, plan and seals stay. */
void buffer_take(struct buffers *buffers, struct buffer *buffer, uint64_t size, const struct buffer_owner *owner);
/* To LIVE, DETACHED or ENDING; keeps the time and the counts. */
void buffer_set_state(struct buffers *buffers, struct buffer *buffer, enum buffer_state state);
/* To ENDING, though nothing proves that nobody has it open or mapped: its pages are left alone, and go with its
 * inode. */
void buffer_set_unproven(struct buffers *buffers, struct buffer *buffer);
/* It is ENDING, and nobody can keep its memory from becoming free, so that those who wait for room may count on what is
 * left of it; or they may not after all. */
void buffer_set_reclaiming(struct buffers *buffers, struct buffer *buffer, bool reclaiming);
/* So many bytes at its end have been given back, fewer than it has. It must be ENDING, and on one node. */
void buffer_lower(struct buffers *buffers, struct buffer *buffer, uint64_t by);
/* All of it is on this node now and bound to it. Charges it to this pool and node instead, which is never refused: the
 * caller has reserved the memory there. */
void buffer_set_node(struct buffers *buffers, struct buffer *buffer, struct pool *pool, uint32_t node,
                     uint64_t huge_bytes);
/* Of watch.h; -1 = it is no longer watched. */
void buffer_set_watch(struct buffers *buffers, struct buffer *buffer, int wd);
/* Puts its home `offset` bytes into the reservation. It must have none. Outcomes of reservation_place(). */
int buffer_place(struct buffers *buffers, struct buffer *buffer, struct reservation *reservation, uint64_t offset,
                 struct problem *problem);
/* Who pays from now on (I5: over the limit if need be): the account of this session, or with session 0 of a user. */
void buffer_charge_to(struct buffers *buffers, struct buffer *buffer, struct account *account, uint64_t session);
void buffer_add_flags(struct buffers *buffers, struct buffer *buffer, uint32_t flags);
void buffer_remove_flags(struct buffers *buffers, struct buffer *buffer, uint32_t flags);

/* Is its life over? Whatever is left of it, tokens included, is on its way out. */
static inline bool buffer_is_unreferenced(const struct buffer *buffer)
{
    return buffer->record->state == BUFFER_DETACHED || buffer->record->state == BUFFER_ENDING;
}

/* Is there a reason for it to live: a hold, a name or a keeping token? */
static inline bool buffer_is_kept(const struct buffer *buffer)
{
    return buffer->n_holds || buffer->n_names || buffer->n_keeping;
}

static inline bool buffer_is_foreign(const struct buffer *buffer)
{
    return buffer->record->flags & BUFFER_FOREIGN;
}

/* Is it ENDING by buffer_set_unproven()? */
static inline bool buffer_is_unproven(const struct buffer *buffer)
{
    return buffer->record->state == BUFFER_ENDING && buffer->record->detached_ms;
}

/* Is it of the stock: waiting, being made, or being given back? */
static inline bool buffer_is_unowned(const struct buffer *buffer)
{
    return buffer->record->charged_uid == (uid_t)-1;
}

/* How its bytes are charged to its pool. */
static inline enum tally_state buffer_tally_state(const struct buffer *buffer)
{
    return buffer_is_unowned(buffer) ? TALLY_STOCK : (enum tally_state)buffer->charge.state;
}

static inline uint64_t buffer_granule(const struct buffer *buffer)
{
    return UINT64_C(1) << buffer->record->granule_shift;
}

/* As the kernel has them now; 0 of a buffer whose T is closed. */
static inline uint32_t buffer_seals(const struct buffer *buffer)
{
    return buffer->fd >= 0 ? handle_seals(buffer->fd) : 0;
}

/* The flags on the wire. A process that could write a publishable buffer may have sealed it, and need not tell. */
uint32_t buffer_flags(const struct buffer *buffer);

/* May nobody write it any more, from now on? */
static inline bool buffer_is_sealed(const struct buffer *buffer)
{
    return buffer_flags(buffer) & BUFFER_PUBLISHED;
}

/* NULL of a foreign buffer, which has no plan either. */
struct pool *buffer_pool(const struct buffers *buffers, const struct buffer *buffer);
void buffer_plan(const struct buffers *buffers, const struct buffer *buffer, struct plan *ret);

/* A committed buffer that somebody owns, in any state; NULL if there is none. */
struct buffer *buffers_find(const struct buffers *buffers, uint64_t id);
/* As table_find_near(). */
struct buffer *buffers_find_near(const struct buffers *buffers, struct buffer *near, uint64_t id);
struct buffer *buffers_by_inode(const struct buffers *buffers, dev_t device, ino_t inode);
struct buffer *buffers_by_watch(const struct buffers *buffers, int wd);
