/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalable pool: TBB's allocator over the provider's memory. It takes no parameters. TBB (libtbbmalloc.so.2) is
 * loaded when the first such pool is created: NOT_SUPPORTED if it is not installed.
 */
#ifndef UMF_SCALABLE_MEMORY_POOL_H
#define UMF_SCALABLE_MEMORY_POOL_H 1

#include "../memory_pool.h"
#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A static table. */
UMF_API umf_memory_pool_ops_t *umfScalablePoolOps(void);

#ifdef __cplusplus
}
#endif

#endif
