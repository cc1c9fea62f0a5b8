/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the filters of sandbox.h as C, for the machine that memoryd is built for. Runs during the build only.
 *
 * The lists are of what was seen (strace over the tests), with the relatives that other C libraries, machines and
 * kernels have instead. A name that libseccomp does not know, or that the machine does not have, is skipped.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/pidfd.h"
#include "sandbox/sandbox.h"

/* What becomes of a call, in each sandbox. */
enum verdict {
    OTHER, /* as of all that are not in the table: the keeper's are allowed, the others' are ENOSYS */
    ALLOW,
    KILL,
};

static const struct {
    enum verdict verdicts[SANDBOX_N];
    const char *names;
} sets[] = {
    /* No process of memoryd of any version makes these: other processes, the kernel itself, the machine, privileges,
     * and what has been a way into the kernel too often. */
    {{[SANDBOX_KEEPER] = KILL,
      [SANDBOX_BROKER] = KILL,
      [SANDBOX_LONE_BROKER] = KILL,
      [SANDBOX_WORKER] = KILL,
      [SANDBOX_DOOR] = KILL},
     "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd perf_event_open bpf userfaultfd io_uring_setup "
     "io_uring_enter io_uring_register add_key keyctl request_key fanotify_init open_by_handle_at modify_ldt vmsplice "
     "mount umount umount2 move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr pivot_root chroot setns "
     "unshare mknod mknodat init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff "
     "acct quotactl quotactl_fd syslog iopl ioperm vhangup sethostname setdomainname settimeofday clock_settime "
     "clock_adjtime adjtimex stime setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups "
     "capset personality"},

    /* of every thread: memory, files, threads */
    {{[SANDBOX_BROKER] = ALLOW, [SANDBOX_LONE_BROKER] = ALLOW, [SANDBOX_WORKER] = ALLOW},
     "mremap munmap brk madvise mbind set_mempolicy get_mempolicy move_pages set_mempolicy_home_node memfd_create "
     "mincore mseal membarrier "
     "read write readv writev pread64 pwrite64 lseek _llseek close dup dup2 dup3 fcntl fcntl64 fstat fstat64 stat "
     "lstat newfstatat fstatat64 statx fstatfs ftruncate ftruncate64 fallocate fchmod open openat openat2 readlink "
     "readlinkat poll ppoll sendmsg setsockopt getsockopt "
     "futex futex_time64 futex_waitv futex_wait futex_wake set_robust_list rseq gettid getpid exit exit_group "
     "restart_syscall rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack tgkill sched_yield sched_getaffinity "
     "sched_setaffinity sched_getscheduler sched_setattr sched_getattr sched_getparam getpriority getcpu "
     "clock_gettime clock_gettime64 clock_getres clock_nanosleep nanosleep gettimeofday time getrandom prctl uname "
     "geteuid getuid"},

    /* of the loop and the cleaner, of starting threads, of looking up users, and of a program that starts */
    {{[SANDBOX_BROKER] = ALLOW, [SANDBOX_LONE_BROKER] = ALLOW},
     "epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 select pselect6 _newselect eventfd "
     "eventfd2 timerfd_create timerfd_settime timerfd_gettime pipe pipe2 inotify_init inotify_init1 "
     "inotify_add_watch inotify_rm_watch flock recvmsg recvfrom recvmmsg sendto sendmmsg connect accept accept4 "
     "shutdown getsockname getpeername access faccessat faccessat2 getdents getdents64 statfs getcwd close_range "
     "pidfd_open getppid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid getrusage getrlimit "
     "setrlimit prlimit64 ugetrlimit sched_setscheduler sched_get_priority_max sched_get_priority_min sysinfo times "
     "capget rt_sigpending rt_sigtimedwait get_robust_list set_tid_address set_thread_area arch_prctl mlock munlock "
     "msync seccomp kill wait4 waitid"},

    /* of a door, which asks what a descriptor is of, and opens nothing; an assertion that fails is its end, too */
    {{[SANDBOX_DOOR] = ALLOW},
     "recvmsg sendmsg sendto poll ppoll close fcntl fcntl64 fstat fstat64 newfstatat fstatat64 statx fstatfs readlink "
     "readlinkat lseek _llseek getrandom clock_gettime clock_gettime64 geteuid brk munmap exit exit_group "
     "restart_syscall rt_sigreturn rt_sigprocmask gettid getpid tgkill"},

    /* of the keeper, and so of a broker that may become it */
    {{[SANDBOX_BROKER] = KILL, [SANDBOX_LONE_BROKER] = ALLOW, [SANDBOX_WORKER] = KILL, [SANDBOX_DOOR] = KILL},
     "execve execveat fork vfork"},
    {{[SANDBOX_LONE_BROKER] = ALLOW},
     "clone clone3 pidfd_send_signal signalfd signalfd4 bind listen umask unlink unlinkat mkdir "
     "mkdirat rmdir chdir setsid chmod fchmodat rename renameat renameat2 link linkat symlink symlinkat setpriority"},
};

static _Noreturn void give_up(const char *what, int r)
{
    (void)fprintf(stderr, "make-filters: %s: %s\n", what, strerror(-r));
    exit(1);
}

