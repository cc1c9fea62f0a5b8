/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages are in the page tables of whoever has mapped a buffer, before any of them is touched: all that was
 * allocated here and is to be written, and nothing of what others have allocated.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <stdlib.h>

#define SIZE (4 * MIB)
/* What of one buffer is entered at once. */
#define MOST GIB

static struct broker_process *broker;
static struct memclient_context *ctx;

static void begin(const char *config)
{
    if (madvise((void *)page_size(), 0, MADV_POPULATE_WRITE) < 0)
        test_skip("the kernel enters no pages at will: it is older than 5.14");
    broker = broker_for_test(config);
    ctx = broker_connect(broker);
}

static void end(void)
{
    memclient_context_close(ctx);
    broker_finish(broker);
}

static struct memclient_buffer *allocate(uint64_t size, const char *pool)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.pool = pool;
    assert_done(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}

static void *map(struct memclient_buffer *buf, uint64_t offset, uint64_t length, unsigned access, unsigned flags)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *at;

    options.offset = offset;
    options.length = length;
    options.access = access;
    options.flags = flags;
    assert_done(memclient_map(buf, &options, &at));
    return at;
}

static void unmap(void *at)
{
    assert_done(memclient_unmap(ctx, at, 0));
}

static void drop(struct memclient_buffer *buf, void *at)
{
    unmap(at);
    memclient_buffer_unref(buf);
}

/* How many pages of this process's page tables are there. */
static size_t entered(const void *at, size_t size)
{
    static const uint64_t present = UINT64_C(1) << 63;
    size_t n = size / page_size(), found = 0;
    uint64_t *entries = calloc(n, sizeof(*entries));
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    assert_non_null(entries);
    if (fd < 0)
        test_skip("this kernel does not show page tables: %s", strerror(errno));
    assert_int_equal(pread(fd, entries, n * sizeof(*entries), (off_t)((uintptr_t)at / page_size() * sizeof(*entries))),
                     n * sizeof(*entries));
    for (size_t i = 0; i < n; i++)
        found += entries[i] & present ? 1 : 0;
    close(fd);
    free(entries);
    return found;
}

/* A kernel that is short of memory may have taken some out again. */
#define assert_has_all(at, size) \
    assert_in_range(entered(at, size), (size) / page_size() - (size) / page_size() / 16, (size) / page_size())

/* ---- who has allocated it ---------------------------------------------------------------------------------------- */

static void the_first_mapping_has_all(void **state)
{
    struct memclient_buffer *buf;
    void *at;

    begin("[pools]\nstock = 0\n");
    buf = allocate(SIZE, NULL);
    at = map(buf, 0, 0, 0, 0);
    assert_has_all(at, SIZE);
    assert_true(all_zero(at, SIZE));
    unmap(at);
    at = map(buf, 0, 0, 0, 0);
    assert_int_equal(entered(at, SIZE), 0);
    drop(buf, at);
    end();
}

/* Each part when it is its turn, and what is only read waits for it. */
static void so_have_the_first_mappings_of_parts(void **state)
{
    struct memclient_buffer *buf;
    void *at;

    begin(NULL);
    buf = allocate(SIZE, NULL);
    at = map(buf, 0, 0, MEMCLIENT_READ, 0);
    assert_int_equal(entered(at, SIZE), 0);
    unmap(at);
    for (unsigned i = 0; i < 2; i++) {
        at = map(buf, SIZE / 2 * i, SIZE / 2, 0, 0);
        assert_has_all(at, SIZE / 2);
        unmap(at);
    }
    at = map(buf, 0, SIZE / 2, 0, 0);
    assert_int_equal(entered(at, SIZE / 2), 0);
    drop(buf, at);
    end();
}

static bool has_all(size_t first, size_t pages)
{
    struct memclient_buffer *buf = allocate((first + pages) * page_size(), NULL);
    void *at = map(buf, first * page_size(), 0, 0, 0);
    bool all = entered(at, pages * page_size()) == pages;

    drop(buf, at);
    return all;
}

/* At their edges the kernel's windows, and steps, are cut. While the broker fills its stock, a buffer can lie across
 * cleared pages and others, of which the first and the last page tell nothing; that ends when the stock is full. */
