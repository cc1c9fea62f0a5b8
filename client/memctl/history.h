/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What history.c, follow.c and holders.c show.
 */
#pragma once

#include "memctl/command.h"
#include "memctl/output.h"

extern const struct column history_columns[]; /* of a struct memclient_history_entry */
extern const struct column limit_columns[];   /* of a struct memclient_limit_info */
extern const struct column holder_columns[];  /* of rows that are made already */

/* A sentence for people about a struct memclient_history_entry. */
void history_describe(const void *entry, char *text, size_t size);
/* How a process died: enum memclient_session_end, and its exit status or signal. */
void history_describe_death(unsigned end, int status, char *text, size_t size);
/* The word of that, its exit status, and its signal; or null. */
json_t *history_end_json(uint64_t end);
json_t *history_exit_status_json(unsigned end, int status);
json_t *history_signal_json(unsigned end, int status);
/* A number, or null for 0. */
json_t *history_known_json(uint64_t number);

/* Entries of the history. */
struct history_query {
    bool (*wanted)(const struct memclient_history_entry *entry);
    uint64_t begun_ms;
    uint64_t last; /* serial */
    struct output output;
};

/* Appends those after the last that the command line chooses. 0 or a negative errno. */
int history_query_run(struct history_query *query, struct memclient_context *ctx);

/* follow.c: `events --follow`. Parses what follows the options, and follows. */
int follow_parse(const struct invocation *invocation);
int follow_run(struct history_query *query, const struct invocation *invocation, struct memclient_context *ctx);
