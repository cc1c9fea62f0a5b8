/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session that has ended still has is given up, in as many turns of the loop as that takes: holds, names,
 * tokens, reservations, and the replies that were kept for it.
 */
#pragma once

struct broker;
struct timer;

/* A turn of those that have ended; broker->ending_turn. */
void sessions_take_apart(struct timer *timer);
/* The ends of those that are gone are committed. */
void sessions_forget(struct broker *broker);
