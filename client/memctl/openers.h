/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes have memory open or mapped, of those that this one may look into.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/* Puts into each row, under `key`, the pids of the processes that have the row's "inode" open or mapped: but not the
 * broker, its keeper, and the process beside the broker that has its descriptors. 0 or -ENOMEM. */
int openers_add(json_t *rows, const char *key, pid_t broker, pid_t keeper);
