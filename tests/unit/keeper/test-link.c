/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's side of the keeper, against a keeper that is played here; and without one. */

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/link.h"
#include "proto/sockio.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"

struct dropping {
    struct keeper_drop drop;
    unsigned done;
};

static struct keeper_link *broker;
static int keeper; /* the other end */
static unsigned stops, stops_for_good, reloads, orphans, counted, taken;
static int refusal;

static int set_up(void **state)
{
    int ends[2];

    stops = stops_for_good = reloads = orphans = counted = taken = 0;
    refusal = 0;
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    keeper = ends[0];
    assert_int_equal(keeper_link_new(&broker, ends[1]), 0);
    return 0;
}

static int tear_down(void **state)
{
    broker = keeper_link_free(broker);
    keeper = fd_close(keeper);
    return 0;
}

static void on_stop(void *userdata, enum keeper_stop how)
{
    (void)userdata;
    stops++;
    stops_for_good += how != KEEPER_STOP_NEXT;
}

static void on_upgrade_refused(void *userdata, int error)
{
    (void)userdata;
    refusal = error;
}

static void on_reload(void *userdata)
{
    (void)userdata;
    reloads++;
}

static void on_orphaned(void *userdata)
{
    (void)userdata;
    orphans++;
}

static const struct keeper_link_events events = {
    .stop = on_stop, .upgrade_refused = on_upgrade_refused, .reload = on_reload, .orphaned = on_orphaned};

static void done(struct keeper_drop *drop)
{
    container_of(drop, struct dropping, drop)->done++;
}

static void count(void *userdata, size_t n)
{
    (void)userdata;
    /* before the first comes */
    assert_int_equal(taken, 0);
    counted = (unsigned)n;
}

static int take(void *userdata, enum keeper_kind kind, uint64_t id, int fd)
{
    (void)userdata;
    assert_int_equal(kind, KEEPER_BUFFER);
    assert_int_equal(id, ++taken);
    close(fd);
    return 0;
}

static void say(enum packet_type type, uint32_t value, unsigned n, const struct keeper_key *keys)
{
    struct packet packet = {.type = type, .value = value, .n = (uint16_t)n};

    if (n)
        memcpy(packet.keys, keys, n * sizeof(*keys));
    assert_int_equal(packet_send(keeper, &packet, NULL), 0);
}

/* How many packets of this type lie there; their keys in order if wanted. */
static unsigned hear(enum packet_type type, struct keeper_key *keys)
{
    struct packet packet;
    struct fdset fds = FDSET_NULL;
    unsigned n = 0;

    while (packet_receive(keeper, &packet, &fds) == 0) {
        assert_int_equal(packet.type, type);
        for (unsigned i = 0; keys && i < packet.n; i++)
            keys[n + i] = packet.keys[i];
        n += packet.n ? packet.n : 1U;
        fdset_deinit(&fds);
    }
    return n;
}

static void test_without_keeper(void **state)
{
    struct dropping one = {.drop.done = done};
    uint64_t id = 1;

    assert_int_equal(keeper_link_receive(NULL, count, take, NULL), 0);
    assert_int_equal(keeper_hold(NULL, KEEPER_BUFFER, 1, 0), 0);
    assert_int_equal(keeper_hold_many(NULL, KEEPER_BUFFER, 1, &id, &(int){0}), 0);
    keeper_drop(NULL, KEEPER_BUFFER, 1);
    keeper_drop_then(NULL, KEEPER_BUFFER, 1, &one.drop);
    assert_int_equal(one.done, 1);
    assert_int_equal(keeper_link_fd(NULL), -1);
    assert_int_equal(keeper_link_dispatch(NULL, &events, NULL), 0);
    keeper_link_send(NULL, PACKET_READY);
    keeper_link_send(NULL, PACKET_RELOADED);
    keeper_link_send(NULL, PACKET_UPGRADE);
    keeper_link_send(NULL, PACKET_HEARTBEAT);
    assert_int_equal(keeper_pid(NULL), 0);
    assert_null(keeper_link_free(NULL));
}

static void test_receive(void **state)
{
    struct packet packet = {.type = PACKET_HOLD};
    int fds[PACKET_KEYS_MAX];
    unsigned sent = 0;

    say(PACKET_COUNT, 3 * PACKET_KEYS_MAX - 3, 0, NULL);
    for (unsigned round = 0; round < 3; round++) {
        packet.n = PACKET_KEYS_MAX - (uint16_t)round;
        for (unsigned i = 0; i < packet.n; i++) {
            packet.keys[i] = KEEPER_KEY(KEEPER_BUFFER, ++sent);
            fds[i] = keeper;
        }
        assert_int_equal(packet_send(keeper, &packet, fds), 0);
    }
    say(PACKET_END, 4711, 0, NULL);
    assert_int_equal(keeper_link_receive(broker, count, take, NULL), 0);
    assert_int_equal(counted, 3 * PACKET_KEYS_MAX - 3);
    assert_int_equal(taken, counted);
    assert_int_equal(keeper_pid(broker), 4711);
}

