/* SPDX-License-Identifier: Apache-2.0 */
/* See tracer.h. */
#include "tests/torture/tracer.h"

#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define OPTIONS      (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)
#define SYSCALL_STOP (SIGTRAP | 0x80)
/* What does nothing for so long waits for something: after a request, and before it, where less is at stake. */
#define REST_MS  30
#define PAUSE_MS 4

static void add(struct tracer *tracer, pid_t tid)
{
    assert_true(tracer->n < TRACER_THREADS);
    tracer->threads[tracer->n++] = tid;
}

static void drop(struct tracer *tracer, size_t i)
{
    tracer->threads[i] = tracer->threads[--tracer->n];
    if (tracer->n == 0)
        tracer->pid = 0;
}

static void go_on(pid_t tid, int signal_number)
{
    /* ESRCH: it is being killed */
    if (ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)signal_number) < 0 && errno != ESRCH)
        test_fail_errno("PTRACE_SYSCALL", __FILE__, __LINE__);
}

/* ---- what it receives -------------------------------------------------------------------------------------------- */

static bool read_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
    struct iovec here = {.iov_base = to, .iov_len = size};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};

    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool is_request(const struct tracer *tracer, int64_t size)
{
    uint8_t header[MEMORYD_HEADER_SIZE];
    struct msghdr msg;
    struct iovec iov;
    uint16_t version, method;
    uint64_t sequence;

    return size >= MEMORYD_HEADER_SIZE && read_memory(tracer->pid, tracer->message, &msg, sizeof(msg)) &&
           msg.msg_iovlen == 1 && read_memory(tracer->pid, (uintptr_t)msg.msg_iov, &iov, sizeof(iov)) &&
           read_memory(tracer->pid, (uintptr_t)iov.iov_base, header, sizeof(header)) &&
           frame_peek(header, sizeof(header), &version, &method, &sequence) && method == tracer->method;
}

/*
 * Only the loop's thread receives; what others call meanwhile is none of this. Where it receives to is noted all the
 * time: on a busy machine the thread may be inside that call, and not have run yet, when the request is sent.
 */
static void look(struct tracer *tracer, pid_t tid)
{
    struct ptrace_syscall_info info;

    if (tid != tracer->pid || ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) < 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        tracer->message = info.entry.nr == SYS_recvmsg ? info.entry.args[1] : 0;
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT && tracer->message && !tracer->received)
        tracer->received = is_request(tracer, info.exit.rval);
}

/* ---- its stops --------------------------------------------------------------------------------------------------- */

static void stopped(struct tracer *tracer, pid_t tid, int status)
{
    int signal_number = WSTOPSIG(status);
    unsigned event = (unsigned)status >> 16;
    unsigned long child;

    if (signal_number == SYSCALL_STOP) {
        look(tracer, tid);
        tracer->calls += tracer->received;
        return;
    }
    if (event == PTRACE_EVENT_CLONE && ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child) == 0)
        add(tracer, (pid_t)child);
    go_on(tid, event ? 0 : signal_number);
}

/* A thread that is stopped at a system call, 0 if something else happened, -1 if nothing did. */
static pid_t next_stop(struct tracer *tracer)
{
    for (size_t i = 0; i < tracer->n; i++) {
        pid_t tid = tracer->threads[i];
        int status;

        if (waitpid(tid, &status, __WALL | WNOHANG) != tid)
            continue;
        if (!WIFSTOPPED(status)) {
            drop(tracer, i);
            return 0;
        }
        stopped(tracer, tid, status);
        return WSTOPSIG(status) == SYSCALL_STOP ? tid : 0;
    }
    return -1;
}

static void wait_for_a_signal(void)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    (void)sigtimedwait(&set, NULL, &a_moment);
}

static bool knows(const struct tracer *tracer, pid_t tid)
{
    for (size_t i = 0; i < tracer->n; i++)
        if (tracer->threads[i] == tid)
            return true;
    return false;
}

/* The next one that is not known, or 0. */
static pid_t next_unknown(const struct tracer *tracer, DIR *dir)
{
    struct dirent *entry;

    while ((entry = readdir(dir)) != NULL) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (tid > 0 && !knows(tracer, tid))
            return tid;
    }
    return 0;
}

static DIR *threads_of(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    return opendir(path);
}

