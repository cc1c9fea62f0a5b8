/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of what pools have opened of other processes' memory, and of the handles that are kept with their own.
 *
 * Whoever looks up does so often, and from many threads; whoever changes has just asked a provider. So the lock is one
 * that readers hardly share: a reader takes one of several, a writer all.
 */
#pragma once

/* What is found stays until ipc_unlock_read(). Not to be taken twice. */
void ipc_lock_read(void);
void ipc_unlock_read(void);
/* Changing it. */
void ipc_lock(void);
void ipc_unlock(void);

/* A fork takes it. */
void ipc_lock_in_child(void);
