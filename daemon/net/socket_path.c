/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lock comes first, and everything else happens under it. The lock file is removed at the end, so two processes
 * could hold a lock: one of the removed file and one of a new file. Therefore the path is checked after locking: it
 * must still lead to the locked file.
 */

#include "net/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/sockio.h"

#define LOCK_ATTEMPTS 100
/* Those who connect to a full queue wait in the kernel. More would not be accepted sooner, only wait longer behind a
 * storm that keeps it full. */
#define BACKLOG 1024

static bool make_address(const char *path, struct sockaddr_un *address)
{
    size_t n = strlen(path);

    if (!n || n >= sizeof(address->sun_path))
        return false;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, n + 1);
    return true;
}

static int try_connect(const struct sockaddr_un *address)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    return connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
}

bool socket_path_answers(const char *path)
{
    struct sockaddr_un address;
    int r;

    if (!make_address(path, &address))
        return false;
    r = try_connect(&address);
    return r == 0 || r == -EAGAIN; /* a full queue has an owner */
}

/* Nobody else may be able to replace our socket in the folder. */
static int check_folder(const char *path, struct problem *problem)
{
    _cleanup_free_ char *folder = strdup(path);
    struct stat st;
    char *slash;

    if (!folder)
        return -ENOMEM;
    slash = strrchr(folder, '/');
    if (!slash)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "\"%.120s\" is not an absolute path; give one", path);
    slash[slash == folder] = '\0';
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return refuse(problem, SOCKET_PATH_E_REFUSED,
                      "cannot make the folder %.120s: %s; make it, or choose another "
                      "socket with --socket",
                      folder, strerror(errno));
    if (stat(folder, &st) < 0)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot look at the folder %.120s: %s", folder, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return refuse(problem, SOCKET_PATH_E_REFUSED, "%.120s is not a folder", folder);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return refuse(problem, SOCKET_PATH_E_REFUSED,
                      "the folder %.120s belongs to uid %u, who could put another socket in the place of ours", folder,
                      st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
        return refuse(problem, SOCKET_PATH_E_REFUSED,
                      "others may write to the folder %.120s and put another socket in the place of ours; take that "
                      "right away (chmod go-w)",
                      folder);
    return 0;
}

static int lock_once(const char *lock_path, int *ret_fd, struct problem *problem)
{
    _cleanup_close_ int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    struct stat ours;
    struct stat there;

    if (fd < 0)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot open %.120s: %s", lock_path, strerror(errno));
    if (fstat(fd, &ours) < 0 || !S_ISREG(ours.st_mode) || ours.st_uid != geteuid())
        return refuse(problem, SOCKET_PATH_E_REFUSED, "%.120s is not a file of ours; remove it", lock_path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return refuse(problem, SOCKET_PATH_E_RUNNING, "a broker is already running there (it holds %.120s)",
                          lock_path);
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot lock %.120s: %s", lock_path, strerror(errno));
    }
    if (lstat(lock_path, &there) < 0 || there.st_ino != ours.st_ino || there.st_dev != ours.st_dev)
        return 0; /* its owner removed it when it ended: try again */
    *ret_fd = steal_fd(&fd);
    return 0;
}

int socket_path_lock(struct socket_path *ret, const char *path, struct problem *problem)
{
    struct sockaddr_un address;
    struct socket_path made = SOCKET_PATH_NULL;
    int r;

    if (!make_address(path, &address))
        return refuse(
            problem, SOCKET_PATH_E_REFUSED,
            "the socket's path has %zu bytes, and the kernel takes from 1 to %zu; choose another with --socket",
            strlen(path), sizeof(address.sun_path) - 1);
    r = check_folder(path, problem);
    if (r)
        return r;
    made.path = strdup(path);
    if (!made.path || asprintf(&made.lock_path, "%s.lock", path) < 0) {
        free(made.path);
        return -ENOMEM;
    }
    for (int i = 0; i < LOCK_ATTEMPTS && !r && made.lock_fd < 0; i++)
        r = lock_once(made.lock_path, &made.lock_fd, problem);
    if (!r && made.lock_fd < 0)
        r = refuse(problem, SOCKET_PATH_E_REFUSED, "cannot lock %.120s: it keeps being removed", made.lock_path);
    if (r) {
        free(made.path);
        free(made.lock_path);
        return r;
    }
    *ret = made;
    return 0;
}

int socket_path_adopt(struct socket_path *ret, const char *path, int lock_fd)
{
    _cleanup_free_ char *copy = strdup(path);
    _cleanup_free_ char *lock_path = NULL;
    /* the same open file description has the same lock */
    _cleanup_close_ int fd = fcntl(lock_fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (!copy || asprintf(&lock_path, "%s.lock", path) < 0)
        return -ENOMEM;
    *ret = (struct socket_path){
        .path = steal_ptr(&copy),
        .lock_path = steal_ptr(&lock_path),
        .lock_fd = steal_fd(&fd),
        .bound = true,
    };
    return 0;
}

static int remove_stale(const struct sockaddr_un *address, struct problem *problem)
{
    const char *path = address->sun_path;
    struct stat st;
    int r;

    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot look at %s: %s", path, strerror(errno));
    }
    if (!S_ISSOCK(st.st_mode))
        return refuse(problem, SOCKET_PATH_E_REFUSED,
                      "%s is there and is not a socket; remove it, or choose another with --socket", path);
    if (st.st_uid != geteuid())
        return refuse(problem, SOCKET_PATH_E_REFUSED,
                      "%s is the socket of uid %u and not ours to replace; choose another with --socket", path,
                      st.st_uid);
    r = try_connect(address);
    if (r == 0 || r == -EAGAIN || r == -EPROTOTYPE)
        return refuse(problem, SOCKET_PATH_E_RUNNING, "somebody already answers at %s", path);
    if (r != -ECONNREFUSED && r != -ENOENT)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot find out whether somebody answers at %s: %s", path,
                      strerror(-r));
    if (unlink(path) < 0 && errno != ENOENT)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot remove the stale socket %s: %s", path, strerror(errno));
    return 0;
}

int socket_path_listen(struct socket_path *path, bool private, int *ret_fd, struct problem *problem)
{
    _cleanup_close_ int fd = -1;
    struct sockaddr_un address;
    mode_t mask;
    int r;

    (void)make_address(path->path, &address);
    r = remove_stale(&address, problem);
    if (r)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot make a socket: %s", strerror(errno));
    /* the file is made with its mode: between bind() and a chmod() anybody could connect */
    mask = umask(private ? 0177 : 0111);
    r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
    (void)umask(mask);
    if (r)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot bind %s: %s", path->path, strerror(r));
    path->bound = true;
    /* before anybody can connect */
    (void)sockio_refuse_fds(fd);
    if (listen(fd, BACKLOG) < 0)
        return refuse(problem, SOCKET_PATH_E_REFUSED, "cannot listen on %s: %s", path->path, strerror(errno));
    *ret_fd = steal_fd(&fd);
    return 0;
}

void socket_path_forget(struct socket_path *path)
{
    /* the lock belongs to the open file description, which the other process shares */
    path->lock_fd = fd_close(path->lock_fd);
    free(path->path);
    free(path->lock_path);
    *path = (struct socket_path)SOCKET_PATH_NULL;
}

void socket_path_deinit(struct socket_path *path)
{
    /* the files are ours if we hold the lock; the lock file goes last, while it is still locked */
    if (path->bound)
        (void)unlink(path->path);
    if (path->lock_fd >= 0)
        (void)unlink(path->lock_path);
    socket_path_forget(path);
}
