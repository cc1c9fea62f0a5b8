/* SPDX-License-Identifier: Apache-2.0 */
/* See hsa.h. */
#include "tests/unit/hsa/hsa.h"

hsa_agent_t agents[AGENTS];
hsa_amd_memory_pool_t pools[AGENTS][POOLS];
hsa_region_t regions[AGENTS][POOLS];
const char *hsa_config;

void hsa_assert_status(hsa_status_t got, hsa_status_t wanted, const char *call, const char *file, int line)
{
    const char *got_text = "?", *wanted_text = "?";

    if (got == wanted)
        return;
    (void)hsa_status_string(got, &got_text);
    (void)hsa_status_string(wanted, &wanted_text);
    print_error("%s\n    gave   0x%x %s (%s)\n    wanted 0x%x %s\n", call, got, got_text, memclient_error(), wanted,
                wanted_text);
    _fail(file, line);
}

int hsa_nothing_left(void **state)
{
    observer_expect_nothing();
    return 0;
}

static hsa_status_t note_agent(hsa_agent_t agent, void *data)
{
    unsigned *n = data;

    if (*n < AGENTS)
        agents[*n] = agent;
    ++*n;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t note_pool(hsa_amd_memory_pool_t pool, void *data)
{
    hsa_amd_memory_pool_t *of_agent = data;
    uint32_t flags = 0;

    assert_success(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
        of_agent[COARSE] = pool;
    else
        of_agent[flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT ? KERNARG : FINE] = pool;
    return HSA_STATUS_SUCCESS;
}

int hsa_group_setup(void **state)
{
    unsigned n = 0;

    observer_start(AGENTS, hsa_config);
    assert_success(hsa_init());
    assert_success(hsa_iterate_agents(note_agent, &n));
    assert_int_equal(n, AGENTS);
    for (unsigned i = 0; i < AGENTS; i++) {
        assert_success(hsa_amd_agent_iterate_memory_pools(agents[i], note_pool, pools[i]));
        for (unsigned k = 0; k < POOLS; k++)
            regions[i][k].handle = pools[i][k].handle;
    }
    return 0;
}

int hsa_group_teardown(void **state)
{
    assert_success(hsa_shut_down());
    hsa_nothing_left(state);
    observer_stop();
    return 0;
}

void hsa_skip_unless_few_mappings(unsigned most)
{
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    unsigned count = UINT32_MAX;

    if (!f || fscanf(f, "%u", &count) != 1 || count > most)
        count = UINT32_MAX;
    if (f)
        fclose(f);
    if (count == UINT32_MAX)
        test_skip("the kernel takes more than %u mappings", most);
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN || test_under_valgrind())
        test_skip("it runs under a tool that needs mappings itself");
}
