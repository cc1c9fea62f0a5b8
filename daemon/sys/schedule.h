/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon a thread gets a processor when there are more threads than processors; and which.
 *
 * Two things, which are not the same. How large its share is: policy and niceness. And how long it may keep others
 * waiting that have just woken up: its slice. A kernel since 6.12 lets a thread with the shorter slice go first when it
 * wakes, and takes no share away for that; an older one ignores the slice. So what answers clients has a short one, and
 * what clears gigabytes a long one.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

struct sys_schedule {
    int policy;     /* SCHED_OTHER or SCHED_BATCH */
    int nicer;      /* than the thread is now */
    uint64_t slice; /* in nanoseconds; 0 = the kernel's */
};

/*
 * For the calling thread. One that runs under another policy than SCHED_OTHER stays as it is: somebody has decided
 * that. 0 or a negative errno, and then all is as it was, which is no harm.
 */
int sys_schedule_self(const struct sys_schedule *schedule);

/*
 * The same policy and niceness, and another slice. For a thread that is SCHED_OTHER or SCHED_BATCH; any other stays as
 * it is. 0 or a negative errno, likewise.
 */
int sys_schedule_slice(uint64_t slice);

/* The processors that the calling thread may use; none if that is unknown. */
void sys_processors_get(cpu_set_t *ret);
/* Only those of `mine` that are in `near` too, if there are any; it is no harm if that is refused. */
void sys_processors_keep_to(const cpu_set_t *mine, const cpu_set_t *near);
