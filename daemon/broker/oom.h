/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was it the kernel's OOM killer that killed the process of a session?
 *
 * The kernel tells nobody whom it killed for want of memory, but it counts how many in each control group that limits
 * memory. That count is read when a session has begun and again as soon as its process is dead; if it has grown, and
 * the process was killed by SIGKILL, then probably for that. A worker reads it, so that the loop waits for nobody who
 * changes control groups. What it has not read by the time of a death, or cannot read, was none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct client;
struct session;

/* A session has begun, or its process is here again after another broker: finds the group and its count. */
void oom_begin(struct broker *broker, struct session *session);
/* Is it known how many there were? Else it cannot be told whether there are more. */
bool oom_is_known(const struct session *session);

struct oom_look;
typedef void oom_done_fn(struct broker *broker, uint64_t session, bool more);

/* The process of a session is dead, and oom_is_known(). `done` is called later, once. NULL: there is no memory. */
struct oom_look *oom_look(struct broker *broker, const struct session *session, oom_done_fn *done);
/* Nobody wants that any more, before `done` was called, which it is not then. */
void oom_cancel(struct oom_look *look);
/* What the client has of this goes. */
void oom_end(struct client *client);
