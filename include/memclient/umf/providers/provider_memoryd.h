/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memoryd provider: buffers of the broker, with all that it can do: any of its pools, any kind of page, placement,
 * names. What upstream's providers cannot share, this one shares: with other users and containers, without rights to
 * trace the producer, and after its end. Each allocation is one buffer, committed, at the same address in every
 * process where that is free. This header is ours alone.
 */
#ifndef UMF_MEMORYD_MEMORY_PROVIDER_H
#define UMF_MEMORYD_MEMORY_PROVIDER_H 1

#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

struct memclient;
struct memclient_buffer;

/*
 * Initialise it with umfMemorydMemoryProviderParamsDefault(). Strings and arrays are copied when the provider is
 * created. Numbers are those of <memclient/memclient.h>.
 */
typedef struct umf_memoryd_memory_provider_params_t {
    size_t size;                /* of this struct */
    struct memclient *context;  /* whose session; NULL = the process-wide one. It outlives the provider */
    const char *pool;           /* a pool of the broker by name; NULL = chosen by nodes and pages */
    const uint32_t *nodes;      /* node numbers in order */
    size_t n_nodes;             /* 0 = any */
    unsigned placement;         /* enum memclient_placement */
    uint64_t part_size;         /* of interleaving */
    const uint32_t *weights;    /* of splitting, n_nodes of them; NULL = equal parts */
    unsigned pages;             /* enum memclient_pages */
    uint64_t page_size;         /* of MEMCLIENT_PAGES_HUGETLB; 0 = the default huge page */
    unsigned flags;             /* MEMCLIENT_PUBLISHABLE */
    unsigned access;            /* of mappings: 0 = reading and writing, MEMCLIENT_READ, MEMCLIENT_NO_ACCESS */
    unsigned shared_rights;     /* what handles for other processes grant: 0 = reading and writing, MEMCLIENT_READ */
    uint64_t wait_ms;           /* how long to wait for room when the pool is full */
    const char *name;           /* bind names "NAME/1", "NAME/2", ... to the buffers, unbound when freed; NULL = none */
    uint64_t keep_ms;           /* a handle keeps its memory for so long after it was made first, even if this process
                                 * ends; freeing ends that. 0 = it opens as long as somebody has the memory */
} umf_memoryd_memory_provider_params_t;

static inline umf_memoryd_memory_provider_params_t umfMemorydMemoryProviderParamsDefault(void)
{
    umf_memoryd_memory_provider_params_t params = {
        sizeof(umf_memoryd_memory_provider_params_t), NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, NULL, 0,
    };

    return params;
}

/* Numbers of umfMemoryProviderGetLastNativeError() are UMF_MEMORYD_RESULTS_START_FROM + errno; the text is
 * memclient_error()'s. */
#define UMF_MEMORYD_RESULTS_START_FROM 3000

/*
 * A static table. params NULL = the default ones. Creating a provider makes no call to the broker, and fails with
 *     INVALID_ARGUMENT   params->size is none, or a number is none of its enum
 */
UMF_API umf_memory_provider_ops_t *umfMemorydMemoryProviderOps(void);

/*
 * The buffer behind an address that came from this provider or the OS provider's shared memory, allocated or opened: a
 * reference more, for memclient_buffer_unref(). INVALID_ARGUMENT: an argument is NULL or nothing of theirs is there.
 */
UMF_API umf_result_t umfMemorydGetBuffer(const void *ptr, struct memclient_buffer **buffer);

/* Which answer is given where UMF's document and its 0.9 releases differ; memclient-umf(3) lists them. */
enum umf_memoryd_profile_t {
    UMF_MEMORYD_PROFILE_DOCUMENT = 0,
    UMF_MEMORYD_PROFILE_UPSTREAM = 1
};

/*
 * Chooses, for the process, from this call on; whatever MEMORYD_UMF_PROFILE (document, the default, or upstream) says.
 * INVALID_ARGUMENT: it is none.
 */
UMF_API umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t profile);

#ifdef __cplusplus
}
#endif

#endif
