/* SPDX-License-Identifier: Apache-2.0 */
/* See reclaim.h. */
#include "broker/reclaim.h"

#include "base/checked.h"
#include "broker/caches.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/pool.h"
#include "proto/status.h"

uint64_t reclaim_bytes(struct pool *pool, const struct account *account, const struct alloc_spec *spec)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < spec->n; i++) {
        uint64_t rounded;

        if (!pool_fits_soon(pool, &spec->memory, spec->sizes[i], account) ||
            !checked_align_up_u64(spec->sizes[i], pool->granule, &rounded) || !checked_add_u64(bytes, rounded, &bytes))
            return 0;
    }
    return bytes;
}

static bool is_returning(const struct pool *pool, const struct account *account)
{
    for (; account; account = account->parent)
        if (account->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING] ||
            account->tallies[ACCOUNT_BUFFERS].in[TALLY_RECLAIMING])
            return true;
    return pool_is_reclaiming(pool);
}

bool reclaim_may_serve(struct pool *pool, const struct account *account, const struct alloc_spec *spec)
{
    uint64_t bytes = is_returning(pool, account) ? reclaim_bytes(pool, account, spec) : 0;

    return bytes && bytes <= pool_available_soon(pool, account) && bytes <= account_left(account, ACCOUNT_BYTES) &&
           spec->n <= account_left(account, ACCOUNT_BUFFERS) &&
           spec->n * account->accounts->metadata[ACCOUNT_BYTES] <= account_left(account, ACCOUNT_METADATA);
}

bool reclaim_caches(struct broker *broker, uint64_t *ticket, int status, uid_t uid)
{
    return (status == STATUS_POOL_FULL || status == STATUS_LIMIT) &&
           caches_wanted(broker, ticket, status == STATUS_LIMIT ? uid : CACHES_ALL);
}

bool reclaim_all(struct broker *broker, uint64_t *ticket)
{
    uint64_t ending = broker->buffers.n_ending;
    bool any = stocking_drain(broker);

    any |= caches_wanted(broker, ticket, CACHES_ALL);
    return any | (broker->buffers.n_ending > ending);
}