/* A keeper that dies while it hands over. */
static void test_receive_in_part(void **state)
{
    keeper = fd_close(keeper);
    assert_int_equal(keeper_link_receive(broker, count, take, NULL), -EPIPE);
}

static void test_hold(void **state)
{
    uint64_t ids[KEEPER_BATCH_MAX];
    int fds[KEEPER_BATCH_MAX];
    struct keeper_key keys[KEEPER_BATCH_MAX + 1];

    for (unsigned i = 0; i < KEEPER_BATCH_MAX; i++) {
        ids[i] = i;
        fds[i] = keeper;
    }
    assert_int_equal(keeper_hold(broker, KEEPER_LEDGER, 0, keeper), 0);
    assert_int_equal(keeper_hold_many(broker, KEEPER_SESSION, KEEPER_BATCH_MAX, ids, fds), 0);
    assert_int_equal(hear(PACKET_HOLD, keys), KEEPER_BATCH_MAX + 1);
    assert_int_equal(keys[0].kind, KEEPER_LEDGER);
    assert_int_equal(keys[KEEPER_BATCH_MAX].kind, KEEPER_SESSION);
    assert_int_equal(keys[KEEPER_BATCH_MAX].id, KEEPER_BATCH_MAX - 1);
    keeper_drop(broker, KEEPER_SESSION, 9);
    assert_int_equal(hear(PACKET_DROP, keys), 1);
    assert_int_equal(keys[0].id, 9);
    keeper = fd_close(keeper);
    assert_int_equal(keeper_hold(broker, KEEPER_LEDGER, 0, 0), -EPIPE);
}

/* Any number of drops: so many are asked for that the answers have room, each is answered once. */
static void test_drop_then(void **state)
{
    enum { N = 300 };
    static struct dropping drops[N];
    struct keeper_key keys[N];
    unsigned asked;

    for (unsigned i = 0; i < N; i++) {
        drops[i] = (struct dropping){.drop.done = done};
        keeper_drop_then(broker, KEEPER_BUFFER, i, &drops[i].drop);
    }
    for (unsigned sum = 0; sum < N; sum += asked) {
        asked = hear(PACKET_DROP_ASK, keys);
        assert_in_range(asked, 1, 64);
        for (unsigned i = 0; i < asked; i++) {
            assert_int_equal(keys[i].id, sum + i);
            assert_int_equal(drops[sum + i].done, 0);
        }
        for (unsigned i = 0; i < asked; i++)
            say(PACKET_DROPPED, 0, 1, &keys[i]);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(keeper_link_dispatch(broker, &events, NULL), 0);
    }
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(drops[i].done, 1);
    /* an answer that nobody waits for */
    say(PACKET_DROPPED, 0, 1, keys);
    assert_int_equal(keeper_link_dispatch(broker, &events, NULL), 0);
}

static void test_events(void **state)
{
    say(PACKET_RELOAD, 0, 0, NULL);
    say((enum packet_type)999, 0, 0, NULL); /* of a later version */
    say(PACKET_UPGRADE_REFUSED, ENOEXEC, 0, NULL);
    say(PACKET_STOP, 0, 0, NULL);
    assert_int_equal(keeper_link_dispatch(broker, &events, NULL), 0);
    assert_int_equal(reloads, 1);
    assert_int_equal(refusal, ENOEXEC);
    assert_int_equal(stops, 1);
    assert_int_equal(stops_for_good, 0);
    keeper_link_send(broker, PACKET_READY);
    assert_int_equal(hear(PACKET_READY, NULL), 1);
    keeper_link_send(broker, PACKET_RELOADED);
    assert_int_equal(hear(PACKET_RELOADED, NULL), 1);
    keeper_link_send(broker, PACKET_UPGRADE);
    assert_int_equal(hear(PACKET_UPGRADE, NULL), 1);
    keeper_link_send(broker, PACKET_HEARTBEAT);
    /* dies without having read it */
    say(PACKET_STOP, 1, 0, NULL);
    keeper = fd_close(keeper);
    for (int i = 0; i < 3; i++)
        assert_int_equal(keeper_link_dispatch(broker, &events, NULL), 0);
    assert_int_equal(stops, 2);
    assert_int_equal(stops_for_good, 1);
    assert_int_equal(orphans, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_without_keeper, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_receive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_receive_in_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_drop_then, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
    };

    return test_run(tests, NULL, NULL);
}
