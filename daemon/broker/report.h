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

/* The session got its memory after it had waited for so long, since there was too little of this. */
void report_wait(struct broker *broker, const struct session *session, const struct shortage *shortage);
/* It has not been taken apart yet. The index of the record. */
uint32_t report_session_ended(struct broker *broker, const struct session *session, enum history_end end);
