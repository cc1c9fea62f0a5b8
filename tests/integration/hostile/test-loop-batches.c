/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user sends one request about as many buffers as a request may name; then others ask for nothing in particular.
 * Who is answered first?
 *
 * Nothing is timed. The broker is stopped while they send, the one with the batch first. Each socket is in an epoll
 * set, where sockets are in the order in which they became readable: that is the order in which the broker answered.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

enum {
    ITEMS = MEMORYD_BATCH_MAX,
    SMALL = 32, /* so many buffers at once the loop makes itself */
    VICTIMS = 32,
};

static struct broker_process broker;
static int hostile;
static int victims[VICTIMS];
static uint64_t buffers[ITEMS];
static uint32_t rights[ITEMS];
static uint8_t payload[MEMORYD_PAYLOAD_MAX];
static struct raw_reply reply;

static int setup(void **state)
{
    if (geteuid())
        return 0;
    broker_start(&broker, "[pools]\nstock = 0\n", 0);
    hostile = raw_client_as(&broker, UID_STRANGER);
    for (unsigned i = 0; i < VICTIMS; i++)
        victims[i] = raw_client_as(&broker, UID_VICTIM);
    for (unsigned i = 0; i < ITEMS; i++)
        rights[i] = MEMORYD__V1__RIGHT__RIGHT_READ;
    return 0;
}

static int teardown(void **state)
{
    if (geteuid())
        return 0;
    close(hostile);
    for (unsigned i = 0; i < VICTIMS; i++)
        close(victims[i]);
    broker_stop(&broker);
    return 0;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static size_t pack_alloc(unsigned n)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t sizes[ITEMS];

    for (unsigned i = 0; i < n; i++)
        sizes[i] = 4096;
    m.sizes = sizes;
    m.n_sizes = n;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    return memoryd__v1__alloc_request__pack(&m, payload);
}

static size_t pack_export(void)
{
    Memoryd__V1__ExportRequest m = MEMORYD__V1__EXPORT_REQUEST__INIT;

    m.buffers = buffers;
    m.rights = rights;
    m.n_buffers = m.n_rights = ITEMS;
    return memoryd__v1__export_request__pack(&m, payload);
}

static size_t pack_release(void)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;

    m.buffers = buffers;
    m.n_buffers = ITEMS;
    return memoryd__v1__release_request__pack(&m, payload);
}

static void expect_statuses_ok(void)
{
    Memoryd__V1__Statuses *m;

    assert_int_equal(reply.status, 0);
    m = memoryd__v1__statuses__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
    assert_non_null(m);
    assert_int_equal(m->n_statuses, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(m->statuses[i], 0);
    memoryd__v1__statuses__free_unpacked(m, NULL);
}

static void expect_buffers(unsigned n)
{
    Memoryd__V1__Buffers *m;

    assert_int_equal(reply.status, 0);
    assert_int_equal(reply.n_fds, n);
    m = memoryd__v1__buffers__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
    assert_non_null(m);
    assert_int_equal(m->n_ids, n);
    for (unsigned i = 0; i < n; i++)
        buffers[i] = m->ids[i];
    memoryd__v1__buffers__free_unpacked(m, NULL);
}

/* ---- who is answered first --------------------------------------------------------------------------------------- */

static void watch(int set, int fd, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    assert_ok(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

static unsigned count_before_hostile(int set)
{
    struct epoll_event events[VICTIMS + 1];
    unsigned n = 0;

    assert_int_equal(epoll_wait(set, events, VICTIMS + 1, 0), VICTIMS + 1);
    while (events[n].data.u32 < VICTIMS)
        n++;
    return n;
}

/* The victims that were answered before the batch, which was there first; its reply is in `reply`. */
static unsigned race(uint16_t method, size_t size)
{
    pid_t served_by = broker_child(&broker);
    int set = epoll_create1(EPOLL_CLOEXEC);
    unsigned before;

    assert_ok(set);
    assert_ok(kill(served_by, SIGSTOP));
    raw_send(hostile, method, payload, size, NULL, 0);
    watch(set, hostile, VICTIMS);
    for (unsigned i = 0; i < VICTIMS; i++) {
        raw_send(victims[i], METHOD_PING, NULL, 0, NULL, 0);
        watch(set, victims[i], i);
    }
    assert_ok(kill(served_by, SIGCONT));
    assert_true(wait_readable(hostile));
    for (unsigned i = 0; i < VICTIMS; i++)
        assert_true(wait_readable(victims[i]));
    before = count_before_hostile(set);
    close(set);
    for (unsigned i = 0; i < VICTIMS; i++)
        raw_receive(victims[i], &reply);
    raw_receive(hostile, &reply);
    assert_int_equal(broker_child(&broker), served_by);
    return before;
}

/* It is the turn of others after each slice, so most of them are answered by the time that a long one is done. */
static void race_and_lose(uint16_t method, size_t size)
{
    unsigned before = race(method, size);

    print_message("%u of %d were answered before the batch\n", before, VICTIMS);
    assert_in_range(before, VICTIMS / 2, VICTIMS);
}

static void I7_others_are_answered_while_a_batch_is_allocated(void **state)
{
    test_needs_root();
    race_and_lose(METHOD_ALLOC, pack_alloc(SMALL));
    expect_buffers(SMALL);
}

static void I7_others_are_answered_while_descriptors_of_a_batch_are_opened(void **state)
{
    test_needs_root();
    (void)race(METHOD_ALLOC, pack_alloc(ITEMS));
    expect_buffers(ITEMS);
    race_and_lose(METHOD_EXPORT, pack_export());
    assert_int_equal(reply.n_fds, ITEMS);
    expect_statuses_ok();
}

static void I7_others_are_answered_while_a_batch_is_released(void **state)
{
    test_needs_root();
    race_and_lose(METHOD_RELEASE, pack_release());
    expect_statuses_ok();
}

static unsigned count_buffers(void)
{
    Memoryd__V1__StatusReply *status =
        memoryd__v1__status_reply__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
    unsigned n;

    assert_non_null(status);
    n = (unsigned)status->buffers;
    memoryd__v1__status_reply__free_unpacked(status, NULL);
    return n;
}

/* What follows on the same connection is served afterwards, and finds what was released ended, if not given back. */
static void what_follows_a_release_waits_for_it(void **state)
{
    unsigned before;

    test_needs_root();
    raw_send(hostile, METHOD_STATUS, NULL, 0, NULL, 0);
    raw_receive(hostile, &reply);
    before = count_buffers();
    (void)race(METHOD_ALLOC, pack_alloc(ITEMS));
    expect_buffers(ITEMS);
    raw_send(hostile, METHOD_RELEASE, payload, pack_release(), NULL, 0);
    raw_send(hostile, METHOD_STATUS, NULL, 0, NULL, 0);
    raw_receive(hostile, &reply);
    assert_int_equal(reply.method, METHOD_RELEASE);
    expect_statuses_ok();
    raw_receive(hostile, &reply);
    assert_int_equal(reply.method, METHOD_STATUS);
    assert_int_equal(count_buffers(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_others_are_answered_while_a_batch_is_allocated),
        cmocka_unit_test(I7_others_are_answered_while_descriptors_of_a_batch_are_opened),
        cmocka_unit_test(I7_others_are_answered_while_a_batch_is_released),
        cmocka_unit_test(what_follows_a_release_waits_for_it),
    };

    return test_run(tests, setup, teardown);
}
