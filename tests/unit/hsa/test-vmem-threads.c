/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that do to the same addresses and handles what excludes each other: what each is told must be true, and the
 * sums must be right at the end. Every pair is one of two functions that are called over and over at the same time.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/wait.h"
#include "tests/unit/hsa/vmem.h"

#define SIZE               ((size_t)64 << 10)
#define ROUNDS             1500
#define THREADS            4
#define INVALID_ARGUMENT   HSA_STATUS_ERROR_INVALID_ARGUMENT
#define INVALID_ALLOCATION HSA_STATUS_ERROR_INVALID_ALLOCATION

/* What the threads of a test have in common. */
struct stage {
    char *va; /* reserved, two sizes */
    handle_t handle;
    int fd;
    pthread_barrier_t start;
    unsigned turn; /* of the next thread; atomic */
    unsigned done; /* what succeeded, in a test's own meaning; atomic */
    unsigned undone;
    unsigned unexpected; /* statuses that nobody should be told */
};

static void count(unsigned *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Counts SUCCESS as done, and all but the other two as unexpected. */
static bool is_done(struct stage *stage, unsigned *counter, hsa_status_t status, hsa_status_t a, hsa_status_t b)
{
    if (status == HSA_STATUS_SUCCESS)
        count(counter);
    else if (status != a && status != b)
        count(&stage->unexpected);
    return status == HSA_STATUS_SUCCESS;
}

/* Half of the threads run each. */
static void run_both(struct stage *stage, void *(*one)(void *), void *(*other)(void *))
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&stage->start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? other : one, stage), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&stage->start);
    assert_int_equal(stage->unexpected, 0);
}

static struct stage begin(void)
{
    return (struct stage){.va = vmem_reserve(2 * SIZE), .handle = vmem_create(SIZE), .fd = -1};
}

static void end(struct stage *stage)
{
    vmem_release(stage->handle);
    vmem_free(stage->va, 2 * SIZE);
}

/* ---- map and unmap ----------------------------------------------------------------------------------------------- */

static void *map_all_the_time(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++)
        is_done(stage, &stage->done, hsa_amd_vmem_map(stage->va, SIZE, 0, stage->handle, 0), INVALID_ARGUMENT,
                INVALID_ARGUMENT);
    return NULL;
}

static void *unmap_all_the_time(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++)
        is_done(stage, &stage->undone, hsa_amd_vmem_unmap(stage->va, SIZE), INVALID_ALLOCATION, INVALID_ALLOCATION);
    return NULL;
}

/* Of two that map the same range, one does; of two that unmap it, too. */
static void map_against_map_and_unmap(void **state)
{
    struct stage stage = begin();

    run_both(&stage, map_all_the_time, unmap_all_the_time);
    assert_true(stage.done - stage.undone <= 1);
    if (stage.done > stage.undone)
        vmem_unmap(stage.va, SIZE);
    assert_status(hsa_amd_vmem_unmap(stage.va, SIZE), INVALID_ALLOCATION);
    end(&stage);
}

static void *map_and_unmap(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (is_done(stage, &stage->done, hsa_amd_vmem_map(stage->va, SIZE, 0, stage->handle, 0), INVALID_ARGUMENT,
                    INVALID_ARGUMENT))
            is_done(stage, &stage->undone, hsa_amd_vmem_unmap(stage->va, SIZE), HSA_STATUS_SUCCESS, HSA_STATUS_SUCCESS);
    }
    return NULL;
}

static void *set_and_get_access(void *data)
{
    struct stage *stage = data;
    const hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    const hsa_amd_memory_access_desc_t ro = {HSA_ACCESS_PERMISSION_RO, agents[1]};
    hsa_access_permission_t permissions;
    unsigned ignored = 0;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        is_done(stage, &ignored, hsa_amd_vmem_set_access(stage->va, SIZE, i % 2 ? &rw : &ro, 1), INVALID_ALLOCATION,
                INVALID_ALLOCATION);
        if (is_done(stage, &ignored, hsa_amd_vmem_get_access(stage->va, &permissions, agents[0]), INVALID_ALLOCATION,
                    INVALID_ALLOCATION) &&
            permissions != HSA_ACCESS_PERMISSION_RW)
            count(&stage->unexpected);
    }
    return NULL;
}

