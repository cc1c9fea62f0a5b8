/* SPDX-License-Identifier: Apache-2.0 */
/* See heap.h. */
#include "opencl/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
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

#include "base/list.h"
#include "facade/buffer_cache.h"
#include "opencl/error.h"
#include "opencl/free_queue.h"
#include "opencl/table.h"

/*
 * Programs allocate a kilobyte at a time, a hundred thousand times. Slabs are so large that neither mappings nor
 * buffers run out, and so small that a program that needs little does not pay for much.
 */
#define SLAB_SIZE    ((size_t)1 << 20)
#define POOLABLE_MAX ((size_t)1 << 18)
#define SLABS_KEPT   1
#define BUCKET_MIN   64

struct svm_heap {
    unsigned generation;
    size_t poolable_max;
    umf_memory_pool_handle_t pool;
};

/* ---- the cache --------------------------------------------------------------------------------------------------- */

struct slab_cache {
    umf_memory_provider_handle_t memoryd;
    pthread_mutex_t lock;
    struct buffer_cache slabs;
};

/* A slab or a large allocation that was freed. */
struct slab {
    struct cached_buffer cached; /* the allocation's, while it is in the cache */
    struct queued_free queued;   /* or on its way to the memoryd provider */
    struct slab_cache *cache;
    void *ptr;
    size_t size;
};

static void slab_release_queued(struct queued_free *queued)
{
    struct slab *slab = container_of(queued, struct slab, queued);

    (void)umfMemoryProviderFree(slab->cache->memoryd, slab->ptr, slab->size);
    free(slab);
}

static void slab_release(struct cached_buffer *cached)
{
    free_queue_put(&container_of(cached, struct slab, cached)->queued);
}

/* The allocation's whole buffer, mapped as it was allocated; or NULL. */
static struct memclient_buffer *slab_find_buffer(const struct slab *slab)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    if (memclient_address_query(slab->ptr, &info) || info.address != slab->ptr || info.offset ||
        info.length < slab->size || info.access != (MEMCLIENT_READ | MEMCLIENT_WRITE))
        return NULL;
    return info.buffer;
}

static bool slab_cache_put(struct slab_cache *cache, struct slab *slab)
{
    slab->cached.buffer = slab_find_buffer(slab);
    return slab->cached.buffer && buffer_cache_put(&cache->slabs, &slab->cached);
}

struct wanted {
    size_t size, alignment;
};

static bool slab_is_wanted(const struct cached_buffer *cached, const void *context)
{
    const struct slab *slab = container_of((struct cached_buffer *)cached, struct slab, cached);
    const struct wanted *wanted = context;

    return slab->size == wanted->size && (uintptr_t)slab->ptr % (wanted->alignment ? wanted->alignment : 1) == 0;
}

static bool slab_is_any(const struct cached_buffer *cached, const void *unused)
{
    return true;
}

/* Memory of this size, at a multiple of the alignment, out of the cache; NULL: there is none. */
static void *slab_cache_take(struct slab_cache *cache, size_t size, size_t alignment)
{
    const struct wanted wanted = {.size = size, .alignment = alignment};
    struct cached_buffer *cached = buffer_cache_take(&cache->slabs, slab_is_wanted, &wanted);
    struct slab *slab;
    void *ptr;

    if (!cached)
        return NULL;
    slab = container_of(cached, struct slab, cached);
    ptr = slab->ptr;
    free(slab);
    return ptr;
}

/* Empties the cache by the free queue, without waiting. False: it was empty. */
static bool slab_cache_drain(struct slab_cache *cache)
{
    return buffer_cache_drain(&cache->slabs, slab_is_any, NULL);
}

/* ---- the cache as a provider ------------------------------------------------------------------------------------- */

/* The error of this thread's last allocation, if the provider failed. */
static __thread int provider_error;

static umf_result_t provider_initialize(void *params, void **ret)
{
    struct slab_cache *cache = malloc(sizeof(*cache));

    if (!cache)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    cache->memoryd = params;
    pthread_mutex_init(&cache->lock, NULL);
    cache->slabs = (struct buffer_cache){.lock = &cache->lock, .release = slab_release};
    list_init(&cache->slabs.buffers);
    *ret = cache;
    return UMF_RESULT_SUCCESS;
}

static void provider_finalize(void *provider)
{
    struct slab_cache *cache = provider;

    (void)slab_cache_drain(cache);
    free_queue_flush();
    pthread_mutex_destroy(&cache->lock);
    umfMemoryProviderDestroy(cache->memoryd);
    free(cache);
}

