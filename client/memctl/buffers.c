/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that do something with a buffer.
 *
 * memctl's session ends with the command, and so do its holds. So something else must keep what `alloc` makes: a name,
 * or a keeping token that opens it within a minute.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memctl/line.h"
#include "memctl/output.h"
#include "memctl/rows.h"
#include "memctl/text.h"

enum { TOKEN_SECONDS = 60 };

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static int print_buffer(const struct invocation *invocation, struct memclient_buffer *buf)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    int r = memclient_buffer_query(buf, &info);

    return r < 0 ? r : output_one_item(invocation->json, buffer_columns, &info);
}

/* Makes a token, and prints its text or an object that has it. */
static int share_and_print(const struct invocation *invocation, struct memclient_buffer *buf)
{
    char text[MEMCLIENT_TOKEN_TEXT_SIZE];
    struct memclient_token token;
    int r;

    line.share.rights = line.rights;
    r = memclient_share(buf, &line.share, &token);
    if (r)
        return r;
    memclient_token_format(&token, text);
    if (invocation->json)
        return output_one(json_pack("{s:s, s:I}", "token", text, "buffer", (json_int_t)memclient_buffer_id(buf)));
    puts(text);
    return output_flush();
}

/* ---- alloc ------------------------------------------------------------------------------------------------------- */

static int parse_alloc(struct invocation *invocation)
{
    int r = parse_options(invocation);

    if (r)
        return r;
    r = parse_end(invocation);
    if (r)
        return r;
    if (!line.have_size)
        return usage_error(invocation, "--size is required");
    if (line.weights.n && line.weights.n != line.nodes.n)
        return usage_error(invocation, "--weights needs one number for each node of --node");
    if (!line.alloc.name && (line.name.policy || line.name.group_rights || line.name.other_rights))
        return usage_error(invocation, "--keep-for, --group and --others require --name");
    line.alloc.name_options = &line.name;
    line.alloc.n_nodes = line.nodes.n;
    line.alloc.nodes = line.nodes.n ? line.nodes.numbers : NULL;
    line.alloc.weights = line.weights.n ? line.weights.numbers : NULL;
    return EXIT_DONE;
}

/* A name that looks like an id, a token or an option must be given with a prefix. */
static void explain_name(const struct invocation *invocation, const char *name)
{
    char text[REFERENCE_MAX];

    reference_of_name(name, text);
    if (strcmp(text, name) != 0)
        say("%s: give this name as `%s'", invocation->command->name, text);
}

static int run_alloc(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    int r;

    r = memclient_alloc(ctx, line.size, &line.alloc, &buf);
    if (r < 0)
        return r;
    if (!line.alloc.name) {
        line.share.flags = MEMCLIENT_TOKEN_KEEPING;
        line.share.uses = 1;
        line.share.expiry_ms = TOKEN_SECONDS * 1000;
        line.rights = memclient_buffer_rights(buf);
        return share_and_print(invocation, buf);
    }
    explain_name(invocation, line.alloc.name);
    if (invocation->json)
        return print_buffer(invocation, buf);
    printf("%" PRIu64 "\n", memclient_buffer_id(buf));
    return output_flush();
}

/* ---- share ------------------------------------------------------------------------------------------------------- */

static int parse_share(struct invocation *invocation)
{
    int r = parse_only_reference(invocation);

    if (!r && (line.share.flags & MEMCLIENT_TOKEN_KEEPING) && !line.share.uses && !line.share.expiry_ms)
        r = usage_error(invocation, "a --keeping token needs an end: --uses, --expires or both");
    return r;
}

static int run_share(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    /* the user of the token decides whether it may be foreign */
    int r = line_open(ctx, MEMCLIENT_ACCEPT_FOREIGN, &buf);

    return r ? r : share_and_print(invocation, buf);
}

/* ---- open -------------------------------------------------------------------------------------------------------- */

static int parse_open(struct invocation *invocation)
{
    int r = parse_reference(invocation);

    if (r)
        return r;
    /* the first -- may precede the buffer or the program */
    if (optind < invocation->argc && !strcmp(invocation->argv[optind], "--"))
        optind++;
    invocation->program = optind < invocation->argc ? invocation->argv + optind : NULL;
    if (line.claim && line.reference.kind != REFERENCE_NAME)
        return usage_error(invocation, "--claim requires a name");
    if (invocation->program && invocation->json)
        return usage_error(invocation, "--json cannot be combined with a program, which has the output");
    return EXIT_DONE;
}

