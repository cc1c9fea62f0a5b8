/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker as its host (app/) sees it: made of plain settings, and driven by a loop that it does not know.
 *
 * The broker has descriptors that somebody must poll and deadlines that somebody must wait for. It asks for both by
 * `struct broker_host`, which app/ implements with libevent, and tests with a few lines of poll(). Everything here
 * runs on the loop's thread. Operations are in broker/operations.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "account/account.h"
#include "keeper/link.h"
#include "log/log.h"
#include "mem/pool.h"
#include "proto/release_log.h"

struct broker;
struct counters_file;
struct keeper_link;
struct peer;
struct problem;
struct reload_result;
struct topology;
struct user_task;
struct work;

/* An event for a session that has subscribed to it. Strings are valid during the call only. */
struct broker_event {
    uint32_t kind; /* EventKind, one bit */
    const char *pool;
    uint32_t level;
    uint64_t buffer;
    const char *name;
    bool bound;
    uint64_t session; /* that holds the buffer, or whose process died; 0: the subscriber may not know */
    uid_t uid;        /* … its user, -1, … */
    pid_t pid;        /* … and its process, 0: likewise */
    uint32_t end;     /* HistoryEntry.End: how it died, … */
    uint32_t status;  /* … and its exit status or signal */
};

/* Of a connection, for the listing of sessions. */
struct connection_info {
    uint32_t fds_in_flight;
    uint32_t queued_bytes;
    uint64_t requests; /* that have come by it */
};

struct broker_host {
    void *userdata;
    /* Deliver an event on the session's connection (never called for a session without one). */
    void (*event)(void *userdata, void *connection, const struct broker_event *event);
    /* The session has ended or was resumed by another connection: forget it, flush what is queued and close. The
     * broker does not use the connection again. An operation may call this before its own reply is sent. */
    void (*disconnect)(void *userdata, void *connection);
    /* Call broker_session_exited(session) when this pidfd of a user's process becomes readable. The broker owns the
     * descriptor, and calls unwatch_process() before it closes it. Returns 0 or a negative errno. */
    int (*watch_process)(void *userdata, uint64_t session, uid_t uid, int pidfd);
    void (*unwatch_process)(void *userdata, uint64_t session);
    /* The next broker_tick() is due in this many milliseconds (0 = as soon as other work allows). */
    void (*schedule)(void *userdata, uint64_t in_ms);
    /* Call task->run() in a turn of this user, once, unless it is given up before. */
    void (*take_turn)(void *userdata, struct user_task *task, uid_t uid);
    void (*give_up_turn)(void *userdata, struct user_task *task);
    /* Why there is no room for the session of this connection, or NULL. */
    const char *(*crowded)(void *userdata, void *connection);
    /* Is anybody leaving: are there connections that were closed, or processes that have exited, whose end waits? */
    bool (*is_left)(void *userdata);
    /* The connection's share of what session_info shows. */
    void (*connection_info)(void *userdata, void *connection, struct connection_info *ret);
    /* Read the configuration again; NULL: there is none. */
    void (*reload)(void *userdata, struct reload_result *result);
    /* Could another broker start with the configuration, as far as this one can tell? 0 or a status; NULL: yes. */
    int (*check_config)(void *userdata, struct problem *problem);
};

struct broker_options {
    const struct topology *topology;
    struct pools *pools; /* borrowed, as the rest here */
    struct work *work;
    unsigned threads; /* of large commits, see struct commit */
    const struct account_limits *limits;
    const struct broker_host *host;
    uint64_t arena_base;
    uint64_t arena_size;
    uint64_t grace_ms;              /* a living process may be without a connection so long before I6's check */
    uid_t uid;                      /* the broker's own */
    const char *groups_root;        /* where clients' control groups are looked at, see groups.h; NULL: nowhere */
    bool refuse_overflow_uid;       /* users that cannot be told apart begin no session */
    struct keeper_link *keeper;     /* holds what outlives this broker; NULL: nothing does */
    struct inherited_fd *inherited; /* what it has handed over: see broker_new() */
    size_t n_inherited;
    struct survey *survey; /* of these; broker_new() ends it; or NULL */
};

