/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary memory that the application registers or locks.
 *
 * Registering and locking do nearly the same. CPU agents can use ordinary memory anyway, so both only make a record for
 * hsa_amd_pointer_info(). A record is of exactly the range that it was made for. It goes when the range is neither
 * registered nor locked any more, or when HSA maps something there, since the memory must then be gone. Records do not
 * overlap: registering across one fails, and locking across one makes no record.
 */
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/memory.h"
#include "hsa/runtime.h"

/* Does the range lie in HSA's own memory, or in addresses reserved for it? Needs the lock. */
static bool register_is_ours(uint64_t start, uint64_t size)
{
    const struct address_range *range = address_map_first(start);

    if (reservation_around(start, size))
        return true;
    return range && range->kind != RANGE_LOCKED && range->start <= start &&
           size <= range->bytes - (start - range->start);
}

/* The record of exactly this range, or NULL. Needs the lock. */
static struct locked *register_find(const void *ptr, size_t size)
{
    struct locked *locked = range_locked(address_map_find_base(ptr));

    return locked && locked->range.size == size ? locked : NULL;
}

/* Finds or makes the record. *locked is NULL if the memory is HSA's, which needs none. Needs the lock. */
static hsa_status_t register_make(void *ptr, size_t size, struct locked **locked)
{
    uint64_t start = (uintptr_t)ptr;

    *locked = NULL;
    if (size > UINT64_MAX - start)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (register_is_ours(start, size))
        return HSA_STATUS_SUCCESS;
    *locked = register_find(ptr, size);
    if (*locked)
        return HSA_STATUS_SUCCESS;
    if (!address_map_is_free(start, size) || !reservation_is_none(start, size))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    *locked = calloc(1, sizeof(**locked));
    if (!*locked)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    address_range_init(&(*locked)->range, RANGE_LOCKED, ptr, size, size);
    address_map_insert(&(*locked)->range);
    return HSA_STATUS_SUCCESS;
}

/* Does the range overlap records of ordinary memory, and nothing of HSA's? Needs the lock. */
static bool register_overlaps_known(uint64_t start, uint64_t size)
{
    return size <= UINT64_MAX - start && reservation_is_none(start, size) && address_map_is_only_locked(start, size);
}

/* Needs the lock. */
static void register_drop_unused(struct locked *locked)
{
    if (locked->registered || locked->locks)
        return;
    address_map_remove(&locked->range);
    free(locked);
}

hsa_status_t hsa_memory_register(void *ptr, size_t size)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct locked *locked;
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!ptr)
        return HSA_STATUS_SUCCESS;
    if (!size)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    address_map_lock();
    status = register_make(ptr, size, &locked);
    if (locked)
        locked->registered = true;
    address_map_unlock();
    return status;
}

hsa_status_t hsa_memory_deregister(void *ptr, size_t size)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct locked *locked;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    address_map_lock();
    locked = register_find(ptr, size);
    if (locked) {
        locked->registered = false;
        register_drop_unused(locked);
    }
    address_map_unlock();
    return HSA_STATUS_SUCCESS;
}

/* ---- hsa_ext_amd.h ----------------------------------------------------------------------------------------------- */

/* The list of agents is not empty, or is missing: then it stands for all. */
static hsa_status_t register_check_lock(const void *host_ptr, size_t size, const hsa_agent_t *agents, int n,
                                        void **agent_ptr)
{
    uint64_t set;

    if (!host_ptr || !agent_ptr || !size || n < 0 || !agents != !n)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return topology_agents((uint32_t)n, agents, &set) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_AGENT;
}

static hsa_status_t register_lock(void *host_ptr, size_t size, void **agent_ptr)
{
    struct locked *locked;
    hsa_status_t status;

    address_map_lock();
    status = register_make(host_ptr, size, &locked);
    if (locked)
        locked->locks++;
    else if (status == HSA_STATUS_ERROR_INVALID_ARGUMENT && register_overlaps_known((uintptr_t)host_ptr, size))
        status = HSA_STATUS_SUCCESS;
    address_map_unlock();
    if (!status)
        *agent_ptr = host_ptr;
    return status;
}

hsa_status_t hsa_amd_memory_lock(void *host_ptr, size_t size, hsa_agent_t *agents, int num_agent, void **agent_ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    status = register_check_lock(host_ptr, size, agents, num_agent, agent_ptr);
    return status ? status : register_lock(host_ptr, size, agent_ptr);
}

hsa_status_t hsa_amd_memory_lock_to_pool(void *host_ptr, size_t size, hsa_agent_t *agents, int num_agent,
                                         hsa_amd_memory_pool_t pool, uint32_t flags, void **agent_ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    hsa_status_t status;

    if (!ctx || flags)
        return runtime_refusal(ctx);
    status = register_check_lock(host_ptr, size, agents, num_agent, agent_ptr);
    if (status)
        return status;
    if (!topology_memory_pool(pool))
        return INVALID_MEMORY_POOL;
    return register_lock(host_ptr, size, agent_ptr);
}

hsa_status_t hsa_amd_memory_unlock(void *host_ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct locked *locked;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    address_map_lock();
    locked = range_locked(address_map_find_base(host_ptr));
    if (locked && locked->locks) {
        locked->locks--;
        register_drop_unused(locked);
    }
    address_map_unlock();
    return HSA_STATUS_SUCCESS;
}