/* Access is only ever given to what is mapped, and what is mapped anew has none. */
static void set_access_against_unmap(void **state)
{
    struct stage stage = begin();

    run_both(&stage, map_and_unmap, set_and_get_access);
    assert_int_equal(stage.done, stage.undone);
    assert_string_equal(vmem_pages(stage.va), "---");
    vmem_map(stage.va, SIZE, stage.handle);
    assert_string_equal(vmem_pages(stage.va), "---");
    vmem_unmap(stage.va, SIZE);
    end(&stage);
}

/* ---- references -------------------------------------------------------------------------------------------------- */

static void *retain_and_count(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        handle_t handle;

        if (is_done(stage, &stage->done, hsa_amd_vmem_retain_alloc_handle(&handle, stage->va + 1), INVALID_ALLOCATION,
                    INVALID_ALLOCATION) &&
            handle.handle != stage->handle.handle)
            count(&stage->unexpected);
    }
    return NULL;
}

static void *release_and_count(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++)
        is_done(stage, &stage->undone, hsa_amd_vmem_handle_release(stage->handle), INVALID_ALLOCATION,
                INVALID_ALLOCATION);
    return NULL;
}

/* Every reference is one, also while the handle dies and lives again. */
static void retain_against_release(void **state)
{
    struct stage stage = begin();
    unsigned left;

    vmem_map(stage.va, SIZE, stage.handle);
    run_both(&stage, retain_and_count, release_and_count);
    assert_int_equal(stage.done, ROUNDS * THREADS / 2);
    for (left = 1 + stage.done - stage.undone; left; left--)
        vmem_release(stage.handle);
    assert_status(hsa_amd_vmem_handle_release(stage.handle), INVALID_ALLOCATION);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    vmem_unmap(stage.va, SIZE);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    vmem_free(stage.va, 2 * SIZE);
}

static void *import_use_and_release(void *data)
{
    struct stage *stage = data;
    unsigned at = __atomic_fetch_add(&stage->turn, 1, __ATOMIC_RELAXED);
    char *va = stage->va + at * page_size();
    handle_t handle;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        if (!is_done(stage, &stage->done, hsa_amd_vmem_import_shareable_handle(stage->fd, &handle), HSA_STATUS_SUCCESS,
                     HSA_STATUS_SUCCESS))
            break;
        if (handle.handle != stage->handle.handle || hsa_amd_vmem_map(va, page_size(), 0, handle, 0) ||
            hsa_amd_vmem_unmap(va, page_size()))
            count(&stage->unexpected);
        is_done(stage, &stage->undone, hsa_amd_vmem_handle_release(handle), HSA_STATUS_SUCCESS, HSA_STATUS_SUCCESS);
    }
    return NULL;
}

/* The memory's only handle comes and goes, under one number. */
static void import_against_release(void **state)
{
    struct stage stage = begin();

    assert_success(hsa_amd_vmem_export_shareable_handle(&stage.fd, stage.handle, 0));
    vmem_release(stage.handle);
    run_both(&stage, import_use_and_release, import_use_and_release);
    assert_int_equal(stage.done, stage.undone);
    assert_status(hsa_amd_vmem_handle_release(stage.handle), INVALID_ALLOCATION);
    close(stage.fd);
    vmem_free(stage.va, 2 * SIZE);
}

static void *import_and_release(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        handle_t handle;

        if (is_done(stage, &stage->done, hsa_amd_vmem_import_shareable_handle(stage->fd, &handle), HSA_STATUS_SUCCESS,
                    HSA_STATUS_SUCCESS))
            is_done(stage, &stage->undone, hsa_amd_vmem_handle_release(handle), HSA_STATUS_SUCCESS, HSA_STATUS_SUCCESS);
    }
    return NULL;
}

/*
 * Who imports finds that another thread has just done so and just undoes it. No other answer than SUCCESS is right;
 * once it was OUT_OF_RESOURCES, when the other's handle went between two looks at the table.
 */
