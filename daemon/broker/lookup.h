/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation begins with: which session asks, what it asks about, and whether it may.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/problem.h"
#include "broker/operations.h"
#include "session/hold.h"
#include "session/session.h"

/* What the broker keeps of a session beside its record; session->userdata. */
struct client {
    struct session *session;
    uint64_t id;
    bool ended;             /* being taken apart; no operation finds it any more */
    bool looked_at;         /* a worker looks at its process, since its grace is over */
    bool has_release_log;   /* to be dropped by the keeper when that is complete */
    struct list in_ending;  /* in broker->ending; in broker->gone when that is complete, until it is committed */
    struct list subscribed; /* in broker->subscribers, if it wants any events */
    struct subscriptions *subscriptions; /* if it wants any of single buffers or names, or of those that are queued */
    bool died;                           /* it has ended since its process died; how, while that is not told yet: */
    uint32_t death_end, death_status;
    bool oom_begun;
    struct oom_group *oom;      /* where it is counted that the kernel kills for want of memory; NULL: not known */
    uint64_t oom_before;        /* so many, when it began */
    struct oom_look *finds_oom; /* a worker looks for both; or NULL */
    struct list lingering;      /* its grace is over, but `in_use` is open or mapped somewhere (I6) */
    uint64_t in_use;
    uint64_t taken;   /* slots of its cache whose holds have ended without a commit yet: caches.c */
    uint64_t scanned; /* so far, of its holds in the order of their buffers' ids, for use: session_end.c */
};

static inline struct client *client_of(const struct session *session)
{
    return session->userdata;
}

/* The owner of the buffers that this session makes. */
static inline struct buffer_owner owner_of(const struct session *session)
{
    const struct session_record *record = session->record;

    return (struct buffer_owner){session->account, record->head.id, (pid_t)record->pid};
}

/* NULL if there is none, or if it is being taken apart. */
struct session *find_session(const struct broker *broker, uint64_t id);
/* Finds the session that asks. 0; NO_SESSION or STALE. */
int op_session(struct op *op, struct session **ret);
bool is_admin(const struct broker *broker, const struct session *session);
bool is_admin_uid(const struct broker *broker, uid_t uid);

/* May all sessions of the user know of the buffer: is it the user's, or its cost? */
bool user_may_see_buffer(const struct broker *broker, uid_t uid, const struct buffer *buffer);
/* May the session know of the buffer: is it its user's, or does it hold it? */
bool may_see_buffer(const struct broker *broker, const struct session *session, const struct buffer *buffer);
/* The same for a request: 0 or NO_RIGHT. */
int op_may_see(struct op *op, const struct session *session, const struct buffer *buffer);
/* … and of all who hold it? Who was only given it sees its own part. */
bool may_see_sharing(const struct broker *broker, const struct session *session, const struct buffer *buffer);

/* Why there is no such thing: STALE or NO_SUCH_ID. `what` is a noun. */
int no_such(struct broker *broker, struct problem *problem, uint64_t id, const char *what);

/*
 * Finds the session's hold on a LIVE buffer, with at least these rights. STALE, NO_SUCH_ID, NO_RIGHT (also if it does
 * not hold it at all).
 */
int find_hold(struct broker *broker, struct session *session, uint64_t buffer, uint32_t rights, struct hold **ret,
              struct problem *problem);

/* Which holders: with all of these rights and none of those, and not that session. */
struct holders {
    uint32_t with, without;
    uint64_t except;
};

/* "session 12 (pid 345, cam), ..." as far as they fit into `size` bytes. */
void name_holders(const struct buffer *buffer, struct holders which, char *who, size_t size);

/* The problem of the first item of a batch that failed is that of the batch. */
void item_failed(struct problem *all, const struct problem *one, uint32_t item);
