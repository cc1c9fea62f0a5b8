/* SPDX-License-Identifier: Apache-2.0 */
/* Listings, the broker's status, and events. */
#include <errno.h>

#include "api/check.h"
#include "core/context.h"

/* ---- listings ---------------------------------------------------------------------------------------------------- */

static int list_pages(struct memclient_context *ctx, struct rpc_listing *listing)
{
    int r = check_context(&ctx);

    if (r)
        return r;
    do
        r = rpc_list(context_route(ctx), listing);
    while (!r && !listing->stopped && listing->cursor);
    return r ? r : listing->stopped;
}

/* The caller's function takes a pointer to its own type of item. A small struct carries it through the untyped one. */
#define LISTING_FROM(name, KIND, type, CURSOR, ...)                                                                 \
    struct name##_caller {                                                                                          \
        int (*fn)(const struct type *, void *);                                                                     \
        void *data;                                                                                                 \
    };                                                                                                              \
    static int name##_item(const void *item, void *data)                                                            \
    {                                                                                                               \
        const struct name##_caller *caller = data;                                                                  \
                                                                                                                    \
        return caller->fn(item, caller->data);                                                                      \
    }                                                                                                               \
    int memclient_list_##name(struct memclient_context *ctx, ##__VA_ARGS__, int (*fn)(const struct type *, void *), \
                              void *data)                                                                           \
    {                                                                                                               \
        struct name##_caller caller = {fn, data};                                                                   \
        struct rpc_listing listing = {.kind = KIND, .cursor = CURSOR, .fn = name##_item, .data = &caller};          \
                                                                                                                    \
        return fn ? list_pages(ctx, &listing) : fail_with(EINVAL, "fn is NULL");                                    \
    }
#define LISTING(name, KIND, type) LISTING_FROM(name, KIND, type, 0)

LISTING(nodes, LIST_NODES, memclient_node_info)
LISTING(pools, LIST_POOLS, memclient_pool_info)
LISTING(buffers, LIST_BUFFERS, memclient_buffer_info)
LISTING(sessions, LIST_SESSIONS, memclient_session_info)
LISTING(reservations, LIST_RESERVATIONS, memclient_reservation_info)
LISTING(names, LIST_NAMES, memclient_name_info)
LISTING(tokens, LIST_TOKENS, memclient_token_info)
LISTING(limits, LIST_LIMITS, memclient_limit_info)

struct limits_of_caller {
    struct limits_caller caller;
    uid_t uid;
};

/* An older broker tells of every user. */
static int limits_of_item(const void *item, void *data)
{
    struct limits_of_caller *of = data;

    return ((const struct memclient_limit_info *)item)->uid == of->uid ? limits_item(item, &of->caller) : 0;
}

int memclient_list_limits_of(struct memclient_context *ctx, uid_t uid,
                             int (*fn)(const struct memclient_limit_info *limit, void *data), void *data)
{
    struct limits_of_caller of = {{fn, data}, uid};
    struct rpc_listing listing = {
        .kind = LIST_LIMITS,
        .of_user = true,
        .uid = uid,
        .fn = limits_of_item,
        .data = &of,
    };

    return fn ? list_pages(ctx, &listing) : fail_with(EINVAL, "fn is NULL");
}

/* a cursor is one more than the first serial wanted (HistoryReply) */
LISTING_FROM(history, LIST_HISTORY, memclient_history_entry, after ? after + 2 : 0, uint64_t after)

/* ---- a selection ------------------------------------------------------------------------------------------------- */

static int check_selection(const struct memclient_select_options *options, const void *fn)
{
    const unsigned flags = MEMCLIENT_SELECT_UID | MEMCLIENT_SELECT_DETACHED;

    if (options->order > MEMCLIENT_ORDER_NEWEST)
        return fail_with(EINVAL, "options: no order has the number %u", options->order);
    if (options->flags & ~flags)
        return fail_with(EINVAL, "options: flags 0x%x have bits without a meaning", options->flags);
    if (options->pid < 0)
        return fail_with(EINVAL, "options: no process has the number %d", (int)options->pid);
    return options->most && !fn ? fail_with(EINVAL, "fn is NULL, and %u rows are wanted", options->most) : 0;
}

int memclient_select_buffers(struct memclient_context *ctx, const struct memclient_select_options *options,
                             struct memclient_buffer_sums *sums,
                             int (*fn)(const struct memclient_buffer_info *info, void *data), void *data)
{
    struct rpc_selection selection = {.fn = fn, .data = data};
    int r;

    r = check_options(&selection.options, sizeof(selection.options), options, "options");
    if (!r && sums)
        r = check_output(sums, "sums");
    if (!r)
        r = check_selection(&selection.options, (const void *)(uintptr_t)fn);
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    do
        r = rpc_select(context_route(ctx), &selection);
    while (!r && !selection.stopped && selection.after);
    if (r)
        return r;
    if (sums)
        (void)write_output(sums, &selection.sums, sizeof(selection.sums));
    return selection.stopped;
}

/* ---- status ------------------------------------------------------------------------------------------------------ */

/* A request to the broker whose reply is one struct. */
#define QUESTION(name, rpc, type, output)                                           \
    int memclient_broker_##name(struct memclient_context *ctx, struct type *output) \
    {                                                                               \
        struct type filled;                                                         \
        int r = check_output(output, #output);                                      \
                                                                                    \
        if (!r)                                                                     \
            r = check_context(&ctx);                                                \
        if (!r)                                                                     \
            r = rpc(context_route(ctx), &filled);                                   \
        return r ? r : write_output(output, &filled, sizeof(filled));               \
    }

QUESTION(query, rpc_status, memclient_broker_info, info)
QUESTION(check, rpc_check, memclient_check_result, result)
QUESTION(reload, rpc_reload, memclient_reload_result, result)

int memclient_broker_upgrade(struct memclient_context *ctx)
{
    int r = check_context(&ctx);

    return r ? r : rpc_upgrade(context_route(ctx));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

#define EVENTS_ALL (2 * MEMCLIENT_EVENT_HISTORY - 1u)
#define EVENTS_OF_BUFFER                                                                                   \
    (EVENTS_ALL & ~(unsigned)(MEMCLIENT_EVENT_PRESSURE | MEMCLIENT_EVENT_SHUTDOWN | MEMCLIENT_EVENT_LOST | \
                              MEMCLIENT_EVENT_HISTORY))

static int check_events(unsigned mask, unsigned allowed)
{
    return mask & ~allowed ? fail_with(EINVAL, "mask: 0x%x has bits that are no event of this", mask) : 0;
}

int memclient_event_subscribe(struct memclient_context *ctx, unsigned mask)
{
    int r = check_context(&ctx);

    if (!r)
        r = check_events(mask, EVENTS_ALL);
    return r ? r : event_subscribe(ctx, mask);
}

int memclient_event_subscribe_buffer(struct memclient_context *ctx, uint64_t id, unsigned mask)
{
    int r = check_context(&ctx);

    if (!r)
        r = check_events(mask, EVENTS_OF_BUFFER);
    return r ? r : event_subscribe_to(ctx, id, NULL, mask);
}

int memclient_event_subscribe_name(struct memclient_context *ctx, const char *name, unsigned mask)
{
    int r = check_name(name);

    if (!r)
        r = check_context(&ctx);
    if (!r)
        r = check_events(mask, MEMCLIENT_EVENT_NAME);
    return r ? r : event_subscribe_to(ctx, 0, name, mask);
}

int memclient_event_fd(struct memclient_context *ctx, int *fd)
{
    int r = check_pointer(fd, "fd");

    if (!r)
        r = check_context(&ctx);
    return r ? r : event_descriptor(ctx, fd);
}

int memclient_event_next(struct memclient_context *ctx, struct memclient_event *event)
{
    struct memclient_event next;
    int r;

    r = check_output(event, "event");
    if (!r)
        r = check_context(&ctx);
    if (!r)
        r = event_next(ctx, &next);
    return r ? r : write_output(event, &next, sizeof(next));
}
