/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, in a sentence and in columns.
 */
#include <inttypes.h>
#include <memclient/memclient.h>
#include <stdio.h>
#include <string.h>

#include "memctl/history.h"
#include "memctl/text.h"
#include "memctl/values.h"

#define IN(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
#define INT(value)       ((json_int_t)(value))

static const char *const end_words[] = {"none",    "goodbye", "died", "exited", "signal",
                                        "unknown", "silent",  "oom",  NULL};

/* ---- sentences --------------------------------------------------------------------------------------------------- */

/* An amount of what there was too little of: "8M", or "12" of what is counted. */
static char *describe_amount(const char *resource, uint64_t amount, char text[static 24])
{
    if (!strcmp(resource, "bytes") || !strcmp(resource, "addresses") || !strcmp(resource, "metadata"))
        format_bytes(amount, text, 24);
    else
        (void)snprintf(text, 24, "%" PRIu64, amount);
    return text;
}

/* Who had it, and when that was, of a request that took long: the end of a wait in vain, the beginning of another one.
 * Of others, users learn only the sum. */
static void describe_shares(const struct memclient_history_entry *entry, char *text, size_t size)
{
    char mine[24], most[24], limit[24], others[24];
    const char *when = "";

    *text = '\0';
    if (!*entry->resource || (!entry->used && !entry->mine))
        return;
    if (entry->kind == MEMCLIENT_HISTORY_WAITED)
        when = " when it began to wait";
    else if (!strcmp(entry->status, "TIMED_OUT"))
        when = " when it gave up";
    describe_amount(entry->resource, entry->mine, mine);
    describe_amount(entry->resource, entry->limit, limit);
    describe_amount(entry->resource, entry->most, most);
    if (entry->most_uid != (uid_t)-1 && entry->most_uid != entry->uid)
        (void)snprintf(text, size, " (of %s, user %u had %s, and user %u most, %s%s)", limit, (unsigned)entry->uid,
                       mine, (unsigned)entry->most_uid, most, when);
    else if (*entry->pool && entry->used > entry->mine)
        (void)snprintf(text, size, " (of %s, user %u had %s, and others %s%s)", limit, (unsigned)entry->uid, mine,
                       describe_amount(entry->resource, entry->used - entry->mine, others), when);
    else
        (void)snprintf(text, size, " (of %s, user %u had %s%s)", limit, (unsigned)entry->uid, mine, when);
}

