/* SPDX-License-Identifier: Apache-2.0 */
/* See start.h. */

#include "keeper/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "log/log.h"

#define OPTION_BYTES 64
/* Each option twice is fewer. */
#define ARGUMENTS_MAX 36
/* For a few system calls, and what a sanitizer adds. */
#define STACK_BYTES (64 << 10)

/* Variables that a service manager sets for its one process. */
static const char *const keepers_own[] = {"NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_", "FDSTORE=", NULL};
static const char *const hidden_options[] = {"--" START_OPTION_BROKER "=", "--" START_OPTION_FD_STASH "=", NULL};

static bool starts_with_one_of(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (!strncmp(text, *prefixes, strlen(*prefixes)))
            return true;
    return false;
}

/* The path of a program; where its file was replaced, that of the new one. */
static char *start_path_of(const char *target, size_t length)
{
    static const char deleted[] = " (deleted)";
    size_t n = sizeof(deleted) - 1;

    return strndup(target, length > n && !memcmp(target + length - n, deleted, n) ? length - n : length);
}

int start_init(struct start *start, char *const *argv)
{
    char target[PATH_MAX];
    ssize_t length = readlink(START_THIS_PROGRAM, target, sizeof(target));
    size_t n = 0;
    _cleanup_free_ char **arguments = NULL;
    _cleanup_free_ char **variables = NULL;

    while (argv[n])
        n++;
    arguments = calloc(n + 2, sizeof(*arguments));
    if (!arguments)
        return -ENOMEM;
    arguments[0] = argv[0];
    for (size_t i = 1, to = 2; i < n; i++)
        if (!starts_with_one_of(argv[i], hidden_options))
            arguments[to++] = argv[i];
    for (n = 0; environ[n]; n++)
        ;
    variables = calloc(n + 1, sizeof(*variables));
    if (!variables)
        return -ENOMEM;
    for (size_t i = 0, to = 0; environ[i]; i++)
        if (!starts_with_one_of(environ[i], keepers_own))
            variables[to++] = environ[i];
    *start = (struct start){.argv = steal_ptr(&arguments), .environ = steal_ptr(&variables)};
    if (length > 0)
        start->path = start_path_of(target, (size_t)length);
    return 0;
}

void start_deinit(struct start *start)
{
    free(start->argv);
    free(start->environ);
    free(start->path);
    *start = (struct start){0};
}

static void start_unblock_signals(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child, for good: a signal to the whole process group, as a terminal sends it, is not for the broker, nor is an
 * abort that is meant for the keeper. */
static void start_ignore_signals(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGABRT};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        (void)sigaction(signals[i], &ignore, NULL);
    start_unblock_signals();
}

struct child {
    const struct start *start;
    int fd;
    int socket;
    int error; /* of exec; 0: the child is the broker by now */
};

/* In the child, which has the keeper's memory and, at first, its table of descriptors, too. */
static int start_child_main(void *userdata)
{
    struct child *child = userdata;
    const struct start *start = child->start;

    start_ignore_signals();
    /* The number of the other program may be high. Then, as without the call, exec copies the table and closes nearly
     * all of it. */
#if HAVE_CLOSE_RANGE
    if (child->fd < child->socket)
        (void)close_range((unsigned)child->socket + 1, UINT32_MAX, CLOSE_RANGE_UNSHARE);
#endif
    (void)fcntl(child->socket, F_SETFD, 0);
    if (child->fd >= 0)
        (void)fexecve(child->fd, start->argv, start->environ);
    else
        (void)execve(START_THIS_PROGRAM, start->argv, start->environ);
    child->error = errno;
    _exit(EXIT_FAILURE);
}

/*
 * The broker gets what the keeper holds later, in packets. A fork would copy the table of all those descriptors, and
 * exec close it again: milliseconds, while clients wait. So the child shares the table until it gets one of its own
 * with the lowest numbers only, and the keeper stands still for those microseconds.
 */
pid_t start_broker(const struct start *start, int fd, int socket)
{
    _Alignas(16) char stack[STACK_BYTES];
    struct child child = {.start = start, .fd = fd, .socket = socket};
    char option[OPTION_BYTES];
    pid_t pid;

    (void)snprintf(option, sizeof(option), "--" START_OPTION_BROKER "=%d", socket);
    start->argv[1] = option;
    pid = clone(start_child_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &child);
    if (pid < 0)
        return -errno;
    if (child.error)
        log_error("cannot execute the broker's program: %s", strerror(child.error));
    return pid;
}

pid_t start_preflight(const struct start *start, int program, int output, const char *socket)
{
    char *argv[ARGUMENTS_MAX] = {start->argv[0], (char *)"--version", NULL};
    size_t n = 1;
    pid_t pid;

    if (socket) {
        for (char **argument = &start->argv[2]; *argument; argument++) {
            if (n == ARGUMENTS_MAX - 4)
                return -E2BIG;
            argv[n++] = *argument;
        }
        /* of an option that is given twice the latter holds */
        if (*socket) {
            argv[n++] = (char *)"--socket";
            argv[n++] = (char *)(uintptr_t)socket;
        }
        argv[n++] = (char *)"--check-config";
        argv[n] = NULL;
    }
    pid = fork();
    if (pid)
        return pid < 0 ? -errno : pid;
    start_unblock_signals();
    if (dup2(output, STDOUT_FILENO) >= 0)
        (void)execveat(program, "", argv, start->environ, AT_EMPTY_PATH);
    log_error("cannot execute %s: %s", start->path, strerror(errno));
    _exit(EXIT_FAILURE);
}

int start_keeper(const struct start *start, int program, const int fd_stash[2])
{
    char option[OPTION_BYTES];
    int r;

    (void)snprintf(option, sizeof(option), "--" START_OPTION_FD_STASH "=%d,%d", fd_stash[0], fd_stash[1]);
    start->argv[1] = option;
    (void)fcntl(fd_stash[0], F_SETFD, 0);
    (void)fcntl(fd_stash[1], F_SETFD, 0);
    if (program >= 0)
        (void)execveat(program, "", start->argv, environ, AT_EMPTY_PATH);
    else
        (void)execve(START_THIS_PROGRAM, start->argv, environ);
    r = -errno;
    (void)fcntl(fd_stash[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd_stash[1], F_SETFD, FD_CLOEXEC);
    return r;
}

bool start_read_option(const char *text, int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char *end;
        unsigned long fd = strtoul(text, &end, 10);

        if (end == text || fd > INT_MAX || *end != (i + 1 < n ? ',' : '\0'))
            return false;
        if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
            return false;
        fds[i] = (int)fd;
        text = end + 1;
    }
    return true;
}
