/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools: the budgets of physical memory that buffers are charged to.
 *
 * The scarce thing is a node's memory, so budgets belong to nodes. One is for base pages and transparent huge pages
 * together: half of the node by default, since memory is committed when it is given out. One is for each size of
 * hugetlb pages: those that are reserved, and those that the kernel may make on demand (nr_overcommit_hugepages) and
 * takes back when nobody has them any more, so that these pools grow and shrink without any privilege. How many of
 * them are free right now depends on other processes, and is no budget.
 *
 * A pool is a view on the budgets of its nodes: a kind of page, a placement, and perhaps a cap of its own. So pools
 * may overlap, and the sum is exact at every node however buffers were asked for (I5). A user's share is of each
 * budget, and of each cap, so that it is the same however many pools there are.
 *
 * Each machine has some pools by itself: node0-4k, node0-thp, node0-2m, ... and, where there are several nodes, all-4k
 * and so on over all of them. The configuration declares more. The set never changes while the broker runs. The next
 * broker may find another configuration, so records of buffers refer to a pool by a number that the ledger remembers
 * with its name. A pool that has gone or changed goes on as a *retired* one as long as it has buffers: it is shown and
 * charged, and nobody can allocate from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "account/account.h"
#include "base/cleanup.h"
#include "base/problem.h"
#include "mem/allow.h"
#include "mem/placement.h"
#include "sys/numa.h"

#define POOL_NAME_MAX 63
#define POOLS_MAX     1024

/* Bytes, or if `percent` is not 0, that much of the memory it is about; both 0 = not set. */
struct pool_capacity {
    uint64_t bytes;
    uint32_t percent;
};

/* A pool that the configuration declares. */
struct pool_config {
    char name[POOL_NAME_MAX + 1];
    struct pool_capacity capacity; /* a cap, or percent of its nodes' budgets */
    struct pool_capacity stock;    /* the most that is kept warm, or percent of its capacity; not set = none */
    uint32_t n_nodes;              /* 0 = all that have memory of this kind */
    uint32_t nodes[TOPOLOGY_NODES_MAX];
    enum pages pages;         /* ANY = BASE */
    uint64_t page_size;       /* of HUGETLB; 0 = the default huge page */
    enum placement placement; /* POOL = BIND with one node, LOCAL with several */
    uint64_t part_size;
    uint32_t n_weights; /* 0 or n_nodes */
    uint32_t weights[TOPOLOGY_NODES_MAX];
    enum committer committer; /* BROKER of HUGETLB */
    struct allow allow;
};

struct pools_config {
    struct pool_capacity capacity;   /* of every node, for base pages and THP; not set = 50 % */
    enum committer committer;        /* of the pools that are not declared, but for those of hugetlb pages */
    bool base_pages;                 /* a request that does not name pages gets base pages, however large it is */
    struct pool_capacity stock;      /* of the pools that are not declared, as theirs */
    struct pool_capacity huge_stock; /* likewise, of those of hugetlb pages */
    const struct pool_config *pools;
    size_t n_pools;
};

struct budget {
    uint64_t capacity;
    struct tally bytes;
    uint32_t place; /* where accounts count what each user has of it */
};

/* No place of an account. */
#define PLACE_NONE UINT32_MAX

struct ledger;
struct pools;

struct pool {
    struct pools *pools;
    uint32_t index;
    uint16_t number; /* in records */
    bool retired;
    char name[POOL_NAME_MAX + 1];
    enum pages pages;
    uint64_t page_size; /* base page, size of a THP, huge page */
    uint64_t granule;   /* sizes are rounded up to it; mappings are multiples of it */
    enum placement placement;
    uint64_t part_size;
    uint32_t n_weights;
    uint32_t weights[TOPOLOGY_NODES_MAX];
    uint32_t n_nodes;
    uint32_t nodes[TOPOLOGY_NODES_MAX];
    enum committer committer;
    bool declared;         /* by the configuration, not made by itself */
    uint32_t budget_index; /* which of a node's budgets: 0 for base pages and THP, else 1 + index of the size */
    uint64_t cap;          /* UINT64_MAX: none of its own */
    uint32_t place;        /* of the cap, if it has one, as of a budget */
    struct tally bytes;    /* the sum of its buffers' bytes, … */
    struct tally buffers;  /* … and how many they are */
    struct pool_capacity most_stock;
    struct allow allow; /* declared ones are for some only, perhaps */
};

