/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs: status, check and the listings.
 *
 * A page of a listing can be as large as a packet, and its items go to the caller's function, which may call the
 * library again. So the bytes of the reply are copied out, and decoded here after the connection has gone back to work.
 */
#include "rpc/stubs.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/envelope.h"
#include "proto/rows.h"
#include "proto/schema.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/fail.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

union item {
    struct memclient_node_info node;
    struct memclient_pool_info pool;
    struct memclient_buffer_info buffer;
    struct memclient_session_info session;
    struct memclient_reservation_info reservation;
    struct memclient_name_info name;
    struct memclient_token_info token;
    struct memclient_history_entry history_entry;
    struct memclient_limit_info limit;
};

/* The items borrow strings and arrays from the message. */
#define BORROW(form, ...)                  BORROW_##form(__VA_ARGS__)
#define BORROW_NUMBER(name, type)          item->name = (type)m->name;
#define BORROW_RENAMED(name, type, public) item->public = (type)m->name;
#define BORROW_TEXT(name, size)            item->name = m->name;
#define BORROW_COUNT(name)                 /* set with the array */
#define BORROW_NUMBERS(name, type, max, count) \
    item->count = m->n_##name;                 \
    item->name = m->name;

#define DECODE(row, Row)                                          \
    static void decode_##row(const void *message, union item *to) \
    {                                                             \
        const Memoryd__V1__##Row *m = message;                    \
        __typeof__(to->row) *item = &to->row;                     \
                                                                  \
        *item = (__typeof__(to->row)){.size = sizeof(*item)};     \
        MEMORYD_ROW_##row(BORROW)                                 \
    }
DECODE(node, NodeInfo)
DECODE(pool, PoolInfo)
DECODE(session, SessionInfo)
DECODE(reservation, ReservationInfo)
DECODE(name, NameInfo)
DECODE(token, TokenInfo)
DECODE(history_entry, HistoryEntry)
DECODE(limit, LimitInfo)

