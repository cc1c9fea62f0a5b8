/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I9, the same address everywhere: what one process places, every other finds at the same place; reservations of
 * different processes never overlap; and whoever has something there already is told so.
 */
#include "tests/integration/clients.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SIZE (2 * MIB)

struct node {
    struct node *next;
    uint64_t value;
};

static void follow_pointers(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_token token;
    struct memclient_buffer *buf;
    const struct node *node;
    uint64_t sum = 0;
    void *p;

    CHECK(take_bytes(channel, &token, sizeof(token)));
    CHECK_DONE(memclient_open_token(ctx, &token, 0, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    CHECK(p == memclient_buffer_home(buf));
    for (node = p; node != NULL; node = node->next)
        sum += node->value;
    CHECK(pass_bytes(channel, &sum, sizeof(sum)));
    hear(channel);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

static void I9_pointers_hold_in_every_process(void **state)
{
    enum { READERS = 4 };
    struct broker_process *broker = broker_for_test(NULL);
    struct child readers[READERS];
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct node *nodes;
    uint64_t sum;
    size_t n = SIZE / sizeof(struct node);

    for (size_t i = 0; i < READERS; i++)
        child_start(&readers[i], follow_pointers, broker->socket);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, (void **)&nodes));
    for (size_t i = 0; i < n; i++)
        nodes[i] = (struct node){.next = i + 1 < n ? &nodes[i + 1] : NULL, .value = i};
    assert_done(memclient_share(buf, NULL, &token));
    for (size_t i = 0; i < READERS; i++)
        assert_true(pass_bytes(readers[i].channel, &token, sizeof(token)));
    for (size_t i = 0; i < READERS; i++) {
        assert_true(take_bytes(readers[i].channel, &sum, sizeof(sum)));
        assert_int_equal(sum, n * (n - 1) / 2);
        child_tell(&readers[i]);
        child_finish(&readers[i]);
    }
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- no overlap -------------------------------------------------------------------------------------------------- */

#define PROCESSES 4
#define EACH      1500

struct extent {
    uint64_t start;
    uint64_t end;
};

struct reserver {
    const char *socket;
    struct extent *extents; /* PROCESSES * EACH of them, shared */
    size_t first;
};

/* Reservations of all sizes and alignments; some are given back and others taken, so that the arena gets holes. */
static void reserve_many(int channel, void *context)
{
    const struct reserver *reserver = context;
    struct memclient_context *ctx = broker_connect_in_child(reserver->socket);
    struct memclient_reservation **all = calloc(EACH, sizeof(*all));
    uint64_t random = 88172645463325252U + reserver->first;

    CHECK(all != NULL);
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < EACH; i++) {
            uint64_t size, alignment;

            if (all[i] != NULL && i % 3 != 0)
                continue;
            if (all[i] != NULL)
                CHECK_DONE(memclient_reservation_release(all[i]));
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size = (1 + random % 64) * page_size();
            alignment = page_size() << (random >> 32) % 6;
            CHECK_DONE(memclient_reserve(ctx, size, RESERVE_WITH(.alignment = alignment), &all[i]));
            CHECK((uintptr_t)memclient_reservation_address(all[i]) % alignment == 0);
            CHECK(memclient_reservation_size(all[i]) == size);
        }
    for (size_t i = 0; i < EACH; i++) {
        uint64_t start = (uintptr_t)memclient_reservation_address(all[i]);

        reserver->extents[reserver->first + i] = (struct extent){start, start + memclient_reservation_size(all[i])};
    }
    tell(channel);
    hear(channel);
    free(all);
    memclient_context_close(ctx);
}

static int by_start(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void I9_reservations_of_many_processes_do_not_overlap(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    size_t size = PROCESSES * EACH * sizeof(struct extent);
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct reserver reservers[PROCESSES];
    struct child children[PROCESSES];
    struct extent *extents;
    struct memclient_context *ctx;

    extents = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped((void *)extents);
    for (size_t i = 0; i < PROCESSES; i++) {
        reservers[i] = (struct reserver){broker->socket, extents, i * EACH};
        child_start(&children[i], reserve_many, &reservers[i]);
    }
    for (size_t i = 0; i < PROCESSES; i++)
        child_hear(&children[i]);
    ctx = broker_connect(broker);
    assert_done(memclient_context_query(ctx, &connection));
    assert_int_equal(broker_status(ctx).reservations, PROCESSES * EACH);
    qsort(extents, PROCESSES * EACH, sizeof(*extents), by_start);
    assert_true(extents[0].start >= connection.arena_base);
    assert_true(extents[PROCESSES * EACH - 1].end <= connection.arena_base + connection.arena_size);
    for (size_t i = 1; i < PROCESSES * EACH; i++)
        assert_true(extents[i - 1].end <= extents[i].start);
    broker_check(broker);
    for (size_t i = 0; i < PROCESSES; i++) {
        child_tell(&children[i]);
        child_finish(&children[i]);
    }
    assert_ok(munmap(extents, size));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- conflicts --------------------------------------------------------------------------------------------------- */

static void I9_what_is_there_already_is_told(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_alloc_options wish = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_reservation *res, *none;
    struct memclient_buffer *buf, *second;
    void *p, *home, *there;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    home = memclient_buffer_home(buf);
    there = mmap(home, page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_mapped(there);
    assert_refused(memclient_map(buf, NULL, &p), EADDRINUSE);
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    assert_done(memclient_map(buf, &options, &p));
    assert_ptr_not_equal(p, home);
    *(volatile char *)p = 1;
    assert_done(memclient_unmap(ctx, p, 0));
    assert_ok(munmap(there, page_size()));
    assert_done(memclient_map(buf, NULL, &p));
    assert_ptr_equal(p, home);
    options.flags = MEMCLIENT_MAP_ALONE;
    assert_refused(memclient_map(buf, &options, &p), EADDRINUSE);

    /* on the host: neither a home nor a reservation may be given twice */
    wish.address = (uintptr_t)home;
    assert_refused(memclient_alloc(other, SIZE, &wish, &second), EADDRINUSE);
    assert_refused(memclient_reserve(other, SIZE, RESERVE_WITH(.address = (uintptr_t)home), &none), EADDRINUSE);
    assert_done(memclient_reserve(ctx, SIZE, NULL, &res));
    assert_refused(memclient_reserve(other, page_size(),
                                     RESERVE_WITH(.address = (uintptr_t)memclient_reservation_address(res)), &none),
                   EADDRINUSE);
    assert_refused(memclient_reserve(ctx, 256 * GIB, NULL, &none), EADDRNOTAVAIL);
    assert_refused(memclient_reserve(ctx, 0, NULL, &none), EINVAL);
    assert_refused(memclient_reserve(ctx, page_size() + 1, NULL, &none), EINVAL);
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref(buf);
    assert_done(memclient_unmap(ctx, p, 0));
    memclient_context_close(ctx);
    memclient_context_close(other);
    broker_finish(broker);
}

/* A home made by the first mapping in a reservation that may make one is everybody's, and outlives the reservation. */
static void I9_a_home_in_a_reservation_is_everybodys(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_alloc_options homeless = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_reservation *res, *none;
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct child reader;
    struct memclient_context *ctx;
    struct node *nodes;
    uint64_t sum;
    void *p;

    child_start(&reader, follow_pointers, broker->socket);
    ctx = broker_connect(broker);
    homeless.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_done(memclient_alloc(ctx, SIZE, &homeless, &buf));
    assert_null(memclient_buffer_home(buf));
    assert_refused(memclient_map(buf, NULL, &p), EADDRNOTAVAIL);
    assert_done(memclient_reserve(ctx, 4 * SIZE, NULL, &res));
    options.address = (char *)memclient_reservation_address(res) + SIZE;
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    assert_done(memclient_map(buf, &options, &p));
    assert_null(memclient_buffer_home(buf));
    assert_done(memclient_unmap(ctx, p, 0));
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    assert_refused(memclient_map(buf, &options, &p), EINVAL);
    options.flags = 0;
    assert_done(memclient_map(buf, &options, &p));
    assert_ptr_equal(p, options.address);
    assert_ptr_equal(memclient_buffer_home(buf), p);
    assert_int_equal(memclient_reservation_release(res), -EBUSY);
    nodes = p;
    nodes[0] = (struct node){&nodes[100], 40};
    nodes[100] = (struct node){NULL, 2};
    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_unmap(ctx, p, 0));
    assert_done(memclient_reservation_release(res));
    assert_true(pass_bytes(reader.channel, &token, sizeof(token)));
    assert_true(take_bytes(reader.channel, &sum, sizeof(sum)));
    assert_int_equal(sum, 42);
    assert_refused(memclient_reserve(ctx, SIZE, RESERVE_WITH(.address = (uintptr_t)p), &none), EADDRINUSE);
    child_tell(&reader);
    child_finish(&reader);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I9_pointers_hold_in_every_process),
        at_broker(I9_reservations_of_many_processes_do_not_overlap),
        at_broker(I9_what_is_there_already_is_told),
        at_broker(I9_a_home_in_a_reservation_is_everybodys),
    };

    return test_run(tests, NULL, NULL);
}