/* What people call a request: not as the protocol does, but as memctl and the library do. */
static const char *describe_method(const char *method)
{
    static const struct {
        const char *method, *words;
    } words[] = {
        {"hello", "connect"},
        {"goodbye", "close"},
        {"lookup", "open"},
        {"info", "query"},
        {"name_bind", "bind a name"},
        {"name_unbind", "unbind a name"},
        {"subscribe", "subscribe to events"},
        {"subscribe_to", "subscribe to events"},
        {"unreserve", "release a reservation"},
        {"select_buffers", "list buffers"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(method, words[i].method))
            return words[i].words;
    return !strncmp(method, "list_", 5) ? "list" : method;
}

static void describe_wait(const struct memclient_history_entry *entry, char *text, size_t size)
{
    char wanted[24], shares[192];

    describe_shares(entry, shares, sizeof(shares));
    (void)snprintf(text, size, "got %s of pool %s after %" PRIu64 " ms%s",
                   describe_amount(entry->resource, entry->wanted, wanted), entry->pool, entry->waited_ms, shares);
}

void history_describe_death(unsigned end, int status, char *text, size_t size)
{
    const char *signal = sigabbrev_np(status);

    switch ((enum memclient_session_end)end) {
    case MEMCLIENT_END_GOODBYE:
        (void)snprintf(text, size, "closed");
        return;
    case MEMCLIENT_END_DIED:
        (void)snprintf(text, size, "its process died; how is known once its parent has waited for it");
        return;
    case MEMCLIENT_END_EXITED:
        (void)snprintf(text, size, "its process exited with status %d", status);
        return;
    case MEMCLIENT_END_SIGNAL:
        (void)snprintf(text, size, "its process was killed by signal %d%s%s", status, signal ? ", SIG" : "",
                       signal ? signal : "");
        return;
    case MEMCLIENT_END_OOM:
        (void)snprintf(text, size,
                       "its process was killed by signal %d, probably for want of memory: the kernel's OOM killer has "
                       "killed in its control group since the session had its first buffer",
                       status);
        return;
    case MEMCLIENT_END_UNKNOWN:
        (void)snprintf(text, size, "its process died; how is not known");
        return;
    case MEMCLIENT_END_SILENT:
        (void)snprintf(text, size, "its connection was lost, and nothing of it was in use");
        return;
    }
    (void)snprintf(text, size, "ended");
}

static void describe_end(const struct memclient_history_entry *entry, char *text, size_t size)
{
    char death[256], bytes[24];

    history_describe_death(entry->end, entry->exit_status, death, sizeof(death));
    format_bytes(entry->bytes, bytes, sizeof(bytes));
    if (!entry->holds && entry->bytes)
        (void)snprintf(
            text, size,
            "%s; it held no buffer any more, and was charged for %s that names, tokens or other sessions keep", death,
            bytes);
    else
        (void)snprintf(text, size, "%s; it held %u buffer%s, and was charged for %s", death, entry->holds,
                       plural(entry->holds), bytes);
}

/* What was done, to which buffer or name: an older broker does not say all of it. */
static void describe_done(const struct memclient_history_entry *entry, char *text, size_t size)
{
    static const struct {
        const char *method, *verb;
        const char *from; /* of a name: what comes between it and the buffer */
        const char *end;
    } words[] = {
        {"alloc", "bound", "to", ", which is new"},
        {"name_bind", "bound", "to", ""},
        {"name_unbind", "unbound", "from", ""},
        {"publish", "published", NULL, ""},
        {"discard", "discarded memory of", NULL, ""},
        {"move", "moved", NULL, ""},
        {"destroy", "destroyed", NULL, ""},
        {"revoke", "revoked tokens of", NULL, ""},
        {"reload", "had the configuration read again", NULL, ""},
        {"upgrade", "had the broker replaced", NULL, ""},
    };
    char name[MEMCLIENT_NAME_SIZE + 16] = "", buffer[48] = "";
    size_t i = 0;

    while (i < sizeof(words) / sizeof(words[0]) && strcmp(entry->method, words[i].method) != 0)
        i++;
    if (i == sizeof(words) / sizeof(words[0])) {
        (void)snprintf(text, size, entry->buffer ? "%s of buffer %" PRIu64 : "%s", entry->method, entry->buffer);
        return;
    }
    if (words[i].from)
        (void)snprintf(name, sizeof(name), *entry->sentence ? " the name %s" : " a name%s", entry->sentence);
    if (entry->buffer)
        (void)snprintf(buffer, sizeof(buffer), "%s%s buffer %" PRIu64 "%s", words[i].from ? " " : "",
                       words[i].from ? words[i].from : "", entry->buffer, words[i].end);
    (void)snprintf(text, size, "%s%s%s", words[i].verb, name, buffer);
}

/* A broker of an older version does not say how the last one ended. */
static void describe_start(const struct memclient_history_entry *entry, char *text, size_t size)
{
    if (entry->end == MEMCLIENT_END_DIED)
        (void)snprintf(text, size, "this broker took over from one that had died; the log of memoryd says how");
    else if (entry->end == MEMCLIENT_END_GOODBYE)
        (void)snprintf(text, size,
                       "this broker took over from one that had ended in order, to be restarted or upgraded");
    else
        (void)snprintf(text, size, "this broker took over from one that had died or was replaced");
}

void history_describe(const void *item, char *text, size_t size)
{
    const struct memclient_history_entry *entry = item;
    char words[TEXT_MAX], shares[192];

    switch ((enum memclient_history_kind)entry->kind) {
    case MEMCLIENT_HISTORY_REFUSED:
        describe_shares(entry, shares, sizeof(shares));
        (void)snprintf(text, size, "%s: %s%s", describe_method(entry->method),
                       words_of(entry->sentence, words, sizeof(words)), shares);
        return;
    case MEMCLIENT_HISTORY_WAITED:
        describe_wait(entry, text, size);
        return;
    case MEMCLIENT_HISTORY_ENDED:
        describe_end(entry, text, size);
        return;
    case MEMCLIENT_HISTORY_DONE:
        describe_done(entry, text, size);
        return;
    case MEMCLIENT_HISTORY_STARTED:
        describe_start(entry, text, size);
        return;
    }
    (void)snprintf(text, size, "something that this memctl is too old for");
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static json_t *detail_json(const void *item)
{
    char text[TEXT_MAX];

    history_describe(item, text, sizeof(text));
    return json_text(text);
}

json_t *history_known_json(uint64_t number)
{
    return number ? json_integer(INT(number)) : json_null();
}

json_t *history_end_json(uint64_t end)
{
    return end ? json_word(end_words, end) : json_null();
}

static json_t *uid_json(uint64_t uid)
{
    return uid == (uid_t)-1 ? json_null() : json_integer(INT(uid));
}

json_t *history_exit_status_json(unsigned end, int status)
{
    return end == MEMCLIENT_END_EXITED ? json_integer(status) : json_null();
}

json_t *history_signal_json(unsigned end, int status)
{
    return end == MEMCLIENT_END_SIGNAL || end == MEMCLIENT_END_OOM ? json_integer(status) : json_null();
}

/* What was done has a name in its place. */
static json_t *sentence_json(const void *item)
{
    const struct memclient_history_entry *entry = item;

    return json_text(entry->kind == MEMCLIENT_HISTORY_DONE ? "" : entry->sentence);
}

static json_t *name_json(const void *item)
{
    const struct memclient_history_entry *entry = item;

    return json_text(entry->kind == MEMCLIENT_HISTORY_DONE ? entry->sentence : "");
}

static json_t *exit_status_json(const void *item)
{
    const struct memclient_history_entry *entry = item;

    return history_exit_status_json(entry->end, entry->exit_status);
}

static json_t *signal_json(const void *item)
{
    const struct memclient_history_entry *entry = item;

    return history_signal_json(entry->end, entry->exit_status);
}

const struct column history_columns[] = {
    {NULL, "serial", COLUMN_NUMBER, IN(memclient_history_entry, serial)},
    {"AGE", "at_ms", COLUMN_AGE, IN(memclient_history_entry, at_ms)},
    {NULL, "first_ms", COLUMN_AGE, IN(memclient_history_entry, first_ms)},
    {"TIMES", "count", COLUMN_NUMBER, IN(memclient_history_entry, count)},
    {"EVENT", "kind", COLUMN_TEXT, IN(memclient_history_entry, kind), .words = kind_words},
    {"UID", "uid", COLUMN_NUMBER, IN(memclient_history_entry, uid)},
    {"PID", "pid", COLUMN_NUMBER, IN(memclient_history_entry, pid), .number = history_known_json},
    {"PROGRAM", "program", COLUMN_TEXT, IN(memclient_history_entry, program)},
    {NULL, "session", COLUMN_NUMBER, IN(memclient_history_entry, session), .number = history_known_json},
    {"DETAIL", "detail", COLUMN_TEXT, .make = detail_json},
    {NULL, "method", COLUMN_TEXT, IN(memclient_history_entry, method)},
    {NULL, "status", COLUMN_TEXT, IN(memclient_history_entry, status)},
    {NULL, "sentence", COLUMN_TEXT, .make = sentence_json},
    {NULL, "resource", COLUMN_TEXT, IN(memclient_history_entry, resource)},
    {NULL, "pool", COLUMN_TEXT, IN(memclient_history_entry, pool)},
    {NULL, "wanted", COLUMN_NUMBER, IN(memclient_history_entry, wanted)},
    {NULL, "used", COLUMN_NUMBER, IN(memclient_history_entry, used)},
    {NULL, "limit", COLUMN_NUMBER, IN(memclient_history_entry, limit)},
    {NULL, "mine", COLUMN_NUMBER, IN(memclient_history_entry, mine)},
    {NULL, "most_uid", COLUMN_NUMBER, IN(memclient_history_entry, most_uid), .number = uid_json},
    {NULL, "most", COLUMN_NUMBER, IN(memclient_history_entry, most)},
    {NULL, "waited_ms", COLUMN_SPAN, IN(memclient_history_entry, waited_ms)},
    {NULL, "end", COLUMN_TEXT, IN(memclient_history_entry, end), .number = history_end_json},
    {NULL, "exit_status", COLUMN_NUMBER, .make = exit_status_json},
    {NULL, "signal", COLUMN_NUMBER, .make = signal_json},
    {NULL, "began_ms", COLUMN_AGE, IN(memclient_history_entry, began_ms), .number = history_known_json},
    {NULL, "bytes", COLUMN_BYTES, IN(memclient_history_entry, bytes)},
    {NULL, "holds", COLUMN_NUMBER, IN(memclient_history_entry, holds)},
    {NULL, "buffer", COLUMN_NUMBER, IN(memclient_history_entry, buffer), .number = history_known_json},
    {NULL, "name", COLUMN_TEXT, .make = name_json},
    COLUMNS_END,
};

static json_t *limit_json(uint64_t limit)
{
    return limit == MEMCLIENT_NO_LIMIT ? json_null() : json_integer(INT(limit));
}

static json_t *unit_json(const void *item)
{
    const struct memclient_limit_info *info = item;
    char text[24];

    return json_string(strcmp(describe_amount(info->resource, 1024, text), "1K") ? "1" : "bytes");
}

const struct column limit_columns[] = {
    {"UID", "uid", COLUMN_NUMBER, IN(memclient_limit_info, uid)},
    {"OF", "resource", COLUMN_TEXT, IN(memclient_limit_info, resource)},
    {"POOL", "pool", COLUMN_TEXT, IN(memclient_limit_info, pool)},
    {NULL, "unit", COLUMN_TEXT, .make = unit_json},
    {"USED", "used", COLUMN_AMOUNT, IN(memclient_limit_info, used)},
    {"LIMIT", "limit", COLUMN_AMOUNT, IN(memclient_limit_info, limit), .number = limit_json},
    {"AVAILABLE", "available", COLUMN_AMOUNT, IN(memclient_limit_info, available), .number = limit_json},
    {"SESSION", "session_limit", COLUMN_AMOUNT, IN(memclient_limit_info, session_limit), .number = limit_json},
    {"SHARE", "share", COLUMN_NUMBER, IN(memclient_limit_info, share)},
    {"CONFIGURE", "key", COLUMN_TEXT, IN(memclient_limit_info, key)},
    {"ALLOW", "allow", COLUMN_TEXT}, /* of a pool; pools know it */
    COLUMNS_END,
};

const struct column holder_columns[] = {
    {"BUFFER", "buffer", COLUMN_NUMBER},
    {"BYTES", "bytes", COLUMN_BYTES},
    {"POOL", "pool", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},
    {"AGE", "created_ms", COLUMN_AGE},
    {"BY", "by", COLUMN_TEXT},
    {"SESSION", "session", COLUMN_NUMBER},
    {"UID", "uid", COLUMN_NUMBER},
    {"PID", "pid", COLUMN_NUMBER},
    {"PROGRAM", "program", COLUMN_TEXT},
    {"RIGHTS", "rights", COLUMN_TEXT},
    {"CLAIM", "claim", COLUMN_TEXT},
    {"SINCE", "since_ms", COLUMN_AGE},
    {"SESSION-SINCE", "session_since_ms", COLUMN_AGE},
    {"NAME", "name", COLUMN_TEXT},
    {"OPEN-IN", "open_in", COLUMN_LIST},
    COLUMNS_END,
};
