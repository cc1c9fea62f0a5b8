/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a memory provider, for programs that have providers of their own.
 *
 * All get what `initialize` returned, and are called from any thread, several at once. The table is copied when a
 * provider is created.
 */
#ifndef UMF_MEMORY_PROVIDER_OPS_H
#define UMF_MEMORY_PROVIDER_OPS_H 1

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* These may be NULL: NOT_SUPPORTED then. Merge and split are given both or not at all. */
typedef struct umf_memory_provider_ext_ops_t {
    /* The pages of the range are no longer needed; they may go now, later or never. */
    umf_result_t (*purge_lazy)(void *provider, void *ptr, size_t size);
    /* The pages go now, and read as zeros afterwards. */
    umf_result_t (*purge_force)(void *provider, void *ptr, size_t size);
    /* Two adjacent allocations become one of totalSize. */
    umf_result_t (*allocation_merge)(void *provider, void *lowPtr, void *highPtr, size_t totalSize);
    /* One allocation of totalSize becomes two, the first of firstSize. */
    umf_result_t (*allocation_split)(void *provider, void *ptr, size_t totalSize, size_t firstSize);
} umf_memory_provider_ext_ops_t;

/* Operations for sharing with other processes. They are given all or not at all: NOT_SUPPORTED then. */
typedef struct umf_memory_provider_ipc_ops_t {
    /* The size of a handle, which is always the same. */
    umf_result_t (*get_ipc_handle_size)(void *provider, size_t *size);
    /* Writes a handle of the allocation at ptr, which has this size. */
    umf_result_t (*get_ipc_handle)(void *provider, const void *ptr, size_t size, void *providerIpcData);
    umf_result_t (*put_ipc_handle)(void *provider, void *providerIpcData);
    umf_result_t (*open_ipc_handle)(void *provider, void *providerIpcData, void **ptr);
    umf_result_t (*close_ipc_handle)(void *provider, void *ptr, size_t size);
} umf_memory_provider_ipc_ops_t;

typedef struct umf_memory_provider_ops_t {
    /* UMF_VERSION_CURRENT. A different minor version is accepted, a higher major version is not. */
    uint32_t version;
    /* Makes a provider with the parameters passed to umfMemoryProviderCreate(). */
    umf_result_t (*initialize)(void *params, void **provider);
    void (*finalize)(void *provider);
    umf_result_t (*alloc)(void *provider, size_t size, size_t alignment, void **ptr);
    umf_result_t (*free)(void *provider, void *ptr, size_t size);
    /* For this thread's last MEMORY_PROVIDER_SPECIFIC. The text remains the provider's. */
    void (*get_last_native_error)(void *provider, const char **ppMessage, int32_t *pError);
    umf_result_t (*get_recommended_page_size)(void *provider, size_t size, size_t *pageSize);
    /* For the memory at ptr, or the smallest that the provider has if ptr is NULL. */
    umf_result_t (*get_min_page_size)(void *provider, void *ptr, size_t *pageSize);
    /* A string that lives as long as the provider. */
    const char *(*get_name)(void *provider);
    umf_memory_provider_ext_ops_t ext;
    umf_memory_provider_ipc_ops_t ipc;
} umf_memory_provider_ops_t;

#ifdef __cplusplus
}
#endif

#endif
