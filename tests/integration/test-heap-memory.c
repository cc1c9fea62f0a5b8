/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the memory of a heap's slabs comes from: the pool, pages and nodes that its maker has said, whichever member
 * adds the slab. Huge pages are the kernel's own. Nodes are in full where there are several: on this machine there may
 * be one, and make check-vm has one of two nodes, which qemu emulates; their numbers, their processors and what the
 * kernel says of each page are as of a real machine, only distances are not felt.
 */
#include "tests/integration/heaps.h"

#include <sched.h>

struct placed {
    struct heap_test test;
    struct memclient_context *second;
    struct memclient_heap *other; /* another member's */
};

/* A heap of blocks of that size, and another member. */
static struct placed placed_begin(uint64_t size, uint64_t slab_size, const struct memclient_alloc_options *memory)
{
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct placed placed = {.test.broker = broker_for_test(NULL)};

    placed.test.ctx = broker_connect(placed.test.broker);
    placed.second = broker_connect(placed.test.broker);
    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.slab_size = slab_size;
    options.memory = memory;
    options.name = "placed";
    assert_done(memclient_heap_create(placed.test.ctx, &options, &placed.test.heap));
    assert_done(memclient_heap_open_name(placed.second, "placed", &placed.other));
    return placed;
}

static void placed_end(struct placed *placed)
{
    memclient_heap_close(placed->other);
    memclient_context_close(placed->second);
    assert_done(memclient_heap_destroy(placed->test.heap));
    placed->test.heap = NULL;
    heap_end(&placed->test);
}

static struct memclient_buffer_info slab_of(const void *p)
{
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;

    assert_done(memclient_address_query(p, &where));
    return broker_info(where.buffer);
}

static void a_member_takes_the_pages_that_the_maker_has_said(void **state)
{
    struct memclient_alloc_options memory = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer_info info;
    const uint32_t node = 0;
    struct placed placed;
    void *p;

    memory.nodes = &node;
    memory.n_nodes = 1;
    memory.pages = MEMCLIENT_PAGES_BASE;
    memory.placement = MEMCLIENT_PLACEMENT_BIND;
    placed = placed_begin(3 * MIB, 3 * MIB, &memory);
    assert_done(memclient_heap_alloc(placed.other, 1, &p));
    info = slab_of(p);
    assert_int_equal(info.pages, MEMCLIENT_PAGES_BASE);
    assert_int_equal(info.placement, MEMCLIENT_PLACEMENT_BIND);
    assert_string_equal(info.name, "placed/0");
    memset(p, 1, 3 * MIB);
    placed_end(&placed);
}