/*
 * The program replaces memctl in this process, so that the session and its hold last until it exits. The descriptor
 * stays open over exec().
 */
static int exec_with(const struct invocation *invocation, struct memclient_buffer *buf)
{
    char number[16], size[24];
    int fd, r, error;

    r = memclient_export_fd(buf, line.rights & (MEMCLIENT_READ | MEMCLIENT_WRITE), &fd);
    if (r < 0)
        return r;
    snprintf(number, sizeof(number), "%d", fd);
    snprintf(size, sizeof(size), "%" PRIu64, memclient_buffer_size(buf));
    if (fcntl(fd, F_SETFD, 0) < 0 || setenv("MEMORYD_FD", number, 1) || setenv("MEMORYD_SIZE", size, 1))
        return refused(invocation, strerror(errno));
    execvp(invocation->program[0], invocation->program);
    error = errno;
    say("open: %s: %s", invocation->program[0], strerror(error));
    return error == ENOENT ? EXIT_NO_PROGRAM : EXIT_NOT_EXECUTABLE;
}

static int run_open(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    int r;

    r = line.claim ? memclient_claim_name(ctx, line.reference.name, line.rights, line.claim, &buf)
                   : line_open(ctx, line.rights, &buf);
    if (r < 0)
        return r;
    return invocation->program ? exec_with(invocation, buf) : print_buffer(invocation, buf);
}

/* ---- publish, move and rm ---------------------------------------------------------------------------------------- */

static int run_publish(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    int r = line_open(ctx, 0, &buf);

    if (!r)
        r = memclient_publish(buf, line.publish_flags);
    return !r && invocation->json ? print_buffer(invocation, buf) : r;
}

static int parse_move(struct invocation *invocation)
{
    int r = parse_only_reference(invocation);

    if (!r && line.nodes.n != 1)
        return usage_error(invocation, "one --node is required");
    return r;
}

static int run_move(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    int r = line_open(ctx, 0, &buf);

    if (!r)
        r = memclient_move(buf, line.nodes.numbers[0]);
    return !r && invocation->json ? print_buffer(invocation, buf) : r;
}

static int parse_rm(struct invocation *invocation)
{
    int r = parse_only_reference(invocation);

    if (!r && line.force && line.reference.kind != REFERENCE_ID)
        r = usage_error(invocation, "--force requires a buffer's id: it is about the buffer itself");
    return r;
}

static int run_rm(struct invocation *invocation, struct memclient_context *ctx)
{
    const char *kind = NULL;
    int r = -EINVAL;

    switch (line.reference.kind) {
    case REFERENCE_NAME:
        kind = "name";
        r = memclient_unbind_name(ctx, line.reference.name);
        break;
    case REFERENCE_ID:
        kind = "buffer";
        r = memclient_destroy_id(ctx, line.reference.id, line.force ? MEMCLIENT_DESTROY_FORCE : 0);
        break;
    case REFERENCE_TOKEN:
        kind = "token";
        r = memclient_revoke_token(ctx, &line.reference.token);
        break;
    }
    return r || !invocation->json ? r
                                  : output_one(json_pack("{s:s, s:o}", "kind", kind, "removed", json_text(line.given)));
}

