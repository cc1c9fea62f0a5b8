/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was it the kernel's OOM killer that killed the process of a session?
 *
 * The kernel tells nobody whom it killed for want of memory, but it counts how many in each control group that limits
 * memory. That count is read when a session has its first buffer, since many come and go without one, and again as
 * soon as its process is dead; if it has grown, and the process was killed by SIGKILL, then probably for that. Each
 * kill that is counted explains one death only. A worker reads the count, so that the loop waits for nobody who
 * changes control groups. What it has not read by the time of a death, or cannot read, was none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/tree.h"

struct broker;
struct client;
struct oom_group;
struct session;

/* Those of sessions, by the file in which their kills are counted. */
RB_HEAD(oom_groups, oom_group);

/* A session has a buffer, or its process is here again after another broker: finds its group and the count, unless that
 * was tried before. */
void oom_begin(struct broker *broker, struct session *session);
/* Is it known how many there were? Else it cannot be told whether there are more. */
bool oom_is_known(const struct session *session);

struct oom_look;
typedef void oom_done_fn(struct broker *broker, uint64_t session);

/* The process of a session is dead, and oom_is_known(). `done` is called later, once. NULL: there is no memory. */
struct oom_look *oom_look(struct broker *broker, const struct session *session, oom_done_fn *done);
/* Has a worker looked? */
bool oom_has_looked(const struct oom_look *look);
/* Were there more by then than other deaths have taken? If so, this one has taken one. */
bool oom_take(struct oom_look *look);
/* Nobody wants it any more; `done` is not called after that. */
void oom_look_end(struct oom_look *look);
/* What the client has of this goes. */
void oom_end(struct client *client);
