/* SPDX-License-Identifier: Apache-2.0 */
/* See heap.h. */
#include "opencl/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memclient/memclient.h>
#include <memclient/svm.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/memory_provider_ops.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "opencl/cached.h"
#include "opencl/error.h"
#include "opencl/free_queue.h"
#include "opencl/table.h"

/*
 * Programs ask for a kilobyte at a time, a hundred thousand times: slabs are so large that neither mappings nor buffers
 * run out, and so small that a program that needs little does not pay for much.
 */
#define SLAB_SIZE     ((size_t)1 << 20)
#define POOLABLE_MAX  ((size_t)1 << 18)
#define SLABS_KEPT    1
#define BUCKET_MIN    64

struct svm_heap {
    unsigned generation;
    size_t poolable_max;
    umf_memory_pool_handle_t pool;
};

/* ---- the provider between --------------------------------------------------------------------------------- */

struct later {
    umf_memory_provider_handle_t memoryd;
    struct cached_slabs cached;
};

/* Of this thread's last allocation, if it was the provider that failed. */
static __thread int failure;

static umf_result_t later_initialize(void *params, void **ret)
{
    struct later *later = malloc(sizeof(*later));

    if (!later)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    later->memoryd = params;
    cached_init(&later->cached);
    *ret = later;
    return UMF_RESULT_SUCCESS;
}

static void later_finalize(void *provider)
{
    struct later *later = provider;

    (void)cached_return_all(&later->cached);
    free_queue_flush();
    cached_deinit(&later->cached);
    umfMemoryProviderDestroy(later->memoryd);
    free(later);
}

/* What was freed may be enough, or in the way. */
static umf_result_t later_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct later *later = provider;
    umf_result_t result;
    const char *text = "";
    int32_t number = 0;

    *ptr = cached_take(&later->cached, size, alignment);
    if (*ptr)
        return UMF_RESULT_SUCCESS;
    result = umfMemoryProviderAlloc(later->memoryd, size, alignment, ptr);
    if (result != UMF_RESULT_SUCCESS && cached_return_all(&later->cached)) {
        free_queue_flush();
        result = umfMemoryProviderAlloc(later->memoryd, size, alignment, ptr);
    }
    if (result == UMF_RESULT_SUCCESS)
        return result;
    umfMemoryProviderGetLastNativeError(later->memoryd, &text, &number);
    failure = svm_fail(UMF_MEMORYD_RESULTS_START_FROM - number, "%s", text);
    return result;
}

static void release_slab(struct queued_free *queued)
{
    struct cached_slab *slab = container_of(queued, struct cached_slab, queued);

    (void)umfMemoryProviderFree(slab->memoryd, slab->ptr, slab->size);
    free(slab);
}

static umf_result_t later_free(void *provider, void *ptr, size_t size)
{
    struct later *later = provider;
    struct cached_slab *slab = malloc(sizeof(*slab));

    if (!slab)
        return umfMemoryProviderFree(later->memoryd, ptr, size);
    *slab = (struct cached_slab){.memoryd = later->memoryd, .ptr = ptr, .size = size, .queued.release = release_slab};
    list_init(&slab->queued.link);
    list_init(&slab->link);
    if (!cached_put(&later->cached, slab))
        free_queue_put(&slab->queued);
    return UMF_RESULT_SUCCESS;
}

static void later_get_last_native_error(void *provider, const char **message, int32_t *error)
{
    const struct later *later = provider;

    umfMemoryProviderGetLastNativeError(later->memoryd, message, error);
}

static umf_result_t later_get_recommended_page_size(void *provider, size_t size, size_t *page_size)
{
    const struct later *later = provider;

    return umfMemoryProviderGetRecommendedPageSize(later->memoryd, size, page_size);
}

static umf_result_t later_get_min_page_size(void *provider, void *ptr, size_t *page_size)
{
    const struct later *later = provider;

    return umfMemoryProviderGetMinPageSize(later->memoryd, ptr, page_size);
}

static const char *later_get_name(void *provider)
{
    return "memoryd-later";
}

