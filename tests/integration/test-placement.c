/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where memory is: every page of a buffer lies on the node where the pool or the caller wanted it, whoever asks the
 * kernel and whoever wrote it first. In full where there are several NUMA nodes (make check-vm); simulated nodes
 * stand in for what is only about budgets.
 */
#include "tests/integration/clients.h"

#include <sched.h>
#include <stdlib.h>

#define SIZE (4 * MIB)

struct node_list {
    size_t n;
    uint32_t numbers[NODES_MAX];
};

static struct node_list several_nodes(void)
{
    unsigned long mask = nodes_with_memory();
    struct node_list list = {0};

    for (uint32_t node = 0; node < NODES_MAX; node++)
        if (mask & 1UL << node)
            list.numbers[list.n++] = node;
    if (list.n < 2)
        test_skip("there is one NUMA node; make check-vm has machines with several");
    return list;
}

static struct memclient_alloc_options on_nodes(const struct node_list *list, unsigned placement)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.nodes = list->numbers;
    options.n_nodes = list->n;
    options.placement = placement;
    return options;
}

static struct node_list one(uint32_t node)
{
    return (struct node_list){.n = 1, .numbers = {node}};
}

/* What the kernel says of the buffer, mapped here; and the broker says the same. */
static void count_pages(struct memclient_buffer *buf, size_t step, size_t counts[NODES_MAX])
{
    struct memclient_buffer_info info = broker_info(buf);
    uint64_t size = memclient_buffer_bytes(buf);
    void *p;

    assert_done(memclient_map(buf, NULL, &p));
    memset(p, 1, size);
    pages_by_node(p, size, step, counts);
    assert_done(memclient_unmap(memclient_buffer_context(buf), p, 0));
    if (info.flags & MEMCLIENT_BUFFER_VERIFIED)
        for (uint32_t i = 0; i < info.n_nodes; i++)
            assert_int_equal(counts[info.nodes[i]] * step, info.node_bytes[i]);
}

