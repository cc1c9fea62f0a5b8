/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I1, no SIGBUS: what a client gets is there, to the last page and for good; what cannot be had is refused, with an
 * error and a sentence of its own.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char small_pools[] = "[pool small]\nnodes = 0\ncapacity = 16M\n"
                                  "[pool lazy]\nnodes = 0\ncapacity = 16M\ncommit = lazy\n"
                                  "[pool own]\nnodes = 0\ncapacity = 16M\ncharge = client\n";

static struct memclient_alloc_options in_pool(const char *pool)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pool = pool;
    return options;
}

struct touch {
    void *address;
    size_t size;
};

static void touch_all(int channel, void *context)
{
    const struct touch *touch = context;

    (void)channel;
    memset(touch->address, 0x5a, touch->size);
}

/* The pool is full and every byte of it is written: no signal. The kernel has the pages allocated before that. */
static void I1_all_is_committed_when_the_pool_is_full(void **state)
{
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("small");
    struct memclient_buffer *bufs[17];

    for (size_t i = 0; i < 16; i++) {
        int fd;

        assert_done(memclient_alloc(ctx, MIB, &options, &bufs[i]));
        assert_done(memclient_export_fd(bufs[i], 0, &fd));
        assert_int_equal(memfd_allocated(fd), MIB);
        close(fd);
    }
    assert_refused(memclient_alloc(ctx, 1, &options, &bufs[16]), ENOMEM);
    assert_string_equal(memclient_status_name(memclient_error_status()), "POOL_FULL");
    assert_sentence("small");
    assert_int_equal(broker_pool_used(ctx, "small"), 16 * MIB);
    for (size_t i = 0; i < 16; i++) {
        struct touch touch = {.size = MIB};

        assert_done(memclient_map(bufs[i], NULL, &touch.address));
        assert_true(all_zero(touch.address, MIB));
        assert_int_equal(child_signal(touch_all, &touch), 0);
        assert_int_equal(*(unsigned char *)touch.address, 0x5a);
        assert_done(memclient_unmap(ctx, touch.address, 0));
    }
    broker_check(broker);
    for (size_t i = 0; i < 16; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I1_nobody_can_change_the_size(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf, *publishable;
    int fd;

    assert_done(memclient_alloc(ctx, MIB, NULL, &buf));
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS_BUFFER, SEALS_BUFFER);
    assert_errno(ftruncate(fd, 0), EPERM);
    assert_errno(ftruncate(fd, 2 * MIB), EPERM);
    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    close(fd);
    /* the size of one that may be published is just as fixed */
    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, MIB, &options, &publishable));
    assert_done(memclient_export_fd(publishable, 0, &fd));
    assert_errno(ftruncate(fd, 0), EPERM);
    assert_errno(ftruncate(fd, 2 * MIB), EPERM);
    close(fd);
    memclient_buffer_unref(buf);
    memclient_buffer_unref(publishable);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static int is_lazy(const struct memclient_pool_info *pool, void *data)
{
    if (strcmp(pool->name, data) == 0)
        return pool->lazy ? 1 : 2;
    return 0;
}

