/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon a thread gets a processor when there are more threads than processors; and which.
 *
 * Policy and niceness determine its share. Its slice determines how long it may keep threads waiting that have just
 * woken up: since 6.12 the kernel lets a thread with a shorter slice go first when it wakes, and takes no share away
 * for that; older ones ignore the slice. So the thread that answers clients has a short one, and those that clear
 * gigabytes have a long one.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

struct sys_schedule {
    int policy;     /* SCHED_OTHER or SCHED_BATCH */
    int nicer;      /* added to the thread's niceness */
    uint64_t slice; /* in nanoseconds; 0 = the kernel's */
};

/*
 * For the calling thread. A thread with another policy than SCHED_OTHER stays as it is: an administrator has chosen
 * that. 0 or a negative errno; nothing has changed then, which does no harm.
 */
int sys_schedule_self(const struct sys_schedule *schedule);

/* Changes only the slice, of a thread that is SCHED_OTHER or SCHED_BATCH; any other stays as it is. 0 or a negative
 * errno, likewise. */
int sys_schedule_slice(uint64_t slice);

/* The processors that the calling thread may use; none if that is unknown. */
void sys_processors_get(cpu_set_t *ret);
/* Restricts the calling thread to those of `mine` that are in `near`, too, if there are any; a refusal does no harm. */
void sys_processors_keep_to(const cpu_set_t *mine, const cpu_set_t *near);
