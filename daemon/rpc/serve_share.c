/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Letting others in: SHARE, REVOKE, NAME_BIND, NAME_UNBIND.
 */

#include <string.h>

#include "rpc/reply.h"
#include "rpc/request.h"
#include "rpc/serve.h"

struct share_request {
    struct request request;
    struct share_args args;
    struct share_result result;
};

static void answer_share(struct request *request)
{
    struct share_result *result = &((struct share_request *)request)->result;
    uint32_t statuses[MEMORYD_BATCH_MAX];
    Memoryd__V1__ShareReply reply = MEMORYD__V1__SHARE_REPLY__INIT;

    for (uint32_t i = 0; i < result->n; i++) {
        statuses[i] = (uint32_t)result->status[i];
        if (statuses[i])
            memset(result->tokens[i], 0, sizeof(result->tokens[i]));
    }
    reply.n_statuses = result->n;
    reply.statuses = statuses;
    reply.tokens.data = result->tokens[0];
    reply.tokens.len = result->n * sizeof(result->tokens[0]);
    reply.sentence = reply_sentence(&request->call, &request->op.problem, result->n, statuses);
    request_reply(request, &reply.base, NULL);
}

static void wipe_share(struct request *request)
{
    struct share_result *result = &((struct share_request *)request)->result;

    explicit_bzero(result->tokens, sizeof(result->tokens));
}

int serve_share(const struct call *call, const Memoryd__V1__ShareRequest *m)
{
    struct share_request *share = request_begin(call, sizeof(*share), answer_share, wipe_share);
    struct share_args *args;

    if (!share)
        return 0;
    args = &share->args;
    args->buffers.n = (uint32_t)m->n_buffers;
    for (size_t i = 0; i < m->n_buffers; i++)
        args->buffers.id[i] = m->buffers[i];
    args->rights = complete_rights(m->rights);
    args->flags = m->flags;
    args->uses = m->uses;
    args->expiry_ms = m->expiry_ms;
    args->uid = m->uid;
    args->gid = m->gid;
    args->pid = (pid_t)m->pid;
    return request_go(&share->request, op_share(&share->request.op, args, &share->result));
}

struct revoke_request {
    struct request request;
    struct revoke_args args;
    uint32_t revoked;
};

static void answer_revoke(struct request *request)
{
    Memoryd__V1__RevokeReply reply = MEMORYD__V1__REVOKE_REPLY__INIT;

    reply.revoked = ((struct revoke_request *)request)->revoked;
    request_reply(request, &reply.base, NULL);
}

static void wipe_revoke(struct request *request)
{
    struct revoke_request *revoke = (struct revoke_request *)request;

    explicit_bzero(revoke->args.token, sizeof(revoke->args.token));
}

int serve_revoke(const struct call *call, const Memoryd__V1__RevokeRequest *m)
{
    struct revoke_request *revoke = request_begin(call, sizeof(*revoke), answer_revoke, wipe_revoke);

    if (!revoke)
        return 0;
    revoke->args.by_token = m->token.len != 0;
    if (m->token.len)
        memcpy(revoke->args.token, m->token.data, sizeof(revoke->args.token));
    revoke->args.serial = m->serial;
    revoke->args.buffer = m->buffer;
    return request_go(&revoke->request, op_revoke(&revoke->request.op, &revoke->args, &revoke->revoked));
}

void name_args_from(struct name_args *args, const Memoryd__V1__NameBindRequest *m)
{
    *args = (struct name_args){
        .buffer = m->buffer,
        .policy = m->policy,
        .keep_ms = m->keep_ms,
        .group_rights = complete_rights(m->group),
        .gid = m->gid,
        .other_rights = complete_rights(m->others),
    };
    memcpy(args->name, m->name, strlen(m->name) + 1);
}

struct name_request {
    struct request request;
    struct name_args args;
};

int serve_name_bind(const struct call *call, const Memoryd__V1__NameBindRequest *m)
{
    struct name_request *bind = request_begin(call, sizeof(*bind), request_done, NULL);

    if (!bind)
        return 0;
    name_args_from(&bind->args, m);
    return request_go(&bind->request, op_name_bind(&bind->request.op, &bind->args));
}

struct unbind_request {
    struct request request;
    char name[sizeof(((struct lookup_args *)NULL)->name)];
};

int serve_name_unbind(const struct call *call, const Memoryd__V1__NameUnbindRequest *m)
{
    struct unbind_request *unbind = request_begin(call, sizeof(*unbind), request_done, NULL);

    if (!unbind)
        return 0;
    memcpy(unbind->name, m->name, strlen(m->name) + 1);
    return request_go(&unbind->request, op_name_unbind(&unbind->request.op, unbind->name));
}
