/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: one user takes little of the arena, but everywhere: a page at each multiple of a large alignment, at addresses of
 * its choice, or as the home of a buffer there; and goes on when the broker has died. A user that comes later still
 * finds its share of the addresses in one piece.
 */
#include "tests/integration/clients.h"

#include "base/align.h"

#define UID_GREEDY 61003
#define UID_LATE   61004

/* The system's half of what broker.c configures. */
#define ARENA (64 * GIB)
#define BASE  UINT64_C(0x566000000000)

struct attack {
    const char *socket;
    uint64_t step;
    bool (*take)(struct memclient_context *ctx, uint64_t step, uint64_t i);
};

/* ---- ways to be everywhere --------------------------------------------------------------------------------------- */

static bool reserve_aligned(struct memclient_context *ctx, uint64_t step, uint64_t i)
{
    struct memclient_reservation *reservation;

    (void)i;
    return memclient_reserve(ctx, page_size(), RESERVE_WITH(.alignment = step), &reservation) == 0;
}

/* From the middle of what is left to the middle of that, as if it were a tree. */
static uint64_t address_of(uint64_t step, uint64_t i)
{
    uint64_t n = 0, steps = ARENA / step;

    for (uint64_t bit = 1; bit < steps; bit <<= 1)
        n = n << 1 | !!(i & bit);
    return BASE + n * step;
}

static bool reserve_there(struct memclient_context *ctx, uint64_t step, uint64_t i)
{
    struct memclient_reservation *reservation;
    int r = memclient_reserve(ctx, page_size(), RESERVE_WITH(.address = address_of(step, i)), &reservation);

    /* for one page, far from all others */
    if (r == -EADDRNOTAVAIL)
        CHECK(strstr(memclient_error(), "would spoil") && strstr(memclient_error(), "share = 100%"));
    return r == 0;
}

static bool make_home_there(struct memclient_context *ctx, uint64_t step, uint64_t i)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buffer;

    options.address = address_of(step, i);
    return memclient_alloc(ctx, page_size(), &options, &buffer) == 0;
}

/* ---- who does it, and who comes later ---------------------------------------------------------------------------- */

static void take_everywhere(int channel, void *context)
{
    const struct attack *attack = context;
    struct memclient_context *ctx;
    uint64_t taken = 0;

    become(UID_GREEDY);
    ctx = broker_connect_in_child(attack->socket);
    for (unsigned brokers = 0; brokers < 2; brokers++) {
        for (uint64_t i = 1; i < ARENA / attack->step; i++)
            taken += attack->take(ctx, attack->step, i);
        CHECK(pass_bytes(channel, &taken, sizeof(taken)));
        hear(channel);
    }
}

/* The largest range that there is for this user, to a part in 64 of the arena. */
static void tell_the_largest(struct memclient_context *ctx, int channel)
{
    struct memclient_reservation *reservation;
    uint64_t largest = 0;

    for (uint64_t size = ARENA; size && !largest; size -= ARENA / 64)
        if (!memclient_reserve(ctx, size, NULL, &reservation)) {
            largest = size;
            memclient_reservation_release(reservation);
        }
    CHECK(pass_bytes(channel, &largest, sizeof(largest)));
}

static void find_the_largest(int channel, void *context)
{
    struct memclient_context *ctx;

    become(UID_LATE);
    ctx = broker_connect_in_child(context);
    tell_the_largest(ctx, channel);
    memclient_context_close(ctx);
}

