/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the broker listens, and how a private one gets into the background.
 *
 * Many clients may call --autostart at once. The lock beside the socket makes one of them the broker's starter; the
 * others wait until that broker answers. The starter waits as well: when it returns, a connect works.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "app/app.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/fd_stash.h"
#include "keeper/service.h"
#include "log/log.h"

#define SYSTEM_FOLDER "/run/memoryd"
/* How long the loser of a race waits for the winner to serve. */
#define WINNER_PATIENCE_MS 30000

bool place_is_private(const struct app_options *options, const char *path)
{
    if (options->autostart)
        return true;
    return geteuid() != 0 && strncmp(path ? path : "", SYSTEM_FOLDER "/", strlen(SYSTEM_FOLDER "/")) != 0;
}

/* Nobody else may plant or clean anything in a user's runtime folder. */
static bool place_check_runtime(const char *folder)
{
    struct stat st;

    if (lstat(folder, &st) < 0)
        log_error("cannot look at the folder %s (XDG_RUNTIME_DIR): %s", folder, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        log_error("%s (XDG_RUNTIME_DIR) is not a folder", folder);
    else if (st.st_uid != geteuid())
        log_error(
            "the folder %s (XDG_RUNTIME_DIR) belongs to uid %u, who could put another socket in the place of ours",
            folder, st.st_uid);
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        log_error("the folder %s (XDG_RUNTIME_DIR) is open to others, and its mode must be 0700 (chmod go-rwx)",
                  folder);
    else
        return true;
    return false;
}

/* Makes the folder there, since what it makes itself is nobody else's. */
static int place_in_runtime(const char *runtime, char **ret)
{
    _cleanup_free_ char *folder = NULL;

    if (asprintf(&folder, "%s/memoryd", runtime) < 0)
        return -1;
    /* whoever locks the path says what is wrong with the folder */
    (void)mkdir(folder, 0700);
    return asprintf(ret, "%s/memoryd.sock", folder);
}

char *place_socket(const struct app_options *options)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    char *path = NULL;
    int r;

    if (options->socket) {
        r = 0;
        path = strdup(options->socket);
    } else if (geteuid() == 0 && !options->autostart) {
        r = asprintf(&path, "%s/memoryd.sock", SYSTEM_FOLDER);
    } else if (runtime && *runtime == '/') {
        if (!place_check_runtime(runtime))
            return NULL;
        r = place_in_runtime(runtime, &path);
    } else {
        log_error("no socket path: XDG_RUNTIME_DIR is not set, so --socket is required");
        return NULL;
    }
    if (r < 0 || !path) {
        log_error("no memory");
        return NULL;
    }
    return path;
}

char *place_of(int listener)
{
    struct sockaddr_un address = {0};
    socklen_t size = sizeof(address);

    if (getsockname(listener, (struct sockaddr *)&address, &size) < 0 || address.sun_family != AF_UNIX ||
        !address.sun_path[0])
        return NULL;
    return strndup(address.sun_path, sizeof(address.sun_path));
}

static int place_take_socket(struct store *store, int fd)
{
    if (fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0) {
        log_error("cannot use the socket that the service manager passed: %s", strerror(errno));
        return EXIT_FAILED;
    }
    /* a lock belongs to a socket of our own */
    (void)fd_close(store_remove(store, KEEPER_KEY(KEEPER_LOCK, 0)));
    (void)store_take_in(store, KEEPER_LISTENER, 0, fd);
    return EXIT_OK;
}

static void place_take_metrics(struct store *store, int fd)
{
    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0) {
        log_error("the socket for metrics that the service manager passed is not one of ListenStream=");
        (void)fd_close(fd);
        return;
    }
    (void)store_take_in(store, KEEPER_METRICS, 0, fd);
}

/* What the service manager passes without a name of ours. */
struct passed_sockets {
    int listener, metrics; /* or -1: the last of each kind */
    unsigned n_listeners;
    unsigned n_unknown; /* were closed, and the log says so */
};

static void passed_add_metrics(struct passed_sockets *passed, int fd)
{
    if (passed->metrics >= 0)
        log_error("the service manager passed several sockets for metrics, and only the last one is served: an empty "
                  "ListenStream= above another one takes the unit's own out");
    (void)fd_close(passed->metrics);
    passed->metrics = fd;
}

/* The type tells what a socket is for, since its unit may be called anything. */
static void passed_add(struct passed_sockets *passed, const char *name, int fd)
{
    if (sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) > 0) {
        (void)fd_close(passed->listener);
        passed->listener = fd;
        passed->n_listeners++;
        return;
    }
    log_error(
        "the socket \"%s\" that the service manager passed is not one of ListenSequentialPacket=; one for metrics "
        "needs FileDescriptorName=%s",
        name, SERVICE_NAME_METRICS);
    (void)fd_close(fd);
    passed->n_unknown++;
}

