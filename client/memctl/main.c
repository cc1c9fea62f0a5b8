/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memctl: the broker at the command line.
 *
 * It is a client like any other: everything it shows or does goes through the public library, so whatever memctl can
 * do a program can do as well. The command line is read completely before a broker is looked for, so that
 * a mistake in it is told first.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memctl/command.h"

static const struct command *const families[] = {list_commands, buffer_commands, admin_commands, doctor_commands};

enum { OPTION_SOCKET = 0x100, OPTION_JSON, OPTION_HELP };

#define FOR_EACH_COMMAND(command)                                                              \
    for (size_t family_ = 0; family_ < sizeof(families) / sizeof(families[0]); family_++)      \
        for (const struct command *command = families[family_]; command->name; command++)

static const struct command *
find_command(const char *name)
{
    FOR_EACH_COMMAND (command)
        if (!strcmp(command->name, name))
            return command;
    return NULL;
}

static void
print_help(FILE *stream)
{
    fputs("usage: memctl [--json] [--socket PATH] COMMAND [ARGUMENTS]\n"
          "\n"
          "Look at and use the memory that memoryd owns.\n"
          "\n"
          "commands:\n",
          stream);
    FOR_EACH_COMMAND (command)
        fprintf(stream, "  %-14s %s\n", command->name, command->summary);
    fputs("\n"
          "A BUFFER is a name (a/b; uid:1000/a/b for another user's), an id (#12) or a token's 64 digits.\n"
          "A SIZE is a number of bytes, or one with K, M, G or T behind it.\n"
          "\n"
          "  --json          print one JSON array of objects instead of text\n"
          "  --socket PATH   the broker's socket; else $MEMORYD_SOCKET, else this user's, else the system's\n"
          "  --help          this text; `memctl COMMAND --help` tells about a command\n"
          "  --version       print the version\n"
          "\n"
          "exit status: 0 done, 1 refused, 2 wrong usage, 3 no broker\n",
          stream);
}

static void
print_command_help(const struct command *command)
{
    printf("usage: memctl %s%s%s\n\n%s.\n", command->name, *command->synopsis ? " " : "", command->synopsis,
           command->summary);
    if (*command->help)
        printf("\n%s", command->help);
}

int
usage_error(const struct invocation *invocation, const char *format, ...)
{
    va_list arguments;

    fputs("memctl: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (invocation->command)
        fprintf(stderr, "usage: memctl %s %s; `memctl %s --help` tells more\n", invocation->command->name,
                invocation->command->synopsis, invocation->command->name);
    else
        fputs("`memctl --help` lists the commands\n", stderr);
    return EXIT_USAGE;
}

int
next_option(struct invocation *invocation, const struct option *options)
{
    static const struct option common[] = {{"socket", required_argument, NULL, OPTION_SOCKET},
                                           {"json", no_argument, NULL, OPTION_JSON},
                                           {"help", no_argument, NULL, OPTION_HELP},
                                           {NULL, 0, NULL, 0}};
    struct option all[32];
    size_t n = 0;

    for (const struct option *o = common; o->name; o++)
        all[n++] = *o;
    for (const struct option *o = options; o && o->name && n < sizeof(all) / sizeof(all[0]) - 1; o++)
        all[n++] = *o;
    all[n] = (struct option){NULL, 0, NULL, 0};

    for (;;) {
        /* what comes behind a program's name is the program's */
        int option = getopt_long(invocation->argc, invocation->argv, invocation->command->runs_program ? "+:" : ":",
                                 all, NULL);

        switch (option) {
        case OPTION_SOCKET:
            invocation->socket = optarg;
            break;
        case OPTION_JSON:
            invocation->json = true;
            break;
        case OPTION_HELP:
            print_command_help(invocation->command);
            exit(EXIT_DONE);
        case ':':
            usage_error(invocation, "%s needs a value", invocation->argv[optind - 1]);
            return '?';
        case '?':
            /* there are no short ones */
            if (optopt > 0 && optopt < 0x80 && strncmp(invocation->argv[optind - 1], "--", 2) != 0)
                usage_error(invocation, "no option -%c", optopt);
            else
                usage_error(invocation, "no option %s", invocation->argv[optind - 1]);
            return '?';
        default:
            return option;
        }
    }
}

int
parse_nothing(struct invocation *invocation)
{
    if (next_option(invocation, NULL) != -1)
        return EXIT_USAGE;
    if (optind < invocation->argc)
        return usage_error(invocation, "`%s' is one argument too many", invocation->argv[optind]);
    return EXIT_DONE;
}

int
reference_parse(const char *text, struct reference *reference)
{
    if (text[0] == '#') {
        char *end;

        errno = 0;
        reference->kind = REFERENCE_ID;
        reference->id = strtoull(text + 1, &end, 10);
        return text[1] < '0' || text[1] > '9' || errno || *end || !reference->id ? -EINVAL : 0;
    }
    if (!memclient_token_parse(text, &reference->token)) {
        reference->kind = REFERENCE_TOKEN;
        return 0;
    }
    reference->kind = REFERENCE_NAME;
    reference->name = text;
    return *text ? 0 : -EINVAL;
}

int
reference_open(struct memclient *ctx, const struct reference *reference, unsigned rights,
               struct memclient_buffer **ret)
{
    switch (reference->kind) {
    case REFERENCE_NAME:
        return memclient_open_name(ctx, reference->name, rights, ret);
    case REFERENCE_ID:
        return memclient_open_id(ctx, reference->id, rights, ret);
    case REFERENCE_TOKEN:
        return memclient_open_token(ctx, &reference->token, rights, ret);
    }
    return -EINVAL;
}

static int
run(struct invocation *invocation)
{
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    struct memclient *ctx;
    int r;

    r = invocation->command->parse(invocation);
    if (r)
        return r;

    if (invocation->command->without_broker)
        return invocation->command->run(invocation, NULL);

    options.socket = invocation->socket;
    options.program = "memctl";
    options.autostart = invocation->command->autostart ? MEMCLIENT_AUTOSTART_ENV : MEMCLIENT_AUTOSTART_NEVER;
    r = memclient_open(&options, &ctx);
    if (r < 0) {
        fprintf(stderr, "memctl: %s\n", memclient_error());
        return EXIT_NO_BROKER;
    }
    r = invocation->command->run(invocation, ctx);
    if (r < 0) {
        fprintf(stderr, "memctl: %s: %s\n", invocation->command->name, memclient_error());
        r = EXIT_REFUSED;
    }
    memclient_close(ctx);
    return r;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, OPTION_SOCKET},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"help", no_argument, NULL, OPTION_HELP},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    struct invocation invocation = {0};
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
        switch (option) {
        case OPTION_SOCKET:
            invocation.socket = optarg;
            break;
        case OPTION_JSON:
            invocation.json = true;
            break;
        case OPTION_HELP:
            print_help(stdout);
            return EXIT_DONE;
        case 'V':
            printf("memctl %s\n", memclient_version());
            return EXIT_DONE;
        case ':':
            return usage_error(&invocation, "%s needs a value", argv[optind - 1]);
        default:
            return usage_error(&invocation, "no option %s", argv[optind - 1]);
        }
    }
    if (optind == argc) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    invocation.command = find_command(argv[optind]);
    if (!invocation.command)
        return usage_error(&invocation, "no command `%s'", argv[optind]);
    invocation.argc = argc - optind;
    invocation.argv = argv + optind;
    optind = 0; /* start anew with the command's own arguments */
    return run(&invocation);
}
