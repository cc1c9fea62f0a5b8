/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker from the inside: what the files of this room share.
 *
 *     op_*.c     one family of verbs each; op_adopt.c has what is different about foreign buffers
 *     batch.c    how buffers get their memory, be it for a client or for the stock
 *     buffer_work.c   those that a worker does with one buffer
 *     caches.c   what clients keep though they have given it back
 *     life.c     when a buffer ends, and how (I4); who pays for it (I5)
 *     recover.c, survey.c   what another broker left
 *     claims.c   names, tokens and holds as they come and go, with their times and events
 *     once.c     each request once, however often it comes
 *     check.c    I5, proven
 *     events.c   who is told what
 *     stocking.c buffers that are made before anybody asks for them
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
#include "broker/jobs.h"
#include "broker/pending.h"
#include "broker/timers.h"
#include "broker/verbs.h"
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

/* kinds of times that records have */
enum {
    TIME_TOKEN, /* it expires */
    TIME_NAME,  /* it was to be kept only so long */
    TIME_GRACE, /* the session's connection is away too long */
};

struct check;
struct news;
struct stocking;

struct broker {
    struct broker_options options;
    struct broker_host host;
    struct account_limits limits;
    uint64_t started;
    bool leaving;  /* in order: connections end because of that */
    bool stopping; /* it is taken apart */

    struct timers timers;
    struct jobs jobs;
    struct pending pending;
    struct waiters waiters;
    struct watch watch;
    struct caches caches;

    struct ledger *ledger;
    struct accounts accounts;
    struct arena arena;
    struct reservations reservations;
    struct buffers buffers;
    struct tokens tokens;
    struct names names;
    struct sessions sessions;

    struct list ending; /* struct client, being taken apart */
    struct list gone;   /* … and taken apart, but that is not committed */
    struct buffer *closing; /* whose T is closed when that is committed; the userdata of each is the next */
    struct list subscribers;
    struct news *news; /* a ring, and how far the first of it has been told: events.c */
    unsigned first_news;
    unsigned n_news;
    struct list news_at;
    struct timer news_turn;
    struct list lingering;
    struct timer ending_turn;
    struct timer pressure_turn;
    uint32_t pressure_at; /* the pool to look at next */
    bool pressure_again;  /* something changed during a walk */
    uint8_t *pressure;    /* level of each pool, as last told */

    struct timer overflow_turn;
    uint64_t overflow_cursor;
    bool overflow_again; /* it happened during a scan */
    int overflow_newest;
    int newest_watch;
    bool watch_is_new;   /* no watch of the broker before is in it */
    bool watches_proven; /* or made by this broker */
    bool no_leases;      /* the kernel does not answer who has a file open */
    struct survivors_job *survivors;

    struct stocking *stocking; /* NULL: no pool may have stock */
    struct check *checks; /* running, the latest first */
    struct list moves;    /* struct move, on their way: op_move.c */
    struct list upgrades; /* asked for: op_admin.c */
};

/* ---- exactly once --------------------------------------------------------------------------------------- */

/* It is pending: who sends it again waits for this one. */
void once_pending(struct op *op);
/* A worker begins with it: should the broker die meanwhile, this is one of those that it may have died of. */
void once_working(struct op *op);
/* Has it submit its job: at once or, if a broker died over it, when this one has lived for a moment. */
void once_work(struct op_state *state, void (*submit)(struct op_state *state));

/* This broker is to end while it is pending: the next one does not count that as a death. */
void once_rests(struct op_state *state);

/* ---- addresses ------------------------------------------------------------------------------------------ */

/* The session's process has these occupied, as far as they are in the arena and its limits allow. */
void session_occupies(struct broker *broker, struct session *session, const struct hello_args *args);
/* It wants an address in one of them: it has that no more. */
void session_vacates(struct broker *broker, struct session *session, uint64_t start, uint64_t size);

/* ---- what another broker left --------------------------------------------------------------------------- */

/* The ledger: another broker's, or a new one. 0, BROKER_E_LEDGER, or a negative errno. */
int recover_ledger(struct broker *broker);
/* Objects, indexes and charges of all that is in it. 0 or a negative errno. */
int recover_records(struct broker *broker);
/* Then: times, ends, and what happened meanwhile. 0 or a negative errno. */
int recover_lives(struct broker *broker);
/* Records that make no sense. */
uint64_t quarantined_records(const struct broker *broker);

/* ---- allocation ----------------------------------------------------------------------------------------- */

void fill_info(struct broker *broker, const struct session *session, const struct buffer *buffer,
               struct buffer_info *info);
bool may_see_buffer(const struct broker *broker, const struct session *session, const struct buffer *buffer);
