/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `events --follow`: what happens, a line each, until it is interrupted or the buffer that is followed has ended.
 *
 * There are two sources. The history is listed again when an event says that it has something new, so nothing of that
 * is missed. Of what becomes of buffers the broker keeps nothing, so that what is lost is lost, and a line says so.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "memctl/history.h"
#include "memctl/line.h"
#include "memctl/text.h"

#define IN(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
#define OF(type, member) .mask_offset = offsetof(struct type, member)

/* How often a broker that has no events is asked; how many died sessions of a buffer are remembered. */
enum { FOLLOW_MS = 500, FOLLOW_DIED_MAX = 64 };
/* What sessions do; the others have neither user nor process. */
enum {
    FOLLOW_OF_SESSIONS = MEMCLIENT_EVENT_HELD | MEMCLIENT_EVENT_LEFT | MEMCLIENT_EVENT_DIED | MEMCLIENT_EVENT_DEATH
};

struct follow {
    const struct invocation *invocation;
    struct memclient_context *ctx;
    struct history_query *query;
    bool history; /* is it shown? */
    unsigned events;
    uint64_t buffer; /* whose events are shown; 0: all, or there is none of that name */
    uint32_t broker; /* which has that: an id means another buffer to one that has lost all; 0: not known yet */
    uint64_t died[FOLLOW_DIED_MAX];
    unsigned n_died;
    bool ended; /* nothing more can come */
    bool lost;  /* the last line said so */
    int fd;     /* or -1 */
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

int follow_parse(const struct invocation *invocation)
{
    if (!line.given)
        return parse_end(invocation);
    if (line.reference.kind == REFERENCE_TOKEN)
        return usage_error(invocation, "a token would have to be used up for that; give the buffer's id or name");
    for (unsigned i = 1; kind_words[i]; i++)
        if (line.kinds.history & 1U << i)
            return usage_error(invocation, "--kind %s is not of a buffer: leave out `%s'", kind_words[i], line.given);
    for (const struct event_word *word = event_words; word->word; word++)
        if (line.kinds.events & word->event && !word->of_buffers)
            return usage_error(invocation, "--kind %s is not of a buffer: leave out `%s'", word->word, line.given);
    return parse_end(invocation);
}

/* Without --kind: the history, or all that becomes of the buffer. */
static void follow_choose(struct follow *follow)
{
    follow->history = line.kinds.history || (!line.kinds.events && !line.given);
    follow->events = line.kinds.events;
    for (const struct event_word *word = event_words; word->word; word++)
        if (line.given && !line.kinds.events && word->of_buffers)
            follow->events |= word->event;
}

/* ---- an event ---------------------------------------------------------------------------------------------------- */

struct followed {
    struct memclient_event event;
    uint64_t at_ms;
};

static json_t *followed_kind_json(uint64_t kind)
{
    for (const struct event_word *word = event_words; word->word; word++)
        if (word->event == kind)
            return json_string(word->word);
    return json_string(kind == MEMCLIENT_EVENT_LOST ? "lost" : "unknown");
}

static json_t *followed_uid_json(const void *item)
{
    const struct followed *followed = item;
    bool known = followed->event.kind & FOLLOW_OF_SESSIONS && followed->event.uid != UINT32_MAX;

    return known ? json_integer(followed->event.uid) : json_null();
}

static json_t *followed_status_json(const void *item)
{
    const struct followed *followed = item;

    return history_exit_status_json(followed->event.end, followed->event.exit_status);
}

static json_t *followed_signal_json(const void *item)
{
    const struct followed *followed = item;

    return history_signal_json(followed->event.end, followed->event.exit_status);
}

static void followed_describe(const struct memclient_event *event, char *text, size_t size)
{
    static const char *const levels[] = {"less than 85 %", "more than 85 %", "more than 95 %"};

    *text = '\0';
    switch ((enum memclient_event_kind)event->kind) {
    case MEMCLIENT_EVENT_HELD:
        (void)snprintf(text, size, "it holds the buffer now");
        return;
    case MEMCLIENT_EVENT_LEFT:
        (void)snprintf(text, size, "it holds the buffer no more");
        return;
    case MEMCLIENT_EVENT_DIED:
        (void)snprintf(text, size, "its process died, and held the buffer");
        return;
    case MEMCLIENT_EVENT_DEATH:
        history_describe_death(event->end, event->exit_status, text, size);
        return;
    case MEMCLIENT_EVENT_PUBLISHED:
        (void)snprintf(text, size, "the buffer can be written no more");
        return;
    case MEMCLIENT_EVENT_DISCARDED:
        (void)snprintf(text, size, "a part of the buffer has been discarded, and reads as zeros");
        return;
    case MEMCLIENT_EVENT_MOVED:
        (void)snprintf(text, size, "the buffer has been moved to another node");
        return;
    case MEMCLIENT_EVENT_DESTROYED:
        (void)snprintf(text, size, "the buffer has ended");
        return;
    case MEMCLIENT_EVENT_NAME:
        (void)snprintf(text, size, "%s is %s", event->name, event->bound ? "bound to the buffer" : "unbound from it");
        return;
    case MEMCLIENT_EVENT_PRESSURE:
        (void)snprintf(text, size, "%s of pool %s is used", levels[event->level < 2 ? event->level : 2], event->pool);
        return;
    case MEMCLIENT_EVENT_SHUTDOWN:
        (void)snprintf(text, size, "the broker is stopping");
        return;
    case MEMCLIENT_EVENT_LOST:
        (void)snprintf(text, size, "events were missed; memctl holders and memctl buffers show how it is now");
        return;
    case MEMCLIENT_EVENT_HISTORY:
        return;
    }
}

static json_t *followed_detail_json(const void *item)
{
    const struct followed *followed = item;
    char text[TEXT_MAX];

    followed_describe(&followed->event, text, sizeof(text));
    return json_text(text);
}

static const struct column followed_columns[] = {
    {NULL, "at_ms", COLUMN_AGE, IN(followed, at_ms)},
    {NULL, "kind", COLUMN_TEXT, IN(followed, event.kind), .number = followed_kind_json},
    {NULL, "buffer", COLUMN_NUMBER, IN(followed, event.buffer), .number = history_known_json},
    {NULL, "uid", COLUMN_NUMBER, .make = followed_uid_json},
    {NULL, "pid", COLUMN_NUMBER, IN(followed, event.pid), .number = history_known_json},
    {NULL, "session", COLUMN_NUMBER, IN(followed, event.session), .number = history_known_json},
    {NULL, "detail", COLUMN_TEXT, .make = followed_detail_json},
    {NULL, "name", COLUMN_TEXT, IN(followed, event.name)},
    {NULL, "bound", COLUMN_YES, IN(followed, event.bound), .mask = MEMCLIENT_EVENT_NAME, OF(followed, event.kind)},
    {NULL, "pool", COLUMN_TEXT, IN(followed, event.pool)},
    {NULL, "level", COLUMN_NUMBER, IN(followed, event.level), .mask = MEMCLIENT_EVENT_PRESSURE,
     OF(followed, event.kind)},
    {NULL, "end", COLUMN_TEXT, IN(followed, event.end), .number = history_end_json},
    {NULL, "exit_status", COLUMN_NUMBER, .make = followed_status_json},
    {NULL, "signal", COLUMN_NUMBER, .make = followed_signal_json},
    COLUMNS_END,
};

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static const char *row_text(const json_t *row, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(row, key));

