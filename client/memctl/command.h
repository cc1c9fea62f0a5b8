/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of memctl, and what all commands share: the command line, the connection and the exit status.
 */
#pragma once

#include <getopt.h>
#include <memclient/memclient.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum exit_status {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_BROKER = 3,
    /* of a command that runs a program, as in env(1); any other one is the program's */
    EXIT_NOT_BEGUN = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NO_PROGRAM = 127,
};

struct invocation {
    const struct command *command;
    const char *socket; /* --socket, or NULL */
    bool json;
    int argc; /* the command's name and what follows it, options included */
    char **argv;
    char **program; /* to be run: its name and arguments; or NULL */
};

struct command {
    const char *name;
    const char *synopsis; /* arguments, for the usage line; NULL: none */
    const char *summary;  /* one line */
    const char *help;     /* what the options mean, with a newline at its end; or NULL */
    const char *options;  /* letters of its own, see line.c; NULL: none */
    bool autostart;       /* starts a private broker if there is none */
    bool runs_program;    /* its arguments end with a program and its arguments */
    bool without_broker;  /* `run` gets no context */
    bool hidden;          /* from lists of commands */
    /* Gets an open context. Returns an exit status, or a negative errno with memclient_error() set. */
    int (*run)(struct invocation *invocation, struct memclient_context *ctx);
    /* Parses argv before a broker is needed: EXIT_DONE or EXIT_USAGE. NULL: there are neither options nor arguments. */
    int (*parse)(struct invocation *invocation);
};

extern const struct command admin_commands[];
extern const struct command buffer_commands[];
extern const struct command doctor_commands[];
extern const struct command help_commands[];
extern const struct command history_commands[];
extern const struct command holder_commands[];
extern const struct command list_commands[];
extern const struct command top_commands[];

/* The tables above, up to a NULL. */
extern const struct command *const command_families[];

#define FOR_EACH_COMMAND(each)                                                         \
    for (const struct command *const *family_ = command_families; *family_; family_++) \
        for (const struct command *each = *family_; each->name; each++)

/* NULL if there is none of that name. */
const struct command *find_command(const char *name);

/* Prints what is wrong with the command line and how to learn more, and returns EXIT_USAGE. */
int usage_error(const struct invocation *invocation, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "COMMAND: SENTENCE" and returns EXIT_REFUSED. */
int refused(const struct invocation *invocation, const char *sentence);

/* Did the library's last call fail with this errno because no broker answers? */
bool is_without_broker(int r);

/* Connects. 0, or an exit status after printing why not. */
int open_broker(const struct invocation *invocation, struct memclient_context **ctx);

/*
 * Reads the next option of the command like getopt_long(3), and handles those that every command has. Returns its
 * letter, -1 at the end, or '?' after printing what is wrong.
 */
int next_option(struct invocation *invocation);

/* Checks that no argument is left. EXIT_DONE or EXIT_USAGE. */
int parse_end(const struct invocation *invocation);

/* Lists the options of every command, and of this one unless it is NULL, as getopt_long(3) wants them. */
enum { OPTIONS_MAX = 32 };
void list_options(const struct command *command, struct option all[OPTIONS_MAX]);
/* line.c: an option of a command's own. */
struct option line_getopt(char letter);

/* help.c: prints what memctl is and which commands it has. */
void print_usage(FILE *stream);
/* Prints the same to standard output, or help about one command. Returns an exit status. */
int print_help(const struct invocation *invocation, const struct command *command);
