/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the control groups that this process is in still let it have of the machine's memory, of either version: the
 * kernel charges them with what is committed here, and kills somebody in them when that is too much. Cached files it
 * gives up first; half of them may be in use.
 */
#pragma once

#include <stdint.h>

/* UINT64_MAX: none of them limits it. `root` is that of /proc and /sys: "", or a test's. */
uint64_t groups_memory(const char *root);
