/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I5, proven on the live broker.
 *
 * A check walks all records and adds up what they cost, as if nobody had ever charged anything, then compares that
 * with what is charged. It takes as many turns of the loop as it needs, and clients go on meanwhile. So it must
 * learn of what changes behind its back: buffers and reservations tell of it themselves (struct audit), and the
 * functions that make and end tokens, names and sessions call check_charged() after, and check_crediting() before. A
 * check that has been there already takes note.
 */
#pragma once

#include "broker/state.h"

enum check_kind { CHECK_BUFFER, CHECK_TOKEN, CHECK_NAME, CHECK_RESERVATION, CHECK_SESSION, CHECK_KINDS };

/* When the broker's parts are there. */
void check_init(struct broker *broker);

void check_follow(struct broker *broker, enum check_kind kind, const void *object, int sign);

/* `object` costs something from now on. */
static inline void check_charged(struct broker *broker, enum check_kind kind, const void *object)
{
    if (broker->checks)
        check_follow(broker, kind, object, 1);
}

/* `object` is about to end or to be paid by somebody else. */
static inline void check_crediting(struct broker *broker, enum check_kind kind, const void *object)
{
    if (broker->checks)
        check_follow(broker, kind, object, -1);
}
