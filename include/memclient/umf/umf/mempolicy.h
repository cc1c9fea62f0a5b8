/* SPDX-License-Identifier: Apache-2.0 */
/* How memory is spread over the nodes of a memspace. */
#ifndef UMF_MEMPOLICY_H
#define UMF_MEMPOLICY_H 1

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct umf_mempolicy_t *umf_mempolicy_handle_t;
typedef const struct umf_mempolicy_t *umf_const_mempolicy_handle_t;

typedef enum umf_mempolicy_membind_t {
    UMF_MEMPOLICY_INTERLEAVE = 0, /* parts on each node in turn: pages, or umfMempolicySetInterleavePartSize() */
    UMF_MEMPOLICY_BIND = 1,       /* on the nodes; first that of the calling thread, then the nearest to it */
    UMF_MEMPOLICY_PREFERRED = 2,  /* the same, but elsewhere if they are full */
    /* one piece on each node: equal ones, or umfMempolicySetCustomSplitPartitions() */
    UMF_MEMPOLICY_SPLIT = 3
} umf_mempolicy_membind_t;

/* A piece of an allocation, on node `target`. Its share is its weight in the sum of all weights. */
typedef struct umf_mempolicy_split_partition_t {
    unsigned weight;
    unsigned target;
} umf_mempolicy_split_partition_t;

/* Makes a policy. INVALID_ARGUMENT: hPolicy is NULL, or bind is invalid. */
UMF_API umf_result_t umfMempolicyCreate(umf_mempolicy_membind_t bind, umf_mempolicy_handle_t *hPolicy);

/* Destroys it. Pools and providers that were made with it are not affected. NULL is ignored. */
UMF_API umf_result_t umfMempolicyDestroy(umf_mempolicy_handle_t hPolicy);

/* The size of UMF_MEMPOLICY_INTERLEAVE's parts; 0: pages. INVALID_ARGUMENT: hPolicy is NULL or another policy. */
UMF_API umf_result_t umfMempolicySetInterleavePartSize(umf_mempolicy_handle_t hPolicy, size_t partSize);

/* The pieces of UMF_MEMPOLICY_SPLIT, in order; copied. partListLen 0: equal pieces.
 *     INVALID_ARGUMENT   hPolicy is NULL or another policy, or partList is NULL and partListLen is not 0 */
UMF_API umf_result_t umfMempolicySetCustomSplitPartitions(umf_mempolicy_handle_t hPolicy,
                                                          umf_mempolicy_split_partition_t *partList,
                                                          size_t partListLen);

#ifdef __cplusplus
}
#endif

#endif
