/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few file descriptors with one owner, which came with a packet or go with one.
 *
 * The owner of the set owns its descriptors. A handler steals those that it wants, and the others are closed with the
 * set, so no path leaks a descriptor of a peer or closes one twice. The storage is inline: a set needs no allocation,
 * can be embedded, and 64 descriptors cost as little as none.
 *
 * The header is plain C without sockets, so that the broker's operations can return descriptors without knowing how
 * they travel.
 *
 * A position keeps its number when its neighbour is stolen, because the items of a batch and their descriptors are
 * matched by position.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/limits.h"

enum {
    _FDSET_E_SUCCESS,
    FDSET_E_FULL,
};

struct fdset {
    unsigned n;
    int fds[MEMORYD_FDS_MAX];
};

#define FDSET_NULL ((struct fdset){.n = 0})

/* Does not touch the descriptors: only the first n are ever read. */
static inline void fdset_init(struct fdset *set)
{
    set->n = 0;
}

/* Closes all descriptors and leaves the set empty. errno stays. */
static inline void fdset_deinit(struct fdset *set)
{
    for (unsigned i = 0; i < set->n; i++)
        (void)fd_close(steal_fd(&set->fds[i]));
    set->n = 0;
}

/* 0 and takes fd; or FDSET_E_FULL, and fd stays the caller's. fd is not -1. */
static inline int fdset_push(struct fdset *set, int fd)
{
    assert(fd >= 0);
    if (set->n == MEMORYD_FDS_MAX)
        return FDSET_E_FULL;
    set->fds[set->n++] = fd;
    return 0;
}

/* The descriptor at i, now the caller's; -1 if there is none or it was stolen. */
static inline int fdset_steal(struct fdset *set, unsigned i)
{
    return i < set->n ? steal_fd(&set->fds[i]) : -1;
}

/* Moves all descriptors into another set, which is empty. */
static inline void fdset_move(struct fdset *to, struct fdset *from)
{
    assert(!to->n);
    memcpy(to->fds, from->fds, from->n * sizeof(from->fds[0]));
    to->n = from->n;
    from->n = 0;
}

/* The number of positions, with the stolen ones. */
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
