/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding what a peer says: every message of the schema there and back, payloads that are broken,
 * and payloads that are built to cost.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "proto/envelope.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "tests/unit/proto/fill.h"

static struct arena arena;

static int setup(void **state)
{
    return arena_init(&arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES);
}

static int teardown(void **state)
{
    arena_deinit(&arena);
    return 0;
}

/* ---- payloads by hand -----------------------------------------------------------------------------------------------
 */

struct payload {
    size_t n;
    uint8_t bytes[MEMORYD_PAYLOAD_MAX];
};

static void put(struct payload *payload, const void *bytes, size_t n)
{
    assert_true(n <= sizeof(payload->bytes) - payload->n);
    memcpy(payload->bytes + payload->n, bytes, n);
    payload->n += n;
}

static void put_varint(struct payload *payload, uint64_t v)
{
    do {
        uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));

        put(payload, &byte, 1);
        v >>= 7;
    } while (v);
}

enum { VARINT, EIGHT_BYTES, LENGTH, GROUP, GROUP_END, FOUR_BYTES };

static void put_tag(struct payload *payload, uint32_t field, unsigned wire_type)
{
    put_varint(payload, (uint64_t)field << 3 | wire_type);
}

static void put_number(struct payload *payload, uint32_t field, uint64_t v)
{
    put_tag(payload, field, VARINT);
    put_varint(payload, v);
}

static void put_bytes(struct payload *payload, uint32_t field, const void *bytes, size_t n)
{
    put_tag(payload, field, LENGTH);
    put_varint(payload, n);
    put(payload, bytes, n);
}

/* Decodes an exact copy of the bytes, so that a sanitizer sees a byte read too many. */
static int unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t n, ProtobufCMessage **message)
{
    ProtobufCMessage *untouched = (ProtobufCMessage *)&arena;
    uint8_t *copy = malloc(n ? n : 1);
    int r;

    assert_non_null(copy);
    memcpy(copy, bytes, n);
    *message = untouched;
    r = envelope_unpack(descriptor, copy, n, &arena, message);
    free(copy);
    if (r)
        assert_ptr_equal(*message, untouched);
    return r;
}

static int unpack_payload(const ProtobufCMessageDescriptor *descriptor, const struct payload *payload)
{
    ProtobufCMessage *message;

    return unpack(descriptor, payload->bytes, payload->n, &message);
}

/* ---- every message --------------------------------------------------------------------------------------------------
 */

typedef void for_message(const ProtobufCMessageDescriptor *descriptor);

static void for_every_message(for_message *body)
{
    const struct schema_method *methods;
    const struct schema_event *events;
    size_t n;

    methods = schema_methods(&n);
    for (size_t i = 0; i < n; i++) {
        body(methods[i].request);
        body(methods[i].reply);
    }
    events = schema_events(&n);
    for (size_t i = 0; i < n; i++)
        body(events[i].message);
    body(&memoryd__v1__problem__descriptor);
}

/* Fills, packs, unpacks, packs again; returns the length. */
static size_t there_and_back(const ProtobufCMessageDescriptor *descriptor, const struct filling *filling,
                             uint8_t *bytes)
{
    static uint8_t again[MEMORYD_PAYLOAD_MAX];
    ProtobufCMessage *message = fill(descriptor, filling), *decoded;
    size_t n, m;

    assert_int_equal(envelope_pack(message, bytes, MEMORYD_PAYLOAD_MAX, &n), 0);
    protobuf_c_message_free_unpacked(message, NULL);
    assert_int_equal(unpack(descriptor, bytes, n, &decoded), 0);
    assert_ptr_equal(decoded->descriptor, descriptor);
    assert_int_equal(decoded->n_unknown_fields, 0);
    assert_int_equal(envelope_pack(decoded, again, sizeof(again), &m), 0);
    assert_int_equal(n, m);
    assert_memory_equal(bytes, again, n);
    return n;
}

static void full_and_empty(const ProtobufCMessageDescriptor *descriptor)
{
    static const struct filling fillings[] = {
        {.number = 0},
        {.number = 1, .repeated = 1, .rows = 1, .text = 1, .bytes = 1},
        {.number = UINT64_MAX, .repeated = 64, .rows = 16, .text = 255, .bytes = 2048},
    };
    static uint8_t bytes[MEMORYD_PAYLOAD_MAX];

    for (size_t i = 0; i < sizeof(fillings) / sizeof(fillings[0]); i++)
        (void)there_and_back(descriptor, &fillings[i], bytes);
}

