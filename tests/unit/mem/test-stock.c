/* SPDX-License-Identifier: Apache-2.0 */
/* How much stock there should be, by the clock that the test has. */
#include "tests/support/test.h"

#include <string.h>

#include "base/clock.h"
#include "mem/pool.h"
#include "mem/stock.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static struct topology machine;
static struct pools *pools;
static struct stock stock;
static struct stock_bin *bin;
static uint64_t now;

static int setup(void **state)
{
    const struct pools_config config = {.capacity = {.percent = 50}, .stock = {.percent = 25}};

    machine = (struct topology){.base_page = 4 * KIB, .n_nodes = 1};
    machine.nodes[0] = (struct topology_node){.total = 16 * GIB, .has_cpus = true};
    machine.nodes[0].distances[0] = 10;
    assert_int_equal(pools_new(&pools, &machine, &config, NULL), 0);
    memset(&stock, 0, sizeof(stock));
    bin = NULL;
    now = 100 * NSEC_PER_SEC;
    return 0;
}

static int teardown(void **state)
{
    pools = pools_free(pools);
    return 0;
}

static struct stock_key key_of(uint64_t bytes, bool publishable)
{
    const struct plan_brief plan = {.bytes = bytes, .n_nodes = 1, .placement = PLACEMENT_BIND, .strict = true};
    struct stock_key key;

    assert_true(stock_key_of(pools_get(pools, 0), &plan, publishable, &key));
    return key;
}

/* As the broker does: whether it was there is known first. */
static bool ask(uint64_t bytes, uint32_t n)
{
    struct stock_key key = key_of(bytes, false);
    bool got;

    bin = stock_find(&stock, &key);
    if (!bin)
        bin = stock_add(&stock, &key, now);
    assert_non_null(bin);
    got = bin->n >= n;
    stock_asked(bin, n, got, false, now);
    for (uint32_t i = 0; i < n && got; i++)
        (void)stock_take(bin);
    return got;
}

static uint32_t wanted(void)
{
    uint64_t again;

    return stock_wanted(bin, now, &again);
}

static void fill(void)
{
    uint32_t n;

    now += STOCK_IDLE_GAP_NS;
    while ((n = wanted()))
        while (n--)
            stock_put(bin, (struct stock_item){.fd = -1});
}

static uint32_t a_period_later(void)
{
    uint32_t n;

    now += STOCK_PERIOD_NS;
    n = stock_surplus(bin, now);
    for (uint32_t i = 0; i < n; i++)
        (void)stock_take(bin);
    return bin->n;
}

static void a_kind_is_stocked_when_it_is_asked_for_again_and_again(void **state)
{
    for (unsigned i = 1; i <= STOCK_ASKS; i++) {
        assert_false(ask(64 * KIB, 1));
        assert_int_equal(bin->target, i < STOCK_ASKS ? 0 : STOCK_FIRST);
    }
    fill();
    assert_int_equal(bin->n, STOCK_FIRST);
    assert_true(ask(64 * KIB, 1));
    /* not of another size */
    assert_false(ask(68 * KIB, 1));
}

static void sizes_asked_for_rarely_are_not_stocked(void **state)
{
    for (unsigned i = 0; i < 10; i++) {
        assert_false(ask(64 * KIB, 1));
        assert_int_equal(bin->target, 0);
        now += STOCK_ASKS_NS + 1;
    }
}

static void stock_grows_with_bursts_up_to_a_limit(void **state)
{
    uint32_t before = 0;

    for (unsigned burst = 0; burst < 10; burst++) {
        for (unsigned i = 0; i < 100; i++)
            (void)ask(64 * KIB, 1);
        assert_true(bin->target >= before);
        before = bin->target;
        fill();
    }
    assert_int_equal(bin->n, STOCK_MOST);
    /* as many as are asked for at once */
    for (unsigned i = 0; i < STOCK_ASKS; i++)
        (void)ask(4 * KIB, 50);
    assert_int_equal(bin->target, 50);
}

static void large_ones_are_few(void **state)
{
    struct stock_key key;
    const struct plan_brief plan = {.bytes = 3 * GIB, .n_nodes = 1};

    for (unsigned i = 0; i < 100; i++)
        (void)ask(GIB, 1);
    assert_int_equal(bin->target, 2);
    for (unsigned i = 0; i < 100; i++)
        (void)ask(2 * GIB, 1);
    assert_int_equal(bin->target, 1);
    assert_false(stock_key_of(pools_get(pools, 0), &plan, false, &key));
}

