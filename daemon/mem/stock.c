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
bool stock_kind_of(struct pool *pool, const struct plan_brief *plan, bool publishable, struct stock_kind *ret)
{
    if (plan->n_nodes != 1 || plan->part_size || plan->bytes > pool_most_stock(pool))
        return false;
    *ret = (struct stock_kind){
        .pool = pool,
        .bytes = plan->bytes,
        .node = plan->node,
        .placement = plan->placement,
        .strict = plan->strict,
        .publishable = publishable,
    };
    return true;
}

static bool same_kind(const struct stock_kind *a, const struct stock_kind *b)
{
    return a->bytes == b->bytes && a->pool == b->pool && a->node == b->node && a->placement == b->placement &&
           a->strict == b->strict && a->publishable == b->publishable;
}

struct stock_class *stock_find(struct stock *stock, const struct stock_kind *kind)
{
    for (unsigned i = 0; i < STOCK_CLASSES; i++)
        if (same_kind(&stock->classes[i].kind, kind))
            return &stock->classes[i];
    return NULL;
}

static bool is_empty(const struct stock_class *class)
{
    return !class->target && !class->n && !class->coming;
}

struct stock_class *stock_add(struct stock *stock, const struct stock_kind *kind, uint64_t now)
{
    struct stock_class *class = NULL;

    for (unsigned i = 0; i < STOCK_CLASSES; i++) {
        struct stock_class *other = &stock->classes[i];

        if (is_empty(other) && (!class || other->asked_at < class->asked_at))
            class = other;
    }
    if (!class)
        return NULL;
    *class = (struct stock_class){.kind = *kind, .asked_at = now, .first_asked = now, .period = now};
    return class;
}

uint32_t stock_most(const struct stock_kind *kind)
{
    uint64_t most = STOCK_MOST_BYTES / kind->bytes;

    most = most < 2 ? 2 : smaller(most, STOCK_MOST);
    return smaller(pool_most_stock(kind->pool) / kind->bytes, (uint32_t)most);
}

void stock_asked(struct stock_class *class, uint32_t n, bool got, bool with_fds, uint64_t now)
{
    uint32_t target = class->target;

    if (with_fds && class->fd_asks < 3)
        class->fd_asks++;
    else if (!with_fds && class->fd_asks)
        class->fd_asks--;
    if (!target && now - class->first_asked > STOCK_ASKS_NS) {
        class->first_asked = now;
        class->asks = 0;
    }
    class->asked_at = now;
    if (!target && ++class->asks >= STOCK_ASKS)
        target = STOCK_FIRST;
    else if (target && !got)
        target *= 2;
    if (target && target < n)
        target = n;
    class->target = smaller(target, stock_most(&class->kind));
}

struct stock_item stock_take(struct stock_class *class)
{
    struct stock_item item;

    assert(class->n);
    item = class->items[--class->n];
    if (class->n < class->least)
        class->least = class->n;
    return item;
}

void stock_put(struct stock_class *class, struct stock_item item)
{
    assert(class->n < STOCK_MOST);
    class->items[class->n++] = item;
}

bool stock_wants_fds(const struct stock_class *class)
{
    return class->fd_asks > 1;
}

uint32_t stock_wanted(struct stock_class *class, uint64_t now, uint64_t *ret_again)
{
    uint32_t have = class->n + class->coming;
    uint64_t lull = class->asked_at + STOCK_LULL_NS;

    *ret_again = UINT64_MAX;
    if (have * 2 <= class->target)
        class->filling = true;
    if (have >= class->target)
        class->filling = false;
    if (!class->filling || class->coming)
        return 0;
    if (now < lull && have * 4 >= class->target) {
        *ret_again = lull;
        return 0;
    }
    return class->target - have;
}

uint32_t stock_urgent(const struct stock_class *class)
{
    uint32_t low = (class->target + 3) / 4, have = class->n + class->coming;

    return low > have ? low - have : 0;
}

static void end_period(struct stock_class *class, uint64_t now)
{
    bool asked = class->asked_at >= class->period;
    uint32_t first = smaller(stock_most(&class->kind), STOCK_FIRST);

    if (!asked)
        class->target /= 2;
    else if (class->least * 2 >= class->target && class->target > first)
        class->target = class->target / 2 > first ? class->target / 2 : first;
    class->period = now;
}

uint32_t stock_surplus(struct stock_class *class, uint64_t now)
{
    bool ends = now - class->period >= STOCK_PERIOD_NS;
    uint32_t surplus;

    if (ends)
        end_period(class, now);
    surplus = class->n > class->target ? class->n - class->target : 0;
    if (ends)
        class->least = class->n - surplus;
    if (is_empty(class) && now - class->asked_at > STOCK_ASKS_NS)
        class->kind.bytes = 0;
    return surplus;
}

void stock_lower(struct stock_class *class, uint32_t target)
{
    if (class->target > target)
        class->target = target;
    if (!class->target)
        class->asks = 0;
    class->filling = false;
}
