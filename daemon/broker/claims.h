/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, tokens and holds as they come and go.
 *
 * Each of them costs somebody something, may keep a buffer alive, may have a time, and others may want to know.
 * The objects' own rooms know nothing of times and events, so operations make and end them only by these functions.
 * None of them asks what becomes of the buffer: that is lifecycle_claim_gone(), for the caller, once all is done.
 */
#pragma once

#include <stdint.h>

#include "base/problem.h"
#include "broker/operations.h"
#include "mem/buffer.h"
#include "mem/name.h"
#include "mem/token.h"
#include "session/hold.h"

struct batch;

int claim_hold(struct broker *broker, struct session *session, struct buffer *buffer, uint32_t rights,
               struct hold **ret, struct problem *problem);

/* What a token or a name lets its bearer do. */
struct claim {
    struct session *session;
    struct buffer *buffer;
    uint32_t may;
    uint32_t rights; /* that are wanted of these; 0 = all */
};

/* A hold and, unless `ret_fd` is NULL, a descriptor that grants as much. NO_RIGHT, PUBLISHED, LIMIT, NO_MEMORY, and
 * what buffer_export() says. */
int claim_open(struct broker *broker, const struct claim *claim, struct opened_item *ret, int *ret_fd,
               struct problem *problem);

/* What whoever allocated them claims of new buffers, which are LIVE and without claims: a hold on each and, as it was
 * asked for, descriptors, tokens and a name, whose key is `name`. All or nothing. */
int claim_batch(struct session *session, struct batch *batch, const struct alloc_spec *spec,
                const struct name_key *name, struct opened *ret, struct problem *problem);

/* `key` is that of args->name. */
int claim_name(struct broker *broker, struct session *session, struct buffer *buffer, const struct name_args *args,
               const struct name_key *key, struct problem *problem);
/* `told` = say so to those who want to know. */
void drop_name(struct broker *broker, struct name *name, bool told);
/* The session that bound it has ended: what its policy says. The buffer may be over. */
void name_outlives(struct broker *broker, struct name *name);

/* One that another broker left: its time runs on. 0 or -ENOMEM. */
int name_arm_timer(struct broker *broker, struct name *name);
int token_arm_timer(struct broker *broker, struct token *token);

int claim_token(struct broker *broker, const struct token_args *args, struct token **ret, struct problem *problem);
/* With the status that its bearer is told; 0 = because its buffer ended. */
void drop_token(struct broker *broker, struct token *token, int status);
