/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Unified Memory Framework's interface, version 0.9: memory providers, pools over them, and memory shared between
 * processes. Shared memory is memoryd's, see memclient(3); everything else works in the process alone.
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
 * Build with `pkg-config --cflags --libs memclient-umf`. Names, values and layouts are upstream's, so programs need not
 * be changed. The text is about this implementation and told in full in memclient-umf(3).
 *
 * Results. Besides what is named below, a function may return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY (no memory for
 * records) and, of objects with operations of the application's, whatever those return. Results are written without
 * their UMF_RESULT_ERROR_ here and below. Output parameters are untouched on failure.
 *
 * Threads. Every function may be called from any thread; creating and destroying an object comes before and after all
 * other uses of it. Nothing here is async-signal-safe. No thread is started.
 *
 * fork(). Providers and pools work in the child as well. Private memory is the child's own copy, shared memory is the
 * same as the parent's; a handle of memory can be made there as far as memclient(3) allows it. What a pool keeps of
 * shared memory is the same in both too, so only one of them may go on allocating from that pool.
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

/*
 * Begin and end using the library. Neither is needed, and none too many does harm: whatever the library has is a
 * provider's or a pool's and ends with that. umfInit() returns 0.
 */
UMF_API int umfInit(void);
UMF_API void umfTearDown(void);

/* UMF_VERSION_CURRENT as the library was built with. */
UMF_API int umfGetCurrentVersion(void);

#ifdef __cplusplus
}
#endif

#endif
