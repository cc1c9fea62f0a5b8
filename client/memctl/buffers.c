/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that do something with a buffer.
 *
 * memctl's session ends with the command, and with it every claim it had. So what `alloc` makes must be kept by
 * something else: a name, or a keeping token for somebody to open within a minute.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memctl/command.h"
#include "memctl/output.h"
#include "memctl/rows.h"
#include "memctl/values.h"

enum { TOKEN_SECONDS = 60 };

/* What the command line said; one command runs per process. */
static struct {
    struct reference reference;
    uint64_t size;
    bool have_size;
    struct memclient_alloc_options alloc;
    struct memclient_name_options name;
    struct memclient_share_options share;
    uint32_t nodes[VALUES_LIST_MAX], weights[VALUES_LIST_MAX];
    size_t n_weights;
    unsigned rights, claim;
    bool force, future_only;
    char **argv; /* of a program to run */
} line;

/* ---- options ----------------------------------------------------------------------------------- */

static const char *const pages_choices[] = {"any", "base", "thp", "hugetlb", NULL};
static const char *const claim_choices[] = {"none", "shared", "exclusive", NULL};
static const char *const placement_choices[] = {"pool", "bind", "preferred", "interleave", "split", "local", NULL};

/* All options of all commands here; each command takes those of its own list. 0 or a negative errno. */
static int
set_option(int option, const char *value)
{
    switch (option) {
    case 's':
        line.have_size = true;
        return parse_bytes(value, &line.size);
    case 'n':
        line.alloc.name = value;
        return *value ? 0 : -EINVAL;
    case 'p':
        line.alloc.pool = value;
        return *value ? 0 : -EINVAL;
    case 'N':
        line.alloc.nodes = line.nodes;
        return parse_list(value, line.nodes, &line.alloc.n_nodes);
    case 'g':
        return parse_choice(value, pages_choices, &line.alloc.pages);
    case 'z':
        return parse_bytes(value, &line.alloc.page_size);
    case 'l':
        return parse_choice(value, placement_choices, &line.alloc.placement);
    case 't':
        return parse_bytes(value, &line.alloc.part_size);
    case 'w':
        line.alloc.weights = line.weights;
        return parse_list(value, line.weights, &line.n_weights);
    case 'a':
        return parse_bytes(value, &line.alloc.alignment);
    case 'P':
        line.alloc.flags |= MEMCLIENT_PUBLISHABLE;
        return 0;
    case 'W':
        return parse_duration(value, &line.alloc.wait_ms);
    case 'k':
        line.name.policy = MEMCLIENT_NAME_KEEP_FOR;
        return parse_duration(value, &line.name.keep_ms);
    case 'G':
        return parse_group_rights(value, &line.name.gid, &line.name.group_rights);
    case 'O':
        return parse_rights(value, &line.name.other_rights);
    case 'r':
        return parse_rights(value, &line.rights);
    case 'C':
        return parse_choice(value, claim_choices, &line.claim);
    case 'K':
        line.share.flags |= MEMCLIENT_TOKEN_KEEPING;
        return 0;
    case 'u':
        return parse_u32(value, &line.share.uses);
    case 'e':
        return parse_duration(value, &line.share.expiry_ms);
    case 'U':
        line.share.flags |= MEMCLIENT_TOKEN_ONLY_UID;
        return parse_user(value, &line.share.uid);
    case 'D':
        line.share.flags |= MEMCLIENT_TOKEN_ONLY_GID;
        return parse_group(value, &line.share.gid);
    case 'I': {
        uint32_t pid;

        if (parse_u32(value, &pid) || !pid || pid > INT32_MAX)
            return -EINVAL;
        line.share.flags |= MEMCLIENT_TOKEN_ONLY_PID;
        line.share.pid = (pid_t)pid;
        return 0;
    }
    case 'f':
        line.force = true;
        return 0;
    case 'F':
        line.future_only = true;
        return 0;
    }
    return -EINVAL;
}

