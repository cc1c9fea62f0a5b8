/* SPDX-License-Identifier: Apache-2.0 */
/* What another broker left, in three steps. */
#pragma once

#include <stdint.h>

struct broker;

/* The ledger: another broker's, or a new one. 0, BROKER_E_LEDGER, or a negative errno. */
int recover_ledger(struct broker *broker);
/* Objects, indexes and charges of all that is in it. 0 or a negative errno. */
int recover_records(struct broker *broker);
/* Then: times, ends, and what happened meanwhile. 0 or a negative errno. */
int recover_lifecycles(struct broker *broker);
/* Records that make no sense. */
uint64_t quarantined_records(const struct broker *broker);
