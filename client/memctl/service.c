/* SPDX-License-Identifier: Apache-2.0 */
/* See service.h. */
#include "memctl/service.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/textfile.h"

#define ETC "/etc/systemd/system"

/* A file of a control group, and the property of systemd's that sets it. */
struct limit_file {
    const char *controller; /* in /proc/PID/cgroup; "": version 2 */
    const char *folder;
    const char *name;
    const char *property;
    const char *none; /* what is written for no limit */
};

static const struct limit_file limit_files[] = {
    {"", "/sys/fs/cgroup", "memory.max", "MemoryMax", "max"},
    {"", "/sys/fs/cgroup", "memory.high", "MemoryHigh", "max"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "MemoryLimit", "-1"},
};
#define LIMIT_FILES (sizeof(limit_files) / sizeof(limit_files[0]))

/* Is the name in the list, which has commas in between? */
static bool service_has_word(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *word = list;; word++) {
        if (!strncmp(word, name, length) && (word[length] == ',' || !word[length]))
            return true;
        word = strchr(word, ',');
        if (!word)
            return false;
    }
}

/* The path of the process's control group, of a line like "4:cpu,memory:/GROUP" or "0::/GROUP". False: it has none. */
static bool service_read_group(const struct service *service, pid_t pid, const char *controller,
                               char group[static PATH_MAX])
{
    _cleanup_fclose_ FILE *file = NULL;
    char path[PATH_MAX], line[PATH_MAX + 64];

    (void)snprintf(path, sizeof(path), "%s/proc/%d/cgroup", service->root, (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;

        line[strcspn(line, "\n")] = '\0';
        if (!at || at[1] != '/')
            continue;
        *at = '\0';
        if (!service_has_word(list + 1, controller))
            continue;
        (void)snprintf(group, PATH_MAX, "%s", at + 1);
        return true;
    }
    return false;
}

/* Is that the name of a unit that a user's systemd does not have? */
static bool service_is_unit(const char *group, const char *name)
{
    static const char *const kinds[] = {".service", ".slice", ".scope"};
    const char *end = strrchr(name, '.');

    for (size_t i = 0; end && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(end, kinds[i]))
            return !strstr(group, "/user@");
    return false;
}

/* A private broker is in the group of whatever started it, so that a unit of another name says nothing about it, and
 * must not be restarted. */
void service_find(struct service *service, const char *root, const char *socket, pid_t broker, pid_t keeper, uid_t uid)
{
    char group[PATH_MAX], *name;

    *service = (struct service){.root = root, .socket = socket, .keeper = keeper, .uid = uid};
    if ((!service_read_group(service, broker, "", group) || !group[1]) &&
        !service_read_group(service, broker, "name=systemd", group))
        return;
    name = strrchr(group, '/') + 1;
    if (strcmp(name, "memoryd.service") != 0)
        return;
    (void)snprintf(service->unit, sizeof(service->unit), "%s", name);
    service->is_users = strstr(group, "/user@");
}

const char *service_quote(const char *text, char *word, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-@:+=";
    size_t used = 1;

    if (*text && !text[strspn(text, plain)]) {
        (void)snprintf(word, size, "%s", text);
        return word;
    }
    word[0] = '\'';
    for (; *text && used + sizeof("'\\'''") < size; text++) {
        if (*text == '\'')
            used += (size_t)snprintf(word + used, size - used, "'\\'");
        word[used++] = *text;
    }
    (void)snprintf(word + used, size - used, "'");
    return word;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

/* A drop-in of a unit, which is to be restarted afterwards. Of several the last by name counts. */
static void service_drop_in(const char *unit, unsigned n, char line[static LINE_SIZE])
{
    (void)snprintf(line, LINE_SIZE,
                   "mkdir -p " ETC "/%s.d && printf '[Service]\\nLimitNOFILE=%u\\n' >" ETC
                   "/%s.d/zz-memoryd-doctor.conf"
                   " && systemctl daemon-reload",
                   unit, n, unit);
}

const char *service_mend_descriptors(const struct service *service, unsigned n, char line[static LINE_SIZE])
{
    char word[PATH_MAX], manager[64];
    size_t used;

    if (!*service->unit) {
        (void)snprintf(line, LINE_SIZE, "prlimit --pid %d --nofile=%u:%u && memctl --socket %s upgrade",
                       (int)service->keeper, n, n, service_quote(service->socket, word, sizeof(word)));
        return line;
    }
    if (!service->is_users) {
        service_drop_in(service->unit, n, line);
        used = strlen(line);
        (void)snprintf(line + used, LINE_SIZE - used, " && systemctl restart %s", service->unit);
        return line;
    }
    /* a user's systemd has no more than the system's gives it */
    (void)snprintf(manager, sizeof(manager), "user@%u.service", (unsigned)service->uid);
    service_drop_in(manager, n, line);
    used = strlen(line);
    (void)snprintf(line + used, LINE_SIZE - used, "   # and let user %u log out and in again", (unsigned)service->uid);
    return line;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* "max" is not a number, and no limit. */
static bool service_limit(const struct service *service, const struct limit_file *file, const char *group,
                          uint64_t *ret)
{
    char text[64], *end;

    if (!textfile_line(text, sizeof(text), "%s%s%s/%s", service->root, file->folder, group, file->name))
        return false;
    *ret = strtoull(text, &end, 10);
    return end != text && !*end;
}

/* Appends what lifts one limit. */
static void service_add_lift(const struct limit_file *file, const char *group, uint64_t needed,
                             char line[static LINE_SIZE])
{
    const char *name = strrchr(group, '/');
    char path[PATH_MAX + 64], word[2 * PATH_MAX];
    size_t used = strlen(line);
    const char *and = used ? " && " : "";

    if (name && service_is_unit(group, name + 1)) {
        (void)snprintf(line + used, LINE_SIZE - used, "%ssystemctl set-property %s %s=%" PRIu64, and,
                       service_quote(name + 1, word, sizeof(word)), file->property, needed);
        return;
    }
    (void)snprintf(path, sizeof(path), "%s%s/%s", file->folder, group, file->name);
    (void)snprintf(line + used, LINE_SIZE - used, "%secho %s >%s", and, file->none,
                   service_quote(path, word, sizeof(word)));
}

static void service_read_limits(const struct service *service, const struct limit_file *file, char *group,
                                uint64_t needed, struct service_memory *ret)
{
    uint64_t limit;

    /* the group and those above it, up to the first of all, which is "" */
    for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
        *slash = '\0';
        if (!service_limit(service, file, group, &limit))
            continue;
        if (limit < ret->limit) {
            ret->limit = limit;
            ret->slows = !strcmp(file->name, "memory.high");
        }
        if (limit < needed)
            service_add_lift(file, group, needed, ret->line);
    }
}

void service_read_memory(const struct service *service, pid_t pid, uint64_t needed, struct service_memory *ret)
{
    char group[PATH_MAX];

    ret->limit = UINT64_MAX;
    ret->slows = false;
    ret->line[0] = '\0';
    for (size_t i = 0; i < LIMIT_FILES; i++)
        if (service_read_group(service, pid, limit_files[i].controller, group)) {
            size_t end = strlen(group);

            /* the first of all has no name */
            while (end && group[end - 1] == '/')
                group[--end] = '\0';
            service_read_limits(service, &limit_files[i], group, needed, ret);
        }
}
