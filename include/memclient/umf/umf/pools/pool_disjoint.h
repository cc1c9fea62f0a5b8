/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disjoint pool: small allocations from slabs of the provider's memory. All records are elsewhere, so the processor
 * need not be able to read the memory. There is no calloc, realloc and usable size (NULL or 0, and NOT_SUPPORTED).
 *
 * Sizes go into buckets: the powers of 2 from MinBucketSize on, and the middles between them. A bucket cuts slabs of at
 * least SlabMinSize into pieces. An allocation that is larger than half of that is a slab of its own. Freed slabs are
 * kept for the next allocations, as many as Capacity and the limits allow.
 */
#ifndef UMF_DISJOINT_MEMORY_POOL_H
#define UMF_DISJOINT_MEMORY_POOL_H 1

#include "../memory_pool.h"
#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE ((size_t)8)

/* A limit that several pools have in common for the freed slabs that they keep. */
typedef struct umf_disjoint_pool_shared_limits_t umf_disjoint_pool_shared_limits_t;

/* NULL: no memory. */
UMF_API umf_disjoint_pool_shared_limits_t *umfDisjointPoolSharedLimitsCreate(size_t MaxSize);

/* Destroy all pools that use it first. NULL is ignored. */
UMF_API void umfDisjointPoolSharedLimitsDestroy(umf_disjoint_pool_shared_limits_t *limits);

typedef struct umf_disjoint_pool_params_t {
    size_t SlabMinSize;     /* the smallest request to the provider */
    size_t MaxPoolableSize; /* larger allocations are passed on to the provider */
    size_t Capacity;        /* the most freed slabs that each bucket keeps */
    size_t MinBucketSize;   /* the smallest bucket, a power of 2 */
    size_t CurPoolSize;     /* has no effect */
    int PoolTrace;          /* 1: statistics on stderr at the end; 2: of each bucket as well; 3: each call as well */
    umf_disjoint_pool_shared_limits_t *SharedLimits; /* NULL: no limit */
    const char *Name;                                /* for traces; lives as long as the pool */
} umf_disjoint_pool_params_t;

/* A static table. INVALID_ARGUMENT: its params are NULL, or MinBucketSize is no power of 2. */
UMF_API umf_memory_pool_ops_t *umfDisjointPoolOps(void);

/* Everything goes to the provider; no trace; named "disjoint_pool". */
static inline umf_disjoint_pool_params_t umfDisjointPoolParamsDefault(void)
{
    umf_disjoint_pool_params_t params = {
        0, /* SlabMinSize */
        0, /* MaxPoolableSize */
        0, /* Capacity */
        UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE,
        0,               /* CurPoolSize */
        0,               /* PoolTrace */
        NULL,            /* SharedLimits */
        "disjoint_pool", /* Name */
    };

    return params;
}

#ifdef __cplusplus
}
#endif

#endif
