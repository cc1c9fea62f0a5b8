/* SPDX-License-Identifier: Apache-2.0 */
/* Pools in the ledger: numbers that outlive the configuration. See pool.h. */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "log/log.h"
#include "mem/pools.h"

#define NUMBERS_MAX (UINT16_MAX + 1)

struct pool_object {
    OBJECT_UNINDEXED(struct pool_record);
    struct pool *pool;
};

static bool is_pool_sound(const struct pool_record *record)
{
    if (record->number >= NUMBERS_MAX || !record->n_nodes || record->n_nodes > TOPOLOGY_NODES_MAX)
        return false;
    for (uint32_t i = 0; i < record->n_nodes; i++)
        if (record->node[i] >= TOPOLOGY_NODES_MAX)
            return false;
    return record->name[0] && memchr(record->name, 0, sizeof(record->name)) && is_power_of_two(record->page_size) &&
           is_power_of_two(record->granule) && record->pages > PAGES_ANY && record->pages <= PAGES_HUGETLB &&
           record->committer <= COMMITTER_CLIENT;
}

/* Does a buffer of the recorded pool fit into this one, which has the same pages and at least the same nodes? */
static bool is_same_pool(const struct pool *pool, const struct pool_record *record)
{
    if (pool->pages != record->pages || pool->page_size != record->page_size || pool->granule != record->granule)
        return false;
    for (uint32_t i = 0; i < record->n_nodes; i++)
        if (!pool_has_node(pool, record->node[i]))
            return false;
    return true;
}

static int set_number(struct pools *pools, struct pool *pool, uint32_t number)
{
    if (number >= pools->n_numbers) {
        uint32_t capacity = number + 1 < 64 ? 64 : 2 * number;
        struct pool **more = reallocarray(pools->by_number, capacity, sizeof(*more));

        if (!more)
            return -ENOMEM;
        memset(more + pools->n_numbers, 0, (capacity - pools->n_numbers) * sizeof(*more));
        pools->by_number = more;
        pools->n_numbers = capacity;
    }
    pools->by_number[number] = pool;
    pool->number = (uint16_t)number;
    return 0;
}

static struct pool *pool_retire(struct pools *pools, const struct pool_record *record)
{
    struct pool **more = reallocarray(pools->retired, pools->n_retired + 1, sizeof(*more));
    struct pool *pool;

    if (!more)
        return NULL;
    pools->retired = more;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->pools = pools;
    pool->index = pools_count(pools);
    pool->retired = true;
    pool->place = PLACE_NONE;
    memcpy(pool->name, record->name, sizeof(pool->name));
    pool->pages = (enum pages)record->pages;
    pool->page_size = record->page_size;
    pool->granule = record->granule;
    pool->placement = (enum placement)record->placement;
    pool->part_size = record->part_size;
    pool->committer = (enum committer)record->committer;
    pool->n_nodes = record->n_nodes;
    for (uint32_t i = 0; i < record->n_nodes; i++)
        pool->nodes[i] = record->node[i];
    if (pool->pages == PAGES_HUGETLB) {
        pool->budget_index = budget_index_of_huge(pools->topology, pool->page_size);
        if (!pool->budget_index)
            pool->budget_index = BUDGET_INDEX_NONE;
    }
    pools->retired[pools->n_retired++] = pool;
    return pool;
}

struct recovery {
    struct pools *pools;
    bool *has_record; /* of each configured pool, by index */
    int error;
};

static enum table_verdict pool_recover(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct pools *pools = recovery->pools;
    struct pool_object *entry = object;
    const struct pool_record *record = entry->record;
    struct pool *pool;

    if (!is_pool_sound(record)) {
        *why = "there can be no such pool";
        return TABLE_QUARANTINE;
    }
    if (record->number < pools->n_numbers && pools->by_number[record->number]) {
        *why = "another one has its number";
        return TABLE_QUARANTINE;
    }
    pool = pools_by_name(pools, record->name);
    if (pool && is_same_pool(pool, record) && !recovery->has_record[pool->index])
        recovery->has_record[pool->index] = true;
    else
        pool = pool_retire(pools, record);
    entry->pool = pool;
    if (!pool || set_number(pools, pool, record->number))
        recovery->error = -ENOMEM;
    return TABLE_KEEP;
}

