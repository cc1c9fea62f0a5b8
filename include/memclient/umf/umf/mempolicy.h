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
    UMF_MEMPOLICY_INTERLEAVE = 0, /* parts in turn on each node: pages, or umfMempolicySetInterleavePartSize() */
    UMF_MEMPOLICY_BIND = 1,       /* on the nodes, that of the calling thread or the nearest to it first */
    UMF_MEMPOLICY_PREFERRED = 2,  /* likewise, elsewhere if they are full */
    /* one piece on each node, equal ones or umfMempolicySetCustomSplitPartitions() */
    UMF_MEMPOLICY_SPLIT = 3
} umf_mempolicy_membind_t;

/* A piece of an allocation: weight of the sum of all weights, on node `target`. */
typedef struct umf_mempolicy_split_partition_t {
    unsigned weight;
    unsigned target;
} umf_mempolicy_split_partition_t;

/* Makes a policy. INVALID_ARGUMENT: hPolicy is NULL, or bind is none. */
UMF_API umf_result_t umfMempolicyCreate(umf_mempolicy_membind_t bind, umf_mempolicy_handle_t *hPolicy);

/* Ends it; pools and providers made with it go on. NULL is ignored. */
UMF_API umf_result_t umfMempolicyDestroy(umf_mempolicy_handle_t hPolicy);

/* Size of the parts of UMF_MEMPOLICY_INTERLEAVE; 0 = pages. INVALID_ARGUMENT: hPolicy is NULL or another policy. */
UMF_API umf_result_t umfMempolicySetInterleavePartSize(umf_mempolicy_handle_t hPolicy, size_t partSize);

/*
 * The pieces of UMF_MEMPOLICY_SPLIT, in their order; copied. partListLen 0 = equal pieces.
 *     INVALID_ARGUMENT   hPolicy is NULL or another policy, or partList is NULL and partListLen is not 0
 */
UMF_API umf_result_t umfMempolicySetCustomSplitPartitions(umf_mempolicy_handle_t hPolicy,
                                                          umf_mempolicy_split_partition_t *partList,
                                                          size_t partListLen);

#ifdef __cplusplus
}
#endif

#endif
