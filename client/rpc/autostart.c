/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a private broker.
 *
 * `memoryd --autostart` does the difficult part: of several that start at once one wins, the broker goes into the
 * background, and the program ends with 0 as soon as a broker, its own or another's, serves. Here it is run with no
 * descriptor of ours, default signals and "/" as its folder, and without output: a library does not write to a
 * terminal.
 */
#include "rpc/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/fail.h"
#include "rpc/interrupt.h"

#define AUTOSTART_POLL_MS 5

static int autostart_spawn(const char *program, pid_t *pid)
{
    char *argv[] = {(char *)program, (char *)"--autostart", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int r;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    /* not close-on-exec: these are for the program */
    r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 1; !r && fd <= 2; fd++)
        r = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    if (!r)
        r = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (!r)
        r = posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (!r)
        r = posix_spawnattr_setsigmask(&attr, &none);
    if (!r)
        r = posix_spawnattr_setsigdefault(&attr, &all);
    if (!r)
        r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!r)
        r = posix_spawnp(pid, program, &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

int autostart_broker(const char *paths, uint64_t deadline)
{
    const char *installed = MEMORYD_PROGRAM;
    const char *program = access(installed, X_OK) ? "memoryd" : installed;
    bool interrupted = false;
    pid_t pid;
    int status;
    int r;

    r = autostart_spawn(program, &pid);
    if (r)
        return fail_with(r == ENOENT ? ENOENT : ECONNREFUSED,
                         "no broker answers at %s, and %s cannot be run: start one, or set MEMORYD_SOCKET", paths,
                         program);
    for (;;) {
        pid_t ended = waitpid(pid, &status, WNOHANG);

        if (ended == pid)
            break;
        /* the calling program ignores its children or reaps them itself: the socket will tell */
        if (ended < 0 && errno == ECHILD)
            return 0;
        if (interrupted || deadline_passed(deadline, clock_now_ns())) {
            kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
            if (interrupted)
                return interrupt_fail();
            return fail_with(ETIMEDOUT, "%s --autostart did not get a broker to serve in time", program);
        }
        poll(NULL, 0, AUTOSTART_POLL_MS);
        interrupted = interrupt_is_wanted();
    }
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    return fail_with(ECONNREFUSED,
                     "no broker answers at %s, and %s --autostart could not start one: run it by hand to see why",
                     paths, program);
}
