/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OS memory provider: pages of the operating system on the given NUMA nodes, private to the process or, through
 * memoryd, shared with others.
 *
 * Private memory is anonymous memory: its pages are allocated when they are touched. Each allocation of shared memory
 * is a buffer of the broker. All its pages are allocated with it, so touching it never fails. It has the same address
 * in all processes where that is free.
 */
#ifndef UMF_OS_MEMORY_PROVIDER_H
#define UMF_OS_MEMORY_PROVIDER_H 1

#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UMF_OS_RESULTS_START_FROM 1000

/* What the process may do with the memory; a bit mask. */
typedef enum umf_mem_protection_flags_t {
    UMF_PROTECTION_NONE = (1 << 0), /* nothing */
    UMF_PROTECTION_READ = (1 << 1),
    UMF_PROTECTION_WRITE = (1 << 2),
    UMF_PROTECTION_EXEC = (1 << 3),
    UMF_PROTECTION_MAX /* no flag */
} umf_mem_protection_flags_t;

typedef enum umf_memory_visibility_t { UMF_MEM_MAP_PRIVATE = 1, UMF_MEM_MAP_SHARED = 2 } umf_memory_visibility_t;

/* Of the nodes that a mode permits, the calling thread's own comes first, then the nearest to it. For private memory
 * that is the thread that touches it, for shared memory the thread that allocates it. */
typedef enum umf_numa_mode_t {
    UMF_NUMA_MODE_DEFAULT = 0,    /* as the calling thread's policy says; numa_list is empty. Shared memory skips nodes
                                   * of the policy that the broker has no memory on; if none is left, it is on any */
    UMF_NUMA_MODE_BIND = 1,       /* only on nodes of the list */
    UMF_NUMA_MODE_INTERLEAVE = 2, /* parts of part_size on the nodes of the list in turn, in order */
    UMF_NUMA_MODE_PREFERRED = 3,  /* on nodes of the list, else on others; without a list, on the calling thread's */
    UMF_NUMA_MODE_SPLIT = 4,      /* one piece on each node of the list: equal ones, or as partitions say */
    UMF_NUMA_MODE_LOCAL = 5       /* on the calling thread's node; numa_list is empty */
} umf_numa_mode_t;

/* A piece of an allocation, on node `target` of numa_list. Its share is its weight in the sum of all weights. In shared
 * memory each node has one piece, with the sum of the weights that name it. */
typedef struct umf_numa_split_partition_t {
    unsigned weight;
    unsigned target;
} umf_numa_split_partition_t;

/* Copied when the provider is created. */
typedef struct umf_os_memory_provider_params_t {
    unsigned protection; /* mask of umf_mem_protection_flags_t */
    umf_memory_visibility_t visibility;
    char *shm_name; /* of shared memory: its name in the broker's listings; may be NULL */
    unsigned *numa_list;
    unsigned numa_list_len;
    umf_numa_mode_t numa_mode;
    size_t part_size;                       /* of INTERLEAVE; rounded up to pages; 0: a page */
    umf_numa_split_partition_t *partitions; /* of SPLIT; NULL: equal pieces */
    unsigned partitions_len;
} umf_os_memory_provider_params_t;

/* Numbers of umfMemoryProviderGetLastNativeError(). */
typedef enum umf_os_memory_provider_native_error {
    UMF_OS_RESULT_SUCCESS = UMF_OS_RESULTS_START_FROM,
    UMF_OS_RESULT_ERROR_ALLOC_FAILED = 1001,
    UMF_OS_RESULT_ERROR_ADDRESS_NOT_ALIGNED = 1002,
    UMF_OS_RESULT_ERROR_BIND_FAILED = 1003,
    UMF_OS_RESULT_ERROR_FREE_FAILED = 1004,
    UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED = 1005,
    UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED = 1006,
    UMF_OS_RESULT_ERROR_TOPO_DISCOVERY_FAILED = 1007
} umf_os_memory_provider_native_error_t;

/*
 * A static table. Creating a provider fails with
 *     INVALID_ARGUMENT           params is NULL; the protection or visibility is invalid; the mode and numa_list do not
 *                                go together; of partitions, in any mode, a weight is 0 or a target not in numa_list
 *     MEMORY_PROVIDER_SPECIFIC   the machine's nodes cannot be determined (TOPO_DISCOVERY_FAILED)
 */
UMF_API umf_memory_provider_ops_t *umfOsMemoryProviderOps(void);

/* Private memory for reading and writing, on any node. */
static inline umf_os_memory_provider_params_t umfOsMemoryProviderParamsDefault(void)
{
    umf_os_memory_provider_params_t params = {
        UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, /* protection */
        UMF_MEM_MAP_PRIVATE,                        /* visibility */
        NULL,                                       /* shm_name */
        NULL,                                       /* numa_list */
        0,                                          /* numa_list_len */
        UMF_NUMA_MODE_DEFAULT,                      /* numa_mode */
        0,                                          /* part_size */
        NULL,                                       /* partitions */
        0,                                          /* partitions_len */
    };

    return params;
}

#ifdef __cplusplus
}
#endif

#endif
