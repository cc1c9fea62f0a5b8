/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The path of a packet: method row, descriptors, session, repeats, bounded decoding, validation, serve function.
 *
 * This file checks what the table says; validate.c checks what a message contains.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/probe.h"
#include "broker/broker.h"
#include "proto/envelope.h"
#include "rpc/request.h"
#include "rpc/validate.h"

/* For the rows of a listing: 128 of the widest ones, buffers, with their arrays. */
#define SCRATCH_BYTES  (1u << 20)
#define SCRATCH_PIECES 2048

int rpc_init(struct rpc *rpc, struct broker *broker, const struct rpc_transport *transport, const char *version,
             const char *config)
{
    *rpc = (struct rpc){
        .broker = broker,
        .transport = transport,
        .version = version,
        .config = config,
        .arena = ARENA_NULL,
        .scratch = ARENA_NULL,
    };
    rpc->out = malloc(MEMORYD_PAYLOAD_MAX);
    if (!rpc->out || arena_init(&rpc->arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES) < 0 ||
        arena_init(&rpc->scratch, SCRATCH_BYTES, SCRATCH_PIECES) < 0) {
        rpc_deinit(rpc);
        return -ENOMEM;
    }
    return 0;
}

void rpc_deinit(struct rpc *rpc)
{
    free(rpc->out);
    rpc->out = NULL;
    arena_deinit(&rpc->arena);
    arena_deinit(&rpc->scratch);
}

void rpc_client_init(struct rpc_client *client, struct rpc *rpc, void *connection, struct peer *peer,
                     struct log_client who)
{
    *client = (struct rpc_client){.rpc = rpc, .connection = connection, .peer = peer, .who = who};
    list_init(&client->requests);
}

static void dispatch_finish(struct rpc_client *client)
{
    client->finishing = true;
    if (!client->serving)
        client->rpc->transport->finish(client->connection);
}

void rpc_client_disconnect(struct rpc_client *client)
{
    /* client and session forget each other: the broker does not learn when the connection is gone */
    client->session = 0;
    dispatch_finish(client);
}

/* The client broke the protocol: the last packet to it says how. */
static void dispatch_breach(struct rpc_client *client, const struct call *call, const char *what)
{
    struct problem problem = PROBLEM_NULL;

    log_client(LOG_LEVEL_WARNING, client->who, "disconnected: %s (method %u)", what, call->method);
    problem_set(&problem, "the connection closes because of %s", what);
    reply_problem(call, STATUS_PROTOCOL, &problem);
    dispatch_finish(client);
}

static int dispatch_serve(struct request *request, const ProtobufCMessage *message)
{
    switch ((enum method)request->call.method) {
#define X(id, NAME, name, Request, reply, session, fds_in, fds_out, cost, repeat, grants) \
    case METHOD_##NAME:                                                                   \
        return serve_##name(request, (const Memoryd__V1__##Request *)(const void *)message);
        MEMORYD_METHODS(X)
#undef X
#define X(id, NAME, name, message) case METHOD_EVENT_##NAME:
        MEMORYD_EVENTS(X)
#undef X
        break;
    }
    return 0;
}

/*
 * Is this a repeat? True: it is answered, or will be. Its message is not read then, since a client that repeats a
 * request may have lost parts of it.
 */
static bool is_repeat(struct rpc_client *client, struct call *call, const struct frame_header *header, bool recorded,
                      int *ret)
{
    struct op_request request = {
        .session = client->session,
        .sequence = header->sequence,
        .method = header->method,
        .recorded = recorded,
    };
    struct problem problem = PROBLEM_NULL;
    struct op *op = NULL;
    int r = op_begin(client->rpc->broker, &request, &op, &problem);

    *ret = 0;
    switch (r) {
    case 0:
    case OP_REPLAY:
        call->kept = recorded;
        call->replay = r == OP_REPLAY;
        return false;
    case OP_ANSWERED:
        *ret = reply_again(call);
        return true;
    case OP_RUNNING:
        if (container_of(op, struct request, op)->call.client == client)
            dispatch_breach(client, call, "a second request with the sequence of one that is under way");
        else
            request_attach(container_of(op, struct request, op), client);
        return true;
    case OP_FORGOTTEN:
        dispatch_breach(client, call, "a repeat of a request whose reply it has acknowledged");
        return true;
    default:
        call->kept = true;
        *ret = reply_problem(call, r, &problem);
        return true;
    }
}

