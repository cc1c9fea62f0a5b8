/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that allocate, fill, look at, resize and free, each pool over each provider: what one thread has allocated
 * another one frees, and umfFree() finds the pool. First alone, then with several pools at once.
 */
#include "program.h"

#include <errno.h>

/* The thread sanitizer does not see what TBB's allocator, which is the last, does between threads. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define POOLS_IN_THREADS SCALABLE_POOL
#else
#define POOLS_IN_THREADS POOLS
#endif

enum { THREADS = 5, SLOTS = 64, TURNS = 1500, LARGEST = 20000 };

struct object {
    umf_memory_pool_handle_t pool;
    unsigned char *bytes;
    size_t size;
    unsigned char pattern;
};

static umf_memory_pool_handle_t pools[POOLS_IN_THREADS];
static unsigned n_pools;

/* Objects that change hands. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object handed[SLOTS];

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static bool not_supported(umf_memory_pool_handle_t pool)
{
    return umfPoolGetLastAllocationError(pool) == UMF_RESULT_ERROR_NOT_SUPPORTED;
}

static void need_pattern(const unsigned char *bytes, size_t size, unsigned char pattern)
{
    for (size_t i = 0; i < size; i++)
        NEED_TRUE(bytes[i] == pattern);
}

static void *allocate(umf_memory_pool_handle_t pool, size_t size, uint32_t how)
{
    size_t alignment = (size_t)1 << how % 13;
    unsigned char *bytes;

    if (how % 4 == 0) {
        bytes = umfPoolAlignedMalloc(pool, size, alignment);
        NEED_TRUE((uintptr_t)bytes % alignment == 0);
    } else if (how % 4 == 1) {
        bytes = umfPoolCalloc(pool, 1, size);
        if (bytes)
            need_pattern(bytes, size, 0);
        else if (not_supported(pool))
            bytes = umfPoolMalloc(pool, size);
    } else {
        bytes = umfPoolMalloc(pool, size);
    }
    if (!bytes)
        give_up("%zu bytes were not to be had: %d", size, (int)umfPoolGetLastAllocationError(pool));
    NEED_TRUE((uintptr_t)bytes % 8 == 0);
    return bytes;
}

static void resize(struct object *object, size_t size)
{
    unsigned char *bytes = umfPoolRealloc(object->pool, object->bytes, size);

    if (!bytes) {
        NEED_TRUE(not_supported(object->pool));
        return;
    }
    need_pattern(bytes, object->size < size ? object->size : size, object->pattern);
    object->bytes = bytes;
    object->size = size;
    memset(bytes, object->pattern, size);
}

static void look_at(const struct object *object)
{
    size_t usable = umfPoolMallocUsableSize(object->pool, object->bytes);

    NEED_TRUE(umfPoolByPtr(object->bytes) == object->pool);
    NEED_TRUE(umfPoolByPtr(object->bytes + object->size - 1) == object->pool);
    NEED_TRUE(usable == 0 || usable >= object->size);
    need_pattern(object->bytes, object->size, object->pattern);
}

static void give_back(struct object *object, uint32_t how)
{
    if (!object->bytes)
        return;
    look_at(object);
    NEED(how % 2 ? umfFree(object->bytes) : umfPoolFree(object->pool, object->bytes));
    object->bytes = NULL;
}

static void exchange(struct object *object, unsigned slot)
{
    struct object other;

    pthread_mutex_lock(&lock);
    other = handed[slot];
    handed[slot] = *object;
    pthread_mutex_unlock(&lock);
    *object = other;
}

static void *work(void *argument)
{
    struct object mine[SLOTS] = {{0}};
    uint32_t state;

    (void)argument;
    state = (uint32_t)(uintptr_t)mine | 1;
    for (unsigned n = 0; n < rounds(TURNS); n++) {
        uint32_t what = next_random(&state);
        struct object *object = &mine[what % SLOTS];

        give_back(object, what >> 8);
        object->pool = pools[(what >> 9) % n_pools];
        object->size = 1 + next_random(&state) % (what % 16 ? 500 : LARGEST);
        object->pattern = (unsigned char)(what >> 12);
        object->bytes = allocate(object->pool, object->size, what >> 16);
        memset(object->bytes, object->pattern, object->size);
        if (what >> 20 & 1)
            resize(object, object->size + 100);
        if (what >> 21 & 1)
            exchange(object, what % SLOTS);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        give_back(&mine[i], i);
    return NULL;
}

static void work_on(unsigned first, unsigned n, unsigned provider)
{
    n_pools = n;
    for (unsigned i = 0; i < n; i++)
        pools[i] = make_pool(first + i, provider);
    run_threads(THREADS, work, NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        give_back(&handed[i], i);
    for (unsigned i = 0; i < n; i++) {
        errno = 0;
        NEED(umfPoolFree(pools[i], NULL));
        NEED_TRUE(errno == 0);
        umfPoolDestroy(pools[i]);
    }
    NEED(umfFree(&n_pools));
    NEED_TRUE(!umfPoolByPtr(&n_pools));
}

/* Every power of 2 up to 4 MiB, four of each, in all threads. */
static void *align(void *argument)
{
    umf_memory_pool_handle_t pool = argument;

    for (size_t alignment = 1; alignment <= 4 * MIB; alignment <<= 1) {
        void *objects[4];

        for (unsigned i = 0; i < 4; i++) {
            objects[i] = umfPoolAlignedMalloc(pool, alignment, alignment);
            NEED_TRUE(objects[i] && (uintptr_t)objects[i] % alignment == 0);
            memset(objects[i], 0, alignment);
        }
        for (unsigned i = 0; i < 4; i++)
            NEED(umfPoolFree(pool, objects[i]));
    }
    return NULL;
}

int main(void)
{
    for (unsigned provider = 0; provider < PROVIDERS; provider++) {
        /* the proxy pool makes each allocation one of the provider's: few threads are enough for that */
        for (unsigned pool = 0; pool < POOLS_IN_THREADS; pool++)
            work_on(pool, 1, provider);
        work_on(0, POOLS_IN_THREADS, provider);
    }
    for (unsigned pool = 0; pool < POOLS_IN_THREADS; pool++) {
        umf_memory_pool_handle_t aligned = make_pool(pool, PRIVATE_PROVIDER);

        run_threads(THREADS, align, aligned);
        umfPoolDestroy(aligned);
    }
    return 0;
}
