/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may do with addresses and mappings by itself: ranges of its own, of any size, without committing
 * anything and without asking the broker.
 */
#include "tests/integration/clients.h"

#include <stdio.h>
#include <sys/mman.h>

#define SIZE (2 * MIB)

static uint64_t requests(struct memclient *ctx)
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

    assert_done(memclient_query_address(address, &info));
    return info;
}

static struct memclient_buffer *make_homeless(struct memclient *ctx)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.flags = MEMCLIENT_NO_ADDRESS;
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    return buf;
}

/* ---- ranges of this process ------------------------------------------------------------------------------ */

static void private_ranges_hold_mappings_like_any_other(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf = make_homeless(ctx);
    struct memclient_reservation *res;
    uint64_t before = requests(ctx);
    char *first, *second;

    assert_done(memclient_reserve_private(ctx, 4 * SIZE, SIZE, 0, &res));
    assert_int_equal(start_of(res) % SIZE, 0);
    assert_int_equal(memclient_reservation_size(res), 4 * SIZE);
    assert_true(at(memclient_reservation_address(res)).process_private);
    options.address = memclient_reservation_address(res);
    assert_done(memclient_map(buf, &options, (void **)&first));
    options.address = first + SIZE;
    assert_done(memclient_map(buf, &options, (void **)&second));
    memcpy(first, "one memory", sizeof("one memory"));
    assert_string_equal(second, "one memory");
    assert_null(memclient_buffer_address(buf));
    assert_true(at(first + 1).process_private);
    assert_ptr_equal(at(first + 1).reservation, res);
    assert_ptr_equal(at(first + 1).buffer, buf);

    assert_done(memclient_protect(ctx, first + page_size(), page_size(), MEMCLIENT_READ));
    assert_refused(memclient_reservation_release(res), EBUSY);
    assert_done(memclient_fork_dont_copy(ctx, second, 0));
    assert_done(memclient_unmap(ctx, first, 2 * SIZE));
    assert_int_equal(at(first).access, MEMCLIENT_NO_ACCESS);
    assert_done(memclient_reservation_release(res));
    assert_refused(memclient_query_address(first, &(struct memclient_address_info)MEMCLIENT_ADDRESS_INFO_INIT), EFAULT);
    assert_no_calls(ctx, before);

    /* one that is left goes with its context, and nothing of it is with the broker */
    assert_done(memclient_reserve_private(ctx, SIZE, 0, 0, &res));
    options.address = memclient_reservation_address(res);
    assert_done(memclient_map(buf, &options, (void **)&first));
    assert_int_equal(broker_status(ctx).reservations, 0);
    memclient_buffer_unref(buf);
    memclient_close(ctx);
    assert_refused(memclient_query_address(first, &(struct memclient_address_info)MEMCLIENT_ADDRESS_INFO_INIT), EFAULT);
    broker_finish(broker);
}

static void private_ranges_keep_off_what_is_taken(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker);
    struct memclient_connection_info connection = MEMCLIENT_CONNECTION_INFO_INIT;
    struct memclient_reservation *res, *none;
    uint64_t start;

    assert_done(memclient_connection(ctx, &connection));
    assert_refused(memclient_reserve_private(ctx, SIZE, 0, connection.arena_base + SIZE, &none), EADDRINUSE);
    assert_done(memclient_reserve_private(ctx, 2 * SIZE, 0, 0, &res));
    start = start_of(res);
    assert_refused(memclient_reserve_private(ctx, SIZE, 0, start + page_size(), &none), EADDRINUSE);
    assert_refused(memclient_reserve_private(ctx, SIZE, 2 * SIZE, align_up(start, 2 * SIZE) + SIZE, &none), EINVAL);
    assert_refused(memclient_reserve_private(ctx, SIZE, 0, UINT64_MAX - page_size() + 1, &none), EINVAL);
    assert_refused(memclient_reserve_private(ctx, SIZE, 0, (uint64_t)1 << 62, &none), EADDRINUSE);
    assert_done(memclient_reservation_release(res));
    assert_done(memclient_reserve_private(ctx, SIZE, 0, start, &res));
    assert_int_equal(start_of(res), start);
    assert_done(memclient_reservation_release(res));
    memclient_close(ctx);
    broker_finish(broker);
}

/* As a program does that was compiled when the struct ended there. */
static void programs_of_0_1_are_not_told_more_than_they_know(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker);
    struct memclient_address_info info;
    struct memclient_reservation *res;

    assert_done(memclient_reserve_private(ctx, SIZE, 0, 0, &res));
    memset(&info, 0, sizeof(info));
    info.size = offsetof(struct memclient_address_info, process_private);
    assert_done(memclient_query_address(memclient_reservation_address(res), &info));
    assert_ptr_equal(info.reservation, res);
    assert_false(info.process_private);
    assert_done(memclient_reservation_release(res));
    memclient_close(ctx);
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

static void private_ranges_commit_nothing_and_are_as_large_as_one_likes(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker);
    struct memclient_connection_info connection = MEMCLIENT_CONNECTION_INFO_INIT;
    struct memclient_reservation *all[64], *none;
    uint64_t before = committed();
    size_t n = 0;
    int r = 0;

    assert_done(memclient_connection(ctx, &connection));
    assert_done(memclient_reserve_private(ctx, TIB, GIB, 0, &all[n++]));
    assert_int_equal(start_of(all[0]) % GIB, 0);
    assert_true(committed() < before + TIB / 2);

    /* until the kernel has no more: it has been all round the arena then, and never in it */
    while (n < 64 && r == 0) {
        r = memclient_reserve_private(ctx, 4 * TIB, 0, 0, &all[n]);
        n += r == 0;
    }
    if (r != 0)
        assert_int_equal(r, -ENOMEM);
    for (size_t i = 0; i < n; i++)
        assert_true(start_of(all[i]) >= connection.arena_base + connection.arena_size ||
                    start_of(all[i]) + memclient_reservation_size(all[i]) <= connection.arena_base);
    assert_refused(memclient_reserve_private(ctx, (uint64_t)1 << 62, 0, 0, &none), ENOMEM);
    assert_refused(memclient_reserve_private(ctx, SIZE, (uint64_t)1 << 63, 0, &none), ENOMEM);
    while (n-- > 0)
        assert_done(memclient_reservation_release(all[n]));
    memclient_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(private_ranges_hold_mappings_like_any_other),
        at_broker(private_ranges_keep_off_what_is_taken),
        at_broker(programs_of_0_1_are_not_told_more_than_they_know),
        at_broker(private_ranges_commit_nothing_and_are_as_large_as_one_likes),
    };

    return test_run(tests, NULL, NULL);
}
