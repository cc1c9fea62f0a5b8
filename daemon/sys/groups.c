/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See groups.h. In a container the paths of its groups may not exist. Limits are then those of groups further up, which
 * hold for it as well; kills are not counted at all, since what is further up here may be another's.
 */

#include "sys/groups.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "sys/text.h"

struct version {
    const char *folder, *limit, *used;
    const char *active, *inactive; /* lines of memory.stat, neither of which is the first one */
    const char *events;            /* a file with the line "oom_kill", which is not the first one */
    bool charged_above;            /* a group may be without that file: memory is then charged to one above it */
};

static const struct version versions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "\nactive_file ", "\ninactive_file ", "memory.events", true},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_active_file ",
     "\ntotal_inactive_file ", "memory.oom_control", false},
};

/* What the group leaves. False if it has no limit; "max" is not a number. */
static bool groups_left(const char *root, const struct version *version, const char *group, uint64_t *ret)
{
    uint64_t limit, used, active = 0, inactive = 0;
    char text[8192];

    if (!text_read_number(&limit, "%s%s%s/%s", root, version->folder, group, version->limit) ||
        !text_read_number(&used, "%s%s%s/%s", root, version->folder, group, version->used))
        return false;
    if (text_read(text, sizeof(text), "%s%s%s/memory.stat", root, version->folder, group)) {
        (void)text_number_after(text, version->active, &active);
        (void)text_number_after(text, version->inactive, &inactive);
    }
    *ret = (limit > used ? limit - used : 0) + (active + inactive) / 2;
    return true;
}

/* The least that a group and those above it leave. */
static uint64_t groups_least(const char *root, const struct version *version, char *group)
{
    uint64_t least = UINT64_MAX, left;
    char *end;

    if (!group[1])
        *group = '\0';
    for (;;) {
        if (groups_left(root, version, group, &left) && left < least)
            least = left;
        end = strrchr(group, '/');
        if (!end)
            return least;
        *end = '\0';
    }
}

/* Of a line "0::/GROUP", or "4:cpu,memory:/GROUP" of the first version. */
static const struct version *version_of(const char *line, char **group)
{
    char *controllers = strchr(line, ':');

    *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!*group || (*group)[1] != '/')
        return NULL;
    *(*group)++ = '\0';
    controllers++;
    if (!*controllers)
        return &versions[0];
    for (char *rest, *one = strtok_r(controllers, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (!strcmp(one, "memory"))
            return &versions[1];
    return NULL;
}

/* The next line of /proc/PID/cgroup that is of a version with limits of memory; "self" for this process. NULL: there is
 * none. `group` gets its path, within `line`. */
static const struct version *groups_next(FILE *file, char line[static PATH_MAX], char **group)
{
    const struct version *version = NULL;

    while (!version && file && fgets(line, PATH_MAX, file)) {
        line[strcspn(line, "\n")] = '\0';
        version = version_of(line, group);
    }
    return version;
}

uint64_t groups_memory(const char *root)
{
    _cleanup_fclose_ FILE *file = NULL;
    const struct version *version;
    uint64_t least = UINT64_MAX;
    char line[PATH_MAX], *group;

    (void)snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    file = fopen(line, "re");
    while ((version = groups_next(file, line, &group))) {
        uint64_t left = groups_least(root, version, group);

        least = left < least ? left : least;
    }
    return least;
}

/* Is that group below what is mounted here? Else those further up are none of its own. */
static bool groups_exists(const char *root, const struct version *version, const char *group)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s%s%s", root, version->folder, group);

    /* workers may not make access() */
    return n >= 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool groups_find_kills_of(const char *root, const struct version *version, char *group, char *path, size_t size)
{
    uint64_t kills;
    char *end;

    if (!group[1])
        *group = '\0';
    if (!groups_exists(root, version, group))
        return false;
    for (;;) {
        int n = snprintf(path, size, "%s%s%s/%s", root, version->folder, group, version->events);

        if (n >= 0 && (size_t)n < size && groups_read_kills(path, &kills))
            return true;
        end = version->charged_above ? strrchr(group, '/') : NULL;
        if (!end)
            return false;
        *end = '\0';
    }
}

bool groups_find_kills(const char *root, pid_t pid, char *path, size_t size)
{
    _cleanup_fclose_ FILE *file = NULL;
    const struct version *version;
    char line[PATH_MAX], *group;

    (void)snprintf(line, sizeof(line), "%s/proc/%d/cgroup", root, (int)pid);
    file = fopen(line, "re");
    while ((version = groups_next(file, line, &group)))
        if (strncmp(group, "/..", 3) != 0 && groups_find_kills_of(root, version, group, path, size))
            return true;
    return false;
}

bool groups_read_kills(const char *path, uint64_t *ret)
{
    char text[1024];

    return text_read(text, sizeof(text), "%s", path) && text_number_after(text, "\noom_kill ", ret);
}
