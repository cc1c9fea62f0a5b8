/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients keep though their programs have given it back (proto/hold_cache.h), and how the broker gets it.
 *
 * It is taken from a client, which need not do anything for that,
 *   - when somebody finds no room, or meets a limit: of everybody, or of that user (op_alloc.c). As long as anybody
 *     waits, clients are told to cache nothing;
 *   - when whoever had the buffer besides has let go of it: then it would live for a cache alone (I4);
 *   - when somebody opens it by its name or number: what was given back has neither.
 *
 * The client has it mapped still, until it notices. If nobody else can have it open or mapped, as the libraries of all
 * that held it have said (BUFFER_IN_HAND), its pages are given back all the same, and are credited but for one granule,
 * which is when the mapping has gone. A client that is told wrong pages then reads zeros, and one that writes there
 * gets pages of which the broker does not know: as many as it could have of the kernel without a broker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/timers.h"

struct broker;
struct buffer;
struct hold;
struct session;

/* Everybody's. */
#define CACHES_ALL ((uid_t)-1)

struct caches {
    struct timer turn;
    uint64_t pass;      /* over all sessions, the number of the latest */
    uint64_t completed; /* the last one that is over */
    uint64_t cursor;    /* of the one that runs */
    bool running;
    bool taking; /* it takes, from `uid`; else it only tells that nothing is wanted any more */
    uid_t uid;
    bool left_over; /* something is TAKEN, and not ended yet */
    bool again; /* another one is wanted, that takes from `next_uid` */
    uid_t next_uid;
    struct caches_done *done; /* slots to be given back when what was taken is committed */
    size_t n_done;
    size_t done_max;
};

void caches_init(struct caches *caches);
void caches_deinit(struct broker *broker);

/*
 * Somebody needs what is cached. Is it still being taken? The ticket is 0 at first; once this is false, for the same
 * ticket, all that was cached when it was first asked is on its way back.
 */
bool caches_wanted(struct broker *broker, uint64_t *ticket, uid_t uid);
bool caches_are_taken(const struct broker *broker, uint64_t ticket);

/* A hold, a name or a token of it has gone: what is left in caches alone goes, too. No more than that of the buffer. */
void caches_let_go(struct broker *broker, struct buffer *buffer);
/* Another session wants to open it by name or number. True if a cache had it: then look again what it is now. */
bool caches_opened(struct broker *broker, const struct session *session, struct buffer *buffer);
/* It is destroyed. True if a cache had this hold, which is gone then, or some of its claims are. False: its process may
 * use the memory still, and keeps the contents. */
bool caches_destroyed(struct broker *broker, struct hold *hold);

/* One of several holds ends, by release or with its session: is there anything that its process let out? */
void caches_hold_ends(struct broker *broker, const struct hold *hold);
/* Its life is over, and somebody has it open or mapped: caches alone? */
bool caches_alone_have(const struct buffer *buffer);

/* Is it in its session's cache now? For listings. */
bool caches_have(const struct hold *hold);

/* What another broker began to take is taken. */
void caches_restore(struct broker *broker);
/* The ends of what was taken are committed. */
void caches_committed(struct broker *broker);
