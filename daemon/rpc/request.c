/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a request: made, gone to the broker, answered now or later, freed in one place.
 */

#include "rpc/request.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/reply.h"

/*
 * Most requests are over before the next one comes, so one spare piece of memory, the largest there was, saves nearly
 * all of them the allocator. AddressSanitizer is to see each of them come and go.
 */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define KEEP_SPARE 0
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define KEEP_SPARE 0
#endif
#ifndef KEEP_SPARE
#define KEEP_SPARE 1
#endif

static void *take_memory(struct rpc *rpc, size_t *size)
{
    void *memory = rpc->spare;

    if (!memory || rpc->spare_size < *size)
        return calloc(1, *size);
    memset(memory, 0, *size);
    *size = rpc->spare_size;
    rpc->spare = NULL;
    return memory;
}

static void give_memory(struct rpc *rpc, void *memory, size_t size)
{
    if (!KEEP_SPARE || (rpc->spare && rpc->spare_size >= size)) {
        free(memory);
        return;
    }
    free(rpc->spare);
    rpc->spare = memory;
    rpc->spare_size = size;
}

static void request_free(struct request *request)
{
    list_remove(&request->link);
    if (request->release)
        request->release(request);
    give_memory(request->call.rpc, request, request->size);
}

/* The verb has ended with 0 or a status. */
static void request_end(struct request *request, int status)
{
    if (request->call.client || request->call.kept) {
        if (status)
            reply_problem(&request->call, status, &request->op.problem);
        else
            request->answer(request);
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
    request_end(request, status);
}

void *request_begin(const struct call *call, size_t size, void (*answer)(struct request *request),
                    void (*release)(struct request *request))
{
    struct request *request = take_memory(call->rpc, &size);
    struct problem problem = PROBLEM_NULL;

    if (!request) {
        (void)call_refuse(call, STATUS_NO_MEMORY, &problem);
        return NULL;
    }
    request->size = size;
    request->op.broker = call->rpc->broker;
    request->op.session = call->session;
    request->op.sequence = call->kept ? call->sequence : 0;
    request->op.rerun = call->rerun;
    request->op.done = on_done;
    request->call = *call;
    request->call.fds = NULL;
    list_init(&request->link);
    request->answer = answer;
    request->release = release;
    return request;
}

struct request *request_begin_plain(const struct call *call)
{
    return request_begin(call, sizeof(struct request), request_done, NULL);
}

int request_go(struct request *request, int r)
{
    if (r == OP_PENDING) {
        list_append(&request->call.client->requests, &request->link);
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
    list_append(&client->requests, &request->link);
}

int call_refuse(const struct call *call, int status, struct problem *problem)
{
    reply_problem(call, status, problem);
    return 0;
}

int call_done(const struct call *call)
{
    Memoryd__V1__Done done = MEMORYD__V1__DONE__INIT;

    reply_message(call, &done.base, NULL);
    return 0;
}

void request_reply(struct request *request, const ProtobufCMessage *message, struct fdset *fds)
{
    reply_message(&request->call, message, fds);
}

void request_done(struct request *request)
{
    Memoryd__V1__Done done = MEMORYD__V1__DONE__INIT;

    request_reply(request, &done.base, NULL);
}
