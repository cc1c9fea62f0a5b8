/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I8: nothing that arrives on a socket can stop the broker. Each test sends memoryd something that it should not be
 * sent, sees what becomes of the sender, and that another client goes on being served by the same process.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "tests/integration/broker.h"
#include "tests/support/fd.h"

static struct broker_process broker;
static int good = -1;
static int bad = -1;

static int start(void **state)
{
    broker_start(&broker, NULL, 0);
    good = raw_client(&broker);
    return 0;
}

static int stop(void **state)
{
    close(good);
    broker_stop(&broker);
    return 0;
}

static int fresh(void **state)
{
    bad = raw_client(&broker);
    return 0;
}

static int still_served(void **state)
{
    close(bad);
    assert_true(raw_is_served(good));
    assert_true(broker_lives(&broker));
    return 0;
}

/* a sound PING, to be made unsound; its sequence is 77 */
static void ping(uint8_t packet[static MEMORYD_HEADER_SIZE])
{
    frame_encode(packet, FRAME_FROM_CLIENT, &(struct frame_header){.method = METHOD_PING, .sequence = 77});
}

static void send_packet(const void *packet, size_t size)
{
    assert_int_equal(send(bad, packet, size, MSG_NOSIGNAL), size);
}

/* the connection hears `status` and a sentence, then it ends */
static void heard_and_ended(uint32_t status)
{
    static struct raw_reply reply;

    raw_receive(bad, &reply);
    assert_true(reply.size > 0);
    assert_int_equal(reply.sequence, 77);
    assert_int_equal(reply.status, status);
    assert_true(reply.payload[0] == 0x0a && reply.payload[1] > 10); /* field 1, a sentence */
    assert_true(raw_has_ended(bad));
}

static void I8_truncated_packets(void **state)
{
    uint8_t packet[MEMORYD_HEADER_SIZE];

    ping(packet);
    for (size_t size = 1; size < sizeof(packet); size += 5) {
        int fd = raw_client(&broker);

        assert_int_equal(send(fd, packet, size, MSG_NOSIGNAL), size);
        assert_true(raw_has_ended(fd));
        close(fd);
    }
    /* the header promises a payload that is not there */
    packet[8] = 100;
    send_packet(packet, sizeof(packet));
    heard_and_ended(STATUS_PROTOCOL);
}

static void I8_oversized_packets(void **state)
{
    static uint8_t packet[MEMORYD_FRAME_MAX + 1];

    ping(packet);
    send_packet(packet, sizeof(packet));
    assert_true(raw_has_ended(bad));
}

static void I8_the_largest_packet_is_no_problem(void **state)
{
    static uint8_t payload[MEMORYD_PAYLOAD_MAX];

    /* one unknown field, 1000, of bytes, as long as fits */
    const uint8_t field[] = {0xc2, 0x3e, 0xda, 0xff, 0x03};

    memcpy(payload, field, sizeof(field));
    assert_int_equal(raw_call(bad, METHOD_PING, payload, sizeof(field) + 0xffda), STATUS_OK);
}

static void I8_an_empty_packet(void **state)
{
    send_packet("", 0);
    assert_true(raw_has_ended(bad));
}

static void I8_another_protocol(void **state)
{
    char program[16] = "";
    char who[96];

    send_packet("GET / HTTP/1.1\r\nHost: example\r\n\r\n", 34);
    assert_true(raw_has_ended(bad));
    /* and the operator is told who it was */
    assert_ok(prctl(PR_GET_NAME, program));
    (void)snprintf(who, sizeof(who), "client %d \"%s\" of uid %u: disconnected", (int)getpid(), program, geteuid());
    assert_true(broker_said(&broker, who));
}

static void I8_another_version_is_told_so(void **state)
{
    uint8_t packet[MEMORYD_HEADER_SIZE];

    ping(packet);
    packet[4] = 2;
    send_packet(packet, sizeof(packet));
    heard_and_ended(STATUS_VERSION);
}