enum {
    _BROKER_E_SUCCESS,
    BROKER_E_LEDGER, /* the ledger is in a form that this program does not know */
};

/*
 * Continues with what another broker left: the ledger and the descriptors in `inherited`. The array is sorted. A
 * descriptor that is taken, or that belongs to nothing and is closed, becomes -1 in it; the others belong to damaged
 * records and should be kept. 0, BROKER_E_LEDGER, or a negative errno (no memory, no inotify, no ledger): then the
 * process should end, since nothing that was taken is given back.
 */
int broker_new(struct broker **ret, const struct broker_options *options);
/* Without a keeper: enumerates what the next broker needs, for fd_stash_fill(), except what is left of `inherited`. */
int broker_enumerate(const struct broker *broker, keeper_take_fn *give, void *to);

/* What the loop tells the broker. Negative = fatal. */
int broker_tick(struct broker *broker);                             /* a deadline came */
int broker_watch_fd(struct broker *broker);                         /* poll this for reading … */
int broker_watch_ready(struct broker *broker);                      /* … and call this (bounded work) */
int broker_deaths_fd(struct broker *broker);                        /* the same … */
void broker_deaths_ready(struct broker *broker);                    /* … with these */
int broker_session_exited(struct broker *broker, uint64_t session); /* its process is dead (I6) */
int broker_connection_lost(struct broker *broker, uint64_t session, void *connection);

/*
 * Commits all changes so far to the ledger. What cannot be undone, closing memory for good, happens then. The functions
 * above do this at their end. The host does it when it has called done() of jobs, and before the reply to an operation
 * leaves.
 */
void broker_commit(struct broker *broker);

/*
 * This process ends in order, and with it what its workers are doing. The next broker begins that anew, and does not
 * count it as a death.
 */
void broker_leave(struct broker *broker);

/* A copy of a session's release log. */
struct broker_release_log {
    uint64_t session;
    struct log_client who;
    struct release_log log;
};

/* The next session that has one; *cursor begins with 0. False: there is none. One that cannot be read is skipped. */
bool broker_next_release_log(struct broker *broker, uint64_t *cursor, struct broker_release_log *ret);

/* The keeper's decision about op_upgrade(): 0, another broker takes over, or a positive errno. `why` is a better
 * sentence than that of the errno, or NULL. */
void broker_upgrade_decided(struct broker *broker, int error, const char *why);

/* What clients would lose: what has a name, is held, or is still open somewhere. */
struct broker_holdings {
    uint64_t buffers;
    uint64_t detached; /* of these */
    uint64_t bytes;
    uint64_t names;
    uint64_t sessions;
};
void broker_holdings(const struct broker *broker, struct broker_holdings *ret);
/* For the service manager's status line, and for who asks the broker for its status. */
struct pools_sums;
void broker_sum_pools(const struct broker *broker, struct pools_sums *ret);

/* What is shown of the broker as a whole: numbers of this moment, and where those are that change. */
struct broker_figures {
    const struct topology *topology;
    struct pools *pools;
    const struct accounts *accounts;
    const struct counters_file *counters;
    struct broker_holdings holdings;
    uint64_t tokens;
    uint64_t reservations;
    uint64_t quarantined;
    uint64_t fds;
    uint64_t fds_limit;
};
void broker_figures(const struct broker *broker, struct broker_figures *ret);

/* For a private broker's idle exit: sessions, and buffers that outlive them. */
bool broker_is_idle(const struct broker *broker);
/* Tells every subscriber that the broker stops. Connections that are lost from now on are lost by that. */
void broker_announce_shutdown(struct broker *broker);

/* New limits from a re-read configuration. */
void broker_set_limits(struct broker *broker, const struct account_limits *limits);
void broker_set_grace(struct broker *broker, uint64_t grace_ms);
/* Sessions that are there go on. */
void broker_refuse_overflow_uid(struct broker *broker, bool refuse);
