/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The descriptors of a reply, which are opened when it leaves: at once, after it has waited, or as a repeat.
 *
 * Whatever happened to a buffer in between, the reply has as many descriptors as it has items whose status is OK. If
 * one cannot be had any more, the message is decoded, its item gets the status that says why, and it is packed again.
 */

#include "rpc/request.h"

#include <assert.h>
#include <string.h>

#include "proto/envelope.h"

void reply_item_failed(Memoryd__V1__Buffers *buffers, size_t i, int status)
{
    buffers->statuses[i] = (uint32_t)status;
    buffers->ids[i] = buffers->sizes[i] = buffers->bytes[i] = buffers->granules[i] = buffers->addresses[i] = 0;
    buffers->rights[i] = buffers->flags[i] = 0;
    if (buffers->tokens.len)
        memset(buffers->tokens.data + i * MEMORYD_TOKEN_SIZE, 0, MEMORYD_TOKEN_SIZE);
}

/* The items of a message that has some: the statuses and the sentence of Buffers or of Statuses. */
struct reply_items {
    Memoryd__V1__Buffers *buffers; /* or NULL */
    size_t n;
    uint32_t *statuses;
    char **sentence;
};

static bool reply_items_of(ProtobufCMessage *message, struct reply_items *ret)
{
    Memoryd__V1__Buffers *buffers = (Memoryd__V1__Buffers *)message;
    Memoryd__V1__Statuses *statuses = (Memoryd__V1__Statuses *)message;

    if (message->descriptor == &memoryd__v1__buffers__descriptor)
        *ret = (struct reply_items){buffers, buffers->n_statuses, buffers->statuses, &buffers->sentence};
    else if (message->descriptor == &memoryd__v1__statuses__descriptor)
        *ret = (struct reply_items){NULL, statuses->n_statuses, statuses->statuses, &statuses->sentence};
    else
        return false;
    return true;
}

/* The list has a descriptor for each item that was OK, in their order. */
static void reply_items_fail(struct reply_items *items, const struct statuses *opened)
{
    uint32_t n = 0;

    for (size_t i = 0; i < items->n && n < opened->n; i++) {
        int status;

        if (items->statuses[i])
            continue;
        status = opened->status[n++];
        if (status && items->buffers)
            reply_item_failed(items->buffers, i, status);
        items->statuses[i] = (uint32_t)status;
    }
}

static void reply_correct(struct rpc_client *client, struct outgoing *reply, const struct statuses *opened,
                          struct problem *problem)
{
    const struct call call = {.rpc = client->rpc, .client = client, .method = reply->header.method};
    struct rpc *rpc = client->rpc;
    ProtobufCMessage *message;
    struct reply_items items;
    char *sentence;
    int r = envelope_unpack(schema_method(call.method)->reply, reply->payload, reply->size, &rpc->arena, &message);

    /* it was packed here */
    assert(r == 0);
    if (r || !reply_items_of(message, &items))
        return;
    reply_items_fail(&items, opened);
    sentence = reply_sentence(&call, problem, items.n, items.statuses);
    if (!**items.sentence)
        *items.sentence = sentence;
    reply->size = reply_pack(rpc, message);
    reply->payload = rpc->out;
}

/* The socket was made when it was asked for, unless the reply has waited. Without it the client asks again. */
static void reply_open_door(struct rpc_client *client, struct fdset *opened, struct fdset *fds)
{
    struct problem problem = PROBLEM_NULL;
    int fd = opened ? fdset_steal(opened, 0) : -1;

    if (fd >= 0 || !client->rpc->transport->door(client->connection, &fd, &problem))
        (void)fdset_push(fds, fd);
}

enum outgoing_fds rpc_client_open_fds(struct rpc_client *client, struct outgoing *reply, struct fdset *fds)
{
    struct rpc *rpc = client->rpc;
    /* a reply that has waited is a copy, and has nothing opened beforehand */
    struct fdset *opened = reply->payload == rpc->out ? rpc->opened : NULL;
    struct statuses result;
    struct fd_list list;
    struct op op = {.broker = rpc->broker, .problem = PROBLEM_NULL};
    int r;

    memcpy(&list, reply->fd_list, reply->fd_list_size);
    if (list.door) {
        reply_open_door(client, opened, fds);
        return OUTGOING_OPEN;
    }
    op.session = list.session;
    r = op_open_fds(&op, &list, opened, &result, fds);
    if (list.release_log)
        return OUTGOING_OPEN; /* a client can do without it, and shall not wait for it */
    if (r == OP_PENDING)
        return OUTGOING_SOME;
    if (r) {
        log_client(LOG_LEVEL_WARNING, client->who, "its reply waits for descriptors: %s", op.problem.sentence);
        return OUTGOING_LATER;
    }
    if (fdset_count(fds) < list.n)
        reply_correct(client, reply, &result, &op.problem);
    return OUTGOING_OPEN;
}