static int
parse_options(struct invocation *invocation, const struct option *options)
{
    int option, r;

    line.alloc = (struct memclient_alloc_options)MEMCLIENT_ALLOC_OPTIONS_INIT;
    line.name = (struct memclient_name_options)MEMCLIENT_NAME_OPTIONS_INIT;
    line.share = (struct memclient_share_options)MEMCLIENT_SHARE_OPTIONS_INIT;

    while ((option = next_option(invocation, options)) != -1) {
        const char *name = "";

        if (option == '?')
            return EXIT_USAGE;
        for (const struct option *o = options; o->name; o++)
            if (o->val == option)
                name = o->name;
        r = set_option(option, optarg);
        if (r == -ERANGE)
            return usage_error(invocation, "--%s %s: more than 64 bits can hold", name, optarg);
        if (r)
            return usage_error(invocation, "--%s does not take `%s'", name, optarg ? optarg : "");
    }
    return EXIT_DONE;
}

/* The one argument of most commands. */
static int
parse_reference(struct invocation *invocation, const struct option *options)
{
    int r = parse_options(invocation, options);

    if (r)
        return r;
    if (optind == invocation->argc)
        return usage_error(invocation, "which buffer?");
    if (reference_parse(invocation->argv[optind], &line.reference))
        return usage_error(invocation, "`%s' is no name, no #id and no token", invocation->argv[optind]);
    optind++;
    return EXIT_DONE;
}

static int
parse_only_reference(struct invocation *invocation, const struct option *options)
{
    int r = parse_reference(invocation, options);

    if (!r && optind < invocation->argc)
        r = usage_error(invocation, "`%s' is one argument too many", invocation->argv[optind]);
    return r;
}

static int
refused(const struct invocation *invocation, const char *sentence)
{
    fprintf(stderr, "memctl: %s: %s\n", invocation->command->name, sentence);
    return EXIT_REFUSED;
}

static const struct option no_options[] = {{NULL, 0, NULL, 0}};

static int
parse_plain(struct invocation *invocation)
{
    return parse_only_reference(invocation, no_options);
}

/* ---- what is printed --------------------------------------------------------------------------- */

/* Takes the reference to the only row. */
static int
print_row(const struct invocation *invocation, bool json, const struct column *columns, json_t *row)
{
    struct output output;
    int r;

    output_init(&output, json, columns);
    r = output_row(&output, row);
    if (!r && output_print(&output) < 0)
        r = refused(invocation, "cannot write to standard output");
    output_deinit(&output);
    return r;
}

static int
print_buffer(const struct invocation *invocation, struct memclient_buffer *buf)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    int r = memclient_buffer_info(buf, &info);

    return r < 0 ? r : print_row(invocation, invocation->json, buffer_columns, row_buffer(&info));
}

/* What is an object in JSON, and in text a line of its own or nothing. */
static int
print_object(const struct invocation *invocation, json_t *object)
{
    return print_row(invocation, true, NULL, object);
}

/* The token's text, or an object that has it. */
static int
print_token(const struct invocation *invocation, const struct memclient_token *token, uint64_t buffer)
{
    char text[MEMCLIENT_TOKEN_TEXT + 1];

    memclient_token_format(token, text);
    if (!invocation->json)
        return puts(text) < 0 || fflush(stdout) ? refused(invocation, "cannot write to standard output") : 0;
    return print_object(invocation, json_pack("{s:s, s:I}", "token", text, "buffer", (json_int_t)buffer));
}

/* ---- alloc ------------------------------------------------------------------------------------- */

static int
parse_alloc(struct invocation *invocation)
{
    static const struct option options[] = {
        {"size", required_argument, NULL, 's'},        {"name", required_argument, NULL, 'n'},
        {"pool", required_argument, NULL, 'p'},        {"node", required_argument, NULL, 'N'},
        {"pages", required_argument, NULL, 'g'},       {"page-size", required_argument, NULL, 'z'},
        {"placement", required_argument, NULL, 'l'},   {"part-size", required_argument, NULL, 't'},
        {"weights", required_argument, NULL, 'w'},     {"align", required_argument, NULL, 'a'},
        {"publishable", no_argument, NULL, 'P'},       {"wait", required_argument, NULL, 'W'},
        {"keep-for", required_argument, NULL, 'k'},    {"group", required_argument, NULL, 'G'},
        {"others", required_argument, NULL, 'O'},      {NULL, 0, NULL, 0}};
    int r = parse_options(invocation, options);

    if (r)
        return r;
    if (optind < invocation->argc)
        return usage_error(invocation, "`%s' is one argument too many", invocation->argv[optind]);
    if (!line.have_size)
        return usage_error(invocation, "how large? give --size");
    if (line.alloc.weights && line.n_weights != line.alloc.n_nodes)
        return usage_error(invocation, "--weights needs one number for each of --node's");
    if (!line.alloc.name && (line.name.policy || line.name.group_rights || line.name.other_rights))
        return usage_error(invocation, "--keep-for, --group and --others are about a --name");
    line.alloc.name_options = &line.name;
    return EXIT_DONE;
}

