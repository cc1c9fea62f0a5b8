/* SPDX-License-Identifier: Apache-2.0 */
/* Memspaces: sets of NUMA nodes, chosen by their qualities or by number. */
#ifndef UMF_MEMSPACE_H
#define UMF_MEMSPACE_H 1

#include "base.h"
#include "memory_pool.h"
#include "memory_provider.h"
#include "mempolicy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct umf_memspace_t *umf_memspace_handle_t;
typedef const struct umf_memspace_t *umf_const_memspace_handle_t;

/*
 * Makes a pool of a memspace's memory, spread by a policy. Without a policy (NULL) it is bound to the memspace, or left
 * to the kernel if that is the whole host. It is the scalable pool; without TBB the jemalloc pool; else the disjoint
 * pool.
 *     INVALID_ARGUMENT   hMemspace or hPool is NULL
 */
UMF_API umf_result_t umfPoolCreateFromMemspace(umf_const_memspace_handle_t hMemspace,
                                               umf_const_mempolicy_handle_t hPolicy, umf_memory_pool_handle_t *hPool);

/* Makes a provider in the same way. INVALID_ARGUMENT: hMemspace or hProvider is NULL. */
UMF_API umf_result_t umfMemoryProviderCreateFromMemspace(umf_const_memspace_handle_t hMemspace,
                                                         umf_const_mempolicy_handle_t hPolicy,
                                                         umf_memory_provider_handle_t *hProvider);

/* Makes a memspace of these nodes, which are copied and not checked. INVALID_ARGUMENT: an argument is NULL, or numIds
 * is 0. */
UMF_API umf_result_t umfMemspaceCreateFromNumaArray(unsigned *nodeIds, size_t numIds, umf_memspace_handle_t *hMemspace);

/* Destroys it. Predefined memspaces and NULL are ignored. */
UMF_API void umfMemspaceDestroy(umf_memspace_handle_t hMemspace);

/*
 * The predefined memspaces have the nodes that the process may use when it first asks for one of them. They live as
 * long as the library. NULL: the machine does not report what is needed. The fastest nodes are those that are, by the
 * firmware's HMAT, the fastest for some processors of all nodes that are nearest to these.
 */
UMF_API umf_const_memspace_handle_t umfMemspaceHostAllGet(void);         /* all nodes with memory */
UMF_API umf_const_memspace_handle_t umfMemspaceHighestCapacityGet(void); /* the largest one */
UMF_API umf_const_memspace_handle_t umfMemspaceHighestBandwidthGet(void);
UMF_API umf_const_memspace_handle_t umfMemspaceLowestLatencyGet(void);

#ifdef __cplusplus
}
#endif

#endif
