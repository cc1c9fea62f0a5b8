/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions end (I6).
 *
 * A session ends when it says so, when its process is dead, or when it has been without a connection for the grace
 * time and nothing that it holds is open or mapped anywhere: until then it lingers. From the first moment of its end
 * no operation finds it any more; what it has is taken apart in slices (op_session.c).
 */
#pragma once

#include <stdint.h>

struct broker;
struct session;

/* What waits for it is ended with this status. */
void session_end(struct broker *broker, struct session *session, int status);
/* It has been without a connection since record->lost_at: its grace begins, or goes on. 0 or -ENOMEM. */
int session_begin_grace(struct broker *broker, struct session *session);
/* Something let go of a buffer, or lost it: ask again about those that linger because of it; 0 = any. */
void sessions_stop_lingering(struct broker *broker, uint64_t buffer);
