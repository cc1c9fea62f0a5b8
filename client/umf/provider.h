/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider: a table of operations and what they work on. It does nothing by itself, except that it says which one
 * failed last.
 */
#pragma once

#include <memclient/umf/umf/memory_provider.h>

struct umf_memory_provider_t {
    umf_memory_provider_ops_t ops;
    void *priv;
    /* The one that failed if this does: itself, or the application's that it stands before. Not looked at. */
    umf_memory_provider_handle_t shown;
};

/* umfMemoryProviderCreate() of a table that is known to be good. shown NULL = itself. */
umf_result_t provider_new(const umf_memory_provider_ops_t *ops, void *params, umf_memory_provider_handle_t shown,
                          umf_memory_provider_handle_t *ret);
