/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: a refusal leaves nothing behind in the broker: no descriptor and no memory, of whatever kind it is and however
 * often it comes, with descriptors beside it or without. make check tries each kind some hundred times, and
 * make check-long a million times (REFUSALS=1000000).
 */
#include "tests/integration/wire.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/door.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

/* What the broker's malloc() keeps for itself, and what it remembers of tokens and ids. */
#define MEMORY_KIB 4096
/* What it opens once. */
#define DESCRIPTORS 4

static struct broker_process broker;
static struct wire wire;

static unsigned long times(void)
{
    const char *text = getenv("REFUSALS");

    return text ? strtoul(text, NULL, 10) : 300;
}

/* The anonymous memory of the broker. */
static unsigned long memory_kib(void)
{
    char path[64], line[256];
    unsigned long kib = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", broker_child(&broker));
    file = fopen(path, "re");
    assert_non_null(file);
    while (!kib && fgets(line, sizeof(line), file))
        (void)sscanf(line, "RssAnon: %lu kB", &kib); /* NOLINT */
    fclose(file);
    return kib;
}

struct kind {
    uint16_t method;
    const ProtobufCMessage *message;
    bool by_item; /* the items are refused, and not the whole */
};

static void refuse(const struct kind *kind)
{
    static struct wire_packet packet;
    struct wire_packet *reply;

    wire_request(&wire, &packet, kind->method, kind->message);
    reply = wire_call(&wire, &packet);
    if (!kind->by_item && !reply->status)
        fail_msg("method %u was not refused", kind->method);
    assert_int_equal(reply->n_fds, 0);
    wire.acknowledged = wire.sequence;
}

static void leaves_nothing(const struct kind *kind)
{
    /* before the first one: what comes is closed a moment later */
    unsigned had = broker_count_fds(broker_child(&broker)) + DESCRIPTORS;
    unsigned long memory;

    for (unsigned i = 0; i < 100; i++)
        refuse(kind);
    memory = memory_kib();
    for (unsigned long i = 0; i < times(); i++)
        refuse(kind);
    if (!WAIT_UNTIL(broker_count_fds(broker_child(&broker)) <= had))
        fail_msg("method %u: %u descriptors instead of %u", kind->method, broker_count_fds(broker_child(&broker)), had);
    /* sanitizers keep for a while what is freed */
    if (!TEST_ASAN && !TEST_TSAN && memory_kib() > memory + MEMORY_KIB)
        fail_msg("method %u: %lu KiB instead of %lu", kind->method, memory_kib(), memory);
}

static void I7_refused_requests_leave_nothing(void **state)
{
    Memoryd__V1__AllocRequest huge = MEMORYD__V1__ALLOC_REQUEST__INIT, named = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    Memoryd__V1__ExportRequest export = MEMORYD__V1__EXPORT_REQUEST__INIT;
    Memoryd__V1__ImportRequest import = MEMORYD__V1__IMPORT_REQUEST__INIT;
    Memoryd__V1__AdoptRequest adopt = MEMORYD__V1__ADOPT_REQUEST__INIT;
    Memoryd__V1__LookupRequest lookup = MEMORYD__V1__LOOKUP_REQUEST__INIT;
    Memoryd__V1__OpenRequest open_one = MEMORYD__V1__OPEN_REQUEST__INIT;
    Memoryd__V1__PublishRequest publish = MEMORYD__V1__PUBLISH_REQUEST__INIT;
    uint8_t token[MEMORYD_TOKEN_SIZE] = {1};
    uint64_t too_much = UINT64_C(1) << 45, little = 4096, id = 1;
    uint32_t rights = 3;
    const struct kind kinds[] = {
        {METHOD_ALLOC, NULL, false},          {METHOD_ALLOC, &huge.base, false},
        {METHOD_ALLOC, &named.base, false},   {METHOD_RELEASE, NULL, false},
        {METHOD_EXPORT, &export.base, true},  {METHOD_IMPORT, NULL, false},
        {METHOD_IMPORT, &import.base, false}, {METHOD_ADOPT, &adopt.base, false},
        {METHOD_ADOPT, NULL, false},          {METHOD_OPEN, &open_one.base, true},
        {METHOD_LOOKUP, &lookup.base, false}, {METHOD_SHARE, NULL, false},
        {METHOD_REVOKE, NULL, false},         {METHOD_PUBLISH, &publish.base, false},
        {METHOD_DISCARD, NULL, false},        {METHOD_DESTROY, NULL, false},
        {METHOD_MOVE, NULL, false},           {METHOD_NAME_BIND, &name.base, false},
        {METHOD_NAME_UNBIND, NULL, false},    {METHOD_UNRESERVE, NULL, false},
        {METHOD_PLACE, NULL, false},          {999, NULL, false},
    };

    broker_start(&broker, NULL, 0);
    wire_open(&wire, &broker);
    import.n_tickets = 1;
    import.tickets = &id;
    adopt.ticket = id;
    huge.n_sizes = named.n_sizes = 1;
    huge.sizes = &too_much;
    named.sizes = &little;
    name.name = (char *)"a//b";
    name.buffer = publish.buffer = id;
    named.name = &name;
    export.n_buffers = export.n_rights = 1;
    export.buffers = &id;
    export.rights = &rights;
    lookup.name = (char *)"nobody/has/this";
    open_one.tokens = (ProtobufCBinaryData){sizeof(token), token};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        leaves_nothing(&kinds[i]);
    wire_close(&wire);
    broker_stop(&broker);
}

