/* SPDX-License-Identifier: Apache-2.0 */
/* See steps.h. */
#include "tests/torture/steps.h"

#include "tests/support/child.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define SYSCALL_STOP (SIGTRAP | 0x80)
/* A step after which the child has not come to its end by itself. */
#define STEPS_MAX 5000

/* ---- in the child ------------------------------------------------------------------------------------------------ */

static struct range {
    void *address;
    size_t size;
} ranges[STEPS_RANGES];
static unsigned n_ranges;

void steps_watch(void *address, size_t size)
{
    CHECK(n_ranges < STEPS_RANGES);
    ranges[n_ranges++] = (struct range){.address = address, .size = size};
}

#ifdef __x86_64__

#define TRAP_FLAG 0x100

/* What was unmapped meanwhile is none of this. */
static void steps_protect(void)
{
    for (unsigned i = 0; i < n_ranges; i++)
        (void)mprotect(ranges[i].address, ranges[i].size, PROT_READ);
}

static bool steps_unprotect(uintptr_t address)
{
    for (unsigned i = 0; i < n_ranges; i++)
        if (address - (uintptr_t)ranges[i].address < ranges[i].size)
            return mprotect(ranges[i].address, ranges[i].size, PROT_READ | PROT_WRITE) == 0;
    return false;
}

/* The store is done again, and the trap after it takes the right away again. Any other fault is one. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    int saved = errno;

    if (!steps_unprotect((uintptr_t)info->si_addr))
        (void)signal(number, SIG_DFL);
    else
        at->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    errno = saved;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    int saved = errno;

    (void)number;
    (void)info;
    at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    steps_protect();
    errno = saved;
}

static void on_mark(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
}

static void steps_handle(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

    CHECK(sigaction(number, &action, NULL) == 0);
}

void steps_begin(void)
{
    steps_handle(SIGSEGV, on_fault);
    steps_handle(SIGTRAP, on_trap);
    steps_handle(SIGUSR2, on_mark);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        child_skip("this process may not be traced");
    steps_protect();
    CHECK(raise(SIGSTOP) == 0);
}

void steps_end(void)
{
    CHECK(raise(SIGUSR2) == 0);
}

#else

void steps_begin(void)
{
    child_skip("single instructions are stepped on x86-64 only");
}

void steps_end(void) {}

#endif

/* ---- in the parent ----------------------------------------------------------------------------------------------- */

static char where[64];

const char *steps_where(void)
{
    return where;
}

/* What changes nothing that others see; the first two are the handlers' own. */
static bool steps_is_private(uint64_t nr)
{
    switch (nr) {
    case SYS_mprotect:
    case SYS_rt_sigreturn:
    case SYS_rt_sigprocmask:
    case SYS_rt_sigaction:
    case SYS_sched_yield:
    case SYS_clock_gettime:
    case SYS_clock_nanosleep:
    case SYS_brk:
    case SYS_futex:
    case SYS_getrandom:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_tgkill:
        return true;
    default:
        return false;
    }
}

/* Waiting for the same thing again is no further step. */
static bool steps_is_wait(uint64_t nr)
{
    return nr == SYS_recvmsg || nr == SYS_poll || nr == SYS_ppoll;
}

/* Is this stop before a system call that counts? */
static bool steps_is_call(pid_t child, uint64_t *last)
{
    struct ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof(info), &info) < 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY || steps_is_private(info.entry.nr) ||
        (steps_is_wait(info.entry.nr) && steps_is_wait(*last)))
        return false;
    *last = info.entry.nr;
    (void)snprintf(where, sizeof(where), "system call %llu", (unsigned long long)info.entry.nr);
    return true;
}

static int steps_wait(pid_t child)
{
    int status;

    while (waitpid(child, &status, __WALL) < 0)
        if (errno != EINTR)
            test_fail_errno("waitpid", __FILE__, __LINE__);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
        test_skip("a child may not be traced here");
    if (!WIFSTOPPED(status))
        fail_msg("the child ended by itself: status 0x%x", (unsigned)status);
    return WSTOPSIG(status);
}

bool steps_run(pid_t child, unsigned n)
{
    uint64_t last = UINT64_MAX;
    int stop = steps_wait(child);

    assert_int_equal(stop, SIGSTOP);
    assert_ok(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)));
    stop = 0;
    for (unsigned steps = 0; steps < STEPS_MAX;) {
        assert_ok(ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)stop));
        stop = steps_wait(child);
        if (stop == SIGUSR2)
            return false;
        if (stop == SIGSEGV) {
            last = UINT64_MAX;
            (void)snprintf(where, sizeof(where), "a store");
        }
        if (stop == SIGSEGV || (stop == SYSCALL_STOP && steps_is_call(child, &last)))
            if (steps++ == n)
                return true;
        if (stop == SYSCALL_STOP)
            stop = 0;
    }
    fail_msg("after %d steps the child is not done", STEPS_MAX);
    return false;
}

/* At a store, its handler has to hear of it. */
void steps_let_go(pid_t child)
{
    siginfo_t info;
    int number = ptrace(PTRACE_GETSIGINFO, child, NULL, &info) == 0 && info.si_signo == SIGSEGV ? SIGSEGV : 0;

    assert_ok(ptrace(PTRACE_DETACH, child, NULL, (void *)(intptr_t)number));
}
