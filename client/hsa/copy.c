/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying and filling for the application. Access that permissions forbid returns an error instead of raising a signal.
 */
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/memory.h"
#include "hsa/runtime.h"

hsa_status_t hsa_memory_copy(void *dst, const void *src, size_t size)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();

    if (!ctx || !dst || !src || !pointer_allows_copy(dst, src, size))
        return runtime_refusal(ctx);
    copier_copy(dst, src, size);
    return HSA_STATUS_SUCCESS;
}

/* Is all of [start, start + size) memory that HSA knows? Needs the lock. */
static bool copy_is_known(uint64_t start, uint64_t size)
{
    for (;;) {
        const struct address_range *range = address_map_find((const void *)(uintptr_t)start);
        uint64_t rest;

        if (!range)
            return false;
        rest = range->size - (start - range->start);
        if (size <= rest)
            return true;
        start += rest;
        size -= rest;
    }
}

hsa_status_t hsa_amd_memory_fill(void *ptr, uint32_t value, size_t count)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    hsa_status_t status = HSA_STATUS_SUCCESS;
    size_t size;

    if (!ctx || !ptr || (uintptr_t)ptr % sizeof(value))
        return runtime_refusal(ctx);
    if (!count)
        return HSA_STATUS_SUCCESS;
    if (__builtin_mul_overflow(count, sizeof(value), &size))
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    address_map_lock_read();
    if (!copy_is_known((uintptr_t)ptr, size))
        status = HSA_STATUS_ERROR_INVALID_ALLOCATION;
    else if (!pointer_allows(ptr, size, HSA_ACCESS_PERMISSION_WO))
        status = HSA_STATUS_ERROR_INVALID_ARGUMENT;
    address_map_unlock();
    if (!status)
        copier_fill(ptr, value, size);
    return status;
}
