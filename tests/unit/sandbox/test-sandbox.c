/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each sandbox does with a system call: what an exploit wants is the end of the process, what nobody has heard of
 * is ENOSYS, and what the process needs works.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/test.h"

/* No kernel has it. */
#define NO_CALL 460000

struct attempt {
    enum sandbox sandbox;
    void (*call)(void);
};

static void make_attempt(int channel, void *context)
{
    const struct attempt *attempt = context;

    /* a worker's is only for threads of a broker */
    if (attempt->sandbox == SANDBOX_WORKER)
        CHECK(sandbox_enter(SANDBOX_BROKER) == 0);
    CHECK(sandbox_enter(attempt->sandbox) == 0);
    attempt->call();
}

static void needs_sandbox(void)
{
    if (!sandbox_is_wanted())
        test_skip("this build has no sandbox");
}

static void assert_killed(enum sandbox sandbox, void (*call)(void))
{
    struct attempt attempt = {sandbox, call};

    assert_int_equal(child_signal(make_attempt, &attempt), SIGSYS);
}

static void assert_lives(enum sandbox sandbox, void (*call)(void))
{
    struct attempt attempt = {sandbox, call};

    child_run(make_attempt, &attempt);
}

/* ---- never ------------------------------------------------------------------------------------------------------- */

static void call_ptrace(void)
{
    (void)syscall(SYS_ptrace, 0, 0, 0, 0);
}

static void call_bpf(void)
{
    (void)syscall(SYS_bpf, 0, NULL, 0);
}

static void call_unshare(void)
{
    (void)syscall(SYS_unshare, CLONE_NEWUSER);
}

static void call_read_memory(void)
{
    (void)syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}

static void call_io_uring(void)
{
    (void)syscall(SYS_io_uring_setup, 1, NULL);
}

static void call_setuid(void)
{
    (void)syscall(SYS_setresuid, -1, -1, -1);
}

static void what_an_exploit_wants_is_the_end_of_any_process(void **state)
{
    static void (*const calls[])(void) = {call_ptrace,      call_bpf,      call_unshare,
                                          call_read_memory, call_io_uring, call_setuid};

    needs_sandbox();
    for (int sandbox = 0; sandbox < SANDBOX_N; sandbox++)
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
            assert_killed((enum sandbox)sandbox, calls[i]);
}

/* ---- other programs ---------------------------------------------------------------------------------------------- */

static void call_execve(void)
{
    char *const none[] = {NULL};

    (void)execve("/bin/true", none, none);
}

