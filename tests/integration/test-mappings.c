/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may do with addresses and mappings by itself: ranges of its own, of any size, without committing
 * anything and without asking the broker.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define SIZE (2 * MIB)

static uint64_t requests(struct memclient_context *ctx)
{
    return broker_status(ctx).requests;
}

/* What asking costs is one request itself. */
#define assert_no_calls(ctx, before) assert_int_equal(requests(ctx), (before) + 1)

static uintptr_t start_of(struct memclient_reservation *res)
{
    return (uintptr_t)memclient_reservation_address(res);
}

static struct memclient_address_info at(const void *address)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    assert_done(memclient_address_query(address, &info));
    return info;
}

static struct memclient_buffer *make_homeless(struct memclient_context *ctx)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    return buf;
}

/* ---- ranges of this process -------------------------------------------------------------------------------------- */

static void private_ranges_hold_mappings_like_any_other(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf = make_homeless(ctx);
    struct memclient_reservation *res;
    uint64_t before = requests(ctx);
    char *first, *second;

    assert_done(memclient_reserve(ctx, 4 * SIZE, RESERVE_PRIVATE(.alignment = SIZE), &res));
    assert_int_equal(start_of(res) % SIZE, 0);
    assert_int_equal(memclient_reservation_size(res), 4 * SIZE);
    assert_true(at(memclient_reservation_address(res)).process_private);
    options.address = memclient_reservation_address(res);
    assert_done(memclient_map(buf, &options, (void **)&first));
    options.address = first + SIZE;
    assert_done(memclient_map(buf, &options, (void **)&second));
    memcpy(first, "one memory", sizeof("one memory"));
    assert_string_equal(second, "one memory");
    assert_null(memclient_buffer_home(buf));
    assert_true(at(first + 1).process_private);
    assert_ptr_equal(at(first + 1).reservation, res);
    assert_ptr_equal(at(first + 1).buffer, buf);

    assert_done(memclient_protect(ctx, first + page_size(), page_size(), MEMCLIENT_READ));
    assert_refused(memclient_reservation_release(res), EBUSY);
    assert_done(memclient_dont_fork(ctx, second, 0));
    assert_done(memclient_unmap(ctx, first, 2 * SIZE));
    assert_int_equal(at(first).access, MEMCLIENT_NO_ACCESS);
    assert_done(memclient_reservation_release(res));
    assert_refused(memclient_address_query(first, &(struct memclient_address_info)MEMCLIENT_ADDRESS_INFO_INIT), EFAULT);
    assert_no_calls(ctx, before);

    /* one that is left goes with its context, and nothing of it is with the broker */
    assert_done(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(), &res));
    options.address = memclient_reservation_address(res);
    assert_done(memclient_map(buf, &options, (void **)&first));
    assert_int_equal(broker_status(ctx).reservations, 0);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    assert_done(memclient_reservation_release(res)); /* what is left of it */
    assert_refused(memclient_address_query(first, &(struct memclient_address_info)MEMCLIENT_ADDRESS_INFO_INIT), EFAULT);
    broker_finish(broker);
}

static void private_ranges_keep_off_what_is_taken(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_reservation *res, *none;
    uint64_t start;

    assert_done(memclient_reserve(ctx, 2 * SIZE, RESERVE_PRIVATE(), &res));
    start = start_of(res);
    assert_refused(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(.address = start + page_size()), &none), EADDRINUSE);
    assert_refused(
        memclient_reserve(ctx, SIZE,
                          RESERVE_PRIVATE(.alignment = 2 * SIZE, .address = align_up(start, 2 * SIZE) + SIZE), &none),
        EINVAL);
    assert_refused(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(.address = UINT64_MAX - page_size() + 1), &none),
                   EINVAL);
    if (!TEST_TSAN) /* which makes of a wish for what no program can have one for the address 0 */
        assert_refused(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(.address = (uint64_t)1 << 62), &none), ENOMEM);
    assert_done(memclient_reservation_release(res));
    assert_done(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(.address = start), &res));
    assert_int_equal(start_of(res), start);
    assert_done(memclient_reservation_release(res));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* One process has it at home; another one, which lays out its addresses itself, wants it just there. */
