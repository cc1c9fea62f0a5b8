/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox for each kind of process: which system calls it may make.
 *
 * Whoever makes the broker execute code of his own must not get from there to the kernel, to other processes or to the
 * network. Three classes of calls (make-filters.c has the table):
 *
 *     what an exploit wants, and memoryd never needs: the kernel kills the process, and the keeper says so
 *     what this kind of process makes: allowed, some with these arguments only
 *     all others: ENOSYS. They are what a C library tries first on a newer kernel, and does without on an older one, so
 *     a new library breaks nothing
 *
 * Filters are inherited by every program that a process executes, and cannot be taken off. The keeper executes brokers,
 * and in an upgrade another version of itself, whose needs this version does not know. So the keeper, which reads
 * nothing that a client sent, only does without the first class. A broker may become the keeper where no service
 * manager would start one: that one also makes the keeper's calls, execve() among them.
 *
 * libseccomp compiles the filters when memoryd is built, since that takes longer than the start of a
 * broker may. Without it, in a build with sanitizers, which make calls of their own, and with MEMORYD_SANDBOX=off in
 * the environment there is no sandbox.
 */
#pragma once

#include <stdbool.h>

/* A kind of process. Another one is a line here, a column in make-filters.c and a call of sandbox_enter(). */
#define SANDBOXES(X)                                                               \
    X(KEEPER)                                                                      \
    X(BROKER)      /* and its cleaner: another process takes the keeper's place */ \
    X(LONE_BROKER) /* takes it itself, if the keeper dies */                       \
    X(WORKER)      /* a thread of a broker */                                      \
    X(DOOR)        /* where clients' descriptors end */

enum sandbox {
#define X(NAME) SANDBOX_##NAME,
    SANDBOXES(X)
#undef X
        SANDBOX_N
};

/* Is there one in this build, and does the environment leave it on? */
bool sandbox_is_wanted(void);

/*
 * For this thread and all that it starts from now on, and what they execute. A worker's is only for those whose process
 * has entered one. 0 or a negative errno: the process can go on without.
 */
int sandbox_enter(enum sandbox sandbox);

/*
 * No core dumps of this process and what it executes; and nobody but root attaches to this process, but not to what it
 * executes, or takes descriptors out of it. For a keeper that holds several users' memory. It has to see in /proc what
 * the threads of its broker do that hang, and can do so of its own user's only as long as that may be dumped.
 */
void sandbox_hide(void);
