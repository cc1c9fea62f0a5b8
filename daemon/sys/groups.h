/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the control groups of this process, of either version, still let it have. The kernel charges them
 * with what is committed here, and kills a process in them when that is too much. It gives up cached files first; half
 * of them may be in use.
 */
#pragma once

#include <stdint.h>

/* UINT64_MAX: no group has a limit. `root` is where /proc and /sys are: "", or a folder of a test. */
uint64_t groups_memory(const char *root);
