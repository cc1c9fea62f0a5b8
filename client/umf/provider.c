/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider's functions. Each checks that the provider has the operation, and passes everything else on. Programs
 * with operations of their own rely on that: wrong arguments must reach them.
 */
#include "umf/pool.h"

#include <stdlib.h>

#include "umf/log.h"

static __thread umf_memory_provider_handle_t last_failed;

/* The provider itself, or the application's provider behind a pool's tracking. */
static umf_memory_provider_handle_t provider_behind(umf_memory_provider_handle_t provider)
{
    while (provider && provider->upstream)
        provider = provider->upstream;
    return provider;
}

/* Logs which provider failed, where, and the reason if there is one. */
static void provider_log_failure(umf_memory_provider_handle_t provider, const char *function, umf_result_t result)
{
    /* behind a failure of a pool's tracking, its provider has mostly failed, and has a line already */
    enum log_level level = provider->upstream ? LOG_DEBUG : LOG_ERROR;
    const struct log_reason reason = log_reason();
    const char *why = reason.text, *text = NULL;
    int32_t number = 0;

    if (!log_wants(level))
        return;
    if (!*why && result == UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC)
        umfMemoryProviderGetLastNativeError(provider, &text, &number);
    if (text)
        why = text;
    log_write(level, function, "provider %s: %s%s%s", umfMemoryProviderGetName(provider), log_name_of(result),
              *why ? ": " : "", why);
}

static umf_result_t provider_note(umf_memory_provider_handle_t provider, const char *function, umf_result_t result)
{
    if (result == UMF_RESULT_SUCCESS)
        return result;
    last_failed = provider->upstream ? provider->upstream : provider;
    if (log_wants(LOG_ERROR))
        provider_log_failure(provider, function, result);
    return result;
}

static umf_result_t provider_refuse_argument(const char *function, const char *why)
{
    log_write(LOG_ERROR, function, "%s: %s", log_name_of(UMF_RESULT_ERROR_INVALID_ARGUMENT), why);
    return UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

/* The provider is NULL, or has no such operation. */
static umf_result_t provider_refuse(umf_memory_provider_handle_t provider, const char *function)
{
    return provider ? provider_note(provider, function, UMF_RESULT_ERROR_NOT_SUPPORTED)
                    : provider_refuse_argument(function, "the provider is NULL");
}

umf_memory_provider_handle_t umfGetLastFailedMemoryProvider(void)
{
    return last_failed;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static bool is_complete(const umf_memory_provider_ops_t *ops)
{
    const umf_memory_provider_ipc_ops_t *ipc = &ops->ipc;
    int n_ipc = !!ipc->get_ipc_handle_size + !!ipc->get_ipc_handle + !!ipc->put_ipc_handle + !!ipc->open_ipc_handle +
                !!ipc->close_ipc_handle;

    if (!ops->initialize || !ops->finalize || !ops->alloc || !ops->free || !ops->get_last_native_error ||
        !ops->get_recommended_page_size || !ops->get_min_page_size || !ops->get_name)
        return false;
    return !ops->ext.allocation_split == !ops->ext.allocation_merge && (n_ipc == 0 || n_ipc == 5);
}

umf_result_t umfMemoryProviderCreate(const umf_memory_provider_ops_t *ops, void *params,
                                     umf_memory_provider_handle_t *hProvider)
{
    umf_memory_provider_handle_t provider;
    umf_result_t result;

    if (!ops || !hProvider)
        return provider_refuse_argument(__func__, "the operations or the place for the handle is NULL");
    if (UMF_MAJOR_VERSION(ops->version) > UMF_MAJOR_VERSION(UMF_VERSION_CURRENT))
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    if (!is_complete(ops))
        return provider_refuse_argument(__func__, "an operation is missing");
    provider = calloc(1, sizeof(*provider));
    if (!provider)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    provider->ops = *ops;
    result = ops->initialize(params, &provider->priv);
    if (result != UMF_RESULT_SUCCESS) {
        log_write(LOG_ERROR, __func__, "%s: %s", log_name_of(result), log_reason().text);
        free(provider);
        return result;
    }
    if (log_wants(LOG_DEBUG))
        log_write(LOG_DEBUG, __func__, "provider %s is at %p", umfMemoryProviderGetName(provider), (void *)provider);
    *hProvider = provider;
    return UMF_RESULT_SUCCESS;
}

void umfMemoryProviderDestroy(umf_memory_provider_handle_t hProvider)
{
    if (!hProvider)
        return;
    hProvider->ops.finalize(hProvider->priv);
    free(hProvider);
}

/* ---- what every provider can ------------------------------------------------------------------------------------- */

umf_result_t umfMemoryProviderAlloc(umf_memory_provider_handle_t hProvider, size_t size, size_t alignment, void **ptr)
{
    if (!hProvider)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.alloc(hProvider->priv, size, alignment, ptr));
}

umf_result_t umfMemoryProviderFree(umf_memory_provider_handle_t hProvider, void *ptr, size_t size)
{
    if (!hProvider)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.free(hProvider->priv, ptr, size));
}

