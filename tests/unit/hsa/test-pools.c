/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_amd_agent_iterate_memory_pools, hsa_amd_memory_pool_get_info with every attribute, and
 * hsa_amd_agent_memory_pool_get_info with every attribute.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/hsa/ask.h"

#define INVALID_MEMORY_POOL ((hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL)

static hsa_status_t visit_pool(hsa_amd_memory_pool_t pool, void *data)
{
    return visit(pool.handle, data);
}

static hsa_status_t visit_region(hsa_region_t region, void *data)
{
    return visit(region.handle, data);
}

static size_t size_of(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute)
{
    size_t size;

    assert_success(hsa_amd_memory_pool_get_info(pool, attribute, &size));
    return size;
}

/* hsa_amd_agent_iterate_memory_pools, agent, callback and data: SUCCESS, the agent's own, and no more than three. */
static void iterate_pools(void **state)
{
    for (unsigned agent = 0; agent < AGENTS; agent++) {
        struct visit v = {0};

        assert_success(hsa_amd_agent_iterate_memory_pools(agents[agent], visit_pool, &v));
        assert_int_equal(v.calls, POOLS);
        for (unsigned kind = 0; kind < POOLS; kind++)
            assert_int_equal(v.seen[kind], pools[agent][kind].handle);
    }
    assert_int_not_equal(pools[0][FINE].handle, pools[1][FINE].handle);
}

/* hsa_amd_agent_iterate_memory_pools, callback: what it returns other than SUCCESS ends it and is returned. */
static void iterate_pools_ends_early(void **state)
{
    for (unsigned end = 1; end <= POOLS; end++) {
        struct visit v = {.end_at = end, .end_with = end % 2 ? HSA_STATUS_INFO_BREAK : HSA_STATUS_ERROR_FATAL};

        assert_status(hsa_amd_agent_iterate_memory_pools(agents[1], visit_pool, &v), v.end_with);
        assert_int_equal(v.calls, end);
    }
}

/* hsa_amd_agent_iterate_memory_pools: callback NULL is INVALID_ARGUMENT, before agent, which is INVALID_AGENT. */
static void iterate_pools_arguments(void **state)
{
    struct visit v = {0};

    assert_status(hsa_amd_agent_iterate_memory_pools(agents[0], NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agent_iterate_memory_pools((hsa_agent_t){0}, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agent_iterate_memory_pools((hsa_agent_t){0}, visit_pool, &v), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_agent_iterate_memory_pools((hsa_agent_t){UINT64_MAX}, visit_pool, &v),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(v.calls, 0);
}

/* hsa_amd_memory_pool_get_info, memory_pool, attribute and value: SUCCESS, each attribute has its size and value; those
 * that only regions have (3, 4, 8) are none: INVALID_ARGUMENT. */
static void attributes(void **state)
{
    static const uint32_t flags[POOLS] = {
        [FINE] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED,
        [KERNARG] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
        [COARSE] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
    };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    for (unsigned agent = 0; agent < AGENTS; agent++)
        for (unsigned kind = 0; kind < POOLS; kind++) {
            const struct attribute rows[] = {
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_SEGMENT, hsa_amd_segment_t, HSA_AMD_SEGMENT_GLOBAL),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, uint32_t, flags[kind]),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_SIZE, size_t, DIFFERS),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, bool, true),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, size_t, page),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT, size_t, page),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL, bool, true),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, size_t, DIFFERS),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_LOCATION, hsa_amd_memory_pool_location_t,
                          HSA_AMD_MEMORY_POOL_LOCATION_CPU),
                ATTRIBUTE(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, size_t, 2 * MIB),
            };

            ask_all(ask_pool, pools[agent][kind].handle, rows, sizeof(rows) / sizeof(rows[0]));
        }
}

/* hsa_amd_memory_pool_get_info, memory_pool: INVALID_MEMORY_POOL, also for a region that nothing can be allocated
 * from; checks go by value, pool, attribute. */
