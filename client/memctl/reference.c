/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses references, and writes names as references.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memctl/reference.h"

/* Parses an id as memctl and the broker write it: decimal, not 0, without leading zeros. */
static bool reference_parse_id(const char *text, uint64_t *ret)
{
    unsigned long long id;
    char *end;

    if (*text < '1' || *text > '9')
        return false;
    errno = 0;
    id = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *ret = id;
    return true;
}

static bool reference_has_prefix(const char *text, const char *prefix, const char **ret)
{
    size_t n = strlen(prefix);

    if (strncmp(text, prefix, n) != 0)
        return false;
    *ret = text + n;
    return true;
}

const char *reference_parse(const char *text, struct reference *reference)
{
    const char *rest;

    *reference = (struct reference){.kind = REFERENCE_NAME, .name = text};
    if (reference_has_prefix(text, "name:", &rest)) {
        reference->name = rest;
        return *rest ? NULL : "has no name behind name:";
    }
    if (reference_has_prefix(text, "id:", &rest)) {
        reference->kind = REFERENCE_ID;
        return reference_parse_id(rest, &reference->id) ? NULL
                                                        : "has no id behind id:; put name: before it if it is a name";
    }
    if (reference_has_prefix(text, "token:", &rest)) {
        reference->kind = REFERENCE_TOKEN;
        return !memclient_token_parse(rest, &reference->token)
                   ? NULL
                   : "has no token's 64 digits behind token:; put name: before it if it is a name";
    }
    if (reference_parse_id(text, &reference->id) || (*text == '#' && reference_parse_id(text + 1, &reference->id)))
        reference->kind = REFERENCE_ID;
    else if (!memclient_token_parse(text, &reference->token))
        reference->kind = REFERENCE_TOKEN;
    return *text ? NULL : "is no name, no id and no token";
}

void reference_of_name(const char *name, char text[REFERENCE_MAX])
{
    struct reference reference;
    bool plain = *name != '-' && !reference_parse(name, &reference) && reference.kind == REFERENCE_NAME &&
                 reference.name == name;

    snprintf(text, REFERENCE_MAX, "%s%.*s", plain ? "" : "name:", MEMCLIENT_NAME_SIZE, name);
}
