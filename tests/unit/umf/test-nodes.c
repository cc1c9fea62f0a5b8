/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes_load() on trees of files as kernels have them, and the nodes of the predefined memspaces then: with HMAT and
 * without, with parts of it missing, with a control group's limits, and with nothing at all.
 */
#include "umf/memspace.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/support/files.h"
#include "tests/support/test.h"

static void put_node(unsigned number, const char *file, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/%s", number, file);
    files_put(path, text);
}

static void put_size(unsigned number, const char *kib)
{
    char line[100];

    (void)snprintf(line, sizeof(line), "Node %u MemTotal:       %s kB\nNode %u MemFree:  1 kB\n", number, kib, number);
    put_node(number, "meminfo", line);
}

/* Speeds as the node with processors sees them. */
static void put_speeds(unsigned number, unsigned initiator, const char *bandwidth, const char *latency)
{
    char file[100];

    put_node(number, "access0/initiators/read_bandwidth", bandwidth);
    put_node(number, "access0/initiators/write_bandwidth", bandwidth);
    put_node(number, "access0/initiators/read_latency", latency);
    put_node(number, "access0/initiators/write_latency", latency);
    (void)snprintf(file, sizeof(file), "access0/initiators/node%u/online", initiator);
    put_node(number, file, "1\n");
}

/* Two nodes with processors, a fast one beside the first, a large slow one beside the second. */
static void put_tiers(void)
{
    files_put("sys/devices/system/node/has_memory", "0-3\n");
    put_size(0, "1000");
    put_size(1, "1000");
    put_size(2, "256");
    put_size(3, "4000");
    put_speeds(0, 0, "100000\n", "80\n");
    put_speeds(1, 1, "100000\n", "80\n");
    put_speeds(2, 0, "400000\n", "110\n");
    put_speeds(3, 1, "25000\n", "250\n");
}

/* The nodes of a predefined memspace, one bit each; 0: it does not exist. */
static unsigned long nodes_of(enum memspace_kind kind)
{
    _cleanup_free_ struct nodes *nodes = nodes_load(files_root);
    _cleanup_free_ struct umf_memspace_t *memspace = NULL;
    unsigned long mask = 0;

    assert_non_null(nodes);
    memspace = memspace_new(kind, nodes);
    for (unsigned i = 0; memspace && i < memspace->n; i++) {
        assert_in_range(memspace->nodes[i], i ? memspace->nodes[i - 1] + 1 : 0, 63);
        mask |= 1UL << memspace->nodes[i];
    }
    return mask;
}

static void facts_of_nodes(void **state)
{
    struct nodes *nodes;

    put_tiers();
    nodes = nodes_load(files_root);
    assert_non_null(nodes);
    assert_int_equal(nodes->n, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(nodes->nodes[i].number, i);
    assert_int_equal(nodes->nodes[2].bytes, 256 * 1024);
    assert_int_equal(nodes->nodes[2].bandwidth, 800000);
    assert_int_equal(nodes->nodes[2].latency, 110);
    assert_true(node_set_has(&nodes->nodes[2].nearest, 0));
    assert_false(node_set_has(&nodes->nodes[2].nearest, 1));
    free(nodes);
}

/* Each processor's fastest nodes. The node beside a processor does not hide the others. */
static void tiers(void **state)
{
    put_tiers();
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 0xf);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_CAPACITY), 1 << 3);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_BANDWIDTH), 1 << 2 | 1 << 1);
    assert_int_equal(nodes_of(MEMSPACE_LOWEST_LATENCY), 1 << 0 | 1 << 1);
}

static void equal_nodes_are_all_the_fastest_and_the_first_is_the_largest(void **state)
{
    files_put("sys/devices/system/node/has_memory", "0,2-3\n");
    for (unsigned i = 0; i < 4; i++) {
        if (i == 1)
            continue;
        put_size(i, "1000");
        put_speeds(i, 0, "1000\n", "100\n");
    }
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 0xd);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_CAPACITY), 1 << 0);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_BANDWIDTH), 0xd);
    assert_int_equal(nodes_of(MEMSPACE_LOWEST_LATENCY), 0xd);
}