static int new_record(struct pools *pools, struct pool *pool)
{
    struct pool_object *entry;
    struct pool_record *record;
    uint32_t number = 0;
    void *object;

    while (number < pools->n_numbers && pools->by_number[number])
        number++;
    if (number >= NUMBERS_MAX)
        return -ENOSPC;
    if (table_alloc(&pools->records, &object, NULL))
        return -ENOMEM;
    entry = object;
    record = record_fresh(entry);
    record->page_size = pool->page_size;
    record->granule = pool->granule;
    record->part_size = pool->part_size;
    record->number = number;
    record->n_nodes = pool->n_nodes;
    record->pages = (uint8_t)pool->pages;
    record->placement = (uint8_t)pool->placement;
    record->committer = (uint8_t)pool->committer;
    memcpy(record->name, pool->name, sizeof(record->name));
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        record->node[i] = (uint8_t)pool->nodes[i];
    record_commit(&pools->records, entry);
    entry->pool = pool;
    return set_number(pools, pool, number);
}

int pools_recover(struct pools *pools, struct ledger *ledger)
{
    struct recovery recovery = {.pools = pools, .has_record = calloc(pools->n_pools + 1, sizeof(bool))};
    int r;

    if (!recovery.has_record)
        return fatal(-ENOMEM);
    table_init(&pools->records, ledger, RECORD_POOL, sizeof(struct pool_object), false);
    r = table_recover(&pools->records, pool_recover, &recovery);
    if (!r)
        r = recovery.error;
    for (uint32_t i = 0; !r && i < pools->n_pools; i++)
        if (!recovery.has_record[i])
            r = new_record(pools, &pools->pools[i]);
    free(recovery.has_record);
    return r;
}

static void drop_retired(struct pools *pools, struct pool *pool)
{
    pools->by_number[pool->number] = NULL;
    free(pool);
}

void pools_recovered(struct pools *pools)
{
    uint64_t cursor = 0;
    unsigned budget = UINT32_MAX;
    uint32_t n = 0;
    struct pool_object *entry;

    while ((entry = table_next(&pools->records, &cursor, &budget)))
        if (entry->pool->retired && !tally_sum(&entry->pool->buffers, TALLY_STOCK))
            table_free(&pools->records, entry);
    for (uint32_t i = 0; i < pools->n_retired; i++) {
        struct pool *pool = pools->retired[i];

        if (!tally_sum(&pool->buffers, TALLY_STOCK)) {
            drop_retired(pools, pool);
            continue;
        }
        if (tally_used(&pool->buffers))
            log_warning("pool %s is not as it was: %llu bytes in %llu buffers remain of the former one", pool->name,
                        (unsigned long long)tally_used(&pool->bytes), (unsigned long long)tally_used(&pool->buffers));
        pool->index = pools->n_pools + n;
        pools->retired[n++] = pool;
    }
    pools->n_retired = n;
}

void pools_forget(struct pools *pools)
{
    uint64_t cursor = 0;
    unsigned budget = UINT32_MAX;
    void *entry;

    while ((entry = table_next(&pools->records, &cursor, &budget)))
        table_free(&pools->records, entry);
    table_deinit(&pools->records);
    for (uint32_t i = 0; i < pools->n_retired; i++)
        free(pools->retired[i]);
    free(pools->retired);
    free(pools->by_number);
    pools->retired = NULL;
    pools->n_retired = 0;
    pools->by_number = NULL;
    pools->n_numbers = 0;
}

uint64_t pools_quarantined(const struct pools *pools)
{
    return pools->records.n_quarantined;
}

struct pool *pools_numbered(const struct pools *pools, uint32_t number)
{
    if (!pools->by_number)
        return number < pools->n_pools ? (struct pool *)&pools->pools[number] : NULL;
    return number < pools->n_numbers ? pools->by_number[number] : NULL;
}
