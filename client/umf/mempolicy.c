/* SPDX-License-Identifier: Apache-2.0 */
/* See mempolicy.h. What a policy says is checked where it meets nodes: when a provider is made of it. */
#include "umf/mempolicy.h"

#include <limits.h>
#include <stdlib.h>

umf_result_t umfMempolicyCreate(umf_mempolicy_membind_t bind, umf_mempolicy_handle_t *hPolicy)
{
    umf_mempolicy_handle_t policy;

    if (!hPolicy || (unsigned)bind > UMF_MEMPOLICY_SPLIT)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    policy = calloc(1, sizeof(*policy));
    if (!policy)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    policy->bind = bind;
    *hPolicy = policy;
    return UMF_RESULT_SUCCESS;
}

umf_result_t umfMempolicyDestroy(umf_mempolicy_handle_t hPolicy)
{
    if (hPolicy)
        free(hPolicy->partitions);
    free(hPolicy);
    return UMF_RESULT_SUCCESS;
}

umf_result_t umfMempolicySetInterleavePartSize(umf_mempolicy_handle_t hPolicy, size_t partSize)
{
    if (!hPolicy || hPolicy->bind != UMF_MEMPOLICY_INTERLEAVE)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    hPolicy->part_size = partSize;
    return UMF_RESULT_SUCCESS;
}

umf_result_t umfMempolicySetCustomSplitPartitions(umf_mempolicy_handle_t hPolicy,
                                                  umf_mempolicy_split_partition_t *partList, size_t partListLen)
{
    umf_numa_split_partition_t *copy = NULL;

    if (!hPolicy || hPolicy->bind != UMF_MEMPOLICY_SPLIT || (!partList && partListLen) || partListLen > UINT_MAX)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (partListLen) {
        copy = calloc(partListLen, sizeof(*copy));
        if (!copy)
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; i < partListLen; i++)
        copy[i] = (umf_numa_split_partition_t){.weight = partList[i].weight, .target = partList[i].target};
    free(hPolicy->partitions);
    hPolicy->partitions = copy;
    hPolicy->n_partitions = (unsigned)partListLen;
    return UMF_RESULT_SUCCESS;
}
