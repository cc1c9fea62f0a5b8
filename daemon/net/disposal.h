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

struct disposal;

/* A user's queue. */
struct disposer {
    struct fd_disposer fds; /* for sets of descriptors that this user sent */
};

/* `descriptors` = the limit of open files: no descriptor has a number above it. 0 or a negative errno. */
int disposal_new(struct disposal **ret, unsigned descriptors);
/* Waits a moment for closes in progress, and leaves those that hang to the end of the process. Returns NULL. */
struct disposal *disposal_free(struct disposal *disposal);
DEFINE_CLEANUP(struct disposal *, disposal_free);

/* All that follows is for the loop's thread. */

/* The queue of a user; that of nobody in particular if there is no memory for one. */
struct disposer *disposal_get(struct disposal *disposal, uid_t uid);
/* The queue of nobody in particular, for those whose user is not known. Needs no unref. */
struct disposer *disposal_nobody(struct disposal *disposal);
/* The caller needs it no more; what is in it is still closed. */
void disposer_unref(struct disposer *disposer);

/* Takes the descriptor. */
void disposer_close(struct disposer *disposer, int fd);

/* How many are not closed yet: of this user, of everybody. */
unsigned disposer_pending(const struct disposer *disposer);
unsigned disposal_pending(const struct disposal *disposal);