static const umf_memory_provider_ops_t later_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = later_initialize,
    .finalize = later_finalize,
    .alloc = later_alloc,
    .free = later_free,
    .get_last_native_error = later_get_last_native_error,
    .get_recommended_page_size = later_get_recommended_page_size,
    .get_min_page_size = later_get_min_page_size,
    .get_name = later_get_name,
};

/* ---- making one ------------------------------------------------------------------------------------------- */

/* Unlike those of any other heap: pids are not, where there are several namespaces of them. */
static int begin_of_names(const struct memclient_svm_options *options, char name[MEMCLIENT_NAME_SIZE])
{
    struct memclient_connection_info info = MEMCLIENT_CONNECTION_INFO_INIT;
    static atomic_uint heaps;
    int r = svm_native(memclient_connection(options->context, &info));

    if (!r)
        (void)snprintf(name, MEMCLIENT_NAME_SIZE, "%s/%ld-%" PRIu64 "-%u", options->name, (long)getpid(), info.session,
                       atomic_fetch_add(&heaps, 1) + 1);
    return r;
}

static umf_result_t make_pool(const struct memclient_svm_options *options, const char *name, struct svm_heap *heap)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_disjoint_pool_params_t pool_params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t memoryd, later;
    umf_result_t result;

    params.context = options->context;
    params.pool = options->pool;
    params.nodes = options->nodes;
    params.n_nodes = options->n_nodes;
    params.placement = options->placement;
    params.name = name;
    pool_params.SlabMinSize = SLAB_SIZE;
    pool_params.MaxPoolableSize = heap->poolable_max;
    pool_params.Capacity = SLABS_KEPT;
    pool_params.MinBucketSize = BUCKET_MIN;
    pool_params.Name = "svm";

    result = umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &memoryd);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = umfMemoryProviderCreate(&later_ops, memoryd, &later);
    if (result != UMF_RESULT_SUCCESS) {
        umfMemoryProviderDestroy(memoryd);
        return result;
    }
    result = umfPoolCreate(umfDisjointPoolOps(), later, &pool_params,
                           UMF_POOL_CREATE_FLAG_OWN_PROVIDER | UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, &heap->pool);
    if (result != UMF_RESULT_SUCCESS)
        umfMemoryProviderDestroy(later);
    return result;
}

int svm_heap_new(const struct memclient_svm_options *options, struct svm_heap **ret)
{
    char name[MEMCLIENT_NAME_SIZE];
    struct svm_heap *heap;
    int r = begin_of_names(options, name);

    if (r)
        return r;
    heap = calloc(1, sizeof(*heap));
    if (!heap)
        return svm_fail(-ENOMEM, "no memory for the records of a heap");
    heap->generation = table_generation();
    heap->poolable_max = options->flags & MEMCLIENT_SVM_SEPARATE ? 0 : POOLABLE_MAX;
    if (make_pool(options, name, heap) != UMF_RESULT_SUCCESS) {
        free(heap);
        return svm_fail(-EINVAL, "no heap can be made so: see that pool, nodes and placement are what the broker has");
    }
    *ret = heap;
    return 0;
}

void svm_heap_free(struct svm_heap *heap)
{
    if (!heap || heap->generation != table_generation())
        return;
    umfPoolDestroy(heap->pool);
    free(heap);
}

/* ---- using one -------------------------------------------------------------------------------------------- */

int svm_heap_alloc(struct svm_heap *heap, size_t size, size_t alignment, void **ret)
{
    void *ptr;

    failure = 0;
    ptr = umfPoolAlignedMalloc(heap->pool, size, alignment);
    if (!ptr)
        return failure ? failure : svm_fail(-ENOMEM, "no memory for the records of an allocation");
    *ret = ptr;
    return 0;
}

void svm_heap_release(struct svm_heap *heap, void *ptr)
{
    (void)umfPoolFree(heap->pool, ptr);
}

bool svm_heap_is_separate(const struct svm_heap *heap, size_t size)
{
    return size > heap->poolable_max;
}

unsigned svm_heap_generation(const struct svm_heap *heap)
{
    return heap->generation;
}
