/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Getting buffers, by whatever way, and giving them up: ALLOC, RELEASE, EXPORT, IMPORT, ADOPT, OPEN, LOOKUP.
 */

#include <string.h>

#include "rpc/reply.h"
#include "rpc/request.h"
#include "rpc/serve.h"

/* WRITE implies READ (memoryd.proto, enum Right). */
uint32_t complete_rights(uint32_t rights)
{
    return rights & MEMORYD__V1__RIGHT__RIGHT_WRITE ? rights | MEMORYD__V1__RIGHT__RIGHT_READ : rights;
}

/* ---------------------------------------------------------------------------------------------- reply: Buffers */

static void reply_opened(struct request *request, struct opened *opened, bool with_tokens)
{
    uint8_t tokens[MEMORYD_BATCH_MAX][MEMORYD_TOKEN_SIZE];
    uint32_t statuses[MEMORYD_BATCH_MAX], rights[MEMORYD_BATCH_MAX], flags[MEMORYD_BATCH_MAX];
    uint64_t ids[MEMORYD_BATCH_MAX], sizes[MEMORYD_BATCH_MAX], bytes[MEMORYD_BATCH_MAX];
    uint64_t granules[MEMORYD_BATCH_MAX], addresses[MEMORYD_BATCH_MAX];
    Memoryd__V1__Buffers reply = MEMORYD__V1__BUFFERS__INIT;
    static const struct opened_item nothing;

    for (uint32_t i = 0; i < opened->n; i++) {
        const struct opened_item *item = opened->items[i].status ? &nothing : &opened->items[i];

        statuses[i] = (uint32_t)opened->items[i].status;
        rights[i] = item->rights;
        flags[i] = item->flags;
        ids[i] = item->id;
        sizes[i] = item->size;
        bytes[i] = item->bytes;
        granules[i] = item->granule;
        addresses[i] = item->address;
        if (with_tokens)
            memcpy(tokens[i], item->token, sizeof(tokens[i]));
    }
    reply.n_statuses = reply.n_ids = reply.n_rights = reply.n_sizes = opened->n;
    reply.n_bytes = reply.n_granules = reply.n_addresses = reply.n_flags = opened->n;
    reply.statuses = statuses;
    reply.ids = ids;
    reply.rights = rights;
    reply.sizes = sizes;
    reply.bytes = bytes;
    reply.granules = granules;
    reply.addresses = addresses;
    reply.flags = flags;
    reply.sentence = reply_sentence(&request->call, &request->op.problem, opened->n, statuses);
    if (with_tokens) {
        reply.tokens.data = tokens[0];
        reply.tokens.len = opened->n * sizeof(tokens[0]);
    }
    request_reply(request, &reply.base, &opened->fds);
    explicit_bzero(tokens, reply.tokens.len);
}

/* ------------------------------------------------------------------------------------------------------- ALLOC */

struct alloc_request {
    struct request request;
    struct alloc_spec args;
    struct opened result;
};

static void answer_alloc(struct request *request)
{
    struct alloc_request *alloc = (struct alloc_request *)request;

    reply_opened(request, &alloc->result, alloc->args.flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS);
}

static void release_alloc(struct request *request)
{
    struct opened *result = &((struct alloc_request *)request)->result;

    for (uint32_t i = 0; i < result->n; i++)
        explicit_bzero(result->items[i].token, sizeof(result->items[i].token));
    fdset_deinit(&result->fds);
}

/* Out of use: the broker has none for anybody (PROTOCOL.md, section 14). */
static int answer_none_ahead(const struct call *call)
{
    Memoryd__V1__Buffers none = MEMORYD__V1__BUFFERS__INIT;

    reply_message(call, &none.base, NULL);
    return 0;
}

int serve_alloc(const struct call *call, const Memoryd__V1__AllocRequest *m)
{
    struct alloc_request *alloc;
    struct alloc_spec *args;

    if (m->flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__AHEAD)
        return answer_none_ahead(call);
    alloc = request_begin(call, sizeof(*alloc), answer_alloc, release_alloc);
    if (!alloc)
        return 0;
    args = &alloc->args;
    memcpy(args->pool, m->pool, strlen(m->pool) + 1);
    args->n_nodes = (uint32_t)m->n_nodes;
    args->n_weights = (uint32_t)m->n_weights;
    args->n = (uint32_t)m->n_sizes;
    for (size_t i = 0; i < m->n_nodes; i++)
        args->nodes[i] = m->nodes[i];
    for (size_t i = 0; i < m->n_weights; i++)
        args->weights[i] = m->weights[i];
    for (size_t i = 0; i < m->n_sizes; i++)
        args->sizes[i] = m->sizes[i];
    args->caller_node = m->caller_node;
    args->pages = m->pages;
    args->page_size = m->page_size;
    args->placement = m->placement;
    args->part_size = m->part_size;
    args->alignment = m->alignment;
    args->address = m->address;
    args->flags = m->flags;
    args->wait_ms = m->wait_ms;
    if (m->name)
        name_args_from(&args->name, m->name);
    return request_go(&alloc->request, op_alloc(&alloc->request.op, args, &alloc->result));
}

/* --------------------------------------------------------------------------------------------- RELEASE, EXPORT */

static void reply_statuses(struct request *request, struct statuses *result)
{
    uint32_t statuses[MEMORYD_BATCH_MAX];
    Memoryd__V1__Statuses reply = MEMORYD__V1__STATUSES__INIT;

    for (uint32_t i = 0; i < result->n; i++)
        statuses[i] = (uint32_t)result->status[i];
    reply.n_statuses = result->n;
    reply.statuses = statuses;
    reply.sentence = reply_sentence(&request->call, &request->op.problem, result->n, statuses);
    request_reply(request, &reply.base, &result->fds);
}