static void I8_wrong_header_fields(void **state)
{
    static const struct {
        unsigned offset;
        uint8_t value;
    } wrong[] = {{6, 31}, {6, 65}, {8, 1}, {11, 0xff}, {12, 1}, {13, 0xff}};
    uint8_t packet[MEMORYD_HEADER_SIZE];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        close(bad);
        bad = raw_client(&broker);
        ping(packet);
        packet[wrong[i].offset] = wrong[i].value;
        send_packet(packet, sizeof(packet));
        heard_and_ended(STATUS_PROTOCOL);
    }
    /* neither sequence 0 nor method 0 can be answered */
    for (unsigned offset = 14; offset <= 16; offset += 2) {
        close(bad);
        bad = raw_client(&broker);
        ping(packet);
        memset(packet + offset, 0, offset == 14 ? 2 : 8);
        send_packet(packet, sizeof(packet));
        assert_true(raw_has_ended(bad));
    }
}

static void I8_no_byte_of_a_header_is_trusted(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    uint8_t packet[MEMORYD_HEADER_SIZE];

    for (unsigned i = 0; i < sizeof(packet) * sizeof(values); i++) {
        int fd = raw_connect(&broker);

        ping(packet);
        packet[i / sizeof(values)] = values[i % sizeof(values)];
        assert_int_equal(send(fd, packet, sizeof(packet), MSG_NOSIGNAL), sizeof(packet));
        close(fd);
    }
    assert_true(raw_is_served(bad));
}

/* The kernel lets none through, whatever the header says of them. */
static void I8_descriptors_that_are_not_there(void **state)
{
    static const uint16_t counts[] = {1, 2, 64};
    uint8_t packet[MEMORYD_HEADER_SIZE];

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        const struct frame_header header = {.method = METHOD_IMPORT, .sequence = 77, .fd_count = counts[i]};

        close(bad);
        bad = raw_client(&broker);
        frame_encode(packet, FRAME_FROM_CLIENT, &header);
        assert_int_equal(send(bad, packet, sizeof(packet), MSG_NOSIGNAL), sizeof(packet));
        heard_and_ended(STATUS_PROTOCOL);
    }
    /* a request that is of a client which knows of no door: that is only refused */
    close(bad);
    bad = raw_client(&broker);
    assert_int_equal(raw_call(bad, METHOD_IMPORT, NULL, 0), STATUS_INVALID_ARGUMENT);
    assert_true(raw_is_served(bad));
}

static void I8_payloads_that_are_no_message(void **state)
{
    static uint8_t nested[60000];
    static const struct {
        const char *bytes;
        size_t size;
    } payloads[] = {{"\xff", 1}, {"\x42\xff\xff\xff\xff\x0f", 6}, {"\x0a\x05x", 3}, {"\x47", 1}};

    for (size_t i = 0; i < sizeof(payloads) / sizeof(*payloads); i++) {
        static struct raw_reply reply;

        close(bad);
        bad = raw_client(&broker);
        (void)raw_send(bad, METHOD_ALLOC, payloads[i].bytes, payloads[i].size, NULL, 0);
        raw_receive(bad, &reply);
        assert_true(reply.size > 0);
        assert_int_equal(reply.status, STATUS_PROTOCOL);
        assert_true(raw_has_ended(bad));
    }
    /* small input that wants much memory: 30 000 nodes and as many weights */
    memset(nested, 0x10, sizeof(nested));
    for (size_t i = 1; i < sizeof(nested); i += 2)
        nested[i] = 0;
    close(bad);
    bad = raw_client(&broker);
    (void)raw_send(bad, METHOD_ALLOC, nested, sizeof(nested), NULL, 0);
    {
        static struct raw_reply reply;

        raw_receive(bad, &reply);
        assert_true(reply.size > 0);
        assert_true(reply.status != STATUS_OK);
    }
}

