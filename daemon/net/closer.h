/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closers close the descriptors that clients had in their hands.
 *
 * The last close of a file may block, and a client can make it block for as long as it likes: by a TCP socket that
 * lingers, or a file of a file system in user space. Closing a client's own connection may block too, since it closes
 * the descriptors in packets that nobody has received. So the loop closes none of these. It gives them to a closer,
 * which is a thread per user: a close that blocks delays only descriptors of the same user.
 *
 * Giving a descriptor cannot fail and allocates nothing: a queue is a chain through a table with one row for each
 * descriptor that this process may have. Whoever accepts clients checks first how many of their user are unclosed.
 */
#pragma once

#include <sys/types.h>

#include "base/cleanup.h"
#include "proto/fdset.h"

struct closers;

/* A user's queue and thread. */
struct closer;

/* `descriptors` is the limit of open files: every descriptor is below it. 0 or a negative errno. */
int closers_new(struct closers **ret, unsigned descriptors);
/* Waits a moment for closes in progress; those that hang end with the process. Returns NULL. */
struct closers *closers_free(struct closers *closers);
DEFINE_CLEANUP(struct closers *, closers_free);

/* Everything below is for the loop's thread. */

/* That of a user; that of nobody in particular if there is no memory for one. */
struct closer *closers_get(struct closers *closers, uid_t uid);
/* That of nobody in particular, for descriptors whose user is not known. Needs no unref. */
struct closer *closers_nobody(struct closers *closers);
/* The caller no longer needs it; descriptors in its queue are still closed. */
void closer_unref(struct closer *closer);

/* Takes the descriptor. */
void closer_close(struct closer *closer, int fd);

/* For sets of descriptors that this user sent. */
struct fd_closer *closer_fds(struct closer *closer);

/* How many descriptors are not closed yet: of this user, of everybody. */
unsigned closer_pending(const struct closer *closer);
unsigned closers_pending(const struct closers *closers);
