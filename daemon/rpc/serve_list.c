/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Listings. The broker offers one row after the other. Each is copied with its message into the scratch arena, and its
 * size on the wire is counted, until the packet or the arena is full or the client has as many as it asked for. The row
 * that did not fit is the first of the next packet.
 *
 * Strings and arrays of a message lie in the copy of its row.
 */

#include <stdio.h>
#include <string.h>

#include "rpc/request.h"

/* A row's tag and length, and the reply's own fields. */
#define ROW_OVERHEAD   4
#define REPLY_OVERHEAD 64

/* ---- rows and their messages ------------------------------------------------------------------------------------- */

#define PACK(form, ...)                  PACK_##form(__VA_ARGS__)
#define PACK_NUMBER(name, type)          message->name = info->name;
#define PACK_RENAMED(name, type, public) message->name = info->name;
#define PACK_TEXT(name, size)            message->name = info->name;
#define PACK_COUNT(name)                 /* each array of a message has its own */
#define PACK_NUMBERS(name, type, max, count) \
    message->n_##name = info->count;         \
    message->name = info->name;

/* pack_node() and so on: the message points into the row, which stays until the message is packed. */
#define X(NAME, name, row, Row, Reply)           \
    static void pack_##row(void *to, void *from) \
    {                                            \
        Memoryd__V1__##Row *message = to;        \
        struct row##_info *info = from;          \
                                                 \
        MEMORYD_ROW_##row(PACK)                  \
    }
MEMORYD_LISTINGS(X)
#undef X

static const struct row_form {
    size_t size;
    void (*pack)(void *message, void *row);
} row_forms[] = {
#define X(NAME, name, row, Row, Reply) [LIST_##NAME] = {sizeof(struct row##_info), pack_##row},
    MEMORYD_LISTINGS(X)
#undef X
};

/* ---- one row ----------------------------------------------------------------------------------------------------- */

int serve_info(struct request *request, const Memoryd__V1__InfoRequest *m)
{
    return op_info(&request->op, m->buffer, &request->result.BufferInfo);
}

void answer_BufferInfo(struct request *request)
{
    Memoryd__V1__BufferInfo reply = MEMORYD__V1__BUFFER_INFO__INIT;

    pack_buffer(&reply, &request->result.BufferInfo);
    reply_message(&request->call, &reply.base);
}

/* ---- a page ------------------------------------------------------------------------------------------------------ */

/* The listing of a request has a name for each reply, and is the same member. */
static struct listing *listing_of(struct request *request)
{
    return &request->result.NodesReply;
}

static bool list_add(void *userdata, const union list_row *row)
{
    struct request *request = userdata;
    struct listing *list = listing_of(request);
    struct arena *scratch = &request->call.rpc->scratch;
    const struct row_form *form = &row_forms[list->kind];
    ProtobufCMessage *message;
    size_t size;
    void *copy;

    if (*list->page.n_rows == list->most)
        return false;
    message = arena_alloc(scratch, list->page.row->sizeof_message);
    copy = arena_alloc(scratch, form->size);
    if (!message || !copy)
        return false;
    memcpy(copy, row, form->size);
    protobuf_c_message_init(list->page.row, message);
    form->pack(message, copy);
    size = protobuf_c_message_get_packed_size(message) + ROW_OVERHEAD;
    if (list->used + size > MEMORYD_PAYLOAD_MAX - REPLY_OVERHEAD)
        return false;
    list->used += size;
    list->rows[(*list->page.n_rows)++] = message;
    return true;
}

static bool is_simulated(struct request *request)
{
    struct status_info status = {0};
    struct op op = {.broker = request->op.broker, .session = request->op.session};

    return op_status(&op, &status) == 0 && status.simulated;
}

/* What was chosen, in its order. */
static void list_add_selected(struct request *request)
{
    struct listing *list = listing_of(request);
    const struct select_result *selected = list->selected;
    const struct select_sums *sums = &selected->sums;
    Memoryd__V1__BufferSums *message = &list->sums;
    union list_row row;
    uint64_t last = 0; /* of those that have not ended meanwhile */
    bool full = false;

    arena_reset(&request->call.rpc->scratch);
    list->most = LISTING_ROWS;
    for (uint32_t i = 0; i < selected->n && !full; i++) {
        if (!op_selected(&request->op, selected->ids[i], list->holder, &row.buffer))
            continue;
        full = !list_add(request, &row);
        if (!full)
            last = selected->ids[i];
    }
    if (full || selected->more)
        *list->page.next = last;
    memoryd__v1__buffer_sums__init(message);
    message->buffers = sums->buffers;
    message->bytes = sums->bytes;
    message->huge_bytes = sums->huge_bytes;
    message->detached = sums->detached;
    message->detached_bytes = sums->detached_bytes;
    message->holds = sums->holds;
    list->reply.buffers.sums = message;
}

static void answer_list(struct request *request)
{
    struct listing *list = listing_of(request);

    if (list->selected)
        list_add_selected(request);
    *list->page.rows = list->rows;
    if (list->page.simulated)
        *list->page.simulated = is_simulated(request);
    reply_message(&request->call, &list->reply.base);
}

static struct listing *list_begin(struct request *request, enum list_kind kind)
{
    struct listing *list = listing_of(request);

    list->kind = kind;
    protobuf_c_message_init(schema_method(request->call.method)->reply, &list->reply);
    schema_page(&list->reply.base, &list->page);
    return list;
}

static int serve_list(struct request *request, enum list_kind kind, const Memoryd__V1__ListRequest *m)
{
    struct listing *list = list_begin(request, kind);
    struct list_args args = {
        .cursor = m->cursor,
        .buffer = m->buffer,
        .of_user = m->of_user,
        .uid = m->uid,
        .userdata = request,
    };

    arena_reset(&request->call.rpc->scratch);
    list->most = m->most && m->most < LISTING_ROWS ? m->most : LISTING_ROWS;
    return op_list(&request->op, kind, &args, list->page.next, list_add);
}

#define X(NAME, name, row, Row, Reply)                                                \
    int serve_list_##name(struct request *request, const Memoryd__V1__ListRequest *m) \
    {                                                                                 \
        return serve_list(request, LIST_##NAME, m);                                   \
    }                                                                                 \
                                                                                      \
    void answer_##Reply(struct request *request)                                      \
    {                                                                                 \
        answer_list(request);                                                         \
    }
MEMORYD_LISTINGS(X)
#undef X

int serve_select_buffers(struct request *request, const Memoryd__V1__SelectRequest *m)
{
    struct listing *list = list_begin(request, LIST_BUFFERS);
    struct select_args args = {
        .order = (enum select_order)m->order,
        .most = m->most,
        .only_uid = m->flags & MEMORYD__V1__SELECT_REQUEST__FLAG__ONLY_UID,
        .only_detached = m->flags & MEMORYD__V1__SELECT_REQUEST__FLAG__ONLY_DETACHED,
        .uid = m->uid,
        .pid = m->pid,
        .session = m->session,
        .after = m->after,
        .after_number = m->after_number,
    };

    (void)snprintf(args.pool, sizeof(args.pool), "%s", m->pool);
    list->selected = &request->args.selected;
    list->holder = m->session;
    return op_select_buffers(&request->op, &args, list->selected);
}
