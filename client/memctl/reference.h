/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How people say which buffer. A number as ids are written is an id, and 64 hexadecimal digits are a token. Everything
 * else is a name. A name can be anything, so that "id:", "token:" and "name:" before it say which is meant.
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

/* NULL, or what is wrong with the text. */
const char *reference_parse(const char *text, struct reference *reference);

/* How to give a name so that it is taken for one: itself, or with "name:" before it. */
void reference_of_name(const char *name, char text[REFERENCE_MAX]);

int reference_open(struct memclient *ctx, const struct reference *reference, unsigned rights,
                   struct memclient_buffer **ret);
