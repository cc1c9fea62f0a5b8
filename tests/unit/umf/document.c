/* SPDX-License-Identifier: Apache-2.0 */
/* See document.h. */
#include "tests/unit/umf/document.h"

#include <malloc.h>
#include <stdlib.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

umf_memory_provider_handle_t os;
struct heap heap;
__thread umf_result_t heap_error;

int os_setup(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    (void)state;
    assert_success(umfMemorydSetProfile(UMF_MEMORYD_PROFILE_DOCUMENT));
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &os));
    return 0;
}

int os_teardown(void **state)
{
    (void)state;
    umfMemoryProviderDestroy(os);
    return 0;
}

/* ---- a pool of our own ----------------------------------------------------------------------------------- */

static void *told(void *ptr)
{
    if (!ptr)
        heap_error = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return ptr;
}

static umf_result_t heap_initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    heap.provider = provider;
    heap.params = params;
    heap.begun++;
    *pool = &heap;
    return UMF_RESULT_SUCCESS;
}

static void heap_finalize(void *pool)
{
    assert_ptr_equal(pool, &heap);
    heap.ended++;
}

/* The compiler knows malloc(), and what cannot be. */
static volatile size_t limit = SIZE_MAX / 4;

static void *heap_malloc(void *pool, size_t size)
{
    (void)pool;
    return told(size > limit ? NULL : malloc(size));
}

static void *heap_calloc(void *pool, size_t num, size_t size)
{
    size_t bytes;

    (void)pool;
    return told(__builtin_mul_overflow(num, size, &bytes) ? NULL : calloc(1, bytes));
}

static void *heap_realloc(void *pool, void *ptr, size_t size)
{
    (void)pool;
    return told(size > limit ? NULL : realloc(ptr, size));
}

static void *heap_aligned_malloc(void *pool, size_t size, size_t alignment)
{
    void *ptr = NULL;

    (void)pool;
    return told(size > limit || posix_memalign(&ptr, alignment < 8 ? 8 : alignment, size) ? NULL : ptr);
}

static size_t heap_malloc_usable_size(void *pool, void *ptr)
{
    (void)pool;
    return malloc_usable_size(ptr);
}

static umf_result_t heap_free(void *pool, void *ptr)
{
    (void)pool;
    free(ptr);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t heap_last_error(void *pool)
{
    (void)pool;
    return heap_error;
}

const umf_memory_pool_ops_t heap_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = heap_initialize,
    .finalize = heap_finalize,
    .malloc = heap_malloc,
    .calloc = heap_calloc,
    .realloc = heap_realloc,
    .aligned_malloc = heap_aligned_malloc,
    .malloc_usable_size = heap_malloc_usable_size,
    .free = heap_free,
    .get_last_allocation_error = heap_last_error,
};
