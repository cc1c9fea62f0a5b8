/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker begins, and one user's clients say of all that is in their hold caches that the broker before had begun to
 * take it. That is work, but not what others have to wait for.
 */
#include "tests/integration/wire.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/hold_cache.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

enum { SESSIONS = 200 };

static struct broker_process broker;
static struct wire wires[SESSIONS];
static char *memories[SESSIONS];

static struct hold_cache_slot *slots_of(unsigned session)
{
    return (struct hold_cache_slot *)(void *)(memories[session] + HOLD_CACHE_AT(slots));
}

/* The shared memory that HELLO gives to whom it gives a session, or gives it again. */
static void map_memory(unsigned session)
{
    Memoryd__V1__HelloRequest hello = MEMORYD__V1__HELLO_REQUEST__INIT;
    struct wire *wire = &wires[session];
    static struct wire_packet packet;
    struct wire_packet *reply;

    wire_lose(wire);
    wire->fd = raw_connect(&broker);
    hello.version_max = MEMORYD_MINOR_MAX;
    hello.session = wire->session;
    hello.secret.data = wire->secret;
    hello.secret.len = sizeof(wire->secret);
    hello.release_log = true;
    wire_request(wire, &packet, METHOD_HELLO, &hello.base);
    reply = wire_call(wire, &packet);
    assert_int_equal(reply->status, 0);
    assert_int_equal(reply->n_fds, 1);
    assert_ok(fallocate(reply->fds[0], 0, 0, SESSION_MEMORY_SIZE));
    memories[session] = mmap(NULL, SESSION_MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, reply->fds[0], 0);
    assert_true(memories[session] != MAP_FAILED);
    wire_close_fds(reply);
}

/* All slots say that the broker was about to take something. */
static void fill_slots(unsigned session)
{
    Memoryd__V1__AllocRequest alloc = MEMORYD__V1__ALLOC_REQUEST__INIT;
    const Memoryd__V1__Buffers *made;
    uint64_t size = 1;

    alloc.n_sizes = 1;
    alloc.sizes = &size;
    made = wire_do(&wires[session], METHOD_ALLOC, &alloc.base, 0);
    for (unsigned i = 0; i < HOLD_CACHE_SLOTS; i++)
        slots_of(session)[i] =
            (struct hold_cache_slot){.buffer = made->ids[0], .state = HOLD_CACHED | HOLD_TAKEN, .claims = 0};
}

static unsigned count_done(void)
{
    unsigned n = 0;

    for (unsigned session = 0; session < SESSIONS; session++)
        for (unsigned i = 0; i < HOLD_CACHE_SLOTS; i++)
            n += (((volatile struct hold_cache_slot *)slots_of(session))[i].state & HOLD_DONE) != 0;
    return n;
}

static void I7_a_broker_serves_before_it_has_taken_all_caches(void **state)
{
    const unsigned all = SESSIONS * HOLD_CACHE_SLOTS;
    struct wire victim;
    unsigned done;

    (void)fd_raise_limit();
    broker_start(&broker, NULL, 0);
    for (unsigned i = 0; i < SESSIONS; i++) {
        wire_open(&wires[i], &broker);
        map_memory(i);
        fill_slots(i);
        wire_lose(&wires[i]);
    }
    wire_open(&victim, &broker);
    broker_kill_child(&broker);
    wire_resume(&victim);
    done = count_done();
    print_message("served when %u of %u slots were taken\n", done, all);
    assert_in_range(done, 0, all - 1);
    assert_true(WAIT_UNTIL(count_done() == all));
    wire_close(&victim);
    broker_stop(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_a_broker_serves_before_it_has_taken_all_caches),
    };

    return test_run(tests, NULL, NULL);
}
