/* SPDX-License-Identifier: Apache-2.0 */
/* The header: its bytes, and every way of being wrong. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

/* A sound request with three bytes of payload and two descriptors. */
static const uint8_t request[35] = {
    'M',  'E',  'M',  'D',                          /* magic */
    1,    0,    32,   0,                            /* version, header length */
    3,    0,    0,    0,                            /* payload length */
    2,    0,    0x0d, 0,                            /* descriptors, method */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* sequence */
    0x07, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* acknowledged */
    'a',  'b',  'c',
};

/* One that acknowledges another reply besides. */
static const uint8_t long_request[43] = {
    'M',  'E',  'M',  'D',                          /* magic */
    1,    0,    40,   0,                            /* version, header length */
    3,    0,    0,    0,                            /* payload length */
    2,    0,    0x0d, 0,                            /* descriptors, method */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* sequence */
    0x05, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* acknowledged */
    0x07, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* answered */
    'a',  'b',  'c',
};

static const uint8_t reply[35] = {
    'M',  'E',  'M',  'D',                          /* magic */
    1,    0,    32,   0,                            /* version, header length */
    3,    0,    0,    0,                            /* payload length */
    2,    0,    0x0d, 0,                            /* descriptors, method */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* sequence */
    0x1c, 0,    0,    0,                            /* status */
    0,    0,    0,    0,                            /* reserved */
    'a',  'b',  'c',
};

/* Decodes an exact copy, so that a sanitizer sees a byte read too many; failure may write nothing.
 */
static int decode(const void *packet, size_t size, unsigned n_fds, enum frame_side side, struct frame_header *header)
{
    static const uint8_t marker;
    const struct frame_header untouched = {.method = 0x5555, .sequence = 0x5555};
    const uint8_t *payload = &marker;
    uint8_t *copy = malloc(size ? size : 1);
    int r;

    assert_non_null(copy);
    memcpy(copy, packet, size);
    *header = untouched;
    r = frame_decode(copy, size, n_fds, side, header, &payload);
    if (r) {
        assert_memory_equal(header, &untouched, sizeof(untouched));
        assert_ptr_equal(payload, &marker);
    } else {
        assert_ptr_equal(payload, copy + size - header->payload_length);
    }
    free(copy);
    return r;
}

static void test_request_both_ways(void **state)
{
    struct frame_header header;
    uint8_t bytes[MEMORYD_HEADER_SIZE];

    assert_int_equal(decode(request, sizeof(request), 2, FRAME_FROM_CLIENT, &header), 0);
    assert_int_equal(header.method, 13);
    assert_int_equal(header.fd_count, 2);
    assert_int_equal(header.payload_length, 3);
    assert_true(header.sequence == 0x0102030405060708);
    assert_true(header.acknowledged == 0x0102030405060707);
    assert_int_equal(header.status, 0);
    assert_int_equal(header.answered, 0);
    assert_int_equal(frame_encode(bytes, FRAME_FROM_CLIENT, &header), sizeof(bytes));
    assert_memory_equal(bytes, request, sizeof(bytes));
}

static void test_long_request_both_ways(void **state)
{
    struct frame_header header;
    uint8_t bytes[MEMORYD_HEADER_LONG];

    assert_int_equal(decode(long_request, sizeof(long_request), 2, FRAME_FROM_CLIENT, &header), 0);
    assert_true(header.acknowledged == 0x0102030405060705);
    assert_true(header.answered == 0x0102030405060707);
    assert_int_equal(header.payload_length, 3);
    assert_int_equal(frame_encode(bytes, FRAME_FROM_CLIENT, &header), sizeof(bytes));
    assert_memory_equal(bytes, long_request, sizeof(bytes));
}

static void test_answered_lies_between_acknowledged_and_sequence(void **state)
{
    static const struct {
        uint8_t low;
        int error;
    } tries[] = {{0, FRAME_E_ANSWERED}, {4, FRAME_E_ANSWERED}, {5, FRAME_E_ANSWERED}, {6, 0}, {7, 0},
                 {8, FRAME_E_ANSWERED}, {9, FRAME_E_ANSWERED}};
    struct frame_header header;
    uint8_t packet[sizeof(long_request)];

    memcpy(packet, long_request, sizeof(packet));
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        packet[32] = tries[i].low;
        assert_int_equal(decode(packet, sizeof(packet), 2, FRAME_FROM_CLIENT, &header), tries[i].error);
    }
    memset(packet + 32, 0, 8);
    assert_int_equal(decode(packet, sizeof(packet), 2, FRAME_FROM_CLIENT, &header), 0);
    assert_int_equal(header.answered, 0);
    /* from the broker these bytes are not known */
    memcpy(packet, reply, 32);
    packet[6] = 40;
    memset(packet + 32, 0xee, 8);
    assert_int_equal(decode(packet, sizeof(packet), 2, FRAME_FROM_BROKER, &header), 0);
    assert_int_equal(header.answered, 0);
}

