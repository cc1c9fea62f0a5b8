/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of sessions when dlclose() takes the library away. The default context is nobody's to close, so it is
 * closed here, as is every other that nothing is left of but itself. Where buffers or reservations are left, their
 * memory stays mapped as it is: only the descriptors are closed, and the broker has the session end, after its grace,
 * when the last of the memory is unmapped. At the end of the process nothing is done: other threads may still be at
 * work, and the kernel does it all.
 */
#pragma once

/* Once per process, or once each time the library is loaded; more often does nothing. */
void unload_register(void);
