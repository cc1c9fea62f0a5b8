/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jemalloc pool: jemalloc over the provider's memory, a copy of our own that has nothing to do with the process's
 * malloc. Its records are not in the provider's memory. NOT_SUPPORTED if the library was built without it.
 */
#ifndef UMF_JEMALLOC_MEMORY_POOL_H
#define UMF_JEMALLOC_MEMORY_POOL_H 1

#include <stdbool.h>

#include "../memory_pool_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* May be left out: NULL. */
typedef struct umf_jemalloc_pool_params_t {
    bool disable_provider_free; /* memory goes back to the provider when the pool is destroyed only */
} umf_jemalloc_pool_params_t;

static inline umf_jemalloc_pool_params_t umfJemallocPoolParamsDefault(void)
{
    umf_jemalloc_pool_params_t params = {false};

    return params;
}

/* A static table. */
UMF_API umf_memory_pool_ops_t *umfJemallocPoolOps(void);

#ifdef __cplusplus
}
#endif

#endif