/* On a processor of that node, if it has one. */
static void stay_on(uint32_t node)
{
    char path[64], list[64] = "";
    cpu_set_t set;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
    file = fopen(path, "re");
    if (file && fgets(list, sizeof(list), file) && *list >= '0' && *list <= '9') {
        CPU_ZERO(&set);
        CPU_SET(strtoul(list, NULL, 10), &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
    }
    if (file)
        fclose(file);
}

/* Each is handed over, and written by the other one. */
static void hand_over_all(struct placed *placed, unsigned n, uint64_t size)
{
    struct memclient_block block;
    void *p, *q;

    for (unsigned i = 0; i < n; i++) {
        assert_done(memclient_heap_alloc(placed->other, size, &p));
        pattern_write(p, size, i);
        assert_done(memclient_block_give(placed->other, p, 0, &block));
        assert_done(memclient_block_take(placed->test.heap, &block, &q));
        assert_true(pattern_holds(q, size, i));
        pattern_write(q, size, i + 1);
        assert_true(pattern_holds(p, size, i + 1));
    }
}

/* Of the last node, which is not this process's if there are several. */
static void huge_pages_are_cut_into_blocks(void **state)
{
    const uint32_t node = 63 - (uint32_t)__builtin_clzl(nodes_with_memory());
    struct memclient_alloc_options memory = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;
    size_t huge = huge_page_size(), counts[NODES_MAX] = {0};
    struct memclient_heap_info info;
    struct placed placed;
    void *p;

    stay_on(0);
    settings_huge_pages_on_node(huge, 2, (int)node);
    memory.pages = MEMCLIENT_PAGES_HUGETLB;
    memory.placement = MEMCLIENT_PLACEMENT_BIND;
    memory.nodes = &node;
    memory.n_nodes = 1;
    /* what is behind the blocks has room in the second page */
    placed = placed_begin(BLOCK, 2 * huge - BLOCK, &memory);
    assert_done(memclient_heap_alloc(placed.other, BLOCK, &p));
    assert_int_equal(slab_of(p).pages, MEMCLIENT_PAGES_HUGETLB);
    assert_int_equal(slab_of(p).page_size, huge);
    assert_int_equal(slab_of(p).bytes, 2 * huge);
    assert_true(slab_of(p).flags & MEMCLIENT_BUFFER_VERIFIED);
    assert_done(memclient_address_query(p, &where));
    pages_by_node(where.address, 2 * huge, huge, counts);
    assert_int_equal(counts[node], 2);
    assert_done(memclient_heap_free(placed.other, p));
    info = info_of(placed.other);
    hand_over_all(&placed, (unsigned)info.blocks, BLOCK);
    assert_int_equal(info_of(placed.test.heap).blocks_mine, 2 * huge / BLOCK - 1);
    /* no huge page is left, and nothing else takes its place */
    assert_refused(memclient_heap_alloc(placed.other, BLOCK, &p), ENOMEM);
    assert_int_equal(info_of(placed.other).slabs, 1);
    placed_end(&placed);
}

/* From every node with a processor, on every node with memory. */
static void slabs_are_on_the_node_of_the_heap(void **state)
{
    unsigned long nodes = nodes_with_memory(), from = nodes_with_cpu();
    cpu_set_t before;

    assert_ok(sched_getaffinity(0, sizeof(before), &before));
    for (uint32_t node = 0; node < NODES_MAX; node++) {
        struct memclient_alloc_options memory = MEMCLIENT_ALLOC_OPTIONS_INIT;
        struct placed placed;

        if (!(nodes & 1UL << node))
            continue;
        memory.nodes = &node;
        memory.n_nodes = 1;
        memory.placement = MEMCLIENT_PLACEMENT_BIND;
        placed = placed_begin(MIB, MIB, &memory);
        for (uint32_t cpu = 0; cpu < NODES_MAX; cpu++) {
            size_t counts[NODES_MAX] = {0};
            void *p;

            if (!(from & 1UL << cpu))
                continue;
            stay_on(cpu);
            assert_done(memclient_heap_alloc(placed.other, MIB, &p));
            assert_true(slab_of(p).flags & MEMCLIENT_BUFFER_VERIFIED);
            memset(p, 1, MIB);
            pages_by_node(p, MIB, page_size(), counts);
            assert_int_equal(counts[node], MIB / page_size());
        }
        assert_int_equal(info_of(placed.other).slabs, __builtin_popcountl(from));
        placed_end(&placed);
        assert_ok(sched_setaffinity(0, sizeof(before), &before));
    }
}

/* No page is begun for the last few bytes of a slab. Eight blocks of 4 MiB are more than its size. */
static void slabs_have_their_size_and_blocks_their_alignment(void **state)
{
    const uint64_t sizes[] = {64, 4096, 5056, 65536, MIB, 4 * MIB};
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct heap_test test = {.broker = broker_for_test(NULL)};
    void *p;

    test.ctx = broker_connect(test.broker);
    options.block_sizes = sizes;
    options.n_block_sizes = 6;
    assert_done(memclient_heap_create(test.ctx, &options, &test.heap));
    for (unsigned i = 0; i < 6; i++) {
        uint64_t alignment = sizes[i] & -sizes[i];

        assert_done(memclient_heap_alloc(test.heap, sizes[i], &p));
        assert_int_equal((uintptr_t)p % (alignment > 2 * MIB ? 2 * MIB : alignment), 0);
        assert_true(slab_of(p).bytes > 30 * MIB && (slab_of(p).bytes <= 32 * MIB || sizes[i] == 4 * MIB));
    }
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_member_takes_the_pages_that_the_maker_has_said),
        at_broker_with_settings(huge_pages_are_cut_into_blocks),
        at_broker(slabs_are_on_the_node_of_the_heap),
        at_broker(slabs_have_their_size_and_blocks_their_alignment),
    };
    return test_run(tests, NULL, NULL);
}
