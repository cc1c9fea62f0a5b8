/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From HSA's memory to the native API: programs that allocate by the one may name, publish or limit by the other.
 */
#include <memclient/hsa/hsa/hsa_ext_memoryd.h>
#include <memclient/memclient.h>

#include "hsa/address_map.h"
#include "hsa/runtime.h"

hsa_status_t memclient_hsa_buffer(const void *ptr, struct memclient_buffer **buf)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
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
