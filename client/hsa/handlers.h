/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the application that are called when a signal meets a condition, in one thread for all of them.
 *
 * The thread begins with the first of them and ends with the last hsa_shut_down(), or when the library is unloaded.
 */
#pragma once

/*
 * Ends the thread, and waits for that, unless it is the caller: then it ends when the function that it is in returns.
 * Those that have not been called are not called any more. Before the runtime is locked, since a function may be on its
 * way in.
 */
void handlers_stop(void);
/* Around a fork. The child has no thread and no handlers. */
void handlers_fork_prepare(void);
void handlers_fork_parent(void);
void handlers_fork_child(void);