/* While it goes on, only if next to nothing is left. */
static void a_burst_is_left_in_peace(void **state)
{
    uint64_t again;

    for (unsigned i = 0; i < 100; i++)
        (void)ask(64 * KIB, 1);
    fill();
    assert_int_equal(bin->n, 64);
    for (unsigned i = 0; i < 31; i++)
        assert_true(ask(64 * KIB, 1));
    now += STOCK_IDLE_GAP_NS;
    assert_int_equal(wanted(), 0);
    assert_true(ask(64 * KIB, 1));
    assert_int_equal(stock_wanted(bin, now, &again), 0);
    assert_int_equal(again, now + STOCK_IDLE_GAP_NS);
    assert_int_equal(stock_wanted(bin, again, &again), 32);
    for (unsigned i = 0; i < 17; i++)
        assert_true(ask(64 * KIB, 1));
    assert_int_equal(wanted(), 49);
    bin->coming = 8;
    assert_int_equal(wanted(), 0);
}

/* One of four is what the next who asks would have to wait for. */
static void the_first_ones_are_urgent(void **state)
{
    for (unsigned i = 0; i < 100; i++)
        (void)ask(64 * KIB, 1);
    assert_int_equal(stock_urgent(bin), STOCK_MOST / 4);
    bin->coming = 8;
    assert_int_equal(stock_urgent(bin), STOCK_MOST / 4 - 8);
    bin->coming = 0;
    fill();
    assert_int_equal(stock_urgent(bin), 0);
    for (unsigned i = 0; i < STOCK_ASKS; i++)
        (void)ask(GIB, 1);
    assert_int_equal(stock_urgent(bin), 1);
    stock_lower(bin, 0);
    assert_int_equal(stock_urgent(bin), 0);
}

static void stock_is_dropped_when_nobody_asks(void **state)
{
    uint32_t before = STOCK_MOST;

    for (unsigned i = 0; i < 100; i++)
        (void)ask(64 * KIB, 1);
    fill();
    (void)a_period_later();
    while (before) {
        uint32_t n = a_period_later();

        assert_int_equal(n, before / 2);
        before = n;
    }
    assert_int_equal(wanted(), 0);
    /* and its place with it */
    (void)stock_surplus(bin, now);
    assert_int_equal(bin->key.bytes, 0);
}

static void what_is_not_needed_goes_sooner(void **state)
{
    for (unsigned i = 0; i < 100; i++)
        (void)ask(64 * KIB, 1);
    fill();
    (void)a_period_later();
    for (unsigned i = 0; i < 10; i++) {
        assert_true(ask(64 * KIB, 1));
        (void)a_period_later();
        fill();
    }
    assert_int_equal(bin->n, STOCK_FIRST);
}

static void places_are_used_again(void **state)
{
    struct stock_key key = key_of(4 * MIB, false);

    for (unsigned i = 0; i < 1000; i++)
        assert_false(ask((i + 1) * 4 * KIB, 1));
    for (unsigned i = 0; i < STOCK_BINS; i++)
        for (unsigned k = 0; k < STOCK_ASKS; k++)
            (void)ask((i + 1) * 4 * KIB, 1);
    assert_null(stock_add(&stock, &key, now));
}

static void who_publishes_has_his_own(void **state)
{
    struct stock_key key = key_of(64 * KIB, true), other = key_of(64 * KIB, false);

    assert_non_null(stock_add(&stock, &key, now));
    assert_null(stock_find(&stock, &other));
    assert_non_null(stock_find(&stock, &key));
}

static void descriptors_are_opened_for_those_who_want_them(void **state)
{
    struct stock_key key = key_of(64 * KIB, false);

    bin = stock_add(&stock, &key, now);
    assert_false(stock_wants_fds(bin));
    for (unsigned i = 0; i < 3; i++)
        stock_asked(bin, 1, false, true, now);
    assert_true(stock_wants_fds(bin));
    for (unsigned i = 0; i < 3; i++)
        stock_asked(bin, 1, false, false, now);
    assert_false(stock_wants_fds(bin));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_kind_is_stocked_when_it_is_asked_for_again_and_again),
        TEST(sizes_asked_for_rarely_are_not_stocked),
        TEST(stock_grows_with_bursts_up_to_a_limit),
        TEST(large_ones_are_few),
        TEST(a_burst_is_left_in_peace),
        TEST(the_first_ones_are_urgent),
        TEST(stock_is_dropped_when_nobody_asks),
        TEST(what_is_not_needed_goes_sooner),
        TEST(places_are_used_again),
        TEST(who_publishes_has_his_own),
        TEST(descriptors_are_opened_for_those_who_want_them),
    };

    return test_run(tests, NULL, NULL);
}
