/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens are made, opened and revoked. Revoking many of one buffer takes several turns of the loop.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/claims.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/state.h"

/* ---- share ------------------------------------------------------------------------------------------------------- */

static int check_terms(struct op *op, const struct share_args *args)
{
    if (!(args->rights & RIGHT_READ))
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT, "a token must grant READ at least");
    if (args->flags & TOKEN_KEEPING && !args->uses && !args->expiry_ms)
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT,
                      "a token that keeps its buffer needs a number of uses or an expiry");
    return 0;
}

/* "Only this process" is the one that has the pid now. */
static int identity_of(struct op *op, pid_t pid, uint64_t *ret)
{
    _cleanup_(peer_deinit) struct peer peer = PEER_NULL;
    int r = peer_init_pid(&peer, pid);

    if (r == PEER_NO_ROOM)
        return refuse(&op->problem, STATUS_NO_DESCRIPTORS, "the broker has no descriptor left to look at pid %d",
                      (int)pid);
    if (r)
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT, "there is no process %d that the broker can see",
                      (int)pid);
    *ret = peer.identity;
    return 0;
}

static int share_one(struct op *op, struct session *session, uint64_t buffer, struct token_args *new,
                     uint8_t wire[MEMORYD_TOKEN_SIZE], struct problem *problem)
{
    struct token *token;
    struct hold *hold;
    int r = find_hold(op->broker, session, buffer, new->rights | RIGHT_SHARE, &hold, problem);

    if (r)
        return r;
    new->buffer = hold->buffer;
    r = claim_token(op->broker, new, &token, problem);
    if (!r)
        token_write(token, wire);
    return r;
}

int op_share(struct op *op, const struct share_args *args, struct share_result *result)
{
    struct session *session;
    struct token_args new;
    int r = op_session(op, &session);

    if (!r)
        r = check_terms(op, args);
    if (r)
        return r;
    new = (struct token_args){
        .account = session->account,
        .session = op->session,
        .in_session = &session->tokens,
        .maker_uid = session->record->uid,
        .rights = rights_complete(args->rights),
        .flags = args->flags,
        .uses = args->uses,
        .expires_at = args->expiry_ms ? deadline_after_ms(args->expiry_ms) : DEADLINE_NEVER,
        .uid = args->uid,
        .gid = args->gid,
        .pid = args->pid,
    };
    if (args->flags & TOKEN_ONLY_PID) {
        r = identity_of(op, args->pid, &new.identity);
        if (r)
            return r;
    }
    result->n = args->buffers.n;
    for (uint32_t i = 0; i < args->buffers.n; i++) {
        struct problem problem = PROBLEM_NULL;

        memset(result->tokens[i], 0, sizeof(result->tokens[i]));
        r = share_one(op, session, args->buffers.id[i], &new, result->tokens[i], &problem);
        if (r < 0)
            return r;
        if (r)
            item_failed(&op->problem, &problem, i);
        result->status[i] = r;
    }
    return 0;
}

/* ---- open -------------------------------------------------------------------------------------------------------- */

/* The use is counted last, so that an open that fails costs none. */
static int open_one(struct op *op, struct session *session, const struct open_args *args, uint32_t i,
                    struct opened *result, struct problem *problem)
{
    struct broker *broker = op->broker;
    struct buffer *buffer;
    struct claim claim;
    struct token *token;
    int r = tokens_check(&broker->tokens, args->tokens[i], &session->peer, clock_now_ns(), &token, problem);

    if (r)
        return r;
    buffer = token->buffer;
    r = foreign_is_wanted(buffer, args->foreign, problem);
    if (r)
        return r;
    claim = (struct claim){session, buffer, token->record->rights, args->rights};
    r = claim_open(broker, &claim, args->want_fds, &result->items[i], problem);
    if (r)
        return r;
    if (!token_use(token)) {
        drop_token(broker, token, STATUS_TOKEN_EXHAUSTED);
        lifecycle_claim_gone(broker, buffer);
    }
    return 0;
}

int op_open(struct op *op, const struct open_args *args, struct opened *result)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    result->n = args->n;
    result->with_fds = args->want_fds;
    fdset_init(&result->fds);
    for (uint32_t i = 0; i < args->n; i++) {
        struct problem problem = PROBLEM_NULL;

        r = open_one(op, session, args, i, result, &problem);
        if (r) {
            item_failed(&op->problem, &problem, i);
            result->items[i] = (struct opened_item){.status = r};
        }
    }
    return 0;
}

