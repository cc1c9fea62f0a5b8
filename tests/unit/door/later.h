/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that a test moves on. The program is linked with -Wl,--wrap=clock_gettime. */
#pragma once

#include <time.h>

/* By so many seconds all clocks are ahead of what they show. */
extern time_t later;
