/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child made by fork() finds of the library.
 *
 * All locks are taken around the fork, so that the child gets everything between two changes and
 * never in the middle of one, whatever other threads were doing. There it closes its copies of the
 * connections (their session is the parent's), forgets the threads that it does not have, and goes
 * one generation on: the next call opens a session of its own.
 */
#pragma once

/* Once per process; more often does nothing. */
void fork_register(void);