static void I1_lazy_pools_and_their_buffers_say_so(void **state)
{
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("lazy");
    struct memclient_buffer *buf;
    int fd;

    assert_int_equal(memclient_list_pools(ctx, is_lazy, (void *)"lazy"), 1);
    assert_int_equal(memclient_list_pools(ctx, is_lazy, (void *)"small"), 2);
    assert_done(memclient_alloc(ctx, MIB, &options, &buf));
    assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY);
    assert_true(broker_info(buf).flags & MEMCLIENT_BUFFER_LAZY);
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_int_equal(memfd_allocated(fd), 0);
    close(fd);
    /* they are charged all the same */
    assert_int_equal(broker_pool_used(ctx, "lazy"), MIB);
    memclient_buffer_unref(buf);
    options = in_pool("small");
    assert_done(memclient_alloc(ctx, MIB, &options, &buf));
    assert_false(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static int is_client_charged(const struct memclient_pool_info *pool, void *data)
{
    if (strcmp(pool->name, data) == 0)
        return pool->client_charged ? 1 : 2;
    return 0;
}

/* Bytes that this process has allocated in files: what its control group pays for. */
static size_t allocated_of(struct memclient_buffer *buf)
{
    size_t allocated;
    int fd;

    assert_done(memclient_export_fd(buf, 0, &fd));
    allocated = memfd_allocated(fd);
    close(fd);
    return allocated;
}

/* By the library, in this process. That the broker allocates nothing is shown in tests/unit/broker/test-export.c. */
static void I1_memory_that_its_client_pays_for_is_all_there(void **state)
{
    static const size_t sizes[] = {1, 256 * KIB + 1, 5 * MIB};
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("own");
    struct memclient_buffer *buf, *bufs[2];
    struct touch touch;

    assert_int_equal(memclient_list_pools(ctx, is_client_charged, (void *)"own"), 1);
    assert_int_equal(memclient_list_pools(ctx, is_client_charged, (void *)"lazy"), 1);
    assert_int_equal(memclient_list_pools(ctx, is_client_charged, (void *)"small"), 2);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        options.flags = i & 1 ? MEMCLIENT_ALLOC_NO_DESCRIPTOR : MEMCLIENT_ALLOC_PUBLISHABLE;
        assert_done(memclient_alloc(ctx, sizes[i], &options, &buf));
        assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_CLIENT_CHARGED);
        assert_true(broker_info(buf).flags & MEMCLIENT_BUFFER_CLIENT_CHARGED);
        assert_false(broker_info(buf).flags & MEMCLIENT_BUFFER_LAZY);
        assert_int_equal(allocated_of(buf), memclient_buffer_bytes(buf));
        assert_true(WAIT_UNTIL(broker_pool_used(ctx, "own") == memclient_buffer_bytes(buf)));
        touch.size = memclient_buffer_bytes(buf);
        assert_done(memclient_map(buf, NULL, &touch.address));
        assert_true(all_zero(touch.address, touch.size));
        assert_int_equal(child_signal(touch_all, &touch), 0);
        assert_int_equal(allocated_of(buf), touch.size);
        assert_done(memclient_unmap(ctx, touch.address, 0));
        memclient_buffer_unref(buf);
    }
    options.flags = 0;
    assert_done(memclient_alloc_many(ctx, 2, sizes + 1, &options, bufs));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(allocated_of(bufs[i]), memclient_buffer_bytes(bufs[i]));
        memclient_buffer_unref(bufs[i]);
    }
    /* the pool's limit counts as ever */
    assert_refused(memclient_alloc(ctx, 17 * MIB, &options, &buf), EFBIG);
    broker_check(broker);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static bool kernel_has_no_memory;

/* Of the library, too. */
__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (!kernel_has_no_memory)
        return (int)syscall(SYS_fallocate, fd, mode, offset, length);
    errno = ENOMEM;
    return -1;
}

/* Nothing is left of it, not even its name. */
static void a_client_that_cannot_allocate_gives_all_back(void **state)
{
    static const uint64_t sizes[] = {MIB, MIB};
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("own");
    struct memclient_buffer *bufs[2] = {NULL, NULL}, *buf;

    kernel_has_no_memory = true;
    assert_refused(memclient_alloc_many(ctx, 2, sizes, &options, bufs), ENOMEM);
    options.name = "own";
    assert_refused(memclient_alloc(ctx, MIB, &options, bufs), ENOMEM);
    assert_sentence("which this process pays for");
    assert_null(bufs[0]);
    assert_null(bufs[1]);
    kernel_has_no_memory = false;
    assert_refused(memclient_open_name(ctx, "own", 0, &buf), ENOENT);
    broker_wait_until_empty(broker);
    assert_done(memclient_alloc(ctx, MIB, &options, &buf));
    assert_done(memclient_unbind_name(ctx, "own"));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What of the mapping at this address is mapped by huge pages. */
static size_t huge_mapped(const void *at)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long start, end, kib = 0;
    char line[512];
    bool here = false;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = start <= (uintptr_t)at && (uintptr_t)at < end;
        else if (here && sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
            break;
    }
    fclose(f);
    return kib * KIB;
}

/* Does the kernel have so many for a file of the test's own, in the way that the library asks for them? */
static bool kernel_has_huge(size_t size)
{
    int fd;
    char *at = memfd_mapped_thp(size, &fd);
    size_t huge;

    (void)madvise(at, size, MADV_POPULATE_WRITE); /* from 5.14 on */
    huge = huge_mapped(at);
    munmap(at, size);
    close(fd);
    return huge == size;
}

