/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address to its buffer of the native API, or to a descriptor. A descriptor stands for a whole buffer, so the
 * caller also gets the offset of the address. The receiver may map, import or attach the descriptor.
 */
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/hsa/hsa/hsa_ext_memoryd.h>

#include "base/cleanup.h"
#include "base/range.h"
#include "hsa/address_map.h"
#include "hsa/runtime.h"

/*
 * Returns a new reference to the buffer that contains the whole range, and the offset in it; or NULL. Needs the lock.
 */
static struct memclient_buffer *dmabuf_find_buffer(const void *ptr, uint64_t size, uint64_t *offset)
{
    struct address_range *range = address_map_find(ptr);
    struct memclient_buffer *buffer;
    uint64_t inside;

    if (!range)
        return NULL;
    inside = (uintptr_t)ptr - range->start;
    if (!range_in_bounds(inside, size, range->bytes))
        return NULL;
    buffer = address_range_buffer(range, offset);
    *offset += inside;
    return memclient_buffer_ref(buffer);
}

hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *dmabuf, uint64_t *offset)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    uint64_t start;
    int fd;
    int r;

    if (!ctx || !ptr || !dmabuf || !offset || !size)
        return runtime_refusal(ctx);
    address_map_lock_read();
    buffer = dmabuf_find_buffer(ptr, size, &start);
    address_map_unlock();
    if (!buffer)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    (void)memclient_make_home(buffer); /* for its importers */
    r = memclient_export_fd(buffer, 0, &fd);
    if (r)
        return runtime_status(r);
    *dmabuf = fd;
    *offset = start;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *dmabuf, uint64_t *offset,
                                               uint64_t flags)
{
    (void)flags; /* how other devices would access it */
    return hsa_amd_portable_export_dmabuf(ptr, size, dmabuf, offset);
}

hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    return close(dmabuf) ? HSA_STATUS_ERROR_RESOURCE_FREE : HSA_STATUS_SUCCESS;
}

hsa_status_t memclient_hsa_buffer(const void *ptr, struct memclient_buffer **buf)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct memclient_buffer *found;
    struct address_range *range;
    uint64_t offset;

    if (!ctx || !ptr || !buf)
        return runtime_refusal(ctx);
    address_map_lock_read();
    range = address_map_find(ptr);
    found = range ? memclient_buffer_ref(address_range_buffer(range, &offset)) : NULL;
    address_map_unlock();
    if (!found)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    (void)memclient_make_home(found); /* for other processes */
    *buf = found;
    return HSA_STATUS_SUCCESS;
}
