/* SPDX-License-Identifier: Apache-2.0 */
/* Listings, the broker's status, and events. */
#include "api/check.h"
#include "core/context.h"

/* ---- listings ---------------------------------------------------------------------------------------------------- */

static int list_pages(struct memclient *ctx, struct rpc_listing *listing)
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
#define LISTING(name, KIND, type)                                                                            \
    struct name##_caller {                                                                                   \
        int (*fn)(const struct type *, void *);                                                              \
        void *data;                                                                                          \
    };                                                                                                       \
    static int name##_item(const void *item, void *data)                                                     \
    {                                                                                                        \
        const struct name##_caller *caller = data;                                                           \
                                                                                                             \
        return caller->fn(item, caller->data);                                                               \
    }                                                                                                        \
    int memclient_list_##name(struct memclient *ctx, int (*fn)(const struct type *, void *), void *data)     \
    {                                                                                                        \
        struct name##_caller caller = {fn, data};                                                            \
                                                                                                             \
        return fn ? list_pages(ctx, &(struct rpc_listing){.kind = KIND, .fn = name##_item, .data = &caller}) \
                  : fail_with(EINVAL, "fn is NULL");                                                         \
    }

LISTING(nodes, LIST_NODES, memclient_node)
LISTING(pools, LIST_POOLS, memclient_pool)
LISTING(buffers, LIST_BUFFERS, memclient_buffer_info)
LISTING(sessions, LIST_SESSIONS, memclient_session)
LISTING(reservations, LIST_RESERVATIONS, memclient_reservation_info)
LISTING(names, LIST_NAMES, memclient_name)
LISTING(tokens, LIST_TOKENS, memclient_token_info)

/* ---- status ------------------------------------------------------------------------------------------------------ */

/* A request to the broker whose reply is one struct. */
#define QUESTION(name, type, output)                                  \
    int memclient_##name(struct memclient *ctx, struct type *output)  \
    {                                                                 \
        struct type filled;                                           \
        int r = check_output(output, #output);                        \
                                                                      \
        if (!r)                                                       \
            r = check_context(&ctx);                                  \
        if (!r)                                                       \
            r = rpc_##name(context_route(ctx), &filled);              \
        return r ? r : write_output(output, &filled, sizeof(filled)); \
    }

QUESTION(status, memclient_broker_status, status)
QUESTION(check, memclient_check_result, result)
QUESTION(reload, memclient_reload_result, result)

int memclient_upgrade(struct memclient *ctx)
{
    int r = check_context(&ctx);

    return r ? r : rpc_upgrade(context_route(ctx));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

int memclient_subscribe(struct memclient *ctx, unsigned mask)
{
    const unsigned all = MEMCLIENT_EVENT_PRESSURE | MEMCLIENT_EVENT_DISCARDED | MEMCLIENT_EVENT_NAME |
                         MEMCLIENT_EVENT_SHUTDOWN | MEMCLIENT_EVENT_LOST;
    int r = check_context(&ctx);

    if (r)
        return r;
    if (mask & ~all)
        return fail_with(EINVAL, "mask: 0x%x has bits that are no event", mask);
    return event_subscribe(ctx, mask);
}

int memclient_event_fd(struct memclient *ctx, int *fd)
{
    int r = check_pointer(fd, "fd");

    if (!r)
        r = check_context(&ctx);
    return r ? r : event_descriptor(ctx, fd);
}

int memclient_next_event(struct memclient *ctx, struct memclient_event *event)
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
