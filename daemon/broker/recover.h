/* SPDX-License-Identifier: Apache-2.0 */
/* What another broker left is taken over in three steps. */
#pragma once

#include <stdint.h>

#include "keeper/link.h"

struct broker;
struct broker_options;
struct session;

/* The ledger: another broker's, or a new one. 0, BROKER_E_LEDGER, or a negative errno. */
int recover_ledger(struct broker *broker);
/* Objects, indexes and charges of all that is in it. 0 or a negative errno. */
int recover_records(struct broker *broker);
/* Then timers, buffers that end, and what happened meanwhile. 0 or a negative errno. */
int recover_lifecycles(struct broker *broker);
/* A session that goes on, with its claims. 0 or a negative errno. */
int session_restore(struct broker *broker, struct session *session);

/* ---- what the keeper hands over: handed.c ------------------------------------------------------------------------ */

int handed_sort(struct broker_options *options);
/* NULL if there is none. */
struct inherited_fd *handed_find(struct broker *broker, enum keeper_kind kind, uint64_t id);
/* Its descriptor, likewise. */
int *handed_fd(struct broker *broker, enum keeper_kind kind, uint64_t id);
/* To be called when all records are recovered: closes what belongs to none of them, here and in the keeper, except what
 * quarantined ones may want. */
void handed_drop_rest(struct broker *broker);

/* ---- quarantine -------------------------------------------------------------------------------------------------- */

/* The number of damaged records. */
uint64_t quarantined_records(const struct broker *broker);
