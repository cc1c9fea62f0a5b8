/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread's program has to say while a call waits: that it shall end, memclient_set_interrupt(). Whatever waits
 * for the broker or for another thread asks at each turn but the first, without a lock, so a call that need not wait
 * pays for nothing. Releases never ask: they have no result that could be lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef bool interrupt_function(void *data);

void interrupt_set(interrupt_function *function, void *data);

/* Does this thread want to be asked? */
bool interrupt_is_set(void);

/* Shall the wait end? It runs the program's code, so no lock is held. */
bool interrupt_is_wanted(void);

/* -EINTR and the sentence. */
int interrupt_fail(void);

/* Until when to wait for what no signal ends: the deadline, or less if this thread wants to be asked. */
uint64_t interrupt_deadline(uint64_t deadline);
