/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: what may be one, who may use it, and where it is in the tree.
 */
#include "mem/name.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/printable.h"
#include "log/log.h"
#include "proto/status.h"

static int compare_keys(const struct name_key *a, const struct name_key *b)
{
    int c;

    if (a->uid != b->uid)
        return a->uid < b->uid ? -1 : 1;
    c = memcmp(a->path, b->path, a->length < b->length ? a->length : b->length);
    if (c)
        return c;
    return a->length < b->length ? -1 : a->length > b->length;
}

static struct name_key name_key_of(const struct name *name)
{
    return (struct name_key){.uid = name->record->uid, .path = name->record->path, .length = name->record->length};
}

static int compare_names(const struct name *a, const struct name *b)
{
    struct name_key key_a = name_key_of(a), key_b = name_key_of(b);

    return compare_keys(&key_a, &key_b);
}

TREE_GENERATE(name_tree, name, by_path, compare_names)

static struct name *find_any(const struct names *names, const struct name_key *key)
{
    for (struct name *name = RB_ROOT(&names->tree); name;) {
        struct name_key other = name_key_of(name);
        int c = compare_keys(key, &other);

        if (!c)
            return name;
        name = c < 0 ? RB_LEFT(name, by_path) : RB_RIGHT(name, by_path);
    }
    return NULL;
}

/* Parses what follows "uid:", a number and a slash. Returns the text behind the slash, or NULL. */
static const char *parse_uid(const char *text, uid_t *ret)
{
    unsigned long long v = 0;
    const char *p = text;

    for (; *p >= '0' && *p <= '9'; p++) {
        v = 10 * v + (unsigned long long)(*p - '0');
        /* the kernel uses the highest uid for "none" */
        if (v >= UINT32_MAX)
            return NULL;
    }
    /* no leading zeros, so that there is one way to write each uid */
    if (p == text || *p != '/' || (*text == '0' && p != text + 1))
        return NULL;
    *ret = (uid_t)v;
    return p + 1;
}