static void call_fork(void)
{
    (void)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

static void fork_and_wait(void)
{
    pid_t pid = fork();
    int status;

    if (!pid)
        call_execve();
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
}

static void only_who_starts_brokers_executes_programs(void **state)
{
    needs_sandbox();
    assert_killed(SANDBOX_BROKER, call_execve);
    assert_killed(SANDBOX_BROKER, call_fork);
    assert_killed(SANDBOX_WORKER, call_execve);
    assert_lives(SANDBOX_KEEPER, fork_and_wait);
    assert_lives(SANDBOX_LONE_BROKER, fork_and_wait);
}

/* ---- memory that can be executed --------------------------------------------------------------------------------- */

static void map_executable(void)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void make_executable(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    (void)mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static void what_can_be_written_is_never_executed(void **state)
{
    static const enum sandbox sandboxes[] = {SANDBOX_BROKER, SANDBOX_LONE_BROKER, SANDBOX_WORKER};

    needs_sandbox();
    for (size_t i = 0; i < sizeof(sandboxes) / sizeof(*sandboxes); i++) {
        assert_killed(sandboxes[i], map_executable);
        assert_killed(sandboxes[i], make_executable);
    }
}

/* ---- what a new C library may try -------------------------------------------------------------------------------- */

static void try_unknown(void)
{
    CHECK_ERRNO(syscall(NO_CALL), ENOSYS);
    CHECK_ERRNO(syscall(SYS_sync), ENOSYS);
}

static void try_network(void)
{
    CHECK_ERRNO(socket(AF_INET, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_ERRNO(socket(AF_NETLINK, SOCK_RAW, 0), EAFNOSUPPORT);
}

static void what_nobody_needs_is_not_there(void **state)
{
    static const enum sandbox sandboxes[] = {SANDBOX_BROKER, SANDBOX_LONE_BROKER, SANDBOX_WORKER};

    needs_sandbox();
    for (size_t i = 0; i < sizeof(sandboxes) / sizeof(*sandboxes); i++) {
        assert_lives(sandboxes[i], try_unknown);
        assert_lives(sandboxes[i], try_network);
    }
}

static void try_what_a_door_needs_not(void)
{
    char byte;

    CHECK_ERRNO(open("/dev/null", O_RDONLY | O_CLOEXEC), ENOSYS);
    CHECK_ERRNO(memfd_create("test", MFD_CLOEXEC), ENOSYS);
    CHECK_ERRNO(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ENOSYS);
    CHECK_ERRNO(dup(STDERR_FILENO), ENOSYS);
    CHECK_ERRNO(read(STDIN_FILENO, &byte, 1), ENOSYS);
    CHECK_ERRNO(ftruncate(STDIN_FILENO, 0), ENOSYS);
    CHECK_ERRNO(kill(getppid(), SIGTERM), ENOSYS);
    CHECK_ERRNO(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), ENOSYS);
    CHECK_ERRNO(inotify_init1(IN_CLOEXEC), ENOSYS);
}

/* It asks what a descriptor is of, and tells the broker. It gets at nothing that it was not sent. */
static void a_door_opens_nothing(void **state)
{
    needs_sandbox();
    assert_lives(SANDBOX_DOOR, try_what_a_door_needs_not);
    assert_lives(SANDBOX_DOOR, try_unknown);
    assert_killed(SANDBOX_DOOR, call_execve);
    assert_killed(SANDBOX_DOOR, map_executable);
    assert_killed(SANDBOX_DOOR, make_executable);
}

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

static void *do_work(void *argument)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    void *p;

    CHECK(sandbox_enter(SANDBOX_WORKER) == 0);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED && munmap(p, 4096) == 0 && close(fd) == 0);
    free(malloc(1 << 20));
    return argument;
}

static void start_thread(void)
{
    pthread_t thread;
    char worked;
    void *ret = NULL;

    CHECK(pthread_create(&thread, NULL, do_work, &worked) == 0);
    CHECK(pthread_join(thread, &ret) == 0 && ret == &worked);
    CHECK(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) >= 0);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static void a_broker_has_threads(void **state)
{
    needs_sandbox();
    assert_lives(SANDBOX_BROKER, start_thread);
    assert_lives(SANDBOX_LONE_BROKER, start_thread);
}

/* ---- without ----------------------------------------------------------------------------------------------------- */

static void enter_nothing(int channel, void *context)
{
    CHECK(setenv("MEMORYD_SANDBOX", "off", 1) == 0);
    CHECK(!sandbox_is_wanted());
    CHECK(sandbox_enter(SANDBOX_BROKER) == 0);
    CHECK(sandbox_enter(SANDBOX_WORKER) == 0);
    sandbox_hide();
    CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == *(int *)context);
    CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
}

static void the_environment_can_leave_it_off(void **state)
{
    int before = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);

    child_run(enter_nothing, &before);
}

static void hide(int channel, void *context)
{
    struct rlimit limit;

    sandbox_hide();
    CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
    CHECK(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0);
}

static void who_hides_leaves_no_core_dump(void **state)
{
    needs_sandbox();
    child_run(hide, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_exploit_wants_is_the_end_of_any_process),
        cmocka_unit_test(only_who_starts_brokers_executes_programs),
        cmocka_unit_test(what_can_be_written_is_never_executed),
        cmocka_unit_test(what_nobody_needs_is_not_there),
        cmocka_unit_test(a_door_opens_nothing),
        cmocka_unit_test(a_broker_has_threads),
        cmocka_unit_test(the_environment_can_leave_it_off),
        cmocka_unit_test(who_hides_leaves_no_core_dump),
    };

    return test_run(tests, NULL, NULL);
}
