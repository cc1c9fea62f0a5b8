/* SPDX-License-Identifier: Apache-2.0 */
/* See schedule.h. One call sets all of it; the C library has it by name only since 2.41. */

#include "sys/schedule.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct sched_attr, in its first form. */
struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime; /* of the policies here: the slice */
    uint64_t deadline;
    uint64_t period;
};

_Static_assert(sizeof(struct attributes) == 48, "as the kernel has it");

/* The lowest share. */
#define NICEST 19

static int schedule_set(int policy, int nicer, uint64_t slice)
{
    struct attributes attributes = {.size = sizeof(attributes), .policy = (uint32_t)policy, .runtime = slice};
    int nice;

    errno = 0;
    nice = getpriority(PRIO_PROCESS, 0); /* of the thread, whatever the name says */
    if (nice == -1 && errno)
        return -errno;
    nice += nicer;
    attributes.nice = nice > NICEST ? NICEST : nice;
    return syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? -errno : 0;
}

int sys_schedule_self(const struct sys_schedule *schedule)
{
    int policy = sched_getscheduler(0);

    if (policy != SCHED_OTHER)
        return policy < 0 ? -errno : 0;
    return schedule_set(schedule->policy, schedule->nicer, schedule->slice);
}

int sys_schedule_slice(uint64_t slice)
{
    int policy = sched_getscheduler(0);

    if (policy != SCHED_OTHER && policy != SCHED_BATCH)
        return policy < 0 ? -errno : 0;
    return schedule_set(policy, 0, slice);
}

void sys_processors_get(cpu_set_t *ret)
{
    CPU_ZERO(ret);
    if (sched_getaffinity(0, sizeof(*ret), ret) < 0)
        CPU_ZERO(ret);
}

void sys_processors_keep_to(const cpu_set_t *mine, const cpu_set_t *near)
{
    cpu_set_t both;

    CPU_AND(&both, mine, near);
    if (CPU_COUNT(&both))
        (void)sched_setaffinity(0, sizeof(both), &both);
}
