/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of version 2 for a test, all below one of its own: ROOT/memoryd-PID/NAME.
 *
 * A test begins with cgroup_begin() or cgroup_begin_memory(), which skip where there are none, and is listed with
 * cgroup_remove() in its teardown, or in what that calls. Names are paths below the test's own group, "" is itself.
 */
#pragma once

#include "tests/support/test.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* `suffix` ends the name of the test's own group. */
void cgroup_begin(const char *suffix);
/* The same, and groups in it have limits of memory. */
void cgroup_begin_memory(void);
/* The same of version 1, where only that has them; cgroup_limit_memory() is for both. */
void cgroup_begin_memory_of_any(void);
/* Removes all that were made; what is still in them is killed. Has a teardown's shape. */
int cgroup_remove(void **state);

void cgroup_make(const char *name);
/* One of them, which must be empty. */
void cgroup_remove_one(const char *name);
/* As /proc/PID/cgroup has it: "/memoryd-PID" and the name. */
const char *cgroup_path(const char *name, char path[static 256]);
/* ... and where it is mounted */
const char *cgroup_folder(const char *name, char path[static 256]);

/* NULL: to the root's. Process 0 is the calling one. False and errno if the kernel refuses; no assert, for children. */
bool cgroup_put(const char *name, pid_t pid);

/* Does /proc/PID/cgroup say that it is in that one? Not where only a part of the groups is mounted. */
bool cgroup_is_named(const char *name, pid_t pid);

/* What it may have, swap included. False and errno if the kernel refuses. */
bool cgroup_limit_memory(const char *name, uint64_t bytes);

/* The text of one of its files; for children as well: false and errno if it is refused. */
bool cgroup_write(const char *name, const char *file, const char *value);
/* A file that is a number, "max" being the largest; and the line "KEY NUMBER" of one with several. Fail the test. */
uint64_t cgroup_number(const char *name, const char *file);
uint64_t cgroup_stat(const char *name, const char *file, const char *key);