/* What an allocation asks of the memory that it gets. */
struct memory_spec {
    char pool[POOL_NAME_MAX + 1]; /* "" = chosen by the rest */
    uint32_t n_nodes;             /* 0 = any */
    uint32_t nodes[TOPOLOGY_NODES_MAX];
    uint32_t caller_node; /* 1 + the one where the calling thread runs; 0 = not told */
    enum pages pages;
    uint64_t page_size;
    enum placement placement;
    uint64_t part_size;
    uint32_t n_weights;
    uint32_t weights[TOPOLOGY_NODES_MAX];
    uint64_t alignment; /* of its home; 0 = the granule */
    uint64_t address;   /* where its home is to be; 0 = anywhere */
    uint32_t flags;     /* enum buffer_flag */
};

/* `topology` is borrowed. 0; a status if the configuration cannot be met, with the reason;
 * negative errno. */
int pools_new(struct pools **ret, const struct topology *topology, const struct pools_config *config,
              struct problem *problem);
struct pools *pools_free(struct pools *pools);
DEFINE_CLEANUP(struct pools *, pools_free);

/* How many places accounts need for what users have of budgets and caps. */
uint32_t pools_places(const struct pools *pools);

/* Retired ones are the last. */
uint32_t pools_count(const struct pools *pools);
/* NULL if there is none of this index. */
struct pool *pools_get(struct pools *pools, uint32_t index);
struct pool *pools_by_name(struct pools *pools, const char *name);

/* ---- in the ledger: pool_record.c -------------------------------------------------------------------------------- */

/* Gives each pool the number of its record or a fresh one, and adds those that are only in records as retired ones.
 * Must be called before any pool is charged; until then numbers are indexes. 0 or a negative errno. */
int pools_recover(struct pools *pools, struct ledger *ledger);
/* Must be called when all that exists is charged: frees retired pools without buffers. */
void pools_recovered(struct pools *pools);
/* Frees the records; afterwards the set is as without a ledger. */
void pools_forget(struct pools *pools);
/* How many records make no sense. */
uint64_t pools_quarantined(const struct pools *pools);
/* NULL if there is none. */
struct pool *pools_numbered(const struct pools *pools, uint32_t number);

/*
 * Finds the pool of a request by its name. A request without a name means base pages unless it says otherwise, and
 * the one node that it names, or all nodes if it names none, several or only a preference. NO_SUCH_POOL, NO_SUCH_NODE,
 * INVALID_ARGUMENT (the request contradicts the pool it names).
 */
int pools_find(struct pools *pools, const struct memory_spec *spec, struct pool **ret, struct problem *problem);

/*
 * The pools that n buffers of these sizes may come from, the best first, the last always. If the request says neither
 * pool nor pages, these are, where the configuration allows it: huge pages that are reserved, the largest first, if
 * their pool has room no farther away than ordinary pages would be, rounding up wastes at most an eighth, and nobody
 * needs a smaller granule; then transparent ones, where the kernel gives them; else base pages. Outcomes as of
 * pools_find().
 */
#define POOL_CHOICES_MAX (TOPOLOGY_HUGE_MAX + 1)

struct pool_choice {
    uint32_t n;
    struct pool *pools[POOL_CHOICES_MAX];
};

int pools_choose(struct pools *pools, const struct memory_spec *spec, uint32_t n, const uint64_t *sizes,
                 struct pool_choice *ret, struct problem *problem);

/*
 * The nodes that a placement permits have the same order everywhere: the caller's own node, then the others by their
 * distance from it, those with processors before memory-only ones that are as far. PREFERRED and LOCAL take the named
 * nodes first, then the others of the pool; if one node alone was named, these by their distance from it. An unknown
 * caller's node is taken to be the first named one, or without one the node with processors that has most memory free.
 * The parts of INTERLEAVE and SPLIT go to the nodes as they are named.
 *
 * Placement comes before speed: stock on a near node is given back for a buffer that belongs there before the buffer
 * goes to a farther node, and stock on a farther node waits for requests that belong there. Memory that is being
 * reclaimed on a near node is not waited for where a farther one has some free, since that may take long.
 */

/* How much room there is depends on what counts as taken, and on who asks. */
struct pool_view {
    enum tally_state taken;      /* what is charged in this state and those before it */
    const struct account *payer; /* who may have its share only; NULL: nobody, for whom there is none */
};

