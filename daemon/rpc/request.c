/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a request: it is made, the broker does it, it is answered now or later, and freed in one place.
 */

#include "rpc/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/probe.h"

static const struct {
    const char *name;
    size_t result_size;
    void (*answer)(struct request *request);
} forms[] = {
#define X(id, NAME, name, Request, Reply, session, fds_in, fds_out, cost, repeat, grants) \
    [METHOD_##NAME] = {#name, sizeof(((struct request *)NULL)->result.Reply), answer_##Reply},
    MEMORYD_METHODS(X)
#undef X
};

static void request_free(struct request *request)
{
    list_remove(&request->link);
    if (request->release)
        request->release(request);
    free(request);
}

static void request_hold(struct request *request, bool held)
{
    const struct rpc_client *client = request->call.client;

    if (client && schema_method(request->call.method)->cost == METHOD_CHEAP)
        client->rpc->transport->hold(client->connection, held);
}

/* The operation has ended with 0 or a status. */
static void request_end(struct request *request, int status)
{
    const struct call *call = &request->call;

    PROBE(request_end, forms[call->method].name, call->session, call->sequence, status);
    if (call->noted && !status)
        op_noted(call->rpc->broker, call->session,
                 &(struct op_note){
                     .method = call->method,
                     .buffer = call->buffer ? call->buffer : request->op.buffer,
                     .name = call->name,
                 });
    if (request->call.client || request->call.kept) {
        if (status)
            reply_problem(&request->call, status, &request->op.problem);
        else
            forms[request->call.method].answer(request);
    }
    request_free(request);
}

static void on_done(struct op *op, int status)
{
    struct request *request = container_of(op, struct request, op);
    struct rpc_client *client = request->call.client;

    if (status < 0) {
        if (client)
            client->rpc->transport->fail(client->connection, fatal(status));
        status = STATUS_REFUSED;
    }
    request_hold(request, false);
    request_end(request, status);
}

struct request *request_begin(const struct call *call)
{
    size_t result_size = forms[call->method].result_size;
    struct request *request = malloc(offsetof(struct request, result) + result_size);
    struct problem problem = PROBLEM_NULL;

    if (!request) {
        reply_problem(call, STATUS_NO_MEMORY, &problem);
        return NULL;
    }
    memset(request, 0, offsetof(struct request, args));
    memset(&request->result, 0, result_size);
    request->op.broker = call->rpc->broker;
    request->op.session = call->session;
    request->op.sequence = call->kept ? call->sequence : 0;
    request->op.replay = call->replay;
    request->op.unasked = !call->client;
    request->op.done = on_done;
    request->call = *call;
    list_init(&request->link);
    return request;
}

/* Its reply is recorded, and answers a repeat from now on. */
static void request_record(struct request *request)
{
    struct rpc_client *client = steal_ptr(&request->call.client);

    if (request->call.kept)
        forms[request->call.method].answer(request);
    request->call.kept = false;
    request->call.recorded = true;
    request->call.client = client;
}

/* A cheap request is done before the next one of the connection begins. */
static void request_pend(struct request *request)
{
    struct rpc_client *client = request->call.client;

    if (!client)
        return;
    list_append(&client->requests, &request->link);
    request_hold(request, true);
}

int request_go(struct request *request, int r)
{
    request->call.fds = NULL;
    if (r == OP_SETTLING)
        request_record(request);
    if (r == OP_PENDING || r == OP_SETTLING) {
        request_pend(request);
        return 0;
    }
    if (r < 0) {
        request_free(request);
        return fatal(r);
    }
    request_end(request, r);
    return 0;
}

void request_attach(struct request *request, struct rpc_client *client)
{
    request->call.client = client;
    list_remove(&request->link);
    request_pend(request);
}
