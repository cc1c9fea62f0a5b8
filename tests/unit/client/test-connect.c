/* SPDX-License-Identifier: Apache-2.0 */
/* A broker whose queue of those who connect is full: who finds it so waits in the kernel, where it has its place. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "memclient/memclient.h"
#include "rpc/connect.h"
#include "tests/support/wait.h"

enum { ROOM = 4 };

static char folder[32];
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener;
static int queued[ROOM];

/* A connect() that finds no room says EAGAIN. */
static int set_up(void **state)
{
    unsigned n = 0;
    int fd;

    (void)snprintf(folder, sizeof(folder), "/tmp/test-connect.XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    assert_ok(listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    assert_ok(bind(listener, (struct sockaddr *)&address, sizeof(address)));
    assert_ok(listen(listener, ROOM - 1));
    for (;;) {
        assert_ok(fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
            break;
        assert_true(n < ROOM);
        queued[n++] = fd;
    }
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(n, ROOM);
    close(fd);
    return 0;
}

static int tear_down(void **state)
{
    for (unsigned i = 0; i < ROOM; i++)
        close(queued[i]);
    close(listener);
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
    return 0;
}

struct caller {
    pthread_t thread;
    pid_t number;
    int outcome;
    struct connected connected;
};

static void *connect_in_thread(void *argument)
{
    struct caller *caller = argument;

    __atomic_store_n(&caller->number, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    caller->outcome = connect_broker(address.sun_path, MEMCLIENT_AUTOSTART_NEVER, clock_now_ns() + 20 * NSEC_PER_SEC,
                                     &caller->connected);
    return NULL;
}

/* Which system call is this thread in? -1: none. */
static long system_call_of(pid_t thread)
{
    char path[64];
    long number = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%ld", &number) != 1)
        number = -1;
    (void)fclose(file);
    return number;
}

static void who_finds_no_room_waits_in_the_kernel(void **state)
{
    struct caller caller = {0};
    int fd;

    if (access("/proc/self/syscall", R_OK) < 0)
        test_skip("this kernel does not say in which system call a thread is");
    assert_int_equal(pthread_create(&caller.thread, NULL, connect_in_thread, &caller), 0);
    WAIT_UNTIL(__atomic_load_n(&caller.number, __ATOMIC_ACQUIRE) && system_call_of(caller.number) == SYS_connect);
    for (unsigned i = 0; i < ROOM; i++) {
        assert_ok(fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC));
        close(fd);
    }
    assert_int_equal(pthread_join(caller.thread, NULL), 0);
    assert_int_equal(caller.outcome, 0);
    /* as before: no later call waits unless it is told to */
    assert_true(fcntl(caller.connected.socket, F_GETFL) & O_NONBLOCK);
    close(caller.connected.socket);
}

static void a_wait_ends_with_its_deadline(void **state)
{
    struct connected connected;

    assert_int_equal(
        connect_broker(address.sun_path, MEMCLIENT_AUTOSTART_NEVER, clock_now_ns() + 20 * NSEC_PER_MSEC, &connected),
        -ETIMEDOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_finds_no_room_waits_in_the_kernel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wait_ends_with_its_deadline, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