static void test_every_message_there_and_back(void **state)
{
    for_every_message(full_and_empty);
}

static void cut_anywhere(const ProtobufCMessageDescriptor *descriptor)
{
    static const struct filling filling = {.number = 300, .repeated = 3, .rows = 2, .text = 3, .bytes = 3};
    static uint8_t bytes[MEMORYD_PAYLOAD_MAX];
    size_t n = there_and_back(descriptor, &filling, bytes);
    ProtobufCMessage *message;

    /* between two fields a prefix is a message too; what counts is that nothing else happens */
    for (size_t i = 0; i < n; i++) {
        int r = unpack(descriptor, bytes, i, &message);

        if (r && r != ENVELOPE_E_MALFORMED)
            fail_msg("%s cut to %zu bytes: %s", descriptor->name, i, envelope_error_text(r));
    }
}

static void test_cut_anywhere(void **state)
{
    for_every_message(cut_anywhere);
}

static void flip_every_bit(const ProtobufCMessageDescriptor *descriptor)
{
    static const struct filling filling = {.number = 300, .repeated = 2, .rows = 2, .text = 3, .bytes = 3};
    static uint8_t bytes[MEMORYD_PAYLOAD_MAX], again[MEMORYD_PAYLOAD_MAX];
    size_t n = there_and_back(descriptor, &filling, bytes), m;
    ProtobufCMessage *message;

    for (size_t i = 0; i < 8 * n; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        /* what is accepted can be said again */
        if (!unpack(descriptor, bytes, n, &message))
            assert_int_equal(envelope_pack(message, again, sizeof(again), &m), 0);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

static void test_flip_every_bit(void **state)
{
    for_every_message(flip_every_bit);
}

/* ---- broken ---------------------------------------------------------------------------------------------------------
 */

static void test_malformed(void **state)
{
    static const struct {
        const char *what;
        uint8_t bytes[16];
        size_t n;
    } cases[] = {
        {"a tag without an end", {0x88, 0x80, 0x80, 0x80, 0x80}, 5},
        {"a tag of six bytes", {0x88, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00}, 7},
        {"a tag beyond 32 bits", {0x88, 0x80, 0x80, 0x80, 0x10, 0x00}, 6},
        {"field number 0", {0x00, 0x01}, 2},
        {"a group", {0x0b, 0x0c}, 2},
        {"an end of a group", {0x0c}, 1},
        {"wire type 6", {0x0e, 0x00}, 2},
        {"wire type 7", {0x0f, 0x00}, 2},
        {"an unknown group", {0xfb, 0x07, 0xfc, 0x07}, 4},
        {"a number that is missing", {0x08}, 1},
        {"a number without an end", {0x08, 0xff}, 2},
        {"a number of eleven bytes", {0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 12},
        {"a string that is longer than the rest", {0x2a, 0x02, 'a'}, 3},
        {"a string of 2^32-1 bytes", {0x2a, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'}, 7},
        {"a string of 2^35-1 bytes", {0x2a, 0xff, 0xff, 0xff, 0xff, 0x7f, 'a'}, 7},
        {"a length of six bytes", {0x2a, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00, 'a'}, 8},
        {"a length that is missing", {0x2a}, 1},
        {"eight bytes that are seven", {0x79, 1, 2, 3, 4, 5, 6, 7}, 8},
        {"four bytes that are three", {0x7d, 1, 2, 3}, 4},
        {"a number as a string", {0x0a, 0x01, 0x01}, 3},
        {"a number as eight bytes", {0x09, 1, 2, 3, 4, 5, 6, 7, 8}, 9},
        {"a string as a number", {0x28, 0x01}, 2},
        {"bytes as a number", {0x20, 0x01}, 2},
    };
    ProtobufCMessage *message;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int r = unpack(&memoryd__v1__hello_request__descriptor, cases[i].bytes, cases[i].n, &message);

        if (r != ENVELOPE_E_MALFORMED)
            fail_msg("%s: %s", cases[i].what, envelope_error_text(r));
    }
}

static void test_packed_numbers(void **state)
{
    const ProtobufCMessageDescriptor *descriptor = &memoryd__v1__release_request__descriptor;
    const Memoryd__V1__ReleaseRequest *request;
    struct payload payload = {.n = 0};
    ProtobufCMessage *message;

    /* packed and one by one in the same message: both are allowed */
    put_bytes(&payload, 1, "\x01\x02\xac\x02", 4);
    put_number(&payload, 1, 7);
    put_bytes(&payload, 1, "", 0);
    assert_int_equal(unpack(descriptor, payload.bytes, payload.n, &message), 0);
    request = (const Memoryd__V1__ReleaseRequest *)message;
    assert_int_equal(request->n_buffers, 4);
    assert_int_equal(request->buffers[2], 300);
    assert_int_equal(request->buffers[3], 7);

    payload.n = 0;
    put_bytes(&payload, 1, "\x01\x82", 2);
    assert_int_equal(unpack_payload(descriptor, &payload), ENVELOPE_E_MALFORMED);
    payload.n = 0;
    put_bytes(&payload, 1, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
    assert_int_equal(unpack_payload(descriptor, &payload), ENVELOPE_E_MALFORMED);
    payload.n = 0;
    put_tag(&payload, 1, EIGHT_BYTES);
    put(&payload, "12345678", 8);
    assert_int_equal(unpack_payload(descriptor, &payload), ENVELOPE_E_MALFORMED);
}

static void test_strings_are_text(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int expected;
    } cases[] = {
        {"", 0, 0},
        {"plain", 5, 0},
        {"t\xc3\xa4xt", 5, 0},
        {"a\0b", 3, ENVELOPE_E_NOT_TEXT},
        {"\0", 1, ENVELOPE_E_NOT_TEXT},
        {"caf\xe9", 4, ENVELOPE_E_NOT_TEXT},
        {"\xed\xa0\x80", 3, ENVELOPE_E_NOT_TEXT},
    };
    struct payload payload, nested;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        payload.n = nested.n = 0;
        put_bytes(&payload, 5, cases[i].bytes, cases[i].n);
        assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), cases[i].expected);
        /* one message deeper: AllocRequest.name.name */
        put_bytes(&nested, 1, cases[i].bytes, cases[i].n);
        payload.n = 0;
        put_bytes(&payload, 13, nested.bytes, nested.n);
        assert_int_equal(unpack_payload(&memoryd__v1__alloc_request__descriptor, &payload), cases[i].expected);
    }
    /* bytes are not */
    payload.n = 0;
    put_bytes(&payload, 4, "\0\xff\x80", 3);
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), 0);
}

