/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: nobody starves the rest. Clients that do not read, say nothing, or come in numbers, and a broker that is short
 * of descriptors; each time another client goes on being served.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/methods.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "tests/integration/broker.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

static struct broker_process broker;

/* ALLOC of one buffer of 4096 bytes, with a descriptor */
static const char alloc_fd[] = "\x42\x02\x80\x20\x58\x04";
#define ALLOC_FD_SIZE 6

static bool closed_by_broker(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

static bool any_closed_by_broker(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        if (closed_by_broker(fds[i]))
            return true;
    return false;
}

static void I7_a_client_that_never_reads(void **state)
{
    FD_AUTO int good = -1;
    FD_AUTO int deaf = -1;
    int64_t end = wait_now_ms() + PATIENCE_MS;

    broker_start(&broker, "[session]\nstall_timeout = 300ms\n", 0);
    good = raw_client(&broker);
    deaf = raw_client(&broker);
    while (!closed_by_broker(deaf) && wait_now_ms() < end) {
        uint8_t packet[32] = {'M', 'E', 'M', 'D', 1, 0, 32, 0, 0, 0, 0, 0, 0, 0, METHOD_STATUS, 0, 99};

        for (int i = 0; i < 50; i++)
            if (send(deaf, packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                break;
        assert_true(raw_is_served(good));
    }
    assert_true(closed_by_broker(deaf));
    assert_true(broker_said(&broker, "does not read its replies"));
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void I7_a_client_that_never_takes_its_descriptors(void **state)
{
    FD_AUTO int good = -1;
    FD_AUTO int deaf = -1;
    static struct raw_reply reply;

    broker_start(&broker,
                 "[limits]\nsession_fds_in_flight = 64\nuid_fds_in_flight = 64\n[session]\nstall_timeout = 300ms\n", 0);
    good = raw_client(&broker);
    deaf = raw_client(&broker);
    for (int i = 0; i < 64; i++)
        (void)raw_send(deaf, METHOD_ALLOC, alloc_fd, ALLOC_FD_SIZE, NULL, 0);
    /* the same user's budget is used up: the good one waits until the deaf one has been sent away */
    for (int i = 0; i < 8; i++) {
        assert_true(raw_is_served(good));
        (void)raw_send(good, METHOD_ALLOC, alloc_fd, ALLOC_FD_SIZE, NULL, 0);
        raw_receive(good, &reply);
        assert_true(reply.size > 0);
        assert_int_equal(reply.status, STATUS_OK);
        assert_int_equal(reply.n_fds, 1);
    }
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void I7_clients_that_say_nothing(void **state)
{
    FD_AUTO int good = -1;
    int mute[20];

    broker_start(&broker, "[session]\nhandshake_timeout = 3s\n", 0);
    good = raw_client(&broker);
    for (int i = 0; i < 20; i++)
        mute[i] = raw_connect(&broker);
    assert_true(raw_is_served(good));
    for (int i = 0; i < 20; i++) {
        assert_true(raw_has_ended(mute[i]));
        close(mute[i]);
    }
    assert_true(raw_is_served(good));
    assert_true(broker_said(&broker, "did not send HELLO"));
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void I7_a_flood_does_not_stop_others(void **state)
{
    FD_AUTO int good = -1;
    int flood[8];
    uint8_t packet[32] = {'M', 'E', 'M', 'D', 1, 0, 32, 0, 0, 0, 0, 0, 0, 0, METHOD_PING, 0, 99};
    static uint8_t sink[65536];

    broker_start(&broker, NULL, 0);
    good = raw_client(&broker);
    for (int i = 0; i < 8; i++)
        flood[i] = raw_client(&broker);
    for (int turn = 0; turn < 200; turn++) {
        for (int i = 0; i < 8; i++) {
            while (send(flood[i], packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
                ;
            while (recv(flood[i], sink, sizeof(sink), MSG_DONTWAIT) > 0)
                ;
        }
        assert_true(raw_is_served(good));
    }
    for (int i = 0; i < 8; i++)
        close(flood[i]);
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void I7_no_descriptor_left_to_accept(void **state)
{
    FD_AUTO int good = -1;
    int many[60];
    int n = 0;

    broker_start(&broker, "[limits]\nconnections = 1000\n", 64);
    assert_true(broker_said(&broker, "the limit of open files is 64"));
    good = raw_client(&broker);
    for (; n < 60; n++)
        many[n] = raw_connect(&broker);
    assert_true(raw_is_served(good));
    /* those who do not fit see an end; they do not wait for ever */
    assert_true(WAIT_UNTIL(any_closed_by_broker(many, n)));
    assert_true(raw_is_served(good));
    /* when there is room again, clients are accepted again */
    for (int i = 0; i < n; i++)
        close(many[i]);
    {
        bool accepted = false;

        for (int i = 0; i < 100 && !accepted; i++) {
            static struct raw_reply reply;
            int fd = raw_connect(&broker);
            uint8_t packet[32] = {'M', 'E', 'M', 'D', 1, 0, 32, 0, 0, 0, 0, 0, 0, 0, METHOD_HELLO, 0, 99};

            if (send(fd, packet, sizeof(packet), MSG_NOSIGNAL) > 0) {
                raw_receive(fd, &reply);
                accepted = reply.size > 0 && reply.status == STATUS_OK;
            }
            close(fd);
        }
        assert_true(accepted);
    }
    assert_true(raw_is_served(good));
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void I7_limits_of_sessions_are_told_by_hello(void **state)
{
    FD_AUTO int a = -1;
    FD_AUTO int b = -1;
    FD_AUTO int c = -1;

    broker_start(&broker, "[limits]\nuid_sessions = 2\n", 0);
    a = raw_client(&broker);
    b = raw_client(&broker);
    c = raw_connect(&broker);
    assert_int_equal(raw_call(c, METHOD_HELLO, NULL, 0), STATUS_LIMIT);
    assert_true(raw_is_served(a));
    broker_stop(&broker);
}

static void signals_do_not_kill_it(void **state)
{
    static const int signals[] = {SIGPIPE, SIGIO, SIGXFSZ, SIGHUP};
    FD_AUTO int good = -1;

    broker_start(&broker, NULL, 0);
    good = raw_client(&broker);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        assert_ok(kill(broker.pid, signals[i]));
        assert_ok(kill(broker_child(&broker), signals[i]));
        assert_true(raw_is_served(good));
    }
    assert_true(broker_lives(&broker));
    assert_true(WAIT_UNTIL(broker_said(&broker, "was read again")));
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void a_bad_reload_changes_nothing(void **state)
{
    FD_AUTO int good = -1;
    int fd;

    broker_start(&broker, NULL, 0);
    good = raw_client(&broker);
    fd = open(broker.config, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "nonsense = 1\n", 13), 13);
    close(fd);
    assert_ok(kill(broker.pid, SIGHUP));
    assert_true(WAIT_UNTIL(broker_said(&broker, "the configuration is unchanged")));
    assert_true(broker_said(&broker, ".conf:6: [arena] nonsense: no such key"));
    assert_true(raw_is_served(good));
    close(good);
    good = -1;
    broker_stop(&broker);
}

static void stopping_tells_clients_by_an_end(void **state)
{
    FD_AUTO int good = -1;

    broker_start(&broker, NULL, 0);
    good = raw_client(&broker);
    broker_stop(&broker);
    assert_true(raw_has_ended(good));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_a_client_that_never_reads),
        cmocka_unit_test(I7_a_client_that_never_takes_its_descriptors),
        cmocka_unit_test(I7_clients_that_say_nothing),
        cmocka_unit_test(I7_a_flood_does_not_stop_others),
        cmocka_unit_test(I7_no_descriptor_left_to_accept),
        cmocka_unit_test(I7_limits_of_sessions_are_told_by_hello),
        cmocka_unit_test(signals_do_not_kill_it),
        cmocka_unit_test(a_bad_reload_changes_nothing),
        cmocka_unit_test(stopping_tells_clients_by_an_end),
    };

    return test_run(tests, NULL, NULL);
}
