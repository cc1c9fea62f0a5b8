/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the end of a process is that was killed, or that ends by itself: asked of the kernel, thread by thread.
 *
 * A process has not ended, and its parent is told nothing, while one of its threads waits in the kernel in a way that
 * not even SIGKILL ends: closing a file of a file system in user space that does not answer, say. That may last for
 * ever. But a thread for which SIGKILL is pending never runs its program again, so what the others wait for is not its
 * end, but only that it does nothing more to memory.
 */
#pragma once

#include <sys/types.h>

/* The least that is true of all threads. */
enum death {
    DEATH_NONE,  /* one may still run its program, or /proc does not say */
    DEATH_WORKS, /* none will again, but one is on its way to its end, or in a call that may change memory */
    DEATH_HANGS, /* the rest waits in the kernel, to close or receive something, or to end */
    DEATH_DONE,  /* there are only zombies, or nothing */
};

/* What keeps it. */
struct death_cause {
    pid_t thread; /* 0: none does */
    long call;    /* the system call that it is in, -1: in none, or unknown */
};

/* Allocates nothing. */
enum death process_death(pid_t pid, struct death_cause *ret);
