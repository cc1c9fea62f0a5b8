/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers of a user's own, in C: one over malloc() that counts what it is asked and can fail at any call, one that
 * does nothing, and one that traces another one.
 */
#include "program.h"

enum { CALLS = 16 };

/* ---- a provider over malloc -------------------------------------------------------------------------------------- */

struct heap {
    unsigned allocs, frees, live;
    unsigned fail_at; /* the call of alloc that fails, counted from 1; 0 = none */
    unsigned fail_free_at;
    enum umf_result_t failure;
};

static umf_result_t heap_initialize(void *params, void **provider)
{
    *provider = params;
    return params ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

static void heap_finalize(void *provider)
{
    (void)provider;
}

static umf_result_t heap_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct heap *heap = provider;
    size_t least = alignment < sizeof(void *) ? sizeof(void *) : alignment;

    if (++heap->allocs == heap->fail_at)
        return heap->failure;
    if (posix_memalign(ptr, least, size))
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    heap->live++;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t heap_free(void *provider, void *ptr, size_t size)
{
    struct heap *heap = provider;

    (void)size;
    if (++heap->frees == heap->fail_free_at)
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    heap->live -= ptr ? 1 : 0;
    free(ptr);
    return UMF_RESULT_SUCCESS;
}

static void heap_error(void *provider, const char **text, int32_t *number)
{
    (void)provider;
    *text = "the heap failed";
    *number = 17;
}

static umf_result_t heap_page(void *provider, size_t size, size_t *page)
{
    (void)provider;
    (void)size;
    *page = 4096;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t heap_least_page(void *provider, void *ptr, size_t *page)
{
    (void)ptr;
    return heap_page(provider, 0, page);
}

static const char *heap_name(void *provider)
{
    (void)provider;
    return "heap";
}

static umf_result_t heap_purge(void *provider, void *ptr, size_t size)
{
    (void)provider;
    (void)ptr;
    (void)size;
    return UMF_RESULT_SUCCESS;
}

/* No block of malloc()'s can be cut, but it can be said that it was. */
static umf_result_t heap_merge(void *provider, void *low, void *high, size_t total)
{
    (void)high;
    return heap_purge(provider, low, total);
}

static umf_result_t heap_split(void *provider, void *ptr, size_t total, size_t first)
{
    (void)first;
    return heap_purge(provider, ptr, total);
}

static const umf_memory_provider_ops_t heap_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = heap_initialize,
    .finalize = heap_finalize,
    .alloc = heap_alloc,
    .free = heap_free,
    .get_last_native_error = heap_error,
    .get_recommended_page_size = heap_page,
    .get_min_page_size = heap_least_page,
    .get_name = heap_name,
    .ext.purge_lazy = heap_purge,
    .ext.purge_force = heap_purge,
};

static umf_memory_provider_handle_t make_heap(struct heap *heap)
{
    umf_memory_provider_handle_t provider = NULL;

    NEED(umfMemoryProviderCreate(&heap_ops, heap, &provider));
    NEED_TRUE(strcmp(umfMemoryProviderGetName(provider), "heap") == 0);
    return provider;
}

/* ---- one that traces another one --------------------------------------------------------------------------------- */

struct trace {
    umf_memory_provider_handle_t behind;
    const char *calls[CALLS]; /* the last one's name first */
    unsigned n_calls;
};

static void note(struct trace *trace, const char *call)
{
    memmove(&trace->calls[1], &trace->calls[0], (CALLS - 1) * sizeof(trace->calls[0]));
    trace->calls[0] = call;
    trace->n_calls++;
}

static umf_result_t trace_initialize(void *params, void **provider)
{
    *provider = params;
    return UMF_RESULT_SUCCESS;
}

static void trace_finalize(void *provider)
{
    note(provider, "finalize");
}

static umf_result_t trace_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct trace *trace = provider;

    note(trace, "alloc");
    return umfMemoryProviderAlloc(trace->behind, size, alignment, ptr);
}

static umf_result_t trace_free(void *provider, void *ptr, size_t size)
{
    struct trace *trace = provider;

    note(trace, "free");
    return umfMemoryProviderFree(trace->behind, ptr, size);
}

static void trace_error(void *provider, const char **text, int32_t *number)
{
    struct trace *trace = provider;

    note(trace, "error");
    umfMemoryProviderGetLastNativeError(trace->behind, text, number);
}

static umf_result_t trace_page(void *provider, size_t size, size_t *page)
{
    struct trace *trace = provider;

    note(trace, "page");
    return umfMemoryProviderGetRecommendedPageSize(trace->behind, size, page);
}

static umf_result_t trace_least_page(void *provider, void *ptr, size_t *page)
{
    struct trace *trace = provider;

    note(trace, "least page");
    return umfMemoryProviderGetMinPageSize(trace->behind, ptr, page);
}

static const char *trace_name(void *provider)
{
    (void)provider;
    return "trace";
}

static umf_result_t trace_purge(void *provider, void *ptr, size_t size)
{
    struct trace *trace = provider;

    note(trace, "purge");
    return umfMemoryProviderPurgeForce(trace->behind, ptr, size);
}

