/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the library's structs from options. An option means the same to every command that has it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memctl/line.h"
#include "memctl/top.h"

struct line line;

enum line_form {
    LINE_NONE, /* no value */
    LINE_TEXT,
    LINE_BYTES,
    LINE_DURATION,
    LINE_U32,
    LINE_PID,
    LINE_LIST,
    LINE_RIGHTS,
    LINE_USER,
    LINE_GROUP,
    LINE_GROUP_RIGHTS,
    LINE_CHOICE,
    LINE_KINDS,
};

#define FLAGS(member, bits) .flags = &(member), .flag = (bits)

/* An option stores its value in the target and sets a flag. */
static const struct line_option {
    char letter;
    const char *name;
    enum line_form form;
    void *target;
    const char *const *words; /* of a choice */
    unsigned *flags;
    unsigned flag;
} line_options[] = {
    {'s', "size", LINE_BYTES, &line.size, FLAGS(line.have_size, 1)},
    {'n', "name", LINE_TEXT, &line.alloc.name},
    {'p', "pool", LINE_TEXT, &line.alloc.pool},
    {'N', "node", LINE_LIST, &line.nodes},
    {'g', "pages", LINE_CHOICE, &line.alloc.pages, pages_words},
    {'z', "page-size", LINE_BYTES, &line.alloc.page_size},
    {'l', "placement", LINE_CHOICE, &line.alloc.placement, placement_words},
    {'t', "part-size", LINE_BYTES, &line.alloc.part_size},
    {'w', "weights", LINE_LIST, &line.weights},
    {'a', "align", LINE_BYTES, &line.alloc.alignment},
    {'P', "publishable", LINE_NONE, FLAGS(line.alloc.flags, MEMCLIENT_ALLOC_PUBLISHABLE)},
    {'W', "wait", LINE_DURATION, &line.alloc.wait_ms},
    {'k', "keep-for", LINE_DURATION, &line.name.keep_ms, FLAGS(line.name.policy, MEMCLIENT_NAME_KEEP_FOR)},
    {'G', "group", LINE_GROUP_RIGHTS, &line.name},
    {'O', "others", LINE_RIGHTS, &line.name.other_rights},
    {'r', "rights", LINE_RIGHTS, &line.rights},
    {'K', "keeping", LINE_NONE, FLAGS(line.share.flags, MEMCLIENT_TOKEN_KEEPING)},
    {'u', "uses", LINE_U32, &line.share.uses},
    {'e', "expires", LINE_DURATION, &line.share.expiry_ms},
    {'U', "uid", LINE_USER, &line.share.uid, FLAGS(line.share.flags, MEMCLIENT_TOKEN_ONLY_UID)},
    {'D', "gid", LINE_GROUP, &line.share.gid, FLAGS(line.share.flags, MEMCLIENT_TOKEN_ONLY_GID)},
    {'I', "pid", LINE_PID, &line.share.pid, FLAGS(line.share.flags, MEMCLIENT_TOKEN_ONLY_PID)},
    {'C', "claim", LINE_CHOICE, &line.claim, claim_words},
    {'f', "force", LINE_NONE, FLAGS(line.force, 1)},
    {'o', "follow", LINE_NONE, FLAGS(line.follow, 1)},
    {'y', "kind", LINE_KINDS, &line.kinds},
    {'S', "since", LINE_DURATION, &line.since_ms},
    {'1', "once", LINE_NONE, FLAGS(line.once, 1)},
    {'v', "view", LINE_CHOICE, &line.view, top_view_words},
    {'x', "sort", LINE_CHOICE, &line.sort, top_sort_words},
    {'q', "filter", LINE_TEXT, &line.filter},
    {'R', "rows", LINE_BYTES, &line.rows},
    {'i', "interval", LINE_DURATION, &line.interval_ms},
    {'Y', "replay", LINE_TEXT, &line.replay},
    {'F', "future-only", LINE_NONE, FLAGS(line.publish_flags, MEMCLIENT_PUBLISH_FUTURE_ONLY)},
};

static const struct line_option *line_option(int letter)
{
    const struct line_option *option = line_options;

    while (option->letter != letter)
        option++;
    return option;
}

struct option line_getopt(char letter)
{
    const struct line_option *option = line_option(letter);

    return (struct option){option->name, option->form ? required_argument : no_argument, NULL, letter};
}

