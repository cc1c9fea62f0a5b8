/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the processes of sessions ended.
 *
 * That a process is dead is known at once, and its session ends then (I6); how it died is known when its parent has
 * reaped it, which may take as long as the parent likes. Nobody waits for that: the history has the end, and the cause
 * is added when the kernel tells it. Until then broker and keeper keep the process's pidfd, of a bounded number of
 * processes; beyond, and on kernels that do not tell (before 6.15), the cause is unknown. Nothing is read from /proc.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "keeper/key.h"

struct broker;
struct session;

struct deaths {
    int epoll;
    unsigned n;
    struct list list;
};

/* What may not fail; then 0 or a negative errno. */
void deaths_prepare(struct deaths *deaths);
int deaths_init(struct broker *broker);
void deaths_deinit(struct broker *broker);
/* After a start: goes on with those that are known to no broker yet, as far as their pidfds were kept. */
void deaths_recover(struct broker *broker);

/* The process of this session is dead; the history has that in the record of this index. Takes the pidfd from the
 * session if it is needed. */
void death_begin(struct broker *broker, struct session *session, uint32_t index);
/* Its session has nothing any more: tells those who have subscribed how it died, if that is known by now. They have
 * been told before what it held. */
void death_tell(struct broker *broker, const struct session *session);
/* Is its pidfd kept, here and by the keeper, until the cause is known? */
bool deaths_have(const struct broker *broker, uint64_t session);
/* See broker_enumerate(). */
int deaths_enumerate(const struct broker *broker, keeper_take_fn *give, void *to);
