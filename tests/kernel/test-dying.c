/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper and a broker's cleaner lean on where a broker hangs in dying. A thread that closes a file whose file
 * system does not answer waits, whatever signal comes, and its process neither ends nor closes anything meanwhile. But
 * the kernel shows that no thread of it can do more, and a process that shares its table of descriptors can take out
 * what others wait for.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/death.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/fuse.h"
#include "tests/support/wait.h"

struct scene {
    struct fuse fuse;
    int alien;      /* the file */
    int socket;     /* the victim's … */
    int client;     /* … and the other end, in the test only */
    int t;          /* a memfd, of which the victim alone has a second description */
    bool by_thread; /* another thread than the first one hangs */
    bool cleaner;   /* there is one */
};

/* So that no test leaves a process that hangs. */
static struct scene scene;

static int close_it(struct scene *of)
{
    return close(of->alien);
}

static void *close_it_in_thread(void *of)
{
    close_it(of);
    return NULL;
}

/* It has the number of a descriptor of the victim's, since it has the same table. */
static void clean(const struct scene *of, pid_t victim, int t)
{
    sigset_t wake;

    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    (void)victim;
    sigwaitinfo(&wake, NULL);
    shutdown(of->socket, SHUT_RDWR);
    close(t);
    _exit(0);
}

static void hang(int channel, void *context)
{
    struct scene *of = context;
    int t = fd_reopen(of->t, O_RDWR);
    pthread_t thread;

    /* of the test's table, which this process has a copy of */
    close(of->client);
    CHECK(t >= 0);
    close(of->t);
    if (of->cleaner) {
        pid_t self = getpid();

        if (!syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL))
            clean(of, self, t);
    }
    tell(channel);
    hear(channel);
    if (of->by_thread)
        CHECK(pthread_create(&thread, NULL, close_it_in_thread, of) == 0);
    else
        close_it(of);
    for (;;)
        pause();
}

static bool is_sole(int t)
{
    if (fcntl(t, F_SETLEASE, F_WRLCK) < 0)
        return false;
    assert_ok(fcntl(t, F_SETLEASE, F_UNLCK));
    return true;
}

/* A process that has been killed, and hangs. */
static void kill_one_that_hangs(struct child *child, bool by_thread, bool cleaner)
{
    FD_AUTO int first = memfd_create("t", MFD_CLOEXEC);
    int ends[2];

    fuse_start(&scene.fuse);
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_ok(first);
    scene.client = ends[0];
    scene.socket = ends[1];
    scene.by_thread = by_thread;
    scene.cleaner = cleaner;
    scene.alien = fuse_open(&scene.fuse);
    scene.t = fd_reopen(first, O_RDWR);
    assert_ok(scene.t);
    close(first);
    first = -1;
    signal(SIGIO, SIG_IGN);
    child_start(child, hang, &scene);
    close(scene.socket);
    child_hear(child);
    child_tell(child);
    assert_true(WAIT_UNTIL(fuse_flushes(&scene.fuse) == 1));
    assert_ok(kill(child->pid, SIGKILL));
}

static int scene_end(void **state)
{
    (void)state;
    fuse_stop(&scene.fuse);
    scene = (struct scene){.fuse = FUSE_NULL};
    return 0;
}

static int scene_begin(void **state)
{
    (void)state;
    scene = (struct scene){.fuse = FUSE_NULL};
    return 0;
}

/* Its own descriptor of the file must go without a close that waits: when nobody answers any more. */
static void let_it_end(struct child *child)
{
    int alien = scene.alien;

    fuse_stop(&scene.fuse);
    close(alien);
    assert_int_equal(child_wait(child), SIGKILL);
    close(scene.client);
    close(scene.t);
}

static void a_close_that_nobody_answers_keeps_the_process(bool by_thread)
{
    struct death_cause cause;
    struct child child;

    kill_one_that_hangs(&child, by_thread, false);
    assert_true(WAIT_UNTIL(process_death(child.pid, &cause) == DEATH_HANGS));
    assert_int_equal(cause.call, SYS_close);
    assert_true((cause.thread == child.pid) == !by_thread);
    /* nobody is told, and what it has open stays open */
    assert_true(stays_quiet(scene.client));
    assert_int_equal(waitpid(child.pid, NULL, WNOHANG), 0);
    assert_false(is_sole(scene.t));
    let_it_end(&child);
}

static void I8_a_killed_process_stays_while_its_thread_closes(void **state)
{
    (void)state;
    a_close_that_nobody_answers_keeps_the_process(true);
}

static void I8_a_killed_process_stays_while_its_first_thread_closes(void **state)
{
    (void)state;
    a_close_that_nobody_answers_keeps_the_process(false);
}

/* The signal comes when the first thread ends, or from somebody who sees that it does not. */
static void another_empties_its_table(bool by_thread)
{
    struct death_cause cause;
    struct child child;
    char byte;

    kill_one_that_hangs(&child, by_thread, true);
    if (!by_thread) {
        pid_t cleaner = youngest_child_of(child.pid);

        assert_true(WAIT_UNTIL(process_death(child.pid, &cause) == DEATH_HANGS));
        assert_true(stays_quiet(scene.client));
        assert_ok(kill(cleaner, SIGUSR1));
    }
    assert_true(wait_readable(scene.client));
    assert_int_equal(recv(scene.client, &byte, 1, 0), 0);
    assert_true(WAIT_UNTIL(is_sole(scene.t)));
    /* and it still hangs */
    assert_true(WAIT_UNTIL(process_death(child.pid, &cause) == DEATH_HANGS));
    let_it_end(&child);
}

static void I8_a_process_with_the_same_table_empties_it(void **state)
{
    (void)state;
    another_empties_its_table(true);
}

static void I8_a_process_with_the_same_table_empties_it_when_it_is_told(void **state)
{
    (void)state;
    another_empties_its_table(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(I8_a_killed_process_stays_while_its_thread_closes, scene_begin, scene_end),
        cmocka_unit_test_setup_teardown(I8_a_killed_process_stays_while_its_first_thread_closes, scene_begin,
                                        scene_end),
        cmocka_unit_test_setup_teardown(I8_a_process_with_the_same_table_empties_it, scene_begin, scene_end),
        cmocka_unit_test_setup_teardown(I8_a_process_with_the_same_table_empties_it_when_it_is_told, scene_begin,
                                        scene_end),
    };

    return test_run(tests, NULL, NULL);
}
