/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Unified Memory Framework's interface, version 0.9: memory providers, pools over them, and memory shared between
 * processes. Shared memory comes from memoryd, see memclient(3). Everything else works in the process alone.
 *
 *     umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
 *     umf_memory_provider_handle_t provider;
 *     umf_memory_pool_handle_t pool;
 *
 *     params.visibility = UMF_MEM_MAP_SHARED;
 *     umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider);
 *     umfPoolCreate(umfDisjointPoolOps(), provider, &disjoint_params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);
 *     void *p = umfPoolMalloc(pool, 100);
 *
 * Build with `pkg-config --cflags --libs memclient-umf`. Names, values and layouts are upstream's, so programs need no
 * change. The comments describe this implementation; memclient-umf(3) has the details.
 *
 * Results. Besides those listed below, a function may return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY (no memory for
 * records). Functions on objects with the application's operations also return what those return. The comments leave
 * out the prefix UMF_RESULT_ERROR_. Output parameters are untouched on failure.
 *
 * Threads. Every function may be called from any thread. An object must be created before all other uses of it, and
 * destroyed after them. Nothing here is async-signal-safe. No thread is started.
 *
 * fork(). Providers and pools work in the child as well. Private memory is the child's own copy; shared memory is the
 * same as the parent's. Handles can be made in the child as far as memclient(3) allows. What a pool keeps of shared
 * memory is the same in both, too, so only one of them may go on allocating from it.
 *
 * Sizes are in bytes.
 */
#ifndef UMF_UNIFIED_MEMORY_FRAMEWORK_H
#define UMF_UNIFIED_MEMORY_FRAMEWORK_H 1

#include "umf/base.h"
#include "umf/memory_pool.h"
#include "umf/memory_provider.h"
#include "umf/mempolicy.h"
#include "umf/memspace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Neither is needed, and extra calls do no harm: all that the library has belongs to a provider or a pool, and ends
 * with it. umfInit() returns 0. */
UMF_API int umfInit(void);
UMF_API void umfTearDown(void);

/* Returns the UMF_VERSION_CURRENT that the library was built with. */
UMF_API int umfGetCurrentVersion(void);

#ifdef __cplusplus
}
#endif

#endif
