/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine-wide memory settings (huge pages, transparent huge pages) that a test needs changed.
 *
 * One test program at a time may hold them: the lock is a flock on a directory of the kernel's own, so
 * that it is the same one for every build tree and user, and leaves no file behind. What is changed is put
 * back when the test ends, and also when the test program crashes or is killed: a guardian process, which
 * knows the old values, waits for just that.
 *
 * A test that uses this is listed as test_with_settings(function), and begins with what it needs:
 *
 *     static void some_fact(void **state)
 *     {
 *         settings_huge_pages(huge_page_size(), 4);
 *         ...
 */
#pragma once

#include "tests/support/test.h"

#include <stddef.h>

#define test_with_settings(function) cmocka_unit_test_teardown(function, settings_release)

/* Takes the lock (waiting for other test programs), once; skips if this user may not change settings. */
void settings_hold(void);

/* Puts everything back as it was and gives the lock up; harmless when not held. Has a teardown's shape. */
int settings_release(void **state);

/* Writes the setting until settings_release(); skips when the kernel does not take or have it. */
void settings_write(const char *path, const char *value);

/* Just n huge pages of that size free and not promised to anybody, and none to be had beyond them, as
 * far as the machine has the memory; skips otherwise. On this node only if node >= 0. */
void settings_huge_pages(size_t size, unsigned n);
void settings_huge_pages_on_node(size_t size, unsigned n, int node);

/* Transparent huge pages for shared memory where madvise asks for them. */
void settings_shmem_thp(void);
