/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol's manual is true: PROTOCOL.md lists just the methods, events, statuses and limits
 * that there are, its example is what the code sends and understands, and memoryd.proto says
 * something about every message.
 *
 * A row that is missing is printed as it should be, so that it can be pasted.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/status.h"

static char *manual;
static char *schema;

static char *read_whole(const char *name)
{
    const char *srcdir = getenv("srcdir");
    char path[4096];
    _cleanup_fclose_ FILE *file = NULL;
    char *text = calloc(1, 1 << 20);
    size_t n;

    snprintf(path, sizeof(path), "%s/proto/%s", srcdir ? srcdir : ".", name);
    file = fopen(path, "re");
    if (!file || !text)
        fail_msg("%s: %s", path, strerror(errno));
    n = fread(text, 1, (1 << 20) - 1, file);
    assert_true(n > 0 && n < (1 << 20) - 1);
    return text;
}

static int setup(void **state)
{
    manual = read_whole("PROTOCOL.md");
    schema = read_whole("memoryd.proto");
    return 0;
}

static int teardown(void **state)
{
    free(manual);
    free(schema);
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------------------------------
 */

/* Counts the rows of a section, which end at the first line that is none. */
static unsigned rows_below(const char *head)
{
    const char *line = strstr(manual, head);
    unsigned n = 0;

    if (!line)
        fail_msg("PROTOCOL.md has no table that begins %s", head);
    for (line = strchr(line, '\n') + 1; *line == '|'; line = strchr(line, '\n') + 1)
        n++;
    return n - 1; /* the line of dashes */
}

static unsigned missing;

__attribute__((format(printf, 1, 2))) static void need_row(const char *format, ...)
{
    char row[1024];
    va_list args;
    int n;

    row[0] = '\n';
    va_start(args, format);
    n = 1 + vsnprintf(row + 1, sizeof(row) - 2, format, args);
    va_end(args);
    assert_in_range(n, 2, sizeof(row) - 2);
    row[n] = '\n';
    row[n + 1] = '\0';
    if (!strstr(manual, row)) {
        print_error("missing: %s", row + 1);
        missing++;
    }
}

static const char *message_name(const ProtobufCMessageDescriptor *message)
{
    return message->short_name;
}

static const char *upper(const char *name)
{
    static char text[64];
    size_t i;

    for (i = 0; name[i] && i < sizeof(text) - 1; i++)
        text[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    text[i] = '\0';
    return text;
}

static void test_methods_and_events(void **state)
{
    const struct schema_method *methods;
    const struct schema_event *events;
    size_t n_methods, n_events;

    missing = 0;
    methods = schema_methods(&n_methods);
    for (size_t i = 0; i < n_methods; i++)
        need_row("| %u | %s | `%s` | `%s` | %s | %u | %u | %s | %s |", methods[i].id, upper(methods[i].name),
                 message_name(methods[i].request), message_name(methods[i].reply),
                 methods[i].session == SESSION_NEEDED ? "needed" : "opens it", methods[i].fds_in, methods[i].fds_out,
                 methods[i].cost == METHOD_SLOW ? "slow" : "cheap",
                 methods[i].repeat == REPEAT_HARMLESS ? "harmless" : "recorded");
    events = schema_events(&n_events);
    for (size_t i = 0; i < n_events; i++)
        need_row("| 0x%x | %s | `%s` |", events[i].id, upper(events[i].name), message_name(events[i].message));
    assert_int_equal(missing, 0);
    assert_int_equal(rows_below("| number | method |"), n_methods);
    assert_int_equal(rows_below("| number | event |"), n_events);
}

static void test_statuses(void **state)
{
    unsigned n = 0;

    missing = 0;
#define X(name, number, err, text)                                                            \
    need_row("| %u | %s | %s | %s |", (unsigned)(number), #name, (err) ? #err : "–", (text)); \
    n++;
    MEMORYD_STATUSES(X)
#undef X
    assert_int_equal(missing, 0);
    assert_int_equal(rows_below("| number | status |"), n);
}

static void test_limits(void **state)
{
    missing = 0;
    need_row("| packet | %d | bytes, header and message |", MEMORYD_FRAME_MAX);
    need_row("| header | %d to %d | bytes |", MEMORYD_HEADER_SIZE, MEMORYD_HEADER_MAX);
    need_row("| descriptors | %d | of a packet |", MEMORYD_FDS_MAX);
    need_row("| batch | 1 to %d | items of a request |", MEMORYD_BATCH_MAX);
    need_row("| rows | %d | of a listing's reply |", MEMORYD_ROWS_MAX);
    need_row("| selected | %d | rows of SELECT_BUFFERS' reply |", MEMORYD_SELECT_MAX);
    need_row("| nesting | %d | messages inside a message |", MEMORYD_NESTING_MAX);
    need_row("| unknown fields | %d | of a message |", MEMORYD_UNKNOWN_FIELDS_MAX);
    need_row("| decoded | %d in %d pieces | bytes of memory for one message |", MEMORYD_ARENA_BYTES,
             MEMORYD_ARENA_PIECES);
    need_row("| nodes | %d | numbers 0 to %d |", MEMORYD_NODES_MAX, MEMORYD_NODES_MAX - 1);
    need_row("| name | 1 to %d | bytes of printable UTF-8, without `uid:N/` |", MEMORYD_NAME_MAX);
    need_row("| names | %d | of one buffer, whoever bound them |", MEMORYD_BUFFER_NAMES_MAX);
    need_row("| pool | %d | bytes of a pool's name |", MEMORYD_POOL_NAME_MAX);
    need_row("| program | %d | bytes of what a client calls itself |", MEMORYD_PROGRAM_MAX);
    need_row("| sentence | %d | bytes of `Problem.sentence` |", MEMORYD_SENTENCE_MAX);
    need_row("| secret | %d | bytes, of a session |", MEMORYD_SECRET_SIZE);
    need_row("| token | %d | bytes, %d digits as text |", MEMORYD_TOKEN_SIZE, MEMORYD_TOKEN_TEXT);
    need_row("| unacknowledged | %d | recorded requests of a session, under way or with their replies kept |",
             MEMORYD_UNACKNOWLEDGED_MAX);
    assert_int_equal(missing, 0);
    assert_int_equal(rows_below("| limit | value |"), 18);
}

/* ---- memoryd.proto --------------------------------------------------------------------------------------------------
 */

/* Is the line before the message's first one, or the one after it, a comment? */
static void need_comment(const ProtobufCMessageDescriptor *message)
{
    char head[128];
    const char *at, *line;

    snprintf(head, sizeof(head), "\nmessage %s {", message_name(message));
    at = strstr(schema, head);
    if (!at)
        fail_msg("memoryd.proto has no %s", message_name(message));
    for (line = at; line > schema && line[-1] != '\n'; line--) {
    }
    if (strncmp(line, "//", 2)) {
        print_error("memoryd.proto says nothing about %s\n", message_name(message));
        missing++;
    }
}

static void test_every_message_is_documented(void **state)
{
    const struct schema_method *methods;
    const struct schema_event *events;
    size_t n;

    missing = 0;
    methods = schema_methods(&n);
    for (size_t i = 0; i < n; i++) {
        need_comment(methods[i].request);
        need_comment(methods[i].reply);
    }
    events = schema_events(&n);
    for (size_t i = 0; i < n; i++)
        need_comment(events[i].message);
    need_comment(&memoryd__v1__problem__descriptor);
    assert_int_equal(missing, 0);
}

/* ---- the example ----------------------------------------------------------------------------------------------------
 */

/* The next block of hexadecimal digits in the manual; a line's digits end at two blanks or with the
 * line. */
static size_t next_block(const char **text, uint8_t *bytes, size_t room)
{
    const char *line = strstr(*text, "\n```\n");
    size_t n = 0;

    assert_non_null(line);
    for (line += 5; strncmp(line, "```", 3); line = strchr(line, '\n') + 1) {
        const char *p = line;
        unsigned byte;

        while (sscanf(p, "%2x", &byte) == 1 && p[0] != ' ' && p[1] != ' ') {
            assert_true(n < room);
            bytes[n++] = (uint8_t)byte;
            if (p[2] != ' ' || p[3] == ' ')
                break;
            p += 3;
        }
    }
    *text = line;
    return n;
}

/* The packet that stands next in the manual is this one, and is understood. */
static void need_packet(const char **text, enum frame_side side, struct frame_header header,
                        const ProtobufCMessage *message)
{
    uint8_t told[512], bytes[512];
    struct frame_header decoded;
    const uint8_t *payload;
    size_t n_told = next_block(text, told, sizeof(told)), n;

    assert_int_equal(envelope_pack(message, bytes + MEMORYD_HEADER_SIZE, sizeof(bytes) - MEMORYD_HEADER_SIZE, &n), 0);
    header.payload_length = (uint32_t)n;
    frame_encode(bytes, side, &header);
    n += MEMORYD_HEADER_SIZE;
    assert_int_equal(n_told, n);
    assert_memory_equal(told, bytes, n);
    assert_int_equal(frame_decode(told, n_told, header.fd_count, side, &decoded, &payload), 0);
}

static void test_the_example_is_true(void **state)
{
    Memoryd__V1__HelloRequest hello = MEMORYD__V1__HELLO_REQUEST__INIT;
    Memoryd__V1__HelloReply hello_reply = MEMORYD__V1__HELLO_REPLY__INIT;
    Memoryd__V1__AllocRequest alloc = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    Memoryd__V1__Buffers buffers = MEMORYD__V1__BUFFERS__INIT;
    Memoryd__V1__Problem problem = MEMORYD__V1__PROBLEM__INIT;
    Memoryd__V1__NameEvent event = MEMORYD__V1__NAME_EVENT__INIT;
    const char *text = strstr(manual, "## 15. An example");
    uint64_t size = 8 << 20, id = 7, granule = 4096, address = 0x400000200000;
    uint32_t ok = STATUS_OK, flags = 0, rights = 15;
    uint8_t secret[MEMORYD_SECRET_SIZE];

    assert_non_null(text);

    hello.version_max = MEMORYD_MINOR_MAX;
    hello.program = (char[]){"demo"};
    need_packet(&text, FRAME_FROM_CLIENT, (struct frame_header){.method = METHOD_HELLO, .sequence = 1}, &hello.base);

    for (unsigned i = 0; i < sizeof(secret); i++)
        secret[i] = (uint8_t)(0xa0 + i);
    hello_reply.version = MEMORYD_MINOR_MAX;
    hello_reply.session = 3;
    hello_reply.secret = (ProtobufCBinaryData){.data = secret, .len = sizeof(secret)};
    hello_reply.broker = 0x12345678;
    hello_reply.arena_base = 0x400000000000;
    hello_reply.arena_size = 0x100000000000;
    hello_reply.base_page = 4096;
    hello_reply.broker_uid = 998;
    hello_reply.nodes = 1;
    need_packet(&text, FRAME_FROM_BROKER, (struct frame_header){.method = METHOD_HELLO, .sequence = 1},
                &hello_reply.base);

    name.name = (char[]){"a/b"};
    alloc.n_sizes = 1;
    alloc.sizes = &size;
    alloc.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    alloc.name = &name;
    need_packet(&text, FRAME_FROM_CLIENT,
                (struct frame_header){.method = METHOD_ALLOC, .sequence = 2, .acknowledged = 1}, &alloc.base);

    buffers.n_statuses = buffers.n_ids = buffers.n_rights = buffers.n_sizes = 1;
    buffers.n_bytes = buffers.n_granules = buffers.n_addresses = buffers.n_flags = 1;
    buffers.statuses = &ok;
    buffers.ids = &id;
    buffers.rights = &rights;
    buffers.sizes = buffers.bytes = &size;
    buffers.granules = &granule;
    buffers.addresses = &address;
    buffers.flags = &flags;
    need_packet(&text, FRAME_FROM_BROKER, (struct frame_header){.method = METHOD_ALLOC, .sequence = 2, .fd_count = 1},
                &buffers.base);

    problem.sentence = (char[]){"the name a/b is bound already"};
    need_packet(&text, FRAME_FROM_BROKER,
                (struct frame_header){.method = METHOD_ALLOC, .sequence = 2, .status = STATUS_NAME_EXISTS},
                &problem.base);

    event.name = name.name;
    event.bound = true;
    event.buffer = 7;
    need_packet(&text, FRAME_FROM_BROKER, (struct frame_header){.method = METHOD_EVENT_NAME}, &event.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods_and_events),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_message_is_documented),
        cmocka_unit_test(test_the_example_is_true),
    };

    return test_run(tests, setup, teardown);
}
