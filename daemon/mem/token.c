/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: written, checked, used up, and remembered for a while when they have ended.
 */
#include "mem/token.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "log/log.h"
#include "mem/rights.h"
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

static int compare_serials(const struct ended_token *a, const struct ended_token *b)
{
    return a->record->serial < b->record->serial ? -1 : a->record->serial > b->record->serial;
}

TREE_GENERATE(ended_token_tree, ended_token, by_serial, compare_serials)

static int compare_makers(const struct token *a, const struct token *b)
{
    const struct token_record *x = a->record, *y = b->record;

    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    if (x->maker_uid != y->maker_uid)
        return x->maker_uid < y->maker_uid ? -1 : 1;
    return x->head.id < y->head.id ? -1 : x->head.id > y->head.id;
}

TREE_GENERATE(keeping_token_tree, token, by_maker, compare_makers)

void tokens_init(struct tokens *tokens, struct ledger *ledger)
{
    *tokens = (struct tokens){.broker_id = ledger_broker_id(ledger)};
    RB_INIT(&tokens->keeping);
    RB_INIT(&tokens->ended_by_serial);
    table_init(&tokens->table, ledger, RECORD_TOKEN, sizeof(struct token), true);
    table_init(&tokens->ended, ledger, RECORD_ENDED_TOKEN, sizeof(struct ended_token), true);
}

void tokens_deinit(struct tokens *tokens)
{
    table_deinit(&tokens->table);
    table_deinit(&tokens->ended);
}

static void token_enter(struct token *token, struct buffer *buffer, struct list *in_session)
{
    token->buffer = buffer;
    list_append(&buffer->tokens, &token->in_buffer);
    buffer->n_tokens++;
    if (token->record->flags & TOKEN_KEEPING) {
        buffer->n_keeping++;
        RB_INSERT(keeping_token_tree, &token->tokens->keeping, token);
    }
    if (in_session)
        list_append(in_session, &token->in_session);
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
    record->identity = args->identity;
    record->rights = args->rights;
    record->flags = args->flags;
    record->uses = args->uses;
    record->uses_left = args->uses;
    record->uid = args->uid;
    record->gid = args->gid;
    record->pid = (uint32_t)args->pid;
    record->maker_uid = args->maker_uid;

    token_enter(token, args->buffer, args->in_session);
    audit_after(&tokens->table, token);
    *ret = steal_ptr(&token);
    return 0;
}

enum table_verdict token_recover(struct tokens *tokens, struct token *token, struct buffer *buffer,
                                 struct account *account, struct list *in_session, const char **why)
{
    const struct token_record *record = token->record;

    if (record->rights & ~(uint32_t)RIGHTS_ALL || record->flags & ~(uint32_t)TOKEN_FLAGS_ALL ||
        record->uses_left > record->uses || record->maker_uid == (uid_t)-1) {
        *why = "its terms make no sense";
        return TABLE_QUARANTINE;
    }
    if (!buffer)
        log_warning("token %" PRIu64 " has ended: its buffer, %" PRIu64 ", is gone", record->head.id, record->buffer);
    if (!buffer || buffer->record->state != BUFFER_LIVE)
        return TABLE_DROP;
    token->tokens = tokens;
    list_init(&token->in_buffer);
    list_init(&token->in_session);
    charge_restore(&token->charge, account, ACCOUNT_TOKENS, 1);
    token_enter(token, buffer, in_session);
    if (!in_session && record->session)
        record_change(&tokens->table, token)->session = 0;
    return TABLE_KEEP;
}

struct token *token_free(struct token *token)
{
    if (!token)
        return NULL;
    if (token->buffer) {
        audit_before(&token->tokens->table, token);
        list_remove(&token->in_buffer);
        token->buffer->n_tokens--;
        if (token->record->flags & TOKEN_KEEPING) {
            token->buffer->n_keeping--;
            RB_REMOVE(keeping_token_tree, &token->tokens->keeping, token);
        }
    }
    list_remove(&token->in_session);
    charge_deinit(&token->charge);
    explicit_bzero(record_change(&token->tokens->table, token)->secret, sizeof(token->record->secret));
    table_free(&token->tokens->table, token);
    return NULL;
}

/* ---- what ended -------------------------------------------------------------------------------------------------- */

static void ended_token_forget(struct tokens *tokens, struct ended_token *ended)
{
    RB_REMOVE(ended_token_tree, &tokens->ended_by_serial, ended);
    explicit_bzero(record_change(&tokens->ended, ended)->secret, sizeof(ended->record->secret));
    table_free(&tokens->ended, ended);
}

