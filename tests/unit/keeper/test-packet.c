/* SPDX-License-Identifier: Apache-2.0 */
/* Packets between keeper and broker: what is sent comes out, and what is not one is refused with nothing left open. */

#include <sys/socket.h>
#include <unistd.h>

#include "keeper/packet.h"
#include "proto/sockio.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"

static int ends[2];

static int set_up(void **state)
{
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    return 0;
}

static int tear_down(void **state)
{
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void test_round_trip(void **state)
{
    struct packet sent = {.type = PACKET_HOLD, .n = PACKET_KEYS_MAX, .value = 7};
    struct packet got;
    struct fdset fds = FDSET_NULL;
    int given[PACKET_KEYS_MAX];

    for (unsigned i = 0; i < PACKET_KEYS_MAX; i++) {
        sent.keys[i] = KEEPER_KEY(KEEPER_BUFFER, UINT64_MAX - i);
        given[i] = ends[0];
    }
    assert_int_equal(packet_receive(ends[1], &got, &fds), SOCKIO_E_AGAIN);
    assert_int_equal(packet_send(ends[0], &sent, given), 0);
    assert_int_equal(packet_receive(ends[1], &got, &fds), 0);
    assert_memory_equal(&got, &sent, sizeof(sent));
    assert_int_equal(fdset_count(&fds), PACKET_KEYS_MAX);
    fdset_deinit(&fds);

    sent = (struct packet){.type = PACKET_HEARTBEAT};
    assert_int_equal(packet_send(ends[0], &sent, NULL), 0);
    assert_int_equal(packet_receive(ends[1], &got, &fds), 0);
    assert_int_equal(got.type, PACKET_HEARTBEAT);
    assert_int_equal(got.n, 0);
}

/* Keys that are promised and not there, descriptors that nobody announced, half a packet. */
static void test_malformed(void **state)
{
    const struct packet keyed = {.type = PACKET_DROP, .n = 2};
    const struct packet bare = {.type = PACKET_HEARTBEAT};
    const struct packet hold = {.type = PACKET_HOLD, .n = 1};
    const struct packet many = {.type = PACKET_DROP, .n = PACKET_KEYS_MAX + 1};
    struct packet got;
    struct fdset fds = FDSET_NULL;
    unsigned before = fd_count();

    fd_send(ends[0], &keyed, 8 + 16, NULL, 0, 0);
    fd_send(ends[0], &keyed, 7, NULL, 0, 0);
    fd_send(ends[0], &bare, 8, &ends[0], 1, 0);
    fd_send(ends[0], &hold, 8 + 16, NULL, 0, 0);
    fd_send(ends[0], &many, sizeof(many), NULL, 0, 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(packet_receive(ends[1], &got, &fds), PACKET_E_MALFORMED);
        assert_int_equal(fdset_count(&fds), 0);
    }
    assert_int_equal(packet_receive(ends[1], &got, &fds), SOCKIO_E_AGAIN);
    assert_int_equal(fd_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
    };

    return test_run(tests, NULL, NULL);
}
