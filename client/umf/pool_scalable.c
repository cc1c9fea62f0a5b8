/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalable pool: TBB's allocator, loaded when the first such pool is made. No distribution packages a header for
 * its memory pools, which are C++. So they are declared here as C, by their mangled names on 64-bit Linux.
 */
#include <memclient/umf/umf/pools/pool_scalable.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf/umf/memory_pool_ops.h>

#include "base/align.h"

#define GRANULARITY    ((size_t)2 << 20)
#define POLICY_VERSION 1

struct policy {
    void *(*alloc)(intptr_t id, size_t *size);
    int (*free)(intptr_t id, void *ptr, size_t size);
    size_t granularity;
    int version;
    unsigned fixed : 1, keep : 1, reserved : 30;
};

/* Functions of namespace rml. */
static struct {
    int (*create)(intptr_t id, const struct policy *policy, void **pool);
    bool (*destroy)(void *pool);
    void *(*malloc)(void *pool, size_t size);
    void *(*realloc)(void *pool, void *ptr, size_t size);
    void *(*aligned_malloc)(void *pool, size_t size, size_t alignment);
    bool (*free)(void *pool, void *ptr);
    size_t (*msize)(void *pool, void *ptr);
} tbb;
static bool is_loaded;

struct scalable {
    umf_memory_provider_handle_t provider;
    void *tbb;
};

static __thread umf_result_t last_error;

/* ---- TBB --------------------------------------------------------------------------------------------------------- */

/* It is never unloaded, since threads have caches in it. */
static void scalable_load(void)
{
    static const struct {
        const char *name;
        void *function;
    } symbols[] = {
        {"_ZN3rml14pool_create_v1ElPKNS_13MemPoolPolicyEPPNS_10MemoryPoolE", &tbb.create},
        {"_ZN3rml12pool_destroyEPNS_10MemoryPoolE", &tbb.destroy},
        {"_ZN3rml11pool_mallocEPNS_10MemoryPoolEm", &tbb.malloc},
        {"_ZN3rml12pool_reallocEPNS_10MemoryPoolEPvm", &tbb.realloc},
        {"_ZN3rml19pool_aligned_mallocEPNS_10MemoryPoolEmm", &tbb.aligned_malloc},
        {"_ZN3rml9pool_freeEPNS_10MemoryPoolEPv", &tbb.free},
        {"_ZN3rml10pool_msizeEPNS_10MemoryPoolEPv", &tbb.msize},
    };
    void *library = dlopen("libtbbmalloc.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    is_loaded = library;
    for (size_t i = 0; is_loaded && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(library, symbols[i].name);

        is_loaded = symbol;
        memcpy(symbols[i].function, &symbol, sizeof(symbol));
    }
    if (library && !is_loaded)
        dlclose(library);
}

static void *raw_alloc(intptr_t id, size_t *size)
{
    const struct scalable *pool = (const struct scalable *)id;
    void *ptr = NULL;

    return umfMemoryProviderAlloc(pool->provider, *size, 0, &ptr) == UMF_RESULT_SUCCESS ? ptr : NULL;
}

static int raw_free(intptr_t id, void *ptr, size_t size)
{
    const struct scalable *pool = (const struct scalable *)id;

    return umfMemoryProviderFree(pool->provider, ptr, size) == UMF_RESULT_SUCCESS ? 0 : -1;
}

static umf_result_t scalable_initialize(umf_memory_provider_handle_t provider, void *params, void **ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const struct policy policy = {
        .alloc = raw_alloc,
        .free = raw_free,
        .granularity = GRANULARITY,
        .version = POLICY_VERSION,
    };
    struct scalable *pool;

    (void)pthread_once(&once, scalable_load);
    if (!is_loaded)
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pool->provider = provider;
    if (tbb.create((intptr_t)pool, &policy, &pool->tbb)) {
        free(pool);
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    }
    *ret = pool;
    return UMF_RESULT_SUCCESS;
}

static void scalable_finalize(void *arg)
{
    struct scalable *pool = arg;

    (void)tbb.destroy(pool->tbb);
    free(pool);
}

/* ---- the pool's operations --------------------------------------------------------------------------------------- */

static void *scalable_note(void *ptr)
{
    last_error = ptr ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return ptr;
}

static void *scalable_malloc(void *arg, size_t size)
{
    const struct scalable *pool = arg;

    return scalable_note(tbb.malloc(pool->tbb, size));
}

static void *scalable_calloc(void *arg, size_t num, size_t size)
{
    char *ptr;

    if (__builtin_mul_overflow(num, size, &size))
        return scalable_note(NULL);
    ptr = scalable_malloc(arg, size);
    if (ptr)
        memset(ptr, 0, size);
    return ptr;
}

/* Size 0 frees, with result UNKNOWN as upstream has it. */
static void *scalable_realloc(void *arg, void *ptr, size_t size)
{
    const struct scalable *pool = arg;

    if (!ptr)
        return scalable_malloc(arg, size);
    ptr = scalable_note(tbb.realloc(pool->tbb, ptr, size));
    if (!size)
        last_error = UMF_RESULT_ERROR_UNKNOWN;
    return ptr;
}

static void *scalable_aligned_malloc(void *arg, size_t size, size_t alignment)
{
    const struct scalable *pool = arg;

    if (!alignment)
        return scalable_malloc(arg, size);
    if (!is_power_of_two(alignment)) {
        last_error = UMF_RESULT_ERROR_INVALID_ALIGNMENT;
        return NULL;
    }
    return scalable_note(tbb.aligned_malloc(pool->tbb, size ? size : 1, alignment));
}

static size_t scalable_malloc_usable_size(void *arg, void *ptr)
{
    const struct scalable *pool = arg;

    return ptr ? tbb.msize(pool->tbb, ptr) : 0;
}

static umf_result_t scalable_free(void *arg, void *ptr)
{
    const struct scalable *pool = arg;

    if (!ptr || tbb.free(pool->tbb, ptr))
        return UMF_RESULT_SUCCESS;
    return UMF_RESULT_ERROR_UNKNOWN;
}

static umf_result_t scalable_get_last_allocation_error(void *pool)
{
    return last_error;
}

umf_memory_pool_ops_t *umfScalablePoolOps(void)
{
    static umf_memory_pool_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = scalable_initialize,
        .finalize = scalable_finalize,
        .malloc = scalable_malloc,
        .calloc = scalable_calloc,
        .realloc = scalable_realloc,
        .aligned_malloc = scalable_aligned_malloc,
        .malloc_usable_size = scalable_malloc_usable_size,
        .free = scalable_free,
        .get_last_allocation_error = scalable_get_last_allocation_error,
    };

    return &ops;
}
