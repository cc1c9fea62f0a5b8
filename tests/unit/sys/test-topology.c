/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as it is, compared with what the kernel says elsewhere; and machines that are simulated. */
#include "tests/support/test.h"

#include <errno.h>
#include <numa.h>

#include "sys/numa.h"
#include "tests/support/memory.h"
#include "tests/support/settings.h"

static void nodes_are_those_of_the_kernel(void **state)
{
    static struct topology t;
    unsigned long with_memory = nodes_with_memory();
    unsigned long with_cpu = nodes_with_cpu();

    assert_int_equal(topology_load(&t, 0), 0);
    assert_false(t.simulated);
    assert_int_equal(t.base_page, page_size());
    assert_true(t.n_nodes >= 1);
    for (uint32_t i = 0; i < t.n_nodes; i++) {
        const struct topology_node *node = &t.nodes[i];

        assert_int_equal(node->number, node->physical);
        assert_ptr_equal(topology_node(&t, node->number), node);
        assert_int_equal(node->total > 0, with_memory >> node->number & 1);
        assert_int_equal(node->has_cpus, with_cpu >> node->number & 1);
        assert_int_equal(node->distances[node->number], 10);
        if (i)
            assert_true(node->number > node[-1].number);
    }
    assert_null(topology_node(&t, 63 - (uint32_t)__builtin_clzl(with_memory | with_cpu) + 1));
    if (t.n_nodes == 1) {
        assert_int_equal(t.nodes[0].total, (uint64_t)meminfo_kib("MemTotal") * KIB);
        assert_true(t.one_node);
    }
    assert_int_equal(t.default_huge, huge_page_size());
}

static void nodes_can_be_simulated(void **state)
{
    static struct topology real;
    static struct topology t;

    assert_int_equal(topology_load(&real, 1), 0);
    assert_false(real.simulated);
    assert_int_equal(topology_load(&t, 3), 0);
    assert_true(t.simulated && t.one_node);
    assert_int_equal(t.n_nodes, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(t.nodes[i].number, i);
        assert_int_equal(t.nodes[i].physical, t.nodes[0].physical);
        assert_true(t.nodes[i].total > 0 && t.nodes[i].total <= real.nodes[0].total / 3);
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(t.nodes[i].distances[k], i == k ? 10 : 20);
    }
    assert_int_equal(topology_load(&t, TOPOLOGY_NODES_MAX + 1), -EINVAL);
    assert_int_equal(t.n_nodes, 3);
    assert_int_equal(topology_load(&t, TOPOLOGY_NODES_MAX), 0);
}

static void huge_pages_set_aside_are_counted(void **state)
{
    static struct topology t;
    uint64_t before = 0;
    uint64_t after = 0;

    settings_huge_pages(huge_page_size(), 5);
    assert_int_equal(topology_load(&t, 2), 0);
    for (uint32_t i = 0; i < 2; i++)
        before += topology_huge_pages(&t, i, huge_page_size());
    assert_int_equal(topology_load(&t, 0), 0);
    for (uint32_t i = 0; i < t.n_nodes; i++)
        after += topology_huge_pages(&t, t.nodes[i].number, huge_page_size());
    assert_true(after >= 5);
    if (t.one_node)
        assert_int_equal(before, after);
    assert_int_equal(topology_huge_pages(&t, 63, huge_page_size()), 0);
    assert_int_equal(topology_huge_pages(&t, 0, 12345), 0);
}

static void thp_is_seen_where_it_is_on(void **state)
{
    static struct topology t;

    settings_shmem_thp();
    assert_int_equal(topology_load(&t, 0), 0);
    assert_int_equal(t.thp_size, thp_size());
    settings_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "never");
    assert_int_equal(topology_load(&t, 0), 0);
    assert_int_equal(t.thp_size, 0);
}

/* libnuma would end the process, or print, where it is surprised. */
static void libnuma_is_kept_quiet(void **state)
{
    static struct topology t;

    assert_int_equal(topology_load(&t, 0), 0);
    assert_int_equal(numa_exit_on_error, 0);
    assert_int_equal(numa_exit_on_warn, 0);
    if (numa_available() < 0)
        test_skip("no NUMA in this kernel");
    numa_exit_on_error = 1;
    numa_error((char *)"a test");
    numa_exit_on_error = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_those_of_the_kernel), cmocka_unit_test(nodes_can_be_simulated),
        cmocka_unit_test(libnuma_is_kept_quiet),         test_with_settings(huge_pages_set_aside_are_counted),
        test_with_settings(thp_is_seen_where_it_is_on),
    };

    return test_run(tests, NULL, NULL);
}