/* Killed before it was told of, a new thread is waited for like the others, or they never end. */
static void find_new_threads(struct tracer *tracer)
{
    DIR *dir = threads_of(tracer->pid);
    pid_t tid;

    if (dir == NULL)
        return;
    while ((tid = next_unknown(tracer, dir)) > 0)
        add(tracer, tid);
    closedir(dir);
}

static void die(struct tracer *tracer)
{
    (void)kill(tracer->pid, SIGKILL);
    while (tracer->n > 0) {
        if (next_stop(tracer) >= 0)
            continue;
        find_new_threads(tracer);
        wait_for_a_signal();
    }
}

/* False: for so long nothing has happened, and `done` is readable (-1: whatever); or it has ended by itself. */
static bool run(struct tracer *tracer, unsigned n, int done, int rest_ms)
{
    int64_t rests_since = wait_now_ms();

    while (tracer->n > 0) {
        pid_t tid = next_stop(tracer);

        if (tid > 0 && tracer->received && tracer->calls == n) {
            die(tracer);
            return true;
        }
        if (tid > 0)
            go_on(tid, 0);
        if (tid >= 0) {
            rests_since = wait_now_ms();
            continue;
        }
        if (wait_now_ms() - rests_since > rest_ms && (done < 0 || wait_for_events(done, POLLIN, 0)))
            return false;
        if (wait_now_ms() - rests_since > PATIENCE_MS)
            return false; /* whoever waits for the client will say so */
        wait_for_a_signal();
    }
    return false;
}

bool tracer_kill_at(struct tracer *tracer, unsigned n, int done)
{
    return run(tracer, n, done, REST_MS);
}

/* ---- the beginning and the end ----------------------------------------------------------------------------------- */

static bool has_ended(pid_t tid)
{
    char path[64], text[256], *state = NULL;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
    file = fopen(path, "re");
    if (file == NULL)
        return true;
    if (fgets(text, sizeof(text), file) != NULL)
        state = strrchr(text, ')');
    fclose(file);
    return state == NULL || strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0;
}

/* Those that end meanwhile are none of this; and one that may not be traced says -EPERM as well if it has ended. */
static int seize_threads(struct tracer *tracer)
{
    DIR *dir = threads_of(tracer->pid);
    int r = 0;
    pid_t tid;

    if (dir == NULL)
        return errno == ENOENT ? -ESRCH : -errno;
    while ((tid = next_unknown(tracer, dir)) > 0) {
        if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)OPTIONS) == 0) {
            add(tracer, tid);
            (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
        } else if (errno == EPERM && !has_ended(tid)) {
            r = -EPERM;
        }
    }
    closedir(dir);
    return r;
}

int tracer_seize(struct tracer *tracer, pid_t pid, uint16_t method)
{
    sigset_t set;
    int r;

    /* so that waiting for it is not missed */
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *tracer = (struct tracer){.pid = pid, .received = true};
    r = seize_threads(tracer);
    if (r)
        return r;
    /* until it waits again: being interrupted has made it turn once */
    (void)run(tracer, 0, -1, PAUSE_MS);
    tracer->method = method;
    tracer->received = method == 0;
    tracer->calls = 0;
    return tracer->n > 0 ? 0 : -ESRCH;
}

static bool let_one_go(struct tracer *tracer)
{
    for (size_t i = 0; i < tracer->n; i++) {
        pid_t tid = tracer->threads[i];
        unsigned long child;
        int status = 0;

        if (waitpid(tid, &status, __WALL | WNOHANG) == 0)
            continue;
        if (WIFSTOPPED(status) && (unsigned)status >> 16 == PTRACE_EVENT_CLONE &&
            ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child) == 0)
            add(tracer, (pid_t)child);
        if (WIFSTOPPED(status))
            (void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
        drop(tracer, i);
        return true;
    }
    return false;
}

/* Without waiting for one of them alone: if the process is being killed, the first ends after all others. */
void tracer_let_go(struct tracer *tracer)
{
    for (size_t i = 0; i < tracer->n; i++)
        (void)ptrace(PTRACE_INTERRUPT, tracer->threads[i], NULL, NULL);
    while (tracer->n > 0)
        if (!let_one_go(tracer))
            wait_for_a_signal();
}
