/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider's operations in UMF's releases 1.x. What was in structs of its own in 0.9 is in this one, and what
 * returned nothing or a string returns a result. Releases after 1.0 add members at the end, check the version before
 * they use them, and find NULL here.
 */
#pragma once

#include <memclient/umf/umf/base.h>

#define UMF1_OPS_VERSION UMF_MAKE_VERSION(1, 0)

struct umf1_ops {
    uint32_t version;
    umf_result_t (*initialize)(const void *params, void **provider);
    umf_result_t (*finalize)(void *provider);
    umf_result_t (*alloc)(void *provider, size_t size, size_t alignment, void **ptr);
    umf_result_t (*free)(void *provider, void *ptr, size_t size);
    umf_result_t (*get_last_native_error)(void *provider, const char **message, int32_t *error);
    umf_result_t (*get_recommended_page_size)(void *provider, size_t size, size_t *page_size);
    umf_result_t (*get_min_page_size)(void *provider, const void *ptr, size_t *page_size);
    umf_result_t (*get_name)(void *provider, const char **name);
    umf_result_t (*ext_purge_lazy)(void *provider, void *ptr, size_t size);
    umf_result_t (*ext_purge_force)(void *provider, void *ptr, size_t size);
    umf_result_t (*ext_allocation_merge)(void *provider, void *low, void *high, size_t total);
    umf_result_t (*ext_allocation_split)(void *provider, void *ptr, size_t total, size_t first);
    umf_result_t (*ext_get_ipc_handle_size)(void *provider, size_t *size);
    umf_result_t (*ext_get_ipc_handle)(void *provider, const void *ptr, size_t size, void *data);
    umf_result_t (*ext_put_ipc_handle)(void *provider, void *data);
    umf_result_t (*ext_open_ipc_handle)(void *provider, void *data, void **ptr);
    umf_result_t (*ext_close_ipc_handle)(void *provider, void *ptr, size_t size);
    void (*ext_ctl)(void);
    void (*added_in_1_1[2])(void); /* properties of allocations */
};