static int
run_alloc(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    struct memclient_token token;
    int r;

    r = memclient_alloc(ctx, line.size, &line.alloc, &buf);
    if (r < 0)
        return r;
    if (line.alloc.name && invocation->json) {
        r = print_buffer(invocation, buf);
    } else if (line.alloc.name) {
        printf("#%" PRIu64 "\n", memclient_buffer_id(buf));
        r = fflush(stdout) ? refused(invocation, "cannot write to standard output") : 0;
    } else {
        line.share.flags = MEMCLIENT_TOKEN_KEEPING;
        line.share.uses = 1;
        line.share.expiry_ms = TOKEN_SECONDS * 1000;
        line.share.rights = memclient_buffer_rights(buf);
        r = memclient_share(buf, &line.share, &token);
        if (!r)
            r = print_token(invocation, &token, memclient_buffer_id(buf));
    }
    memclient_buffer_unref(buf);
    return r;
}

/* ---- share ------------------------------------------------------------------------------------- */

static int
parse_share(struct invocation *invocation)
{
    static const struct option options[] = {
        {"rights", required_argument, NULL, 'r'}, {"keeping", no_argument, NULL, 'K'},
        {"uses", required_argument, NULL, 'u'},   {"expires", required_argument, NULL, 'e'},
        {"uid", required_argument, NULL, 'U'},    {"gid", required_argument, NULL, 'D'},
        {"pid", required_argument, NULL, 'I'},    {NULL, 0, NULL, 0}};
    int r = parse_only_reference(invocation, options);

    if (!r && (line.share.flags & MEMCLIENT_TOKEN_KEEPING) && !line.share.uses && !line.share.expiry_ms)
        r = usage_error(invocation, "a --keeping token needs an end: --uses, --expires or both");
    return r;
}

static int
run_share(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    struct memclient_token token;
    int r;

    /* whoever uses the token says whether it may be foreign */
    r = reference_open(ctx, &line.reference, MEMCLIENT_ACCEPT_FOREIGN, &buf);
    if (r < 0)
        return r;
    line.share.rights = line.rights;
    r = memclient_share(buf, &line.share, &token);
    if (!r)
        r = print_token(invocation, &token, memclient_buffer_id(buf));
    memclient_buffer_unref(buf);
    return r;
}

/* ---- open -------------------------------------------------------------------------------------- */

static int
parse_open(struct invocation *invocation)
{
    static const struct option options[] = {
        {"rights", required_argument, NULL, 'r'}, {"claim", required_argument, NULL, 'C'}, {NULL, 0, NULL, 0}};
    int r = parse_reference(invocation, options);

    if (!r && line.claim && line.reference.kind != REFERENCE_NAME)
        r = usage_error(invocation, "--claim is about a name");
    line.argv = optind < invocation->argc ? invocation->argv + optind : NULL;
    return r;
}

/*
 * The program takes this process over, so the session, and its hold, last until it exits; the descriptor is one that
 * exec() keeps.
 */
static int
exec_with(const struct invocation *invocation, struct memclient_buffer *buf)
{
    char number[16], size[24], text[320];
    int fd, r;

    r = memclient_export_fd(buf, line.rights & (MEMCLIENT_READ | MEMCLIENT_WRITE), &fd);
    if (r < 0)
        return r;
    snprintf(number, sizeof(number), "%d", fd);
    snprintf(size, sizeof(size), "%" PRIu64, memclient_buffer_size(buf));
    if (fcntl(fd, F_SETFD, 0) < 0 || setenv("MEMORYD_FD", number, 1) || setenv("MEMORYD_SIZE", size, 1))
        return refused(invocation, strerror(errno));
    execvp(line.argv[0], line.argv);
    snprintf(text, sizeof(text), "%s: %s", line.argv[0], strerror(errno));
    return refused(invocation, text);
}

