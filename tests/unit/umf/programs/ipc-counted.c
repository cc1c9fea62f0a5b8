/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles within one process, from every pool over either kind of shared memory, with a provider of the user's between
 * the two that counts: what was got is put once it is freed, and what was opened is closed, however many threads do it.
 */
#include "program.h"

#include <stdatomic.h>

enum { OBJECTS = 100, OTHERS = 4, THREADS = 10, SIZE = 100 };

/* ---- the provider between ---------------------------------------------------------------------------------------- */

static atomic_size_t n_allocated, n_got, n_put, n_opened, n_closed;

static umf_result_t start(void *params, void **provider)
{
    *provider = params;
    return UMF_RESULT_SUCCESS;
}

static void finish(void *provider)
{
    umfMemoryProviderDestroy(provider);
}

static umf_result_t count_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    n_allocated++;
    return umfMemoryProviderAlloc(provider, size, alignment, ptr);
}

static umf_result_t pass_free(void *provider, void *ptr, size_t size)
{
    return umfMemoryProviderFree(provider, ptr, size);
}

static void pass_error(void *provider, const char **text, int32_t *number)
{
    umfMemoryProviderGetLastNativeError(provider, text, number);
}

static umf_result_t pass_page(void *provider, size_t size, size_t *page)
{
    return umfMemoryProviderGetRecommendedPageSize(provider, size, page);
}

static umf_result_t pass_least_page(void *provider, void *ptr, size_t *page)
{
    return umfMemoryProviderGetMinPageSize(provider, ptr, page);
}

static const char *pass_name(void *provider)
{
    return umfMemoryProviderGetName(provider);
}

static umf_result_t pass_purge_lazy(void *provider, void *ptr, size_t size)
{
    return umfMemoryProviderPurgeLazy(provider, ptr, size);
}

static umf_result_t pass_purge_force(void *provider, void *ptr, size_t size)
{
    return umfMemoryProviderPurgeForce(provider, ptr, size);
}

static umf_result_t pass_merge(void *provider, void *low, void *high, size_t total)
{
    return umfMemoryProviderAllocationMerge(provider, low, high, total);
}

static umf_result_t pass_split(void *provider, void *ptr, size_t total, size_t first)
{
    return umfMemoryProviderAllocationSplit(provider, ptr, total, first);
}

static umf_result_t pass_handle_size(void *provider, size_t *size)
{
    return umfMemoryProviderGetIPCHandleSize(provider, size);
}

static umf_result_t count_get(void *provider, const void *ptr, size_t size, void *data)
{
    n_got++;
    return umfMemoryProviderGetIPCHandle(provider, ptr, size, data);
}

static umf_result_t count_put(void *provider, void *data)
{
    n_put++;
    return umfMemoryProviderPutIPCHandle(provider, data);
}

static umf_result_t count_open(void *provider, void *data, void **ptr)
{
    n_opened++;
    return umfMemoryProviderOpenIPCHandle(provider, data, ptr);
}

static umf_result_t count_close(void *provider, void *ptr, size_t size)
{
    n_closed++;
    return umfMemoryProviderCloseIPCHandle(provider, ptr, size);
}

static const umf_memory_provider_ops_t ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = start,
    .finalize = finish,
    .alloc = count_alloc,
    .free = pass_free,
    .get_last_native_error = pass_error,
    .get_recommended_page_size = pass_page,
    .get_min_page_size = pass_least_page,
    .get_name = pass_name,
    .ext = {.purge_lazy = pass_purge_lazy,
            .purge_force = pass_purge_force,
            .allocation_merge = pass_merge,
            .allocation_split = pass_split},
    .ipc = {.get_ipc_handle_size = pass_handle_size,
            .get_ipc_handle = count_get,
            .put_ipc_handle = count_put,
            .open_ipc_handle = count_open,
            .close_ipc_handle = count_close},
};

static umf_memory_pool_handle_t make_counted(unsigned pool, unsigned provider)
{
    umf_memory_provider_handle_t between = NULL;

    NEED(umfMemoryProviderCreate(&ops, make_provider(provider), &between));
    return make_pool_with(pool, between, UMF_POOL_CREATE_FLAG_OWN_PROVIDER);
}

static void need_balance(void)
{
    NEED_TRUE(n_got == n_put && n_opened == n_closed);
    n_allocated = n_got = n_put = n_opened = n_closed = 0;
}

/* ---- one object -------------------------------------------------------------------------------------------------- */

