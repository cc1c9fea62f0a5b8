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
    /*
     * Of a pool's tracking, the application's provider, which does all that the tracking has no operation for; it may be
     * anything but NULL. Of any other, NULL.
     */
    umf_memory_provider_handle_t upstream;
};
