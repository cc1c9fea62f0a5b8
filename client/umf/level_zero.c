/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero provider. Each provider opens the loader for itself. The program has it open already, or it would have
 * no handles to pass. It is never unloaded, since drivers have threads.
 */
#include "umf/level_zero.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "base/cleanup.h"
#include "umf/native_error.h"
#include "umf/shared.h"

static __thread struct native_error last_error = {.text = "success"};

/* ---- results ----------------------------------------------------------------------------------------------------- */

static const char *l0_name_of(uint32_t result)
{
    static const struct {
        uint32_t result;
        const char *name;
    } names[] = {
        {L0_DEVICE_LOST, "ZE_RESULT_ERROR_DEVICE_LOST"},
        {L0_OUT_OF_DEVICE_MEMORY, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"},
        {L0_UNINITIALIZED, "ZE_RESULT_ERROR_UNINITIALIZED"},
        {L0_HANDLE_OBJECT_IN_USE, "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE"},
        {L0_INVALID_SIZE, "ZE_RESULT_ERROR_INVALID_SIZE"},
        {L0_UNSUPPORTED_SIZE, "ZE_RESULT_ERROR_UNSUPPORTED_SIZE"},
        {L0_UNKNOWN, "ZE_RESULT_ERROR_UNKNOWN"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].result == result)
            return names[i].name;
    return NULL;
}

/* Results that UMF has no word for are MEMORY_PROVIDER_SPECIFIC. */
umf_result_t l0_result(const char *function, uint32_t result)
{
    char number[32];
    const char *name;

    switch (result) {
    case L0_SUCCESS:
        return UMF_RESULT_SUCCESS;
    case L0_OUT_OF_HOST_MEMORY:
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    case L0_INVALID_ARGUMENT:
    case L0_INVALID_NULL_HANDLE:
    case L0_INVALID_NULL_POINTER:
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    case L0_UNSUPPORTED_ALIGNMENT:
        return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
    case L0_UNSUPPORTED_FEATURE:
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    default:
        name = l0_name_of(result);
        (void)snprintf(number, sizeof(number), "ze_result_t 0x%" PRIx32, result);
        native_error_set(&last_error, (int32_t)result, function, name ? name : number);
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    }
}

umf_result_t l0_broker_result(int r)
{
    if (r)
        native_error_set(&last_error, UMF_MEMORYD_RESULTS_START_FROM - r, memclient_error(), NULL);
    return r == -EOPNOTSUPP ? UMF_RESULT_ERROR_NOT_SUPPORTED : shared_handle_result(r);
}

static void l0_get_last_native_error(void *provider, const char **message, int32_t *code)
{
    native_error_get(&last_error, message, code);
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* Drivers before Level Zero 1.6 have no zeMemPutIpcHandle(). */
static bool l0_load(struct level_zero *provider)
{
    struct l0_functions *call = &provider->call;
    const struct {
        const char *name;
        void *function;
        bool may_be_missing;
    } symbols[] = {
        {"zeInit", &call->init},
        {"zeMemAllocHost", &call->alloc_host},
        {"zeMemAllocDevice", &call->alloc_device},
        {"zeMemAllocShared", &call->alloc_shared},
        {"zeMemFree", &call->free},
        {"zeMemGetAllocProperties", &call->get_properties},
        {"zeMemGetAddressRange", &call->get_range},
        {"zeMemGetIpcHandle", &call->get_ipc},
        {"zeMemOpenIpcHandle", &call->open_ipc},
        {"zeMemCloseIpcHandle", &call->close_ipc},
        {"zeMemPutIpcHandle", &call->put_ipc, true},
    };
    void *library = dlopen(L0_LOADER, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(library, symbols[i].name);

        if (!symbol && !symbols[i].may_be_missing)
            return false;
        memcpy(symbols[i].function, &symbol, sizeof(symbol)); /* C cannot cast data to functions */
    }
    return library;
}

static void l0_finalize(void *p)
{
    struct level_zero *provider = p;

    l0_ipc_deinit(provider);
    (void)pthread_cond_destroy(&provider->made);
    (void)pthread_mutex_destroy(&provider->lock);
    free(provider);
}

DEFINE_CLEANUP(struct level_zero *, l0_finalize);

static bool l0_are_params_valid(const level_zero_memory_provider_params_t *params)
{
    if (!params || !params->level_zero_context_handle)
        return false;
    switch (params->memory_type) {
    case UMF_MEMORY_TYPE_HOST:
        return !params->level_zero_device_handle;
    case UMF_MEMORY_TYPE_DEVICE:
    case UMF_MEMORY_TYPE_SHARED:
        return params->level_zero_device_handle;
    case UMF_MEMORY_TYPE_UNKNOWN:
    default:
        return false;
    }
}

static umf_result_t l0_initialize(void *p, void **ret)
{
    const level_zero_memory_provider_params_t *params = p;
    _cleanup_(l0_finalizep) struct level_zero *provider = NULL;
    uint32_t result;

    if (!l0_are_params_valid(params))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    provider = calloc(1, sizeof(*provider));
    if (!provider)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    provider->context = params->level_zero_context_handle;
    provider->device = params->level_zero_device_handle;
    provider->type = params->memory_type;
    provider->maker = shared_new_maker();
    (void)pthread_mutex_init(&provider->lock, NULL);
    (void)pthread_cond_init(&provider->made, NULL);
    if (!l0_load(provider))
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    result = provider->call.init(0); /* harmless if the program has called it */
    if (result == L0_OUT_OF_HOST_MEMORY)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (result != L0_SUCCESS)
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    *ret = steal_ptr(&provider);
    return UMF_RESULT_SUCCESS;
}

static const char *l0_get_name(void *provider)
{
    return "LEVEL_ZERO";
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static umf_result_t l0_alloc(void *p, size_t size, size_t alignment, void **ret)
{
    static const struct l0_host_desc host = {.structure = L0_STRUCTURE_HOST_DESC};
    static const struct l0_device_desc desc = {.structure = L0_STRUCTURE_DEVICE_DESC};
    const struct level_zero *provider = p;
    const struct l0_functions *call = &provider->call;
    umf_result_t result;
    void *ptr = NULL;

    if (!ret)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (provider->type == UMF_MEMORY_TYPE_HOST)
        result = l0_result("zeMemAllocHost", call->alloc_host(provider->context, &host, size, alignment, &ptr));
    else if (provider->type == UMF_MEMORY_TYPE_DEVICE)
        result = l0_result("zeMemAllocDevice",
                           call->alloc_device(provider->context, &desc, size, alignment, provider->device, &ptr));
    else
        result = l0_result("zeMemAllocShared", call->alloc_shared(provider->context, &desc, &host, size, alignment,
                                                                  provider->device, &ptr));
    if (result == UMF_RESULT_SUCCESS)
        *ret = ptr;
    return result;
}

static umf_result_t l0_free(void *p, void *ptr, size_t size)
{
    struct level_zero *provider = p;

    if (!ptr)
        return UMF_RESULT_SUCCESS;
    l0_ipc_forget(provider, ptr);
    return l0_result("zeMemFree", provider->call.free(provider->context, ptr));
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static umf_result_t l0_page_of(const struct level_zero *provider, const void *ptr, size_t *page)
{
    struct l0_properties properties = {.structure = L0_STRUCTURE_PROPERTIES};
    umf_result_t result =
        l0_result("zeMemGetAllocProperties", provider->call.get_properties(provider->context, ptr, &properties, NULL));

    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (properties.type == L0_MEMORY_UNKNOWN)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *page = properties.page_size ? (size_t)properties.page_size : (size_t)sysconf(_SC_PAGESIZE);
    return UMF_RESULT_SUCCESS;
}

/* Level Zero reports page sizes of allocations only, so the first call makes one. */
static umf_result_t l0_min_page(struct level_zero *provider, size_t *page)
{
    size_t known = atomic_load_explicit(&provider->min_page, memory_order_relaxed);
    umf_result_t result;
    void *ptr;

    if (!known) {
        result = l0_alloc(provider, 1, 0, &ptr);
        if (result != UMF_RESULT_SUCCESS)
            return result;
        result = l0_page_of(provider, ptr, &known);
        (void)provider->call.free(provider->context, ptr);
        if (result != UMF_RESULT_SUCCESS)
            return result;
        atomic_store_explicit(&provider->min_page, known, memory_order_relaxed);
    }
    *page = known;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t l0_get_min_page_size(void *provider, void *ptr, size_t *page)
{
    if (!page)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    return ptr ? l0_page_of(provider, ptr, page) : l0_min_page(provider, page);
}

/* The driver uses larger pages by itself where it pays. */
static umf_result_t l0_get_recommended_page_size(void *provider, size_t size, size_t *page)
{
    return page ? l0_min_page(provider, page) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_memory_provider_ops_t *umfLevelZeroMemoryProviderOps(void)
{
    static umf_memory_provider_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = l0_initialize,
        .finalize = l0_finalize,
        .alloc = l0_alloc,
        .free = l0_free,
        .get_last_native_error = l0_get_last_native_error,
        .get_recommended_page_size = l0_get_recommended_page_size,
        .get_min_page_size = l0_get_min_page_size,
        .get_name = l0_get_name,
        .ipc = {l0_get_ipc_handle_size, l0_get_ipc_handle, l0_put_ipc_handle, l0_open_ipc_handle, l0_close_ipc_handle},
    };

    return &ops;
}
