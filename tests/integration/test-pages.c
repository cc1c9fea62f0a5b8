/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huge pages without being asked for: set aside, made on demand, and transparent ones. That ordinary pages take their
 * place where there are none is seen by every other test.
 */
#include "tests/integration/clients.h"

#include <sched.h>
#include <stdlib.h>

static const char automatic[] = "[pools]\npages = auto\n";

static struct memclient_buffer *make(struct memclient_context *ctx, uint64_t size)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_alloc(ctx, size, NULL, &buf));
    return buf;
}

/* Writes all of it, in a child, and sees that the parent has it. */
static void touch(int channel, void *context)
{
    struct memclient_buffer *buf = context;

    (void)channel;
    memset(memclient_buffer_home(buf), 0x5a, memclient_buffer_bytes(buf));
}

static void assert_usable(struct memclient_buffer *buf)
{
    const unsigned char *bytes;
    void *address;

    assert_done(memclient_map(buf, NULL, &address));
    assert_ptr_equal(address, memclient_buffer_home(buf));
    assert_true(all_zero(address, memclient_buffer_bytes(buf)));
    assert_int_equal(child_signal(touch, buf), 0);
    bytes = address;
    assert_int_equal(bytes[0], 0x5a);
    assert_int_equal(bytes[memclient_buffer_bytes(buf) - 1], 0x5a);
    assert_done(memclient_unmap(memclient_buffer_context(buf), address, 0));
}

