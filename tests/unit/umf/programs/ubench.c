/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A micro-benchmark as users write them: a thousand pages are allocated and given back, by each way that there is, and
 * the time of the best turn is told, if anybody wants it (UMF_PROGRAM_TIMES=1). Parameters are written down member by
 * member, in order.
 */
#include "program.h"

#include <time.h>

enum { ITERATIONS = 1000, TURNS = 3 };

struct allocation {
    void *ptr;
    size_t size;
};

typedef void *(*malloc_function)(void *from, size_t size, size_t alignment);
typedef void (*free_function)(void *from, void *ptr, size_t size);

static umf_os_memory_provider_params_t os_params = {
    /* .protection = */ UMF_PROTECTION_READ | UMF_PROTECTION_WRITE,
    /* .visibility = */ UMF_MEM_MAP_PRIVATE,
    /* .shm_name = */ NULL,
    /* .numa_list = */ NULL,
    /* .numa_list_len = */ 0,
    /* .numa_mode = */ UMF_NUMA_MODE_DEFAULT,
    /* .part_size = */ 0,
    /* .partitions = */ NULL,
    /* .partitions_len = */ 0,
};

static void *libc_malloc(void *from, size_t size, size_t alignment)
{
    (void)from;
    (void)alignment;
    return malloc(size);
}

static void libc_free(void *from, void *ptr, size_t size)
{
    (void)from;
    (void)size;
    free(ptr);
}

static void *provider_malloc(void *from, size_t size, size_t alignment)
{
    void *ptr = NULL;

    NEED(umfMemoryProviderAlloc((umf_memory_provider_handle_t)from, size, alignment, &ptr));
    return ptr;
}

static void provider_free(void *from, void *ptr, size_t size)
{
    NEED(umfMemoryProviderFree((umf_memory_provider_handle_t)from, ptr, size));
}

static void *pool_malloc(void *from, size_t size, size_t alignment)
{
    (void)alignment;
    return umfPoolMalloc((umf_memory_pool_handle_t)from, size);
}

static void pool_free(void *from, void *ptr, size_t size)
{
    (void)size;
    NEED(umfPoolFree((umf_memory_pool_handle_t)from, ptr));
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void turn(struct allocation *all, size_t size, malloc_function allocate, free_function give_back, void *from)
{
    size_t n = 0;

    do {
        all[n].ptr = allocate(from, size, 0);
        all[n].size = size;
    } while (all[n].ptr && ++n < ITERATIONS);
    NEED_TRUE(n == ITERATIONS);
    while (n-- > 0)
        give_back(from, all[n].ptr, all[n].size);
}

static void measure(const char *name, malloc_function allocate, free_function give_back, void *from)
{
    struct allocation *all = malloc(ITERATIONS * sizeof(*all));
    double best = 1e18;

    NEED_TRUE(all);
    turn(all, page_size(), allocate, give_back, from);
    for (unsigned i = 0; i < rounds(TURNS); i++) {
        double begun = now(), took;

        turn(all, page_size(), allocate, give_back, from);
        took = now() - begun;
        best = took < best ? took : best;
    }
    if (getenv("UMF_PROGRAM_TIMES"))
        printf("%-12s %10.1f ns a pair\n", name, best / ITERATIONS);
    free(all);
}

static void measure_pool(const char *name, umf_memory_pool_ops_t *ops, void *params)
{
    umf_memory_provider_handle_t provider = NULL;
    umf_memory_pool_handle_t pool = NULL;

    NEED(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &os_params, &provider));
    NEED(umfPoolCreate(ops, provider, params, 0, &pool));
    measure(name, pool_malloc, pool_free, pool);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

static void measure_all(void)
{
    umf_disjoint_pool_params_t disjoint = {0};
    umf_memory_provider_handle_t provider = NULL;

    disjoint.SlabMinSize = page_size();
    disjoint.MaxPoolableSize = 2 * page_size();
    disjoint.Capacity = ITERATIONS + 10;
    disjoint.MinBucketSize = page_size();
    NEED(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &os_params, &provider));
    measure("provider", provider_malloc, provider_free, provider);
    umfMemoryProviderDestroy(provider);
    measure_pool("proxy", umfProxyPoolOps(), NULL);
    measure_pool("disjoint", umfDisjointPoolOps(), &disjoint);
    measure_pool("jemalloc", umfJemallocPoolOps(), NULL);
    measure_pool("scalable", umfScalablePoolOps(), NULL);
}

int main(void)
{
    measure("libc", libc_malloc, libc_free, NULL);
    measure_all();
    os_params.visibility = UMF_MEM_MAP_SHARED;
    measure_all();
    return 0;
}
