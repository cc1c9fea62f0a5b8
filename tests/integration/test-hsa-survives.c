/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA over a broker that is killed again and again: threads allocate, map, share and check what they wrote, another
 * process attaches and imports, and no call fails, no byte is lost, and nothing is left afterwards.
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

#define BROKERS 20
#define THREADS 4
#define SIZE    (256 * 1024)

static bool over; /* atomic */
/* Atomic: of each thread, and at the end of the other process; shared with it. */
static unsigned *turns;
static char problem[300]; /* the first thing that went wrong; under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_over(void)
{
    return __atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

static void note_problem(const char *what, int line, int value)
{
    pthread_mutex_lock(&lock);
    if (!problem[0])
        snprintf(problem, sizeof(problem), "line %d: %s gave 0x%x (%s)", line, what, (unsigned)value,
                 memclient_error());
    pthread_mutex_unlock(&lock);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
}

/* In a thread, which must not leave by cmocka's way. */
#define TRY(call)                                        \
    do {                                                 \
        hsa_status_t status_ = (call);                   \
        if (status_) {                                   \
            note_problem(#call, __LINE__, (int)status_); \
            return false;                                \
        }                                                \
    } while (0)
#define HOLDS(expression)                                      \
    do {                                                       \
        if (!(expression)) {                                   \
            note_problem("not so: " #expression, __LINE__, 0); \
            return false;                                      \
        }                                                      \
    } while (0)

static void write_all(uint64_t *words, uint64_t seed)
{
    for (size_t i = 0; i < SIZE / sizeof(*words); i++)
        words[i] = seed + i;
}

static bool is_all(const uint64_t *words, uint64_t seed)
{
    for (size_t i = 0; i < SIZE / sizeof(*words); i++)
        if (words[i] != seed + i)
            return false;
    return true;
}

/* Allocated, owned by one agent and another, copied, freed. */
static bool use_pools(unsigned me, uint64_t seed)
{
    uint64_t *a, *b;

    TRY(hsa_amd_memory_pool_allocate(pools[me % AGENTS][FINE], SIZE, 0, (void **)&a));
    TRY(hsa_memory_allocate(regions[me % AGENTS][COARSE], SIZE, (void **)&b));
    write_all(a, seed);
    TRY(hsa_memory_copy(b, a, SIZE));
    TRY(hsa_memory_assign_agent(b, agents[(me + 1) % AGENTS], HSA_ACCESS_PERMISSION_RO));
    HOLDS(is_all(a, seed) && is_all(b, seed));
    TRY(hsa_memory_free(a));
    TRY(hsa_memory_free(b));
    return true;
}

/* Created, mapped twice, exported, imported, unmapped, freed. */
static bool use_virtual_memory(unsigned me, uint64_t seed)
{
    const hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agents[me % AGENTS]};
    hsa_amd_vmem_alloc_handle_t handle, again;
    char *va;
    int fd;

    TRY(hsa_amd_vmem_address_reserve((void **)&va, 2 * SIZE, 0, 0));
    TRY(hsa_amd_vmem_handle_create(pools[me % AGENTS][FINE], SIZE, MEMORY_TYPE_PINNED, 0, &handle));
    TRY(hsa_amd_vmem_map(va, SIZE, 0, handle, 0));
    TRY(hsa_amd_vmem_set_access(va, SIZE, &desc, 1));
    write_all((uint64_t *)(void *)va, seed);
    TRY(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    TRY(hsa_amd_vmem_unmap(va, SIZE));
    TRY(hsa_amd_vmem_handle_release(handle));
    TRY(hsa_amd_vmem_import_shareable_handle(fd, &again));
    close(fd);
    TRY(hsa_amd_vmem_map(va, SIZE, 0, again, 0));
    TRY(hsa_amd_vmem_map(va + SIZE, SIZE, 0, again, 0));
    TRY(hsa_amd_vmem_set_access(va, 2 * SIZE, &desc, 1));
    HOLDS(is_all((const uint64_t *)(const void *)va, seed));
    HOLDS(is_all((const uint64_t *)(const void *)(va + SIZE), seed));
    TRY(hsa_amd_vmem_unmap(va, 2 * SIZE));
    TRY(hsa_amd_vmem_handle_release(again));
    TRY(hsa_amd_vmem_address_free(va, 2 * SIZE));
    return true;
}

static void *work(void *data)
{
    const unsigned me = (unsigned)(uintptr_t)data;

    for (uint64_t turn = 0; !is_over(); turn++) {
        if (!use_pools(me, turn * THREADS + me) || !use_virtual_memory(me, turn * THREADS + me))
            break;
        __atomic_fetch_add(&turns[me], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Has everybody done all of a turn since? One call is not tried with a third broker when two have died at it. */
static bool have_got_on(const unsigned before[THREADS + 1])
{
    for (unsigned i = 0; i <= THREADS; i++)
        if (__atomic_load_n(&turns[i], __ATOMIC_RELAXED) < before[i] + 2)
            return false;
    return true;
}

/* ---- the other process ------------------------------------------------------------------------------------------- */

struct offer {
    hsa_amd_ipc_memory_t handle;
};

/* Attaches what it was offered again and again, and says each time that it is what was written. */
static void attach_again_and_again(int channel, void *data)
{
    const struct offer *offer = data;
    uint64_t *words, *first;

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_attach(&offer->handle, SIZE, 0, NULL, (void **)&first) == HSA_STATUS_SUCCESS);
    tell(channel);
    while (wait_for_events(channel, POLLIN, 0) == 0) {
        void *ptr;

        CHECK(hsa_amd_ipc_memory_attach(&offer->handle, SIZE, 0, NULL, (void **)&words) == HSA_STATUS_SUCCESS);
        CHECK(is_all(words, 12345));
        CHECK(hsa_amd_ipc_memory_detach(words) == HSA_STATUS_SUCCESS);
        CHECK(hsa_memory_allocate(regions[1][FINE], SIZE, &ptr) == HSA_STATUS_SUCCESS);
        CHECK(hsa_memory_free(ptr) == HSA_STATUS_SUCCESS);
        __atomic_fetch_add(&turns[THREADS], 1, __ATOMIC_RELAXED);
    }
    hear(channel);
    CHECK(is_all(first, 12345));
    CHECK(hsa_amd_ipc_memory_detach(first) == HSA_STATUS_SUCCESS);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* Twenty brokers die, each while the threads are at work, and nobody notices. */
static void brokers_die_and_nobody_notices(void **state)
{
    pthread_t threads[THREADS];
    struct child child;
    struct offer offer;
    uint64_t *kept;

    turns = mmap(NULL, (THREADS + 1) * sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped(turns);
    assert_success(hsa_memory_allocate(regions[0][FINE], SIZE, (void **)&kept));
    write_all(kept, 12345);
    assert_success(hsa_amd_ipc_memory_create(kept, SIZE, &offer.handle));
    child_start(&child, attach_again_and_again, &offer);
    child_hear(&child);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < BROKERS && !is_over(); i++) {
        unsigned before[THREADS + 1];

        broker_kill_child(&observed);
        for (unsigned k = 0; k <= THREADS; k++)
            before[k] = __atomic_load_n(&turns[k], __ATOMIC_RELAXED);
        assert_true(WAIT_UNTIL(have_got_on(before) || is_over()));
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    child_tell(&child);
    child_finish(&child);
    if (problem[0])
        fail_msg("%s", problem);
    assert_true(is_all(kept, 12345));
    assert_success(hsa_memory_free(kept));
    munmap(turns, (THREADS + 1) * sizeof(*turns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(brokers_die_and_nobody_notices, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
