/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker enters into the history (history/history.h), with the numbers of the moment. Refusals come from rpc/,
 * by op_refused().
 */
#pragma once

#include <stdint.h>

#include "base/problem.h"
#include "history/history.h"

struct broker;
struct session;

/* Another broker's history, or a new one. 0 or a negative errno. */
int report_init(struct broker *broker);
void report_deinit(struct broker *broker);

/* Who has how much of what there is too little of: at the same moment as the shortage. */
struct report_holders {
    uint64_t mine;     /* the user's who is asked about */
    uint64_t most;     /* of one user, */
    uint32_t most_uid; /* and whose; -1: nobody has any, or that is not known */
};
void report_find_holders(const struct broker *broker, uint32_t uid, const struct shortage *shortage,
                         struct report_holders *ret);

/* The session got its memory after it had waited for so long, since there was too little of this, which they had. */
void report_wait(struct broker *broker, const struct session *session, const struct shortage *shortage,
                 const struct report_holders *holders);
/* It has not been taken apart yet. The index of the record. */
uint32_t report_session_ended(struct broker *broker, const struct session *session, enum history_end end);
