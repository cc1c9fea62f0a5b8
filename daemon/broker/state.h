/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's state, for the files of this module:
 *
 *     op_*.c     the operations, a family of them each; lookup.c is what they begin with
 *     claims.c   names, tokens and holds as they come and go; export.c gives descriptors out
 *     batch.c    how buffers get their memory, be it for a client or for the stock (stocking.c)
 *     lifecycle.c     when a buffer ends (I4), and who pays for it (I5); closing.c gives its memory back
 *     caches.c   what clients keep though they have given it back
 *     session_end.c, session_teardown.c   how sessions end (I6)
 *     dedup.c     each request once, however often it comes
 *     recover.c, handed.c, survey.c   what another broker left
 *     check.c    I5, proven
 *     events.c   who is told what; subscriptions.c, watchers.c what becomes of buffers
 *     report.c   what is remembered and counted of refusals, waits and ends; deaths.c finds out how processes ended
 *     broker.c   makes it of these, and is driven by the loop
 *     pending.c, jobs.c, timers.c   what is going on
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "account/account.h"
#include "base/list.h"
#include "base/problem.h"
#include "broker/broker.h"
#include "broker/caches.h"
#include "broker/deaths.h"
#include "broker/jobs.h"
#include "broker/oom.h"
#include "broker/operations.h"
#include "broker/pending.h"
#include "broker/subscriptions.h"
#include "broker/timers.h"
#include "keeper/link.h"
#include "ledger/ledger.h"
#include "mem/buffer.h"
#include "mem/name.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "mem/watch.h"
#include "session/hold.h"
#include "session/kept.h"
#include "session/session.h"
#include "va/arena.h"
#include "va/reservation.h"

/* records looked at in one turn of the loop */
#define SLICE 256

/* kinds of timers that records have */
enum {
    TIME_TOKEN, /* it expires */
    TIME_NAME,  /* it was to be kept only so long */
    TIME_GRACE, /* the session's connection is away too long */
};

struct check;
struct counters;
struct history;
struct news;
struct stocking;

struct broker {
    struct broker_options options;
    struct broker_host host;
    struct account_limits limits;
    uint64_t started;
    unsigned n_retries; /* requests that this broker delays, since another one died (dedup.c) */
    bool leaving;       /* it ends in order: connections are lost because of that */

    struct timers timers;
    struct jobs jobs;
    struct pending pending;
    struct waiters waiters;
    struct watch watch;
    struct caches caches;

    struct history *history; /* report.h */
    struct counters *counters;
    struct deaths deaths;
    struct oom_groups oom_groups;

    struct ledger *ledger;
    struct accounts accounts;
    struct arena arena;
    struct reservations reservations;
    struct buffers buffers;
    struct tokens tokens;
    struct names names;
    struct sessions sessions;

    struct list ending;       /* of struct client: being taken apart */
    struct list gone;         /* … and taken apart, which is not committed yet */
    struct buffer *closing;   /* those to be closed at the next commit, chained by exit.next */
    struct list subscribers;  /* of struct client: who wants any events */
    struct watchers watchers; /* … of buffers */
    struct news *news;        /* a ring; news_at is how far the first of them has been sent: events.c */
    unsigned first_news;
    unsigned n_news;
    struct list news_at;
    struct timer news_turn;
    struct list lingering;
    struct timer ending_turn;
    struct timer pressure_turn;
    uint32_t pressure_at; /* the pool to look at next */
    bool pressure_again;  /* something changed since the walk began */
    uint8_t *pressure;    /* level of each pool, as last told */

    struct timer token_timers_turn; /* after a start: those of tokens are armed, up to this one */
    uint64_t token_timers_cursor;

    struct timer overflow_turn;
    uint64_t overflow_cursor;
    bool overflow_again; /* events were lost again during a scan */
    int overflow_newest;
    int newest_watch;
    bool watch_is_new;   /* it is not the instance of the broker before */
    bool watches_proven; /* all watches in records are right */
    struct live_watches_job *live_watches;

    struct stocking *stocking; /* NULL: no pool may have stock */
    struct check *checks;      /* running, the latest first */
    struct list moves;         /* struct move, on their way: op_move.c */
    struct list upgrades;      /* asked for: op_admin.c */
};
