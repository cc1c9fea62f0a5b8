/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Letting others in: SHARE, REVOKE, NAME_BIND, NAME_UNBIND.
 */

#include <string.h>

#include "rpc/request.h"

void answer_ShareReply(struct request *request)
{
    struct share_result *result = &request->result.ShareReply;
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
    reply_message(&request->call, &reply.base);
}

static void release_share(struct request *request)
{
    explicit_bzero(request->result.ShareReply.tokens, sizeof(request->result.ShareReply.tokens));
}

int serve_share(struct request *request, const Memoryd__V1__ShareRequest *m)
{
    struct share_args *args = &request->args.share;

    request->release = release_share;
    *args = (struct share_args){
        .buffers.n = (uint32_t)m->n_buffers,
        .rights = complete_rights(m->rights),
        .flags = m->flags,
        .uses = m->uses,
        .expiry_ms = m->expiry_ms,
        .uid = m->uid,
        .gid = m->gid,
        .pid = (pid_t)m->pid,
    };
    memcpy(args->buffers.id, m->buffers, m->n_buffers * sizeof(m->buffers[0]));
    return op_share(&request->op, args, &request->result.ShareReply);
}

static void release_revoke(struct request *request)
{
    explicit_bzero(request->args.revoke.token, sizeof(request->args.revoke.token));
}

int serve_revoke(struct request *request, const Memoryd__V1__RevokeRequest *m)
{
    struct revoke_args *args = &request->args.revoke;

    request->release = release_revoke;
    *args = (struct revoke_args){.by_token = m->token.len != 0, .serial = m->serial, .buffer = m->buffer};
    if (args->by_token)
        memcpy(args->token, m->token.data, sizeof(args->token));
    request_note(request, m->buffer, NULL);
    return op_revoke(&request->op, args, &request->result.RevokeReply);
}

void answer_RevokeReply(struct request *request)
{
    Memoryd__V1__RevokeReply reply = MEMORYD__V1__REVOKE_REPLY__INIT;

    reply.revoked = request->result.RevokeReply;
    reply_message(&request->call, &reply.base);
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

int serve_name_bind(struct request *request, const Memoryd__V1__NameBindRequest *m)
{
    name_args_from(&request->args.name_bind, m);
    request_note(request, m->buffer, request->args.name_bind.name);
    return op_name_bind(&request->op, &request->args.name_bind);
}

int serve_name_unbind(struct request *request, const Memoryd__V1__NameUnbindRequest *m)
{
    memcpy(request->args.name_unbind, m->name, strlen(m->name) + 1);
    request_note(request, 0, request->args.name_unbind);
    return op_name_unbind(&request->op, request->args.name_unbind);
}
