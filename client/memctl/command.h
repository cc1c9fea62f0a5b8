/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of memctl, and what all of them share: the connection, the exit status, how a buffer is named.
 */
#pragma once

#include <memclient/memclient.h>
#include <stdbool.h>
#include <stdint.h>

enum exit_status {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_BROKER = 3,
};

struct invocation {
    const struct command *command;
    const char *socket; /* --socket, or NULL */
    bool json;
    int argc; /* the command's name and what came behind it, options included */
    char **argv;
};

struct command {
    const char *name;
    const char *synopsis; /* arguments, for the usage line */
    const char *summary;  /* one line */
    const char *help;     /* what the options mean; ends with a newline */
    bool autostart;       /* worth starting a private broker for */
    bool runs_program;    /* its arguments end with those of another program */
    bool without_broker;  /* `run` gets no context */
    /* With an open context; returns an exit status, or a negative errno with memclient_error() set. */
    int (*run)(struct invocation *invocation, struct memclient *ctx);
    /* Reads argv before a broker is needed: EXIT_DONE or EXIT_USAGE. */
    int (*parse)(struct invocation *invocation);
};

extern const struct command admin_commands[];
extern const struct command buffer_commands[];
extern const struct command doctor_commands[];
extern const struct command list_commands[];

/* Says what is wrong with the command line and how to learn more, and returns EXIT_USAGE. */
int usage_error(const struct invocation *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Goes through options and arguments like getopt_long(3), with --json, --socket and --help done on the way. Returns
 * the option, -1 at the end, or '?' after having said what is wrong.
 */
struct option;
int next_option(struct invocation *invocation, const struct option *options);

/* For commands without any. */
int parse_nothing(struct invocation *invocation);

/* A buffer as people give it: a name, "#id", or a token's 64 digits. */
enum reference_kind { REFERENCE_NAME, REFERENCE_ID, REFERENCE_TOKEN };

struct reference {
    enum reference_kind kind;
    const char *name;
    uint64_t id;
    struct memclient_token token;
};

/* 0 or -EINVAL */
int reference_parse(const char *text, struct reference *reference);
int reference_open(struct memclient *ctx, const struct reference *reference, unsigned rights,
                   struct memclient_buffer **ret);