/* A call that this library or machine does not have needs no rule. */
static void add_rule(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n,
                     const struct scmp_arg_cmp *arguments)
{
    int number = seccomp_syscall_resolve_name(name);
    int r = number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(filter, action, number, n, arguments);

    if (r && r != -EDOM)
        give_up(name, r);
}

static void add_names(scmp_filter_ctx filter, uint32_t action, const char *names)
{
    char *copy = strdup(names), *rest;

    if (!copy)
        give_up("strdup", -ENOMEM);
    for (const char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        add_rule(filter, action, name, 0, NULL);
    free(copy);
}

static void add_sets(scmp_filter_ctx filter, enum sandbox sandbox)
{
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        switch (sets[i].verdicts[sandbox]) {
        case OTHER:
            break;
        case ALLOW:
            add_names(filter, SCMP_ACT_ALLOW, sets[i].names);
            break;
        case KILL:
            add_names(filter, SCMP_ACT_KILL_PROCESS, sets[i].names);
            break;
        }
    }
}

/* With (argument & mask) == value. */
static void add_rule_if(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned argument, uint64_t mask,
                        uint64_t value)
{
    const struct scmp_arg_cmp only = SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value);

    add_rule(filter, action, name, 1, &only);
}

/* Memory that was written may not be executed. */
static void add_mapping(scmp_filter_ctx filter)
{
    static const char *const names[] = {"mmap", "mmap2"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        add_rule_if(filter, SCMP_ACT_ALLOW, names[i], 2, PROT_EXEC, 0);
        add_rule_if(filter, SCMP_ACT_ALLOW, names[i], 2, PROT_EXEC | PROT_WRITE, PROT_EXEC);
        add_rule_if(filter, SCMP_ACT_KILL_PROCESS, names[i], 2, PROT_EXEC | PROT_WRITE, PROT_EXEC | PROT_WRITE);
    }
    add_rule_if(filter, SCMP_ACT_ALLOW, "mprotect", 2, PROT_EXEC, 0);
    add_rule_if(filter, SCMP_ACT_KILL_PROCESS, "mprotect", 2, PROT_EXEC, PROT_EXEC);
}

/* A name service may ask for a socket of another family, and does without. */
static void add_sockets(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp other = SCMP_A0(SCMP_CMP_NE, AF_UNIX);

    add_rule_if(filter, SCMP_ACT_ALLOW, "socket", 0, UINT32_MAX, AF_UNIX);
    add_rule(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", 1, &other);
    add_rule_if(filter, SCMP_ACT_ALLOW, "socketpair", 0, UINT32_MAX, AF_UNIX);
}

static void add_ioctls(scmp_filter_ctx filter)
{
    /* isatty() is the C library's */
    static const unsigned requests[] = {SIOCOUTQ, SIOCINQ, TCGETS, PIDFD_END_REQUEST};

    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
        add_rule_if(filter, SCMP_ACT_ALLOW, "ioctl", 1, UINT32_MAX, requests[i]);
}

/* Threads only. What clone3() is to make cannot be seen; without it the C library calls clone(). */
static void add_threads(scmp_filter_ctx filter)
{
    add_rule_if(filter, SCMP_ACT_ALLOW, "clone", 0, CLONE_THREAD, CLONE_THREAD);
    add_rule_if(filter, SCMP_ACT_KILL_PROCESS, "clone", 0, CLONE_THREAD, 0);
}

static scmp_filter_ctx make_filter(enum sandbox sandbox)
{
    scmp_filter_ctx filter = seccomp_init(sandbox == SANDBOX_KEEPER ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS));

    if (!filter)
        give_up("seccomp_init", -ENOMEM);
    if (seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) ||
        seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2))
        give_up("seccomp_attr_set", -EINVAL);
    add_sets(filter, sandbox);
    if (sandbox == SANDBOX_KEEPER)
        return filter;
    add_mapping(filter);
    if (sandbox == SANDBOX_DOOR)
        return filter;
    add_sockets(filter); /* a worker's are the journal's */
    if (sandbox == SANDBOX_BROKER || sandbox == SANDBOX_LONE_BROKER)
        add_ioctls(filter);
    if (sandbox == SANDBOX_BROKER)
        add_threads(filter);
    return filter;
}

static void print_filter(const char *name, enum sandbox sandbox)
{
    scmp_filter_ctx filter = make_filter(sandbox);
    FILE *compiled = tmpfile();
    struct sock_filter instruction;
    int r = compiled ? seccomp_export_bpf(filter, fileno(compiled)) : -errno;

    if (r)
        give_up("seccomp_export_bpf", r);
    rewind(compiled);
    printf("static const struct sock_filter filter_%s[] = {\n", name);
    while (fread(&instruction, sizeof(instruction), 1, compiled) == 1)
        printf("    {0x%04x, %u, %u, 0x%08x},\n", instruction.code, instruction.jt, instruction.jf, instruction.k);
    printf("};\n\n");
    (void)fclose(compiled);
    seccomp_release(filter);
}

int main(void)
{
    /* what the kernel of this machine can do is not what that of another one can */
    (void)seccomp_api_set(3);
    printf("/* Made by make-filters.c. */\n#include <linux/filter.h>\n\n");
#define X(NAME) print_filter(#NAME, SANDBOX_##NAME);
    SANDBOXES(X)
#undef X
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
