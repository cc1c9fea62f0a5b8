/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a broker may be, in this order. The next path is tried only if nothing is there, or nobody listens. Any other
 * failure (no permission, a wrong owner) is final: a user whom the system's broker refuses must learn of it, rather
 * than get a private broker unawares.
 */
#include "rpc/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memclient/memclient.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "rpc/fail.h"
#include "rpc/interrupt.h"

#define SYSTEM_SOCKET "/run/memoryd/memoryd.sock"

/* How long a wait for room lasts before it looks up: whether the caller has given up, or a signal asks for that. */
#define CONNECT_WAIT_MS 50

/* Only the user, or root, may serve the socket in the user's folder. */
static int connect_check_owner(int socket, const char *path)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return fail_errno("SO_PEERCRED");
    if (peer.uid != geteuid() && peer.uid)
        return fail_with(EACCES, "%s is served by user %u, not by you (user %u), so it is not used", path,
                         (unsigned)peer.uid, (unsigned)geteuid());
    return 0;
}

uint64_t connect_pause_ns(unsigned attempt)
{
    unsigned shift = attempt < 7 ? attempt : 7;

    return (1 + (clock_now_us() + (uint64_t)getpid()) % (UINT64_C(2) << shift)) * NSEC_PER_MSEC;
}

int connect_once(int socket, const char *path, bool private)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    char text[128];
    int r;

    if (!n || n >= sizeof(address.sun_path))
        return fail_with(ENAMETOOLONG, "%s: a socket's path has 1 to %zu bytes", path, sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, n + 1);
    r = connect(socket, (const struct sockaddr *)&address, sizeof(address));
    if (r < 0) {
        r = errno;
        return fail_with(r, "%s: %s%s", path, strerror_r(r, text, sizeof(text)),
                         r == EACCES ? "; the modes of the socket and its folders keep this user out" : "");
    }
    return private ? connect_check_owner(socket, path) : 0;
}

/*
 * The same, when the queue of those whom the broker has not accepted yet is full. No poll tells when there is room, but
 * a connect() that waits has its place among those who do. -EAGAIN or -EINTR: it is time to look up.
 */
static int connect_wait(int socket, const char *path, bool private)
{
    const struct timeval most = {.tv_usec = CONNECT_WAIT_MS * 1000}, forever = {0};
    int flags = fcntl(socket, F_GETFL), r;

    if (flags < 0 || setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
        fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return fail_errno("waiting until the broker accepts connections");
    r = connect_once(socket, path, private);
    (void)fcntl(socket, F_SETFL, flags);
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever));
    return r;
}

static bool connect_is_absent(int r)
{
    return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}

static int connect_path(const char *path, bool private, uint64_t deadline, struct connected *connected)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return fail_errno("socket");
    r = connect_once(fd, path, private);
    while (r == -EAGAIN || r == -EINTR) {
        if (interrupt_is_wanted())
            return interrupt_fail();
        if (deadline_passed(deadline, clock_now_ns()))
            return fail_with(ETIMEDOUT, "the broker at %s does not accept connections", path);
        r = connect_wait(fd, path, private);
    }
    if (r)
        return r;
    connected->socket = steal_fd(&fd);
    connected->private = private;
    snprintf(connected->path, sizeof(connected->path), "%s", path);
    return 0;
}

/* Nobody listens at any of the paths: one sentence, whatever the kernel said about each. */
static int connect_fail_absent(bool refused, const char *paths)
{
    return fail_with(refused ? ECONNREFUSED : ENOENT, "no broker answers at %s: start memoryd, or set MEMORYD_SOCKET",
                     paths);
}

/* The path in the user's folder, or "" if there is no such folder. */
static void connect_private_path(char *path, size_t size)
{
    const char *folder = secure_getenv("XDG_RUNTIME_DIR");

    if (!folder || folder[0] != '/' || (size_t)snprintf(path, size, "%s/memoryd/memoryd.sock", folder) >= size)
        path[0] = '\0';
}

static bool connect_may_autostart(unsigned autostart)
{
    const char *text;

    if (getauxval(AT_SECURE) || autostart == MEMCLIENT_AUTOSTART_NEVER)
        return false;
    if (autostart == MEMCLIENT_AUTOSTART_ALWAYS)
        return true;
    text = secure_getenv("MEMORYD_AUTOSTART");
    return !text || strcmp(text, "0") != 0;
}

/* Where a broker usually is. If there is none at either path, ECONNREFUSED tells more than ENOENT. */
static int connect_usual(const char *path, uint64_t deadline, struct connected *found)
{
    int first = *path ? connect_path(path, true, deadline, found) : -ENOENT;
    int r;

    if (!connect_is_absent(first))
        return first;
    r = connect_path(SYSTEM_SOCKET, false, deadline, found);
    return connect_is_absent(r) && first == -ECONNREFUSED ? first : r;
}

/* -EINTR if the program wants the wait to end. */
static int connect_pause(unsigned attempt, uint64_t deadline)
{
    uint64_t now = clock_now_ns();
    uint64_t until = deadline_at(now, connect_pause_ns(attempt));

    poll(NULL, 0, deadline_poll_ms(until < deadline ? until : deadline, now));
    return interrupt_is_wanted() ? interrupt_fail() : 0;
}

/* Nobody listens: starts a private broker, where that is wanted. */
static int connect_started(const char *path, unsigned autostart, uint64_t deadline, bool refused,
                           struct connected *found)
{
    char paths[2 * sizeof(found->path)];
    int r;

    snprintf(paths, sizeof(paths), "%s%s" SYSTEM_SOCKET, path, *path ? " or " : "");
    if (!connect_may_autostart(autostart))
        return connect_fail_absent(refused, paths);
    if (!*path)
        return fail_with(refused ? ECONNREFUSED : ENOENT,
                         "no broker answers at " SYSTEM_SOCKET
                         ", and without XDG_RUNTIME_DIR none can be started: set it, or MEMORYD_SOCKET");
    r = autostart_broker(paths, deadline);
    if (r)
        return r;
    found->autostarted = true;
    for (unsigned attempt = 0;; attempt++) {
        r = connect_path(path, true, deadline, found);
        /* where the exit of `memoryd --autostart` could not be seen, the broker may take a while */
        if (!connect_is_absent(r) || deadline_passed(deadline, clock_now_ns()) || attempt > 200)
            return r;
        r = connect_pause(attempt, deadline);
        if (r)
            return r;
    }
}

int connect_broker(const char *path, unsigned autostart, uint64_t deadline, struct connected *connected)
{
    const char *chosen = path ? path : secure_getenv("MEMORYD_SOCKET");
    struct connected found = {.socket = -1};
    char own[sizeof(found.path)];
    int r;

    if (chosen && *chosen) {
        r = connect_path(chosen, false, deadline, &found);
        if (connect_is_absent(r))
            r = connect_fail_absent(r == -ECONNREFUSED, chosen);
    } else {
        connect_private_path(own, sizeof(own));
        r = connect_usual(own, deadline, &found);
        if (connect_is_absent(r))
            r = connect_started(own, autostart, deadline, r == -ECONNREFUSED, &found);
    }
    if (r)
        return r;
    found.may_autostart = found.private && connect_may_autostart(autostart);
    *connected = found;
    return 0;
}