/*
 * Where a buffer of `size` bytes (not rounded) would go if it were charged and what is charged in states after those
 * that are taken were free: with TALLY_STOCK now, with TALLY_RECLAIMING if all stock were given back. Nothing is
 * charged. SIZE_ZERO, SIZE_OVERFLOW, NO_SUCH_NODE, INVALID_ARGUMENT; TOO_BIG if the pool could not hold it if
 * everything were free; POOL_FULL if it does not fit; LIMIT if it fits, but is more than the share of who pays.
 */
int pool_plan(struct pool *pool, const struct memory_spec *spec, uint64_t size, struct pool_view view, struct plan *ret,
              struct problem *problem);

/* The place of the plan's last node in that order; 0 = all of the plan is on the first node. */
uint32_t pool_remoteness(struct pool *pool, const struct memory_spec *spec, const struct plan *plan);

/* In the functions below the payer is the account that is charged with the buffer, or NULL. */

/* Charges a new buffer to the pool and every node of the plan, or nothing. POOL_FULL if others were faster, LIMIT if
 * the payer was. */
int pool_charge(struct pool *pool, const struct plan *plan, const struct account *payer, enum tally_state to,
                struct problem *problem);
/* A buffer that exists goes from one state to the other. It is never refused, even over the capacity. */
void pool_shift(struct pool *pool, const struct plan *plan, const struct account *payer, enum tally_state from,
                enum tally_state to);
/* A buffer in this state has so much less on this node. */
void pool_lower(struct pool *pool, uint32_t node, const struct account *payer, enum tally_state from, uint64_t by);
/* May it have a buffer of this plan, which is in stock? LIMIT. */
int pool_check_share(const struct pool *pool, const struct plan *plan, const struct account *payer,
                     struct problem *problem);
/* What is the payer's only: a buffer in stock that is earmarked for it, or is no longer; or one with another payer. */
void pool_shift_payer(struct pool *pool, const struct plan *plan, const struct account *payer, enum tally_state from,
                      enum tally_state to);

/* The most stock that it may have; 0 = none. */
uint64_t pool_most_stock(const struct pool *pool);

/* What a buffer that moves to a node needs there, while it is still charged where it is. */
struct pool_demand {
    struct pool *pool;
    struct account *payer; /* a user's, with a reference while it is reserved */
    uint32_t node;
    uint64_t on_node; /* of the node's budget */
    uint64_t in_pool; /* of the pool's cap */
};

/* POOL_FULL, LIMIT. */
int pool_reserve(const struct pool_demand *demand, struct problem *problem);
void pool_unreserve(const struct pool_demand *demand);
/* Is it not free now, but would be once all is free that is reclaiming? */
bool pool_can_reserve_soon(const struct pool_demand *demand);

/* Is anything reclaiming, or in stock, that a buffer of this pool could have? */
bool pool_is_reclaiming(const struct pool *pool);
/* Would a buffer have a place if all were free that is reclaiming or in stock? */
bool pool_fits_soon(struct pool *pool, const struct memory_spec *spec, uint64_t size, const struct account *payer);
/* The size of the largest buffer that would fit then, placed as the pool has it; and of several together. */
uint64_t pool_largest_soon(struct pool *pool, const struct account *payer);
uint64_t pool_available_soon(const struct pool *pool, const struct account *payer);

/* What an account's user has of what the pool could give out: of its cap, or of its nodes. */
uint64_t pool_used_by(const struct pool *pool, const struct account *account);
/* So many bytes do not fit. */
struct shortage pool_shortage(const struct pool *pool, uint64_t bytes);

/* What the pool and its nodes could give out now, stock included; and at most. */
uint64_t pool_available(const struct pool *pool);
uint64_t pool_capacity(const struct pool *pool);

/* The budget of base pages and THP of a node; NULL if there is none. */
const struct budget *pools_node_budget(const struct pools *pools, uint32_t node);
/* The budget that this pool's pages on a node are charged to, whether it is a node of the pool or not. */
const struct budget *pool_node_budget(const struct pool *pool, uint32_t node);
bool pool_has_node(const struct pool *pool, uint32_t node);

/* A request that names no pages gets base pages from now on, or pages by its size. */
void pools_set_base_pages(struct pools *pools, bool base_pages);

/* Asks again how many huge pages there may be, unless it did less than `age_ns` ago. Buffers stay charged even if they
 * have more. */
void pools_refresh(struct pools *pools, uint64_t age_ns);
