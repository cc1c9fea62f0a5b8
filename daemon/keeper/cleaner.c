/* SPDX-License-Identifier: Apache-2.0 */
/* See cleaner.h. */

#include "keeper/cleaner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sandbox/sandbox.h"
#include "sys/death.h"
#include "sys/schedule.h"
#include "sys/sys.h"
#include "sys/text.h"

/* What works in the kernel for longer is not waited for: the keeper does not wait for it either. */
#define REST_MS 5000
#define LOOK_NS 100000
/* What a broker has open at first besides what it is given. */
#define FDS_BESIDE 64
/* Clients and the next broker wait for it: it goes before threads that compute. */
#define SLICE_NS UINT64_C(100000)

/* The table has no descriptor from this number on. */
static int cleaner_table_size(void)
{
    char text[4096];
    uint64_t size;

    if (!text_read(text, sizeof(text), "%s/self/status", sys->proc) || !text_number_after(text, "\nFDSize:", &size))
        return 0;
    return (int)size;
}

/* A socket that was accepted has the listener's address; socketpairs, which others share, have none. */
static bool cleaner_is_connection(int fd)
{
    struct sockaddr_un address;
    socklen_t size = sizeof(address);
    int type = 0, listens = 1;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof(type)}) < 0 || type != SOCK_SEQPACKET ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &(socklen_t){sizeof(listens)}) < 0 || listens)
        return false;
    return getsockname(fd, (struct sockaddr *)&address, &size) == 0 && address.sun_family == AF_UNIX &&
           size > offsetof(struct sockaddr_un, sun_path);
}

static void cleaner_shut_connections(int end)
{
    for (int fd = STDERR_FILENO + 1; fd < end; fd++)
        if (cleaner_is_connection(fd))
            (void)shutdown(fd, SHUT_RDWR);
}

/* A memfd that commit.c has made, and has not sealed yet? Others have the same name only on purpose. */
static bool cleaner_is_unfinished(int fd, int seals)
{
    static const char name[] = "/memfd:memoryd-";
    char path[64], target[64];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return !(seals & (F_SEAL_SHRINK | F_SEAL_GROW)) && readlink(path, target, sizeof(target)) > (ssize_t)sizeof(name) &&
           !memcmp(target, name, sizeof(name) - 1) && sys->fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
           (st.st_mode & ALLPERMS) == 0600;
}

/*
 * What is unfinished the next broker does not know, so its pages go before that starts. They go even if the broker has
 * them mapped, whose memory stays as long as its process. The kernel refuses this for all that is sealed, which is
 * everything else.
 */
static void cleaner_empty_unfinished(int end)
{
    for (int fd = STDERR_FILENO + 1; fd < end; fd++) {
        int seals = sys->get_seals(fd);

        if (seals >= 0 && cleaner_is_unfinished(fd, seals))
            (void)sys->ftruncate(fd, 0);
    }
}

/* Only a memfd or a file of tmpfs has seals, and closing one waits for nobody. */
static void cleaner_close_memory(int end)
{
    for (int fd = STDERR_FILENO + 1; fd < end; fd++)
        if (sys->get_seals(fd) >= 0)
            (void)close(fd);
}

/* When its parent has gone it has another one. */
static bool cleaner_broker_dies(pid_t broker)
{
    struct death_cause cause;

    return getppid() != broker || process_death(broker, &cause) != DEATH_NONE;
}

static void cleaner_await_rest(pid_t broker)
{
    uint64_t until = deadline_after_ms(REST_MS);
    struct death_cause cause;

    while (getppid() == broker && process_death(broker, &cause) < DEATH_HANGS && clock_now_ns() < until)
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

static _Noreturn void cleaner_main(pid_t broker, int link)
{
    static const struct sys_schedule prompt = {.policy = SCHED_OTHER, .slice = SLICE_NS};
    sigset_t wake;
    int end;

    (void)prctl(PR_SET_NAME, "memoryd-cleaner");
    (void)sys_schedule_self(&prompt);
    (void)prctl(PR_SET_PDEATHSIG, CLEANER_SIGNAL);
    (void)sandbox_enter(SANDBOX_BROKER);
    (void)sigemptyset(&wake);
    (void)sigaddset(&wake, CLEANER_SIGNAL);
    /* anybody may send it the signal; it believes the kernel */
    while (!cleaner_broker_dies(broker))
        (void)sigwaitinfo(&wake, NULL);
    end = cleaner_table_size();
    cleaner_shut_connections(end);
    cleaner_await_rest(broker);
    cleaner_empty_unfinished(end);
    (void)shutdown(link, SHUT_RDWR);
    /* of what ends with that, inotify tells */
    cleaner_close_memory(end);
    _exit(0);
}

pid_t cleaner_start(int link, size_t most)
{
    int last = fcntl(link, F_DUPFD_CLOEXEC, (int)(most + FDS_BESIDE));
    sigset_t all, before;
    pid_t broker = getpid();
    pid_t pid;

    /* The table is large enough by now. When a table grows that is shared, the kernel waits for all processors. */
    (void)fd_close(last);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid = sys_fork_sharing_fds();
    if (!pid)
        cleaner_main(broker, link);
    if (pid < 0)
        pid = -errno;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

void cleaner_stop(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}
