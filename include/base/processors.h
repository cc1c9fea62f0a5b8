/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many processors this thread and those that work for it can keep busy: the processors that it may run on, limited
 * by its control groups (version 2). The usual case is a container that is allowed one of many: two threads that are
 * busy at once use its quota up twice as fast, and then both stand still.
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/textfile.h"

/* The text of a cpu.max, "QUOTA PERIOD" or "max PERIOD", in whole processors. UINT_MAX: no limit. */
static inline unsigned processors_of_quota(const char *text)
{
    unsigned long long quota, period;
    char *end;

    if (*text < '0' || *text > '9')
        return UINT_MAX;
    quota = strtoull(text, &end, 10);
    period = strtoull(end, NULL, 10);
    if (!period || quota / period > UINT_MAX)
        return UINT_MAX;
    return (unsigned)(quota / period);
}

/* The least that the groups of this process allow, from its own up to the root. */
static inline unsigned processors_of_groups(void)
{
    unsigned least = UINT_MAX;
    char line[PATH_MAX], quota[64];
    char *group, *end;

    /* one line means that all groups are of version 2; elsewhere version 1 limits the time */
    if (!textfile_line(line, sizeof(line), "/proc/self/cgroup") || strncmp(line, "0::/", 4) != 0)
        return least;
    group = line + 3;
    if (!group[1])
        *group = '\0';
    for (;;) {
        if (textfile_line(quota, sizeof(quota), "/sys/fs/cgroup%s/cpu.max", group) &&
            processors_of_quota(quota) < least)
            least = processors_of_quota(quota);
        end = strrchr(group, '/');
        if (!end)
            return least;
        *end = '\0';
    }
}

/* For the calling thread; UINT_MAX if no limit is known. Keeps errno. */
static inline unsigned processors_usable(void)
{
    static unsigned allowed; /* atomic: of the groups, plus 1; 0 = not looked yet */
    unsigned groups = __atomic_load_n(&allowed, __ATOMIC_RELAXED), n = UINT_MAX;
    int saved = errno;
    cpu_set_t set;

    if (!groups) {
        groups = processors_of_groups();
        groups = groups < UINT_MAX ? groups + 1 : groups;
        __atomic_store_n(&allowed, groups, __ATOMIC_RELAXED);
    }
    if (!sched_getaffinity(0, sizeof(set), &set))
        n = (unsigned)CPU_COUNT(&set);
    errno = saved;
    return groups < UINT_MAX && groups - 1 < n ? groups - 1 : n;
}