static void I8_values_out_of_range_are_refused_with_a_sentence(void **state)
{
    static const struct {
        uint16_t method;
        const char *bytes;
        size_t size;
        uint32_t status;
    } wrong[] = {
        {METHOD_ALLOC, "", 0, STATUS_INVALID_ARGUMENT},                     /* no size at all */
        {METHOD_ALLOC, "\x42\x01\x01\x18\x63", 5, STATUS_INVALID_ARGUMENT}, /* pages = 99 */
        {METHOD_ALLOC, "\x42\x01\x01\x28\x63", 5, STATUS_INVALID_ARGUMENT}, /* placement = 99 */
        {METHOD_ALLOC, "\x42\x01\x01\x58\x7f", 5, STATUS_INVALID_ARGUMENT}, /* flags = 127 */
        {METHOD_ALLOC, "\x42\x01\x01\x48\x03", 5, STATUS_INVALID_ARGUMENT}, /* alignment = 3 */
        {METHOD_ALLOC, "\x42\x01\x01\x12\x01\x7f", 6, STATUS_NO_SUCH_NODE}, /* node = 127 */
        {METHOD_ALLOC, "\x42\x01\x01\x12\x02\x00\x00", 7, STATUS_INVALID_ARGUMENT},
        {METHOD_ALLOC, "\x42\x01\x00", 3, STATUS_SIZE_ZERO},
        {METHOD_SUBSCRIBE, "\x08\x80\x40", 3, STATUS_INVALID_ARGUMENT},
        {METHOD_SUBSCRIBE_TO, "\x08\x20", 2, STATUS_INVALID_ARGUMENT},
        {METHOD_SUBSCRIBE_TO, "\x08\x20\x10\x01\x1a\x01x", 7, STATUS_INVALID_ARGUMENT},
        {METHOD_SUBSCRIBE_TO, "\x08\x01\x10\x01", 4, STATUS_INVALID_ARGUMENT},
        {METHOD_SUBSCRIBE_TO, "\x08\x04\x1a\x02//", 6, STATUS_BAD_NAME},
        {METHOD_OPEN, "\x0a\x03xyz", 5, STATUS_TOKEN_MALFORMED},
        {METHOD_LOOKUP,
         "\x0a\x04"
         "a//b",
         6, STATUS_BAD_NAME},
        {METHOD_LOOKUP, "\x0a\x02..", 4, STATUS_BAD_NAME},
        {METHOD_LOOKUP, "\x0a\x01\n", 3, STATUS_BAD_NAME},
        {METHOD_LOOKUP, "\x0a\x02\xc3\x28", 4, STATUS_INVALID_ARGUMENT}, /* no UTF-8 */
        {METHOD_LOOKUP, "", 0, STATUS_INVALID_ARGUMENT},
        {METHOD_SHARE, "\x0a\x01\x01\x10\x80\x01", 6, STATUS_INVALID_ARGUMENT},
        {METHOD_REVOKE, "", 0, STATUS_INVALID_ARGUMENT},
        {METHOD_RESERVE, "\x08\x80\x20\x10\x03", 5, STATUS_INVALID_ARGUMENT},
        {METHOD_DISCARD, "\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x18\x01", 15, STATUS_SIZE_OVERFLOW},
        {500, "", 0, STATUS_NO_SUCH_METHOD},
        {METHOD_EVENT_SHUTDOWN, "", 0, STATUS_NO_SUCH_METHOD},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        uint32_t status = raw_call(bad, wrong[i].method, wrong[i].bytes, wrong[i].size);

        if (status != wrong[i].status)
            fail_msg("number %zu: %s instead of %s", i, status_name(status), status_name(wrong[i].status));
    }
    assert_true(raw_is_served(bad));
}

static void I8_nothing_works_before_hello(void **state)
{
    close(bad);
    bad = raw_connect(&broker);
    assert_int_equal(raw_call(bad, METHOD_PING, NULL, 0), STATUS_NO_SESSION);
    assert_int_equal(raw_call(bad, METHOD_STATUS, NULL, 0), STATUS_NO_SESSION);
    /* versions 5 to 9 */
    assert_int_equal(raw_call(bad, METHOD_HELLO, "\x08\x05\x10\x09", 4), STATUS_VERSION);
    /* a session without its secret */
    assert_int_equal(raw_call(bad, METHOD_HELLO, "\x18\x01", 2), STATUS_INVALID_ARGUMENT);
    assert_int_equal(raw_call(bad, METHOD_HELLO, NULL, 0), STATUS_OK);
    /* once is enough */
    (void)raw_send(bad, METHOD_HELLO, NULL, 0, NULL, 0);
    assert_true(raw_has_ended(bad));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, still_served)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(I8_truncated_packets),
        TEST(I8_oversized_packets),
        TEST(I8_the_largest_packet_is_no_problem),
        TEST(I8_an_empty_packet),
        TEST(I8_another_protocol),
        TEST(I8_another_version_is_told_so),
        TEST(I8_wrong_header_fields),
        TEST(I8_no_byte_of_a_header_is_trusted),
        TEST(I8_descriptors_that_are_not_there),
        TEST(I8_payloads_that_are_no_message),
        TEST(I8_values_out_of_range_are_refused_with_a_sentence),
        TEST(I8_nothing_works_before_hello),
    };

    return test_run(tests, start, stop);
}