static void others_find_their_share(struct attack attack)
{
    struct broker_process *broker;
    struct child greedy, late;
    uint64_t taken, largest;

    test_needs_root();
    broker = broker_for_test(NULL);
    attack.socket = broker->socket;
    child_start(&greedy, take_everywhere, &attack);
    assert_true(take_bytes(greedy.channel, &taken, sizeof(taken)));
    /* another broker knows no less of it */
    broker_kill_child(broker);
    child_tell(&greedy);
    assert_true(take_bytes(greedy.channel, &taken, sizeof(taken)));
    child_start(&late, find_the_largest, (void *)broker->socket);
    assert_true(take_bytes(late.channel, &largest, sizeof(largest)));
    child_finish(&late);
    printf("%llu taken, the largest range is %llu MiB of %llu\n", (unsigned long long)taken,
           (unsigned long long)(largest / MIB), (unsigned long long)(ARENA / MIB));
    broker_check(broker);
    child_tell(&greedy);
    child_finish(&greedy);
    assert_true(taken);
    /* half of what the first one leaves, which is half of the arena */
    assert_true(largest >= ARENA / 4 - ARENA / 64);
    broker_finish(broker);
}

static void I7_alignment_leaves_others_large_ranges(void **state)
{
    others_find_their_share((struct attack){.step = 256 * MIB, .take = reserve_aligned});
}

static void I7_wanted_addresses_leave_others_large_ranges(void **state)
{
    others_find_their_share((struct attack){.step = 256 * MIB, .take = reserve_there});
}

static void I7_homes_leave_others_large_ranges(void **state)
{
    others_find_their_share((struct attack){.step = 256 * MIB, .take = make_home_there});
}

/* ---- what the others leave --------------------------------------------------------------------------------------- */

#define PLACES 3

/* Much, each time that it is told to; then nothing. */
static void take_and_give_back(int channel, void *context)
{
    struct memclient_reservation *reservations[PLACES];
    struct memclient_context *ctx;

    become(UID_GREEDY);
    ctx = broker_connect_in_child(context);
    for (unsigned i = 0; i < PLACES; i++) {
        CHECK_DONE(memclient_reserve(ctx, ARENA / 16, NULL, &reservations[i]));
        tell(channel);
        hear(channel);
    }
    for (unsigned i = 0; i < PLACES; i++)
        memclient_reservation_release(reservations[i]);
    memclient_context_close(ctx);
}

/* A page each time. It wants no address, so it is not its doing where that is. */
static void take_a_little(int channel, void *context)
{
    struct memclient_reservation *reservation;
    struct memclient_context *ctx;

    become(UID_LATE);
    ctx = broker_connect_in_child(context);
    for (unsigned i = 0; i < PLACES; i++) {
        CHECK_DONE(memclient_reserve(ctx, page_size(), NULL, &reservation));
        tell(channel);
        hear(channel);
    }
    for (unsigned brokers = 0; brokers < 2; brokers++) {
        tell_the_largest(ctx, channel);
        hear(channel);
    }
}

static void I7_what_others_gave_back_costs_nobody_anything(void **state)
{
    struct broker_process *broker;
    uint64_t before, after;
    struct child greedy, modest;

    test_needs_root();
    broker = broker_for_test(NULL);
    for (unsigned i = 0; i < PLACES; i++) {
        if (i)
            child_tell(&greedy);
        else
            child_start(&greedy, take_and_give_back, broker->socket);
        child_hear(&greedy);
        if (i)
            child_tell(&modest);
        else
            child_start(&modest, take_a_little, broker->socket);
        child_hear(&modest);
    }
    child_tell(&greedy);
    child_finish(&greedy);
    child_tell(&modest);
    assert_true(take_bytes(modest.channel, &before, sizeof(before)));
    broker_kill_child(broker);
    child_tell(&modest);
    assert_true(take_bytes(modest.channel, &after, sizeof(after)));
    printf("the largest range was %llu MiB, and is %llu MiB\n", (unsigned long long)(before / MIB),
           (unsigned long long)(after / MIB));
    assert_int_equal(after, before);
    broker_check(broker);
    child_tell(&modest);
    child_finish(&modest);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I7_alignment_leaves_others_large_ranges),
        at_broker(I7_wanted_addresses_leave_others_large_ranges),
        at_broker(I7_homes_leave_others_large_ranges),
        at_broker(I7_what_others_gave_back_costs_nobody_anything),
    };

    return test_run(tests, NULL, NULL);
}
