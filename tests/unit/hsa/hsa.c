/* SPDX-License-Identifier: Apache-2.0 */
/* See hsa.h. */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"

struct broker_process hsa_broker;
hsa_agent_t agents[AGENTS];
hsa_amd_memory_pool_t pools[AGENTS][POOLS];
hsa_region_t regions[AGENTS][POOLS];
const char *hsa_config;

static struct memclient *observer; /* a session of our own beside HSA's */
static uint64_t asked;             /* requests that were our questions */

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

static struct memclient_broker_status status(void)
{
    struct memclient_broker_status answer = MEMCLIENT_BROKER_STATUS_INIT;

    assert_int_equal(memclient_status(observer, &answer), 0);
    asked++;
    return answer;
}

uint64_t hsa_requests(void)
{
    struct memclient_broker_status answer = status();

    return answer.requests - asked;
}

uint64_t hsa_buffers(void)
{
    return status().buffers;
}

/* Those too that only a descriptor or a mapping keeps. */
static uint64_t all_buffers(void)
{
    struct memclient_broker_status answer = status();

    return answer.buffers + answer.buffers_detached;
}

int hsa_nothing_left(void **state)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    (void)state;
    if (!WAIT_UNTIL(all_buffers() == 0))
        fail_msg("%llu buffers are left", (unsigned long long)all_buffers());
    assert_int_equal(memclient_check(observer, &result), 0);
    asked++;
    if (result.faults)
        fail_msg("%s", result.sentences[0]);
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
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    char config[4096];
    unsigned n = 0;

    (void)state;
    snprintf(config, sizeof(config), "[topology]\nsimulate_nodes = %d\n%s", AGENTS, hsa_config ? hsa_config : "");
    broker_start(&hsa_broker, config, 0);
    setenv("MEMORYD_SOCKET", hsa_broker.socket, 1);
    setenv("MEMORYD_AUTOSTART", "0", 1);
    options.socket = hsa_broker.socket;
    assert_int_equal(memclient_open(&options, &observer), 0);
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
    memclient_close(observer);
    broker_stop(&hsa_broker);
    return 0;
}

bool hsa_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");

    return preloaded && strstr(preloaded, "vgpreload");
}

void hsa_use_up_memory(void)
{
    const struct rlimit none = {0};
    void *volatile got; /* or a compiler would leave out what nobody uses */

    if (TEST_ASAN || TEST_TSAN || TEST_MSAN || hsa_under_valgrind())
        child_skip("it runs under a tool that needs memory itself");
    /* in sizes that go down, so that no hole is left */
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (size_t size = MIB; size >= 16; size /= 2)
        do
            got = malloc(size);
        while (got);
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
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN || hsa_under_valgrind())
        test_skip("it runs under a tool that needs mappings itself");
}