static void invalid_pools(void **state)
{
    uint64_t handles[AGENTS * POOLS];
    struct visit v = {0};
    uint32_t segment;

    for (unsigned i = 0; i < AGENTS * POOLS; i++)
        handles[i] = pools[i / POOLS][i % POOLS].handle;
    ask_handles(ask_pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, handles, AGENTS * POOLS, INVALID_MEMORY_POOL);
    ask_in_order(ask_pool, handles[0], HSA_AMD_MEMORY_POOL_INFO_SEGMENT, INVALID_MEMORY_POOL);
    assert_success(hsa_agent_iterate_regions(agents[0], visit_region, &v));
    for (unsigned i = 0; i < v.calls; i++) {
        bool allowed;

        assert_success(ask_region(v.seen[i], HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
        assert_status(ask_pool(v.seen[i], HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment),
                      allowed ? HSA_STATUS_SUCCESS : INVALID_MEMORY_POOL);
    }
}

/* HSA_AMD_MEMORY_POOL_INFO_SIZE, ALLOC_MAX_SIZE: as the region of the same handle says. */
static void sizes(void **state)
{
    for (unsigned kind = 0; kind < POOLS; kind++) {
        size_t of_region, max_of_region;

        assert_success(hsa_region_get_info(regions[1][kind], HSA_REGION_INFO_SIZE, &of_region));
        assert_success(hsa_region_get_info(regions[1][kind], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max_of_region));
        assert_int_equal(size_of(pools[1][kind], HSA_AMD_MEMORY_POOL_INFO_SIZE), of_region);
        assert_int_equal(size_of(pools[1][kind], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE), max_of_region);
        assert_in_range(max_of_region, 1, of_region);
    }
}

/* HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE: what this process has taken or given back it sees at once. */
static void room_follows(void **state)
{
    size_t before = size_of(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE);

    for (unsigned i = 0; i < 50; i++) {
        void *ptr;

        assert_success(hsa_amd_memory_pool_allocate(pools[0][i % POOLS], 2 * MIB, 0, &ptr));
        assert_int_equal(size_of(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE), before - 2 * MIB);
        assert_success(hsa_amd_memory_pool_free(ptr));
        assert_int_equal(size_of(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE), before);
    }
}

/* hsa_amd_agent_memory_pool_get_info(agent, memory_pool, attribute, value): SUCCESS for
 * HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS and
 * HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, hsa_amd_memory_pool_link_info_t. Every agent may use every pool; another
 * agent's is one link away, at the distance that the system's table says. */
static void links(void **state)
{
    for (unsigned agent = 0; agent < AGENTS; agent++)
        for (unsigned i = 0; i < AGENTS * POOLS; i++) {
            hsa_amd_memory_pool_t pool = pools[i / POOLS][i % POOLS];
            bool own = i / POOLS == agent;
            hsa_amd_memory_pool_access_t access;
            struct {
                uint32_t before;
                hsa_amd_memory_pool_link_info_t link;
                uint32_t behind;
            } room;
            uint32_t hops;

            memset(&room, 0xa5, sizeof(room));
            assert_success(hsa_amd_agent_memory_pool_get_info(agents[agent], pool,
                                                              HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
            assert_success(hsa_amd_agent_memory_pool_get_info(agents[agent], pool,
                                                              HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops));
            assert_success(hsa_amd_agent_memory_pool_get_info(agents[agent], pool,
                                                              HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, &room.link));
            assert_int_equal(access, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
            assert_int_equal(hops, own ? 0 : 1);
            assert_int_equal(room.before, 0xa5a5a5a5);
            assert_int_equal(room.behind, 0xa5a5a5a5);
            assert_int_equal(room.link.numa_distance, own ? 0 : 20);
            assert_int_equal(room.link.coherent_support, !own);
            assert_int_equal(room.link.link_type, 0);
            assert_int_equal(room.link.atomic_support_32bit, !own);
            assert_int_equal(room.link.atomic_support_64bit, !own);
            assert_int_equal(
                room.link.min_latency | room.link.max_latency | room.link.min_bandwidth | room.link.max_bandwidth, 0);
        }
}

/* hsa_amd_agent_memory_pool_get_info: value NULL is INVALID_ARGUMENT, then agent INVALID_AGENT, memory_pool
 * INVALID_MEMORY_POOL, attribute INVALID_ARGUMENT. */
static void links_arguments(void **state)
{
    const hsa_agent_t no_agent = {0};
    const hsa_amd_memory_pool_t no_pool = {0};
    uint8_t value[64];

    assert_status(hsa_amd_agent_memory_pool_get_info(no_agent, no_pool, 77, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agent_memory_pool_get_info(no_agent, no_pool, 77, value), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_agent_memory_pool_get_info(agents[0], no_pool, 77, value), INVALID_MEMORY_POOL);
    for (unsigned attribute = 3; attribute < 1000; attribute++)
        assert_status(hsa_amd_agent_memory_pool_get_info(agents[0], pools[0][FINE],
                                                         (hsa_amd_agent_memory_pool_info_t)attribute, value),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

#define ASKING 64

static void *ask_much(void *data)
{
    unsigned n = (unsigned)(uintptr_t)data;
    bool good = true;

    for (unsigned i = 0; i < 200 && good; i++) {
        size_t max = 0, size = 1;
        uint32_t node = 99;

        good = !hsa_amd_memory_pool_get_info(pools[n % AGENTS][n % POOLS], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE,
                                             &max) &&
               !hsa_amd_memory_pool_get_info(pools[n % AGENTS][n % POOLS], HSA_AMD_MEMORY_POOL_INFO_SIZE, &size) &&
               !hsa_agent_get_info(agents[n % AGENTS], HSA_AGENT_INFO_NODE, &node) && max <= size && node == n % AGENTS;
        if (n % 8 == 0) {
            void *ptr;

            good =
                good && !hsa_amd_memory_pool_allocate(pools[0][FINE], 4096, 0, &ptr) && !hsa_amd_memory_pool_free(ptr);
        }
    }
    return (void *)(uintptr_t)good;
}

/* hsa_amd_memory_pool_get_info from many threads, while some allocate and free. */
static void many_threads_query(void **state)
{
    pthread_t threads[ASKING];
    void *good;

    for (unsigned i = 0; i < ASKING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_much, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < ASKING; i++) {
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_true(good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterate_pools),
        cmocka_unit_test(iterate_pools_ends_early),
        cmocka_unit_test(iterate_pools_arguments),
        cmocka_unit_test(attributes),
        cmocka_unit_test(invalid_pools),
        cmocka_unit_test(sizes),
        cmocka_unit_test_teardown(room_follows, hsa_nothing_left),
        cmocka_unit_test(links),
        cmocka_unit_test(links_arguments),
        cmocka_unit_test_teardown(many_threads_query, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
