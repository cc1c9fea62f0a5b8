/* SPDX-License-Identifier: Apache-2.0 */
/* The memoryd provider with the operations of UMF's releases 1.x. */
#include "umf/plugin.h"

#include <pthread.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf_provider.h>

static const umf_memory_provider_ops_t *memoryd_ops(void)
{
    return umfMemorydMemoryProviderOps();
}

static umf_result_t plugin_initialize(const void *params, void **provider)
{
    return memoryd_ops()->initialize((void *)(uintptr_t)params, provider);
}

static umf_result_t plugin_finalize(void *provider)
{
    memoryd_ops()->finalize(provider);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t plugin_get_last_native_error(void *provider, const char **message, int32_t *error)
{
    memoryd_ops()->get_last_native_error(provider, message, error);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t plugin_get_min_page_size(void *provider, const void *ptr, size_t *page_size)
{
    return memoryd_ops()->get_min_page_size(provider, (void *)(uintptr_t)ptr, page_size);
}

/* libumf calls it without a provider, too. */
static umf_result_t plugin_get_name(void *provider, const char **name)
{
    if (!name)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *name = memoryd_ops()->get_name(provider);
    return UMF_RESULT_SUCCESS;
}

static struct umf1_ops plugin_ops = {
    .version = UMF1_OPS_VERSION,
    .initialize = plugin_initialize,
    .finalize = plugin_finalize,
    .get_last_native_error = plugin_get_last_native_error,
    .get_min_page_size = plugin_get_min_page_size,
    .get_name = plugin_get_name,
};

/* Fills in the operations that are the same in 0.9. */
static void plugin_fill_ops(void)
{
    plugin_ops.alloc = memoryd_ops()->alloc;
    plugin_ops.free = memoryd_ops()->free;
    plugin_ops.get_recommended_page_size = memoryd_ops()->get_recommended_page_size;
    plugin_ops.ext_purge_lazy = memoryd_ops()->ext.purge_lazy;
    plugin_ops.ext_purge_force = memoryd_ops()->ext.purge_force;
    plugin_ops.ext_allocation_merge = memoryd_ops()->ext.allocation_merge;
    plugin_ops.ext_allocation_split = memoryd_ops()->ext.allocation_split;
    plugin_ops.ext_get_ipc_handle_size = memoryd_ops()->ipc.get_ipc_handle_size;
    plugin_ops.ext_get_ipc_handle = memoryd_ops()->ipc.get_ipc_handle;
    plugin_ops.ext_put_ipc_handle = memoryd_ops()->ipc.put_ipc_handle;
    plugin_ops.ext_open_ipc_handle = memoryd_ops()->ipc.open_ipc_handle;
    plugin_ops.ext_close_ipc_handle = memoryd_ops()->ipc.close_ipc_handle;
}

const struct umf_memory_provider_ops_t *memclient_umf_provider_ops(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, plugin_fill_ops);
    /* libumf has a struct of this name that is not the one declared here */
    return (const void *)&plugin_ops;
}
