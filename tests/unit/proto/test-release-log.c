/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release log: what is put into it is found until it is removed, in the order of sequences, whatever else is there.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/methods.h"
#include "proto/release_log.h"

static struct release_log releases;

static int setup(void **state)
{
    memset(&releases, 0, sizeof(releases));
    return 0;
}

/* A packet with `n` bytes of payload, all of them `fill`. */
static unsigned put(uint64_t sequence, size_t n, uint8_t fill)
{
    uint8_t header[MEMORYD_HEADER_LONG], payload[RELEASE_LOG_SIZE];
    struct iovec iov[2] = {{.iov_base = header}, {.iov_base = payload, .iov_len = n}};

    memset(payload, fill, sizeof(payload));
    iov[0].iov_len = frame_encode(
        header, FRAME_FROM_CLIENT,
        &(struct frame_header){.method = METHOD_RELEASE, .payload_length = (uint32_t)n, .sequence = sequence});
    return release_log_put(&releases, iov);
}

/* The next one is this. */
static void expect_next(uint64_t *after, uint64_t sequence, size_t n, uint8_t fill)
{
    struct frame_header header;
    const uint8_t *payload;
    const void *packet;
    size_t size;

    assert_true(release_log_next(&releases, after, &packet, &size));
    assert_int_equal(*after, sequence);
    assert_int_equal(frame_decode(packet, size, 0, FRAME_FROM_CLIENT, &header, &payload), 0);
    assert_int_equal(header.sequence, sequence);
    assert_int_equal(header.payload_length, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(payload[i], fill);
}

static void expect_end(uint64_t after)
{
    const void *packet;
    size_t size;

    assert_false(release_log_next(&releases, &after, &packet, &size));
}

static void entries_are_found_in_order_until_removed(void **state)
{
    unsigned places[3];
    uint64_t after = 0;

    expect_end(0);
    places[0] = put(9, 4, 1);
    places[1] = put(3, 500, 2);
    places[2] = put(5, 0, 3);
    expect_next(&after, 3, 500, 2);
    expect_next(&after, 5, 0, 3);
    expect_next(&after, 9, 4, 1);
    expect_end(after);

    release_log_remove(&releases, places[1]);
    after = 0;
    expect_next(&after, 5, 0, 3);
    expect_next(&after, 9, 4, 1);
    /* the bytes of what was removed are there still, and are nothing any more */
    expect_end(after);
}

static void a_full_log_takes_no_entry(void **state)
{
    unsigned places[RELEASE_LOG_CELLS];

    assert_int_equal(put(1, sizeof(releases.cells) - MEMORYD_HEADER_SIZE + 1, 1), 0);
    for (unsigned i = 0; i < RELEASE_LOG_CELLS; i++)
        assert_int_not_equal(places[i] = put(i + 1, 8, (uint8_t)i), 0);
    assert_int_equal(put(100, 8, 1), 0);
    /* room for two, but not beside each other */
    release_log_remove(&releases, places[10]);
    release_log_remove(&releases, places[20]);
    assert_int_equal(put(100, RELEASE_LOG_CELL, 1), 0);
    release_log_remove(&releases, places[11]);
    assert_int_equal(put(100, RELEASE_LOG_CELL, 1), places[10]);
    assert_int_equal(put(101, 8, 1), places[20]);
    assert_int_equal(put(102, 8, 1), 0);
}

static void all_of_it_is_one_packet_if_need_be(void **state)
{
    uint64_t after = 0;
    size_t n = sizeof(releases.cells) - MEMORYD_HEADER_SIZE;

    assert_int_equal(put(1, n, 7), 1);
    expect_next(&after, 1, n, 7);
    release_log_remove(&releases, 1);
    expect_end(0);
    assert_int_equal(put(2, n, 7), 1);
}

/* Beside a model, for a while. */
static void any_order_of_putting_and_removing_works(void **state)
{
    struct {
        unsigned place;
        size_t n;
    } model[200] = {0};

    srandom(1);
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)random() % 199 + 1;
        uint64_t after = 0;

        if (model[i].place) {
            release_log_remove(&releases, model[i].place);
            model[i].place = 0;
        } else {
            model[i].n = (size_t)random() % 300;
            model[i].place = put(i, model[i].n, (uint8_t)i);
        }
        if (round % 50)
            continue;
        for (unsigned k = 1; k < 200; k++)
            if (model[k].place)
                expect_next(&after, k, model[k].n, (uint8_t)k);
        expect_end(after);
    }
}

/* What a client may have written there. Nothing is found that lies beyond the end, and the search has one. */
static void I8_no_contents_lead_out_of_the_page(void **state)
{
    static union {
        struct release_log log;
        uint8_t bytes[RELEASE_LOG_SIZE];
    } page;

    srandom(2);
    for (unsigned round = 0; round < 3000; round++) {
        uint64_t after = 0, before = 0;
        const void *packet;
        size_t size;

        setup(NULL);
        for (unsigned i = 0; i < 30; i++)
            (void)put(i + 1, (size_t)random() % 200, 1);
        page.log = releases;
        for (unsigned i = 0; i < round % 100; i++)
            page.bytes[(size_t)random() % (i % 2 ? sizeof(releases.sizes) : sizeof(page))] = (uint8_t)random();
        for (unsigned n = 0; release_log_next(&page.log, &after, &packet, &size); n++) {
            const uint8_t *at = packet;

            assert_true(n < RELEASE_LOG_CELLS && after > before);
            assert_true(at >= page.log.cells[0] && at + size <= page.bytes + sizeof(page));
            before = after;
        }
    }
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_are_found_in_order_until_removed), TEST(a_full_log_takes_no_entry),
        TEST(all_of_it_is_one_packet_if_need_be),       TEST(any_order_of_putting_and_removing_works),
        TEST(I8_no_contents_lead_out_of_the_page),
    };

    return test_run(tests, NULL, NULL);
}
