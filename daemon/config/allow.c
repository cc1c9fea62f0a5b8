/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of those whom a pool is for. Whether a user of that name exists is not known here.
 */

#include <string.h>

#include "config/config.h"

#define BLANKS " \t"

/* What ends a name that systemd has for processes; a slice is a control group, to be named by its path. */
static bool is_unit(const char *name, size_t length)
{
    static const char *const suffixes[] = {".service", ".scope"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        size_t n = strlen(suffixes[i]);

        if (length > n && !memcmp(name + length - n, suffixes[i], n))
            return !memchr(name, '/', length);
    }
    return false;
}

/* As the kernel shows it: absolute, without "/" at its end, and nothing that means another one. */
static bool is_cgroup(const char *name, size_t length)
{
    if (*name != '/' || (length > 1 && name[length - 1] == '/'))
        return false;
    for (size_t i = 0; i + 1 < length; i++)
        if (name[i] == '/' && (name[i + 1] == '/' || name[i + 1] == '.'))
            return false;
    return true;
}

/* No user or group has these in its name: "user:a,user:b" is a mistake. */
static bool is_account(const char *name, size_t length)
{
    return strcspn(name, ",:;/") >= length;
}

static bool is_entry(enum config_allow kind, const char *name, size_t length)
{
    switch (kind) {
    case CONFIG_ALLOW_USER:
    case CONFIG_ALLOW_GROUP:
        return is_account(name, length);
    case CONFIG_ALLOW_CGROUP:
        return is_cgroup(name, length);
    case CONFIG_ALLOW_UNIT:
        return is_unit(name, length);
    }
    return false;
}

bool config_allow_next(const char **text, enum config_allow *kind, const char **ret, size_t *ret_length)
{
    static const char *const prefixes[] = {
        [CONFIG_ALLOW_USER] = "user:",
        [CONFIG_ALLOW_GROUP] = "group:",
        [CONFIG_ALLOW_CGROUP] = "cgroup:",
        [CONFIG_ALLOW_UNIT] = "unit:",
    };

    *text += strspn(*text, BLANKS);
    for (unsigned i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        const char *name = *text + strlen(prefixes[i]);
        size_t length;

        if (strncmp(*text, prefixes[i], strlen(prefixes[i])) != 0)
            continue;
        length = strcspn(name, BLANKS);
        if (!length || !is_entry((enum config_allow)i, name, length))
            return false;
        *text = name + length;
        *kind = (enum config_allow)i;
        *ret = name;
        *ret_length = length;
        return true;
    }
    return false;
}