static void i9_a_private_range_in_the_arena_is_there_at_a_wish(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf, *opened;
    struct memclient_reservation *res, *none;
    struct memclient_token token;
    void *home, *at;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_map(buf, NULL, &home));
    memcpy(home, "here", sizeof("here"));
    assert_refused(memclient_reserve(other, SIZE, RESERVE_PRIVATE(.address = (uintptr_t)home), &none), EADDRINUSE);
    assert_done(memclient_unmap(ctx, home, 0));
    assert_refused(memclient_reserve(other, SIZE, RESERVE_WITH(.address = (uintptr_t)home), &none), EADDRINUSE);
    assert_done(memclient_reserve(other, SIZE, RESERVE_PRIVATE(.address = (uintptr_t)home), &res));
    /* what is mapped at home, without a word of where, is not mapped into what is reserved for something else */
    assert_refused(memclient_map(buf, NULL, &at), EADDRINUSE);
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    assert_done(memclient_map(buf, &options, &at));
    assert_ptr_not_equal(at, home);
    assert_done(memclient_unmap(ctx, at, 0));
    options.flags = 0;

    assert_done(memclient_open_token(other, &token, 0, &opened));
    options.address = home;
    assert_done(memclient_map(opened, &options, &at));
    assert_ptr_equal(at, home);
    assert_string_equal(at, "here");
    /* which is the home of the first, whose pages are there already */
    assert_done(memclient_map(buf, NULL, &at));
    assert_ptr_equal(at, home);
    assert_done(memclient_unmap(ctx, at, 0));
    options.address = NULL;
    options.flags = MEMCLIENT_MAP_ALONE;
    assert_refused(memclient_map(buf, &options, &at), EADDRINUSE);

    assert_done(memclient_unmap(other, at, 0));
    assert_done(memclient_reservation_release(res));
    assert_done(memclient_map(buf, NULL, &at));
    assert_ptr_equal(at, home);
    assert_done(memclient_unmap(ctx, at, 0));
    memclient_buffer_unref(opened);
    memclient_buffer_unref(buf);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Laid out first, shared later: where it is mapped becomes its home. */
static void i9_a_buffer_gets_its_home_where_it_is_mapped(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_alloc_options no_address = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_reservation *res, *private;
    struct memclient_buffer *buf, *second, *opened;
    struct memclient_token token;
    void *first, *at;

    no_address.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_done(memclient_alloc(ctx, SIZE, &no_address, &buf));
    assert_done(memclient_alloc(ctx, SIZE, &no_address, &second));
    assert_refused(memclient_make_home(buf), EADDRNOTAVAIL);
    assert_done(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(), &private));
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    options.address = memclient_reservation_address(private);
    assert_done(memclient_map(buf, &options, &at));
    assert_refused(memclient_make_home(buf), EADDRNOTAVAIL);

    assert_done(memclient_reserve(ctx, 3 * SIZE, NULL, &res));
    options.address = (char *)memclient_reservation_address(res) + SIZE;
    assert_done(memclient_map(buf, &options, &first));
    options.address = (char *)options.address + SIZE;
    assert_done(memclient_map(buf, &options, &at));
    assert_null(memclient_buffer_home(buf));
    assert_done(memclient_make_home(buf));
    assert_ptr_equal(memclient_buffer_home(buf), first);
    assert_done(memclient_make_home(buf));

    /* its place is taken for good, also once another buffer lies there */
    assert_done(memclient_unmap(ctx, first, 0));
    options.address = first;
    assert_done(memclient_map(second, &options, &at));
    assert_refused(memclient_make_home(second), EADDRNOTAVAIL);
    assert_done(memclient_unmap(ctx, first, 0));

    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_open_token(other, &token, 0, &opened));
    assert_ptr_equal(memclient_buffer_home(opened), first);
    assert_done(memclient_make_home(opened));
    memclient_buffer_unref(opened);
    memclient_buffer_unref(second);
    memclient_buffer_unref(buf);
    assert_done(memclient_unmap(ctx, (char *)first + SIZE, 0));
    assert_done(memclient_unmap(ctx, memclient_reservation_address(private), 0));
    assert_done(memclient_reservation_release(res));
    assert_done(memclient_reservation_release(private));
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* As a program does that was compiled when the struct ended there. */
static void programs_of_0_1_are_not_told_more_than_they_know(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_address_info info;
    struct memclient_reservation *res;

    assert_done(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(), &res));
    memset(&info, 0, sizeof(info));
    info.size = offsetof(struct memclient_address_info, process_private);
    assert_done(memclient_address_query(memclient_reservation_address(res), &info));
    assert_ptr_equal(info.reservation, res);
    assert_false(info.process_private);
    assert_done(memclient_reservation_release(res));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* The sum of all that the kernel has promised memory to, on the whole machine. */