    return value ? text_clean(value, text, size) : "-";
}

/* "uid 1000 ", where there is one. */
static void row_print_number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);

    if (json_is_integer(value))
        printf("%s %" JSON_INTEGER_FORMAT " ", key, json_integer_value(value));
}

/* A line for each, since nobody knows how wide the next one will be. `of` are the keys of numbers, up to a NULL. */
static void row_print(const json_t *row, const char *const *of)
{
    time_t seconds = (time_t)(json_integer_value(json_object_get(row, "at_ms")) / 1000);
    char when[32] = "", text[TEXT_MAX];
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        (void)strftime(when, sizeof(when), "%H:%M:%S", &tm);
    printf("%s  %-9s ", when, row_text(row, "kind", text, sizeof(text)));
    while (*of)
        row_print_number(row, *of++);
    if (json_object_get(row, "program"))
        printf("(%s) ×%" JSON_INTEGER_FORMAT " ", row_text(row, "program", text, sizeof(text)),
               json_integer_value(json_object_get(row, "count")));
    printf(" %s\n", row_text(row, "detail", text, sizeof(text)));
}

/* An object a line, for programs that read on. */
static void row_print_json(const json_t *row)
{
    (void)json_dumpf(row, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
}

static void follow_print(const struct follow *follow, const struct output *output, const char *const *of)
{
    size_t index;
    json_t *row;

    json_array_foreach(output->rows, index, row) {
        if (follow->invocation->json)
            row_print_json(row);
        else
            row_print(row, of);
    }
    json_decref(output->rows);
}

static int follow_list_history(struct follow *follow)
{
    static const char *const of[] = {"uid", "pid", NULL};
    int r;

    output_init(&follow->query->output, follow->invocation->json, history_columns);
    r = history_query_run(follow->query, follow->ctx);
    follow_print(follow, &follow->query->output, of);
    return r;
}

static bool is_wanted(const struct follow *follow, const struct memclient_event *event)
{
    unsigned by = line.share.flags;

    if (event->kind == MEMCLIENT_EVENT_LOST)
        return follow->events && !follow->lost;
    if (!(follow->events & event->kind))
        return false;
    if (by & (MEMCLIENT_TOKEN_ONLY_UID | MEMCLIENT_TOKEN_ONLY_PID) && !(event->kind & FOLLOW_OF_SESSIONS))
        return false;
    if (by & MEMCLIENT_TOKEN_ONLY_UID && event->uid != line.share.uid)
        return false;
    return !(by & MEMCLIENT_TOKEN_ONLY_PID) || event->pid == line.share.pid;
}

static int follow_show(struct follow *follow, const struct memclient_event *event)
{
    static const char *const of[] = {"buffer", "uid", "pid", "session", NULL};
    struct followed followed = {.event = *event, .at_ms = clock_wall_ms()};
    struct output output;
    int r;

    if (!is_wanted(follow, event))
        return 0;
    follow->lost = event->kind == MEMCLIENT_EVENT_LOST;
    output_init(&output, follow->invocation->json, followed_columns);
    r = output_item(&output, &followed);
    follow_print(follow, &output, of);
    return r;
}

/* ---- one buffer -------------------------------------------------------------------------------------------------- */

/*
 * In place of the one before, which may have ended. Also if it is the same: another broker has dropped what was asked
 * of the last one. That it ends is always wanted, and of a death whether it is of one who held it.
 */
static int follow_buffer(struct follow *follow, uint64_t id)
{
    unsigned mask = follow->events | MEMCLIENT_EVENT_DESTROYED;
    int r;

    if (follow->buffer && follow->buffer != id) {
        (void)memclient_event_subscribe_buffer(follow->ctx, follow->buffer, 0);
        follow->buffer = 0;
    }
    if (mask & MEMCLIENT_EVENT_DEATH)
        mask |= MEMCLIENT_EVENT_DIED;
    r = memclient_event_subscribe_buffer(follow->ctx, id, mask);
    if (!r)
        follow->buffer = id;
    return r;
}

static bool follow_has_died(const struct follow *follow, uint64_t session)
{
    for (unsigned i = 0; i < follow->n_died && i < FOLLOW_DIED_MAX; i++)
        if (follow->died[i] == session)
            return true;
    return false;
}

/* The name has been bound: its buffer is the one from now on, if one may see that. */
static void follow_bound(struct follow *follow, uint64_t id)
{
    if (follow_buffer(follow, id))
        say("events: of buffer %" PRIu64 " only names are shown: %s", id, memclient_error());
}

/* What an id means. -ESTALE: it meant something to a broker whose memory has been lost. */
static int follow_check_broker(struct follow *follow)
{
    struct memclient_broker_info info = MEMCLIENT_BROKER_INFO_INIT;
    int r = memclient_broker_query(follow->ctx, &info);

    if (r)
        return r;
    if (follow->broker && follow->broker != info.broker_id)
        return -ESTALE;
    follow->broker = info.broker_id;
    return 0;
}

/* What it is, at first and after something may have been missed. */
static int follow_find(struct follow *follow)
{
    uint64_t id = 0;
    int r = line.reference.kind == REFERENCE_ID ? follow_check_broker(follow) : 0;

    if (!r)
        r = line_find_buffer(follow->ctx, &id);
    return r || !id ? r : follow_buffer(follow, id);
}

static bool follow_is_gone(int r)
{
    return r == -ESTALE || (r == -ENOENT && !is_without_broker(r));
}

/* An event of the buffer or name. */
static int follow_one(struct follow *follow, const struct memclient_event *event)
{
    bool is_name = line.reference.kind == REFERENCE_NAME;
    struct memclient_event destroyed = MEMCLIENT_EVENT_INIT;
    int r;

    if (event->kind == MEMCLIENT_EVENT_DEATH && !follow_has_died(follow, event->session))
        return 0;
    if (event->kind == MEMCLIENT_EVENT_DIED)
        follow->died[follow->n_died++ % FOLLOW_DIED_MAX] = event->session;
    r = follow_show(follow, event);
    if (!r && event->kind == MEMCLIENT_EVENT_LOST)
        r = output_flush(); /* what follows may wait for a broker */
    if (event->kind == MEMCLIENT_EVENT_NAME && event->bound && is_name)
        follow_bound(follow, event->buffer);
    if (event->kind == MEMCLIENT_EVENT_LOST && follow_is_gone(follow_find(follow)) && !is_name) {
        destroyed.kind = MEMCLIENT_EVENT_DESTROYED;
        destroyed.buffer = follow->buffer;
        event = &destroyed;
        r = follow_show(follow, event);
    }
    follow->ended = event->kind == MEMCLIENT_EVENT_DESTROYED && !is_name;
    return r;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* Before anything is listed, so that nothing is missed. */
static int follow_subscribe(struct follow *follow)
{
    bool polls = !follow->events; /* a broker without events has a history all the same */
    int r;

    if (line.given) {
        r = line.reference.kind == REFERENCE_NAME
                ? memclient_event_subscribe_name(follow->ctx, line.reference.name, MEMCLIENT_EVENT_NAME)
                : 0;
        if (!r)
            r = follow_find(follow);
        if (!r && !follow->buffer)
            say("events: none of the names that you may see is `%s' now; waiting until it is bound", line.given);
    } else {
        r = memclient_event_subscribe(follow->ctx, follow->events | (follow->history ? MEMCLIENT_EVENT_HISTORY : 0));
    }
    if (!r)
        r = memclient_event_fd(follow->ctx, &follow->fd);
    if (r)
        follow->fd = -1;
    return polls ? 0 : r;
}

/* Waits for an event; without a descriptor, until the history may have something new. */
static int follow_wait(const struct follow *follow, struct memclient_event *event)
{
    struct pollfd wait = {.fd = follow->fd, .events = POLLIN};

    if (follow->fd < 0) {
        (void)poll(NULL, 0, FOLLOW_MS);
        event->kind = MEMCLIENT_EVENT_HISTORY;
        return 0;
    }
    while (memclient_event_next(follow->ctx, event) < 0)
        if (poll(&wait, 1, -1) < 0)
            return -errno;
    return 0;
}

static int follow_next(struct follow *follow)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    int r = follow_wait(follow, &event);

    if (r)
        return r;
    r = line.given ? follow_one(follow, &event) : follow_show(follow, &event);
    if (!r && follow->history && event.kind & (MEMCLIENT_EVENT_HISTORY | MEMCLIENT_EVENT_LOST))
        r = follow_list_history(follow);
    return r;
}

int follow_run(struct history_query *query, const struct invocation *invocation, struct memclient_context *ctx)
{
    struct follow follow = {.invocation = invocation, .ctx = ctx, .query = query};
    int r;

    follow_choose(&follow);
    r = follow_subscribe(&follow);
    if (!r && follow.history)
        r = follow_list_history(&follow);
    if (!r)
        r = output_flush();
    while (!r && !follow.ended) {
        r = follow_next(&follow);
        if (!r)
            r = output_flush();
    }
    return r;
}
