/* SPDX-License-Identifier: Apache-2.0 */
/* Memspaces: sets of NUMA nodes, chosen by what they are good at or by number. */
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
 * Makes a pool of memory of a memspace, spread by a policy (NULL = bound to the memspace, except that all of the host
 * is left to the kernel): the scalable pool, or where TBB is not there jemalloc, or else the disjoint pool.
 *     INVALID_ARGUMENT   hMemspace or hPool is NULL
 */
UMF_API umf_result_t umfPoolCreateFromMemspace(umf_const_memspace_handle_t hMemspace,
                                               umf_const_mempolicy_handle_t hPolicy, umf_memory_pool_handle_t *hPool);

/* Makes a provider likewise. INVALID_ARGUMENT: hMemspace or hProvider is NULL. */
UMF_API umf_result_t umfMemoryProviderCreateFromMemspace(umf_const_memspace_handle_t hMemspace,
                                                         umf_const_mempolicy_handle_t hPolicy,
                                                         umf_memory_provider_handle_t *hProvider);

/* Makes a memspace of nodes; copied, and not checked. INVALID_ARGUMENT: an argument is NULL, or numIds is 0. */
UMF_API umf_result_t umfMemspaceCreateFromNumaArray(unsigned *nodeIds, size_t numIds,
                                                    umf_memspace_handle_t *hMemspace);

/* Ends it. Predefined ones are left alone, NULL is ignored. */
UMF_API void umfMemspaceDestroy(umf_memspace_handle_t hMemspace);

/*
 * The predefined ones, of the nodes that the process may use when the first of them is asked for. They live as long as
 * the library; NULL if the machine does not tell what is asked. The fastest nodes are those that the firmware's HMAT
 * says are the fastest ones for some processors, of the nodes that these are nearest to.
 */
UMF_API umf_const_memspace_handle_t umfMemspaceHostAllGet(void);         /* all nodes with memory */
UMF_API umf_const_memspace_handle_t umfMemspaceHighestCapacityGet(void); /* the largest one */
UMF_API umf_const_memspace_handle_t umfMemspaceHighestBandwidthGet(void);
UMF_API umf_const_memspace_handle_t umfMemspaceLowestLatencyGet(void);

#ifdef __cplusplus
}
#endif

#endif
