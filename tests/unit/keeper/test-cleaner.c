/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker's cleaner takes from it when it has died, what it leaves, and that it touches nothing before. */
#include "keeper/cleaner.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (1 << 20)

/* What the broker passes to the test, in this order. */
enum { UNFINISHED, FINISHED, OTHERS, LEDGER, FILES };

static const char *const names[] = {
    [UNFINISHED] = "memoryd-1", [FINISHED] = "memoryd-2", [OTHERS] = "somebody's", [LEDGER] = "memoryd:ledger"};

static int make_file(int which)
{
    int fd = memfd_create(names[which], MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK(fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, SIZE) == 0 && fallocate(fd, 0, 0, SIZE) == 0);
    if (which == FINISHED || which == LEDGER)
        CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    return fd;
}

struct sockets {
    int link[2];
    int shared[2]; /* somebody else has this end, too */
    char path[108];
};

static void live_and_die(int channel, void *context)
{
    const struct sockets *sockets = context;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    pid_t cleaner;
    int client;
    int fds[FILES];

    close(sockets->link[0]);
    cleaner = cleaner_start(sockets->link[1], 0);
    CHECK(cleaner > 0);
    memcpy(address.sun_path, sockets->path, sizeof(address.sun_path));
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(listener, 5) == 0);
    for (int i = 0; i < FILES; i++)
        fds[i] = make_file(i);
    CHECK(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[UNFINISHED], 0) != MAP_FAILED);
    CHECK(fd_send(channel, &cleaner, sizeof(cleaner), fds, FILES, 0) == sizeof(cleaner));
    client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(client >= 0);
    /* the cleaner does not believe everybody */
    CHECK(kill(cleaner, CLEANER_SIGNAL) == 0);
    tell(channel);
    for (;;)
        pause();
}

static off_t pages_of(int fd)
{
    struct stat st;

    assert_ok(fstat(fd, &st));
    return (off_t)st.st_blocks * 512;
}

/* valgrind makes no process that shares descriptors. */
static void need_shared_descriptors(void)
{
    if (test_under_valgrind())
        test_skip("valgrind knows no such fork");
}

static void it_takes_what_is_unfinished_and_tells_the_others(void **state)
{
    const char *folder = getenv("TMPDIR");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct fd_received received;
    struct sockets sockets;
    struct child broker;
    pid_t cleaner;
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    char byte;

    (void)state;
    need_shared_descriptors();
    assert_ok(client);
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.link));
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.shared));
    (void)snprintf(sockets.path, sizeof(sockets.path), "%s/cleaner.%d", folder ? folder : "/tmp", (int)getpid());
    child_start(&broker, live_and_die, &sockets);
    close(sockets.link[1]);
    assert_true(wait_readable(broker.channel));
    received = fd_receive(broker.channel, &cleaner, sizeof(cleaner), FILES, 0);
    assert_int_equal(received.n, FILES);
    memcpy(address.sun_path, sockets.path, sizeof(address.sun_path));
    assert_ok(connect(client, (struct sockaddr *)&address, sizeof(address)));
    child_hear(&broker);

    /* while it lives nothing happens */
    assert_true(stays_quiet(client) && stays_quiet(sockets.link[0]));
    for (int i = 0; i < FILES; i++)
        assert_int_equal(pages_of(received.fds[i]), SIZE);
    assert_ok(kill(cleaner, 0));

    child_kill(&broker);
    assert_true(wait_readable(client));
    assert_int_equal(recv(client, &byte, 1, 0), 0);
    assert_true(wait_readable(sockets.link[0]));
    assert_int_equal(recv(sockets.link[0], &byte, 1, 0), 0);
    /* the link is its last */
    for (int i = 0; i < FILES; i++)
        assert_int_equal(pages_of(received.fds[i]), i == UNFINISHED ? 0 : SIZE);
    assert_true(stays_quiet(sockets.shared[0]) && stays_quiet(sockets.shared[1]));
    assert_int_equal(send(sockets.shared[0], "", 1, 0), 1);
    fd_received_close(&received);
    close(client);
    close(sockets.link[0]);
    close(sockets.shared[0]);
    close(sockets.shared[1]);
    unlink(sockets.path);
}

static void outlive_it(int channel, void *context)
{
    struct sockets *sockets = context;
    pid_t cleaner = cleaner_start(sockets->link[1], 0);

    CHECK(cleaner > 0);
    tell(channel);
    cleaner_stop(cleaner);
    CHECK(kill(cleaner, 0) < 0);
    cleaner_stop(-1);
    tell(channel);
    hear(channel);
}

static void who_lives_on_ends_it(void **state)
{
    struct sockets sockets;
    struct child broker;

    (void)state;
    need_shared_descriptors();
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.link));
    child_start(&broker, outlive_it, &sockets);
    child_hear(&broker);
    child_hear(&broker);
    assert_true(stays_quiet(sockets.link[0]));
    child_tell(&broker);
    child_finish(&broker);
    close(sockets.link[0]);
    close(sockets.link[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_what_is_unfinished_and_tells_the_others),
        cmocka_unit_test(who_lives_on_ends_it),
    };

    return test_run(tests, NULL, NULL);
}