/* ---- revoke ------------------------------------------------------------------------------------------------------ */

static void end_token(struct broker *broker, struct token *token)
{
    struct buffer *buffer = token->buffer;

    drop_token(broker, token, STATUS_TOKEN_REVOKED);
    lifecycle_claim_gone(broker, buffer);
}

static int revoke_serial(struct op *op, const struct session *session, uint64_t serial)
{
    struct token *token = tokens_find(&op->broker->tokens, serial);
    const struct hold *hold;

    if (!token)
        return no_such(op->broker, &op->problem, serial, "token");
    hold = session_hold(session, token->record->buffer);
    if (token->record->session != op->session && !is_admin(op->broker, session) &&
        !(hold && hold->record->rights & RIGHT_MANAGE))
        return refuse(&op->problem, STATUS_NO_RIGHT,
                      "only its maker, a holder with MANAGE and administrators may revoke token %llu",
                      (unsigned long long)serial);
    op->buffer = token->record->buffer;
    end_token(op->broker, token);
    return 0;
}

/* Tokens dropped in one turn, since many may be revoking at once. */
#define REVOKE_SLICE 8

/* Of all tokens that a buffer had when the request came. */
struct revocation {
    struct op_state state;
    struct broker *broker;
    uint64_t buffer;
    uid_t uid;         /* whose request it is */
    uint64_t end;      /* the first serial that is not one of them */
    uint32_t *revoked; /* the result, which is the caller's */
};

/* Are there more? The list is in the order of serials, but for tokens from before this broker's start, which come
 * first. */
static bool revoke_some(struct revocation *revocation)
{
    struct buffer *buffer = buffers_find(&revocation->broker->buffers, revocation->buffer);

    for (unsigned i = 0; buffer && !buffer_is_unreferenced(buffer); i++) {
        struct list *first = list_first(&buffer->tokens);
        struct token *token = first ? container_of(first, struct token, in_buffer) : NULL;

        if (!token || token->record->head.id >= revocation->end)
            return false;
        if (i == REVOKE_SLICE)
            return true;
        ++*revocation->revoked;
        /* with the last that keeps it the buffer ends, and loses the others */
        end_token(revocation->broker, token);
        buffer = buffers_find(&revocation->broker->buffers, revocation->buffer);
    }
    return false;
}

static void revoke_turn(struct op_state *state)
{
    struct revocation *revocation = container_of(state, struct revocation, state);

    if (!state->cancel_status && revoke_some(revocation)) {
        pending_call_in_turn(state, revocation->uid, revoke_turn);
        return;
    }
    pending_end(state, state->cancel_status);
    free(revocation);
}

static int revoke_all(struct op *op, const struct session *session, uint64_t buffer, uint32_t *revoked)
{
    struct revocation all = {
        .broker = op->broker,
        .uid = session->record->uid,
        .buffer = buffer,
        .end = ledger_header(op->broker->ledger)->next_id,
        .revoked = revoked,
    };
    struct revocation *revocation;

    *revoked = 0;
    if (!revoke_some(&all))
        return 0;
    revocation = malloc(sizeof(*revocation));
    if (!revocation)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory to revoke all of so many; ask again");
    *revocation = all;
    pending_begin(&op->broker->pending, &revocation->state, op, NULL);
    pending_call_in_turn(&revocation->state, all.uid, revoke_turn);
    return OP_PENDING;
}

int op_revoke(struct op *op, const struct revoke_args *args, uint32_t *revoked)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct token *token;
    struct hold *hold;
    int r = op_session(op, &session);

    if (r)
        return r;
    if (args->by_token) {
        /* whoever has the secret may revoke the token */
        r = tokens_identify(&broker->tokens, args->token, &token, &op->problem);
        if (r)
            return r;
        op->buffer = token->record->buffer;
        end_token(broker, token);
        *revoked = 1;
        return 0;
    }
    if (args->serial) {
        r = revoke_serial(op, session, args->serial);
        if (!r)
            *revoked = 1;
        return r;
    }
    if (!buffers_find(&broker->buffers, args->buffer))
        return no_such(broker, &op->problem, args->buffer, "buffer");
    if (!is_admin(broker, session) || session_hold(session, args->buffer)) {
        r = find_hold(broker, session, args->buffer, RIGHT_MANAGE, &hold, &op->problem);
        if (r)
            return r;
    }
    return revoke_all(op, session, args->buffer, revoked);
}
