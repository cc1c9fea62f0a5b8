/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: 32 bytes that let their bearer open a buffer.
 *
 *      0   4   id of the broker
 *      4   1   format, 1
 *      5   1   flags: bit 0 = keeping
 *      6   2   zero
 *      8   8   serial: the id of its record
 *     16  16   secret, random
 *
 * Numbers are little-endian. The serial only finds the record; the secret opens, and is compared in constant time
 * before anything else about the token is examined. So a guessed serial tells whether it is of a token that lives or
 * lived recently (REJECTED) or of something else (STALE if that id was given out, REJECTED if not), as counting does
 * anyway, and nothing of the buffer, the terms, or how a token ended.
 *
 * The last TOKENS_REMEMBERED tokens that ended are remembered with their secrets, so that their bearers are told why,
 * by a later broker too. Older ones are STALE, and so are those of a buffer from the moment that its life is over,
 * though it may take a while until all of many are gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "account/account.h"
#include "base/list.h"
#include "base/problem.h"
#include "base/tree.h"
#include "ledger/table.h"
#include "mem/buffer.h"
#include "proto/limits.h"
#include "sys/peer.h"

/* ShareRequest.Flag on the wire. */
enum token_flag {
    TOKEN_KEEPING = 1,
    TOKEN_ONLY_UID = 2,
    TOKEN_ONLY_GID = 4,
    TOKEN_ONLY_PID = 8,
};

#define TOKEN_FLAGS_ALL   (TOKEN_KEEPING | TOKEN_ONLY_UID | TOKEN_ONLY_GID | TOKEN_ONLY_PID)
#define TOKENS_REMEMBERED 4096

struct ended_token {
    OBJECT(struct ended_token_record);
    RB_ENTRY(ended_token) by_serial;
};

RB_HEAD(ended_token_tree, ended_token);

struct token;
RB_HEAD(keeping_token_tree, token);

struct tokens {
    struct table table;
    uint32_t broker_id;
    struct keeping_token_tree keeping; /* by buffer and maker */
    struct table ended;                /* at most TOKENS_REMEMBERED: the next one replaces the oldest */
    struct ended_token_tree ended_by_serial;
};

struct token {
    OBJECT(struct token_record);
    struct tokens *tokens;
    struct buffer *buffer;
    struct list in_buffer;
    struct list in_session;   /* of the maker, until it ends */
    RB_ENTRY(token) by_maker; /* of a keeping one */
    struct charge charge;
};

struct token_args {
    struct buffer *buffer;
    struct account *account; /* who pays */
    uint64_t session;        /* of the maker */
    struct list *in_session; /* its list */
    uid_t maker_uid;
    uint32_t rights;
    uint32_t flags;
    uint32_t uses;       /* 0 = any number of times */
    uint64_t expires_at; /* DEADLINE_NEVER */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    uint64_t identity; /* of that process */
};

void tokens_init(struct tokens *tokens, struct ledger *ledger);
void tokens_deinit(struct tokens *tokens);

/* Takes over those that ended under another broker. 0 or a negative errno. */
int tokens_recover_ended(struct tokens *tokens);
/* No later broker is to know of any. */
void tokens_forget_ended(struct tokens *tokens);

/* INTENT; commit its record when the rest is done. 0, LIMIT, NO_MEMORY, or a negative errno. */
int token_new(struct tokens *tokens, const struct token_args *args, struct token **ret, struct problem *problem);
/* Makes a token of its record again (table.h). `buffer` is NULL if it is gone, `in_session` if its maker's session
 * is. */
enum table_verdict token_recover(struct tokens *tokens, struct token *token, struct buffer *buffer,
                                 struct account *account, struct list *in_session, const char **why);
/* Leaves nothing behind, for a half-built token, or when its buffer ends. NULL is fine. */
struct token *token_free(struct token *token);
DEFINE_CLEANUP(struct token *, token_free);
/* Ends it for a reason that its bearer is told: TOKEN_EXHAUSTED, TOKEN_REVOKED. */
void token_end(struct token *token, int status);

/* Its maker's session has ended. */
void token_leave_session(struct token *token);

/* The 32 bytes. */
void token_write(const struct token *token, uint8_t wire[static MEMORYD_TOKEN_SIZE]);

/*
 * May this process open with these bytes now? 0 and the token; TOKEN_MALFORMED, TOKEN_FOREIGN, TOKEN_STALE,
 * TOKEN_REJECTED, TOKEN_REVOKED, TOKEN_EXHAUSTED (its time is over, too), TOKEN_NOT_YOURS. Nothing is used up.
 */
int tokens_check(const struct tokens *tokens, const uint8_t wire[static MEMORYD_TOKEN_SIZE], const struct peer *bearer,
                 uint64_t now, struct token **ret, struct problem *problem);
/* The same without asking whether the process may, for revoking it. */
int tokens_identify(const struct tokens *tokens, const uint8_t wire[static MEMORYD_TOKEN_SIZE], struct token **ret,
                    struct problem *problem);
/* Takes one use from it. False: it was the last one, and the caller ends the token (TOKEN_EXHAUSTED) after the open. */
bool token_use(struct token *token);

/* A token that keeps this buffer, of the lowest maker's uid from `from` on; NULL if there is none. O(log n). */
struct token *tokens_keeping(const struct tokens *tokens, const struct buffer *buffer, uid_t from);
/* A LIVE token of a buffer whose life is not over; NULL if there is none. */
struct token *tokens_find(const struct tokens *tokens, uint64_t serial);