/* The struct of a buffer, which programs keep, has room for its own. */
#define KEEP(form, ...)                  KEEP_##form(__VA_ARGS__)
#define KEEP_NUMBER(name, type)          item->name = (type)m->name;
#define KEEP_RENAMED(name, type, public) item->public = (type)m->name;
#define KEEP_TEXT(name, size)            copy_text(item->name, sizeof(item->name), m->name);
#define KEEP_COUNT(name)                 /* the least of the arrays', below */
#define KEEP_NUMBERS(name, type, max, count)              \
    for (size_t i = 0; i < m->n_##name && i < (max); i++) \
        item->name[i] = m->name[i];

static uint32_t listing_least(size_t a, size_t b, size_t most)
{
    size_t n = a < b ? a : b;

    return (uint32_t)(n < most ? n : most);
}

void convert_buffer_info(const Memoryd__V1__BufferInfo *m, struct memclient_buffer_info *item)
{
    *item = (struct memclient_buffer_info){.size = sizeof(*item)};
    MEMORYD_ROW_buffer(KEEP) item->n_nodes = listing_least(m->n_nodes, m->n_node_bytes, MEMORYD_NODES_MAX);
    /* an older broker does not send the other arrays, which are zero then */
    item->n_holders = listing_least(m->n_holders, m->n_holder_rights, MEMORYD_HOLDERS_MAX);
}

static void decode_buffer(const void *message, union item *to)
{
    convert_buffer_info(message, &to->buffer);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static const struct {
    enum method method;
    void (*decode)(const void *message, union item *to);
} listings[] = {
#define X(NAME, name, row, Row, Reply) [LIST_##NAME] = {METHOD_LIST_##NAME, decode_##row},
    MEMORYD_LISTINGS(X)
#undef X
};

/* What a page needs: the bytes of the reply, and the memory in which they are decoded. */
struct page {
    struct arena arena;
    uint8_t bytes[MEMORYD_PAYLOAD_MAX];
};

static struct page *page_new(void)
{
    struct page *page = malloc(sizeof(*page));

    if (page && !arena_init(&page->arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES))
        return page;
    free(page);
    return NULL;
}

static void page_free(struct page *page)
{
    arena_deinit(&page->arena);
    free(page);
}

DEFINE_CLEANUP(struct page *, page_free);

/* The reply lies in the page. */
static int page_ask(struct page *page, struct rpc_route route, enum method method, const ProtobufCMessage *message,
                    ProtobufCMessage **ret)
{
    struct channel_raw raw = {.bytes = page ? page->bytes : NULL};
    struct channel_request request = {.method = method, .message = message, .raw = &raw};
    int r;

    if (!page)
        return fail_with(ENOMEM, "no memory for a listing");
    r = call_request(route, &request);
    if (r)
        return r;
    if (envelope_unpack(schema_method((uint16_t)method)->reply, raw.bytes, raw.n, &page->arena, ret))
        return fail_with(EPROTO, "the broker's listing makes no sense");
    return 0;
}

int rpc_list(struct rpc_route route, struct rpc_listing *listing)
{
    _cleanup_(page_freep) struct page *page = page_new();
    struct schema_page rows;
    ProtobufCMessage *reply;
    int r;

    r = page_ask(page, route, listings[listing->kind].method,
                 REQUEST(List, list, .cursor = listing->cursor, .of_user = listing->of_user, .uid = listing->uid),
                 &reply);
    if (r)
        return r;
    schema_page(reply, &rows);
    listing->cursor = *rows.next;
    for (size_t i = 0; i < *rows.n_rows && !listing->stopped; i++) {
        union item item;

        listings[listing->kind].decode((*rows.rows)[i], &item);
        if (listing->kind == LIST_NODES)
            item.node.simulated = *rows.simulated;
        if (listing->kind == LIST_POOLS)
            item.pool.simulated = *rows.simulated;
        listing->stopped = listing->fn(&item, listing->data);
    }
    return 0;
}

/* ---- a selection ------------------------------------------------------------------------------------------------- */

/* By what a buffer is ordered. */
static uint64_t select_number(unsigned order, const struct memclient_buffer_info *info)
{
    switch ((enum memclient_buffer_order)order) {
    case MEMCLIENT_ORDER_BYTES:
        return info->bytes;
    case MEMCLIENT_ORDER_HOLDS:
        return info->holds;
    case MEMCLIENT_ORDER_OLDEST:
    case MEMCLIENT_ORDER_NEWEST:
        return info->created_ms;
    }
    return 0;
}

static void select_read_sums(const Memoryd__V1__BufferSums *m, struct memclient_buffer_sums *sums)
{
    *sums = (struct memclient_buffer_sums){.size = sizeof(*sums)};
    if (!m)
        return;
    sums->buffers = m->buffers;
    sums->bytes = m->bytes;
    sums->huge_bytes = m->huge_bytes;
    sums->detached = m->detached;
    sums->detached_bytes = m->detached_bytes;
    sums->holds = m->holds;
}

int rpc_select(struct rpc_route route, struct rpc_selection *selection)
{
    _cleanup_(page_freep) struct page *page = page_new();
    const struct memclient_select_options *options = &selection->options;
    const uint32_t left = options->most - selection->n;
    Memoryd__V1__SelectRequest request = MEMORYD__V1__SELECT_REQUEST__INIT;
    const Memoryd__V1__BuffersReply *m;
    ProtobufCMessage *reply;
    int r;

    request.order = (Memoryd__V1__SelectRequest__Order)options->order;
    request.most = left < MEMORYD_SELECT_MAX ? left : MEMORYD_SELECT_MAX;
    request.flags = options->flags;
    request.uid = options->flags & MEMCLIENT_SELECT_UID ? options->uid : 0;
    request.pid = (uint32_t)options->pid;
    request.session = options->session;
    if (options->pool)
        request.pool = (char *)(uintptr_t)options->pool;
    request.after = selection->after;
    request.after_number = selection->after_number;
    r = page_ask(page, route, METHOD_SELECT_BUFFERS, &request.base, &reply);
    if (r)
        return r;
    m = (const Memoryd__V1__BuffersReply *)reply;
    if (!selection->n)
        select_read_sums(m->sums, &selection->sums);
    for (size_t i = 0; i < m->n_buffers && selection->n < options->most && !selection->stopped; i++) {
        struct memclient_buffer_info info;

        convert_buffer_info(m->buffers[i], &info);
        selection->after_number = select_number(options->order, &info);
        selection->n++;
        selection->stopped = selection->fn(&info, selection->data);
    }
    selection->after = m->n_buffers && selection->n < options->most ? m->next : 0;
    return 0;
}

/* ---- status and check -------------------------------------------------------------------------------------------- */

static int decode_status(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__StatusReply *m = (const Memoryd__V1__StatusReply *)reply;
    struct memclient_broker_info *status = result;

    *status = (struct memclient_broker_info){
        .size = sizeof(*status),
        .broker_id = m->broker,
        .broker_pid = (int32_t)m->broker_pid,
        .broker_uid = m->broker_uid,
        .simulated = m->simulated,
        .uptime_ms = m->uptime_ms,
        .sessions = m->sessions,
        .buffers = m->buffers,
        .buffers_detached = m->buffers_detached,
        .buffers_ending = m->buffers_ending,
        .bytes = m->bytes,
        .names = m->names,
        .tokens = m->tokens,
        .reservations = m->reservations,
        .fds = m->fds,
        .fds_limit = m->fds_limit,
        .requests = m->requests,
        .refused = m->refused,
        .arena_base = m->arena_base,
        .arena_size = m->arena_size,
        .keeper_pid = (int32_t)m->keeper_pid,
        .restarts = m->restarts,
        .quarantined = m->quarantined,
        .config_stale = m->config_stale,
        .pools = m->pools,
        .capacity = m->capacity,
        .used = m->used,
    };
    COPY_TEXT(status->version, m->version);
    COPY_TEXT(status->config, m->config);
    return 0;
}

int rpc_status(struct rpc_route route, struct memclient_broker_info *status)
{
    return call_reply(route, METHOD_STATUS, REQUEST(Status, status), decode_status, status);
}

static int decode_check(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__CheckReply *m = (const Memoryd__V1__CheckReply *)reply;
    struct memclient_check_result *check = result;

    *check = (struct memclient_check_result){
        .size = sizeof(*check),
        .buffers = m->buffers,
        .records = m->records,
        .faults = m->faults,
    };
    for (size_t i = 0; i < m->n_sentences && i < MEMORYD_CHECK_SENTENCES_MAX; i++)
        COPY_TEXT(check->sentences[check->n_sentences++], m->sentences[i]);
    return 0;
}

int rpc_check(struct rpc_route route, struct memclient_check_result *result)
{
    return call_reply(route, METHOD_CHECK, REQUEST(Check, check), decode_check, result);
}

int rpc_upgrade(struct rpc_route route)
{
    return call_done(route, METHOD_UPGRADE, REQUEST(Upgrade, upgrade));
}

static void decode_lines(struct memclient_reload_result *result, unsigned what, size_t n, char **lines)
{
    const size_t most = sizeof(result->lines) / sizeof(result->lines[0]);

    for (size_t i = 0; i < n && result->n_lines < most; i++) {
        struct memclient_reload_line *line = &result->lines[result->n_lines++];

        line->what = what;
        COPY_TEXT(line->text, lines[i]);
    }
}

static int decode_reload(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ReloadReply *m = (const Memoryd__V1__ReloadReply *)reply;
    struct memclient_reload_result *reload = result;

    *reload = (struct memclient_reload_result){.size = sizeof(*reload)};
    COPY_TEXT(reload->config, m->config);
    decode_lines(reload, MEMCLIENT_RELOAD_MISTAKE, m->n_mistakes, m->mistakes);
    decode_lines(reload, MEMCLIENT_RELOAD_APPLIED, m->n_applied, m->applied);
    decode_lines(reload, MEMCLIENT_RELOAD_RESTART, m->n_restart, m->restart);
    return 0;
}

int rpc_reload(struct rpc_route route, struct memclient_reload_result *result)
{
    return call_reply(route, METHOD_RELOAD, REQUEST(Reload, reload), decode_reload, result);
}