/* By two handles, of its beginning and of its middle; either is good without the other. */
static void open_halves(unsigned kind, unsigned provider)
{
    umf_memory_pool_handle_t pool = make_counted(kind, provider);
    int *numbers = umfPoolMalloc(pool, SIZE * sizeof(int));
    umf_ipc_handle_t whole = NULL, half = NULL;
    size_t whole_size = 0, half_size = 0;
    void *opened_whole = NULL, *opened_half = NULL;

    NEED_TRUE(numbers);
    for (int i = 0; i < SIZE; i++)
        numbers[i] = i;
    NEED(umfGetIPCHandle(numbers, &whole, &whole_size));
    NEED(umfGetIPCHandle(numbers + SIZE / 2, &half, &half_size));
    NEED_TRUE(whole_size == half_size && n_got == 1);
    NEED(umfOpenIPCHandle(pool, whole, &opened_whole));
    NEED(umfOpenIPCHandle(pool, half, &opened_half));
    NEED_TRUE(memcmp(opened_whole, numbers, SIZE * sizeof(int)) == 0);
    NEED(umfCloseIPCHandle(opened_whole));
    NEED_TRUE(memcmp(opened_half, numbers + SIZE / 2, SIZE / 2 * sizeof(int)) == 0);
    NEED(umfCloseIPCHandle(opened_half));
    NEED(umfPutIPCHandle(whole));
    NEED(umfPutIPCHandle(half));
    NEED(umfPoolFree(pool, numbers));
    umfPoolDestroy(pool);
    need_balance();
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

static umf_memory_pool_handle_t pool_of_all;
static void *objects[OBJECTS];
static umf_ipc_handle_t handles[OBJECTS];

static void allocate_all(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = umfPoolMalloc(pool_of_all, SIZE);
        NEED_TRUE(objects[i]);
        memset(objects[i], (int)i, SIZE);
    }
}

static void get_all(umf_ipc_handle_t *into)
{
    size_t size;

    for (unsigned i = 0; i < OBJECTS; i++)
        NEED(umfGetIPCHandle(objects[i], &into[i], &size));
}

static void put_all(umf_ipc_handle_t *from)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        NEED(umfPutIPCHandle(from[i]));
}

static void free_all(void)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        NEED(umfPoolFree(pool_of_all, objects[i]));
}

/* Each pool has mappings of its own, so that the pool of an address is the one that opened it. */
static void open_in_others(unsigned kind, unsigned provider)
{
    umf_memory_pool_handle_t others[OTHERS];
    void *opened[OTHERS][OBJECTS];

    pool_of_all = make_counted(kind, provider);
    allocate_all();
    get_all(handles);
    for (unsigned k = 0; k < OTHERS; k++) {
        others[k] = make_counted(kind, provider);
        for (unsigned i = 0; i < OBJECTS; i++)
            NEED(umfOpenIPCHandle(others[k], handles[i], &opened[k][i]));
    }
    put_all(handles);
    for (unsigned k = 0; k < OTHERS; k++) {
        for (unsigned i = 0; i < OBJECTS; i++) {
            NEED_TRUE(umfPoolByPtr(opened[k][i]) == others[k]);
            NEED_TRUE(memcmp(opened[k][i], objects[i], SIZE) == 0);
        }
        for (unsigned i = 0; i < OBJECTS; i++)
            NEED(umfCloseIPCHandle(opened[k][i]));
        umfPoolDestroy(others[k]);
    }
    free_all();
    umfPoolDestroy(pool_of_all);
    need_balance();
}

static void *get_and_put(void *argument)
{
    umf_ipc_handle_t mine[OBJECTS];

    (void)argument;
    get_all(mine);
    put_all(mine);
    return NULL;
}

static void *open_and_close(void *argument)
{
    void *opened[OBJECTS];

    (void)argument;
    for (unsigned i = 0; i < OBJECTS; i++)
        NEED(umfOpenIPCHandle(pool_of_all, handles[i], &opened[i]));
    for (unsigned i = 0; i < OBJECTS; i++) {
        NEED_TRUE(*(unsigned char *)opened[i] == i);
        NEED(umfCloseIPCHandle(opened[i]));
    }
    return NULL;
}

static void use_in_threads(unsigned kind, unsigned provider)
{
    pool_of_all = make_counted(kind, provider);
    allocate_all();
    run_threads(THREADS, get_and_put, NULL);
    get_all(handles);
    run_threads(THREADS, open_and_close, NULL);
    put_all(handles);
    NEED_TRUE(n_got <= THREADS * n_allocated + n_allocated);
    free_all();
    umfPoolDestroy(pool_of_all);
    need_balance();
}

/* Freed, allocated again, at the same place or not: a handle is of what is there now. */
static void use_again(unsigned kind, unsigned provider)
{
    umf_memory_pool_handle_t pool = make_counted(kind, provider), other = make_counted(kind, provider);

    for (unsigned i = 0; i < 20; i++) {
        unsigned char *object = umfPoolMalloc(pool, 3 * page_size());
        umf_ipc_handle_t handle = NULL;
        void *opened = NULL;
        size_t size;

        NEED_TRUE(object);
        object[0] = (unsigned char)i;
        NEED(umfGetIPCHandle(object, &handle, &size));
        NEED(umfOpenIPCHandle(other, handle, &opened));
        NEED_TRUE(*(unsigned char *)opened == i);
        object[0] = (unsigned char)(i + 100);
        NEED_TRUE(*(unsigned char *)opened == i + 100);
        NEED(umfCloseIPCHandle(opened));
        NEED(umfPoolFree(pool, object));
        NEED(umfPutIPCHandle(handle));
    }
    umfPoolDestroy(other);
    umfPoolDestroy(pool);
    need_balance();
}

int main(void)
{
    for (unsigned provider = SHARED_PROVIDER; provider < PROVIDERS; provider++)
        for (unsigned kind = 0; kind < POOLS; kind++) {
            open_halves(kind, provider);
            open_in_others(kind, provider);
            use_in_threads(kind, provider);
            use_again(kind, provider);
        }
    return 0;
}
