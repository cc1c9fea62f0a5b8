/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of a user's own, in C, over every provider: it hands out from one block, and takes nothing back. */
#include "program.h"

struct stack {
    umf_memory_provider_handle_t provider;
    char *block;
    size_t size, used;
};

static __thread enum umf_result_t stack_error;

static umf_result_t stack_initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    struct stack *stack = calloc(1, sizeof(*stack));
    void *block = NULL;

    if (!stack)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    stack->provider = provider;
    stack->size = *(size_t *)params;
    stack_error = umfMemoryProviderAlloc(provider, stack->size, 0, &block);
    stack->block = block;
    if (stack_error == UMF_RESULT_SUCCESS)
        *pool = stack;
    else
        free(stack);
    return stack_error;
}

static void stack_finalize(void *pool)
{
    struct stack *stack = pool;

    NEED(umfMemoryProviderFree(stack->provider, stack->block, stack->size));
    free(stack);
}

static void *stack_aligned_malloc(void *pool, size_t size, size_t alignment)
{
    struct stack *stack = pool;
    size_t at = stack->used, past;

    if (alignment < 16)
        alignment = 16;
    past = (size_t)((uintptr_t)stack->block + at) % alignment;
    at += past ? alignment - past : 0;
    if (at > stack->size || size > stack->size - at) {
        stack_error = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    stack->used = at + size;
    return stack->block + at;
}

static void *stack_malloc(void *pool, size_t size)
{
    return stack_aligned_malloc(pool, size, 0);
}

static void *stack_calloc(void *pool, size_t n, size_t size)
{
    void *ptr = stack_malloc(pool, n * size);

    return ptr ? memset(ptr, 0, n * size) : NULL;
}

static void *stack_realloc(void *pool, void *ptr, size_t size)
{
    (void)pool;
    (void)ptr;
    (void)size;
    stack_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return NULL;
}

static size_t stack_usable(void *pool, void *ptr)
{
    struct stack *stack = pool;

    return ptr ? (size_t)(stack->block + stack->used - (char *)ptr) : 0;
}

static umf_result_t stack_free(void *pool, void *ptr)
{
    (void)pool;
    return ptr ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

static umf_result_t stack_last_error(void *pool)
{
    (void)pool;
    return stack_error;
}

static const umf_memory_pool_ops_t stack_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = stack_initialize,
    .finalize = stack_finalize,
    .malloc = stack_malloc,
    .calloc = stack_calloc,
    .realloc = stack_realloc,
    .aligned_malloc = stack_aligned_malloc,
    .malloc_usable_size = stack_usable,
    .free = stack_free,
    .get_last_allocation_error = stack_last_error,
};

static void use_stack(umf_memory_provider_handle_t provider, umf_pool_create_flags_t flags)
{
    umf_memory_pool_handle_t pool = NULL, there;
    umf_memory_provider_handle_t behind = NULL;
    size_t size = 64 * KIB;
    char *first, *second;

    NEED(umfPoolCreate(&stack_ops, provider, &size, flags, &pool));
    NEED(umfPoolGetMemoryProvider(pool, &behind));
    NEED_TRUE(behind == provider);
    first = umfPoolMalloc(pool, 100);
    second = umfPoolAlignedMalloc(pool, 100, 4096);
    NEED_TRUE(first && second && (uintptr_t)second % 4096 == 0);
    NEED_TRUE(umfPoolMallocUsableSize(pool, second) == 100);
    NEED_TRUE(!umfPoolMalloc(pool, size));
    NEED_RESULT(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    there = flags & UMF_POOL_CREATE_FLAG_DISABLE_TRACKING ? NULL : pool;
    NEED_TRUE(umfPoolByPtr(first) == there && umfPoolByPtr(second + 99) == there);
    /* the whole block is the pool's */
    NEED_TRUE(umfPoolByPtr(second + 1000) == there && !umfPoolByPtr(&size));
    NEED(umfFree(second));
    NEED(umfPoolFree(pool, first));
    umfPoolDestroy(pool);
    if (!(flags & UMF_POOL_CREATE_FLAG_OWN_PROVIDER))
        umfMemoryProviderDestroy(provider);
}

int main(void)
{
    for (unsigned kind = 0; kind < PROVIDERS; kind++) {
        use_stack(make_provider(kind), UMF_POOL_CREATE_FLAG_NONE);
        use_stack(make_provider(kind), UMF_POOL_CREATE_FLAG_OWN_PROVIDER);
        use_stack(make_provider(kind), UMF_POOL_CREATE_FLAG_DISABLE_TRACKING);
        use_stack(make_provider(kind), UMF_POOL_CREATE_FLAG_OWN_PROVIDER | UMF_POOL_CREATE_FLAG_DISABLE_TRACKING);
    }
    return 0;
}
