/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses values. It guesses nothing: it refuses what it does not wholly understand.
 */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <math.h>
#include <memclient/memclient.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "memctl/values.h"

const char *const pages_words[] = {
    [MEMCLIENT_PAGES_ANY] = "any",
    [MEMCLIENT_PAGES_BASE] = "base",
    [MEMCLIENT_PAGES_THP] = "thp",
    [MEMCLIENT_PAGES_HUGETLB] = "hugetlb",
    NULL,
};
const char *const placement_words[] = {"pool", "bind", "preferred", "interleave", "split", "local", NULL};
const char *const kind_words[] = {"any", "refused", "waited", "ended", "started", "done", NULL};
const struct event_word event_words[] = {
    {"held", MEMCLIENT_EVENT_HELD, true},           {"left", MEMCLIENT_EVENT_LEFT, true},
    {"died", MEMCLIENT_EVENT_DIED, true},           {"death", MEMCLIENT_EVENT_DEATH, true},
    {"published", MEMCLIENT_EVENT_PUBLISHED, true}, {"discarded", MEMCLIENT_EVENT_DISCARDED, true},
    {"moved", MEMCLIENT_EVENT_MOVED, true},         {"destroyed", MEMCLIENT_EVENT_DESTROYED, true},
    {"name", MEMCLIENT_EVENT_NAME, true},           {"pressure", MEMCLIENT_EVENT_PRESSURE, false},
    {"shutdown", MEMCLIENT_EVENT_SHUTDOWN, false},  {.word = NULL},
};
const char *const claim_words[] = {"none", "shared", "exclusive", NULL};

/* A decimal number and the unit behind it. */
static int parse_number(const char *text, double *ret, const char **ret_unit)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    *ret = strtod(text, &end);
    if (errno || !isfinite(*ret))
        return -ERANGE;
    /* strtod() would accept hexadecimal numbers and powers of ten */
    if (strspn(text, "0123456789.") != (size_t)(end - text))
        return -EINVAL;
    *ret_unit = end;
    return 0;
}

int parse_bytes(const char *text, uint64_t *ret)
{
    static const char units[] = "KMGTPE";
    const char *unit, *at;
    uint64_t factor = 1;
    double value;
    int r;

    r = parse_number(text, &value, &unit);
    if (r)
        return r;
    at = *unit ? strchr(units, toupper((unsigned char)*unit)) : NULL;
    if (at) {
        factor = UINT64_C(1) << (10 * (at - units + 1));
        unit++;
        if (*unit == 'i')
            unit++;
    }
    if (*unit == 'B')
        unit++;
    if (*unit)
        return -EINVAL;
    if (factor == 1) {
        /* a double is not exact enough for a number without a unit */
        unsigned long long exact;
        char *end;

        errno = 0;
        exact = strtoull(text, &end, 10);
        if (errno)
            return -ERANGE;
        if (*end && *end != 'B')
            return -EINVAL;
        *ret = exact;
        return 0;
    }
    value *= (double)factor;
    if (value >= 0x1p64)
        return -ERANGE;
    *ret = (uint64_t)value;
    return 0;
}

int parse_duration(const char *text, uint64_t *ret_ms)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1e3}, {"", 1e3}, {"min", 60e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
    const char *unit;
    double value;
    int r;

    r = parse_number(text, &value, &unit);
    if (r)
        return r;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (!strcmp(unit, units[i].name)) {
            value *= units[i].ms;
            if (value >= 0x1p63)
                return -ERANGE;
            *ret_ms = (uint64_t)value;
            return 0;
        }
    return -EINVAL;
}

static const struct {
    char letter;
    unsigned right;
} rights_letters[RIGHTS_TEXT - 1] = {
    {'r', MEMCLIENT_READ},
    {'w', MEMCLIENT_WRITE},
    {'s', MEMCLIENT_SHARE},
    {'m', MEMCLIENT_MANAGE},
};

int parse_rights(const char *text, unsigned *ret)
{
    unsigned rights = 0;

    for (; *text; text++) {
        size_t i = 0;

        while (i < RIGHTS_TEXT - 1 && rights_letters[i].letter != *text)
            i++;
        if (i == RIGHTS_TEXT - 1)
            return -EINVAL;
        rights |= rights_letters[i].right;
    }
    *ret = rights & MEMCLIENT_WRITE ? rights | MEMCLIENT_READ : rights;
    return rights ? 0 : -EINVAL;
}

void format_rights(unsigned rights, char text[RIGHTS_TEXT])
{
    for (size_t i = 0; i < RIGHTS_TEXT - 1; i++)
        if (rights & rights_letters[i].right)
            *text++ = rights_letters[i].letter;
    *text = '\0';
}

int parse_u32(const char *text, uint32_t *ret)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)value;
    return 0;
}

int parse_pid(const char *text, pid_t *ret)
{
    uint32_t pid;

    if (parse_u32(text, &pid) || !pid || pid > INT32_MAX)
        return -EINVAL;
    *ret = (pid_t)pid;
    return 0;
}

int parse_list(const char *text, struct values_list *list)
{
    char copy[512], *rest = copy, *one;
    struct values_list found = {.n = 0};

    if (strlen(text) >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, strlen(text) + 1);
    while ((one = strsep(&rest, ","))) {
        if (found.n == VALUES_LIST_MAX || parse_u32(one, &found.numbers[found.n]))
            return -EINVAL;
        found.n++;
    }
    *list = found;
    return 0;
}

int parse_choice(const char *text, const char *const *words, unsigned *ret)
{
    for (unsigned i = 0; words[i]; i++)
        if (!strcmp(text, words[i])) {
            *ret = i;
            return 0;
        }
    return -EINVAL;
}

static int parse_kind(const char *text, struct values_kinds *kinds)
{
    unsigned i;

    if (!parse_choice(text, kind_words, &i)) {
        kinds->history |= i ? 1U << i : ~0U;
        return 0;
    }
    for (const struct event_word *word = event_words; word->word; word++)
        if (!strcmp(text, word->word)) {
            kinds->events |= word->event;
            return 0;
        }
    return -EINVAL;
}

int parse_kinds(const char *text, struct values_kinds *kinds)
{
    char copy[256], *rest = copy, *one;

    if (strlen(text) >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, strlen(text) + 1);
    while ((one = strsep(&rest, ",")))
        if (parse_kind(one, kinds))
            return -EINVAL;
    return 0;
}

int parse_user(const char *text, uid_t *ret)
{
    const struct passwd *entry = getpwnam(text);

    if (!entry)
        return parse_u32(text, ret);
    *ret = entry->pw_uid;
    return 0;
}

int parse_group(const char *text, gid_t *ret)
{
    const struct group *entry = getgrnam(text);

    if (!entry)
        return parse_u32(text, ret);
    *ret = entry->gr_gid;
    return 0;
}

int parse_group_rights(const char *text, gid_t *ret_gid, unsigned *ret_rights)
{
    const char *colon = strrchr(text, ':');
    char group[256];

    if (!colon || (size_t)(colon - text) >= sizeof(group))
        return -EINVAL;
    memcpy(group, text, (size_t)(colon - text));
    group[colon - text] = '\0';
    return parse_rights(colon + 1, ret_rights) || parse_group(group, ret_gid) ? -EINVAL : 0;
}