static int
run_open(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    int r;

    r = line.claim ? memclient_claim_name(ctx, line.reference.name, line.rights, line.claim, &buf)
                   : reference_open(ctx, &line.reference, line.rights, &buf);
    if (r < 0)
        return r;
    r = line.argv ? exec_with(invocation, buf) : print_buffer(invocation, buf);
    memclient_buffer_unref(buf);
    return r;
}

/* ---- cat and fill ------------------------------------------------------------------------------ */

static int
open_mapped(struct memclient *ctx, unsigned rights, struct memclient_buffer **ret_buf, char **ret_bytes)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *address;
    int r;

    r = reference_open(ctx, &line.reference, rights, &buf);
    if (r < 0)
        return r;
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    options.access = rights;
    r = memclient_map(buf, &options, &address);
    if (r < 0) {
        memclient_buffer_unref(buf);
        return r;
    }
    *ret_buf = buf;
    *ret_bytes = address;
    return 0;
}

static int
parse_cat(struct invocation *invocation)
{
    int r = parse_plain(invocation);

    if (!r && invocation->json)
        r = usage_error(invocation, "--json does not go with the bytes of a buffer");
    return r;
}

static int
run_cat(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    uint64_t size, done = 0;
    char *bytes;
    int r;

    r = open_mapped(ctx, MEMCLIENT_READ, &buf, &bytes);
    if (r < 0)
        return r;
    size = memclient_buffer_size(buf);
    while (!r && done < size) {
        ssize_t n = write(STDOUT_FILENO, bytes + done, size - done);

        if (n >= 0)
            done += (uint64_t)n;
        else if (errno != EINTR)
            r = refused(invocation, strerror(errno));
    }
    memclient_buffer_unref(buf);
    return r;
}

