/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interop buffers: memory mapped by a shareable handle. And moving an allocation to another pool, which is refused: the
 * node of memory is changed by hsa_memory_assign_agent().
 */
#include <errno.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/cleanup.h"
#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"

hsa_status_t hsa_amd_interop_map_buffer(uint32_t num_agents, hsa_agent_t *agents, int interop_handle, uint32_t flags,
                                        size_t *size, void **ptr, size_t *metadata_size, const void **metadata)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct attachment *attachment = NULL;
    hsa_status_t status;
    uint64_t allowed;
    int r;

    if (!ctx || !agents || !size || !ptr || !num_agents || flags)
        return runtime_refusal(ctx);
    if (!topology_agents(num_agents, agents, &allowed))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    r = memclient_import_fd(ctx, interop_handle, &buffer);
    if (r)
        return r == -EBADF ? HSA_STATUS_ERROR_INVALID_ARGUMENT : runtime_status(r);
    status = attachment_map(&buffer, allowed, true, &attachment);
    if (status)
        return status;
    attachment->interop = true;
    *size = attachment->range.size;
    *ptr = (void *)(uintptr_t)attachment->range.start;
    if (metadata_size)
        *metadata_size = 0;
    if (metadata)
        *metadata = NULL;
    address_map_lock();
    (void)attachment_insert(attachment);
    address_map_unlock();
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_interop_unmap_buffer(void *ptr)
{
    hsa_status_t status = attachment_detach(ptr, true);

    /* what is none is ignored */
    return status == HSA_STATUS_ERROR_INVALID_ARGUMENT ? HSA_STATUS_SUCCESS : status;
}

hsa_status_t hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t src_memory_pool,
                                             hsa_amd_memory_pool_t dst_memory_pool, bool *result)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();

    if (!ctx || !result)
        return runtime_refusal(ctx);
    if (!topology_memory_pool(src_memory_pool) || !topology_memory_pool(dst_memory_pool))
        return INVALID_MEMORY_POOL;
    *result = false;
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_memory_migrate(const void *ptr, hsa_amd_memory_pool_t memory_pool, uint32_t flags)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();

    if (!ctx || !ptr || flags)
        return runtime_refusal(ctx);
    return topology_memory_pool(memory_pool) ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : INVALID_MEMORY_POOL;
}