static void test_last_of_several_counts(void **state)
{
    struct payload payload = {.n = 0};
    ProtobufCMessage *message;

    put_number(&payload, 3, 1);
    put_bytes(&payload, 5, "first", 5);
    put_number(&payload, 3, 2);
    put_bytes(&payload, 5, "second", 6);
    assert_int_equal(unpack(&memoryd__v1__hello_request__descriptor, payload.bytes, payload.n, &message), 0);
    assert_int_equal(((Memoryd__V1__HelloRequest *)message)->session, 2);
    assert_string_equal(((Memoryd__V1__HelloRequest *)message)->program, "second");
}

/* ---- a later version ------------------------------------------------------------------------------------------------
 */

static void put_unknown(struct payload *payload, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint32_t field = i % 2 ? 1000 + i : 0x1fffffff;

        switch (i % 4) {
        case 0:
            put_number(payload, field, UINT64_MAX);
            break;
        case 1:
            put_bytes(payload, field, "\0\xff", 2);
            break;
        case 2:
            put_tag(payload, field, FOUR_BYTES);
            put(payload, "1234", 4);
            break;
        case 3:
            put_tag(payload, field, EIGHT_BYTES);
            put(payload, "12345678", 8);
            break;
        }
    }
}

static void test_unknown_fields_are_skipped(void **state)
{
    struct payload payload = {.n = 0}, row = {.n = 0};
    ProtobufCMessage *message;

    put_unknown(&payload, MEMORYD_UNKNOWN_FIELDS_MAX);
    put_number(&payload, 3, 77);
    assert_int_equal(unpack(&memoryd__v1__hello_request__descriptor, payload.bytes, payload.n, &message), 0);
    assert_int_equal(((Memoryd__V1__HelloRequest *)message)->session, 77);
    put_unknown(&payload, 1);
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), ENVELOPE_E_UNKNOWN_FIELDS);

    /* each row of a listing may have as many: a later broker's rows are longer */
    put_unknown(&row, MEMORYD_UNKNOWN_FIELDS_MAX);
    payload.n = 0;
    for (int i = 0; i < MEMORYD_ROWS_MAX; i++)
        put_bytes(&payload, 1, row.bytes, row.n);
    assert_int_equal(unpack(&memoryd__v1__buffers_reply__descriptor, payload.bytes, payload.n, &message), 0);
    assert_int_equal(((Memoryd__V1__BuffersReply *)message)->n_buffers, MEMORYD_ROWS_MAX);
    put_unknown(&row, 1);
    put_bytes(&payload, 1, row.bytes, row.n);
    assert_int_equal(unpack_payload(&memoryd__v1__buffers_reply__descriptor, &payload), ENVELOPE_E_UNKNOWN_FIELDS);
}

