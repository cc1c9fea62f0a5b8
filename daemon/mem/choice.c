/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of an allocation that names none: see pools_choose() in pool.h.
 *
 * A huge page saves its user five hundred faults and as many entries of the TLB, so large allocations get them without
 * asking. That must have no price: no memory wasted by rounding up, no other node than without them, and no failure
 * because no such pages are left. So huge pages that were reserved are a candidate only where
 * none of that can be, and behind them there is always a pool of the ordinary budget.
 */

#include "mem/pools.h"

#include "base/align.h"
#include "base/checked.h"
#include "base/clock.h"
#include "mem/buffer.h"

/* Below it huge pages that were reserved are too scarce. */
#define RESERVED_MIN (UINT64_C(4) << 20)
/* If an administrator allows more of them, that is known after this time. */
#define REFRESH_NS NSEC_PER_SEC
/* At most this part of what is asked for may be wasted by rounding up. */
#define WASTE 8

static bool wastes_little(uint64_t size, uint64_t page)
{
    uint64_t bytes;

    return size >= RESERVED_MIN && checked_align_up_u64(size, page, &bytes) && bytes - size <= size / WASTE;
}

static bool all_are_worth(uint32_t n, const uint64_t *sizes, uint64_t page)
{
    for (uint32_t i = 0; i < n; i++)
        if (!wastes_little(sizes[i], page))
            return false;
    return true;
}

/* Parts that the user decides on are whole base pages. So is what has no home: its parts are mapped at places of their
 * own. */
static bool is_in_parts(const struct memory_spec *spec)
{
    return spec->flags & BUFFER_NO_ADDRESS || spec->placement == PLACEMENT_INTERLEAVE ||
           spec->placement == PLACEMENT_SPLIT;
}

/* Does one of them fit now, were all stock given back, and no farther away than ordinary pages would be? */
static bool has_place(struct pool *pool, const struct memory_spec *spec, uint64_t size, struct pool *ordinary)
{
    const struct pool_view view = {.taken = TALLY_RECLAIMING};
    struct plan plan, other;

    if (pool_plan(pool, spec, size, view, &plan, NULL))
        return false;
    return ordinary->n_nodes == 1 || pool_plan(ordinary, spec, size, view, &other, NULL) ||
           pool_remoteness(ordinary, spec, &plan) <= pool_remoteness(ordinary, spec, &other);
}

static void add_reserved(struct pools *pools, const struct memory_spec *spec, uint32_t n, const uint64_t *sizes,
                         struct pool *ordinary, struct pool_choice *ret)
{
    const struct topology *topology = pools->topology;
    struct memory_spec huge = *spec;

    huge.pages = PAGES_HUGETLB;
    for (uint32_t h = topology->n_huge; h--;) {
        struct pool *pool;

        huge.page_size = topology->huge_sizes[h];
        if (huge.page_size >= topology->thp_size && is_aligned(spec->address, huge.page_size) &&
            all_are_worth(n, sizes, huge.page_size) && !pools_find(pools, &huge, &pool, NULL) &&
            has_place(pool, &huge, sizes[0], ordinary))
            ret->pools[ret->n++] = pool;
    }
}

static bool are_worth_transparent(const struct pools *pools, const struct memory_spec *spec, uint32_t n,
                                  const uint64_t *sizes)
{
    uint64_t page = pools->topology->thp_size;

    for (uint32_t i = 0; i < n; i++)
        if (sizes[i] < page)
            return false;
    /* none fits into a part that is less, and the pages of one are not cut for the next */
    return page && (spec->placement != PLACEMENT_INTERLEAVE || (spec->part_size && is_aligned(spec->part_size, page)));
}

int pools_choose(struct pools *pools, const struct memory_spec *spec, uint32_t n, const uint64_t *sizes,
                 struct pool_choice *ret, struct problem *problem)
{
    struct memory_spec transparent = *spec;
    struct pool *last;
    int r;

    pools_refresh(pools, REFRESH_NS);
    r = pools_find(pools, spec, &last, problem);
    if (r)
        return r;
    ret->n = 0;
    if (!pools->pages_by_size || spec->pages != PAGES_ANY || spec->page_size || spec->pool[0]) {
        ret->pools[ret->n++] = last;
        return 0;
    }
    if (!is_in_parts(spec))
        add_reserved(pools, spec, n, sizes, last, ret);
    transparent.pages = PAGES_THP;
    if (are_worth_transparent(pools, spec, n, sizes))
        (void)pools_find(pools, &transparent, &last, NULL);
    ret->pools[ret->n++] = last;
    return 0;
}
