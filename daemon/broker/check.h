/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I5, proven on the live broker.
 *
 * A check walks all records and adds up what they cost, as if nobody had ever charged anything, then compares that
 * with what is charged. It takes as many turns of the loop as it needs, and clients go on meanwhile. So it must
 * learn of what changes behind its back: whatever makes, changes and ends an object that costs something tells its
 * table so (table_audit_fn), and a check that has been there already takes note.
 */
#pragma once

#include "broker/state.h"

/* When the broker's tables are there. */
void check_init(struct broker *broker);