static void test_unknown_enumerators_are_kept(void **state)
{
    struct payload payload = {.n = 0};
    ProtobufCMessage *message;

    /* it is validation that refuses them, with a sentence */
    put_number(&payload, 3, 99);
    assert_int_equal(unpack(&memoryd__v1__alloc_request__descriptor, payload.bytes, payload.n, &message), 0);
    assert_int_equal(((Memoryd__V1__AllocRequest *)message)->pages, 99);
}

/* ---- built to cost --------------------------------------------------------------------------------------------------
 */

/* Each fills the packet; without a bound they take megabytes in tens of thousands of allocations.
 */
static void test_bombs(void **state)
{
    static struct payload payload;

    /* empty rows */
    payload.n = 0;
    while (payload.n + 2 <= sizeof(payload.bytes))
        put_bytes(&payload, 1, "", 0);
    assert_int_equal(unpack_payload(&memoryd__v1__nodes_reply__descriptor, &payload), ENVELOPE_E_TOO_COSTLY);
    assert_int_equal(unpack_payload(&memoryd__v1__buffers_reply__descriptor, &payload), ENVELOPE_E_TOO_COSTLY);

    /* the same field again and again: protobuf-c takes a note of each */
    payload.n = 0;
    while (payload.n + 2 <= sizeof(payload.bytes))
        put_number(&payload, 1, 0);
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), ENVELOPE_E_TOO_COSTLY);

    /* the same string again and again: each is copied, the last counts */
    payload.n = 0;
    while (payload.n + 3 <= sizeof(payload.bytes))
        put_bytes(&payload, 5, "x", 1);
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), ENVELOPE_E_TOO_COSTLY);

    /* the same message again and again: each is merged with the last */
    payload.n = 0;
    while (payload.n + 4 <= sizeof(payload.bytes))
        put_bytes(&payload, 13, "\x10\x01", 2);
    assert_int_equal(unpack_payload(&memoryd__v1__alloc_request__descriptor, &payload), ENVELOPE_E_TOO_COSTLY);

    /* numbers that grow from one byte to eight */
    payload.n = 0;
    put_tag(&payload, 8, LENGTH);
    put_varint(&payload, 60000);
    memset(payload.bytes + payload.n, 1, 60000);
    payload.n += 60000;
    assert_int_equal(unpack_payload(&memoryd__v1__alloc_request__descriptor, &payload), ENVELOPE_E_TOO_COSTLY);

    /* unknown fields, in one message and in many */
    payload.n = 0;
    while (payload.n + 2 <= sizeof(payload.bytes))
        put_number(&payload, 15, 0);
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), ENVELOPE_E_UNKNOWN_FIELDS);

    /* and after all that the arena is as good as new */
    payload.n = 0;
    put_number(&payload, 3, 1);
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), 0);
}

/* One field as long as a packet is no bomb. */
static void test_long_but_sound(void **state)
{
    static struct payload payload;
    static uint8_t bytes[60000];

    memset(bytes, 'x', sizeof(bytes));
    payload.n = 0;
    put_bytes(&payload, 5, bytes, sizeof(bytes));
    assert_int_equal(unpack_payload(&memoryd__v1__hello_request__descriptor, &payload), 0);
    payload.n = 0;
    put_bytes(&payload, 1, bytes, sizeof(bytes));
    assert_int_equal(unpack_payload(&memoryd__v1__open_request__descriptor, &payload), 0);
}

