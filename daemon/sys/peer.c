/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. */

#include "sys/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "sys/sys.h"
#include "sys/text.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* 6.5 */
#endif

#define STAT_SIZE   1024
#define STATUS_SIZE 4096
/* A field of /proc/PID/stat, as text_stat_field() counts. */
#define STAT_START_TIME 19
#define CGROUP_SIZE     16384 /* paths of all hierarchies */
#define GROUPS_MAX      65536 /* the kernel's own bound */
#define OVERFLOW_ID     65534 /* the kernel's default */
/* Of an identity: it is the number of the pidfd's inode. Without, it is a start time, in clock ticks since boot. */
#define IDENTITY_INODE (UINT64_C(1) << 63)

static int outcome_of(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return PEER_NO_ROOM;
    case ESRCH:
    case ENODATA:
    case ENOENT: /* a thread has the number */
        return PEER_GONE;
    case ENOTSOCK:
    case ENOTCONN:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EINVAL:
        return PEER_UNKNOWN;
    default:
        return -error;
    }
}

bool peer_is_dead(int pidfd)
{
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};

    return poll(&polled, 1, 0) > 0 && (polled.revents & POLLIN);
}

/* The kernel looks for the status before it looks for the process. If the process is reaped in between it finds
 * neither, but when it is asked again the status is there. */
static int peer_read_status(int pidfd, int *ret)
{
    int r = sys->pidfd_status(pidfd, ret);

    return r < 0 && errno == ESRCH ? sys->pidfd_status(pidfd, ret) : r;
}

enum peer_end peer_end(int pidfd, int *ret)
{
    int status = 0;

    *ret = 0;
    if (peer_read_status(pidfd, &status) < 0)
        return errno == EAGAIN ? PEER_END_UNREAPED : PEER_END_UNKNOWN;
    if (WIFSIGNALED(status)) {
        *ret = WTERMSIG(status);
        return PEER_END_SIGNAL;
    }
    if (!WIFEXITED(status))
        return PEER_END_UNKNOWN;
    *ret = WEXITSTATUS(status);
    return PEER_END_EXITED;
}

/* From status, for which the kernel has no lock that a process keeps which hangs in execve(), as it has for stat. */
bool process_pauses(pid_t pid)
{
    static const char key[] = "\nState:\t";
    char text[STATUS_SIZE];
    const char *state;

    if (!text_read(text, sizeof(text), "%s/%d/status", sys->proc, (int)pid))
        return false;
    state = strstr(text, key);
    return state && (state[strlen(key)] == 'T' || state[strlen(key)] == 't');
}

/* 0 if it cannot be seen. */
static uint64_t start_time_of(pid_t pid)
{
    char text[STAT_SIZE];
    const char *ticks = NULL;

    if (text_read(text, sizeof(text), "%s/%d/stat", sys->proc, (int)pid))
        ticks = text_stat_field(text, STAT_START_TIME);
    return ticks ? strtoull(ticks, NULL, 10) : 0;
}

/* False where pidfds have no inodes of their own. */
static bool peer_read_inode(int pidfd, uint64_t *ret)
{
    uint64_t inode;

    if (sys->pidfd_inode(pidfd, &inode) < 0)
        return false;
    *ret = inode | IDENTITY_INODE;
    return true;
}

/* It is alive when asked for afterwards, or the number may be another process's. */
static uint64_t peer_read_identity(int pidfd, pid_t pid)
{
    uint64_t identity;

    return peer_read_inode(pidfd, &identity) ? identity : start_time_of(pid);
}

/* Opens the process that has the number now. If the process that connected has ended, then so has its connection,
 * unless it forked: newer kernels close that window. */
static int open_by_number(int socket, pid_t pid, int *ret)
{
    struct pollfd polled = {.fd = socket};
    int pidfd = sys->pidfd_open(pid, 0);

    if (pidfd < 0)
        return outcome_of(errno);
    if (poll(&polled, 1, 0) > 0 && (polled.revents & POLLHUP)) {
        fd_close(pidfd);
        return PEER_GONE;
    }
    *ret = pidfd;
    return 0;
}