void umfMemoryProviderGetLastNativeError(umf_memory_provider_handle_t hProvider, const char **ppMessage,
                                         int32_t *pError)
{
    hProvider = provider_behind(hProvider);
    if (hProvider)
        hProvider->ops.get_last_native_error(hProvider->priv, ppMessage, pError);
}

umf_result_t umfMemoryProviderGetRecommendedPageSize(umf_memory_provider_handle_t hProvider, size_t size,
                                                     size_t *pageSize)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__,
                         hProvider->ops.get_recommended_page_size(hProvider->priv, size, pageSize));
}

umf_result_t umfMemoryProviderGetMinPageSize(umf_memory_provider_handle_t hProvider, void *ptr, size_t *pageSize)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.get_min_page_size(hProvider->priv, ptr, pageSize));
}

const char *umfMemoryProviderGetName(umf_memory_provider_handle_t hProvider)
{
    hProvider = provider_behind(hProvider);
    return hProvider ? hProvider->ops.get_name(hProvider->priv) : NULL;
}

/* ---- what some can ----------------------------------------------------------------------------------------------- */

umf_result_t umfMemoryProviderPurgeLazy(umf_memory_provider_handle_t hProvider, void *ptr, size_t size)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ext.purge_lazy)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.ext.purge_lazy(hProvider->priv, ptr, size));
}

umf_result_t umfMemoryProviderPurgeForce(umf_memory_provider_handle_t hProvider, void *ptr, size_t size)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ext.purge_force)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.ext.purge_force(hProvider->priv, ptr, size));
}

umf_result_t umfMemoryProviderAllocationSplit(umf_memory_provider_handle_t hProvider, void *ptr, size_t totalSize,
                                              size_t firstSize)
{
    if (hProvider && (!ptr || !firstSize || firstSize >= totalSize))
        return provider_note(hProvider, __func__, UMF_RESULT_ERROR_INVALID_ARGUMENT);
    if (!hProvider || !hProvider->ops.ext.allocation_split)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__,
                         hProvider->ops.ext.allocation_split(hProvider->priv, ptr, totalSize, firstSize));
}

umf_result_t umfMemoryProviderAllocationMerge(umf_memory_provider_handle_t hProvider, void *lowPtr, void *highPtr,
                                              size_t totalSize)
{
    if (hProvider && (!lowPtr || !highPtr || !totalSize || lowPtr >= highPtr ||
                      (size_t)((char *)highPtr - (char *)lowPtr) >= totalSize))
        return provider_note(hProvider, __func__, UMF_RESULT_ERROR_INVALID_ARGUMENT);
    if (!hProvider || !hProvider->ops.ext.allocation_merge)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__,
                         hProvider->ops.ext.allocation_merge(hProvider->priv, lowPtr, highPtr, totalSize));
}

umf_result_t umfMemoryProviderGetIPCHandleSize(umf_memory_provider_handle_t hProvider, size_t *size)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ipc.get_ipc_handle_size)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.ipc.get_ipc_handle_size(hProvider->priv, size));
}

umf_result_t umfMemoryProviderGetIPCHandle(umf_memory_provider_handle_t hProvider, const void *ptr, size_t size,
                                           void *providerIpcData)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ipc.get_ipc_handle)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__,
                         hProvider->ops.ipc.get_ipc_handle(hProvider->priv, ptr, size, providerIpcData));
}

umf_result_t umfMemoryProviderPutIPCHandle(umf_memory_provider_handle_t hProvider, void *providerIpcData)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ipc.put_ipc_handle)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.ipc.put_ipc_handle(hProvider->priv, providerIpcData));
}

umf_result_t umfMemoryProviderOpenIPCHandle(umf_memory_provider_handle_t hProvider, void *providerIpcData, void **ptr)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ipc.open_ipc_handle)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__,
                         hProvider->ops.ipc.open_ipc_handle(hProvider->priv, providerIpcData, ptr));
}

umf_result_t umfMemoryProviderCloseIPCHandle(umf_memory_provider_handle_t hProvider, void *ptr, size_t size)
{
    hProvider = provider_behind(hProvider);
    if (!hProvider || !hProvider->ops.ipc.close_ipc_handle)
        return provider_refuse(hProvider, __func__);
    return provider_note(hProvider, __func__, hProvider->ops.ipc.close_ipc_handle(hProvider->priv, ptr, size));
}
