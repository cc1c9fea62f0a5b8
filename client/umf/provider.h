/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider: a table of operations and what they work on. It does nothing by itself, except that it says which one
 * failed last.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/memory_provider.h>

struct umf_memory_provider_t {
    umf_memory_provider_ops_t ops;
    void *priv;
    bool internal; /* stands before one of the application's, and never is the one that failed */
};

/* umfMemoryProviderCreate(); the table is ours if it is internal. */
umf_result_t provider_new(const umf_memory_provider_ops_t *ops, void *params, bool internal,
                          umf_memory_provider_handle_t *ret);