struct release_request {
    struct request request;
    struct ids args;
    struct statuses result;
};

static void answer_release(struct request *request)
{
    reply_statuses(request, &((struct release_request *)request)->result);
}

int serve_release(const struct call *call, const Memoryd__V1__ReleaseRequest *m)
{
    struct release_request *release = request_begin(call, sizeof(*release), answer_release, NULL);

    if (!release)
        return 0;
    release->args.n = (uint32_t)m->n_buffers;
    for (size_t i = 0; i < m->n_buffers; i++)
        release->args.id[i] = m->buffers[i];
    return request_go(&release->request, op_release(&release->request.op, &release->args, &release->result));
}

struct export_request {
    struct request request;
    struct export_args args;
    struct statuses result;
};

static void answer_export(struct request *request)
{
    reply_statuses(request, &((struct export_request *)request)->result);
}

static void release_export(struct request *request)
{
    fdset_deinit(&((struct export_request *)request)->result.fds);
}

int serve_export(const struct call *call, const Memoryd__V1__ExportRequest *m)
{
    struct export_request *export = request_begin(call, sizeof(*export), answer_export, release_export);

    if (!export)
        return 0;
    export->args.buffers.n = (uint32_t)m->n_buffers;
    for (size_t i = 0; i < m->n_buffers; i++) {
        export->args.buffers.id[i] = m->buffers[i];
        export->args.rights[i] = complete_rights(m->rights[i]);
    }
    return request_go(&export->request, op_export(&export->request.op, &export->args, &export->result));
}

/* --------------------------------------------------------------------------------- IMPORT, ADOPT, OPEN, LOOKUP */

struct import_request {
    struct request request;
    struct fdset args;
    struct opened result;
};

static void answer_import(struct request *request)
{
    reply_opened(request, &((struct import_request *)request)->result, false);
}

static void release_import(struct request *request)
{
    struct import_request *import = (struct import_request *)request;

    fdset_deinit(&import->args);
    fdset_deinit(&import->result.fds);
}

/* The descriptors stay with the packet unless the verb goes on without it: who handed them in knows how to close
 * what a client sent. */
int serve_import(const struct call *call, const Memoryd__V1__ImportRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct import_request *import;
    int r;

    if (!fdset_count(call->fds)) {
        problem_set(&problem, "no descriptor came with the packet; from 1 to %d are allowed", MEMORYD_FDS_MAX);
        return call_refuse(call, STATUS_INVALID_ARGUMENT, &problem);
    }
    import = request_begin(call, sizeof(*import), answer_import, release_import);
    if (!import)
        return 0;
    fdset_move(&import->args, call->fds);
    r = op_import(&import->request.op, &import->args, &import->result);
    /* those of a buffer are never its last ones, so they need no closer */
    for (uint32_t i = 0; !r && i < import->result.n; i++)
        if (!import->result.items[i].status)
            fd_close(fdset_steal(&import->args, i));
    if (r != OP_PENDING)
        fdset_move(call->fds, &import->args);
    return request_go(&import->request, r);
}

struct adopt_request {
    struct request request;
    struct opened result;
};

static void answer_adopt(struct request *request)
{
    reply_opened(request, &((struct adopt_request *)request)->result, false);
}

int serve_adopt(const struct call *call, const Memoryd__V1__AdoptRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct adopt_request *adopt;

    if (!fdset_count(call->fds)) {
        problem_set(&problem, "no descriptor came with the packet; one is needed");
        return call_refuse(call, STATUS_INVALID_ARGUMENT, &problem);
    }
    adopt = request_begin(call, sizeof(*adopt), answer_adopt, NULL);
    if (!adopt)
        return 0;
    return request_go(&adopt->request, op_adopt(&adopt->request.op, call->fds, &adopt->result));
}

struct open_request {
    struct request request;
    struct open_args args;
    struct opened result;
};

static void answer_open(struct request *request)
{
    reply_opened(request, &((struct open_request *)request)->result, false);
}

static void release_open(struct request *request)
{
    struct open_request *open = (struct open_request *)request;

    explicit_bzero(open->args.tokens, sizeof(open->args.tokens));
    fdset_deinit(&open->result.fds);
}

int serve_open(const struct call *call, const Memoryd__V1__OpenRequest *m)
{
    struct open_request *open = request_begin(call, sizeof(*open), answer_open, release_open);

    if (!open)
        return 0;
    open->args.n = (uint32_t)(m->tokens.len / MEMORYD_TOKEN_SIZE);
    memcpy(open->args.tokens, m->tokens.data, m->tokens.len);
    open->args.rights = complete_rights(m->rights);
    open->args.want_fds = m->want_fds;
    open->args.foreign = m->foreign;
    return request_go(&open->request, op_open(&open->request.op, &open->args, &open->result));
}

struct lookup_request {
    struct request request;
    struct lookup_args args;
    struct opened result;
};

static void answer_lookup(struct request *request)
{
    reply_opened(request, &((struct lookup_request *)request)->result, false);
}

static void release_lookup(struct request *request)
{
    fdset_deinit(&((struct lookup_request *)request)->result.fds);
}

int serve_lookup(const struct call *call, const Memoryd__V1__LookupRequest *m)
{
    struct lookup_request *lookup = request_begin(call, sizeof(*lookup), answer_lookup, release_lookup);

    if (!lookup)
        return 0;
    memcpy(lookup->args.name, m->name, strlen(m->name) + 1);
    lookup->args.id = m->id;
    lookup->args.rights = complete_rights(m->rights);
    lookup->args.claim = m->claim;
    lookup->args.want_fd = m->want_fd;
    lookup->args.foreign = m->foreign;
    return request_go(&lookup->request, op_lookup(&lookup->request.op, &lookup->args, &lookup->result));
}
