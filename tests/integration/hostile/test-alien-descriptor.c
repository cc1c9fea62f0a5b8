/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attack: a descriptor whose close() never returns is sent to the broker, wherever it can be received. Whoever
 * closes it neither goes on nor ends, by SIGKILL either. So a broker that did could not be replaced.
 *
 * The attacker is a user of its own: the kernel tells a broker the uid that a process had when it connected. The
 * processes that hang are let go at the end of each test, also if it fails.
 */
#include "tests/integration/hostile/doors.h"
#include "tests/support/fd.h"
#include "tests/support/fuse.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Processes of one user that hang, at most: KILLED_UID_MAX of daemon/door/doors.c. */
#define DOORS_MAX 2

static struct broker_process broker;
static struct fuse unclosable = FUSE_NULL;
static int alien = -1, same_file = -1;
static struct wire victim, attacker;

static void alien_open(void)
{
    fuse_start(&unclosable);
    alien = fuse_open(&unclosable);
    same_file = fuse_open(&unclosable);
    assert_ok(alien);
    assert_ok(same_file);
}

/* What hangs goes on. */
static void alien_close(void)
{
    fuse_stop(&unclosable);
    alien = fd_close(alien);
    same_file = fd_close(same_file);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static bool is_served(struct wire *wire)
{
    struct wire_packet ping;

    wire_request(wire, &ping, METHOD_PING, NULL);
    return wire_call(wire, &ping)->status == STATUS_OK;
}

/* The victim adopts memory, through its own door. */
static void adopt(struct wire *wire)
{
    FD_AUTO int memory = memfd_create("honest", MFD_CLOEXEC);
    Memoryd__V1__AdoptRequest m = MEMORYD__V1__ADOPT_REQUEST__INIT;

    assert_ok(ftruncate(memory, 4096));
    assert_int_equal(doors_show_and_hear(wire, DOOR_ADOPT, memory, &m.ticket), STATUS_OK);
    (void)wire_do(wire, METHOD_ADOPT, &m.base, STATUS_OK);
    /* once only */
    (void)wire_do(wire, METHOD_ADOPT, &m.base, STATUS_TICKET_STALE);
}

static int start(void **state)
{
    doors_forget();
    broker_start_as(&broker, NULL, UID_BROKER);
    wire_open(&victim, &broker);
    wire_open_as(&attacker, &broker, UID_STRANGER);
    return 0;
}

static int stop(void **state)
{
    wire_lose(&victim);
    wire_lose(&attacker);
    alien_close();
    if (broker.pid > 0)
        broker_kill(&broker);
    return 0;
}

/* The broker is replaced, serves, and ends, whatever hangs; then what hung is let go, and nothing is left. How many
 * doors hung. */
static unsigned the_broker_is_replaced_and_ends(void)
{
    unsigned hung;

    broker_kill_child(&broker);
    wire_resume(&victim);
    assert_true(is_served(&victim));
    adopt(&victim);
    wire_lose(&victim);
    wire_lose(&attacker);
    broker_stop(&broker);
    hung = doors_living();
    alien_close();
    assert_true(WAIT_UNTIL(!doors_living()));
    return hung;
}

/* ---- attacks ----------------------------------------------------------------------------------------------------- */

static void I8_the_kernel_refuses_descriptors_on_a_connection(void **state)
{
    uint8_t import[MEMORYD_HEADER_SIZE];
    int off = 0;

    if (setsockopt(attacker.fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) < 0)
        test_skip("this kernel lets everybody send descriptors to everybody (before 6.16)");
    alien_open();
    frame_encode(import, FRAME_FROM_CLIENT,
                 &(struct frame_header){.method = METHOD_IMPORT, .sequence = 77, .fd_count = 1});
    assert_errno((int)fd_send(attacker.fd, import, sizeof(import), &alien, 1, 0), EPERM);
    assert_true(is_served(&attacker));
    assert_true(is_served(&victim));
}

/* The attacker's next door hangs: the n-th. It has answered before. */
static void hang_a_door(unsigned n)
{
    uint64_t ticket;

    assert_int_equal(doors_show_and_hear(&attacker, DOOR_IMPORT, alien, &ticket), STATUS_FD_FOREIGN);
    assert_true(WAIT_UNTIL(fuse_flushes(&unclosable) == n));
}

/* Asks for a door: is there another one now, after n that hang, or will there be none? */
static bool asks_for_another(pid_t server, unsigned n, uint32_t *status)
{
    fd_close(doors_ask(&attacker, status));
    return doors_count(server) > n || *status;
}

/* A status if there will be none. */
static uint32_t has_another_door(pid_t server, unsigned n)
{
    uint32_t status = STATUS_OK;

    assert_true(WAIT_UNTIL(asks_for_another(server, n, &status)));
    assert_in_range(doors_count(server), n, n + 1);
    return status;
}

static void I8_a_door_that_hangs_is_replaced_a_few_times(void **state)
{
    pid_t server = broker_child(&broker);

    alien_open();
    for (unsigned n = 1; n <= DOORS_MAX; n++) {
        hang_a_door(n);
        assert_true(is_served(&victim));
        assert_int_equal(has_another_door(server, n), n < DOORS_MAX ? STATUS_OK : STATUS_LIMIT);
    }
    assert_int_equal(broker_child(&broker), server);
    adopt(&victim);
    assert_int_equal(doors_count(server), DOORS_MAX + 1);
    assert_true(broker_said(&broker, "hangs in closing what its user sent"));
    assert_int_equal(the_broker_is_replaced_and_ends(), DOORS_MAX);
}

static void a_door_that_was_let_go_makes_room(void **state)
{
    pid_t server = broker_child(&broker);

    alien_open();
    hang_a_door(1);
    assert_int_equal(has_another_door(server, 1), STATUS_OK);
    hang_a_door(2);
    alien_close();
    adopt(&attacker);
    assert_true(WAIT_UNTIL(doors_count(server) == 1));
    wire_close(&victim);
    wire_close(&attacker);
    broker_stop(&broker);
    assert_true(WAIT_UNTIL(!doors_living()));
}

/* As it is before 6.16, and for whoever connected before the broker was there. */
static void let_descriptors_through(void)
{
    int keeper = (int)syscall(SYS_pidfd_open, broker.pid, 0);

    assert_ok(keeper);
    for (int i = 0; i < 64; i++) {
        FD_AUTO int fd = (int)syscall(SYS_pidfd_getfd, keeper, i, 0);
        int listens = 0, on = 1;
        socklen_t size = sizeof(listens);

        if (fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens)
            (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
    }
    close(keeper);
}

/* In a packet that waits before the broker has seen the connection. */
static void attack_with_a_packet(pid_t server)
{
    uint8_t import[MEMORYD_HEADER_SIZE];

    assert_ok(kill(server, SIGSTOP));
    attacker = (struct wire){.broker = &broker, .fd = raw_connect_as(&broker, UID_STRANGER)};
    frame_encode(import, FRAME_FROM_CLIENT,
                 &(struct frame_header){.method = METHOD_IMPORT, .sequence = 77, .fd_count = 1});
    assert_int_equal(fd_send(attacker.fd, import, sizeof(import), &alien, 1, 0), sizeof(import));
    alien = fd_close(alien);
    fuse_write(same_file);
    assert_ok(kill(server, SIGCONT));
}

/* Dropping a packet unseen is a close, too, and some kernels wait there for what its owner has still to write. */
static void I8_a_connection_with_descriptors_ends_in_the_door(void **state)
{
    pid_t server = broker_child(&broker);
    struct wire_packet reply;

    let_descriptors_through();
    wire_close(&attacker);
    unclosable.caches = true;
    alien_open();
    attack_with_a_packet(server);
    assert_true(wire_receive(&attacker, &reply));
    assert_int_equal(reply.status, STATUS_PROTOCOL);
    assert_non_null(memmem(reply.payload, reply.size, "door", 4));
    assert_false(wire_receive(&attacker, &reply));
    assert_true(is_served(&victim));
    assert_true(WAIT_UNTIL(fuse_writes(&unclosable) > 0 && doors_count(server) > 0));
    assert_int_equal(broker_child(&broker), server);
    (void)the_broker_is_replaced_and_ends();
}

/* ---- what can be sent -------------------------------------------------------------------------------------------- */

static void every_kind_of_descriptor_is_looked_at(void **state)
{
    pid_t server = broker_child(&broker);
    int pair[2], reader;
    struct door_answer answer;
    uint32_t status;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    {
        FD_AUTO int lingers = fd_that_lingers(&reader);
        FD_AUTO int by_path = open("/proc/self/exe", O_PATH | O_CLOEXEC);
        FD_AUTO int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        FD_AUTO int epoll = epoll_create1(EPOLL_CLOEXEC);
        FD_AUTO int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
        FD_AUTO int empty = memfd_create("empty", MFD_CLOEXEC);
        FD_AUTO int door = doors_ask(&attacker, &status);
        const int fds[] = {by_path, pidfd, epoll, faults, empty, pair[0], door, lingers};

        for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
            if (fds[i] < 0)
                continue;
            for (enum door_kind kind = DOOR_IMPORT; kind <= DOOR_ADOPT; kind++) {
                doors_show(door, kind, fds[i]);
                assert_true(doors_hear(door, &answer));
                assert_int_not_equal(answer.status, STATUS_OK);
                assert_true(strlen(answer.sentence) > 10);
            }
        }
        assert_int_equal(doors_count(server), 1);
        close(reader); /* so that closing the other end does not wait here */
    }
    close(pair[0]);
    close(pair[1]);
    assert_true(is_served(&attacker));
    assert_true(is_served(&victim));
}

static void the_door_takes_no_nonsense(void **state)
{
    static const char *const packets[] = {"", "x", "\1\0\0\0\0\0\0", "\3\0\0\0\0\0\0", "\1\0\0\0\1\0\0"};
    FD_AUTO int memory = memfd_create("memory", MFD_CLOEXEC);
    struct door_answer answer;
    uint32_t status;

    for (size_t i = 0; i < sizeof(packets) / sizeof(*packets); i++) {
        FD_AUTO int door = doors_ask(&attacker, &status);
        int fds[2] = {memory, memory};

        /* too short, of no kind, with something in its reserved bytes; a sound one has no descriptor, or two */
        (void)fd_send(door, packets[i], i < 2 ? i : MEMORYD_DOOR_REQUEST, fds, i == 2 ? 2 : 1, 0);
        assert_false(doors_hear(door, &answer));
    }
    adopt(&attacker);
}

/* A ticket is of use to the session that showed the descriptor, and to nobody else. */
static void I3_a_ticket_is_for_its_own_session(void **state)
{
    FD_AUTO int memory = memfd_create("mine", MFD_CLOEXEC);
    Memoryd__V1__AdoptRequest m = MEMORYD__V1__ADOPT_REQUEST__INIT;
    Memoryd__V1__ImportRequest import = MEMORYD__V1__IMPORT_REQUEST__INIT;

    assert_ok(ftruncate(memory, 4096));
    assert_int_equal(doors_show_and_hear(&victim, DOOR_ADOPT, memory, &m.ticket), STATUS_OK);
    (void)wire_do(&attacker, METHOD_ADOPT, &m.base, STATUS_TICKET_STALE);
    import.n_tickets = 1;
    import.tickets = &m.ticket;
    (void)wire_do(&victim, METHOD_IMPORT, &import.base, STATUS_TICKET_STALE);
    (void)wire_do(&victim, METHOD_ADOPT, &m.base, STATUS_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(I8_the_kernel_refuses_descriptors_on_a_connection),
        TEST(I8_a_door_that_hangs_is_replaced_a_few_times),
        TEST(a_door_that_was_let_go_makes_room),
        TEST(I8_a_connection_with_descriptors_ends_in_the_door),
        TEST(every_kind_of_descriptor_is_looked_at),
        TEST(the_door_takes_no_nonsense),
        TEST(I3_a_ticket_is_for_its_own_session),
    };

    return test_run_as_root(tests, NULL, NULL);
}