static void import_against_another_import_that_goes(void **state)
{
    struct stage stage = begin();

    assert_success(hsa_amd_vmem_export_shareable_handle(&stage.fd, stage.handle, 0));
    vmem_release(stage.handle);
    run_both(&stage, import_and_release, import_and_release);
    assert_int_equal(stage.done, ROUNDS * THREADS);
    assert_int_equal(stage.undone, ROUNDS * THREADS);
    close(stage.fd);
    vmem_free(stage.va, 2 * SIZE);
}

static void *map_release_and_unmap(void *data)
{
    struct stage *stage = data;
    unsigned at = __atomic_fetch_add(&stage->turn, 1, __ATOMIC_RELAXED);
    char *va = stage->va + at * page_size();

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        hsa_amd_memory_pool_t pool = pools[i % AGENTS][i % POOLS];
        handle_t handle;

        if (!is_done(stage, &stage->done, hsa_amd_vmem_handle_create(pool, page_size(), MEMORY_TYPE_PINNED, 0, &handle),
                     HSA_STATUS_SUCCESS, HSA_STATUS_SUCCESS))
            break;
        if (hsa_amd_vmem_map(va, page_size(), 0, handle, 0) || hsa_amd_vmem_handle_release(handle) ||
            hsa_amd_vmem_unmap(va, page_size()))
            count(&stage->unexpected);
    }
    return NULL;
}

/* Side by side in one reservation, with handles of their own. */
static void create_map_release_and_unmap_side_by_side(void **state)
{
    struct stage stage = begin();

    run_both(&stage, map_release_and_unmap, map_release_and_unmap);
    assert_int_equal(stage.done, ROUNDS / 10 * THREADS);
    end(&stage);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static void *reserve_map_and_free(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        void *va;

        if (hsa_amd_vmem_address_reserve(&va, SIZE, (uintptr_t)stage->va, 0) ||
            hsa_amd_vmem_map(va, SIZE, 0, stage->handle, 0) ||
            hsa_amd_vmem_address_free(va, SIZE) != HSA_STATUS_ERROR_RESOURCE_FREE || hsa_amd_vmem_unmap(va, SIZE) ||
            hsa_amd_vmem_address_free(va, SIZE))
            count(&stage->unexpected);
    }
    return NULL;
}

/* All want the same addresses; who does not get them gets others. */
static void reserve_against_free(void **state)
{
    struct stage stage = begin();
    char *va = stage.va;

    vmem_free(va, 2 * SIZE);
    run_both(&stage, reserve_map_and_free, reserve_map_and_free);
    vmem_release(stage.handle);
    assert_string_equal(vmem_pages(va), "");
}

static void *map_where_it_may_vanish(void *data)
{
    struct stage *stage = data;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS; i++)
        if (is_done(stage, &stage->done, hsa_amd_vmem_map(stage->va, SIZE, 0, stage->handle, 0), INVALID_ARGUMENT,
                    INVALID_ARGUMENT))
            is_done(stage, &stage->undone, hsa_amd_vmem_unmap(stage->va, SIZE), HSA_STATUS_SUCCESS, HSA_STATUS_SUCCESS);
    return NULL;
}

static void *free_and_reserve(void *data)
{
    struct stage *stage = data;
    unsigned ignored = 0;

    pthread_barrier_wait(&stage->start);
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        void *va = NULL;

        if (!is_done(stage, &ignored, hsa_amd_vmem_address_free(stage->va, 2 * SIZE), INVALID_ALLOCATION,
                     HSA_STATUS_ERROR_RESOURCE_FREE))
            continue;
        if (hsa_amd_vmem_address_reserve(&va, 2 * SIZE, (uintptr_t)stage->va, 0) || va != stage->va)
            count(&stage->unexpected);
    }
    return NULL;
}

/* Nothing is ever mapped where nothing is reserved, and no range vanishes under a mapping. */
static void address_free_against_map(void **state)
{
    struct stage stage = begin();

    run_both(&stage, map_where_it_may_vanish, free_and_reserve);
    assert_int_equal(stage.done, stage.undone);
    end(&stage);
}

#define test(function) cmocka_unit_test_teardown(function, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(map_against_map_and_unmap),
        test(set_access_against_unmap),
        test(retain_against_release),
        test(import_against_release),
        test(import_against_another_import_that_goes),
        test(create_map_release_and_unmap_side_by_side),
        test(reserve_against_free),
        test(address_free_against_map),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
