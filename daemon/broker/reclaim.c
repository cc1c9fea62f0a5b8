/* SPDX-License-Identifier: Apache-2.0 */
/* See reclaim.h. */
#include "broker/reclaim.h"

#include "broker/caches.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/pool.h"
#include "proto/status.h"

bool reclaim_is_coming(const struct pool *pool, const struct account *account)
{
    for (; account; account = account->parent)
        if (account->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING] ||
            account->tallies[ACCOUNT_BUFFERS].in[TALLY_RECLAIMING])
            return true;
    return pool_is_reclaiming(pool);
}

bool reclaim_is_enough(const struct pool *pool, const struct account *account, uint64_t bytes, uint32_t n)
{
    return bytes && bytes <= pool_available_soon(pool) && bytes <= account_left(account, ACCOUNT_BYTES) &&
           n <= account_left(account, ACCOUNT_BUFFERS);
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
