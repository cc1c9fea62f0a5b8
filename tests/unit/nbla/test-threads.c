/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, each with memories of its own, or with blocks of one allocation that are no longer linked. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/unit/nbla/nbla.h"

enum { THREADS = 4, ROUNDS = 60 };
#define BYTES ((size_t)64 << 10)

/* In a thread asserts of cmocka's have nowhere to go. */
static bool failed;
#define TRY(expression)                                        \
    do {                                                       \
        if (!(expression))                                     \
            __atomic_store_n(&failed, true, __ATOMIC_RELAXED); \
    } while (0)

static void run(void *(*body)(void *), void *const contexts[THREADS])
{
    pthread_t threads[THREADS];

    failed = false;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, contexts[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(failed);
}

static void normal_round(void)
{
    nbla_memory *memory = nbla_memory_new(NULL, BYTES, "numa:1"), *second, *opened;
    struct memclient_token token;
    uint64_t offset, length;

    TRY(nbla_memory_alloc(memory) == 0);
    TRY(nbla_memory_divide(memory, 5000, &second) == 0);
    TRY(nbla_memory_token(second, &token, &offset, &length) == 0);
    TRY(nbla_memory_open_token(NULL, &token, offset, length, NULL, &opened) == 0);
    nbla_memory_lock_device(opened);
    TRY(nbla_memory_get_device_state(second) == NBLA_DEVICE_LOCKED);
    *(char *)nbla_memory_pointer(opened) = 1;
    TRY(nbla_memory_destroy(opened) == 0);
    TRY(*(char *)nbla_memory_pointer(second) == 1);
    TRY(nbla_memory_try_merge(memory, second) == 1);
    TRY(nbla_memory_destroy(second) == 0);
    TRY(nbla_memory_destroy(memory) == 0);
}

static void virtual_round(void)
{
    nbla_physical_memory *p[2] = {nbla_physical_memory_new(NULL, BYTES, ""), nbla_physical_memory_new(NULL, BYTES, "")};
    nbla_memory *memory = nbla_memory_new_virtual(NULL, BYTES, "", p, 1);

    TRY(nbla_memory_bind(memory) == 0);
    TRY(nbla_memory_grow(memory, p + 1, 1) == 1);
    memset(nbla_memory_pointer(memory), 1, 2 * BYTES);
    TRY(nbla_memory_unbind(memory) == 0);
    TRY(nbla_memory_destroy(memory) == 0);
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
}

static void *use_own(void *context)
{
    (void)context;
    for (int i = 0; i < ROUNDS; i++) {
        normal_round();
        virtual_round();
    }
    /* each thread has its own last failure */
    TRY(nbla_memory_new(NULL, 1, "numa:9") == NULL);
    TRY(nbla_error_code() == NBLA_ERROR_VALUE);
    return NULL;
}

static void own_memories(void **state)
{
    void *contexts[THREADS] = {NULL};

    run(use_own, contexts);
}

static void *end_block(void *context)
{
    nbla_memory *block = context;

    memset(nbla_memory_pointer(block), 1, nbla_memory_bytes(block));
    TRY(nbla_memory_get_device_state(block) == NBLA_DEVICE_UNLOCKED);
    TRY(nbla_memory_destroy(block) == 0);
    return NULL;
}

/* Blocks of one allocation whose links were taken out: they share the memory, its descriptor and its end. */
static void blocks_of_one(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        nbla_memory *blocks[THREADS] = {nbla_allocated(BYTES)};

        for (int i = 1; i < THREADS; i++)
            assert_gives(nbla_memory_divide(blocks[i - 1], 1000, &blocks[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            nbla_memory_associate_consecutive(NULL, blocks[i]);
            nbla_memory_associate_consecutive(blocks[i], NULL);
        }
        run(end_block, (void **)blocks);
    }
}

static void *alias(void *context)
{
    nbla_physical_memory **p = context;

    for (int i = 0; i < ROUNDS; i++) {
        nbla_memory *memory = nbla_memory_new_virtual(NULL, BYTES, "", p, 2);

        TRY(nbla_memory_bind(memory) == 0);
        TRY(nbla_memory_get_device_state(memory) == NBLA_DEVICE_UNLOCKED);
        TRY(nbla_memory_destroy(memory) == 0);
    }
    return NULL;
}

/* The same chunks in memories of several threads. */
static void chunks_of_all(void **state)
{
    nbla_physical_memory *p[2] = {nbla_chunk(BYTES), nbla_chunk(BYTES)};
    void *contexts[THREADS] = {p, p, p, p};

    run(alias, contexts);
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(own_memories),
        TEST(blocks_of_one),
        TEST(chunks_of_all),
    };

    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