/* What is shown at the door, each time at another socket, and is of no buffer. */
static void refuse_shown(int shown)
{
    static struct wire_packet packet;
    uint8_t bytes[DOOR_ANSWER_MAX];
    struct door_answer answer;
    struct wire_packet *reply;
    ssize_t n;
    int door;

    wire_request(&wire, &packet, METHOD_DOOR, NULL);
    reply = wire_call(&wire, &packet);
    assert_int_equal(reply->n_fds, 1);
    wire.acknowledged = wire.sequence;
    door = reply->fds[0];
    door_request_encode(bytes, DOOR_IMPORT);
    assert_int_equal(fd_send(door, bytes, MEMORYD_DOOR_REQUEST, &shown, 1, 0), MEMORYD_DOOR_REQUEST);
    assert_true(wait_readable(door));
    n = recv(door, bytes, sizeof(bytes), 0);
    assert_true(n > 0 && door_answer_decode(bytes, (size_t)n, &answer));
    assert_int_equal(answer.status, STATUS_FD_FOREIGN);
    close(door);
}

static void I7_what_the_door_refuses_leaves_nothing(void **state)
{
    unsigned had;
    unsigned long memory;
    int fds[2];

    broker_start(&broker, NULL, 0);
    wire_open(&wire, &broker);
    assert_ok(pipe2(fds, O_CLOEXEC));
    had = broker_count_fds(broker_child(&broker)) + DESCRIPTORS;
    for (unsigned i = 0; i < 100; i++)
        refuse_shown(fds[0]);
    memory = memory_kib();
    for (unsigned long i = 0; i < times(); i++)
        refuse_shown(fds[0]);
    assert_true(WAIT_UNTIL(broker_count_fds(broker_child(&broker)) <= had));
    assert_true(memory_kib() <= memory + MEMORY_KIB);
    close(fds[0]);
    close(fds[1]);
    wire_close(&wire);
    broker_stop(&broker);
}

/*
 * A message that breaks the protocol, also with descriptors, which not every kernel sends; no HELLO, with a sound
 * message and another one. It is answered, or ended: were it not waited for, most would be turned away for being too
 * many.
 */
static void refuse_connection(unsigned how, const int *fds)
{
    uint8_t bytes[64] = {0};
    int fd = raw_connect(&broker);

    if (how == 0) {
        (void)fd_send(fd, bytes, sizeof(bytes), fds, 2, 0);
        (void)send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
    } else if (how == 1)
        raw_send_if_open(fd, METHOD_PING);
    else
        (void)raw_send(fd, METHOD_ALLOC, bytes, sizeof(bytes), NULL, 0);
    assert_true(wait_readable(fd));
    close(fd);
}

static void I7_refused_connections_leave_nothing(void **state)
{
    int fds[2];

    broker_start(&broker, NULL, 0);
    assert_ok(pipe2(fds, O_CLOEXEC));
    for (unsigned how = 0; how < 3; how++) {
        unsigned had = broker_count_fds(broker_child(&broker)) + DESCRIPTORS;
        unsigned long memory;

        for (unsigned i = 0; i < 50; i++)
            refuse_connection(how, fds);
        wire_open(&wire, &broker);
        wire_close(&wire);
        memory = memory_kib();
        for (unsigned long i = 0; i < times(); i++)
            refuse_connection(how, fds);
        assert_true(WAIT_UNTIL(broker_count_fds(broker_child(&broker)) <= had));
        assert_true(TEST_ASAN || TEST_TSAN || memory_kib() <= memory + MEMORY_KIB);
    }
    close(fds[0]);
    close(fds[1]);
    broker_stop(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_refused_requests_leave_nothing),
        cmocka_unit_test(I7_what_the_door_refuses_leaves_nothing),
        cmocka_unit_test(I7_refused_connections_leave_nothing),
    };

    return test_run(tests, NULL, NULL);
}
