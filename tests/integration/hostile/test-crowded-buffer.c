/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer that has thousands of holders and names: what is to be known or done about it must not take as long as there
 * are of them, since the loop does it, and everybody waits.
 *
 * What the broker works for a request is compared with what it works for the same request before there was a crowd, in
 * its own processor time; the two differ a hundredfold if it walks over the crowd.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"

enum { CROWD = 1500, BUFFERS = MEMORYD_BATCH_MAX, REPEATS = 20 };

static struct broker_process broker;
static uint8_t payload[MEMORYD_PAYLOAD_MAX];
static struct raw_reply reply;

static uint32_t call(int fd, uint16_t method, const void *message)
{
    size_t size = protobuf_c_message_pack(message, payload);
    uint64_t sequence = raw_send(fd, method, payload, size, NULL, 0);

    raw_receive(fd, &reply);
    assert_true(reply.size > 0);
    assert_int_equal(reply.sequence, sequence);
    return reply.status;
}

static Memoryd__V1__Buffers *buffers_of_reply(void)
{
    Memoryd__V1__Buffers *buffers =
        memoryd__v1__buffers__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);

    assert_non_null(buffers);
    return buffers;
}

/* Returns the ids, and a token of each. */
static void make_buffers(int fd, unsigned n, uint64_t *ids, uint8_t *tokens)
{
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__Buffers *made;
    uint64_t sizes[BUFFERS];

    for (unsigned i = 0; i < n; i++)
        sizes[i] = 1;
    request.n_sizes = n;
    request.sizes = sizes;
    request.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
    assert_int_equal(call(fd, METHOD_ALLOC, &request), 0);
    made = buffers_of_reply();
    assert_int_equal(made->tokens.len, n * MEMORYD_TOKEN_SIZE);
    memcpy(ids, made->ids, n * sizeof(*ids));
    memcpy(tokens, made->tokens.data, made->tokens.len);
    memoryd__v1__buffers__free_unpacked(made, NULL);
}

static void open_buffers(int fd, uint8_t *tokens)
{
    Memoryd__V1__OpenRequest request = MEMORYD__V1__OPEN_REQUEST__INIT;
    Memoryd__V1__Buffers *opened;

    request.tokens.data = tokens;
    request.tokens.len = BUFFERS * MEMORYD_TOKEN_SIZE;
    request.rights = MEMORYD__V1__RIGHT__RIGHT_READ;
    assert_int_equal(call(fd, METHOD_OPEN, &request), 0);
    opened = buffers_of_reply();
    for (unsigned i = 0; i < BUFFERS; i++)
        assert_int_equal(opened->statuses[i], 0);
    memoryd__v1__buffers__free_unpacked(opened, NULL);
}

static uint64_t broker_worked_ns(void)
{
    unsigned long long ns;
    char path[64];
    FILE *file;

    usleep(2000); /* what it works is told when it sleeps again */
    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)broker_child(&broker));
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &ns), 1); /* NOLINT */
    fclose(file);
    return ns;
}

/* The least of several, since others of the machine disturb some of them. */
static uint64_t work_of(int fd, uint16_t method, const void *message)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < REPEATS; i++) {
        uint64_t before = broker_worked_ns(), worked;

        assert_int_equal(call(fd, method, message), 0);
        worked = broker_worked_ns() - before;
        if (worked < least)
            least = worked;
    }
    return least;
}

/* LIST, and a release of all of them: which users still hold a buffer decides who pays for it. */
static uint64_t work_for_victim(int victim, uint64_t *ids, uint8_t *tokens)
{
    Memoryd__V1__ListRequest list = MEMORYD__V1__LIST_REQUEST__INIT;
    Memoryd__V1__ReleaseRequest release = MEMORYD__V1__RELEASE_REQUEST__INIT;
    uint64_t before, released, listed = work_of(victim, METHOD_LIST_BUFFERS, &list), least = UINT64_MAX;

    release.n_buffers = BUFFERS;
    release.buffers = ids;
    for (int i = 0; i < REPEATS; i++) {
        before = broker_worked_ns();
        assert_int_equal(call(victim, METHOD_RELEASE, &release), 0);
        released = broker_worked_ns() - before;
        if (released < least)
            least = released;
        open_buffers(victim, tokens);
    }
    return listed + least;
}

static int setup(void **state)
{
    if (geteuid())
        return 0;
    (void)fd_raise_limit();
    broker_start(&broker, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    if (!geteuid())
        broker_stop(&broker);
    return 0;
}

static void I7_other_users_holds_are_not_walked_over(void **state)
{
    static uint8_t tokens[BUFFERS * MEMORYD_TOKEN_SIZE];
    static uint64_t ids[BUFFERS];
    static int crowd[CROWD];
    uint64_t alone, beside;
    int victim;

    test_needs_root();
    crowd[0] = raw_client_as(&broker, UID_STRANGER);
    make_buffers(crowd[0], BUFFERS, ids, tokens);
    victim = raw_client_as(&broker, UID_VICTIM);
    open_buffers(victim, tokens);
    alone = work_for_victim(victim, ids, tokens);
    for (int i = 1; i < CROWD; i++)
        open_buffers(crowd[i] = raw_client_as(&broker, UID_STRANGER), tokens);
    beside = work_for_victim(victim, ids, tokens);
    print_message("the broker works %llu us alone, %llu us beside %d holders\n", (unsigned long long)alone / 1000,
                  (unsigned long long)beside / 1000, CROWD);
    assert_in_range(beside, 0, 6 * alone);
    close(victim);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
}

static uint32_t bind_name(int fd, uint64_t buffer, unsigned number)
{
    Memoryd__V1__NameBindRequest request = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    char name[32];

    snprintf(name, sizeof(name), "crowd/%u", number);
    request.name = name;
    request.buffer = buffer;
    return call(fd, METHOD_NAME_BIND, &request);
}

static void I7_a_buffer_has_only_so_many_names(void **state)
{
    Memoryd__V1__NameUnbindRequest unbind = MEMORYD__V1__NAME_UNBIND_REQUEST__INIT;
    uint8_t tokens[2 * MEMORYD_TOKEN_SIZE];
    uint64_t ids[2];
    int fd;

    test_needs_root();
    fd = raw_client_as(&broker, UID_STRANGER);
    make_buffers(fd, 2, ids, tokens);
    for (unsigned i = 0; i < MEMORYD_BUFFER_NAMES_MAX; i++)
        assert_int_equal(bind_name(fd, ids[0], i), 0);
    assert_int_equal(bind_name(fd, ids[0], MEMORYD_BUFFER_NAMES_MAX), STATUS_LIMIT);
    assert_int_equal(bind_name(fd, ids[1], MEMORYD_BUFFER_NAMES_MAX), 0);
    unbind.name = (char *)"crowd/0";
    assert_int_equal(call(fd, METHOD_NAME_UNBIND, &unbind), 0);
    assert_int_equal(bind_name(fd, ids[0], 0), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_other_users_holds_are_not_walked_over),
        cmocka_unit_test(I7_a_buffer_has_only_so_many_names),
    };

    return test_run(tests, setup, teardown);
}
