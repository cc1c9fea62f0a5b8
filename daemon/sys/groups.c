/* SPDX-License-Identifier: Apache-2.0 */
/* See groups.h. In a container the paths of its groups may not exist: then only groups further up are found. */

#include "sys/groups.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/text.h"

struct version {
    const char *folder, *limit, *used;
    const char *active, *inactive; /* lines of memory.stat, neither of which is the first one */
};

static const struct version versions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "\nactive_file ", "\ninactive_file "},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_active_file ",
     "\ntotal_inactive_file "},
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

uint64_t groups_memory(const char *root)
{
    _cleanup_fclose_ FILE *file = NULL;
    uint64_t least = UINT64_MAX;
    char line[PATH_MAX];

    (void)snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    file = fopen(line, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const struct version *version;
        char *group;

        line[strcspn(line, "\n")] = '\0';
        version = version_of(line, &group);
        if (version) {
            uint64_t left = groups_least(root, version, group);

            least = left < least ? left : least;
        }
    }
    return least;
}
