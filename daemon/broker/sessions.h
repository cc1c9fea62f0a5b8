/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of sessions (I6), and the addresses that their processes have occupied.
 *
 * A session ends when it says so, when its process is dead, or when it has been without a connection for the grace
 * time and nothing that it holds is open or mapped anywhere: until then it lingers. From the first moment of its end
 * no operation finds it any more. What it still has, holds, names, tokens, reservations and the replies that were kept
 * for it, is given up in as many turns of the loop as that takes.
 */
#pragma once

#include <stdint.h>

#include "history/history.h"

struct broker;
struct hello_args;
struct session;
struct timer;

/* Its operations in progress end with STALE. */
void session_end(struct broker *broker, struct session *session, enum history_end how);
/* It has had no connection since record->lost_at: its grace begins, or goes on. 0 or -ENOMEM. */
int session_begin_grace(struct broker *broker, struct session *session);
/* Somebody let go of a buffer: looks again at sessions that linger because of it; 0: of any. */
void sessions_stop_lingering(struct broker *broker, uint64_t buffer);

/* A turn of taking apart sessions that have ended; broker->ending_turn. */
void sessions_take_apart(struct timer *timer);
/* The ends of those in broker->gone are committed. */
void sessions_forget(struct broker *broker);

/* Reserves the addresses that its process has occupied by what other brokers gave it, as far as they are in the arena
 * and its limits allow. */
void session_occupies(struct broker *broker, struct session *session, const struct hello_args *args);
/* It asks for addresses of these: they are reserved no more. */
void session_vacates(struct broker *broker, struct session *session, uint64_t start, uint64_t size);
