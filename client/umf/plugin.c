/* SPDX-License-Identifier: Apache-2.0 */
/* The memoryd provider behind the table of UMF's releases 1.x. */
#include "umf/plugin.h"

#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf_provider.h>

static const umf_memory_provider_ops_t *ours(void)
{
    return umfMemorydMemoryProviderOps();
}

static umf_result_t initialize(const void *params, void **provider)
{
    return ours()->initialize((void *)(uintptr_t)params, provider);
}

static umf_result_t finalize(void *provider)
{
    ours()->finalize(provider);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t do_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    return ours()->alloc(provider, size, alignment, ptr);
}

static umf_result_t do_free(void *provider, void *ptr, size_t size)
{
    return ours()->free(provider, ptr, size);
}

static umf_result_t get_last_native_error(void *provider, const char **message, int32_t *error)
{
    ours()->get_last_native_error(provider, message, error);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t get_recommended_page_size(void *provider, size_t size, size_t *page_size)
{
    return ours()->get_recommended_page_size(provider, size, page_size);
}

static umf_result_t get_min_page_size(void *provider, const void *ptr, size_t *page_size)
{
    return ours()->get_min_page_size(provider, (void *)(uintptr_t)ptr, page_size);
}

/* Also without a provider. */
static umf_result_t get_name(void *provider, const char **name)
{
    if (!name)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *name = ours()->get_name(provider);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t purge_lazy(void *provider, void *ptr, size_t size)
{
    return ours()->ext.purge_lazy(provider, ptr, size);
}

static umf_result_t purge_force(void *provider, void *ptr, size_t size)
{
    return ours()->ext.purge_force(provider, ptr, size);
}

static umf_result_t merge(void *provider, void *low, void *high, size_t total)
{
    return ours()->ext.allocation_merge(provider, low, high, total);
}

static umf_result_t split(void *provider, void *ptr, size_t total, size_t first)
{
    return ours()->ext.allocation_split(provider, ptr, total, first);
}

static umf_result_t get_ipc_handle_size(void *provider, size_t *size)
{
    return ours()->ipc.get_ipc_handle_size(provider, size);
}

static umf_result_t get_ipc_handle(void *provider, const void *ptr, size_t size, void *data)
{
    return ours()->ipc.get_ipc_handle(provider, ptr, size, data);
}

static umf_result_t put_ipc_handle(void *provider, void *data)
{
    return ours()->ipc.put_ipc_handle(provider, data);
}

static umf_result_t open_ipc_handle(void *provider, void *data, void **ptr)
{
    return ours()->ipc.open_ipc_handle(provider, data, ptr);
}

static umf_result_t close_ipc_handle(void *provider, void *ptr, size_t size)
{
    return ours()->ipc.close_ipc_handle(provider, ptr, size);
}

const struct umf_memory_provider_ops_t *memclient_umf_provider_ops(void)
{
    static const struct umf1_ops ops = {
        .version = UMF1_OPS_VERSION,
        .initialize = initialize,
        .finalize = finalize,
        .alloc = do_alloc,
        .free = do_free,
        .get_last_native_error = get_last_native_error,
        .get_recommended_page_size = get_recommended_page_size,
        .get_min_page_size = get_min_page_size,
        .get_name = get_name,
        .ext_purge_lazy = purge_lazy,
        .ext_purge_force = purge_force,
        .ext_allocation_merge = merge,
        .ext_allocation_split = split,
        .ext_get_ipc_handle_size = get_ipc_handle_size,
        .ext_get_ipc_handle = get_ipc_handle,
        .ext_put_ipc_handle = put_ipc_handle,
        .ext_open_ipc_handle = open_ipc_handle,
        .ext_close_ipc_handle = close_ipc_handle,
    };

    /* libumf's struct of that name, which is not the one of 0.9 that is declared here */
    return (const void *)&ops;
}
