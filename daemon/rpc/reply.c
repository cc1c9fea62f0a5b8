/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sentence may quote what the client wrote, and may have been cut to fit, so it is made printable before it leaves.
 */

#include "rpc/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/probe.h"
#include "broker/broker.h"
#include "log/log.h"
#include "proto/envelope.h"
#include "proto/limits.h"
#include "proto/status.h"

/* The message is `size` bytes in rpc->out. */
static void send_reply(const struct call *call, uint32_t status, size_t size, const struct fd_list *list,
                       struct fdset *opened)
{
    struct rpc *rpc = call->rpc;
    struct outgoing reply = {
        .header = {.method = call->method, .sequence = call->sequence, .status = status},
        .payload = rpc->out,
        .size = size,
    };

    if (list && list->n) {
        reply.fd_list = list;
        reply.fd_list_size = offsetof(struct fd_list, items) + list->n * sizeof(list->items[0]);
        reply.n_fds = list->n;
    }
    /* recovery must not take back what the reply says */
    broker_commit(rpc->broker);
    if (!call->client)
        return;
    rpc->opened = opened;
    rpc->transport->reply(call->client->connection, &reply);
    rpc->opened = NULL;
}

size_t reply_pack(struct rpc *rpc, const ProtobufCMessage *message)
{
    size_t size;
    int r = envelope_pack(message, rpc->out, MEMORYD_PAYLOAD_MAX, &size);

    /* the contents bound every reply: batches have 64 items, listings count their bytes */
    assert(r == 0);
    (void)r;
    return size;
}

static void reply_status(const struct call *call, uint32_t status, const ProtobufCMessage *message,
                         const struct fd_list *list, struct fdset *opened)
{
    struct rpc *rpc = call->rpc;
    size_t size = reply_pack(rpc, message);
    const struct op_reply stored = {status, (uint32_t)size, list ? list->n : 0};

    rpc->requests += !call->recorded;
    if (call->kept)
        reply_store(rpc->broker, call->session, call->sequence, &stored, rpc->out);
    if (call->client && call->began)
        op_replied(rpc->broker, call->method, clock_now_ns() - call->began);
    send_reply(call, status, size, list, opened);
}

void reply_message(const struct call *call, const ProtobufCMessage *message)
{
    reply_status(call, STATUS_OK, message, NULL, NULL);
}

void reply_with_fds(const struct call *call, const ProtobufCMessage *message, const struct fd_list *list,
                    struct fdset *opened)
{
    reply_status(call, STATUS_OK, message, list, opened);
}

/* ---- refusals in the log and in the history ---------------------------------------------------------------------- */

/* Is this an answer that a program may expect, and provoke again and again? */
static bool is_answer(unsigned status)
{
    static const enum status answers[] = {STATUS_TIMED_OUT,     STATUS_STALE,        STATUS_NO_SUCH_ID,
                                          STATUS_NO_SUCH_NAME,  STATUS_NAME_EXISTS,  STATUS_TOKEN_STALE,
                                          STATUS_ADDRESS_TAKEN, STATUS_SHUTTING_DOWN};

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (status == answers[i])
            return true;
    return false;
}

/* Every refusal passes here, of a request or of items of a batch. The sentence names the limit or right, and its
 * numbers. A breach of the protocol has a line of its own, since the connection ends. */
static void note_refusal(const struct call *call, unsigned status, const char *items, const char *sentence,
                         const struct shortage *shortage)
{
    const struct schema_method *method = schema_method(call->method);
    const struct op_refusal refusal = {
        .session = call->session,
        .method = call->method,
        .status = status,
        .sentence = sentence,
        .shortage = shortage,
        .uid = call->client ? call->client->who.uid : 0,
        .pid = call->client ? call->client->who.pid : 0,
    };

    if (!call->client)
        return;
    op_refusal_counted(call->rpc->broker, status);
    if (status == STATUS_PROTOCOL)
        return;
    PROBE(request_refused, method ? method->name : "", call->session, refusal.uid, status, sentence);
    log_client(is_answer(status) ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, call->client->who, "%s is refused%s: %s: %s",
               method ? method->name : "an unknown method", items, status_name(status), sentence);
    if (!is_answer(status) || status == STATUS_TIMED_OUT)
        op_refused(call->rpc->broker, &refusal);
}

char *reply_sentence(const struct call *call, struct problem *problem, size_t n, const uint32_t *statuses)
{
    char *sentence = printable_escape(problem->sentence, sizeof(problem->sentence));
    uint32_t first = 0;
    size_t n_refused = 0;
    char items[64] = "";

    for (size_t i = 0; i < n; i++) {
        first = first ? first : statuses[i];
        n_refused += statuses[i] != 0;
    }
    if (!n_refused)
        return sentence;
    if (n > 1)
        (void)snprintf(items, sizeof(items), " for %zu of %zu", n_refused, n);
    note_refusal(call, first, items, *sentence ? sentence : status_text(first), &problem->shortage);
    return sentence;
}

