/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few file descriptors with one owner.
 *
 * What came with a packet, or is to go with one. Whoever has the set owns what is
 * in it; a handler that wants a descriptor steals it, and whatever nobody stole is
 * closed with the set. So no path, however it ends, leaks a descriptor of a peer
 * or closes one twice. The storage is inline: a set costs no allocation, can be
 * embedded, and 64 descriptors are as cheap as none.
 *
 * Plain C without sockets, and all of it in this header, so that the broker's verbs
 * may hand descriptors out without knowing how they travel.
 *
 * A position keeps its number when its neighbour is stolen: items of a batch and
 * descriptors are matched by position.
 *
 * A warning about descriptors that a peer sent: to close the last descriptor of a
 * file can block the thread that does it, for as long as the peer likes. A TCP
 * socket may be set to linger, a file of a file system in user space asks its owner
 * first, a gigabyte of memory takes its time. A server that must go on gives such a
 * set a closer that hands them to a thread which may wait.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/steal.h"
#include "proto/limits.h"

enum {
    _FDSET_E_SUCCESS,
    FDSET_E_FULL,
};

/* Takes what is to be closed; it is embedded in what it belongs to. */
struct fd_closer {
    void (*close)(struct fd_closer *closer, int fd);
};

struct fdset {
    unsigned n;
    struct fd_closer *closer; /* NULL: descriptors are just closed */
    int fds[MEMORYD_FDS_MAX];
};

#define FDSET_NULL ((struct fdset){.n = 0})

/* Only the first n places are ever read, so initialising does not touch the rest. */
static inline void fdset_init(struct fdset *set)
{
    set->n = 0;
    set->closer = NULL;
}

/* Gets rid of a descriptor in the way of this set. */
static inline void fdset_close(const struct fdset *set, int fd)
{
    if (set->closer && fd >= 0)
        set->closer->close(set->closer, fd);
    else
        (void)fd_close(fd);
}

/* Closes all that is in it and leaves it empty; once more does nothing. errno stays. */
static inline void fdset_deinit(struct fdset *set)
{
    for (unsigned i = 0; i < set->n; i++)
        fdset_close(set, steal_fd(&set->fds[i]));
    set->n = 0;
}

/* 0 and takes fd, or FDSET_E_FULL and fd stays the caller's. fd is a descriptor, not -1. */
static inline int fdset_push(struct fdset *set, int fd)
{
    assert(fd >= 0);
    if (set->n == MEMORYD_FDS_MAX)
        return FDSET_E_FULL;
    set->fds[set->n++] = fd;
    return 0;
}

/* The descriptor at i, now the caller's; -1 if there is none or it was stolen before. */
static inline int fdset_steal(struct fdset *set, unsigned i)
{
    return i < set->n ? steal_fd(&set->fds[i]) : -1;
}

/* Moves everything from one set into an empty other one, and the way to get rid of it. */
static inline void fdset_move(struct fdset *to, struct fdset *from)
{
    assert(!to->n);
    memcpy(to->fds, from->fds, from->n * sizeof(from->fds[0]));
    to->n = from->n;
    to->closer = from->closer;
    from->n = 0;
}

/* How many places there are, the stolen ones too. */
static inline unsigned fdset_count(const struct fdset *set)
{
    return set->n;
}

/* The descriptor at i, still the set's; -1 as for fdset_steal(). */
static inline int fdset_get(const struct fdset *set, unsigned i)
{
    return i < set->n ? set->fds[i] : -1;
}

#define _cleanup_fdset_ _cleanup_(fdset_deinit)
