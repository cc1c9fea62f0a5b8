/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer as people refer to it. A decimal number is an id, 64 hexadecimal digits are a token, and anything else is a
 * name. As a name may be any text, a prefix "id:", "token:" or "name:" says which is meant.
 */
#pragma once

#include <memclient/memclient.h>
#include <stddef.h>
#include <stdint.h>

enum reference_kind { REFERENCE_NAME, REFERENCE_ID, REFERENCE_TOKEN };

struct reference {
    enum reference_kind kind;
    const char *name; /* within the text */
    uint64_t id;
    struct memclient_token token;
};

enum { REFERENCE_MAX = MEMCLIENT_NAME_SIZE + 8 };

/* Parses the text. NULL, or what is wrong with it. */
const char *reference_parse(const char *text, struct reference *reference);

/* Writes a name such that it parses as one: as it is, or with "name:" before it. */
void reference_of_name(const char *name, char text[REFERENCE_MAX]);
