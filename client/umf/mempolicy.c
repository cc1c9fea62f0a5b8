/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies, and the providers and pools that are made of a memspace with one. The OS provider checks what both say. A
 * pool uses the best allocator that there is.
 */
#include "umf/memspace.h"

#include <limits.h>
#include <stdlib.h>

#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_scalable.h>

#define SLAB_MIN     ((size_t)64 << 10)
#define POOLABLE_MAX ((size_t)2 << 20)

/* ---- policies ---------------------------------------------------------------------------------------------------- */

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

/* ---- providers and pools ----------------------------------------------------------------------------------------- */

static umf_numa_mode_t mode_of(umf_const_mempolicy_handle_t policy)
{
    static const umf_numa_mode_t modes[] = {
        [UMF_MEMPOLICY_INTERLEAVE] = UMF_NUMA_MODE_INTERLEAVE,
        [UMF_MEMPOLICY_BIND] = UMF_NUMA_MODE_BIND,
        [UMF_MEMPOLICY_PREFERRED] = UMF_NUMA_MODE_PREFERRED,
        [UMF_MEMPOLICY_SPLIT] = UMF_NUMA_MODE_SPLIT,
    };

    return policy ? modes[policy->bind] : UMF_NUMA_MODE_BIND;
}

umf_result_t umfMemoryProviderCreateFromMemspace(umf_const_memspace_handle_t hMemspace,
                                                 umf_const_mempolicy_handle_t hPolicy,
                                                 umf_memory_provider_handle_t *hProvider)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    if (!hMemspace || !hProvider)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (hPolicy || !hMemspace->everywhere) {
        params.numa_mode = mode_of(hPolicy);
        params.numa_list = (unsigned *)hMemspace->nodes; /* it is only read */
        params.numa_list_len = hMemspace->n;
    }
    if (hPolicy) {
        params.part_size = hPolicy->part_size;
        params.partitions = hPolicy->partitions;
        params.partitions_len = hPolicy->n_partitions;
    }
    return umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, hProvider);
}

/* A pool returns NOT_SUPPORTED if its allocator is not installed. */
static umf_result_t create_pool(umf_memory_provider_handle_t provider, umf_memory_pool_handle_t *pool)
{
    const umf_memory_pool_ops_t *ops[] = {umfScalablePoolOps(), umfJemallocPoolOps()};
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();

    for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        umf_result_t result = umfPoolCreate(ops[i], provider, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, pool);

        if (result != UMF_RESULT_ERROR_NOT_SUPPORTED)
            return result;
    }
    params.SlabMinSize = SLAB_MIN;
    params.MaxPoolableSize = POOLABLE_MAX;
    params.Capacity = 4;
    return umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, pool);
}

umf_result_t umfPoolCreateFromMemspace(umf_const_memspace_handle_t hMemspace, umf_const_mempolicy_handle_t hPolicy,
                                       umf_memory_pool_handle_t *hPool)
{
    umf_memory_provider_handle_t provider;
    umf_result_t result;

    if (!hMemspace || !hPool)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderCreateFromMemspace(hMemspace, hPolicy, &provider);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = create_pool(provider, hPool);
    if (result != UMF_RESULT_SUCCESS)
        umfMemoryProviderDestroy(provider);
    return result;
}
