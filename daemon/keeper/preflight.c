/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In an upgrade the installed program takes the keeper's place with everything that is held, and there is no way back:
 * if it does not start, for want of a library, all is lost. So it has to show beforehand that it runs, and is memoryd,
 * by printing its version; and, in a second run, that it finds no mistakes in the configuration, which may be written
 * for the running version. The broker goes on meanwhile, and is told if it cannot be replaced.
 *
 * What is executed in the end is the very file that was tried, whatever is put in its place meanwhile; and nobody but
 * root and the user we run as may have written it.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/keeper.h"
#include "keeper/link.h"
#include "log/log.h"

#define PATIENCE_MS 10000
#define NAME        "memoryd "

static void preflight_refuse(struct keeper *keeper, int error)
{
    if (keeper->state == KEEPER_SERVING)
        keeper_send(keeper, PACKET_UPGRADE_REFUSED, (uint32_t)error, NULL);
}

/* Where the broker listens, which decides which configuration it reads. "" if the socket has no path. */
static const char *preflight_socket_path(const struct keeper *keeper, struct sockaddr_un *address)
{
    int listener = store_get(&keeper->store, KEEPER_KEY(KEEPER_LISTENER, 0));
    socklen_t size = sizeof(*address) - 1;

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (listener < 0 || getsockname(listener, (struct sockaddr *)address, &size) < 0)
        return "";
    return address->sun_path;
}

/* Opens the installed program, unless its first run did. 0 or a negative errno, after the reason was logged if that
 * does not say it. */
static int preflight_open(struct keeper *keeper)
{
    const char *path = keeper->start.path;
    _cleanup_close_ int fd = -1;
    struct stat st;

    if (keeper->preflight.reads_config && keeper->program >= 0)
        return 0;
    keeper->program = fd_close(keeper->program);
    if (!path)
        return -ENOENT;
    fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & S_IWOTH) {
        log_error("%s can be written by others than root and uid %u: mode %o, uid %u", path, (unsigned)geteuid(),
                  st.st_mode & ALLPERMS, st.st_uid);
        return -EPERM;
    }
    keeper->program = steal_fd(&fd);
    return 0;
}

static int preflight_start_run(struct keeper *keeper)
{
    _cleanup_close_ int theirs = -1;
    struct sockaddr_un address;
    int ends[2];
    pid_t pid;
    int r = preflight_open(keeper);

    if (r)
        return r;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    keeper->preflight.output = ends[0];
    theirs = ends[1];
    pid = start_preflight(&keeper->start, keeper->program, theirs,
                          keeper->preflight.reads_config ? preflight_socket_path(keeper, &address) : NULL);
    if (pid < 0) {
        keeper->preflight.output = fd_close(keeper->preflight.output);
        return pid;
    }
    keeper->preflight.pid = pid;
    keeper->preflight.ms = 0;
    return 0;
}

static void preflight_run(struct keeper *keeper)
{
    int r = preflight_start_run(keeper);

    if (!r)
        return;
    log_error("no upgrade: cannot execute %s: %s", keeper->start.path ? keeper->start.path : "the installed program",
              strerror(-r));
    preflight_refuse(keeper, -r);
}

void keeper_preflight_begin(struct keeper *keeper)
{
    /* one answer serves all that ask meanwhile */
    if (keeper->goal != KEEPER_GOAL_SERVE || keeper->preflight.pid)
        return;
    keeper->preflight.reads_config = false;
    preflight_run(keeper);
}

void keeper_preflight_ended(struct keeper *keeper, const siginfo_t *info)
{
    char text[sizeof(NAME)] = "";
    bool read_config = keeper->preflight.reads_config;
    bool good = info->si_code == CLD_EXITED && !info->si_status;

    if (!read_config)
        good = good && read(keeper->preflight.output, text, sizeof(NAME) - 1) > 0 && !strcmp(text, NAME);
    keeper->preflight = (struct preflight){.output = fd_close(keeper->preflight.output)};
    if (!good)
        keeper->program = fd_close(keeper->program);
    if (good && read_config) {
        keeper_begin_upgrade(keeper);
    } else if (good) {
        keeper->preflight.reads_config = true;
        preflight_run(keeper);
    } else if (read_config) {
        log_error("no upgrade: %s finds mistakes in the configuration", keeper->start.path);
        preflight_refuse(keeper, KEEPER_REFUSED_CONFIG);
    } else {
        log_error("no upgrade: %s does not run, or is not memoryd", keeper->start.path);
        preflight_refuse(keeper, ENOEXEC);
    }
}

void keeper_preflight_tick(struct keeper *keeper)
{
    keeper->preflight.ms += keeper->tick_ms;
    if (keeper->preflight.pid && keeper->preflight.ms > PATIENCE_MS)
        (void)kill(keeper->preflight.pid, SIGKILL);
}
