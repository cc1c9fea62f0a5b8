/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of a command that is about one buffer, and the buffer. One command runs per process.
 */
#pragma once

#include <memclient/memclient.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "memctl/command.h"
#include "memctl/reference.h"
#include "memctl/values.h"

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

struct line {
    struct reference reference;
    const char *given; /* the text of that */
    uint64_t size;
    unsigned have_size;
    struct memclient_alloc_options alloc;
    struct memclient_name_options name;
    struct memclient_share_options share;
    struct values_list nodes, weights;
    unsigned rights, claim, force, publish_flags, follow;
    struct values_kinds kinds;
    uint64_t since_ms, interval_ms, rows;
    const char *filter, *replay;
    unsigned once, view, sort; /* enum top_view, enum top_sort */
};

extern struct line line;

/* Parses the options, in any order. */
int parse_options(struct invocation *invocation);
/* … and a buffer, if another argument follows; `given` is NULL if none does. */
int parse_any_reference(struct invocation *invocation);
/* … and a buffer, but not what follows it. */
int parse_reference(struct invocation *invocation);
/* … and nothing else. */
int parse_only_reference(struct invocation *invocation);

/* Finds the buffer that was named, or has this id, without opening it, so that who asks is no holder. 0, also if none
 * of the names that one may see is this one, which leaves *ret 0; or a negative errno. */
int line_find_buffer(struct memclient_context *ctx, uint64_t *ret);
/* Opens the buffer that was named. */
int line_open(struct memclient_context *ctx, unsigned rights, struct memclient_buffer **ret);

/* bytes.c: the commands that read and write the bytes of a buffer. */
int run_cat(struct invocation *invocation, struct memclient_context *ctx);
int run_fill(struct invocation *invocation, struct memclient_context *ctx);
