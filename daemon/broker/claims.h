/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, tokens and holds as they come and go.
 *
 * Each is charged to somebody, may keep a buffer alive, may expire, and may be news to others. The modules of these
 * objects know nothing of timers and events, so operations make and end them by these functions only. None of them
 * decides what becomes of the buffer: the caller ends with lifecycle_claim_gone().
 */
#pragma once

#include <stdbool.h>
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

/* Makes a hold, and a descriptor with the same rights may leave if `with_fd`. NO_RIGHT, PUBLISHED, LIMIT, NO_MEMORY,
 * outcomes of hold_export(). */
int claim_open(struct broker *broker, const struct claim *claim, bool with_fd, struct opened_item *ret,
               struct problem *problem);

/* Makes what an allocation grants on its new buffers: a hold on each and, if asked for, descriptors, tokens and a name,
 * whose key is `name`. All or nothing. */
int claim_batch(struct session *session, struct batch *batch, const struct alloc_spec *spec,
                const struct name_key *name, struct opened *ret, struct problem *problem);

/* `key` is that of args->name. */
int claim_name(struct broker *broker, struct session *session, struct buffer *buffer, const struct name_args *args,
               const struct name_key *key, struct problem *problem);
/* `told`: subscribers get an event. */
void drop_name(struct broker *broker, struct name *name, bool told);
/* The session that bound it has ended: its policy decides. The buffer may have ended afterwards. */
void name_outlives(struct broker *broker, struct name *name);

/* For those that another broker left, whose time runs on. 0 or -ENOMEM. */
int name_arm_timer(struct broker *broker, struct name *name);
int token_arm_timer(struct broker *broker, struct token *token);

int claim_token(struct broker *broker, const struct token_args *args, struct token **ret, struct problem *problem);
/* `status` is what its bearers are told from now on; 0: its buffer has ended. */
void drop_token(struct broker *broker, struct token *token, int status);
