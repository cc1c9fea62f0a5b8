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
 * A position keeps its number when its neighbour is stolen: items of a batch and
 * descriptors are matched by position.
 *
 * A warning about descriptors that a peer sent: to close the last descriptor of a
 * file can block the thread that does it (a socket that lingers, a file of a
 * file system in user space, a gigabyte of memory that nobody else has open).
 * A server that must go on hands such a set to a thread that may wait, with
 * fdset_move(), instead of closing it on its loop.
 */
#pragma once

#include <stdbool.h>

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

#define FDSET_NULL \
    {              \
        .n = 0     \
    }

/* Only the first n places are ever read, so initialising does not touch the rest. */
static inline void fdset_init(struct fdset *set)
{
    set->n = 0;
}

/* Closes all that is in it and leaves it empty; once more does nothing. errno stays. */
void fdset_deinit(struct fdset *set);

/* 0 and takes fd, or FDSET_E_FULL and fd stays the caller's. fd is a descriptor, not -1. */
int fdset_push(struct fdset *set, int fd);

/* The descriptor at i, now the caller's; -1 if there is none or it was stolen before. */
int fdset_steal(struct fdset *set, unsigned i);

/* Moves everything from one set into an empty other one. */
void fdset_move(struct fdset *to, struct fdset *from);

/*
 * Is one of them a socket? A socket sent over a socket can make a cycle that only the kernel's
 * garbage collector gets rid of, and no method wants one. Asks the socket layer, not the file: a
 * stat() of a file in a peer's own file system would wait for the peer.
 */
bool fdset_has_socket(const struct fdset *set);

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