static long kernel_says(const char *name)
{
    char path[128], line[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", huge_page_size() / KIB, name);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    return strtol(line, NULL, 10);
}

/* Each node has its part of what is set aside, and a farther one's is not taken. */
static long n_nodes(void)
{
    return __builtin_popcountl(nodes_with_memory());
}

/* So that it is one node that is used up. */
static void stay_here(void)
{
    int cpu = sched_getcpu();
    cpu_set_t set;

    assert_true(cpu >= 0);
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    assert_ok(sched_setaffinity(0, sizeof(set), &set));
}

static void reserved_huge_pages_are_used_before_ordinary_ones(void **state)
{
    size_t huge = huge_page_size(), size = 4 * huge;
    const long all = 5 * n_nodes();
    struct memclient_buffer *first, *second, *small;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct broker_process *broker;
    struct memclient_context *ctx;

    settings_huge_pages(huge, (unsigned)all);
    if (size < 4 * MIB)
        size = 4 * MIB;
    broker = broker_for_test(automatic);
    ctx = broker_connect(broker);
    first = make(ctx, size);
    assert_int_equal(broker_info(first).pages, MEMCLIENT_PAGES_HUGETLB);
    assert_int_equal(broker_info(first).page_size, huge);
    assert_int_equal(memclient_buffer_granule(first), huge);
    assert_int_equal(kernel_says("free_hugepages"), all - (long)(size / huge));
    assert_usable(first);
    second = make(ctx, size);
    assert_int_not_equal(broker_info(second).pages, MEMCLIENT_PAGES_HUGETLB);
    assert_int_equal(memclient_buffer_granule(second), page_size());
    assert_usable(second);
    small = make(ctx, page_size());
    assert_int_equal(broker_info(small).pages, MEMCLIENT_PAGES_BASE);
    broker_check(broker);
    memclient_buffer_unref(first);
    memclient_buffer_unref(second);
    memclient_buffer_unref(small);
    broker_wait_until_empty(broker);
    assert_true(WAIT_UNTIL(kernel_says("free_hugepages") == all));

    /* who will map it in pieces, and who says what he wants */
    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_done(memclient_alloc(ctx, size, &options, &first));
    assert_int_equal(memclient_buffer_granule(first), page_size());
    options.flags = 0;
    options.pages = MEMCLIENT_PAGES_BASE;
    assert_done(memclient_alloc(ctx, size, &options, &second));
    assert_int_equal(broker_info(second).pages, MEMCLIENT_PAGES_BASE);
    assert_done(memclient_discard(second, 0, 0));
    memclient_buffer_unref(first);
    memclient_buffer_unref(second);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Somebody else has them, so that all nodes together have too few: nobody notices. */
static void what_others_have_taken_is_replaced(void **state)
{
    size_t huge = huge_page_size(), size = 4 * huge < 4 * MIB ? 4 * MIB : 4 * huge;
    const long all = (long)(size / huge) * n_nodes(), left = (long)(size / huge) - 1;
    struct broker_process *broker;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    int fd;

    settings_huge_pages(huge, (unsigned)all);
    broker = broker_for_test(automatic);
    ctx = broker_connect(broker);
    fd = memfd_new((size_t)(all - left) * huge, MFD_HUGETLB);
    assert_ok(fallocate(fd, 0, 0, (off_t)((size_t)(all - left) * huge)));
    buf = make(ctx, size);
    assert_int_not_equal(broker_info(buf).pages, MEMCLIENT_PAGES_HUGETLB);
    assert_usable(buf);
    broker_check(broker);
    assert_true(WAIT_UNTIL(kernel_says("free_hugepages") == left));
    memclient_buffer_unref(buf);
    close(fd);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Allows the kernel to make so many; none is set aside. How many there are all the same, since others have them. */
static long allow_on_demand(long pages)
{
    char path[128], value[32];

    settings_huge_pages(huge_page_size(), 0);
    /* those that a program had which is ending */
    if (!WAIT_UNTIL(kernel_says("surplus_hugepages") == 0))
        test_skip("somebody keeps huge pages that are set aside no more");
    snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_overcommit_hugepages",
             huge_page_size() / KIB);
    snprintf(value, sizeof(value), "%ld", pages);
    settings_write(path, value);
    return kernel_says("nr_hugepages");
}

/* None is set aside. The kernel makes them when they are asked for, and has them back when they are given up. */
static void pools_grow_and_shrink_as_far_as_the_administrator_allows(void **state)
{
    size_t huge = huge_page_size(), size = 4 * huge < 4 * MIB ? 4 * MIB : 4 * huge;
    long pages = (long)(size / huge) * n_nodes(), before;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf, *second = NULL;
    struct broker_process *broker;
    struct memclient_context *ctx;

    before = allow_on_demand(pages);
    broker = broker_for_test(automatic);
    ctx = broker_connect(broker);
    options.pages = MEMCLIENT_PAGES_HUGETLB;
    assert_done(memclient_alloc(ctx, (uint64_t)pages * huge, &options, &buf));
    assert_int_equal(kernel_says("nr_hugepages"), before + pages);
    assert_usable(buf);
    /* no more than that */
    assert_refused(memclient_alloc(ctx, huge, &options, &second), ENOMEM);
    second = make(ctx, size);
    assert_int_not_equal(broker_info(second).pages, MEMCLIENT_PAGES_HUGETLB);
    memclient_buffer_unref(second);
    /* a broker that dies takes nothing along and leaves nothing behind */
    broker_kill_child(broker);
    assert_int_equal(broker_info(buf).pages, MEMCLIENT_PAGES_HUGETLB);
    assert_int_equal(kernel_says("nr_hugepages"), before + pages);
    broker_check(broker);
    memclient_buffer_unref(buf);
    broker_wait_until_empty(broker);
    assert_true(WAIT_UNTIL(kernel_says("nr_hugepages") == before));
    buf = make(ctx, size);
    assert_int_equal(broker_info(buf).pages, MEMCLIENT_PAGES_HUGETLB);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
    assert_true(WAIT_UNTIL(kernel_says("nr_hugepages") == before));
}

static void those_made_on_demand_are_on_their_node(void **state)
{
    size_t huge = huge_page_size(), size = 2 * huge;
    unsigned long nodes = nodes_with_memory();
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct broker_process *broker;
    struct memclient_context *ctx;
    long before = allow_on_demand(2 * __builtin_popcountl(nodes));

    broker = broker_for_test(automatic);
    ctx = broker_connect(broker);
    options.pages = MEMCLIENT_PAGES_HUGETLB;
    options.placement = MEMCLIENT_PLACEMENT_BIND;
    options.n_nodes = 1;
    for (uint32_t node = 0; node < NODES_MAX; node++) {
        size_t counts[NODES_MAX] = {0};
        struct memclient_buffer *buf;
        void *p;

        if (!(nodes & 1UL << node))
            continue;
        options.nodes = &node;
        assert_done(memclient_alloc(ctx, size, &options, &buf));
        assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_VERIFIED);
        assert_int_equal(kernel_says("nr_hugepages"), before + 2);
        assert_done(memclient_map(buf, NULL, &p));
        pages_by_node(p, size, huge, counts);
        assert_int_equal(counts[node], 2);
        assert_done(memclient_unmap(ctx, p, 0));
        memclient_buffer_unref(buf);
        broker_wait_until_empty(broker);
        assert_true(WAIT_UNTIL(kernel_says("nr_hugepages") == before));
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void transparent_ones_are_used_where_the_kernel_gives_them(void **state)
{
    size_t huge = thp_size(), size = 8 * huge + page_size();
    struct broker_process *broker;
    struct memclient_buffer_info info;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    settings_shmem_thp();
    broker = broker_for_test(automatic);
    ctx = broker_connect(broker);
    buf = make(ctx, size);
    info = broker_info(buf);
    assert_int_equal(info.pages, MEMCLIENT_PAGES_THP);
    assert_int_equal(info.bytes, size);
    /* memory may be in pieces: how much is huge is told, not promised */
    assert_in_range(info.huge_bytes, 0, 8 * huge);
    print_message("%zu of %zu bytes in huge pages\n", (size_t)info.huge_bytes, (size_t)info.bytes);
    /* where it is mapped by huge pages, and still in parts of any size */
    assert_int_equal(info.address % huge, 0);
    assert_int_equal(memclient_buffer_granule(buf), page_size());
    assert_usable(buf);
    memclient_buffer_unref(buf);
    buf = make(ctx, huge - page_size());
    assert_int_equal(broker_info(buf).pages, MEMCLIENT_PAGES_BASE);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker_with_settings(reserved_huge_pages_are_used_before_ordinary_ones),
        at_broker_with_settings(what_others_have_taken_is_replaced),
        at_broker_with_settings(pools_grow_and_shrink_as_far_as_the_administrator_allows),
        at_broker_with_settings(those_made_on_demand_are_on_their_node),
        at_broker_with_settings(transparent_ones_are_used_where_the_kernel_gives_them),
    };

    stay_here();
    return test_run(tests, NULL, NULL);
}