static void ended_token_remember(struct tokens *tokens, const struct token_record *token, int status)
{
    struct ended_token_record *record;
    struct ended_token *ended;
    void *object;

    while (table_count(&tokens->ended) >= TOKENS_REMEMBERED)
        ended_token_forget(tokens, table_oldest(&tokens->ended));
    /* without memory for it, its bearer is told no more than that it ended */
    if (table_alloc(&tokens->ended, &object, NULL))
        return;
    ended = object;
    record = record_fresh(ended);
    record->serial = token->head.id;
    record->status = (uint32_t)status;
    memcpy(record->secret, token->secret, sizeof(record->secret));
    record_commit(&tokens->ended, ended);
    RB_INSERT(ended_token_tree, &tokens->ended_by_serial, ended);
}

void token_end(struct token *token, int status)
{
    ended_token_remember(token->tokens, token->record, status);
    token_free(token);
}

static enum table_verdict recover_ended(void *userdata, void *object, const char **why)
{
    struct tokens *tokens = userdata;
    struct ended_token *ended = object;
    const struct ended_token_record *record = ended->record;

    *why = "it says of no token how that ended";
    if (!ledger_id_was_given(tokens->ended.ledger, record->serial) ||
        (record->status != STATUS_TOKEN_REVOKED && record->status != STATUS_TOKEN_EXHAUSTED))
        return TABLE_QUARANTINE;
    *why = "another one is of the same token";
    return RB_INSERT(ended_token_tree, &tokens->ended_by_serial, ended) ? TABLE_QUARANTINE : TABLE_KEEP;
}

int tokens_recover_ended(struct tokens *tokens)
{
    return table_recover(&tokens->ended, recover_ended, tokens);
}

void tokens_forget_ended(struct tokens *tokens)
{
    struct ended_token *ended;

    while ((ended = table_oldest(&tokens->ended)))
        ended_token_forget(tokens, ended);
}

/* ---- alive ------------------------------------------------------------------------------------------------------- */

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
    explicit_bzero(&w, sizeof(w));
}

static int refuse_ended(struct problem *problem, int status)
{
    if (status == STATUS_TOKEN_REVOKED)
        return refuse(problem, status, "this token was revoked; ask its maker for another");
    return refuse(problem, status,
                  "this token was used as often as it may be, or its time is over; ask its maker for another");
}

int tokens_identify(const struct tokens *tokens, const uint8_t wire[static MEMORYD_TOKEN_SIZE], struct token **ret,
                    struct problem *problem)
{
    struct token_wire w;
    struct ended_token_record wanted = {.serial = 0};
    struct ended_token key = {.record = &wanted}, *ended;
    struct token *token;

    memcpy(&w, wire, sizeof(w));
    if (w.format != TOKEN_FORMAT || w.flags & ~TOKEN_KEEPING || w.zero)
        return refuse(problem, STATUS_TOKEN_MALFORMED, "these 32 bytes are no token; was it copied whole?");
    if (le32toh(w.broker_id) != tokens->broker_id)
        return refuse(problem, STATUS_TOKEN_FOREIGN,
                      "this token is of another broker, or of one that was here before; is the socket the right one?");
    wanted.serial = le64toh(w.serial);
    token = tokens_find(tokens, wanted.serial);
    if (token) {
        if (bytes_equal(w.secret, token->record->secret, sizeof(w.secret)) &&
            w.flags == (token->record->flags & TOKEN_KEEPING)) {
            *ret = token;
            return 0;
        }
    } else {
        ended = RB_FIND(ended_token_tree, (struct ended_token_tree *)&tokens->ended_by_serial, &key);
        if (ended && bytes_equal(w.secret, ended->record->secret, sizeof(w.secret)))
            return refuse_ended(problem, (int)ended->record->status);
        if (!ended && ledger_id_was_given(tokens->table.ledger, wanted.serial))
            return refuse(problem, STATUS_TOKEN_STALE, "this token's buffer has ended, or it ended itself long ago");
    }
    return refuse(problem, STATUS_TOKEN_REJECTED, "this is no token that was ever made here");
}

int tokens_check(const struct tokens *tokens, const uint8_t wire[static MEMORYD_TOKEN_SIZE], const struct peer *bearer,
                 uint64_t now, struct token **ret, struct problem *problem)
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
    if (record->flags & TOKEN_ONLY_PID && !peer_is_process(bearer, (pid_t)record->pid, record->identity))
        return refuse(problem, STATUS_TOKEN_NOT_YOURS,
                      "this token is for the process that had pid %" PRIu32 " when it was made only", record->pid);
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

struct token *tokens_keeping(const struct tokens *tokens, const struct buffer *buffer, uid_t from)
{
    struct token_record wanted = {.buffer = buffer->record->head.id, .maker_uid = from};
    struct token key = {.record = &wanted};
    struct token *token = RB_NFIND(keeping_token_tree, (struct keeping_token_tree *)&tokens->keeping, &key);

    return token && token->buffer == buffer ? token : NULL;
}

struct token *tokens_find(const struct tokens *tokens, uint64_t serial)
{
    struct token *token = table_find(&tokens->table, serial);

    return token && record_is_live(&token->record->head) && !buffer_is_unreferenced(token->buffer) ? token : NULL;
}
