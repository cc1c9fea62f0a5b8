/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owning descriptors; fdset.h says why.
 */
#include "proto/fdset.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "base/steal.h"

void fdset_deinit(struct fdset *set)
{
    for (unsigned i = 0; i < set->n; i++)
        fd_closep(&set->fds[i]);
    set->n = 0;
}

int fdset_push(struct fdset *set, int fd)
{
    assert(fd >= 0);
    if (set->n == MEMORYD_FDS_MAX)
        return FDSET_E_FULL;
    set->fds[set->n++] = fd;
    return 0;
}

int fdset_steal(struct fdset *set, unsigned i)
{
    return i < set->n ? steal_fd(&set->fds[i]) : -1;
}

void fdset_move(struct fdset *to, struct fdset *from)
{
    assert(!to->n);
    memcpy(to->fds, from->fds, from->n * sizeof(from->fds[0]));
    to->n = from->n;
    from->n = 0;
}

bool fdset_has_socket(const struct fdset *set)
{
    int saved = errno;
    bool found = false;

    for (unsigned i = 0; i < set->n && !found; i++) {
        int type;
        socklen_t size = sizeof(type);

        if (set->fds[i] < 0)
            continue;
        /* EBADF: an O_PATH one. Whatever else fails is about a socket (a security module forbids
         * it). */
        found = !getsockopt(set->fds[i], SOL_SOCKET, SO_TYPE, &type, &size) ||
                (errno != ENOTSOCK && errno != EBADF);
    }
    errno = saved;
    return found;
}