/* Where the kernel gives huge pages to shared memory, the client gets them too. */
static void I1_transparent_huge_pages_that_its_client_pays_for_are_all_there(void **state)
{
    size_t thp = thp_size();
    struct memclient_alloc_options options = in_pool("own");
    struct memclient_buffer *buf;
    struct broker_process *broker;
    struct memclient_context *ctx;
    bool there;
    char *at;

    settings_shmem_thp();
    there = kernel_has_huge(3 * thp);
    broker = broker_for_test("[pool own]\nnodes = 0\npages = thp\ncharge = client\n");
    ctx = broker_connect(broker);
    /* the last pages are no whole huge page */
    assert_done(memclient_alloc(ctx, 3 * thp + 3 * page_size(), &options, &buf));
    assert_int_equal(allocated_of(buf), memclient_buffer_bytes(buf));
    assert_done(memclient_map(buf, NULL, (void **)&at));
    assert_true(all_zero(at, memclient_buffer_bytes(buf)));
    print_message("%zu of %zu bytes in huge pages\n", huge_mapped(at), (size_t)memclient_buffer_bytes(buf));
    if (there && kernel_has_huge(3 * thp))
        assert_int_equal(huge_mapped(at), 3 * thp);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void every_impossible_size_has_its_own_error(void **state)
{
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("small");
    struct memclient_buffer *buf = NULL;
    uint32_t node = 63;

    assert_refused(memclient_alloc(ctx, 0, NULL, &buf), EINVAL);
    assert_refused(memclient_alloc(ctx, UINT64_MAX, NULL, &buf), EOVERFLOW);
    assert_refused(memclient_alloc(ctx, 17 * MIB, &options, &buf), EFBIG);
    assert_sentence("small");
    options = in_pool("nowhere");
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), ENODEV);
    assert_sentence("nowhere");
    options = in_pool(NULL);
    options.nodes = &node;
    options.n_nodes = 1;
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), ENXIO);
    assert_sentence("63");
    options = in_pool(NULL);
    options.flags = 1 << 20;
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), EINVAL);
    options = in_pool(NULL);
    options.alignment = 12345;
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), EINVAL);
    options = in_pool(NULL);
    options.pages = MEMCLIENT_PAGES_HUGETLB;
    options.page_size = 3 * MIB;
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), EINVAL);
    options.page_size = 512 * GIB;
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), ENODEV);
    options = in_pool(NULL);
    options.size = 1;
    assert_refused(memclient_alloc(ctx, MIB, &options, &buf), EINVAL);
    assert_null(buf); /* untouched on failure */
    /* one byte is a page, and is told as one byte */
    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    assert_int_equal(memclient_buffer_size(buf), 1);
    assert_int_equal(memclient_buffer_bytes(buf), memclient_buffer_granule(buf));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void *unref_later(void *buf)
{
    struct timespec a_while = {.tv_nsec = QUIET_MS * 1000000L};

    nanosleep(&a_while, NULL);
    memclient_buffer_unref(buf);
    return NULL;
}

static void who_waits_for_room_gets_it_or_is_told(void **state)
{
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("small");
    struct memclient_buffer *first, *second;
    pthread_t thread;

    assert_done(memclient_alloc(ctx, 16 * MIB, &options, &first));
    options.wait_ms = QUIET_MS;
    assert_refused(memclient_alloc(other, MIB, &options, &second), ETIMEDOUT);
    options.wait_ms = MEMCLIENT_FOREVER;
    assert_int_equal(pthread_create(&thread, NULL, unref_later, first), 0);
    assert_done(memclient_alloc(other, 16 * MIB, &options, &second));
    assert_int_equal(pthread_join(thread, NULL), 0);
    memclient_buffer_unref(second);
    memclient_context_close(ctx);
    memclient_context_close(other);
    broker_finish(broker);
}

/* A client that waits for room and dies takes nothing with it. */
static void wait_for_ever(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_alloc_options options = in_pool("small");
    struct memclient_buffer *buf;

    options.wait_ms = MEMCLIENT_FOREVER;
    tell(channel);
    memclient_alloc(ctx, 16 * MIB, &options, &buf);
}

