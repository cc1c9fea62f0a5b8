/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: a refusal leaves nothing behind in the broker: no descriptor and no memory, of whatever kind it is and however
 * often it comes, with descriptors beside it or without. make check tries each kind some hundred times, and
 * make check-long a million times (REFUSALS=1000000).
 */
#include "tests/integration/wire.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
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

static unsigned descriptors(void)
{
    char path[64];
    unsigned n = 0;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fd", broker_child(&broker));
    folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

struct kind {
    uint16_t method;
    const ProtobufCMessage *message;
    unsigned n_fds;
    bool by_item; /* the items are refused, and not the whole */
};

static void refuse(const struct kind *kind, const int *fds)
{
    static struct wire_packet packet;
    struct wire_packet *reply;

    wire_request(&wire, &packet, kind->method, kind->message);
    packet.n_fds = kind->n_fds;
    memcpy(packet.fds, fds, kind->n_fds * sizeof(*fds));
    reply = wire_call(&wire, &packet);
    if (!kind->by_item && !reply->status)
        fail_msg("method %u was not refused", kind->method);
    assert_int_equal(reply->n_fds, 0);
    wire.acknowledged = wire.sequence;
}

static void leaves_nothing(const struct kind *kind, const int *fds)
{
    /* before the first one: what comes is closed a moment later */
    unsigned had = descriptors() + DESCRIPTORS;
    unsigned long memory;

    for (unsigned i = 0; i < 100; i++)
        refuse(kind, fds);
    memory = memory_kib();
    for (unsigned long i = 0; i < times(); i++)
        refuse(kind, fds);
    if (!WAIT_UNTIL(descriptors() <= had))
        fail_msg("method %u: %u descriptors instead of %u", kind->method, descriptors(), had);
    /* sanitizers keep for a while what is freed */
    if (!TEST_ASAN && !TEST_TSAN && memory_kib() > memory + MEMORY_KIB)
        fail_msg("method %u: %lu KiB instead of %lu", kind->method, memory_kib(), memory);
}

static void I7_refused_requests_leave_nothing(void **state)
{
    Memoryd__V1__AllocRequest huge = MEMORYD__V1__ALLOC_REQUEST__INIT, named = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    Memoryd__V1__ExportRequest export = MEMORYD__V1__EXPORT_REQUEST__INIT;
    Memoryd__V1__LookupRequest lookup = MEMORYD__V1__LOOKUP_REQUEST__INIT;
    Memoryd__V1__OpenRequest open_one = MEMORYD__V1__OPEN_REQUEST__INIT;
    Memoryd__V1__PublishRequest publish = MEMORYD__V1__PUBLISH_REQUEST__INIT;
    uint8_t token[MEMORYD_TOKEN_SIZE] = {1};
    uint64_t too_much = UINT64_C(1) << 45, little = 4096, id = 1;
    uint32_t rights = 3;
    const struct kind kinds[] = {
        {METHOD_ALLOC, NULL, 0, false},
        {METHOD_ALLOC, &huge.base, 0, false},
        {METHOD_ALLOC, &named.base, 0, false},
        {METHOD_RELEASE, NULL, 0, false},
        {METHOD_EXPORT, &export.base, 0, true},
        {METHOD_IMPORT, NULL, 2, true},
        {METHOD_ADOPT, NULL, 1, false},
        {METHOD_ADOPT, NULL, 0, false},
        {METHOD_OPEN, &open_one.base, 0, true},
        {METHOD_LOOKUP, &lookup.base, 0, false},
        {METHOD_SHARE, NULL, 0, false},
        {METHOD_REVOKE, NULL, 0, false},
        {METHOD_PUBLISH, &publish.base, 0, false},
        {METHOD_DISCARD, NULL, 0, false},
        {METHOD_DESTROY, NULL, 0, false},
        {METHOD_MOVE, NULL, 0, false},
        {METHOD_NAME_BIND, &name.base, 0, false},
        {METHOD_NAME_UNBIND, NULL, 0, false},
        {METHOD_UNRESERVE, NULL, 0, false},
        {METHOD_PLACE, NULL, 0, false},
        {999, NULL, 2, false},
    };
    int fds[2];

    broker_start(&broker, NULL, 0);
    wire_open(&wire, &broker);
    assert_ok(pipe2(fds, O_CLOEXEC));
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
        leaves_nothing(&kinds[i], fds);
    close(fds[0]);
    close(fds[1]);
    wire_close(&wire);
    broker_stop(&broker);
}

/* A message that breaks the protocol, with descriptors beside it; a version that nobody speaks; nothing at all. */
static void refuse_connection(unsigned how, const int *fds)
{
    uint8_t bytes[64] = {0};
    int fd = raw_connect(&broker);

    if (how == 0)
        (void)fd_send(fd, bytes, sizeof(bytes), fds, 2, 0);
    else if (how == 1)
        raw_send_if_open(fd, METHOD_PING);
    else
        (void)raw_send(fd, METHOD_ALLOC, bytes, sizeof(bytes), fds, 2);
    close(fd);
}

static void I7_refused_connections_leave_nothing(void **state)
{
    int fds[2];

    broker_start(&broker, NULL, 0);
    assert_ok(pipe2(fds, O_CLOEXEC));
    for (unsigned how = 0; how < 3; how++) {
        unsigned had = descriptors() + DESCRIPTORS;
        unsigned long memory;

        for (unsigned i = 0; i < 50; i++)
            refuse_connection(how, fds);
        wire_open(&wire, &broker);
        wire_close(&wire);
        memory = memory_kib();
        for (unsigned long i = 0; i < times(); i++)
            refuse_connection(how, fds);
        assert_true(WAIT_UNTIL(descriptors() <= had));
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
        cmocka_unit_test(I7_refused_connections_leave_nothing),
    };

    return test_run(tests, NULL, NULL);
}