static int dispatch_request(struct rpc_client *client, struct call *call, const struct frame_header *header,
                            const uint8_t *payload)
{
    const struct schema_method *method = schema_method(call->method);
    bool recorded = method && method->repeat == REPEAT_RECORDED && client->minor >= 1;
    struct problem problem = PROBLEM_NULL;
    ProtobufCMessage *message;
    struct request *request;
    int r;

    call->began = method ? clock_now_ns() : 0;
    if (!method) {
        problem_set(&problem, "this broker has no method %u; it may be older than the client", call->method);
        return reply_problem(call, STATUS_NO_SUCH_METHOD, &problem);
    }
    if (fdset_count(call->fds) > method->fds_in) {
        dispatch_breach(client, call, "more descriptors than the method takes");
        return 0;
    }
    if (method->session == SESSION_NEEDED && !client->session)
        return reply_problem(call, STATUS_NO_SESSION, &problem);
    if (call->method == METHOD_HELLO && client->session) {
        dispatch_breach(client, call, "a second HELLO on one connection");
        return 0;
    }
    if (client->session && (recorded || client->keeps)) {
        client->keeps = op_acknowledge(client->rpc->broker, client->session, header->acknowledged, header->answered);
        if ((recorded || client->keeps) && is_repeat(client, call, header, recorded, &r))
            return r;
        client->keeps = client->keeps || recorded;
    }
    r = envelope_unpack(method->request, payload, header->payload_length, &client->rpc->arena, &message);
    if (r == ENVELOPE_E_NOT_TEXT) {
        problem_set(&problem, "%s; names and texts are UTF-8", envelope_error_text(r));
        return reply_problem(call, STATUS_INVALID_ARGUMENT, &problem);
    }
    if (r) {
        dispatch_breach(client, call, envelope_error_text(r));
        return 0;
    }
    r = validate(call->method, message, &problem);
    if (r)
        return reply_problem(call, r, &problem);
    PROBE(request_begin, method->name, call->session, call->sequence, client->who.uid, client->who.pid);
    request = request_begin(call);
    return request ? request_go(request, dispatch_serve(request, message)) : 0;
}

/* `answered` is who gets the reply: the client, or NULL. */
static int serve_packet(struct rpc_client *client, struct rpc_client *answered, const struct frame_header *header,
                        const uint8_t *payload, struct fdset *fds)
{
    struct call call = {
        .rpc = client->rpc,
        .client = answered,
        .session = client->session,
        .sequence = header->sequence,
        .acknowledged = header->acknowledged,
        .method = header->method,
        .fds = fds,
    };
    struct broker *broker = client->rpc->broker;
    int r;

    op_executing(broker, call.session, call.sequence, call.method);
    client->serving = true;
    r = dispatch_request(client, &call, header, payload);
    client->serving = false;
    broker_commit(broker);
    op_executed(broker);
    return r;
}

int rpc_client_packet(struct rpc_client *client, const struct frame_header *header, const uint8_t *payload,
                      struct fdset *fds)
{
    int r;

    client->n_requests++;
    r = serve_packet(client, client, header, payload, fds);
    if (client->finishing)
        client->rpc->transport->finish(client->connection);
    return r;
}

/* Serves the log of one session, but only methods that belong in it: these never pend. */
static int replay_log(struct rpc *rpc, const struct broker_release_log *releases)
{
    uint64_t sequence = 0;
    const void *packet;
    size_t size;
    int r = 0;

    while (!r && release_log_next(&releases->log, &sequence, &packet, &size)) {
        _cleanup_fdset_ struct fdset fds = FDSET_NULL;
        struct frame_header header;
        struct rpc_client nobody;
        const uint8_t *payload;

        if (frame_decode(packet, size, 0, FRAME_FROM_CLIENT, &header, &payload) ||
            (header.method != METHOD_RELEASE && header.method != METHOD_UNRESERVE))
            continue;
        rpc_client_init(&nobody, rpc, NULL, NULL, releases->who);
        nobody.session = releases->session;
        nobody.minor = MEMORYD_MINOR_MAX;
        r = serve_packet(&nobody, NULL, &header, payload, &fds);
    }
    return r;
}

int rpc_replay_releases(struct rpc *rpc)
{
    struct broker_release_log releases;
    uint64_t cursor = 0;
    int r = 0;

    while (!r && broker_next_release_log(rpc->broker, &cursor, &releases))
        r = replay_log(rpc, &releases);
    return r;
}

void rpc_client_refused(struct rpc_client *client, int error, const uint8_t *packet, size_t size)
{
    struct call call = {.rpc = client->rpc, .client = client};
    struct problem problem = PROBLEM_NULL;
    uint16_t version;

    /* a reply with sequence 0 would look like an event, and no packet has method 0 */
    if (!frame_peek(packet, size, &version, &call.method, &call.sequence) || !call.sequence || !call.method)
        return;
    if (error == FRAME_E_VERSION) {
        problem_set(&problem,
                    "the client speaks protocol version %u and this broker version %d; install the same release "
                    "of both",
                    version, MEMORYD_VERSION);
        reply_problem(&call, STATUS_VERSION, &problem);
        return;
    }
    problem_set(&problem, "the connection closes because of %s", frame_error_text(error));
    reply_problem(&call, STATUS_PROTOCOL, &problem);
}

int rpc_client_lost(struct rpc_client *client)
{
    uint64_t session = client->session;
    struct list *link;

    client->session = 0;
    while ((link = list_pop(&client->requests))) {
        struct request *request = container_of(link, struct request, link);

        request->call.client = NULL;
        if (!request->call.kept)
            op_cancel(&request->op);
    }
    return session ? broker_connection_lost(client->rpc->broker, session, client->connection) : 0;
}