static int
run_fill(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    uint64_t size, done = 0;
    char *bytes, more;
    ssize_t n = 1;
    int r;

    r = open_mapped(ctx, MEMCLIENT_READ | MEMCLIENT_WRITE, &buf, &bytes);
    if (r < 0)
        return r;
    size = memclient_buffer_size(buf);
    while (!r && n) {
        n = done < size ? read(STDIN_FILENO, bytes + done, size - done) : read(STDIN_FILENO, &more, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            r = refused(invocation, strerror(errno));
        else if (n && done == size)
            r = refused(invocation, "standard input has more bytes than the buffer, which is full now");
        else
            done += (uint64_t)n;
    }
    if (!r && invocation->json)
        r = print_object(invocation, json_pack("{s:I, s:I}", "buffer", (json_int_t)memclient_buffer_id(buf), "bytes",
                                               (json_int_t)done));
    memclient_buffer_unref(buf);
    return r;
}

/* ---- publish, move and rm ---------------------------------------------------------------------- */

static int
parse_publish(struct invocation *invocation)
{
    static const struct option options[] = {{"future-only", no_argument, NULL, 'F'}, {NULL, 0, NULL, 0}};

    return parse_only_reference(invocation, options);
}

static int
run_publish(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    int r;

    r = reference_open(ctx, &line.reference, 0, &buf);
    if (r < 0)
        return r;
    r = memclient_publish(buf, line.future_only ? MEMCLIENT_PUBLISH_FUTURE_ONLY : 0);
    if (!r && invocation->json)
        r = print_buffer(invocation, buf);
    memclient_buffer_unref(buf);
    return r;
}

static int
parse_move(struct invocation *invocation)
{
    static const struct option options[] = {{"node", required_argument, NULL, 'N'}, {NULL, 0, NULL, 0}};
    int r = parse_only_reference(invocation, options);

    if (!r && line.alloc.n_nodes != 1)
        return usage_error(invocation, "to which node? give one --node");
    return r;
}

static int
run_move(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_buffer *buf;
    int r;

    r = reference_open(ctx, &line.reference, 0, &buf);
    if (r < 0)
        return r;
    r = memclient_move(buf, line.nodes[0]);
    if (!r && invocation->json)
        r = print_buffer(invocation, buf);
    memclient_buffer_unref(buf);
    return r;
}

static int
parse_rm(struct invocation *invocation)
{
    static const struct option options[] = {{"force", no_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
    int r = parse_only_reference(invocation, options);

    if (!r && line.force && line.reference.kind != REFERENCE_ID)
        r = usage_error(invocation, "--force is about a buffer itself: give its #id");
    return r;
}

static int
run_rm(struct invocation *invocation, struct memclient *ctx)
{
    (void)invocation;
    switch (line.reference.kind) {
    case REFERENCE_NAME:
        return memclient_name_unbind(ctx, line.reference.name);
    case REFERENCE_ID:
        return memclient_destroy(ctx, line.reference.id, line.force);
    case REFERENCE_TOKEN:
        return memclient_revoke(ctx, &line.reference.token);
    }
    return -EINVAL;
}

const struct command buffer_commands[] = {
    {.name = "alloc", .synopsis = "--size SIZE [OPTIONS]",
     .summary = "Make a buffer",
     .help = "With --name the buffer stays until it is removed, and its #id is printed. Without, a token is\n"
             "printed that opens it once within 60 s and keeps it until then.\n"
             "\n"
             "  --size SIZE         how large\n"
             "  --name NAME         bind this name to it\n"
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
     .autostart = true, .parse = parse_alloc, .run = run_alloc},
    {.name = "share", .synopsis = "[OPTIONS] BUFFER",
     .summary = "Make a token that opens a buffer, and print it",
     .help = "  --rights RIGHTS  what it grants: r read, w write, s share, m manage; else reading, and\n"
             "                   writing if you may\n"
             "  --keeping        it keeps the buffer alive; needs --uses or --expires\n"
             "  --uses N         it can be opened N times\n"
             "  --expires TIME   it can be opened for that long: 500ms, 10s, 5min, 2h\n"
             "  --uid USER       only by this user\n"
             "  --gid GROUP      only by members of this group\n"
             "  --pid PID        only by this process\n",
     .parse = parse_share, .run = run_share},
    {.name = "open", .synopsis = "[--rights RIGHTS] [--claim KIND] BUFFER [PROGRAM [ARGUMENTS]]",
     .summary = "Open a buffer and show it, or run a program with it",
     .help = "PROGRAM gets a descriptor of the buffer, whose number is in $MEMORYD_FD, and its size in $MEMORYD_SIZE.\n"
             "It holds the buffer until it exits.\n"
             "\n"
             "  --rights RIGHTS  r to read, rw to write; else as much as you may\n"
             "  --claim KIND     shared or exclusive, of a NAME: refused while another session's claim forbids it\n",
     .runs_program = true, .parse = parse_open, .run = run_open},
    {.name = "cat", .synopsis = "BUFFER", .summary = "Write a buffer's bytes to standard output", .help = "",
     .parse = parse_cat, .run = run_cat},
    {.name = "fill", .synopsis = "BUFFER", .summary = "Fill a buffer from standard input",
     .help = "From its start; what is behind the end of the input stays as it is.\n",
     .parse = parse_plain, .run = run_fill},
    {.name = "publish", .synopsis = "[--future-only] BUFFER", .summary = "Make a buffer immutable for good",
     .help = "It must have been made with --publishable, and nobody may have it mapped for writing.\n"
             "\n"
             "  --future-only    let those who write it now go on\n",
     .parse = parse_publish, .run = run_publish},
    {.name = "move", .synopsis = "--node N BUFFER", .summary = "Move a buffer's pages to another NUMA node",
     .help = "Contents and addresses stay. Nobody may have touched a mapping of it that still exists.\n"
             "\n"
             "  --node N         to this one; it is bound there afterwards\n",
     .parse = parse_move, .run = run_move},
    {.name = "rm", .synopsis = "[--force] NAME|#ID|TOKEN", .summary = "Unbind a name, end a buffer, or revoke a token",
     .help = "A NAME is unbound: its buffer ends when nobody holds it any more. A TOKEN is revoked. An #ID\n"
             "ends the buffer itself, with all its names, tokens and holds; those who have it mapped keep\n"
             "the contents until they let go.\n"
             "\n"
             "  --force          take the contents away too, also from those who have it mapped (administrators)\n",
     .parse = parse_rm, .run = run_rm},
    {.name = NULL},
};