static void bound_memory_is_on_its_node(void **state)
{
    struct node_list nodes = several_nodes();
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);

    /* every node with memory, with CPUs or not */
    for (size_t i = 0; i < nodes.n; i++) {
        struct node_list node = one(nodes.numbers[i]);
        struct memclient_alloc_options options = on_nodes(&node, MEMCLIENT_PLACEMENT_BIND);
        size_t counts[NODES_MAX] = {0};
        struct memclient_buffer *buf;

        assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
        assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_VERIFIED);
        count_pages(buf, page_size(), counts);
        assert_int_equal(counts[node.numbers[0]], SIZE / page_size());
        memclient_buffer_unref(buf);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void interleaved_memory_goes_round_the_nodes(void **state)
{
    struct node_list nodes = several_nodes();
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = on_nodes(&nodes, MEMCLIENT_PLACEMENT_INTERLEAVE);
    size_t part = 64 * KIB, wrong = 0;
    struct memclient_buffer *buf;
    char *p;

    options.part_size = part;
    assert_done(memclient_alloc(ctx, nodes.n * part * 8, &options, &buf));
    assert_done(memclient_map(buf, NULL, (void **)&p));
    memset(p, 1, nodes.n * part * 8);
    for (size_t at = 0; at < nodes.n * part * 8; at += page_size())
        if (page_node(p + at) != (int)nodes.numbers[at / part % nodes.n])
            wrong++;
    assert_int_equal(wrong, 0);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void split_memory_is_in_proportion_to_the_weights(void **state)
{
    struct node_list nodes = several_nodes();
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options;
    static const uint32_t weights[] = {3, 1};
    size_t counts[NODES_MAX] = {0};
    struct memclient_buffer *buf;

    nodes.n = 2;
    options = on_nodes(&nodes, MEMCLIENT_PLACEMENT_SPLIT);
    options.weights = weights;
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    count_pages(buf, page_size(), counts);
    assert_int_equal(counts[nodes.numbers[0]], SIZE / page_size() / 4 * 3);
    assert_int_equal(counts[nodes.numbers[1]], SIZE / page_size() / 4);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Nodes that have room, which the capacity of a pool decides here. The nearest comes first: see test-nearest.c. */
static void preferred_memory_goes_elsewhere_only_when_it_must(void **state)
{
    struct node_list nodes = several_nodes(), node;
    struct broker_process *broker = broker_for_test("[pools]\ncapacity = 16M\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options;
    struct memclient_buffer *first, *second, *third;
    size_t counts[NODES_MAX] = {0};
    unsigned taken;

    nodes.n = 2;
    options = on_nodes(&nodes, MEMCLIENT_PLACEMENT_PREFERRED);
    assert_done(memclient_alloc(ctx, 12 * MIB, &options, &first));
    count_pages(first, page_size(), counts);
    taken = counts[nodes.numbers[1]] != 0;
    assert_int_equal(counts[nodes.numbers[taken]], 12 * MIB / page_size());
    assert_done(memclient_alloc(ctx, 12 * MIB, &options, &second));
    memset(counts, 0, sizeof(counts));
    count_pages(second, page_size(), counts);
    assert_int_equal(counts[nodes.numbers[!taken]], 12 * MIB / page_size());
    /* bound memory does not: it is refused */
    node = one(nodes.numbers[0]);
    options = on_nodes(&node, MEMCLIENT_PLACEMENT_BIND);
    assert_refused(memclient_alloc(ctx, 12 * MIB, &options, &third), ENOMEM);
    broker_check(broker);
    memclient_buffer_unref(first);
    memclient_buffer_unref(second);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void local_memory_is_on_the_callers_node(void **state)
{
    struct node_list nodes = several_nodes();
    unsigned long with_cpu = nodes_with_cpu();
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    cpu_set_t before;

    assert_ok(sched_getaffinity(0, sizeof(before), &before));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
        size_t counts[NODES_MAX] = {0};
        struct memclient_buffer *buf;
        unsigned here, node;
        cpu_set_t set;

        if (!CPU_ISSET(cpu, &before))
            continue;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        assert_ok(sched_setaffinity(0, sizeof(set), &set));
        assert_ok(getcpu(&here, &node));
        assert_true(with_cpu & 1UL << node);
        if (!(nodes_with_memory() & 1UL << node))
            continue;
        options.placement = MEMCLIENT_PLACEMENT_LOCAL;
        assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
        count_pages(buf, page_size(), counts);
        assert_int_equal(counts[node], SIZE / page_size());
        memclient_buffer_unref(buf);
    }
    assert_ok(sched_setaffinity(0, sizeof(before), &before));
    (void)nodes;
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void huge_pages_are_on_their_node(void **state)
{
    struct node_list nodes = several_nodes(), node;
    uint32_t last = nodes.numbers[nodes.n - 1];
    size_t huge = huge_page_size(), counts[NODES_MAX] = {0};
    struct memclient_alloc_options options;
    struct memclient_buffer *buf;
    struct broker_process *broker;
    struct memclient_context *ctx;

    settings_huge_pages_on_node(huge, 4, (int)last);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    node = one(last);
    options = on_nodes(&node, MEMCLIENT_PLACEMENT_BIND);
    options.pages = MEMCLIENT_PAGES_HUGETLB;
    assert_done(memclient_alloc(ctx, 4 * huge, &options, &buf));
    assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_VERIFIED);
    count_pages(buf, huge, counts);
    assert_int_equal(counts[last], 4);
    memclient_buffer_unref(buf);
    /* none of them is elsewhere, and a pool that has none does not exist */
    node = one(nodes.numbers[0]);
    options.nodes = node.numbers;
    options.n_nodes = 1;
    assert_refused(memclient_alloc(ctx, huge, &options, &buf), ENODEV);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void transparent_huge_pages_are_on_their_node(void **state)
{
    struct node_list nodes = several_nodes(), node = one(nodes.numbers[1]);
    struct memclient_alloc_options options;
    size_t counts[NODES_MAX] = {0};
    struct memclient_buffer *buf;
    struct broker_process *broker;
    struct memclient_context *ctx;

    settings_shmem_thp();
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    options = on_nodes(&node, MEMCLIENT_PLACEMENT_BIND);
    options.pages = MEMCLIENT_PAGES_THP;
    assert_done(memclient_alloc(ctx, 8 * MIB, &options, &buf));
    print_message("%zu KiB in huge pages\n", (size_t)broker_info(buf).huge_bytes / 1024);
    count_pages(buf, page_size(), counts);
    assert_int_equal(counts[node.numbers[0]], 8 * MIB / page_size());
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- simulated --------------------------------------------------------------------------------------------------- */

static int count_simulated(const struct memclient_node_info *node, void *data)
{
    if (node->simulated && node->n_distances == 4)
        ++*(unsigned *)data;
    return 0;
}

static int all_simulated(const struct memclient_pool_info *pool, void *data)
{
    (void)data;
    return pool->simulated ? 0 : 1;
}

static void simulated_nodes_say_so_and_divide_the_memory(void **state)
{
    struct broker_process *broker = broker_for_test("[topology]\nsimulate_nodes = 4\n[pools]\ncapacity = 64M\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_alloc_options options;
    struct memclient_buffer *buf, *none;
    struct node_list node = one(3);
    unsigned n = 0;

    assert_done(memclient_context_query(ctx, &connection));
    assert_true(connection.simulated);
    assert_true(broker_status(ctx).simulated);
    assert_done(memclient_list_nodes(ctx, count_simulated, &n));
    assert_int_equal(n, 4);
    assert_done(memclient_list_pools(ctx, all_simulated, NULL));
    options = on_nodes(&node, MEMCLIENT_PLACEMENT_BIND);
    assert_done(memclient_alloc(ctx, 48 * MIB, &options, &buf));
    assert_int_equal(broker_info(buf).nodes[0], 3);
    assert_refused(memclient_alloc(ctx, 48 * MIB, &options, &none), ENOMEM);
    node = one(2);
    assert_done(memclient_alloc(ctx, 48 * MIB, &options, &none));
    memclient_buffer_unref(none);
    node = one(4);
    assert_refused(memclient_alloc(ctx, MIB, &options, &none), ENXIO);
    broker_check(broker);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(bound_memory_is_on_its_node),
        at_broker(interleaved_memory_goes_round_the_nodes),
        at_broker(split_memory_is_in_proportion_to_the_weights),
        at_broker(preferred_memory_goes_elsewhere_only_when_it_must),
        at_broker(local_memory_is_on_the_callers_node),
        at_broker_with_settings(huge_pages_are_on_their_node),
        at_broker_with_settings(transparent_huge_pages_are_on_their_node),
        at_broker(simulated_nodes_say_so_and_divide_the_memory),
    };

    return test_run(tests, NULL, NULL);
}