static size_t most_bytes;
static unsigned most_pieces;
static const char *most_name;

/* The largest message of this shape that a packet may hold: as many rows as fit, up to what
 * listings send. */
static void densest(const ProtobufCMessageDescriptor *descriptor)
{
    static const size_t repeats[] = {0, 1, 16, 64}, texts[] = {0, 1, 63, 255};
    static const uint64_t numbers[] = {0, 1, UINT32_MAX, UINT64_MAX};
    static uint8_t bytes[MEMORYD_PAYLOAD_MAX];

    for (size_t i = 0; i < 64; i++) {
        struct filling filling = {.repeated = repeats[i / 16],
                                  .text = texts[i / 4 % 4],
                                  .number = numbers[i % 4],
                                  .bytes = 2048,
                                  .rows = MEMORYD_ROWS_MAX};
        ProtobufCMessage *message = fill(descriptor, &filling), *decoded;
        size_t n;

        while (envelope_pack(message, bytes, sizeof(bytes), &n)) {
            protobuf_c_message_free_unpacked(message, NULL);
            filling.rows--;
            message = fill(descriptor, &filling);
        }
        protobuf_c_message_free_unpacked(message, NULL);
        if (unpack(descriptor, bytes, n, &decoded))
            fail_msg("%zu rows of %s (%zu repeated, text %zu) do not fit into the arena", filling.rows,
                     descriptor->name, filling.repeated, filling.text);
        if (arena.used > most_bytes) {
            most_bytes = arena.used;
            most_name = descriptor->name;
        }
        if (arena.pieces > most_pieces)
            most_pieces = arena.pieces;
    }
}

static void test_the_densest_messages_fit(void **state)
{
    for_every_message(densest);
    print_message("the densest is %s; of %d bytes %zu, of %d pieces %u\n", most_name, MEMORYD_ARENA_BYTES, most_bytes,
                  MEMORYD_ARENA_PIECES, most_pieces);
}

/* ---- encoding -------------------------------------------------------------------------------------------------------
 */

static void test_what_does_not_fit_is_not_written(void **state)
{
    static const struct filling filling = {.number = 1, .text = 10, .bytes = 16};
    ProtobufCMessage *message = fill(&memoryd__v1__hello_request__descriptor, &filling);
    uint8_t bytes[100], untouched[100];
    size_t n = 0x5555, needed;

    memset(untouched, 0xee, sizeof(untouched));
    memcpy(bytes, untouched, sizeof(bytes));
    needed = protobuf_c_message_get_packed_size(message);
    assert_int_equal(envelope_pack(message, bytes, needed - 1, &n), ENVELOPE_E_TOO_LONG);
    assert_int_equal(envelope_pack(message, bytes, 0, &n), ENVELOPE_E_TOO_LONG);
    assert_int_equal(n, 0x5555);
    assert_memory_equal(bytes, untouched, sizeof(bytes));
    assert_int_equal(envelope_pack(message, bytes, needed, &n), 0);
    assert_int_equal(n, needed);
    assert_memory_equal(bytes + n, untouched + n, sizeof(bytes) - n);
    protobuf_c_message_free_unpacked(message, NULL);
}

static void test_every_error_has_a_text(void **state)
{
    for (int a = 0; a <= ENVELOPE_E_TOO_LONG; a++) {
        assert_string_not_equal(envelope_error_text(a), "an unknown error");
        for (int b = 0; b < a; b++)
            assert_string_not_equal(envelope_error_text(a), envelope_error_text(b));
    }
    assert_string_equal(envelope_error_text(ENVELOPE_E_TOO_LONG + 1), "an unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_message_there_and_back),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_flip_every_bit),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_packed_numbers),
        cmocka_unit_test(test_strings_are_text),
        cmocka_unit_test(test_last_of_several_counts),
        cmocka_unit_test(test_unknown_fields_are_skipped),
        cmocka_unit_test(test_unknown_enumerators_are_kept),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_long_but_sound),
        cmocka_unit_test(test_the_densest_messages_fit),
        cmocka_unit_test(test_what_does_not_fit_is_not_written),
        cmocka_unit_test(test_every_error_has_a_text),
    };

    return test_run(tests, setup, teardown);
}