/* Nodes without reported speeds do not count as the fastest. */
static void half_told(void **state)
{
    put_tiers();
    put_node(0, "access0/initiators/read_latency", NULL);
    put_node(0, "access0/initiators/write_latency", NULL);
    assert_int_equal(nodes_of(MEMSPACE_LOWEST_LATENCY), 1 << 1 | 1 << 2);
    put_node(1, "access0/initiators/read_latency", NULL); /* the other value is enough */
    assert_int_equal(nodes_of(MEMSPACE_LOWEST_LATENCY), 1 << 1 | 1 << 2);
    put_node(2, "access0/initiators/read_bandwidth", "0\n"); /* the kernel's file where the HMAT has no value */
    put_node(2, "access0/initiators/write_bandwidth", "0\n");
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_BANDWIDTH), 1 << 0 | 1 << 1);
}

/* access0 may be about a device; access1 never is. */
static void processors_before_devices(void **state)
{
    struct nodes *nodes;

    put_tiers();
    put_speeds(2, 5, "900000\n", "10\n");
    put_node(2, "access1/initiators/node0/online", "1\n");
    put_node(2, "access1/initiators/read_bandwidth", "50000\n");
    put_node(2, "access1/initiators/read_latency", "300\n");
    nodes = nodes_load(files_root);
    assert_non_null(nodes);
    assert_int_equal(nodes->nodes[2].bandwidth, 100000);
    assert_int_equal(nodes->nodes[2].latency, 300);
    assert_false(node_set_has(&nodes->nodes[2].nearest, 5));
    free(nodes);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_BANDWIDTH), 1 << 0 | 1 << 1);
}

static void without_hmat(void **state)
{
    files_put("sys/devices/system/node/has_memory", "0-1\n");
    put_size(0, "1000");
    put_size(1, "1001");
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 3);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_CAPACITY), 1 << 1);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_BANDWIDTH), 0);
    assert_int_equal(nodes_of(MEMSPACE_LOWEST_LATENCY), 0);
}

/* Nodes that the process may not use are left out. */
static void control_groups(void **state)
{
    put_tiers();
    files_put("proc/self/status", "Name:\ttest\nMems_allowed:\t00000003\nMems_allowed_list:\t0-1,9\nThreads:\t1\n");
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 3);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_CAPACITY), 1 << 0);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_BANDWIDTH), 3);
}

/* There is always memory somewhere, and nonsense is ignored. */
static void nothing(void **state)
{
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 1);
    assert_int_equal(nodes_of(MEMSPACE_HIGHEST_CAPACITY), 1);
    assert_int_equal(nodes_of(MEMSPACE_LOWEST_LATENCY), 0);
    files_put("sys/devices/system/node/online", "0-1\n");
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 3);
    files_put("sys/devices/system/node/has_memory", "nonsense\n");
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 1);
    files_put("sys/devices/system/node/has_memory", "2,1023,1024-4294967295\n");
    put_size(2, "nonsense");
    {
        _cleanup_free_ struct nodes *nodes = nodes_load(files_root);

        assert_non_null(nodes);
        assert_int_equal(nodes->n, 2);
        assert_int_equal(nodes->nodes[0].bytes, 0);
        assert_int_equal(nodes->nodes[1].number, 1023);
    }
    files_put("proc/self/status", "Mems_allowed_list:\t5\n");
    assert_int_equal(nodes_of(MEMSPACE_HOST_ALL), 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, files_set_up, files_clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(facts_of_nodes),
        TEST(tiers),
        TEST(equal_nodes_are_all_the_fastest_and_the_first_is_the_largest),
        TEST(half_told),
        TEST(processors_before_devices),
        TEST(without_hmat),
        TEST(control_groups),
        TEST(nothing),
    };

    return test_run(tests, NULL, NULL);
}
