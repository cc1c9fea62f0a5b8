/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of pools' memory: a header of ours, which says where in the coarse allocation, and the provider's handle.
 *
 * They come from anywhere, so nothing in them is believed before the check value agrees; the provider checks its part
 * by itself, and where the memory turns out to be the broker's, its real size is known.
 */
#include <memclient/umf/ipc.h>

#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>

#include "umf/pool.h"
#include "umf/tracker.h"
#include "umf/tracking.h"

#define MAGIC UINT32_C(0x31464d55) /* "UMF1" */

struct umf_ipc_data_t {
    uint32_t magic;
    uint32_t check;     /* of all that follows */
    uint64_t size;      /* of the whole handle */
    uint64_t base_size; /* of the coarse allocation */
    uint64_t offset;    /* in it */
    uint8_t data[];     /* the provider's */
};

/* FNV-1a: against bytes that were damaged on their way, not against those who forge. */
static uint32_t check_of(const struct umf_ipc_data_t *handle)
{
    const uint8_t *bytes = (const uint8_t *)&handle->size;
    uint32_t check = UINT32_C(2166136261);

    for (size_t n = handle->size - offsetof(struct umf_ipc_data_t, size); n; n--)
        check = (check ^ *bytes++) * UINT32_C(16777619);
    return check;
}

umf_result_t umfPoolGetIPCHandleSize(umf_memory_pool_handle_t hPool, size_t *size)
{
    size_t of_provider;
    umf_result_t result;

    if (!hPool || !size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderGetIPCHandleSize(hPool->provider, &of_provider);
    if (result == UMF_RESULT_SUCCESS)
        *size = sizeof(struct umf_ipc_data_t) + of_provider;
    return result;
}

static umf_memory_pool_handle_t pool_of(const void *ptr)
{
    const struct tracked *tracked;
    umf_memory_pool_handle_t pool;

    tracker_lock_read();
    tracked = tracker_find(TRACKED_OWN, ptr);
    pool = tracked ? tracked->pool : NULL;
    tracker_unlock_read();
    return pool;
}

umf_result_t umfGetIPCHandle(const void *ptr, umf_ipc_handle_t *ipcHandle, size_t *size)
{
    umf_memory_pool_handle_t pool;
    umf_ipc_handle_t handle;
    umf_result_t result;
    size_t total, base_size;
    void *base;

    if (!ptr || !ipcHandle || !size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    pool = pool_of(ptr);
    if (!pool)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfPoolGetIPCHandleSize(pool, &total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    handle = calloc(1, total);
    if (!handle)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    result = tracking_get_ipc(pool->tracking, ptr, total - sizeof(*handle), handle->data, &base, &base_size);
    if (result != UMF_RESULT_SUCCESS) {
        free(handle);
        return result;
    }
    handle->magic = MAGIC;
    handle->size = total;
    handle->base_size = base_size;
    handle->offset = (uintptr_t)ptr - (uintptr_t)base;
    handle->check = check_of(handle);
    *ipcHandle = handle;
    *size = total;
    return UMF_RESULT_SUCCESS;
}

/* The provider's handle stays with the allocation until that is freed. */
umf_result_t umfPutIPCHandle(umf_ipc_handle_t ipcHandle)
{
    free(ipcHandle);
    return UMF_RESULT_SUCCESS;
}

/* Memory of the broker is known to be as large as it is; of other memory the handle must be believed. */
static bool is_so_large(const void *base, uint64_t size)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    if (memclient_query_address(base, &info) < 0 || !info.buffer)
        return true;
    return size <= info.length - ((uintptr_t)base - (uintptr_t)info.address);
}

umf_result_t umfOpenIPCHandle(umf_memory_pool_handle_t hPool, umf_ipc_handle_t ipcHandle, void **ptr)
{
    size_t total;
    umf_result_t result;
    void *base;

    if (!hPool || !ipcHandle || !ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (!hPool->tracking)
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    result = umfPoolGetIPCHandleSize(hPool, &total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    /* its size is compared before anything behind the header is read */
    if (ipcHandle->magic != MAGIC || ipcHandle->size != total || ipcHandle->check != check_of(ipcHandle) ||
        ipcHandle->offset >= (ipcHandle->base_size ? ipcHandle->base_size : 1))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = tracking_open(hPool->tracking, ipcHandle->data, total - sizeof(*ipcHandle), ipcHandle->base_size, &base);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (!is_so_large(base, ipcHandle->base_size)) {
        (void)tracking_close(base);
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    }
    *ptr = (char *)base + ipcHandle->offset;
    return UMF_RESULT_SUCCESS;
}

umf_result_t umfCloseIPCHandle(void *ptr)
{
    return ptr ? tracking_close(ptr) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}
