/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups, of either version, that limit memory. The kernel charges them with what is committed in them, and
 * kills a process in them when that is too much. `root` is where /proc and /sys are: "", or a folder of a test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How much memory those of this process still let it have; UINT64_MAX: none has a limit. The kernel gives up cached
 * files first; half of them may be in use. */
uint64_t groups_memory(const char *root);

/* Where the kernel counts the processes that it has killed for want of memory in the group that pays for this one's.
 * False if there is none, its path is too long, or the process's group is not below what is mounted here. */
bool groups_find_kills(const char *root, pid_t pid, char *path, size_t size);
/* How many these are so far; by version 2 in the groups below, too. False if the group has gone. */
bool groups_read_kills(const char *path, uint64_t *ret);