static void test_reply_both_ways(void **state)
{
    struct frame_header header;
    uint8_t bytes[MEMORYD_HEADER_SIZE];

    assert_int_equal(decode(reply, sizeof(reply), 2, FRAME_FROM_BROKER, &header), 0);
    assert_int_equal(header.status, 28);
    assert_true(header.sequence == 0x0102030405060708);
    assert_int_equal(header.acknowledged, 0);
    frame_encode(bytes, FRAME_FROM_BROKER, &header);
    assert_memory_equal(bytes, reply, sizeof(bytes));
}

static void test_event(void **state)
{
    struct frame_header header = {.method = 0x8004};
    uint8_t bytes[MEMORYD_HEADER_SIZE];

    frame_encode(bytes, FRAME_FROM_BROKER, &header);
    assert_int_equal(decode(bytes, sizeof(bytes), 0, FRAME_FROM_BROKER, &header), 0);
    assert_int_equal(header.method, 0x8004);
    assert_true(header.sequence == 0);
    assert_int_equal(header.payload_length, 0);
}

struct damage {
    const char *what;
    int error;
    unsigned offset;
    uint8_t bytes[8];
    unsigned n_bytes;
};

static void check_damage(const uint8_t *sound, enum frame_side side, const struct damage *damage)
{
    struct frame_header header;
    uint8_t packet[35];
    int r;

    memcpy(packet, sound, sizeof(packet));
    memcpy(packet + damage->offset, damage->bytes, damage->n_bytes);
    r = decode(packet, sizeof(packet), 2, side, &header);
    if (r != damage->error)
        fail_msg("%s: \"%s\", not \"%s\"", damage->what, frame_error_text(r), frame_error_text(damage->error));
}

static void test_every_field_can_be_wrong(void **state)
{
    static const struct damage both[] = {
        {"magic, first byte", FRAME_E_MAGIC, 0, {'m'}, 1},
        {"magic, last byte", FRAME_E_MAGIC, 3, {'E'}, 1},
        {"version 0", FRAME_E_VERSION, 4, {0, 0}, 2},
        {"version 2", FRAME_E_VERSION, 4, {2, 0}, 2},
        {"version 257", FRAME_E_VERSION, 4, {1, 1}, 2},
        {"header length 0", FRAME_E_HEADER_LENGTH, 6, {0, 0}, 2},
        {"header length 31", FRAME_E_HEADER_LENGTH, 6, {31, 0}, 2},
        {"header length 36, beyond the packet", FRAME_E_HEADER_LENGTH, 6, {36, 0}, 2},
        {"header length 65", FRAME_E_HEADER_LENGTH, 6, {65, 0}, 2},
        {"header length 65535", FRAME_E_HEADER_LENGTH, 6, {0xff, 0xff}, 2},
        {"header length 33 without its byte", FRAME_E_PAYLOAD_LENGTH, 6, {33, 0}, 2},
        {"payload length 2", FRAME_E_PAYLOAD_LENGTH, 8, {2}, 1},
        {"payload length 4", FRAME_E_PAYLOAD_LENGTH, 8, {4}, 1},
        {"payload length 0", FRAME_E_PAYLOAD_LENGTH, 8, {0}, 1},
        {"payload length 2^32-1", FRAME_E_PAYLOAD_LENGTH, 8, {0xff, 0xff, 0xff, 0xff}, 4},
        {"payload length 3 + 2^24", FRAME_E_PAYLOAD_LENGTH, 11, {1}, 1},
        {"one descriptor too few told", FRAME_E_FD_COUNT, 12, {1, 0}, 2},
        {"one descriptor too many told", FRAME_E_FD_COUNT, 12, {3, 0}, 2},
        {"65 descriptors", FRAME_E_TOO_MANY_FDS, 12, {65, 0}, 2},
        {"65535 descriptors", FRAME_E_TOO_MANY_FDS, 12, {0xff, 0xff}, 2},
        {"method 0", FRAME_E_METHOD, 14, {0, 0}, 2},
    };
    static const struct damage requests[] = {
        {"sequence 0", FRAME_E_SEQUENCE, 16, {0}, 8},
        {"acknowledges itself", FRAME_E_ACKNOWLEDGED, 24, {0x08}, 1},
        {"acknowledges the future", FRAME_E_ACKNOWLEDGED, 31, {0x7f}, 1},
    };
    static const struct damage replies[] = {
        {"event with a status", FRAME_E_STATUS, 16, {0}, 8},
        {"reserved, first byte", FRAME_E_RESERVED, 28, {1}, 1},
        {"reserved, last byte", FRAME_E_RESERVED, 31, {0x80}, 1},
    };

    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        check_damage(request, FRAME_FROM_CLIENT, &both[i]);
        check_damage(reply, FRAME_FROM_BROKER, &both[i]);
    }
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        check_damage(request, FRAME_FROM_CLIENT, &requests[i]);
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
        check_damage(reply, FRAME_FROM_BROKER, &replies[i]);
}

