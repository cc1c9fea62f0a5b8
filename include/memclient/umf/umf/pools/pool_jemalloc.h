/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jemalloc pool: jemalloc over the provider's memory. It is a private copy, independent of the process's malloc.
 * Its records are not in the provider's memory. NOT_SUPPORTED if the library was built without it.
 */
#ifndef UMF_JEMALLOC_MEMORY_POOL_H
#define UMF_JEMALLOC_MEMORY_POOL_H 1

#include <stdbool.h>

#include "../memory_pool_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL may be passed instead. */
typedef struct umf_jemalloc_pool_params_t {
    bool disable_provider_free; /* memory goes back to the provider only when the pool is destroyed */
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
