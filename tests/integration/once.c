/* SPDX-License-Identifier: Apache-2.0 */
/* See once.h. */
#include "tests/integration/once.h"

#include <string.h>
#include <sys/stat.h>

#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "tests/support/test.h"

struct broker_process broker;
struct wire wire;
uint64_t buffer;
struct wire_packet request, first;

int once_start_with(const char *configuration)
{
    buffer = 0;
    broker_start(&broker, configuration, 0);
    wire_open(&wire, &broker);
    return 0;
}

int once_start(void **state)
{
    return once_start_with("[pools]\ncapacity = 64M\n");
}

int once_stop(void **state)
{
    wire_close(&wire);
    broker_stop(&broker);
    return 0;
}

int once_cleanup(void **state)
{
    if (broker.pid > 0)
        broker_kill(&broker);
    return 0;
}

void allocate(void)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t size = SIZE;

    m.sizes = &size;
    m.n_sizes = 1;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__PUBLISHABLE | MEMORYD__V1__ALLOC_REQUEST__FLAG__NO_ADDRESS;
    buffer = ((const Memoryd__V1__Buffers *)wire_do(&wire, METHOD_ALLOC, &m.base, STATUS_OK))->ids[0];
}

void bind_name(void)
{
    Memoryd__V1__NameBindRequest m = MEMORYD__V1__NAME_BIND_REQUEST__INIT;

    m.name = NAME;
    m.buffer = buffer;
    (void)wire_do(&wire, METHOD_NAME_BIND, &m.base, STATUS_OK);
}

void make_reserve(struct wire_packet *packet)
{
    Memoryd__V1__ReserveRequest m = MEMORYD__V1__RESERVE_REQUEST__INIT;

    m.size = UINT64_C(1) << 20;
    wire_request(&wire, packet, METHOD_RESERVE, &m.base);
}

static Memoryd__V1__StatusReply status(void)
{
    return *(const Memoryd__V1__StatusReply *)wire_do(&wire, METHOD_STATUS, NULL, STATUS_OK);
}

uint64_t buffers(void)
{
    Memoryd__V1__StatusReply now = status();

    return now.buffers + now.buffers_detached + now.buffers_ending;
}

uint64_t names(void)
{
    return status().names;
}

uint64_t tokens(void)
{
    return status().tokens;
}

uint64_t reservations(void)
{
    return status().reservations;
}

uint64_t claims(void)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;

    m.buffers = &buffer;
    m.n_buffers = 1;
    for (uint64_t n = 0;; n++)
        if (((const Memoryd__V1__Statuses *)wire_do(&wire, METHOD_RELEASE, &m.base, STATUS_OK))->statuses[0])
            return n;
}

void connection_is_lost(void)
{
    wire_lose(&wire);
    wire_resume(&wire);
}

void broker_dies(void)
{
    broker_kill_child(&broker);
    wire_lose(&wire);
    wire_resume(&wire);
}

void same_as_first(const struct wire_packet *reply)
{
    assert_int_equal(reply->status, first.status);
    assert_int_equal(reply->size, first.size);
    assert_memory_equal(reply->payload, first.payload, first.size);
    assert_int_equal(reply->n_fds, first.n_fds);
    for (unsigned i = 0; i < reply->n_fds; i++) {
        struct stat a, b;

        assert_ok(fstat(reply->fds[i], &a));
        assert_ok(fstat(first.fds[i], &b));
        assert_int_equal(a.st_ino, b.st_ino);
        assert_int_equal(a.st_dev, b.st_dev);
    }
}

void again(void)
{
    struct wire_packet *reply = wire_call(&wire, &request);

    same_as_first(reply);
    wire_close_fds(reply);
}
