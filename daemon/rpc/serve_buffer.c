/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Getting buffers in any way, and releasing them: ALLOC, RELEASE, EXPORT, IMPORT, ADOPT, OPEN, LOOKUP.
 */

#include <assert.h>
#include <string.h>

#include "rpc/request.h"

uint32_t complete_rights(uint32_t rights)
{
    return rights & MEMORYD__V1__RIGHT__RIGHT_WRITE ? rights | MEMORYD__V1__RIGHT__RIGHT_READ : rights;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

void answer_Buffers(struct request *request)
{
    struct opened *opened = &request->result.Buffers;
    bool with_tokens = request->call.method == METHOD_ALLOC &&
                       request->args.alloc.memory.flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
    uint8_t tokens[MEMORYD_BATCH_MAX][MEMORYD_TOKEN_SIZE];
    uint32_t statuses[MEMORYD_BATCH_MAX], rights[MEMORYD_BATCH_MAX], flags[MEMORYD_BATCH_MAX];
    uint64_t ids[MEMORYD_BATCH_MAX], sizes[MEMORYD_BATCH_MAX], bytes[MEMORYD_BATCH_MAX];
    uint64_t granules[MEMORYD_BATCH_MAX], addresses[MEMORYD_BATCH_MAX];
    Memoryd__V1__Buffers reply = MEMORYD__V1__BUFFERS__INIT;
    static const struct opened_item nothing;
    struct fd_list list;

    fd_list_init(&list, request->call.session);
    for (uint32_t i = 0; i < opened->n; i++) {
        const struct opened_item *item = opened->items[i].status ? &nothing : &opened->items[i];

        if (opened->with_fds && item->id)
            fd_list_add(&list, item->id, item->rights);

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
    reply_with_fds(&request->call, &reply.base, &list, &opened->fds);
    explicit_bzero(tokens, reply.tokens.len);
}

static void release_buffers(struct request *request)
{
    struct opened *opened = &request->result.Buffers;

    for (uint32_t i = 0; i < opened->n; i++)
        explicit_bzero(opened->items[i].token, sizeof(opened->items[i].token));
    fdset_deinit(&opened->fds);
}

/* ---- ALLOC ------------------------------------------------------------------------------------------------------- */

static_assert(MEMORYD_POOL_NAME_MAX <= POOL_NAME_MAX && MEMORYD_NODES_MAX <= TOPOLOGY_NODES_MAX,
              "a spec has room for all that is valid");

int serve_alloc(struct request *request, const Memoryd__V1__AllocRequest *m)
{
    struct alloc_spec *spec = &request->args.alloc;
    struct memory_spec *memory = &spec->memory;

    request->release = release_buffers;
    *spec = (struct alloc_spec){.n = (uint32_t)m->n_sizes, .wait_ms = m->wait_ms};
    *memory = (struct memory_spec){
        .n_nodes = (uint32_t)m->n_nodes,
        .n_weights = (uint32_t)m->n_weights,
        .caller_node = m->caller_node,
        .pages = (enum pages)m->pages,
        .page_size = m->page_size,
        .placement = (enum placement)m->placement,
        .part_size = m->part_size,
        .alignment = m->alignment,
        .address = m->address,
        .flags = m->flags,
    };
    /* no longer in use: no broker has buffers for anybody in advance (PROTOCOL.md, section 14) */
    if (m->flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__AHEAD)
        return 0;
    memcpy(memory->pool, m->pool, strlen(m->pool) + 1);
    for (size_t i = 0; i < m->n_nodes; i++)
        memory->nodes[i] = m->nodes[i];
    for (size_t i = 0; i < m->n_weights; i++)
        memory->weights[i] = m->weights[i];
    for (size_t i = 0; i < m->n_sizes; i++)
        spec->sizes[i] = m->sizes[i];
    if (m->name) {
        name_args_from(&spec->name, m->name);
        request_note(request, 0, spec->name.name);
    }
    return op_alloc(&request->op, spec, &request->result.Buffers);
}

/* ---- RELEASE, EXPORT --------------------------------------------------------------------------------------------- */

void answer_Statuses(struct request *request)
{
    struct statuses *result = &request->result.Statuses;
    const struct export_args *exports = request->call.method == METHOD_EXPORT ? &request->args.export : NULL;
    uint32_t statuses[MEMORYD_BATCH_MAX];
    Memoryd__V1__Statuses reply = MEMORYD__V1__STATUSES__INIT;
    struct fd_list list;

    fd_list_init(&list, request->call.session);
    for (uint32_t i = 0; i < result->n; i++) {
        statuses[i] = (uint32_t)result->status[i];
        if (exports && !statuses[i])
            fd_list_add(&list, exports->buffers.id[i], exports->rights[i]);
    }
    reply.n_statuses = result->n;
    reply.statuses = statuses;
    reply.sentence = reply_sentence(&request->call, &request->op.problem, result->n, statuses);
    reply_with_fds(&request->call, &reply.base, &list, NULL);
}

int serve_release(struct request *request, const Memoryd__V1__ReleaseRequest *m)
{
    struct ids *args = &request->args.release;

    args->n = (uint32_t)m->n_buffers;
    memcpy(args->id, m->buffers, m->n_buffers * sizeof(m->buffers[0]));
    return op_release(&request->op, args, &request->result.Statuses);
}

int serve_export(struct request *request, const Memoryd__V1__ExportRequest *m)
{
    struct export_args *args = &request->args.export;

    args->buffers.n = (uint32_t)m->n_buffers;
    for (size_t i = 0; i < m->n_buffers; i++) {
        args->buffers.id[i] = m->buffers[i];
        args->rights[i] = complete_rights(m->rights[i]);
    }
    return op_export(&request->op, args, &request->result.Statuses);
}

/* ---- DOOR, IMPORT, ADOPT, OPEN, LOOKUP --------------------------------------------------------------------------- */

void answer_DoorReply(struct request *request)
{
    Memoryd__V1__DoorReply reply = MEMORYD__V1__DOOR_REPLY__INIT;
    _cleanup_fdset_ struct fdset opened = FDSET_NULL;
    struct fd_list list;

    (void)fdset_push(&opened, steal_fd(&request->result.DoorReply));
    fd_list_init(&list, request->call.session);
    list.door = true;
    list.n = 1;
    reply_with_fds(&request->call, &reply.base, &list, &opened);
}

int serve_door(struct request *request, const Memoryd__V1__DoorRequest *m)
{
    struct rpc_client *client = request->call.client;

    return client->rpc->transport->door(client->connection, &request->result.DoorReply, &request->op.problem);
}

/* What is shown at the door is known by tickets. Without any it may be a client that knows of no door. */
static int serve_without_ticket(struct request *request)
{
    return refuse(&request->op.problem, STATUS_INVALID_ARGUMENT,
                  "the request names no ticket of the door, and descriptors are taken nowhere else; install the client "
                  "library of memoryd's own version, which speaks protocol 1.4");
}

int serve_import(struct request *request, const Memoryd__V1__ImportRequest *m)
{
    struct rpc_client *client = request->call.client;
    struct handle_shown shown[MEMORYD_BATCH_MAX];

    if (!m->n_tickets)
        return serve_without_ticket(request);
    for (size_t i = 0; i < m->n_tickets; i++) {
        int r =
            client->rpc->transport->redeem(client->connection, m->tickets[i], false, &shown[i], &request->op.problem);

        if (r)
            return r;
    }
    request->release = release_buffers;
    return op_import(&request->op, shown, (uint32_t)m->n_tickets, &request->result.Buffers);
}

int serve_adopt(struct request *request, const Memoryd__V1__AdoptRequest *m)
{
    struct rpc_client *client = request->call.client;
    struct handle_shown shown;
    int r;

    if (!m->ticket)
        return serve_without_ticket(request);
    r = client->rpc->transport->redeem(client->connection, m->ticket, true, &shown, &request->op.problem);
    if (r)
        return r;
    request->release = release_buffers;
    r = op_adopt(&request->op, shown.fd, &request->result.Buffers);
    if (r)
        client->rpc->transport->end(client->connection, shown.fd);
    else
        fd_close(shown.fd);
    return r;
}

static void release_open(struct request *request)
{
    explicit_bzero(request->args.open.tokens, sizeof(request->args.open.tokens));
    release_buffers(request);
}

int serve_open(struct request *request, const Memoryd__V1__OpenRequest *m)
{
    struct open_args *args = &request->args.open;

    request->release = release_open;
    args->n = (uint32_t)(m->tokens.len / MEMORYD_TOKEN_SIZE);
    memcpy(args->tokens, m->tokens.data, m->tokens.len);
    args->rights = complete_rights(m->rights);
    args->want_fds = m->want_fds;
    args->foreign = m->foreign;
    return op_open(&request->op, args, &request->result.Buffers);
}

int serve_lookup(struct request *request, const Memoryd__V1__LookupRequest *m)
{
    struct lookup_args *args = &request->args.lookup;

    request->release = release_buffers;
    memcpy(args->name, m->name, strlen(m->name) + 1);
    args->id = m->id;
    args->rights = complete_rights(m->rights);
    args->claim = m->claim;
    args->want_fd = m->want_fd;
    args->foreign = m->foreign;
    return op_lookup(&request->op, args, &request->result.Buffers);
}