static int check_path(const char *path, size_t length, struct problem *problem)
{
    if (!length)
        return refuse(problem, STATUS_BAD_NAME, "an empty name; a name has 1 to %d bytes", MEMORYD_NAME_MAX);
    if (length > MEMORYD_NAME_MAX)
        return refuse(problem, STATUS_BAD_NAME, "a name of %zu bytes; a name has 1 to %d", length, MEMORYD_NAME_MAX);
    if (!printable_without_controls(path, length))
        return refuse(problem, STATUS_BAD_NAME, "a name is UTF-8 text without control characters");
    for (const char *part = path; part;) {
        const char *slash = strchr(part, '/');
        size_t n = slash ? (size_t)(slash - part) : strlen(part);

        if (!n)
            return refuse(problem, STATUS_BAD_NAME, "\"%s\": a name has no slash at its ends and no two in a row",
                          path);
        if ((n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return refuse(problem, STATUS_BAD_NAME, "\"%s\": no part of a name is \".\" or \"..\"", path);
        part = slash ? slash + 1 : NULL;
    }
    return 0;
}

int name_parse(const char *text, uid_t uid, struct name_key *ret, struct problem *problem)
{
    static const char prefix[] = "uid:";
    const char *path = text;
    size_t length;
    int r;

    if (!strncmp(text, prefix, sizeof(prefix) - 1)) {
        path = parse_uid(text + sizeof(prefix) - 1, &uid);
        if (!path)
            return refuse(problem, STATUS_BAD_NAME,
                          "a name that begins with \"uid:\" goes on with a user's number and a slash: \"uid:1000/a\"");
    }
    length = strlen(path);
    r = check_path(path, length, problem);
    if (r)
        return r;
    *ret = (struct name_key){.uid = uid, .path = path, .length = length};
    return 0;
}

void name_text(const struct name *name, uid_t uid, char text[static NAME_TEXT_SIZE])
{
    if (name->record->uid == uid && strncmp(name->record->path, "uid:", 4))
        (void)snprintf(text, NAME_TEXT_SIZE, "%s", name->record->path);
    else
        (void)snprintf(text, NAME_TEXT_SIZE, "uid:%" PRIu32 "/%s", name->record->uid, name->record->path);
}

void names_init(struct names *names, struct ledger *ledger)
{
    *names = (struct names){.tree = RB_INITIALIZER(&names->tree)};
    table_init(&names->table, ledger, RECORD_NAME, sizeof(struct name), true);
}

void names_deinit(struct names *names)
{
    table_deinit(&names->table);
}

static void name_enter(struct name *name, struct buffer *buffer, struct list *in_session)
{
    name->buffer = buffer;
    list_append(&buffer->names, &name->in_buffer);
    buffer->n_names++;
    if (in_session)
        list_append(in_session, &name->in_session);
}

int name_new(struct names *names, const struct name_new_args *args, struct name **ret, struct problem *problem)
{
    _cleanup_(name_freep) struct name *name = NULL;
    struct name_record *record;
    void *object;
    int r;

    assert(args->key.length && args->key.length <= MEMORYD_NAME_MAX);
    if (find_any(names, &args->key))
        return refuse(problem, STATUS_NAME_EXISTS, "\"%.*s\" is bound already; unbind it first or take another name",
                      (int)args->key.length, args->key.path);
    r = table_alloc(&names->table, &object, problem);
    if (r)
        return r;
    name = object;
    record = record_fresh(name);
    name->names = names;
    list_init(&name->in_buffer);
    list_init(&name->in_session);
    r = charge_init(&name->charge, args->account, ACCOUNT_NAMES, 1, problem);
    if (r)
        return r;
    record->buffer = args->buffer->record->head.id;
    record->session = args->session;
    record->keep_ms = args->keep_ms;
    record->uid = args->key.uid;
    record->gid = args->gid;
    record->group_rights = args->group_rights;
    record->other_rights = args->other_rights;
    record->policy = args->policy;
    record->length = (uint32_t)args->key.length;
    memcpy(record->path, args->key.path, args->key.length);

    name_enter(name, args->buffer, args->in_session);
    RB_INSERT(name_tree, &names->tree, name);
    audit_after(&names->table, name);
    *ret = steal_ptr(&name);
    return 0;
}

static bool is_name_sound(const struct name_record *record)
{
    return record->length <= MEMORYD_NAME_MAX && strnlen(record->path, sizeof(record->path)) == record->length &&
           !check_path(record->path, record->length, NULL) && record->uid != (uid_t)-1 &&
           record->policy <= NAME_KEEP_FOR && !((record->group_rights | record->other_rights) & ~(uint32_t)RIGHTS_ALL);
}

enum table_verdict name_recover(struct names *names, struct name *name, struct buffer *buffer, struct account *account,
                                struct list *in_session, const char **why)
{
    const struct name_record *record = name->record;

    *why = "no name is like this";
    if (!is_name_sound(record))
        return TABLE_QUARANTINE;
    if (!buffer || buffer->record->state != BUFFER_LIVE) {
        log_warning("the name %s of uid %" PRIu32 " is unbound: its buffer, %" PRIu64 ", is gone", record->path,
                    record->uid, record->buffer);
        return TABLE_DROP;
    }
    *why = "another one is the same";
    if (RB_INSERT(name_tree, &names->tree, name))
        return TABLE_QUARANTINE;
    name->names = names;
    list_init(&name->in_buffer);
    list_init(&name->in_session);
    charge_restore(&name->charge, account, ACCOUNT_NAMES, 1);
    name_enter(name, buffer, in_session);
    return TABLE_KEEP;
}

struct name *name_free(struct name *name)
{
    if (!name)
        return NULL;
    if (name->buffer) {
        audit_before(&name->names->table, name);
        RB_REMOVE(name_tree, &name->names->tree, name);
        list_remove(&name->in_buffer);
        name->buffer->n_names--;
    }
    list_remove(&name->in_session);
    charge_deinit(&name->charge);
    table_free(&name->names->table, name);
    return NULL;
}

void name_leave_session(struct name *name)
{
    list_remove(&name->in_session);
    record_change(&name->names->table, name)->session = 0;
}

struct name *names_find(const struct names *names, const struct name_key *key)
{
    struct name *name = find_any(names, key);

    return name && record_is_live(&name->record->head) ? name : NULL;
}

struct name *names_find_id(const struct names *names, uint64_t id)
{
    struct name *name = table_find(&names->table, id);

    return name && record_is_live(&name->record->head) ? name : NULL;
}

uint32_t name_rights(const struct name *name, const struct peer *peer, bool administrator)
{
    const struct name_record *record = name->record;
    uint32_t rights = record->other_rights;

    if (administrator || peer->uid == record->uid)
        return RIGHTS_ALL;
    if (record->group_rights && peer_in_group(peer, record->gid))
        rights |= record->group_rights;
    return rights_complete(rights);
}
