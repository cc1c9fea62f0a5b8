/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memctl: the broker at the command line.
 *
 * It is a client like any other: all that it shows and does goes through the public library, so that any program can do
 * the same. It parses the whole command line before it connects, so that it reports a mistake there first.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memctl/command.h"
#include "memctl/text.h"

const struct command *const command_families[] = {list_commands,   top_commands,    history_commands,
                                                  holder_commands, buffer_commands, admin_commands,
                                                  doctor_commands, help_commands,   NULL};

enum { OPTION_SOCKET = 0x100, OPTION_JSON };

static const struct option common_options[] = {{"socket", required_argument, NULL, OPTION_SOCKET},
                                               {"json", no_argument, NULL, OPTION_JSON},
                                               {"help", no_argument, NULL, 'h'},
                                               {"version", no_argument, NULL, 'V'},
                                               {NULL, 0, NULL, 0}};

const struct command *find_command(const char *name)
{
    FOR_EACH_COMMAND(command)
        if (!strcmp(command->name, name))
            return command;
    return NULL;
}

int usage_error(const struct invocation *invocation, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    say("%s", text);
    if (invocation->command)
        fprintf(stderr, "usage: memctl %s %s; `memctl help %s` tells more\n", invocation->command->name,
                invocation->command->synopsis ? invocation->command->synopsis : "", invocation->command->name);
    else
        fputs("`memctl help` lists the commands\n", stderr);
    return EXIT_USAGE;
}

int refused(const struct invocation *invocation, const char *sentence)
{
    say("%s: %s", invocation->command->name, sentence);
    return EXIT_REFUSED;
}

/* Handles an option that every command has. Returns the option, or '?' after printing what is wrong. */
static int take_common(struct invocation *invocation, int option, char *const *argv)
{
    switch (option) {
    case OPTION_SOCKET:
        invocation->socket = optarg;
        return option;
    case OPTION_JSON:
        invocation->json = true;
        return option;
    case 'h':
        exit(print_help(invocation, invocation->command));
    case 'V':
        printf("memctl %s\n", memclient_version());
        exit(EXIT_DONE);
    case ':':
        usage_error(invocation, "%s requires a value", argv[optind - 1]);
        return '?';
    case '?':
        if (optopt > 0 && optopt < 0x80 && strncmp(argv[optind - 1], "--", 2) != 0)
            usage_error(invocation, "no option -%c", optopt);
        else
            usage_error(invocation, "no option %s", argv[optind - 1]);
        return '?';
    default:
        return option;
    }
}

void list_options(const struct command *command, struct option all[OPTIONS_MAX])
{
    for (const struct option *o = common_options; o->name; o++)
        *all++ = *o;
    for (const char *letter = command && command->options ? command->options : ""; *letter; letter++)
        *all++ = line_getopt(*letter);
    *all = (struct option){.name = NULL};
}

int next_option(struct invocation *invocation)
{
    struct option all[OPTIONS_MAX];
    int option;

    list_options(invocation->command, all);
    do
        /* options behind a program's name are the program's */
        option = take_common(invocation,
                             getopt_long(invocation->argc, invocation->argv,
                                         invocation->command->runs_program ? "+:hV" : ":hV", all, NULL),
                             invocation->argv);
    while (option == OPTION_SOCKET || option == OPTION_JSON);
    return option;
}

int parse_end(const struct invocation *invocation)
{
    if (optind < invocation->argc)
        return usage_error(invocation, "`%s' is one argument too many", invocation->argv[optind]);
    return EXIT_DONE;
}

bool is_without_broker(int r)
{
    /* -ENOENT of the broker itself has a status, and means that what was asked for does not exist */
    return (r == -ENOENT || r == -ECONNREFUSED) && !memclient_error_status();
}

/* Prints why the library's last call failed. No answer of a broker has an exit status of its own. */
static int report_failure(const char *command, int r)
{
    bool no_broker = is_without_broker(r);
    char words[TEXT_MAX];

    words_of(memclient_error(), words, sizeof(words));
    if (no_broker)
        say("%s", words);
    else
        say("%s: %s", command, words);
    return no_broker ? EXIT_NO_BROKER : EXIT_REFUSED;
}

int open_broker(const struct invocation *invocation, struct memclient_context **ctx)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    int r;

    options.socket = invocation->socket;
    options.program = "memctl";
    options.administrator = true;
    options.autostart = invocation->command->autostart ? MEMCLIENT_AUTOSTART_ENV : MEMCLIENT_AUTOSTART_NEVER;
    r = memclient_context_open(&options, ctx);
    return r < 0 ? report_failure(invocation->command->name, r) : EXIT_DONE;
}

static int run_command(struct invocation *invocation)
{
    struct memclient_context *ctx;
    int r;

    if (invocation->command->parse)
        r = invocation->command->parse(invocation);
    else
        r = next_option(invocation) != -1 ? EXIT_USAGE : parse_end(invocation);
    if (r)
        return r;
    if (invocation->command->without_broker)
        return invocation->command->run(invocation, NULL);
    r = open_broker(invocation, &ctx);
    if (r)
        return r;
    r = invocation->command->run(invocation, ctx);
    if (r < 0)
        r = report_failure(invocation->command->name, r);
    memclient_context_close(ctx);
    return r;
}

/* Was a program to be run? If the command line was not understood: does an argument follow the buffer? */
static bool has_program(const struct invocation *invocation)
{
    return invocation->command->runs_program && (invocation->program || invocation->argc - optind >= 2);
}

int main(int argc, char **argv)
{
    struct invocation invocation = {0};
    int option, r;

    text_init();
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:hV", common_options, NULL)) != -1)
        if (take_common(&invocation, option, argv) == '?')
            return EXIT_USAGE;
    if (optind == argc) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    invocation.command = find_command(argv[optind]);
    if (!invocation.command)
        return usage_error(&invocation, "no command `%s'", argv[optind]);
    invocation.argc = argc - optind;
    invocation.argv = argv + optind;
    optind = 0; /* starts again with the command's own arguments */
    r = run_command(&invocation);
    /* memctl's own status must not be taken for the program's */
    return r > EXIT_DONE && r < EXIT_NOT_BEGUN && has_program(&invocation) ? EXIT_NOT_BEGUN : r;
}
