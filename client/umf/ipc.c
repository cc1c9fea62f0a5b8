/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of pools' memory: a header with the place in the coarse allocation, and the provider's handle.
 *
 * Handles come from anywhere, so nothing in them is used before the checksum agrees. The provider checks its own part.
 */
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "umf/log.h"
#include "umf/opened.h"
#include "umf/owned.h"
#include "umf/pool.h"
#include "umf/shared.h"
#include "umf/tracking.h"

#define MAGIC UINT32_C(0x31464d55) /* "UMF1" */

struct umf_ipc_data_t {
    uint32_t magic;
    uint32_t check;     /* checksum of the rest */
    uint64_t size;      /* of the whole handle */
    uint64_t base_size; /* of the coarse allocation */
    uint64_t offset;    /* in the allocation */
    uint8_t data[];     /* the provider's handle */
};

static uint64_t ipc_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* A hash of the provider's handle, a word at a time, since handles that are open already are looked up often. It finds
 * those, and is a part of the checksum, which detects damage but not forgery. */
static uint64_t ipc_hash(const uint8_t *bytes, size_t size)
{
    uint64_t hash = size, word;

    for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = ipc_mix(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, size);
    return size ? ipc_mix(hash, word) : hash;
}

static uint32_t ipc_check_value(const struct umf_ipc_data_t *handle, uint64_t hash)
{
    return (uint32_t)ipc_mix(ipc_mix(ipc_mix(hash, handle->size), handle->base_size), handle->offset);
}

/* Call it when the provider's handle is complete. */
static void fill_header(umf_ipc_handle_t handle, size_t of_provider, size_t base_size, size_t offset)
{
    handle->magic = MAGIC;
    handle->size = sizeof(*handle) + of_provider;
    handle->base_size = base_size;
    handle->offset = offset;
    handle->check = ipc_check_value(handle, ipc_hash(handle->data, of_provider));
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
    _cleanup_free_ umf_ipc_handle_t handle = NULL;
    size_t total, base_size;
    struct owned owned;
    umf_result_t result;
    void *base;

    if (!ptr || !ipcHandle || !size || !owned_find(ptr, &owned))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfPoolGetIPCHandleSize(owned.pool, &total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    handle = calloc(1, total);
    if (!handle)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    result = tracking_get_ipc(owned.pool, ptr, total - sizeof(*handle), handle->data, &base, &base_size);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    fill_header(handle, total - sizeof(*handle), base_size, (uintptr_t)ptr - (uintptr_t)base);
    *ipcHandle = steal_ptr(&handle);
    *size = total;
    return UMF_RESULT_SUCCESS;
}

/*
 * The handle covers the buffer from its start to the end of the range, since only the broker knows where pages begin.
 */
umf_result_t umfMemorydPoolHandle(const struct memclient_token *token, size_t offset, size_t length,
                                  umf_ipc_handle_t *ipcHandle, size_t *size)
{
    umf_ipc_handle_t handle;
    size_t end;

    if (!token || !length || !ipcHandle || !size || !checked_add_size(offset, length, &end))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    handle = calloc(1, sizeof(*handle) + SHARED_HANDLE_SIZE);
    if (!handle)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    shared_make_handle(token, 0, end, 0, handle->data);
    fill_header(handle, SHARED_HANDLE_SIZE, end, offset);
    *ipcHandle = handle;
    *size = handle->size;
    return UMF_RESULT_SUCCESS;
}

/* The provider's handle stays with the allocation until that is freed. */
umf_result_t umfPutIPCHandle(umf_ipc_handle_t ipcHandle)
{
    free(ipcHandle);
    return UMF_RESULT_SUCCESS;
}

/* A handle of `total` bytes, and the hash of the provider's part. */
static bool ipc_is_valid(const struct umf_ipc_data_t *handle, size_t total, uint64_t *hash)
{
    /* nothing behind the header may be read before that is known */
    if (handle->magic != MAGIC || handle->size != total)
        return false;
    *hash = ipc_hash(handle->data, total - sizeof(*handle));
    return handle->check == ipc_check_value(handle, *hash) &&
           (handle->offset < handle->base_size || (!handle->offset && !handle->base_size));
}

umf_result_t umfOpenIPCHandle(umf_memory_pool_handle_t hPool, umf_ipc_handle_t ipcHandle, void **ptr)
{
    size_t total;
    umf_result_t result;
    uint64_t hash;
    void *base;

    if (!hPool || !ipcHandle || !ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfPoolGetIPCHandleSize(hPool, &total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (!ipc_is_valid(ipcHandle, total, &hash)) {
        log_write(LOG_ERROR, __func__, "INVALID_ARGUMENT: the handle is damaged, or of another kind of provider");
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    }
    result =
        opened_open(hPool, ipcHandle->data, total - sizeof(*ipcHandle), (unsigned)hash, ipcHandle->base_size, &base);
    if (result == UMF_RESULT_SUCCESS)
        *ptr = (char *)base + ipcHandle->offset;
    return result;
}

umf_result_t umfCloseIPCHandle(void *ptr)
{
    return ptr ? opened_close(ptr) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}
