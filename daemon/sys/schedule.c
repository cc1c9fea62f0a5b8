/* SPDX-License-Identifier: Apache-2.0 */
/* One call sets all of it; the C library has it by name only since 2.41. */
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

/* The least share that there is. */
#define NICEST 19

/* The niceness of the calling thread, whatever PRIO_PROCESS says, from -20; or a negative errno below that. */
static int own_nice(void)
{
    int nice;

    errno = 0;
    nice = getpriority(PRIO_PROCESS, 0);
    return nice == -1 && errno ? -100 - errno : nice;
}

static int set(int policy, int nice, uint64_t slice)
{
    const struct attributes attributes = {
        .size = sizeof(attributes),
        .policy = (uint32_t)policy,
        .nice = nice < NICEST ? nice : NICEST,
        .runtime = slice,
    };

    return syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? -errno : 0;
}

int sys_schedule_self(const struct sys_schedule *schedule)
{
    int policy = sched_getscheduler(0);
    int nice = own_nice();

    if (policy != SCHED_OTHER)
        return policy < 0 ? -errno : 0;
    if (nice < -20)
        return nice + 100;
    return set(schedule->policy, nice + schedule->nicer, schedule->slice);
}

int sys_schedule_slice(uint64_t slice)
{
    int policy = sched_getscheduler(0);
    int nice = own_nice();

    if (policy != SCHED_OTHER && policy != SCHED_BATCH)
        return policy < 0 ? -errno : 0;
    if (nice < -20)
        return nice + 100;
    return set(policy, nice, slice);
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
