/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases spare chunks and leases when the process forks, and when dlclose() unloads the library. At the exit of the
 * process it does nothing: other threads may still be at work, and the kernel cleans up.
 */
#pragma once

#include <sys/types.h>

/* getpid() without a system call. */
pid_t process_id(void);

/*
 * Registers the handlers, before something is kept; later calls do nothing. The native library must have a context by
 * then: fork() prepares in reverse order of registration, so that our lock is taken before its locks, and its own
 * handlers have run before ours in the child.
 */
void process_register(void);