/* 0, -EINVAL or -ERANGE for a value. */
static int line_set(const struct line_option *option, const char *value)
{
    struct memclient_name_options *name = option->target;

    if (option->flags)
        *option->flags |= option->flag;
    switch (option->form) {
    case LINE_NONE:
        return 0;
    case LINE_TEXT:
        *(const char **)option->target = value;
        return *value ? 0 : -EINVAL;
    case LINE_BYTES:
        return parse_bytes(value, option->target);
    case LINE_DURATION:
        return parse_duration(value, option->target);
    case LINE_U32:
        return parse_u32(value, option->target);
    case LINE_PID:
        return parse_pid(value, option->target);
    case LINE_LIST:
        return parse_list(value, option->target);
    case LINE_RIGHTS:
        return parse_rights(value, option->target);
    case LINE_USER:
        return parse_user(value, option->target);
    case LINE_GROUP:
        return parse_group(value, option->target);
    case LINE_GROUP_RIGHTS:
        return parse_group_rights(value, &name->gid, &name->group_rights);
    case LINE_CHOICE:
        return parse_choice(value, option->words, option->target);
    case LINE_KINDS:
        return parse_kinds(value, option->target);
    }
    return -EINVAL;
}

/* What would do instead, as the end of a sentence, or "". */
static void line_suggest(const struct line_option *option, char *text, size_t size)
{
    const char *const *words = option->form == LINE_KINDS ? kind_words + 1 : option->words;
    const char *before = "; there are: ";
    size_t used = 0;

    *text = '\0';
    for (; words && *words && used < size; words++, before = ", ")
        used += (size_t)snprintf(text + used, size - used, "%s%s", before, *words);
    for (const struct event_word *word = event_words; option->form == LINE_KINDS && word->word && used < size; word++)
        used += (size_t)snprintf(text + used, size - used, ", %s", word->word);
}

int parse_options(struct invocation *invocation)
{
    const struct line_option *option;
    char suggestion[256];
    int letter, r;

    line.alloc = (struct memclient_alloc_options)MEMCLIENT_ALLOC_OPTIONS_INIT;
    line.name = (struct memclient_name_options)MEMCLIENT_NAME_OPTIONS_INIT;
    line.share = (struct memclient_share_options)MEMCLIENT_SHARE_OPTIONS_INIT;

    while ((letter = next_option(invocation)) != -1) {
        if (letter == '?')
            return EXIT_USAGE;
        option = line_option(letter);
        r = line_set(option, optarg);
        if (r == -ERANGE)
            return usage_error(invocation, "--%s %s: more than 64 bits can hold", option->name, optarg);
        if (r && (option->form == LINE_USER || option->form == LINE_GROUP))
            return usage_error(invocation, "--%s: there is no %s `%s'", option->name,
                               option->form == LINE_USER ? "user" : "group", optarg);
        if (r) {
            line_suggest(option, suggestion, sizeof(suggestion));
            return usage_error(invocation, "--%s does not take `%s'%s", option->name, optarg, suggestion);
        }
    }
    return EXIT_DONE;
}

int parse_any_reference(struct invocation *invocation)
{
    const char *wrong;
    int r = parse_options(invocation);

    if (r || optind == invocation->argc)
        return r;
    line.given = invocation->argv[optind];
    wrong = reference_parse(line.given, &line.reference);
    if (wrong)
        return usage_error(invocation, "`%s' %s", line.given, wrong);
    optind++;
    return EXIT_DONE;
}

int parse_reference(struct invocation *invocation)
{
    int r = parse_any_reference(invocation);

    return r || line.given ? r : usage_error(invocation, "a buffer is required");
}

int parse_only_reference(struct invocation *invocation)
{
    int r = parse_reference(invocation);

    return r ? r : parse_end(invocation);
}

static int line_find_name(const struct memclient_name_info *name, void *data)
{
    char text[MEMCLIENT_NAME_SIZE];

    (void)snprintf(text, sizeof(text), "uid:%u/%s", (unsigned)name->uid, name->name);
    if (strcmp(text, line.reference.name) != 0 &&
        (name->uid != geteuid() || strcmp(name->name, line.reference.name) != 0))
        return 0;
    *(uint64_t *)data = name->buffer;
    return 1;
}

int line_find_buffer(struct memclient_context *ctx, uint64_t *ret)
{
    int r;

    *ret = line.reference.id;
    if (line.reference.kind != REFERENCE_NAME)
        return 0;
    r = memclient_list_names(ctx, line_find_name, ret);
    return r < 0 ? r : 0;
}

int line_open(struct memclient_context *ctx, unsigned rights, struct memclient_buffer **ret)
{
    const struct reference *reference = &line.reference;

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