static umf_result_t trace_merge(void *provider, void *low, void *high, size_t total)
{
    struct trace *trace = provider;

    note(trace, "merge");
    return umfMemoryProviderAllocationMerge(trace->behind, low, high, total);
}

static umf_result_t trace_split(void *provider, void *ptr, size_t total, size_t first)
{
    struct trace *trace = provider;

    note(trace, "split");
    return umfMemoryProviderAllocationSplit(trace->behind, ptr, total, first);
}

static const umf_memory_provider_ops_t trace_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = trace_initialize,
    .finalize = trace_finalize,
    .alloc = trace_alloc,
    .free = trace_free,
    .get_last_native_error = trace_error,
    .get_recommended_page_size = trace_page,
    .get_min_page_size = trace_least_page,
    .get_name = trace_name,
    .ext = {.purge_lazy = trace_purge,
            .purge_force = trace_purge,
            .allocation_merge = trace_merge,
            .allocation_split = trace_split},
};

/* ---- one that does nothing --------------------------------------------------------------------------------------- */

static umf_result_t null_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    (void)provider;
    (void)size;
    (void)alignment;
    *ptr = NULL;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t null_page(void *provider, size_t size, size_t *page)
{
    (void)provider;
    (void)size;
    (void)page;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t null_least_page(void *provider, void *ptr, size_t *page)
{
    (void)ptr;
    return null_page(provider, 0, page);
}

static void null_error(void *provider, const char **text, int32_t *number)
{
    (void)provider;
    (void)text;
    (void)number;
}

static umf_memory_provider_ops_t make_null_ops(void)
{
    umf_memory_provider_ops_t ops = heap_ops;

    ops.initialize = trace_initialize;
    ops.alloc = null_alloc;
    ops.free = heap_purge;
    ops.get_last_native_error = null_error;
    ops.get_recommended_page_size = null_page;
    ops.get_min_page_size = null_least_page;
    ops.ext.allocation_merge = heap_merge;
    ops.ext.allocation_split = heap_split;
    return ops;
}

/* What has no answer must not be looked at, and each call must arrive, whatever its arguments. */
static void use_nothing(void)
{
    umf_memory_provider_ops_t ops = make_null_ops();
    struct trace trace = {.n_calls = 0};
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;
    char place[2];

    NEED(umfMemoryProviderCreate(&ops, NULL, &trace.behind));
    NEED(umfMemoryProviderCreate(&trace_ops, &trace, &provider));
    umfMemoryProviderGetLastNativeError(provider, NULL, NULL);
    NEED(umfMemoryProviderGetRecommendedPageSize(provider, 0, NULL));
    NEED(umfMemoryProviderGetMinPageSize(provider, NULL, NULL));
    NEED(umfMemoryProviderPurgeLazy(provider, NULL, 0));
    NEED(umfMemoryProviderPurgeForce(provider, NULL, 0));
    NEED(umfMemoryProviderAllocationSplit(provider, &place[0], 2, 1));
    NEED(umfMemoryProviderAllocationMerge(provider, &place[0], &place[1], 2));
    NEED_TRUE(trace.n_calls == 7);

    pool = make_pool_with(PROXY_POOL, provider, UMF_POOL_CREATE_FLAG_NONE);
    NEED_TRUE(trace.n_calls == 7);
    NEED_TRUE(!umfPoolMalloc(pool, 0));
    NEED_TRUE(trace.n_calls == 8 && strcmp(trace.calls[0], "alloc") == 0);
    NEED_RESULT(umfPoolGetLastAllocationError(pool), UMF_RESULT_SUCCESS);
    NEED(umfPoolFree(pool, NULL));
    NEED_TRUE(trace.n_calls == 9 && strcmp(trace.calls[0], "free") == 0);
    NEED_TRUE(!umfPoolAlignedMalloc(pool, 0, 0));
    NEED_TRUE(trace.n_calls == 10);
    NEED_TRUE(!umfPoolCalloc(pool, 0, 0));
    NEED_RESULT(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    NEED_TRUE(!umfPoolRealloc(pool, NULL, 0));
    NEED_RESULT(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    NEED_TRUE(umfPoolMallocUsableSize(pool, NULL) == 0);
    NEED_TRUE(trace.n_calls == 10);
    umfPoolDestroy(pool);
    NEED_TRUE(trace.n_calls == 10);
    umfMemoryProviderDestroy(provider);
    NEED_TRUE(trace.n_calls == 11 && strcmp(trace.calls[0], "finalize") == 0);
    umfMemoryProviderDestroy(trace.behind);
}

/* ---- failing at each call ---------------------------------------------------------------------------------------- */

/* Allocates until it fails, and once more. */
static void *fail_once(umf_memory_pool_handle_t pool, void **objects, unsigned *n)
{
    for (*n = 0; *n < CALLS; ++*n) {
        objects[*n] = umfPoolMalloc(pool, 5000);
        if (!objects[*n])
            return umfPoolMalloc(pool, 5000);
        memset(objects[*n], 1, 5000);
    }
    return NULL;
}

static void fail_at(unsigned kind, unsigned call, enum umf_result_t failure)
{
    struct heap heap = {.fail_at = call, .failure = failure};
    umf_memory_provider_handle_t provider = make_heap(&heap);
    umf_memory_pool_handle_t pool = make_pool_with(kind, provider, UMF_POOL_CREATE_FLAG_NONE);
    void *objects[CALLS], *last;
    unsigned n;

    last = fail_once(pool, objects, &n);
    if (n < CALLS) {
        NEED_TRUE(last && heap.allocs >= call);
        NEED_TRUE(umfGetLastFailedMemoryProvider());
        NEED_TRUE(strcmp(umfMemoryProviderGetName(umfGetLastFailedMemoryProvider()), "heap") == 0);
        NEED(umfPoolFree(pool, last));
    }
    while (n-- > 0)
        NEED(umfFree(objects[n]));
    umfPoolDestroy(pool);
    NEED_TRUE(heap.live == 0);
    umfMemoryProviderDestroy(provider);
}

/* The reason is told by the pool. */
static void tell_reasons(void)
{
    const enum umf_result_t reasons[] = {
        UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
        UMF_RESULT_ERROR_INVALID_ARGUMENT,   UMF_RESULT_ERROR_INVALID_ALIGNMENT,
        UMF_RESULT_ERROR_NOT_SUPPORTED,      UMF_RESULT_ERROR_UNKNOWN,
    };

    for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        struct heap heap = {.fail_at = 1, .failure = reasons[i]};
        umf_memory_pool_handle_t pool = make_pool_with(PROXY_POOL, make_heap(&heap), UMF_POOL_CREATE_FLAG_OWN_PROVIDER);
        const char *text = NULL;
        int32_t number = 0;

        NEED_TRUE(!umfPoolMalloc(pool, 10));
        NEED_RESULT(umfPoolGetLastAllocationError(pool), reasons[i]);
        umfMemoryProviderGetLastNativeError(umfGetLastFailedMemoryProvider(), &text, &number);
        NEED_TRUE(number == 17 && strcmp(text, "the heap failed") == 0);
        umfPoolDestroy(pool);
        NEED_RESULT(umfMemoryProviderCreate(&heap_ops, NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
}

/* What could not be freed is still there, with its size, and can be freed later. */
static void free_twice(void)
{
    struct heap heap = {.fail_free_at = 1};
    umf_memory_provider_handle_t provider = make_heap(&heap);
    umf_memory_pool_handle_t pool = make_pool_with(PROXY_POOL, provider, UMF_POOL_CREATE_FLAG_NONE);
    void *object = umfPoolMalloc(pool, 100);

    NEED_RESULT(umfPoolFree(pool, object), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    NEED_TRUE(umfPoolByPtr(object) == pool);
    NEED(umfPoolFree(pool, object));
    NEED_TRUE(!umfPoolByPtr(object));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
    NEED_TRUE(heap.allocs == 1 && heap.frees == 2 && heap.live == 0);
}

/* Tables that miss something. */
static void leave_out(void)
{
    umf_memory_provider_ops_t ops = heap_ops;
    umf_memory_provider_handle_t provider = NULL;
    struct heap heap = {.fail_at = 0};
    void *ptr = NULL;

    ops.ext.purge_lazy = NULL;
    ops.ext.purge_force = NULL;
    ops.ext.allocation_split = heap_split;
    NEED_RESULT(umfMemoryProviderCreate(&ops, &heap, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.ext.allocation_split = NULL;
    ops.get_name = NULL;
    NEED_RESULT(umfMemoryProviderCreate(&ops, &heap, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_TRUE(!provider);
    ops.get_name = heap_name;
    NEED(umfMemoryProviderCreate(&ops, &heap, &provider));
    NEED(umfMemoryProviderAlloc(provider, 64, 0, &ptr));
    NEED_RESULT(umfMemoryProviderPurgeLazy(provider, ptr, 64), UMF_RESULT_ERROR_NOT_SUPPORTED);
    NEED_RESULT(umfMemoryProviderPurgeForce(provider, ptr, 64), UMF_RESULT_ERROR_NOT_SUPPORTED);
    NEED_RESULT(umfMemoryProviderAllocationSplit(provider, ptr, 64, 32), UMF_RESULT_ERROR_NOT_SUPPORTED);
    NEED_RESULT(umfMemoryProviderGetIPCHandleSize(provider, &(size_t){0}), UMF_RESULT_ERROR_NOT_SUPPORTED);
    NEED(umfMemoryProviderFree(provider, ptr, 64));
    umfMemoryProviderDestroy(provider);
}

int main(void)
{
    use_nothing();
    for (unsigned call = 1; call <= 4; call++) {
        for (unsigned kind = 0; kind < POOLS; kind++)
            fail_at(kind, call, UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        fail_at(PROXY_POOL, call, UMF_RESULT_ERROR_UNKNOWN);
    }
    tell_reasons();
    free_twice();
    leave_out();
    return 0;
}
