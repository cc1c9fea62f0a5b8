/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers of a memspace: what memspace and policy say, said to the OS provider.
 */
#include <memclient/umf/providers/provider_os_memory.h>

#include "umf/mempolicy.h"
#include "umf/memspace.h"

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
