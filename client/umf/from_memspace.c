/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers and pools of a memspace: what memspace and policy say, said to the OS provider; and the best pool there is
 * upon it.
 */
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_scalable.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "umf/mempolicy.h"
#include "umf/memspace.h"

#define SLAB_MIN     ((size_t)64 << 10)
#define POOLABLE_MAX ((size_t)2 << 20)

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
        params.numa_list = (unsigned *)hMemspace->nodes; /* which is not written to */
        params.numa_list_len = hMemspace->n;
    }
    if (hPolicy) {
        params.part_size = hPolicy->part_size;
        params.partitions = hPolicy->partitions;
        params.partitions_len = hPolicy->n_partitions;
    }
    return umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, hProvider);
}

/* NOT_SUPPORTED: the allocator that it stands on is not on this machine. */
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
