/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that are linked with -Wl,--wrap=clock_gettime. */
#pragma once

#include "work/turn.h"

/* So much time passes whenever somebody looks at the clock. With TURN_SLICE_NS, a slice is over after one piece of
 * work. */
extern _Atomic long pace_ns;
