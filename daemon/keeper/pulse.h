/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a process with many descriptors lets another one know at once that it dies.
 *
 * The kernel closes all that a process had before it says that it has ended, and of what it closes the last is as late
 * as the first: with ten thousand descriptors that takes milliseconds. But a thread may have a table of descriptors for
 * itself. One that has a single pipe in it, and does nothing, is gone within microseconds when the process is killed,
 * and whoever has the other end of that pipe sees it hang up.
 */

/* Early, while there are few descriptors. The pipe's other end, the caller's; or a negative errno, where the kernel
 * cannot do that: it is a hint, and nobody depends on it. */
int pulse_start(void);
