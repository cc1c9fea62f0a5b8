/* SPDX-License-Identifier: Apache-2.0 */
/* See headroom.h: the broker's last reply for all pools, its age, and the values that were reported from it. */
#include "hsa/headroom.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "hsa/runtime.h"

#define POOLS_MAX (TOPOLOGY_AGENTS_MAX * TOPOLOGY_POOLS_MAX)
#define KEPT_NS   (10 * UINT64_C(1000000))

static pthread_mutex_t headroom_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t asked_at;             /* 0: never, or the request failed */
static uint64_t available[POOLS_MAX]; /* by the index of a pool */
static _Atomic uint64_t reported[POOLS_MAX];
static _Atomic bool headroom_has_changed; /* since the broker was asked last */

void headroom_changed(void)
{
    atomic_store(&headroom_has_changed, true);
}

static int headroom_note(const struct memclient_pool_info *pool, void *data)
{
    const struct topology *t = topology();

    (void)data;
    for (unsigned a = 0; a < t->n_agents; a++)
        for (unsigned p = 0; p < t->agents[a].n_pools; p++)
            if (!strcmp(t->agents[a].pools[p].name, pool->name))
                available[t->agents[a].pools[p].index] = pool->available;
    return 0;
}

/* Needs the lock. The flag is cleared before the request: the reply may miss a change that happens during it. */
static hsa_status_t headroom_refresh(void)
{
    uint64_t now = clock_now_ns();

    if (!atomic_exchange(&headroom_has_changed, false) && asked_at && now - asked_at < KEPT_NS)
        return HSA_STATUS_SUCCESS;
    asked_at = 0;
    if (memclient_list_pools(runtime_context(), headroom_note, NULL) < 0)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    asked_at = now;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t headroom_read(const struct pool *pool, uint64_t *bytes)
{
    hsa_status_t status;

    pthread_mutex_lock(&headroom_lock);
    status = headroom_refresh();
    if (!status)
        *bytes = available[pool->index];
    pthread_mutex_unlock(&headroom_lock);
    return status;
}

hsa_status_t headroom_get(const struct pool *pool, uint64_t *bytes)
{
    hsa_status_t status = headroom_read(pool, bytes);

    if (status)
        return status;
    if (*bytes > pool->capacity)
        *bytes = pool->capacity;
    atomic_store_explicit(&reported[pool->index], *bytes, memory_order_relaxed);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t headroom_put(const void *pool, void *value)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    uint64_t bytes;
    size_t size;
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    status = headroom_get(pool, &bytes);
    if (status)
        return status;
    size = bytes;
    memcpy(value, &size, sizeof(size));
    return HSA_STATUS_SUCCESS;
}

hsa_status_t headroom_of_agent(const struct agent *agent, uint64_t *bytes)
{
    *bytes = 0;
    return agent->n_pools ? headroom_read(&agent->pools[POOL_FINE], bytes) : HSA_STATUS_SUCCESS;
}

hsa_status_t headroom_refusal(const struct pool *pool, uint64_t size, int r)
{
    switch (-r) {
    case EFBIG:
    case EOVERFLOW:
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    case ENOMEM:
    case EDQUOT:
        return size > atomic_load_explicit(&reported[pool->index], memory_order_relaxed)
                   ? HSA_STATUS_ERROR_INVALID_ALLOCATION
                   : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    default:
        return runtime_status(r);
    }
}

void headroom_fork_child(void)
{
    (void)pthread_mutex_init(&headroom_lock, NULL);
    asked_at = 0;
}

void headroom_start(void)
{
    const struct topology *t = topology();
    uint64_t bytes;

    headroom_changed();
    for (unsigned a = 0; a < t->n_agents; a++)
        for (unsigned p = 0; p < t->agents[a].n_pools; p++)
            (void)headroom_get(&t->agents[a].pools[p], &bytes);
}
