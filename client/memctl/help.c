/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help for people, for programs (help --json), and for the shell's completion.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "memctl/command.h"
#include "memctl/output.h"
#include "memctl/reference.h"
#include "memctl/text.h"
#include "memctl/values.h"

void print_usage(FILE *stream)
{
    fputs("usage: memctl [--json] [--socket PATH] COMMAND [ARGUMENTS]\n"
          "\n"
          "Inspect and use the memory that memoryd owns.\n"
          "\n"
          "commands:\n",
          stream);
    FOR_EACH_COMMAND(command)
        if (!command->hidden)
            fprintf(stream, "  %-14s %s\n", command->name, command->summary);
    fputs("\n"
          "A BUFFER is an id (12), a token's 64 digits, or a name (a/b; uid:1000/a/b for another\n"
          "user's). A name that looks like one of the others is given as name:12; id:12 and\n"
          "token:... say so too.\n"
          "A SIZE is a number of bytes, or one followed by K, M, G or T.\n"
          "\n"
          "      --json          print one JSON array of objects instead of text\n"
          "      --socket PATH   the broker's socket; by default $MEMORYD_SOCKET, this user's or\n"
          "                      the system's\n"
          "  -h, --help          this text; behind a COMMAND, and as `memctl help COMMAND`: about it\n"
          "  -V, --version       print the version\n"
          "      --              ends the options: what follows may begin with -\n"
          "\n"
          "exit status: 0 done, 1 refused, 2 wrong usage, 3 no broker answers\n",
          stream);
}

static json_t *row_command(const struct command *command)
{
    return json_pack("{s:s, s:s?, s:s, s:s?}", "command", command->name, "synopsis", command->synopsis, "summary",
                     command->summary, "help", command->help);
}

int print_help(const struct invocation *invocation, const struct command *command)
{
    struct output output;

    if (invocation->json) {
        output_init(&output, true, NULL);
        FOR_EACH_COMMAND(one)
            if ((!command && !one->hidden) || one == command)
                (void)output_row(&output, row_command(one));
        return output_end(&output, EXIT_DONE);
    }
    if (!command) {
        print_usage(stdout);
        return output_flush();
    }
    printf("usage: memctl %s%s%s\n\n%s.\n", command->name, command->synopsis ? " " : "",
           command->synopsis ? command->synopsis : "", command->summary);
    if (command->help)
        printf("\n%s", command->help);
    return output_flush();
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

static const struct command *subject;

static int parse_help(struct invocation *invocation)
{
    if (next_option(invocation) != -1)
        return EXIT_USAGE;
    if (optind < invocation->argc) {
        subject = find_command(invocation->argv[optind]);
        if (!subject)
            return usage_error(invocation, "no command `%s'", invocation->argv[optind]);
        optind++;
    }
    return parse_end(invocation);
}

static int run_help(struct invocation *invocation, struct memclient_context *ctx)
{
    return print_help(invocation, subject);
}

/* ---- completion: one word a line, as it has to be given, not quoted for a shell ---------------------------------- */

static int complete_name(const struct memclient_name_info *name, void *data)
{
    char text[REFERENCE_MAX];

    reference_of_name(name->name, text);
    puts(text);
    return 0;
}

static int complete_buffer(const struct memclient_buffer_info *info, void *data)
{
    if (info->state == MEMCLIENT_BUFFER_STATE_LIVE)
        printf("%s%" PRIu64 "\n", (const char *)data, info->id);
    return 0;
}

/* What `holders` takes beside buffers: not this process, which holds nothing. */
static int complete_holder(const struct memclient_session_info *session, void *data)
{
    if (session->pid != getpid())
        printf("pid:%d\nuid:%u\n", (int)session->pid, (unsigned)session->uid);
    return 0;
}

static int complete_pool(const struct memclient_pool_info *pool, void *data)
{
    puts(pool->name);
    return 0;
}

static int complete_from_broker(const struct invocation *invocation, const char *what)
{
    static char plain[] = "", explicit[] = "id:";
    struct memclient_context *ctx;
    int r = open_broker(invocation, &ctx);
    bool of_holders = !strcmp(what, "holders"), of_buffers = of_holders || !strcmp(what, "buffers");

    if (r)
        return r;
    if (of_holders)
        r = memclient_list_sessions(ctx, complete_holder, NULL);
    if (!r && !strcmp(what, "pools"))
        r = memclient_list_pools(ctx, complete_pool, NULL);
    else if (!r)
        r = memclient_list_names(ctx, complete_name, NULL);
    if (!r && of_buffers)
        r = memclient_list_buffers(ctx, complete_buffer, plain);
    if (!r && of_buffers)
        r = memclient_list_buffers(ctx, complete_buffer, explicit);
    memclient_context_close(ctx);
    return r ? EXIT_REFUSED : output_flush();
}

static int run_complete(struct invocation *invocation, struct memclient_context *ctx)
{
    const char *what = invocation->argv[optind], *command = what ? invocation->argv[optind + 1] : NULL;

    if (!what)
        return EXIT_USAGE;
    if (!strcmp(what, "commands")) {
        FOR_EACH_COMMAND(one)
            if (!one->hidden)
                puts(one->name);
        return output_flush();
    }
    if (!strcmp(what, "options")) {
        struct option all[OPTIONS_MAX];

        list_options(command ? find_command(command) : NULL, all);
        for (const struct option *o = all; o->name; o++)
            printf("--%s%s\n", o->name, o->has_arg ? "=" : "");
        return output_flush();
    }
    if (!strcmp(what, "kinds")) {
        for (const char *const *word = kind_words + 1; *word; word++)
            puts(*word);
        for (const struct event_word *word = event_words; word->word; word++)
            puts(word->word);
        return output_flush();
    }
    return complete_from_broker(invocation, what);
}

static int parse_complete(struct invocation *invocation)
{
    return next_option(invocation) != -1 ? EXIT_USAGE : EXIT_DONE;
}

const struct command help_commands[] = {
    {.name = "help",
     .synopsis = "[COMMAND]",
     .summary = "Print help, also about a command",
     .without_broker = true,
     .parse = parse_help,
     .run = run_help},
    {.name = "__complete",
     .synopsis = "WHAT [COMMAND]",
     .summary = "List words for completion",
     .help = "WHAT is commands, options, kinds, buffers, holders, names or pools.\n",
     .hidden = true,
     .without_broker = true,
     .parse = parse_complete,
     .run = run_complete},
    {.name = NULL},
};
