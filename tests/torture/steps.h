/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that is stopped before each step that another process can see: each system call, and each store into memory
 * that it shares. What it does between two steps is its own, and ends with it; so there is no other place where its
 * death or a stop would make a difference.
 *
 * Stores are found by taking the right to write away: the child's own handler of SIGSEGV gives it back for one
 * instruction. The parent traces the child and counts both kinds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- in the child ------------------------------------------------------------------------------------------------ */

/* Stores there are steps. At most STEPS_RANGES. */
#define STEPS_RANGES 16
void steps_watch(void *address, size_t size);

/* Between the two, the parent's steps_run() counts. Ends the child with TEST_SKIPPED where it may not be traced. */
void steps_begin(void);
void steps_end(void);

/* ---- in the parent ----------------------------------------------------------------------------------------------- */

/* Waits for steps_begin(), lets the child run, and stops it before its n-th step from 0 on. False: it has come to
 * steps_end() before. A child that ends by itself fails the test. */
bool steps_run(pid_t child, unsigned n);

/* It goes on by itself. */
void steps_let_go(pid_t child);

/* What the child, which is stopped, is about to do, for messages. */
const char *steps_where(void);
