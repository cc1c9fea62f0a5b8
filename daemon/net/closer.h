/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of every descriptor that a client ever had in its hands.
 *
 * The last close of a file may wait, and for a file that a client made it waits for as long as the client likes: a TCP
 * socket that is set to linger, a file of a file system in user space. A client's own connection does too, for what
 * lies unread in it is closed with it. So the loop closes none of these. It puts them here, and a thread closes them;
 * one thread per user, so that whoever makes a close wait keeps only his own descriptors waiting.
 *
 * Putting one in cannot fail and allocates nothing: a queue is a chain through a table with one row for each
 * descriptor that this process may have. Who lets clients in asks first how many of their user's wait already.
 */
#pragma once

#include <sys/types.h>

#include "base/cleanup.h"
#include "proto/fdset.h"

struct closers;

/* A user's queue and thread. */
struct closer;

/* `descriptors` = the limit of open files: no descriptor has a number above it. 0 or a negative errno. */
int closers_new(struct closers **ret, unsigned descriptors);
/* Waits a moment for closes in progress, and leaves those that hang to the end of the process. Returns NULL. */
struct closers *closers_free(struct closers *closers);
DEFINE_CLEANUP(struct closers *, closers_free);

/* All that follows is for the loop's thread. */

/* The queue of a user; that of nobody in particular if there is no memory for one. */
struct closer *closers_get(struct closers *closers, uid_t uid);
/* The queue of nobody in particular, for those whose user is not known. Needs no unref. */
struct closer *closers_nobody(struct closers *closers);
/* The caller needs it no more; what is in it is still closed. */
void closer_unref(struct closer *closer);

/* Takes the descriptor. */
void closer_close(struct closer *closer, int fd);

/* For sets of descriptors that this user sent. */
struct fd_closer *closer_fds(struct closer *closer);

/* How many are not closed yet: of this user, of everybody. */
unsigned closer_pending(const struct closer *closer);
unsigned closers_pending(const struct closers *closers);