/* Stores those with names of ours; the others are sockets. */
static void sort_passed(struct store *store, char *const *names, int n, struct passed_sockets *ret)
{
    unsigned n_fd_stash_ends = 0;

    *ret = (struct passed_sockets){.listener = -1, .metrics = -1};
    for (int i = 0; i < n; i++) {
        int fd = SD_LISTEN_FDS_START + i;

        if (!strcmp(names[i], SERVICE_NAME_FD_STASH))
            (void)store_take_in(store, KEEPER_FD_STASH, n_fd_stash_ends++, fd);
        else if (!strcmp(names[i], SERVICE_NAME_LEDGER))
            (void)store_take_in(store, KEEPER_LEDGER, 0, fd);
        else if (!strcmp(names[i], SERVICE_NAME_LISTENER))
            (void)store_take_in(store, KEEPER_LISTENER, 0, fd);
        else if (!strcmp(names[i], SERVICE_NAME_METRICS))
            passed_add_metrics(ret, fd);
        else
            passed_add(ret, names[i], fd);
    }
}

int place_activated(struct store *store, bool want_socket, bool *ret_activated)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names);
    struct passed_sockets passed;
    int r = 0;

    if (n <= 0)
        return EXIT_OK;
    sort_passed(store, names, n, &passed);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    /* before anything is taken out of the store, where it waits for a start that goes well */
    if (want_socket && (passed.n_listeners > 1 || (!passed.n_listeners && passed.n_unknown))) {
        if (passed.n_listeners)
            log_error("the service manager passed %u sockets of ListenSequentialPacket=; one is wanted",
                      passed.n_listeners);
        return EXIT_FAILED;
    }
    /* what is in the fd stash is newer than what lies beside it */
    for (uint64_t i = 0; i < 2 && !r; i++) {
        int outer = store_get(store, KEEPER_KEY(KEEPER_FD_STASH, i));

        if (outer >= 0)
            r = fd_stash_drain(outer, store_take_in, store);
    }
    if (r) {
        log_error("cannot take what the service manager kept: %s", strerror(-r));
        return EXIT_FAILED;
    }
    /* what was passed before is not passed any more where the socket's unit was stopped */
    (void)fd_close(store_remove(store, KEEPER_KEY(KEEPER_METRICS, 0)));
    if (passed.metrics >= 0)
        place_take_metrics(store, passed.metrics);
    if (!want_socket || passed.listener < 0) {
        (void)fd_close(passed.listener);
        return EXIT_OK;
    }
    *ret_activated = true;
    return place_take_socket(store, passed.listener);
}

int place_wait_for_winner(const char *path)
{
    uint64_t deadline = deadline_after_ms(WINNER_PATIENCE_MS);

    while (!deadline_passed(deadline, clock_now_ns())) {
        if (socket_path_answers(path))
            return EXIT_OK;
        (void)poll(NULL, 0, 10);
    }
    log_error("another broker is starting on %s, but does not become ready", path);
    return EXIT_FAILED;
}

/* In the starter, whose exit status is the answer to "does it serve?" */
static int wait_for_child(pid_t pid, int ready)
{
    char byte;
    ssize_t n;
    int status;

    do
        n = read(ready, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        return EXIT_OK;
    /* the child ended without having served */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

void place_shed_inheritance(void)
{
    const struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;

#if HAVE_CLOSE_RANGE
    (void)close_range(STDERR_FILENO + 1, UINT32_MAX, 0);
#endif
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    /* with SIGCHLD ignored, nobody learns how a child ended */
    (void)sigaction(SIGCHLD, &dfl, NULL);
    /* we would tell the starter's service manager that the starter is ready */
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

bool place_daemonise(struct socket_path *lock, int *ret_ready, int *ret_status)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        log_error("cannot go into the background: %s", strerror(errno));
        *ret_status = EXIT_FAILED;
        return false;
    }
    if (pid) {
        fd_close(ends[1]);
        *ret_status = wait_for_child(pid, ends[0]);
        socket_path_forget(lock); /* the child owns it */
        return false;
    }
    fd_close(ends[0]);
    (void)setsid();
    *ret_ready = ends[1];
    return true;
}

bool place_has_no_terminal(void)
{
    struct stat ours;
    struct stat null;

    return fstat(STDERR_FILENO, &ours) == 0 && stat("/dev/null", &null) == 0 && S_ISCHR(ours.st_mode) &&
           ours.st_rdev == null.st_rdev;
}

void place_leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* a program that reads the starter's output to its end must not wait for the broker's */
    if (null >= 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            (void)dup2(null, fd);
        fd_close(null);
    }
    log_to_journal();
}

void place_send_ready(int ready)
{
    place_leave_terminal();
    ssize_t ignored = write(ready, "", 1);
    (void)ignored;
    fd_close(ready);
}