const struct command buffer_commands[] = {
    {.name = "alloc",
     .synopsis = "--size SIZE [OPTIONS]",
     .summary = "Allocate a buffer",
     .help = "With --name the buffer stays until it is removed, and its id is printed. Without it, a token is\n"
             "printed that opens the buffer once within 60 s and keeps it alive until then.\n"
             "\n"
             "  --size SIZE         its size; required\n"
             "  --name NAME         bind this name to it, which may be any text\n"
             "  --keep-for TIME     unbind the name that long after memctl has ended\n"
             "  --group GROUP:rw    members of GROUP may read (r), write (w), share (s) it by its name\n"
             "  --others r          and so may everybody\n"
             "  --pool POOL         take it from this pool (`memctl pools`), or choose one by the next three:\n"
             "  --node N[,N...]     NUMA nodes\n"
             "  --pages KIND        base, thp or hugetlb\n"
             "  --page-size SIZE    of hugetlb pages\n"
             "  --placement HOW     bind, preferred, interleave, split or local\n"
             "  --part-size SIZE    of interleave\n"
             "  --weights W[,W...]  of split, one for each node\n"
             "  --align SIZE        alignment of its address\n"
             "  --publishable       it can be made immutable later (`memctl publish`)\n"
             "  --wait TIME         how long to wait for room: 500ms, 10s, 5min\n",
     .autostart = true,
     .options = "snpNgzltwaPWkGO",
     .parse = parse_alloc,
     .run = run_alloc},
    {.name = "share",
     .synopsis = "[OPTIONS] BUFFER",
     .summary = "Make a token that opens a buffer, and print it",
     .help = "  --rights RIGHTS  what it grants: r read, w write, s share, m manage; by default\n"
             "                   reading, and writing if you may\n"
             "  --keeping        it keeps the buffer alive; needs --uses or --expires\n"
             "  --uses N         it can be opened N times\n"
             "  --expires TIME   it can be opened for that long: 500ms, 10s, 5min, 2h\n"
             "  --uid USER       only by this user\n"
             "  --gid GROUP      only by members of this group\n"
             "  --pid PID        only by this process\n",
     .options = "rKueUDI",
     .parse = parse_share,
     .run = run_share},
    {.name = "open",
     .synopsis = "[OPTIONS] BUFFER [PROGRAM [ARGUMENTS]]",
     .summary = "Open a buffer and show it, or run a program with it",
     .help = "PROGRAM gets a descriptor of the buffer, whose number is in $MEMORYD_FD, and its size in\n"
             "$MEMORYD_SIZE. It holds the buffer until it exits. Its exit status is that of memctl, as\n"
             "with env(1): 127 if there is no such program, 126 if it cannot be run, and 125 if memctl fails\n"
             "before that for any reason.\n"
             "\n"
             "  --rights RIGHTS  r to read, rw to write; by default as much as you may\n"
             "  --claim KIND     shared or exclusive, of a NAME: refused while another session's claim\n"
             "                   forbids it\n",
     .runs_program = true,
     .options = "rC",
     .parse = parse_open,
     .run = run_open},
    {.name = "cat",
     .synopsis = "BUFFER",
     .summary = "Write a buffer's bytes to standard output",
     .help = "With --json they are base64.\n",
     .parse = parse_only_reference,
     .run = run_cat},
    {.name = "fill",
     .synopsis = "BUFFER",
     .summary = "Fill a buffer from standard input",
     .help = "From its start; bytes beyond the end of the input are left unchanged.\n",
     .parse = parse_only_reference,
     .run = run_fill},
    {.name = "publish",
     .synopsis = "[--future-only] BUFFER",
     .summary = "Make a buffer immutable",
     .help = "It must have been made with --publishable, and nobody may have it mapped for writing.\n"
             "\n"
             "  --future-only    existing writable mappings stay writable\n",
     .options = "F",
     .parse = parse_only_reference,
     .run = run_publish},
    {.name = "move",
     .synopsis = "--node N BUFFER",
     .summary = "Move a buffer's pages to another NUMA node",
     .help = "Contents and addresses stay. No existing mapping of it may have been touched yet.\n"
             "\n"
             "  --node N         the node to move to; the buffer is bound to it afterwards\n",
     .options = "N",
     .parse = parse_move,
     .run = run_move},
    {.name = "rm",
     .synopsis = "[--force] BUFFER",
     .summary = "Unbind a name, end a buffer, or revoke a token",
     .help = "A name is unbound; its buffer is freed when nobody holds it any more. A token is revoked. An id\n"
             "ends the buffer itself, with all its names, tokens and holds; processes that have it mapped keep\n"
             "the contents until they unmap it.\n"
             "\n"
             "  --force          discard the contents too, even where they are mapped\n"
             "                   (administrators)\n",
     .options = "f",
     .parse = parse_rm,
     .run = run_rm},
    {.name = NULL},
};
