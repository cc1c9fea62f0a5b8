/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command line of a command that is about one buffer said; one command runs per process.
 */
#pragma once

#include <memclient/memclient.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memctl/command.h"
#include "memctl/reference.h"
#include "memctl/values.h"

struct line {
    struct reference reference;
    const char *given; /* the text of that */
    uint64_t size;
    bool have_size;
    struct memclient_alloc_options alloc;
    struct memclient_name_options name;
    struct memclient_share_options share;
    uint32_t nodes[VALUES_LIST_MAX], weights[VALUES_LIST_MAX];
    size_t n_weights;
    unsigned rights, claim;
    bool force, future_only;
};

extern struct line line;

/* The options, in any order. The commands' tables have no others than line.c knows, by these letters. */
int parse_options(struct invocation *invocation);
/* … and a buffer; what is behind it is left. */
int parse_reference(struct invocation *invocation);
/* … and nothing else. */
int parse_only_reference(struct invocation *invocation);

/* Opens the buffer that was named. */
int line_open(struct memclient *ctx, unsigned rights, struct memclient_buffer **ret);