int reply_problem(const struct call *call, int status, struct problem *problem)
{
    Memoryd__V1__Problem message = MEMORYD__V1__PROBLEM__INIT;

    if (!problem->sentence[0])
        problem_set(problem, "%s", status_text((unsigned)status));
    message.sentence = printable_escape(problem->sentence, sizeof(problem->sentence));
    message.item = problem->item;
    call->rpc->refused++;
    note_refusal(call, (unsigned)status, "", message.sentence, &problem->shortage);
    reply_status(call, (uint32_t)status, &message.base, NULL, NULL);
    return 0;
}

/* ---- replies to repeats ------------------------------------------------------------------------------------------ */

/* May a descriptor of this buffer leave again? */
static int export_again(const struct call *call, uint64_t buffer, uint32_t rights, struct problem *problem)
{
    struct op op = {.broker = call->rpc->broker, .session = call->session, .problem = PROBLEM_NULL};
    struct export_args args = {.buffers = {.n = 1, .id = {buffer}}, .rights = {rights}};
    struct statuses result = {.n = 0};
    int r = op_export(&op, &args, &result);

    if (!r)
        r = result.status[0];
    if (r > 0)
        *problem = op.problem;
    return r;
}

static int export_all_again(const struct call *call, Memoryd__V1__Buffers *buffers, struct fd_list *list,
                            struct problem *problem)
{
    const uint32_t readable = MEMORYD__V1__RIGHT__RIGHT_READ, writable = readable | MEMORYD__V1__RIGHT__RIGHT_WRITE;

    for (size_t i = 0; i < buffers->n_statuses; i++) {
        uint32_t rights = buffers->rights[i] & writable;
        struct problem one = PROBLEM_NULL;
        int r;

        if (buffers->statuses[i])
            continue;
        r = export_again(call, buffers->ids[i], rights, &one);
        if (r == STATUS_PUBLISHED) { /* meanwhile: it can be read only */
            rights = readable;
            r = export_again(call, buffers->ids[i], rights, &one);
        }
        if (r < 0)
            return r;
        if (!r) {
            fd_list_add(list, buffers->ids[i], rights);
            continue;
        }
        if (!problem->sentence[0])
            *problem = one;
        reply_item_failed(buffers, i, r);
    }
    return 0;
}

/* A row for each status in every column. */
static bool is_whole(const Memoryd__V1__Buffers *buffers)
{
    size_t n = buffers->n_statuses;

    return n <= MEMORYD_BATCH_MAX && buffers->n_ids == n && buffers->n_rights == n && buffers->n_sizes == n &&
           buffers->n_bytes == n && buffers->n_granules == n && buffers->n_addresses == n && buffers->n_flags == n &&
           (!buffers->tokens.len || buffers->tokens.len == n * MEMORYD_TOKEN_SIZE);
}

static int reply_buffers_again(const struct call *call, size_t size)
{
    struct rpc *rpc = call->rpc;
    struct problem problem = PROBLEM_NULL;
    Memoryd__V1__Buffers *buffers;
    ProtobufCMessage *message;
    struct fd_list list;
    int r = envelope_unpack(&memoryd__v1__buffers__descriptor, rpc->out, size, &rpc->arena, &message);

    /* a broker packed it, so only damage of the ledger makes this fail */
    if (r || !is_whole((const Memoryd__V1__Buffers *)message)) {
        problem_set(&problem, "the kept reply is damaged; list what there is");
        return reply_problem(call, STATUS_REFUSED, &problem);
    }
    buffers = (Memoryd__V1__Buffers *)message;
    fd_list_init(&list, call->session);
    r = export_all_again(call, buffers, &list, &problem);
    if (r < 0)
        return r;
    if (problem.sentence[0])
        buffers->sentence = reply_sentence(call, &problem, buffers->n_statuses, buffers->statuses);
    send_reply(call, STATUS_OK, reply_pack(rpc, message), &list, NULL);
    return 0;
}

int reply_again(const struct call *call)
{
    struct problem problem = PROBLEM_NULL;
    struct rpc *rpc = call->rpc;
    struct op_reply kept;

    reply_load(rpc->broker, call->session, call->sequence, &kept, rpc->out);
    rpc->requests++;
    if (kept.status && !kept.size) {
        problem_set(&problem, "it was done, but there was no memory to keep the reply in; list what there is");
        return reply_problem(call, (int)kept.status, &problem);
    }
    if (kept.n_fds)
        return reply_buffers_again(call, kept.size);
    send_reply(call, kept.status, kept.size, NULL, NULL);
    return 0;
}
