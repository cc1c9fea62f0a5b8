/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of an attacker in the broker: a debugger makes one of its system calls another one, as an exploit would make it.
 * The kernel ends that broker, the keeper says why, the next one serves, and nobody has lost anything.
 */
#include "tests/integration/clients.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "proto/methods.h"

/* The number that a file of /proc has behind the key; -1 if it has none. */
static long number_in(const char *path, const char *key)
{
    char line[256];
    long found = -1;
    FILE *f = fopen(path, "re");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            found = strtol(line + strlen(key), NULL, 10);
    fclose(f);
    return found;
}

/* How many filters there are on each call of this thread; it gives up new privileges for good. */
static long filters_of(pid_t pid, const char *thread)
{
    char path[128];

    snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, thread);
    assert_int_equal(number_in(path, "Seccomp:"), 2);
    assert_int_equal(number_in(path, "NoNewPrivs:"), 1);
    return number_in(path, "Seccomp_filters:");
}

static long filters_of_process(pid_t pid)
{
    char thread[16];

    snprintf(thread, sizeof(thread), "%d", (int)pid);
    return filters_of(pid, thread);
}

/* The most that one of its threads has: a worker has begun when it has its own. */
static long most_filters(pid_t pid)
{
    char path[64];
    struct dirent *entry;
    long most = -1;
    DIR *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    threads = opendir(path);
    assert_non_null(threads);
    while ((entry = readdir(threads)))
        if (entry->d_name[0] != '.') {
            long n = filters_of(pid, entry->d_name);

            most = n > most ? n : most;
        }
    closedir(threads);
    return most;
}

static void needs_sandbox(void)
{
    const char *setting = getenv("MEMORYD_SANDBOX");

    if (!SANDBOX || (setting && !strcmp(setting, "off")))
        test_skip("this build has no sandbox, or the environment leaves it off");
}

/* What is adopted goes through a door, the last process that the broker has had started. */
static void door_is_in_a_sandbox(struct broker_process *broker, long keepers)
{
    struct memclient_context *ctx = broker_connect(broker);
    FD_AUTO int fd = memfd_create("adopted", MFD_CLOEXEC);
    struct memclient_buffer *buf;

    assert_ok(ftruncate(fd, 4096));
    assert_done(memclient_adopt_fd(ctx, fd, &buf));
    assert_int_equal(filters_of_process(youngest_child_of(broker_child(broker))), keepers + 1);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

static void each_process_is_in_a_sandbox(void **state)
{
    struct broker_process *broker;
    pid_t child;
    long keepers;

    needs_sandbox();
    if (number_in("/proc/self/status", "Seccomp_filters:") < 0)
        test_skip("this kernel does not say how many filters there are");
    broker = broker_for_test(NULL);
    child = broker_child(broker);
    keepers = filters_of_process(broker->pid);
    assert_int_equal(keepers, number_in("/proc/self/status", "Seccomp_filters:") + 1);
    assert_int_equal(filters_of_process(child), keepers + 1);
    assert_true(WAIT_UNTIL(most_filters(child) == keepers + 2));
    door_is_in_a_sandbox(broker, keepers);
    broker_finish(broker);
}

#ifdef __x86_64__

/* Stops the broker at the entry of its next call, which becomes this one. */
static void replace_next_call(pid_t pid, unsigned long long number)
{
    struct user_regs_struct registers;
    int status;

    do {
        assert_ok(ptrace(PTRACE_SYSCALL, pid, NULL, NULL));
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        assert_true(WIFSTOPPED(status));
    } while (WSTOPSIG(status) != (SIGTRAP | 0x80));
    assert_ok(ptrace(PTRACE_GETREGS, pid, NULL, &registers));
    registers.orig_rax = number;
    assert_ok(ptrace(PTRACE_SETREGS, pid, NULL, &registers));
}

/* The tracer is this process, and its client another one: what it asks wakes the broker. */
static void ask_until_told(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf;
    void *p;

    CHECK_DONE(memclient_alloc(ctx, 4096, NULL, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    pattern_write(p, 4096, 7);
    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_broker_ping(ctx));
    CHECK(pattern_holds(p, 4096, 7));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

static void I8_code_of_an_attacker_in_the_broker_ends_that_broker_only(void **state)
{
    struct broker_process *broker;
    struct child child;
    pid_t pid;
    int status;

    needs_sandbox();
    broker = broker_for_test(NULL);
    child_start(&child, ask_until_told, broker->socket);
    child_hear(&child);
    pid = broker_child(broker);
    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD) < 0)
        test_skip("a process may not trace another one here");
    assert_ok(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    child_tell(&child);
    replace_next_call(pid, SYS_unshare);
    assert_ok(ptrace(PTRACE_CONT, pid, NULL, NULL));
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
    child_finish(&child);
    assert_true(WAIT_UNTIL(broker_said(broker, "made a system call that its sandbox forbids")));
    broker_finish(broker);
}

#else

static void I8_code_of_an_attacker_in_the_broker_ends_that_broker_only(void **state)
{
    test_skip("only for x86-64: a call is changed in the registers");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(each_process_is_in_a_sandbox),
        at_broker(I8_code_of_an_attacker_in_the_broker_ends_that_broker_only),
    };

    return test_run(tests, NULL, NULL);
}
