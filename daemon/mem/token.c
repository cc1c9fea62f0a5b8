/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: written, checked, used up, and remembered for a while when they have ended.
 */
#include "mem/token.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/steal.h"
#include "log/log.h"
#include "proto/status.h"

#define TOKEN_FORMAT 1

struct token_wire {
    uint32_t broker_id;
    uint8_t format;
    uint8_t flags;
    uint16_t zero;
    uint64_t serial;
    uint8_t secret[MEMORYD_SECRET_SIZE];
};

static_assert(sizeof(struct token_wire) == MEMORYD_TOKEN_SIZE, "layout");

static int compare_serials(const struct token_ended *a, const struct token_ended *b)
{
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

TREE_GENERATE(token_ended_tree, token_ended, link, compare_serials)

int tokens_init(struct tokens *tokens, struct ledger *ledger)
{
    struct token_ended *ended = calloc(TOKENS_REMEMBERED, sizeof(*ended));

    if (!ended)
        return fatal(-ENOMEM);
    *tokens = (struct tokens){.broker_id = ledger_broker_id(ledger), .ended = ended};
    RB_INIT(&tokens->ended_by_serial);
    table_init(&tokens->table, ledger, RECORD_TOKEN, sizeof(struct token), true);
    return 0;
}

void tokens_deinit(struct tokens *tokens)
{
    if (!tokens->ended)
        return;
    table_deinit(&tokens->table);
    bytes_wipe(tokens->ended, TOKENS_REMEMBERED * sizeof(*tokens->ended));
    free(tokens->ended);
    tokens->ended = NULL;
}

int token_new(struct tokens *tokens, const struct token_args *args, struct token **ret, struct problem *problem)
{
    _cleanup_(token_freep) struct token *token = NULL;
    struct token_record *record;
    void *object;
    int r;

    r = table_alloc(&tokens->table, &object, problem);
    if (r)
        return r;
    token = object;
    record = record_fresh(token);
    token->tokens = tokens;
    list_init(&token->in_buffer);
    list_init(&token->in_session);
    r = charge_init(&token->charge, args->account, ACCOUNT_TOKENS, 1, problem);
    if (r)
        return r;
    if (getrandom(record->secret, sizeof(record->secret), 0) != (ssize_t)sizeof(record->secret))
        return fatal(-errno);
    record->buffer = args->buffer->record->head.id;
    record->session = args->session;
    record->expires_at = args->expires_at;
    record->start_time = args->start_time;
    record->rights = args->rights;
    record->flags = args->flags;
    record->uses = args->uses;
    record->uses_left = args->uses;
    record->uid = args->uid;
    record->gid = args->gid;
    record->pid = (uint32_t)args->pid;
    record->maker_uid = args->maker_uid;

    token->buffer = args->buffer;
    list_append(&args->buffer->tokens, &token->in_buffer);
    args->buffer->n_tokens++;
    if (record->flags & TOKEN_KEEPING)
        args->buffer->n_keeping++;
    if (args->in_session)
        list_append(args->in_session, &token->in_session);
    *ret = steal_ptr(&token);
    return 0;
}

struct token *token_free(struct token *token)
{
    if (!token)
        return NULL;
    if (token->buffer) {
        list_remove(&token->in_buffer);
        token->buffer->n_tokens--;
        if (token->record->flags & TOKEN_KEEPING)
            token->buffer->n_keeping--;
    }
    list_remove(&token->in_session);
    charge_deinit(&token->charge);
    bytes_wipe(record_change(&token->tokens->table, token)->secret, sizeof(token->record->secret));
    table_free(&token->tokens->table, token);
    return NULL;
}

void token_end(struct token *token, int status)
{
    struct tokens *tokens = token->tokens;
    struct token_ended *ended = &tokens->ended[tokens->ended_next];

    tokens->ended_next = (tokens->ended_next + 1) % TOKENS_REMEMBERED;
    if (ended->serial)
        RB_REMOVE(token_ended_tree, &tokens->ended_by_serial, ended);
    ended->serial = token->record->head.id;
    ended->status = status;
    memcpy(ended->secret, token->record->secret, sizeof(ended->secret));
    RB_INSERT(token_ended_tree, &tokens->ended_by_serial, ended);
    token_free(token);
}

void token_leave_session(struct token *token)
{
    list_remove(&token->in_session);
    record_change(&token->tokens->table, token)->session = 0;
}

void token_write(const struct token *token, uint8_t wire[static MEMORYD_TOKEN_SIZE])
{
    struct token_wire w = {
        .broker_id = htole32(token->tokens->broker_id),
        .format = TOKEN_FORMAT,
        .flags = token->record->flags & TOKEN_KEEPING,
        .serial = htole64(token->record->head.id),
    };

    memcpy(w.secret, token->record->secret, sizeof(w.secret));
    memcpy(wire, &w, sizeof(w));
    bytes_wipe(&w, sizeof(w));
}

static int refuse_ended(struct problem *problem, int status)
{
    if (status == STATUS_TOKEN_REVOKED)
        return refuse(problem, status, "this token was revoked; ask whoever made it for another");
    return refuse(problem, status, "this token was used as often as it may be, or its time is over; "
                                   "ask whoever made it for another");
}

int tokens_identify(const struct tokens *tokens, const uint8_t wire[static MEMORYD_TOKEN_SIZE], struct token **ret,
                    struct problem *problem)
{
    struct token_wire w;
    struct token_ended key, *ended;
    struct token *token;

    memcpy(&w, wire, sizeof(w));
    if (w.format != TOKEN_FORMAT || w.flags & ~TOKEN_KEEPING || w.zero)
        return refuse(problem, STATUS_TOKEN_MALFORMED, "these 32 bytes are no token; was it copied whole?");
    if (le32toh(w.broker_id) != tokens->broker_id)
        return refuse(problem, STATUS_TOKEN_FOREIGN,
                      "this token is of another broker, or of one that was here before; is the socket the right one?");
    key.serial = le64toh(w.serial);
    token = tokens_find(tokens, key.serial);
    if (token) {
        if (bytes_equal(w.secret, token->record->secret, sizeof(w.secret)) &&
            w.flags == (token->record->flags & TOKEN_KEEPING)) {
            *ret = token;
            return 0;
        }
    } else {
        ended = RB_FIND(token_ended_tree, (struct token_ended_tree *)&tokens->ended_by_serial, &key);
        if (ended && bytes_equal(w.secret, ended->secret, sizeof(w.secret)))
            return refuse_ended(problem, ended->status);
        if (!ended && ledger_id_was_given(tokens->table.ledger, key.serial))
            return refuse(problem, STATUS_TOKEN_STALE, "this token's buffer has ended, or it ended itself long ago");
    }
    return refuse(problem, STATUS_TOKEN_REJECTED, "this is no token that was ever made here");
}

int tokens_check(const struct tokens *tokens, const uint8_t wire[static MEMORYD_TOKEN_SIZE],
                 const struct peer *bearer, uint64_t now, struct token **ret, struct problem *problem)
{
    const struct token_record *record;
    struct token *token;
    int r;

    r = tokens_identify(tokens, wire, &token, problem);
    if (r)
        return r;
    record = token->record;
    if (deadline_passed(record->expires_at, now) || (record->uses && !record->uses_left))
        return refuse_ended(problem, STATUS_TOKEN_EXHAUSTED);
    if (record->flags & TOKEN_ONLY_UID && bearer->uid != record->uid)
        return refuse(problem, STATUS_TOKEN_NOT_YOURS, "this token is for user %" PRIu32 " only", record->uid);
    if (record->flags & TOKEN_ONLY_GID && !peer_in_group(bearer, record->gid))
        return refuse(problem, STATUS_TOKEN_NOT_YOURS, "this token is for members of group %" PRIu32 " only",
                      record->gid);
    if (record->flags & TOKEN_ONLY_PID &&
        ((uint32_t)bearer->pid != record->pid || bearer->start_time != record->start_time))
        return refuse(problem, STATUS_TOKEN_NOT_YOURS, "this token is for the process that had pid %" PRIu32
                      " when it was made only", record->pid);
    *ret = token;
    return 0;
}

bool token_use(struct token *token)
{
    if (!token->record->uses)
        return true;
    assert(token->record->uses_left);
    return --record_change(&token->tokens->table, token)->uses_left;
}

struct token *tokens_find(const struct tokens *tokens, uint64_t serial)
{
    struct token *token = table_find(&tokens->table, serial);

    return token && record_is_live(&token->record->head) ? token : NULL;
}

struct token *tokens_next(const struct tokens *tokens, uint64_t *cursor, unsigned *budget)
{
    return table_next(&tokens->table, cursor, budget);
}