static void test_every_size_below_a_header_is_short(void **state)
{
    struct frame_header header;

    for (size_t size = 0; size < MEMORYD_HEADER_SIZE; size++)
        assert_int_equal(decode(request, size, 2, FRAME_FROM_CLIENT, &header), FRAME_E_SHORT);
    /* and whole headers with their payload cut off */
    assert_int_equal(decode(request, 34, 2, FRAME_FROM_CLIENT, &header), FRAME_E_PAYLOAD_LENGTH);
    assert_int_equal(decode(request, 32, 2, FRAME_FROM_CLIENT, &header), FRAME_E_PAYLOAD_LENGTH);
}

static void test_the_largest_frame(void **state)
{
    struct frame_header header = {
        .method = 1, .sequence = 1, .fd_count = MEMORYD_FDS_MAX, .payload_length = MEMORYD_PAYLOAD_MAX};
    uint8_t *packet = calloc(1, MEMORYD_FRAME_MAX + 1);

    assert_non_null(packet);
    frame_encode(packet, FRAME_FROM_CLIENT, &header);
    assert_int_equal(decode(packet, MEMORYD_FRAME_MAX, MEMORYD_FDS_MAX, FRAME_FROM_CLIENT, &header), 0);
    assert_int_equal(header.payload_length, MEMORYD_PAYLOAD_MAX);
    assert_int_equal(decode(packet, MEMORYD_FRAME_MAX + 1, MEMORYD_FDS_MAX, FRAME_FROM_CLIENT, &header), FRAME_E_LONG);
    free(packet);
}

static void test_fds_of_the_kernel_count(void **state)
{
    struct frame_header header;

    for (unsigned n = 0; n < 256; n++)
        assert_int_equal(decode(request, sizeof(request), n, FRAME_FROM_CLIENT, &header),
                         n == 2 ? 0 : FRAME_E_FD_COUNT);
}

/* Compatible growth: a later minor version may append to the header. */
static void test_longer_header_is_skipped(void **state)
{
    struct frame_header header;
    uint8_t packet[64 + 3];

    for (unsigned length = 32; length <= 64; length++) {
        memset(packet, 0xee, sizeof(packet));
        memcpy(packet, request, 32);
        memset(packet + 32, 0, 8); /* answered */
        packet[6] = (uint8_t)length;
        memcpy(packet + length, "abc", 3);
        assert_int_equal(decode(packet, length + 3, 2, FRAME_FROM_CLIENT, &header), 0);
        assert_int_equal(header.payload_length, 3);
    }
    /* without any payload */
    packet[8] = 0;
    assert_int_equal(decode(packet, 64, 2, FRAME_FROM_CLIENT, &header), 0);
    assert_int_equal(header.payload_length, 0);
}

static void test_sides_are_not_confused(void **state)
{
    struct frame_header header;

    /* the upper half of the acknowledged sequence is where a reply has its zeros */
    assert_int_equal(decode(request, sizeof(request), 2, FRAME_FROM_BROKER, &header), FRAME_E_RESERVED);
}

static void test_peek_at_another_version(void **state)
{
    uint16_t version = 0x5555, method = 0x5555;
    uint64_t sequence = 0x5555;
    uint8_t packet[24];

    memcpy(packet, request, sizeof(packet));
    packet[4] = 9;
    assert_false(frame_peek(packet, 23, &version, &method, &sequence));
    assert_false(frame_peek(packet, 0, &version, &method, &sequence));
    packet[0] = 'X';
    assert_false(frame_peek(packet, 24, &version, &method, &sequence));
    assert_true(version == 0x5555 && method == 0x5555 && sequence == 0x5555);
    packet[0] = 'M';
    assert_true(frame_peek(packet, 24, &version, &method, &sequence));
    assert_int_equal(version, 9);
    assert_int_equal(method, 13);
    assert_true(sequence == 0x0102030405060708);
}

static void test_every_error_has_a_text(void **state)
{
    for (int a = 0; a <= FRAME_E_RESERVED; a++) {
        assert_string_not_equal(frame_error_text(a), "an unknown error");
        for (int b = 0; b < a; b++)
            assert_string_not_equal(frame_error_text(a), frame_error_text(b));
    }
    assert_string_equal(frame_error_text(FRAME_E_RESERVED + 1), "an unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_both_ways),
        cmocka_unit_test(test_long_request_both_ways),
        cmocka_unit_test(test_answered_lies_between_acknowledged_and_sequence),
        cmocka_unit_test(test_reply_both_ways),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_every_field_can_be_wrong),
        cmocka_unit_test(test_every_size_below_a_header_is_short),
        cmocka_unit_test(test_the_largest_frame),
        cmocka_unit_test(test_fds_of_the_kernel_count),
        cmocka_unit_test(test_longer_header_is_skipped),
        cmocka_unit_test(test_sides_are_not_confused),
        cmocka_unit_test(test_peek_at_another_version),
        cmocka_unit_test(test_every_error_has_a_text),
    };

    return test_run(tests, NULL, NULL);
}
