/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of spare chunks and leases when the process forks, and when dlclose() takes the library away. At the end
 * of the process nothing is done: other threads may still be at work, and the kernel does it all.
 */
#pragma once

#include <sys/types.h>

/* getpid(), without a call of the kernel. */
pid_t process_id(void);

/*
 * Once something is to be kept; more often does nothing. The native library must have a context by then: what is
 * registered last is prepared first for a fork, so that our lock comes before its locks, and it is ready to be called
 * in the child.
 */
void process_register(void);
