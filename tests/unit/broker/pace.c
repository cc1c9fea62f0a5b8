/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/broker/pace.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

_Atomic long pace_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* Also for workers. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    static _Atomic uint64_t passed_ns;
    uint64_t pace = (uint64_t)pace_ns, passed = atomic_fetch_add(&passed_ns, pace) + pace;
    int r = __real_clock_gettime(clock, now);
    uint64_t ns = (uint64_t)now->tv_nsec + passed;

    now->tv_sec += (time_t)(ns / NSEC_PER_SEC);
    now->tv_nsec = (long)(ns % NSEC_PER_SEC);
    return r;
}
