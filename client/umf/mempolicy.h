/* SPDX-License-Identifier: Apache-2.0 */
/* A policy: how memory is spread over the nodes of a memspace. It is only looked at when a provider is made. */
#pragma once

#include <memclient/umf/umf/mempolicy.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

struct umf_mempolicy_t {
    umf_mempolicy_membind_t bind;
    size_t part_size;                       /* of INTERLEAVE */
    umf_numa_split_partition_t *partitions; /* of SPLIT, ours */
    unsigned n_partitions;
};
