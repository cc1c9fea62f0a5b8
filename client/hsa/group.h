/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of signals: lists with a handle, which hold none of their signals.
 */
#pragma once

/* At the last hsa_shut_down(): forgets them all. */
void groups_stop(void);
/* Around a fork. The child has no group. */
void groups_fork_prepare(void);
void groups_fork_parent(void);
void groups_fork_child(void);
