/* SPDX-License-Identifier: Apache-2.0 */
/* See allow.h. */

#include "mem/allow.h"

#include <limits.h>
#include <string.h>

#include "proto/status.h"

_Static_assert(MEMORYD_POOL_ALLOW_MAX <= UINT8_MAX, "a place in the text has 8 bits");

void allow_init(struct allow *allow, const char *text)
{
    *allow = (struct allow){.n = 0};
    (void)snprintf(allow->text, sizeof(allow->text), "%s", text);
}

void allow_add(struct allow *allow, enum allow_kind kind, uint32_t id, const char *name, size_t length)
{
    if (allow->n == ALLOW_ENTRIES_MAX)
        return;
    allow->entries[allow->n].kind = kind;
    allow->entries[allow->n].id = id;
    allow->entries[allow->n].at = (uint8_t)(name - allow->text);
    allow->entries[allow->n++].length = (uint8_t)length;
}

/* This one or one below it; "/" is all of them. */
static bool is_in_cgroup(const char *path, const char *cgroup, size_t length)
{
    return !strncmp(path, cgroup, length) && (length == 1 || !path[length] || path[length] == '/');
}

/* Of a part of a path: "user-1000.slice" */
static bool is_slice(const char *part, size_t length)
{
    return length > strlen(".slice") && !memcmp(part + length - strlen(".slice"), ".slice", strlen(".slice"));
}

/* systemd puts a "_" before a name that would look like a file of the kernel's, "memory.service" for instance. */
static bool is_of_unit(const char *path, const char *unit, size_t length)
{
    const char *part = path;
    size_t n;

    do {
        part += *part == '/';
        n = strcspn(part, "/");
        if (!is_slice(part, n))
            break;
        part += n;
    } while (*part);
    if (n && *part == '_') {
        part++;
        n--;
    }
    return n == length && !memcmp(part, unit, n);
}

bool allow_has(const struct allow *allow, const struct peer *peer, const char *path)
{
    for (uint32_t i = 0; i < allow->n; i++) {
        const char *name = allow->text + allow->entries[i].at;
        size_t length = allow->entries[i].length;
        bool found = false;

        switch (allow->entries[i].kind) {
        case ALLOW_NONE:
            break;
        case ALLOW_USER:
            found = peer->uid == allow->entries[i].id;
            break;
        case ALLOW_GROUP:
            found = peer_in_group(peer, allow->entries[i].id);
            break;
        case ALLOW_CGROUP:
            found = *path && is_in_cgroup(path, name, length);
            break;
        case ALLOW_UNIT:
            found = *path && is_of_unit(path, name, length);
            break;
        }
        if (found)
            return true;
    }
    return false;
}

static bool wants_path(const struct allow *allow)
{
    for (uint32_t i = 0; i < allow->n; i++)
        if (allow->entries[i].kind == ALLOW_CGROUP || allow->entries[i].kind == ALLOW_UNIT)
            return true;
    return false;
}

int allow_check(const struct allow *allow, const char *pool, const struct peer *peer, struct problem *problem)
{
    char path[PATH_MAX] = "";

    if (!*allow->text || allow_has(allow, peer, path) ||
        (wants_path(allow) && peer_cgroup(peer, path, sizeof(path)) && allow_has(allow, peer, path)))
        return 0;
    return refuse(problem, STATUS_NO_RIGHT,
                  "pool %s is not for uid %u: allow in [pool %s] has neither this user, nor a group of its, nor its "
                  "control group or unit; name another pool, or none",
                  pool, (unsigned)peer->uid, pool);
}