static void who_dies_waiting_for_room_leaves_nothing(void **state)
{
    struct broker_process *broker = broker_for_test(small_pools);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = in_pool("small");
    struct memclient_buffer *buf;
    struct child child;

    assert_done(memclient_alloc(ctx, 16 * MIB, &options, &buf));
    child_start(&child, wait_for_ever, broker->socket);
    child_hear(&child);
    child_kill(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- huge pages -------------------------------------------------------------------------------------------------- */

static struct memclient_alloc_options huge_pages(void)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pages = MEMCLIENT_PAGES_HUGETLB;
    return options;
}

static void I1_huge_pages_of_the_system_are_all_there(void **state)
{
    size_t huge = huge_page_size();
    struct memclient_alloc_options options = huge_pages();
    struct memclient_buffer_info info;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct broker_process *broker;
    struct touch touch;

    settings_huge_pages(huge, 4);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, 3 * huge + 1, &options, &buf));
    info = broker_info(buf);
    assert_int_equal(info.pages, MEMCLIENT_PAGES_HUGETLB);
    assert_int_equal(info.page_size, huge);
    assert_int_equal(info.bytes, 4 * huge);
    assert_int_equal(meminfo_kib("HugePages_Free"), 0);
    assert_done(memclient_map(buf, NULL, &touch.address));
    assert_int_equal((uintptr_t)touch.address % huge, 0);
    touch.size = 4 * huge;
    assert_int_equal(child_signal(touch_all, &touch), 0);
    assert_refused(memclient_discard(buf, 0, 0), EOPNOTSUPP);
    assert_done(memclient_unmap(ctx, touch.address, 0));
    memclient_buffer_unref(buf);
    broker_wait_until_empty(broker);
    assert_true(WAIT_UNTIL(meminfo_kib("HugePages_Free") == 4));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Somebody outside has taken pages that the pool counts on: an error, no signal, and not one page stays taken. */
static void I1_a_commit_that_fails_halfway_gives_all_back(void **state)
{
    size_t huge = huge_page_size();
    struct memclient_alloc_options options = huge_pages();
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct broker_process *broker;
    int fd;

    settings_huge_pages(huge, 4);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    fd = memfd_new(2 * huge, MFD_HUGETLB);
    assert_ok(fallocate(fd, 0, 0, (off_t)(2 * huge)));
    assert_refused(memclient_alloc(ctx, 4 * huge, &options, &buf), ENOMEM);
    broker_wait_until_empty(broker);
    assert_true(WAIT_UNTIL(meminfo_kib("HugePages_Free") == 2));
    close(fd);
    assert_done(memclient_alloc(ctx, 4 * huge, &options, &buf));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I1_transparent_huge_pages_are_all_there(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer_info info;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct broker_process *broker;
    struct touch touch = {.size = 8 * MIB};
    int fd;

    settings_shmem_thp();
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    options.pages = MEMCLIENT_PAGES_THP;
    assert_done(memclient_alloc(ctx, touch.size, &options, &buf));
    info = broker_info(buf);
    assert_int_equal(info.pages, MEMCLIENT_PAGES_THP);
    /* memory may be in pieces: how much is huge is told, not promised */
    assert_true(info.huge_bytes <= info.bytes);
    print_message("%zu of %zu bytes in huge pages\n", (size_t)info.huge_bytes, (size_t)info.bytes);
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_int_equal(memfd_allocated(fd), touch.size);
    close(fd);
    assert_done(memclient_map(buf, NULL, &touch.address));
    assert_int_equal(child_signal(touch_all, &touch), 0);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I1_all_is_committed_when_the_pool_is_full),
        at_broker(I1_nobody_can_change_the_size),
        at_broker(I1_lazy_pools_and_their_buffers_say_so),
        at_broker(I1_memory_that_its_client_pays_for_is_all_there),
        at_broker(a_client_that_cannot_allocate_gives_all_back),
        at_broker_with_settings(I1_transparent_huge_pages_that_its_client_pays_for_are_all_there),
        at_broker(every_impossible_size_has_its_own_error),
        at_broker(who_waits_for_room_gets_it_or_is_told),
        at_broker(who_dies_waiting_for_room_leaves_nothing),
        at_broker_with_settings(I1_huge_pages_of_the_system_are_all_there),
        at_broker_with_settings(I1_a_commit_that_fails_halfway_gives_all_back),
        at_broker_with_settings(I1_transparent_huge_pages_are_all_there),
    };

    return test_run(tests, NULL, NULL);
}