/* On failure it empties the cache, which may hold the memory or the addresses that are missing, and tries once more. */
static umf_result_t provider_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct slab_cache *cache = provider;
    umf_result_t result;
    const char *text = "";
    int32_t number = 0;

    *ptr = slab_cache_take(cache, size, alignment);
    if (*ptr)
        return UMF_RESULT_SUCCESS;
    result = umfMemoryProviderAlloc(cache->memoryd, size, alignment, ptr);
    if (result != UMF_RESULT_SUCCESS && slab_cache_drain(cache)) {
        free_queue_flush();
        result = umfMemoryProviderAlloc(cache->memoryd, size, alignment, ptr);
    }
    if (result == UMF_RESULT_SUCCESS)
        return result;
    umfMemoryProviderGetLastNativeError(cache->memoryd, &text, &number);
    provider_error = svm_fail(UMF_MEMORYD_RESULTS_START_FROM - number, "%s", text);
    return result;
}

static umf_result_t provider_free(void *provider, void *ptr, size_t size)
{
    struct slab_cache *cache = provider;
    struct slab *slab = malloc(sizeof(*slab));

    if (!slab)
        return umfMemoryProviderFree(cache->memoryd, ptr, size);
    *slab = (struct slab){.cache = cache, .ptr = ptr, .size = size, .queued.release = slab_release_queued};
    list_init(&slab->queued.link);
    if (!slab_cache_put(cache, slab))
        free_queue_put(&slab->queued);
    return UMF_RESULT_SUCCESS;
}

static void provider_get_last_native_error(void *provider, const char **message, int32_t *error)
{
    const struct slab_cache *cache = provider;

    umfMemoryProviderGetLastNativeError(cache->memoryd, message, error);
}

static umf_result_t provider_get_recommended_page_size(void *provider, size_t size, size_t *page_size)
{
    const struct slab_cache *cache = provider;

    return umfMemoryProviderGetRecommendedPageSize(cache->memoryd, size, page_size);
}

static umf_result_t provider_get_min_page_size(void *provider, void *ptr, size_t *page_size)
{
    const struct slab_cache *cache = provider;

    return umfMemoryProviderGetMinPageSize(cache->memoryd, ptr, page_size);
}

static const char *provider_get_name(void *provider)
{
    return "memoryd-cached";
}

static const umf_memory_provider_ops_t provider_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = provider_initialize,
    .finalize = provider_finalize,
    .alloc = provider_alloc,
    .free = provider_free,
    .get_last_native_error = provider_get_last_native_error,
    .get_recommended_page_size = provider_get_recommended_page_size,
    .get_min_page_size = provider_get_min_page_size,
    .get_name = provider_get_name,
};

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* Makes a prefix that no other heap has. A pid alone is not enough where there are several pid namespaces. */
static int heap_name_prefix(const struct memclient_svm_options *options, char name[MEMCLIENT_NAME_SIZE])
{
    struct memclient_context_info info = MEMCLIENT_CONTEXT_INFO_INIT;
    static atomic_uint heaps;
    int r = svm_native(memclient_context_query(options->context, &info));

    if (!r)
        (void)snprintf(name, MEMCLIENT_NAME_SIZE, "%s/%ld-%" PRIu64 "-%u", options->name, (long)getpid(), info.session,
                       atomic_fetch_add(&heaps, 1) + 1);
    return r;
}

static umf_result_t heap_make_pool(const struct memclient_svm_options *options, const char *name, struct svm_heap *heap)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_disjoint_pool_params_t pool_params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t memoryd, cached;
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
    result = umfMemoryProviderCreate(&provider_ops, memoryd, &cached);
    if (result != UMF_RESULT_SUCCESS) {
        umfMemoryProviderDestroy(memoryd);
        return result;
    }
    result = umfPoolCreate(umfDisjointPoolOps(), cached, &pool_params,
                           UMF_POOL_CREATE_FLAG_OWN_PROVIDER | UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, &heap->pool);
    if (result != UMF_RESULT_SUCCESS)
        umfMemoryProviderDestroy(cached);
    return result;
}

int svm_heap_new(const struct memclient_svm_options *options, struct svm_heap **ret)
{
    char name[MEMCLIENT_NAME_SIZE];
    struct svm_heap *heap;
    int r = heap_name_prefix(options, name);

    if (r)
        return r;
    heap = calloc(1, sizeof(*heap));
    if (!heap)
        return svm_fail(-ENOMEM, "no memory for the records of a heap");
    heap->generation = table_generation();
    heap->poolable_max = options->flags & MEMCLIENT_SVM_SEPARATE ? 0 : POOLABLE_MAX;
    if (heap_make_pool(options, name, heap) != UMF_RESULT_SUCCESS) {
        free(heap);
        return svm_fail(-EINVAL, "the heap cannot be made: the broker may not have that pool, nodes or placement");
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

/* ---- using one --------------------------------------------------------------------------------------------------- */

int svm_heap_alloc(struct svm_heap *heap, size_t size, size_t alignment, void **ret)
{
    void *ptr;

    provider_error = 0;
    ptr = umfPoolAlignedMalloc(heap->pool, size, alignment);
    if (!ptr)
        return provider_error ? provider_error : svm_fail(-ENOMEM, "no memory for the records of an allocation");
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
