/* SPDX-License-Identifier: Apache-2.0 */
/* See stock.h. */
#include "mem/stock.h"

#include <assert.h>
#include <string.h>

#include "mem/pool.h"

static uint32_t smaller(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* One of several nodes would need a plan of its own, and is seldom asked for. */
bool stock_key_of(struct pool *pool, const struct plan_brief *plan, bool publishable, struct stock_key *ret)
{
    if (plan->n_nodes != 1 || plan->part_size || plan->bytes > pool_most_stock(pool))
        return false;
    *ret = (struct stock_key){
        .pool = pool,
        .bytes = plan->bytes,
        .node = plan->node,
        .placement = plan->placement,
        .strict = plan->strict,
        .publishable = publishable,
    };
    return true;
}

static bool same_key(const struct stock_key *a, const struct stock_key *b)
{
    return a->bytes == b->bytes && a->pool == b->pool && a->node == b->node && a->placement == b->placement &&
           a->strict == b->strict && a->publishable == b->publishable;
}

struct stock_bin *stock_find(struct stock *stock, const struct stock_key *key)
{
    for (unsigned i = 0; i < STOCK_BINS; i++)
        if (same_key(&stock->bins[i].key, key))
            return &stock->bins[i];
    return NULL;
}

static bool bin_is_empty(const struct stock_bin *bin)
{
    return !bin->target && !bin->n && !bin->coming;
}

struct stock_bin *stock_add(struct stock *stock, const struct stock_key *key, uint64_t now)
{
    struct stock_bin *bin = NULL;

    for (unsigned i = 0; i < STOCK_BINS; i++) {
        struct stock_bin *other = &stock->bins[i];

        if (bin_is_empty(other) && (!bin || other->asked_at < bin->asked_at))
            bin = other;
    }
    if (!bin)
        return NULL;
    *bin = (struct stock_bin){.key = *key, .asked_at = now, .first_asked = now, .period = now};
    return bin;
}

uint32_t stock_most(const struct stock_key *key)
{
    uint64_t most = STOCK_MOST_BYTES / key->bytes;

    most = most < 2 ? 2 : smaller(most, STOCK_MOST);
    return smaller(pool_most_stock(key->pool) / key->bytes, (uint32_t)most);
}

void stock_asked(struct stock_bin *bin, uint32_t n, bool got, bool with_fds, uint64_t now)
{
    uint32_t target = bin->target;

    if (with_fds && bin->fd_asks < 3)
        bin->fd_asks++;
    else if (!with_fds && bin->fd_asks)
        bin->fd_asks--;
    if (!target && now - bin->first_asked > STOCK_ASKS_NS) {
        bin->first_asked = now;
        bin->asks = 0;
    }
    bin->asked_at = now;
    if (!target && ++bin->asks >= STOCK_ASKS)
        target = STOCK_FIRST;
    else if (target && !got)
        target *= 2;
    if (target && target < n)
        target = n;
    bin->target = smaller(target, stock_most(&bin->key));
}

struct stock_item stock_take(struct stock_bin *bin)
{
    struct stock_item item;

    assert(bin->n);
    item = bin->items[--bin->n];
    if (bin->n < bin->least)
        bin->least = bin->n;
    return item;
}

void stock_put(struct stock_bin *bin, struct stock_item item)
{
    assert(bin->n < STOCK_MOST);
    bin->items[bin->n++] = item;
}

bool stock_wants_fds(const struct stock_bin *bin)
{
    return bin->fd_asks > 1;
}

uint32_t stock_wanted(struct stock_bin *bin, uint64_t now, uint64_t *ret_again)
{
    uint32_t have = bin->n + bin->coming;
    uint64_t idle_gap = bin->asked_at + STOCK_IDLE_GAP_NS;

    *ret_again = UINT64_MAX;
    if (have * 2 <= bin->target)
        bin->filling = true;
    if (have >= bin->target)
        bin->filling = false;
    if (!bin->filling || bin->coming)
        return 0;
    if (now < idle_gap && have * 4 >= bin->target) {
        *ret_again = idle_gap;
        return 0;
    }
    return bin->target - have;
}

uint32_t stock_urgent(const struct stock_bin *bin)
{
    uint32_t low = (bin->target + 3) / 4, have = bin->n + bin->coming;

    return low > have ? low - have : 0;
}

static void end_period(struct stock_bin *bin, uint64_t now)
{
    bool asked = bin->asked_at >= bin->period;
    uint32_t first = smaller(stock_most(&bin->key), STOCK_FIRST);

    if (!asked)
        bin->target /= 2;
    else if (bin->least * 2 >= bin->target && bin->target > first)
        bin->target = bin->target / 2 > first ? bin->target / 2 : first;
    bin->period = now;
}

uint32_t stock_surplus(struct stock_bin *bin, uint64_t now)
{
    bool ends = now - bin->period >= STOCK_PERIOD_NS;
    uint32_t surplus;

    if (ends)
        end_period(bin, now);
    surplus = bin->n > bin->target ? bin->n - bin->target : 0;
    if (ends)
        bin->least = bin->n - surplus;
    if (bin_is_empty(bin) && now - bin->asked_at > STOCK_ASKS_NS)
        bin->key.bytes = 0;
    return surplus;
}

void stock_lower(struct stock_bin *bin, uint32_t target)
{
    if (bin->target > target)
        bin->target = target;
    if (!bin->target)
        bin->asks = 0;
    bin->filling = false;
}
