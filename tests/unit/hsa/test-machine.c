/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_describe() and machine_identify() on trees of files as kernels show them: two nodes of x86-64, one with
 * memory alone, arm64, and nothing at all.
 */
#include "hsa/topology.h"

#include <string.h>
#include <unistd.h>

#include "tests/support/files.h"
#include "tests/support/test.h"

static void put_cache(unsigned cpu, unsigned index, const char *level, const char *type, const char *size)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index%u/level", cpu, index);
    files_put(path, level);
    (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index%u/type", cpu, index);
    files_put(path, type);
    (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index%u/size", cpu, index);
    files_put(path, size);
    (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index%u/coherency_line_size", cpu, index);
    files_put(path, "128\n");
}

static struct agent describe(uint32_t node, bool has_cpus)
{
    struct agent agent = {.node = node};

    machine_describe(&agent, node, has_cpus, files_root);
    machine_identify(&agent, files_root);
    return agent;
}

static void put_two_nodes(void)
{
    files_put("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    files_put("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    files_put("sys/devices/system/node/node1/cpulist", "4-7\n");
    files_put("sys/devices/system/node/node2/cpulist", "\n");
    files_put("sys/devices/system/cpu/cpu4/cpufreq/cpuinfo_max_freq", "3500000\n");
    files_put(
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: First Processor\n"
        "cpu MHz\t\t: 2100.123\n\n"
        "processor\t: 4\nmodel\t\t: 85\nmodel name\t: A name that is longer than the sixty-four bytes that HSA has "
        "for names\ncpu MHz\t\t: 1200.000\n\n"
        "processor\t: 5\nmodel name\t: Last Processor\n");
    put_cache(0, 0, "1\n", "Data\n", "48K\n");
    put_cache(0, 1, "1\n", "Instruction\n", "32K\n");
    put_cache(0, 2, "2\n", "Unified\n", "2M\n");
    put_cache(0, 3, "3\n", "Unified\n", "98304K\n");
}

/* Of processors with several ranges, the first speaks; where there is no scaling, the frequency is cpuinfo's. */
static void x86(void **state)
{
    struct agent agent;

    put_two_nodes();
    agent = describe(0, true);
    assert_int_equal(agent.cores, 8);
    assert_string_equal(agent.name, "First Processor");
    assert_int_equal(agent.max_mhz, 2100);
    assert_int_equal(agent.cacheline, 128);
    assert_int_equal(agent.n_caches, 3);
    assert_int_equal(agent.cache_bytes[0], 48 << 10);
    assert_int_equal(agent.cache_bytes[1], 2 << 20);
    assert_int_equal(agent.cache_bytes[2], 96 << 20);
    assert_int_equal(agent.cache_bytes[3], 0);
    assert_string_equal(agent.caches[0].name, "L1 data");
    assert_string_equal(agent.caches[2].name, "L3");
    assert_int_equal(agent.caches[2].level, 3);
    assert_int_equal(agent.caches[2].size, 96 << 20);
}

/* Each node has its own processors; a frequency from scaling is the highest; long names are cut. */
static void second_node(void **state)
{
    struct agent agent;

    put_two_nodes();
    agent = describe(1, true);
    assert_int_equal(agent.cores, 4);
    assert_int_equal(agent.max_mhz, 3500);
    assert_int_equal(strlen(agent.name), 63);
    assert_memory_equal(agent.name, "A name that is longer", 21);
}

/* A node of memory alone has no processors and caches, and the name of the machine's. */
static void memory_alone(void **state)
{
    struct agent agent;

    put_two_nodes();
    agent = describe(2, false);
    assert_int_equal(agent.cores, 0);
    assert_int_equal(agent.n_caches, 0);
    assert_int_equal(agent.max_mhz, 0);
    assert_string_equal(agent.name, "First Processor");
    assert_in_range(agent.cacheline, 1, 4096);
}

/* The kernel of arm64 tells no model. */
static void arm64(void **state)
{
    struct agent agent;

    files_put("sys/devices/system/node/node0/cpulist", "0-63\n");
    files_put("proc/cpuinfo",
              "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
              "CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 1\nCPU implementer\t: 0x42\n");
    agent = describe(0, true);
    assert_int_equal(agent.cores, 64);
    assert_string_equal(agent.name, "ARM 0x41:0xd0c");
    assert_int_equal(agent.max_mhz, 0);
}

/* Without sysfs and /proc there is still a name, processors and a cache line; nonsense is not believed. */
static void nothing(void **state)
{
    struct agent agent;

    agent = describe(0, true);
    assert_int_equal(agent.cores, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    assert_in_range(strlen(agent.name), 1, 63);
    assert_in_range(agent.cacheline, 1, 4096);
    assert_int_equal(describe(0, false).cores, 0);
    files_put("sys/devices/system/node/node0/cpulist", "7-3\n");
    assert_int_equal(describe(0, true).cores, 0);
    files_put("sys/devices/system/node/node0/cpulist", "0\n");
    put_cache(0, 0, "1\n", "Data\n", "nonsense\n");
    put_cache(0, 1, "9\n", "Unified\n", "1M\n");
    put_cache(0, 2, "2\n", "Unified\n", "4G\n");
    agent = describe(0, true);
    assert_int_equal(agent.cores, 1);
    assert_int_equal(agent.n_caches, 2);
    assert_int_equal(agent.caches[0].size, 0);
    assert_int_equal(agent.caches[1].size, 0);
}

/* An agent's number is the installation's and the node's: the same each time, another one elsewhere. */
static void uuids(void **state)
{
    struct agent agent;

    put_two_nodes();
    agent = describe(0, true);
    assert_memory_equal(agent.uuid, "CPU-", 4);
    assert_int_equal(strlen(agent.uuid), 20);
    assert_string_equal(describe(0, true).uuid, agent.uuid);
    assert_string_not_equal(describe(1, true).uuid, agent.uuid);
    assert_null(strstr("0123456789abcdef0123456789abcdef", agent.uuid + 4));
    files_put("etc/machine-id", "00000000000000000000000000000001\n");
    assert_string_not_equal(describe(0, true).uuid, agent.uuid);
    files_put("etc/machine-id", NULL);
    assert_int_equal(strlen(describe(0, true).uuid), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(x86, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(second_node, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(memory_alone, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(arm64, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(nothing, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(uuids, files_set_up, files_clean_up),
    };

    return test_run(tests, NULL, NULL);
}
