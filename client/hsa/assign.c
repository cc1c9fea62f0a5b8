/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving coarse-grained memory to another agent.
 *
 * The broker moves the pages to the new owner's node and charges them there. The access that is granted becomes the
 * page protection in this process. HSA does not require the move: pages that cannot be moved stay, and only the owner
 * changes. If memory is short, nothing changes.
 */
#include <errno.h>
#include <pthread.h>

#include "hsa/headroom.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"

/*
 * These locks make the owner's node the one that the pages were moved to last. An allocation uses one of them, chosen
 * by its address; few others share it, so large allocations move side by side. It is taken before the lock of the
 * records.
 */
static pthread_mutex_t assigning[] = {[0 ... 63] = PTHREAD_MUTEX_INITIALIZER};

#define N_ASSIGNING (sizeof(assigning) / sizeof(assigning[0]))

void assign_fork_child(void)
{
    for (size_t i = 0; i < N_ASSIGNING; i++)
        (void)pthread_mutex_init(&assigning[i], NULL);
}

/* Small allocations are adjacent, large ones lie at multiples of 2 MiB. */
static pthread_mutex_t *assign_lock_of(const void *ptr)
{
    return &assigning[(((uintptr_t)ptr >> 21) + ((uintptr_t)ptr >> 12)) % N_ASSIGNING];
}

static bool assign_is_coarse(const struct pool *pool)
{
    return pool->flags & HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED;
}

/* Finds the coarse-grained allocation that starts at ptr. SUCCESS with NULL: other memory is there, which is
 * fine-grained like all memory of the process, and there is nothing to do. Needs the lock. */
static hsa_status_t assign_find(const void *ptr, struct allocation **allocation)
{
    struct allocation *found = range_allocation(address_map_find(ptr));

    *allocation = NULL;
    if (!found || !assign_is_coarse(found->pool))
        return HSA_STATUS_SUCCESS;
    if (found->range.start != (uintptr_t)ptr)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    *allocation = found;
    return HSA_STATUS_SUCCESS;
}

/* It is no error that memory cannot be moved: another process uses it, it consists of huge pages set aside by the
 * system, or the node has no pool of its kind. */
static hsa_status_t assign_move(struct memclient_buffer *buffer, const struct agent *agent)
{
    int r = memclient_move(buffer, agent->node);

    headroom_changed();
    return r == -EBUSY || r == -EOPNOTSUPP || r == -ENODEV ? HSA_STATUS_SUCCESS : runtime_status(r);
}

/* Needs the lock. */
static hsa_status_t assign_give(struct allocation *allocation, const struct agent *agent,
                                hsa_access_permission_t access)
{
    unsigned bits = access == HSA_ACCESS_PERMISSION_RO ? MEMCLIENT_READ : MEMCLIENT_READ | MEMCLIENT_WRITE;
    int r = memclient_protect(runtime_context(), (void *)(uintptr_t)allocation->range.start, 0, bits);

    if (r < 0)
        return runtime_status(r);
    allocation->owner = agent;
    allocation->access = access;
    return HSA_STATUS_SUCCESS;
}

/* Needs the allocation's lock of `assigning`. */
static hsa_status_t assign_agent(void *ptr, const struct agent *agent, hsa_access_permission_t access)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    const struct agent *owner = NULL;
    struct allocation *allocation;
    hsa_status_t status;

    address_map_lock_read();
    status = assign_find(ptr, &allocation);
    if (allocation) {
        buffer = memclient_buffer_ref(allocation->buffer);
        owner = allocation->owner;
    }
    address_map_unlock();
    if (!buffer)
        return status;
    if (owner != agent)
        status = assign_move(buffer, agent);
    if (status)
        return status;
    address_map_lock();
    status = assign_find(ptr, &allocation);
    if (!allocation || allocation->buffer != buffer)
        status = HSA_STATUS_ERROR_INVALID_ALLOCATION; /* it was freed meanwhile */
    else
        status = assign_give(allocation, agent, access);
    address_map_unlock();
    return status;
}

hsa_status_t hsa_memory_assign_agent(void *ptr, hsa_agent_t agent, hsa_access_permission_t access)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    pthread_mutex_t *lock = assign_lock_of(ptr);
    const struct agent *owner;
    hsa_status_t status;

    if (!ctx || !ptr || access < HSA_ACCESS_PERMISSION_RO || access > HSA_ACCESS_PERMISSION_RW)
        return runtime_refusal(ctx);
    owner = topology_agent(agent);
    if (!owner)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    pthread_mutex_lock(lock);
    status = assign_agent(ptr, owner, access);
    pthread_mutex_unlock(lock);
    return status;
}
