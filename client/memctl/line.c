/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options to the library's structs. An option means the same to every command that has it.
 */
#include <errno.h>
#include <getopt.h>

#include "memctl/line.h"

struct line line;

static const char *const pages_choices[] = {"any", "base", "thp", "hugetlb", NULL};
static const char *const claim_choices[] = {"none", "shared", "exclusive", NULL};
static const char *const placement_choices[] = {"pool", "bind", "preferred", "interleave", "split", "local", NULL};

/* Each of these returns 0, -EINVAL or -ERANGE for a value, and -ENOENT for an option that is not among its own. */

/* How a buffer lies. */
static int
set_placement(int option, const char *value)
{
    switch (option) {
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
    }
    return -ENOENT;
}

/* What it is made for. */
static int
set_making(int option, const char *value)
{
    switch (option) {
    case 's':
        line.have_size = true;
        return parse_bytes(value, &line.size);
    case 'n':
        line.alloc.name = value;
        return *value ? 0 : -EINVAL;
    case 'k':
        line.name.policy = MEMCLIENT_NAME_KEEP_FOR;
        return parse_duration(value, &line.name.keep_ms);
    case 'G':
        return parse_group_rights(value, &line.name.gid, &line.name.group_rights);
    case 'O':
        return parse_rights(value, &line.name.other_rights);
    case 'P':
        line.alloc.flags |= MEMCLIENT_PUBLISHABLE;
        return 0;
    case 'W':
        return parse_duration(value, &line.alloc.wait_ms);
    }
    return -ENOENT;
}

static int
set_pid(const char *value)
{
    uint32_t pid;

    if (parse_u32(value, &pid) || !pid || pid > INT32_MAX)
        return -EINVAL;
    line.share.flags |= MEMCLIENT_TOKEN_ONLY_PID;
    line.share.pid = (pid_t)pid;
    return 0;
}

/* Of a token. */
static int
set_sharing(int option, const char *value)
{
    switch (option) {
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
    case 'I':
        return set_pid(value);
    }
    return -ENOENT;
}

/* How it is opened, and what is done to it. */
static int
set_use(int option, const char *value)
{
    switch (option) {
    case 'r':
        return parse_rights(value, &line.rights);
    case 'C':
        return parse_choice(value, claim_choices, &line.claim);
    case 'f':
        line.force = true;
        return 0;
    case 'F':
        line.future_only = true;
        return 0;
    }
    return -ENOENT;
}

static int
set_option(int option, const char *value)
{
    static int (*const families[])(int option, const char *value) = {set_making, set_placement, set_sharing, set_use};
    int r = -ENOENT;

    for (size_t i = 0; r == -ENOENT && i < sizeof(families) / sizeof(families[0]); i++)
        r = families[i](option, value);
    return r;
}

int
parse_options(struct invocation *invocation)
{
    int option, r;

    line.alloc = (struct memclient_alloc_options)MEMCLIENT_ALLOC_OPTIONS_INIT;
    line.name = (struct memclient_name_options)MEMCLIENT_NAME_OPTIONS_INIT;
    line.share = (struct memclient_share_options)MEMCLIENT_SHARE_OPTIONS_INIT;

    while ((option = next_option(invocation)) != -1) {
        const char *name = "";

        if (option == '?')
            return EXIT_USAGE;
        for (const struct option *o = invocation->command->options; o->name; o++)
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

int
parse_reference(struct invocation *invocation)
{
    const char *wrong;
    int r = parse_options(invocation);

    if (r)
        return r;
    if (optind == invocation->argc)
        return usage_error(invocation, "a buffer is required");
    line.given = invocation->argv[optind];
    wrong = reference_parse(line.given, &line.reference);
    if (wrong)
        return usage_error(invocation, "`%s' %s", line.given, wrong);
    optind++;
    return EXIT_DONE;
}

int
parse_only_reference(struct invocation *invocation)
{
    int r = parse_reference(invocation);

    return r ? r : parse_end(invocation);
}

int
line_open(struct memclient *ctx, unsigned rights, struct memclient_buffer **ret)
{
    return reference_open(ctx, &line.reference, rights, ret);
}
