/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy pool passes each allocation and each free on to the provider. It has no calloc, realloc and usable size
 * (NULL or 0, and NOT_SUPPORTED), and takes no parameters.
 */
#ifndef UMF_PROXY_MEMORY_POOL_H
#define UMF_PROXY_MEMORY_POOL_H 1

#include "../memory_pool.h"
#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A static table. */
UMF_API umf_memory_pool_ops_t *umfProxyPoolOps(void);

#ifdef __cplusplus
}
#endif

#endif