static uint64_t committed(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    unsigned long long kib = 0;
    char line[128];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Committed_AS: %llu", &kib) == 1)
            break;
    (void)fclose(file);
    return kib * 1024;
}

static uint64_t addresses_in_use(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &pages), 1);
    (void)fclose(file);
    return pages * page_size();
}

/* It is not that something was mapped there already. */
static void want_of_mappings_is_want_of_memory(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_reservation *res, *none;
    struct rlimit before, small;
    uint64_t free_range;
    int r[3];

    if (TEST_ASAN || TEST_TSAN)
        test_skip("the sanitizer needs all addresses");
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_done(memclient_reserve(ctx, GIB, RESERVE_PRIVATE(), &res));
    free_range = start_of(res);
    assert_done(memclient_reservation_release(res));
    assert_ok(getrlimit(RLIMIT_AS, &before));
    small = (struct rlimit){addresses_in_use() + 16 * MIB, before.rlim_max};
    assert_ok(setrlimit(RLIMIT_AS, &small));
    r[0] = memclient_reserve(ctx, GIB, NULL, &none);
    r[1] = memclient_reserve(ctx, GIB, RESERVE_PRIVATE(), &none);
    r[2] = memclient_reserve(ctx, GIB, RESERVE_PRIVATE(.address = free_range), &none);
    assert_ok(setrlimit(RLIMIT_AS, &before));
    for (int i = 0; i < 3; i++)
        assert_int_equal(r[i], -ENOMEM);
    assert_non_null(strstr(memclient_error(), "vm.max_map_count"));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void private_ranges_commit_nothing_and_are_as_large_as_one_likes(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_reservation *all[64], *none;
    uint64_t before = committed();
    size_t n = 0;
    int r = 0;

    assert_done(memclient_context_query(ctx, &connection));
    assert_done(memclient_reserve(ctx, TIB, RESERVE_PRIVATE(.alignment = GIB), &all[n++]));
    assert_int_equal(start_of(all[0]) % GIB, 0);
    assert_true(committed() < before + TIB / 2);

    /* until the kernel has no more: it has been all round the arena then, and never in it */
    while (n < 64 && r == 0) {
        r = memclient_reserve(ctx, 4 * TIB, RESERVE_PRIVATE(), &all[n]);
        n += r == 0;
    }
    if (r != 0)
        assert_int_equal(r, -ENOMEM);
    for (size_t i = 0; i < n; i++)
        assert_true(start_of(all[i]) >= connection.arena_base + connection.arena_size ||
                    start_of(all[i]) + memclient_reservation_size(all[i]) <= connection.arena_base);
    assert_refused(memclient_reserve(ctx, (uint64_t)1 << 62, RESERVE_PRIVATE(), &none), ENOMEM);
    assert_refused(memclient_reserve(ctx, SIZE, RESERVE_PRIVATE(.alignment = (uint64_t)1 << 63), &none), ENOMEM);
    while (n-- > 0)
        assert_done(memclient_reservation_release(all[n]));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- mapping without a call -------------------------------------------------------------------------------------- */

/* More than the library keeps descriptors. */
#define MANY 200

/* Mapping by what is mapped already is the kernel's doing, and not all that simulates one has it. */
static void needs_duplicates(void)
{
    void *shared = mmap(NULL, page_size(), PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *again;

    assert_mapped(shared);
    again = mremap(shared, 0, page_size(), MREMAP_MAYMOVE);
    if (again == MAP_FAILED)
        test_skip("a shared mapping cannot be duplicated here");
    assert_ok(munmap(again, page_size()));
    assert_ok(munmap(shared, page_size()));
}

/* Of MANY that are mapped, too many for their descriptors to be kept; each begins with its number. */
static void make_many(struct memclient_context *ctx, struct memclient_buffer *bufs[static MANY],
                      uint32_t *homes[static MANY])
{
    for (uint32_t i = 0; i < MANY; i++) {
        assert_done(memclient_alloc(ctx, 4 * page_size(), NULL, &bufs[i]));
        assert_done(memclient_map(bufs[i], NULL, (void **)&homes[i]));
        *homes[i] = i;
    }
}

static void a_second_mapping_makes_no_call(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *bufs[MANY];
    struct memclient_reservation *res;
    uint32_t *homes[MANY], *again[MANY];
    uint64_t before;

    needs_duplicates();
    make_many(ctx, bufs, homes);
    assert_done(memclient_reserve(ctx, MANY * 4 * page_size(), RESERVE_PRIVATE(), &res));
    before = requests(ctx);
    /* in a reservation, without access at first, as for the facades */
    for (uint32_t i = 0; i < MANY; i++) {
        options.address = (char *)memclient_reservation_address(res) + i * 4 * page_size();
        options.access = MEMCLIENT_NO_ACCESS;
        assert_done(memclient_map(bufs[i], &options, (void **)&again[i]));
        assert_ptr_equal(again[i], options.address);
        assert_int_equal(at(again[i]).access, MEMCLIENT_NO_ACCESS);
        assert_done(memclient_protect(ctx, again[i], 0, MEMCLIENT_READ | MEMCLIENT_WRITE));
        assert_int_equal(*again[i], i);
        *again[i] = i + 1;
        assert_int_equal(*homes[i], i + 1);
    }
    /* back at home, by what is in the reservation */
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t *home = homes[i];

        assert_done(memclient_unmap(ctx, home, 0));
        assert_done(memclient_map(bufs[i], NULL, (void **)&homes[i]));
        assert_ptr_equal(homes[i], home);
        /* once more, by the pages that are there */
        assert_done(memclient_map(bufs[i], NULL, (void **)&home));
        assert_ptr_equal(homes[i], home);
        assert_done(memclient_unmap(ctx, home, 0));
    }
    /* a part, anywhere */
    options = (struct memclient_map_options)MEMCLIENT_MAP_OPTIONS_INIT;
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    options.offset = page_size();
    options.length = 2 * page_size();
    for (uint32_t i = 0; i < MANY; i++) {
        char *part;

        assert_done(memclient_map(bufs[i], &options, (void **)&part));
        part[2 * page_size() - 1] = (char)i;
        assert_int_equal(((char *)homes[i])[3 * page_size() - 1], (char)i);
    }
    assert_no_calls(ctx, before);
    for (uint32_t i = 0; i < MANY; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_context_close(ctx);
    assert_done(memclient_reservation_release(res));
    broker_finish(broker);
}

static void a_part_leads_to_what_is_behind_it(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *bufs[MANY];
    uint32_t *homes[MANY];
    char *whole, *part;
    uint64_t before;

    needs_duplicates();
    make_many(ctx, bufs, homes);
    /* only the second page stays, write-protected and not for children */
    assert_done(memclient_unmap(ctx, homes[0], page_size()));
    assert_done(memclient_unmap(ctx, (char *)homes[0] + 2 * page_size(), 2 * page_size()));
    part = (char *)homes[0] + page_size();
    *part = 17;
    assert_done(memclient_protect(ctx, part, 0, MEMCLIENT_READ));
    assert_done(memclient_dont_fork(ctx, part, 0));
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    options.offset = page_size();
    before = requests(ctx);
    assert_done(memclient_map(bufs[0], &options, (void **)&whole));
    assert_no_calls(ctx, before);
    assert_int_equal(at(whole).length, 3 * page_size());
    assert_int_equal(*whole, 17);
    memset(whole, 18, 3 * page_size());
    assert_int_equal(*part, 18);

    /* what is before needs the descriptor, and has it from then on */
    options.offset = 0;
    assert_done(memclient_map(bufs[0], &options, (void **)&whole));
    assert_int_equal(requests(ctx), before + 3);
    assert_int_equal(*(uint32_t *)(void *)whole, 0);
    assert_int_equal(whole[3 * page_size()], 18);
    for (uint32_t i = 0; i < MANY; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static long faults(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/*
 * Faults while it is written: by the kernel, so that no sanitizer writes anything beside it. Some of it may have been
 * taken out of the page tables before: the least of several.
 */
static long faults_of_writing(struct memclient_context *ctx, uint64_t size)
{
    int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    long least = LONG_MAX;

    for (int i = 0; i < 20; i++) {
        struct memclient_buffer *buf;
        long before;
        char *p;

        assert_done(memclient_alloc(ctx, size, NULL, &buf));
        assert_done(memclient_map(buf, NULL, (void **)&p));
        before = faults();
        assert_int_equal(syscall(SYS_read, zeros, p, size), size);
        before = faults() - before;
        if (before < least)
            least = before;
        assert_done(memclient_unmap(ctx, p, 0));
        memclient_buffer_unref(buf);
    }
    close(zeros);
    return least;
}

/* Small memory is there to be written, without a fault for each page. */
static void small_mappings_are_written_without_faults(void **state)
{
    enum { SMALL = 64 << 10, POPULATE_READ = 22 };
    struct broker_process *broker;
    struct memclient_context *ctx;

    if (page_size() > SMALL / 8)
        test_skip("what is small has too few pages of %llu bytes", (unsigned long long)page_size());
    if (madvise((void *)page_size(), 0, POPULATE_READ) < 0)
        test_skip("the kernel enters no pages at will: it is older than 5.14");
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_in_range(faults_of_writing(ctx, SMALL), 0, SMALL / page_size() / 4);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* As much access and no more: neither does a reader get to write, nor does publishing miss a mapping. */
static void duplicates_have_the_access_of_their_handle(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *reader = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_alloc_options publishable = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[MANY], *buf, *view;
    uint32_t *homes[MANY];
    char *p, *again, *third;

    needs_duplicates();
    publishable.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, SIZE, &publishable, &buf));
    assert_done(memclient_map(buf, NULL, (void **)&p));
    assert_done(memclient_open_id(reader, memclient_buffer_id(buf), MEMCLIENT_READ, &view));
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    assert_done(memclient_map(view, &options, (void **)&third));
    make_many(ctx, bufs, homes);
    assert_done(memclient_map(buf, &options, (void **)&again));
    *again = 5;
    assert_int_equal(*third, 5);
    assert_done(memclient_publish(buf, 0));
    assert_refused(memclient_protect(ctx, again, 0, MEMCLIENT_READ | MEMCLIENT_WRITE), EACCES);
    assert_refused(memclient_protect(reader, third, 0, MEMCLIENT_READ | MEMCLIENT_WRITE), EACCES);
    assert_int_equal(*again, 5);
    for (uint32_t i = 0; i < MANY; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_buffer_unref(buf);
    memclient_buffer_unref(view);
    memclient_context_close(reader);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Huge pages cannot be duplicated: they are mapped by their descriptor. */
static void huge_pages_are_mapped_by_their_descriptor(void **state)
{
    struct memclient_alloc_options huge = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *bufs[MANY], *buf;
    struct broker_process *broker;
    struct memclient_context *ctx;
    uint32_t *homes[MANY];
    char *p, *again;

    settings_huge_pages(huge_page_size(), 1);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    huge.pages = MEMCLIENT_PAGES_HUGETLB;
    assert_done(memclient_alloc(ctx, huge_page_size(), &huge, &buf));
    assert_done(memclient_map(buf, NULL, (void **)&p));
    make_many(ctx, bufs, homes);
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    assert_done(memclient_map(buf, &options, (void **)&again));
    *again = 5;
    assert_int_equal(*p, 5);
    for (uint32_t i = 0; i < MANY; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(private_ranges_hold_mappings_like_any_other),
        at_broker(private_ranges_keep_off_what_is_taken),
        at_broker(i9_a_private_range_in_the_arena_is_there_at_a_wish),
        at_broker(i9_a_buffer_gets_its_home_where_it_is_mapped),
        at_broker(programs_of_0_1_are_not_told_more_than_they_know),
        at_broker(private_ranges_commit_nothing_and_are_as_large_as_one_likes),
        at_broker(want_of_mappings_is_want_of_memory),
        at_broker(a_second_mapping_makes_no_call),
        at_broker(a_part_leads_to_what_is_behind_it),
        at_broker(small_mappings_are_written_without_faults),
        at_broker(duplicates_have_the_access_of_their_handle),
        at_broker_with_settings(huge_pages_are_mapped_by_their_descriptor),
    };

    return test_run(tests, NULL, NULL);
}
