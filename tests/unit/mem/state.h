/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that is made up, with two nodes, and everything that buffers, tokens and names need around them.
 */
#pragma once

#include <string.h>

#include "account/account.h"
#include "base/align.h"
#include "mem/buffer.h"
#include "mem/pool.h"
#include "proto/status.h"
#include "va/arena.h"
#include "va/reservation.h"

#define STATE_PAGE  UINT64_C(4096)
#define STATE_BASE  UINT64_C(0x400000000000)
#define STATE_ARENA (UINT64_C(1) << 40)

struct state {
    struct topology machine;
    struct ledger *ledger;
    struct accounts accounts;
    struct account *account; /* of a session of user 1000 */
    struct pools *pools;
    struct pool *pool; /* base pages of both nodes */
    struct arena arena;
    struct reservations reservations;
    struct buffers buffers;
    struct list in_session;
};

static struct state s;

static inline int state_setup(void **unused)
{
    static const struct pools_config config = {.base_pages = true};

    (void)unused;
    memset(&s, 0, sizeof(s));
    s.machine = (struct topology){.base_page = STATE_PAGE, .n_nodes = 2};
    for (uint32_t i = 0; i < 2; i++)
        s.machine.nodes[i] = (struct topology_node){
            .number = i, .physical = i, .total = UINT64_C(1) << 30, .has_cpus = true, .distances = {10, 10}};
    assert_int_equal(ledger_new(&s.ledger, STATE_BASE, STATE_ARENA), 0);
    accounts_init(&s.accounts, NULL);
    assert_int_equal(account_new_session(&s.accounts, 1000, &s.account, NULL), 0);
    assert_int_equal(pools_new(&s.pools, &s.machine, &config, NULL), 0);
    s.pool = pools_by_name(s.pools, "all-4k");
    assert_non_null(s.pool);
    va_arena_init(&s.arena, STATE_BASE, STATE_ARENA, STATE_PAGE);
    reservations_init(&s.reservations, s.ledger, &s.arena);
    buffers_init(&s.buffers, s.ledger, s.pools, &s.arena, &s.reservations);
    list_init(&s.in_session);
    return 0;
}

/* I5: when everything has ended, everything is back. */
static inline int state_teardown(void **unused)
{
    (void)unused;
    assert_int_equal(tally_used(&s.pool->bytes), 0);
    assert_int_equal(tally_used(&pools_node_budget(s.pools, 0)->bytes), 0);
    assert_int_equal(tally_used(&pools_node_budget(s.pools, 1)->bytes), 0);
    assert_true(list_is_empty(&s.in_session));
    buffers_deinit(&s.buffers);
    reservations_deinit(&s.reservations);
    va_arena_deinit(&s.arena);
    s.pools = pools_free(s.pools);
    s.account = account_unref(s.account);
    accounts_deinit(&s.accounts);
    s.ledger = ledger_free(s.ledger);
    return 0;
}

/* As `more` says (NULL: nothing), and besides as the pool has it, with the nodes split half and half if `split`. */
static inline int state_buffer_new(uint64_t size, bool split, const struct memory_spec *more, struct buffer **ret,
                                   struct problem *problem)
{
    struct memory_spec spec = more ? *more : (struct memory_spec){.n_nodes = 0};
    struct plan plan;
    int r;

    if (split) {
        spec.n_nodes = 2;
        spec.nodes[1] = 1;
        spec.placement = PLACEMENT_SPLIT;
    }
    r = pool_plan(s.pool, &spec, size, (struct pool_view){.taken = TALLY_STOCK}, &plan, problem);
    return r ? r : buffer_new(&s.buffers, &plan, &spec, &(struct buffer_owner){s.account, 99, 4711}, ret, problem);
}

/* One that lives, without memory. */
static inline struct buffer *state_live_buffer(void)
{
    struct buffer *buffer = NULL;

    assert_int_equal(state_buffer_new(STATE_PAGE, false, NULL, &buffer, NULL), 0);
    buffer_commit(&s.buffers, buffer);
    return buffer;
}
