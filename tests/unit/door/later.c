/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/door/later.h"

time_t later;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int r = __real_clock_gettime(clock, now);

    now->tv_sec += later;
    return r;
}
