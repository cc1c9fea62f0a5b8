/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads at HSA's memory at once. They only note what was wrong; the test's own thread asserts.
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* TSan and valgrind take long for each thread; under them fewer say the same. */
#define MANY (TEST_TSAN ? 64 : 1024)

static _Atomic unsigned wrong;

static void expect(bool right)
{
    wrong += !right;
}

static void run(int n, void *(*body)(void *))
{
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));

    assert_non_null(threads);
    wrong = 0;
    for (intptr_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    free(threads);
    assert_int_equal(wrong, 0);
}

/* ---- allocate and free ------------------------------------------------------------------------------------------- */

static void *on_every_pool(void *arg)
{
    for (unsigned i = 0; i < AGENTS; i++)
        for (unsigned k = 0; k < POOLS; k++) {
            char *ptr = NULL;

            expect(!hsa_amd_memory_pool_allocate(pools[i][k], MIB, 0, (void **)&ptr) && ptr);
            if (!ptr)
                continue;
            expect(!ptr[0] && !ptr[MIB - 1]);
            ptr[0] = ptr[MIB - 1] = (char)(intptr_t)arg;
            expect(ptr[0] == (char)(intptr_t)arg);
            expect(!hsa_amd_memory_pool_free(ptr));
        }
    return NULL;
}

/* 1 024 threads, 1 MiB each, on every pool: hsa_amd_memory_pool_allocate, hsa_amd_memory_pool_free. */
static void test_every_pool(void **state)
{
    run(MANY, on_every_pool);
}

/* ---- free, against whoever looks --------------------------------------------------------------------------------- */

#define SLOTS  16
#define ROUNDS (TEST_TSAN ? 200 : 1000)

static void *_Atomic slots[SLOTS];
static _Atomic unsigned registered, called;

static void count(void *ptr, void *data)
{
    (void)ptr;
    (void)data;
    called++;
}

/* A third replaces what is in the slots, the others ask about it, whether it is there or not. */
static void *replace_and_look(void *arg)
{
    intptr_t self = (intptr_t)arg;

    for (int i = 0; i < ROUNDS; i++) {
        unsigned slot = (unsigned)(self * 7 + i) % SLOTS;
        hsa_amd_pointer_info_t info = {.size = sizeof(info)};
        hsa_agent_t *list = NULL;
        hsa_status_t status;
        uint32_t n;
        void *ptr;

        switch (self % 3) {
        case 0:
            expect(!hsa_memory_allocate(regions[i % AGENTS][i % POOLS], 4096, &ptr));
            expect(!hsa_memory_free(atomic_exchange(&slots[slot], ptr)));
            break;
        case 1:
            ptr = slots[slot];
            if (!ptr)
                break;
            expect(!hsa_amd_pointer_info(ptr, &info, malloc, &n, &list));
            expect(info.type == HSA_EXT_POINTER_TYPE_UNKNOWN ||
                   (info.type == HSA_EXT_POINTER_TYPE_HSA && info.hostBaseAddress == ptr && n == AGENTS));
            free(list);
            (void)hsa_amd_pointer_info_set_userdata(ptr, &info);
            break;
        default:
            ptr = slots[slot];
            if (!ptr)
                break;
            status = hsa_amd_register_deallocation_callback(ptr, count, NULL);
            expect(!status || status == HSA_STATUS_ERROR_INVALID_ALLOCATION);
            registered += !status;
            status = hsa_memory_assign_agent(ptr, agents[i % AGENTS], HSA_ACCESS_PERMISSION_RW);
            expect(!status || status == HSA_STATUS_ERROR_INVALID_ALLOCATION);
        }
    }
    return NULL;
}

/* hsa_memory_free against hsa_amd_pointer_info, hsa_memory_assign_agent and deallocation callbacks: each of those that
 * was registered is called once. */
static void test_free_and_look(void **state)
{
    run(9, replace_and_look);
    for (int i = 0; i < SLOTS; i++)
        assert_success(hsa_memory_free(atomic_exchange(&slots[i], NULL)));
    assert_int_equal(called, registered);
}

/* ---- the same pointer -------------------------------------------------------------------------------------------- */

static void *_Atomic contended;
static _Atomic unsigned freed;
static pthread_barrier_t barrier;

static void *free_contended(void *arg)
{
    for (int i = 0; i < 100; i++) {
        void *ptr = NULL;
        hsa_status_t status;

        if (!arg) {
            expect(!hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
            contended = ptr;
        }
        pthread_barrier_wait(&barrier);
        status = hsa_memory_free(contended);
        expect(!status || status == HSA_STATUS_ERROR_INVALID_ALLOCATION);
        freed += !status;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* hsa_memory_free of one pointer by several threads: one of them frees it. */
static void test_free_once(void **state)
{
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 4), 0);
    run(4, free_contended);
    assert_int_equal(freed, 100);
    pthread_barrier_destroy(&barrier);
}

/* ---- starting and stopping --------------------------------------------------------------------------------------- */

static void *come_and_go(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        char *ptr = NULL;

        expect(!hsa_init());
        expect(!hsa_memory_allocate(regions[0][FINE], 4096, (void **)&ptr));
        if (ptr) {
            ptr[0] = 1;
            expect(!hsa_amd_register_deallocation_callback(ptr, count, NULL));
            expect(!hsa_memory_free(ptr));
        }
        expect(!hsa_shut_down());
    }
    return NULL;
}

/* hsa_shut_down to 0 and hsa_init again, now and then, while every thread that has initialised uses memory. */
static void test_come_and_go(void **state)
{
    assert_success(hsa_shut_down());
    run(8, come_and_go);
    assert_success(hsa_init());
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_pool),
        TEST(test_free_and_look),
        TEST(test_free_once),
        TEST(test_come_and_go),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
