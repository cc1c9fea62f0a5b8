/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of pools' memory: a header of ours, which says where in the coarse allocation, and the provider's handle.
 *
 * They come from anywhere, so nothing in them is believed before the check value agrees; the provider checks its part
 * by itself.
 */
#include <memclient/umf/ipc.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "umf/opened.h"
#include "umf/pool.h"
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

/*
 * Against bytes that were damaged on their way, not against those who forge: words are multiplied and folded, so that
 * each bit of them has a part in all that follows.
 */
static uint32_t check_of(const struct umf_ipc_data_t *handle)
{
    const uint8_t *bytes = (const uint8_t *)&handle->size;
    size_t n = handle->size - offsetof(struct umf_ipc_data_t, size);
    uint64_t check = n, word = 0;

    for (; n >= sizeof(word); bytes += sizeof(word), n -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        check = (check ^ word) * UINT64_C(0xd6e8feb86659fd93);
        check ^= check >> 32;
    }
    word = 0;
    memcpy(&word, bytes, n);
    check = (check ^ word) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(check ^ check >> 32);
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

umf_result_t umfGetIPCHandle(const void *ptr, umf_ipc_handle_t *ipcHandle, size_t *size)
{
    umf_memory_pool_handle_t pool;
    umf_ipc_handle_t handle;
    umf_result_t result;
    size_t total, base_size;
    void *base;

    if (!ptr || !ipcHandle || !size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    pool = pool_of_own(ptr);
    if (!pool)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfPoolGetIPCHandleSize(pool, &total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    handle = calloc(1, total);
    if (!handle)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    result = tracking_get_ipc(pool, ptr, total - sizeof(*handle), handle->data, &base, &base_size);
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

/* Of those that the pool's provider makes, and undamaged? Its size is compared before what is behind the header. */
static bool is_good(const struct umf_ipc_data_t *handle, size_t size)
{
    return handle->magic == MAGIC && handle->size == size && handle->check == check_of(handle) &&
           (handle->offset < handle->base_size || (!handle->offset && !handle->base_size));
}

umf_result_t umfOpenIPCHandle(umf_memory_pool_handle_t hPool, umf_ipc_handle_t ipcHandle, void **ptr)
{
    size_t total;
    umf_result_t result;
    void *base;

    if (!hPool || !ipcHandle || !ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfPoolGetIPCHandleSize(hPool, &total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (!is_good(ipcHandle, total))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = opened_open(hPool, ipcHandle->data, total - sizeof(*ipcHandle), ipcHandle->base_size, &base);
    if (result == UMF_RESULT_SUCCESS)
        *ptr = (char *)base + ipcHandle->offset;
    return result;
}

umf_result_t umfCloseIPCHandle(void *ptr)
{
    return ptr ? opened_close(ptr) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}
