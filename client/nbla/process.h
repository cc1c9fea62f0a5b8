/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process, and what becomes of leases when dlclose() takes the library away. At its end nothing is done: other
 * threads may still be at work, and the kernel does it all.
 */
#pragma once

#include <sys/types.h>

/* getpid(), without a call of the kernel. */
pid_t process_id(void);

/* Once something is to be kept; more often does nothing. */
void process_register(void);