static void odd_sizes_have_all(void **state)
{
    static const size_t pages[] = {4, 17, 31, 33, 512, 513, 1023, 1041};

    begin(NULL);
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        for (size_t first = 0; first < 2; first++)
            assert_true(WAIT_UNTIL(has_all(first, pages[i])));
    end();
}

/* What is in stock was cleared when there was time for that: so reading a page brings all around it, as no page that is
 * only allocated does. */
static size_t entered_by_reading(void)
{
    struct memclient_buffer *buf = allocate(SIZE, "kept");
    void *at = map(buf, 0, 0, 0, MEMCLIENT_MAP_SPARSE);
    size_t n;

    (void)*(volatile char *)at;
    n = entered(at, SIZE);
    drop(buf, at);
    return n;
}

static void stock_is_cleared(void **state)
{
    begin("[pool kept]\nnodes = 0\ncapacity = 64M\nstock = 50%\n");
    assert_int_equal(entered_by_reading(), 1);
    assert_true(WAIT_UNTIL(entered_by_reading() > 1));
    end();
}

/* ---- who has not, or does not want it ---------------------------------------------------------------------------- */

static void others_have_nothing(void **state)
{
    struct memclient_context *other;
    struct memclient_buffer *buf, *view;
    void *at;

    begin(NULL);
    other = broker_connect(broker);
    buf = allocate(SIZE, NULL);
    assert_done(memclient_open_id(other, memclient_buffer_id(buf), 0, &view));
    at = map(view, 0, 0, 0, MEMCLIENT_MAP_NOT_HOME);
    assert_int_equal(entered(at, SIZE), 0);
    assert_done(memclient_unmap(other, at, 0));
    memclient_buffer_unref(view);
    memclient_buffer_unref(buf);
    memclient_context_close(other);
    end();
}

static void sparse_mappings_have_nothing(void **state)
{
    struct memclient_buffer *buf;
    char *at;

    begin(NULL);
    buf = allocate(SIZE, NULL);
    at = map(buf, 0, 0, 0, MEMCLIENT_MAP_SPARSE);
    assert_int_equal(entered(at, SIZE), 0);
    at[SIZE / 2] = 1;
    assert_int_equal(at[SIZE / 2], 1);
    drop(buf, at);
    buf = allocate(16 * page_size(), NULL);
    at = map(buf, 0, 0, 0, MEMCLIENT_MAP_SPARSE);
    assert_int_equal(entered(at, 16 * page_size()), 0);
    drop(buf, at);
    end();
}

/* Nothing is allocated by being mapped. */
static void lazy_memory_has_nothing(void **state)
{
    struct memclient_buffer *buf;
    void *at;
    int fd;

    begin("[pool lazy]\nnodes = 0\ncapacity = 16M\ncommit = lazy\n");
    buf = allocate(SIZE, "lazy");
    at = map(buf, 0, 0, 0, 0);
    assert_int_equal(entered(at, SIZE), 0);
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_int_equal(memfd_allocated(fd), 0);
    close(fd);
    drop(buf, at);
    end();
}

/* Of very large memory only the beginning. */
static void very_large_memory_has_a_part(void **state)
{
    struct memclient_buffer *buf;
    char *at;

    if (meminfo_kib("MemAvailable") < 4 * (long)(MOST / KIB))
        test_skip("this takes a machine with 4 GiB of free memory");
    begin(NULL);
    buf = allocate(MOST + SIZE, NULL);
    at = map(buf, 0, 0, 0, 0);
    assert_has_all(at, MOST);
    assert_int_equal(entered(at + MOST, SIZE), 0);
    drop(buf, at);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(the_first_mapping_has_all), at_broker(so_have_the_first_mappings_of_parts),
        at_broker(odd_sizes_have_all),        at_broker(stock_is_cleared),
        at_broker(others_have_nothing),       at_broker(sparse_mappings_have_nothing),
        at_broker(lazy_memory_has_nothing),   at_broker(very_large_memory_has_a_part),
    };

    return test_run(tests, NULL, NULL);
}
