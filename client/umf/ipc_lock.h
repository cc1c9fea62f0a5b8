/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the records in opened.h, and of the handles that are kept in owned.h.
 *
 * Look-ups are frequent, and come from many threads. Changes come only with a call of a provider. So a reader takes one
 * of several locks, which it hardly shares, and a writer takes all.
 */
#pragma once

/* What is found stays until ipc_unlock_read(). A thread must not take it twice. */
void ipc_lock_read(void);
void ipc_unlock_read(void);
/* For changes. */
void ipc_lock(void);
void ipc_unlock(void);

/* In the child of a fork, which has inherited it from ipc_lock(). */
void ipc_lock_in_child(void);