static int read_groups(int socket, gid_t **ret, size_t *ret_n)
{
    _cleanup_free_ gid_t *groups = NULL;
    socklen_t size = 0;

    /* without room for any, the kernel says how much they need */
    if (sys->getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0)
        return 0;
    if (errno != ERANGE || size > GROUPS_MAX * sizeof(gid_t))
        return outcome_of(errno);
    groups = malloc(size);
    if (!groups)
        return PEER_NO_ROOM;
    if (sys->getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
        return outcome_of(errno);
    *ret = steal_ptr(&groups);
    *ret_n = size / sizeof(gid_t);
    return 0;
}

static int read_credentials(int socket, struct ucred *ret)
{
    socklen_t size = sizeof(*ret);

    if (sys->getsockopt(socket, SOL_SOCKET, SO_PEERCRED, ret, &size) < 0)
        return outcome_of(errno);
    return ret->pid <= 0 || ret->uid == (uid_t)-1 ? PEER_UNKNOWN : 0;
}

int peer_uid(int socket, uid_t *ret)
{
    struct ucred credentials;
    int r = read_credentials(socket, &credentials);

    if (!r)
        *ret = credentials.uid;
    return r;
}

int peer_init_user(struct peer *peer, int socket)
{
    struct ucred credentials;
    gid_t *groups = NULL;
    size_t n_groups = 0;
    int r = read_credentials(socket, &credentials);

    if (!r)
        r = read_groups(socket, &groups, &n_groups);
    if (r)
        return r;
    *peer = PEER_NULL;
    peer->uid = credentials.uid;
    peer->gid = credentials.gid;
    peer->pid = credentials.pid;
    peer->groups = groups;
    peer->n_groups = n_groups;
    return 0;
}

int peer_identify(struct peer *peer, int socket)
{
    _cleanup_close_ int pidfd = -1;
    socklen_t size = sizeof(pidfd);
    uint64_t identity;
    int r;

    if (sys->getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
        pidfd = -1;
        if (errno == EINVAL)
            return PEER_GONE;
        r = errno == ENOPROTOOPT ? open_by_number(socket, peer->pid, &pidfd) : outcome_of(errno);
        if (r)
            return r;
    }
    identity = peer_read_identity(pidfd, peer->pid);
    /* asked last: while it lived, the number could not be another process's */
    if (peer_is_dead(pidfd))
        return PEER_GONE;
    peer->pidfd = steal_fd(&pidfd);
    peer->identity = identity;
    return 0;
}

int peer_init_socket(struct peer *peer, int socket)
{
    struct peer found = PEER_NULL;
    int r = peer_init_user(&found, socket);

    if (!r)
        r = peer_identify(&found, socket);
    if (r) {
        peer_deinit(&found);
        return r;
    }
    *peer = found;
    return 0;
}

int peer_init_pid(struct peer *peer, pid_t pid)
{
    _cleanup_close_ int pidfd = -1;
    uint64_t identity;

    if (pid <= 0)
        return PEER_GONE;
    pidfd = sys->pidfd_open(pid, 0);
    if (pidfd < 0)
        return outcome_of(errno);
    identity = peer_read_identity(pidfd, pid);
    if (peer_is_dead(pidfd))
        return PEER_GONE;
    *peer = PEER_NULL;
    peer->pid = pid;
    peer->pidfd = steal_fd(&pidfd);
    peer->identity = identity;
    return 0;
}

/* "Pid:" of its /proc/self/fdinfo: -1 when that process has ended, so that it is 0 for what is no pidfd. */
static pid_t pid_of(int pidfd)
{
    char text[1024];
    const char *at;

    if (!text_read(text, sizeof(text), "/proc/self/fdinfo/%d", pidfd))
        return 0;
    at = strstr(text, "\nPid:\t");
    return at ? (pid_t)strtol(at + strlen("\nPid:\t"), NULL, 10) : 0;
}

int peer_init_again(struct peer *peer, uid_t uid, gid_t gid, pid_t pid, uint64_t identity, int *pidfd)
{
    struct peer found = PEER_NULL;
    pid_t number = *pidfd >= 0 ? pid_of(*pidfd) : 0;
    int r = 0;

    if (number == -1)
        return PEER_GONE;
    if (pid > 0 && number == pid) {
        if (peer_is_dead(*pidfd))
            return PEER_GONE;
        found.pid = pid;
        if (!peer_read_inode(*pidfd, &found.identity))
            found.identity = identity;
        found.pidfd = steal_fd(pidfd);
    } else {
        r = peer_init_pid(&found, pid);
        if (!r && !peer_is_process(&found, pid, identity)) {
            peer_deinit(&found);
            r = PEER_GONE;
        }
    }
    if (r)
        return r;
    found.uid = uid;
    found.gid = gid;
    *peer = found;
    return 0;
}

void peer_deinit(struct peer *peer)
{
    fd_close(peer->pidfd);
    free(peer->groups);
    *peer = (struct peer)PEER_NULL;
}

bool peer_same_process(const struct peer *a, const struct peer *b)
{
    return a->pid > 0 && a->pid == b->pid && a->identity == b->identity;
}

bool peer_is_process(const struct peer *peer, pid_t pid, uint64_t identity)
{
    if (pid <= 0 || peer->pid != pid)
        return false;
    /* what a program recorded that knew of no inodes */
    if (peer->identity & IDENTITY_INODE && !(identity & IDENTITY_INODE))
        return start_time_of(pid) == identity && !peer_is_dead(peer->pidfd);
    return peer->identity == identity;
}

/* Read each time: an administrator may change it. `what` is a file below /proc/sys/kernel. */
static bool peer_is_overflow_id(uint64_t id, const char *what)
{
    uint64_t overflow = OVERFLOW_ID;

    (void)text_read_number(&overflow, "/proc/sys/kernel/%s", what);
    return id == overflow;
}

bool peer_is_overflow_uid(uid_t uid)
{
    return peer_is_overflow_id(uid, "overflowuid");
}

static bool peer_has_group(const struct peer *peer, gid_t gid)
{
    if (peer->gid == gid)
        return true;
    for (size_t i = 0; i < peer->n_groups; i++)
        if (peer->groups[i] == gid)
            return true;
    return false;
}

bool peer_in_group(const struct peer *peer, gid_t gid)
{
    return peer_has_group(peer, gid) && !peer_is_overflow_id(gid, "overflowgid");
}

/* The path of a line "NUMBER:CONTROLLERS:PATH"; controllers are "" in version 2. A path may have colons too. NULL if
 * they are others, or if the group is outside of this process's namespace: it is shown as "/../...". */
static const char *cgroup_of_line(const char *line, const char *controllers)
{
    const char *at = strchr(line, ':');
    size_t n = strlen(controllers);

    if (!at || strncmp(at + 1, controllers, n) != 0 || at[1 + n] != ':')
        return NULL;
    at += 1 + n + 1;
    return *at == '/' && strncmp(at, "/..", 3) != 0 ? at : NULL;
}

bool peer_cgroup_of(char *text, char *path, size_t size)
{
    const char *found = NULL;

    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        bool is_v2 = !strncmp(line, "0:", 2);

        const char *here = cgroup_of_line(line, is_v2 ? "" : "name=systemd");

        if (here || is_v2)
            found = here;
        if (is_v2)
            break;
    }
    if (!found || strlen(found) >= size)
        return false;
    (void)snprintf(path, size, "%s", found);
    return true;
}

bool peer_cgroup(const struct peer *peer, char *path, size_t size)
{
    char text[CGROUP_SIZE];

    if (!text_read(text, sizeof(text), "/proc/%d/cgroup", (int)peer->pid))
        return false;
    /* asked last: while it lived, the number could not be another process's */
    if (peer_is_dead(peer->pidfd))
        return false;
    /* cut short, one path may look like another */
    return strlen(text) < sizeof(text) - 1 && peer_cgroup_of(text, path, size);
}
