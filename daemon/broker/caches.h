/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients cache after their programs have released it (proto/hold_cache.h), and how the broker takes it back.
 *
 * The broker takes it without the client's help
 *   - when a request finds no room, or meets a limit: from everybody, or from that user (op_alloc.c). As long as
 *     anybody waits, clients are told to cache nothing;
 *   - when the last other holder lets go of the buffer, which would live for a cache alone (I4);
 *   - when somebody opens it by its name or number: what was released has neither.
 *
 * The client has it mapped until it notices. If nobody else can have it open or mapped, as the libraries of all that
 * held it have said (BUFFER_IN_HAND), its pages are given back at once. All but one granule is credited; that one is
 * when the mapping has gone. A client that lies reads zeros there, and what it writes gets pages that the broker does
 * not know of: as many as it could have from the kernel without a broker.
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

/* Of all users. */
#define CACHES_ALL ((uid_t)-1)

struct caches {
    struct timer turn;
    uint64_t pass;      /* a walk over all sessions: the number of the latest */
    uint64_t completed; /* the number of the last that has ended */
    uint64_t cursor;    /* of the pass that runs */
    uint64_t session;   /* whose slots it is at, 0: between two sessions */
    unsigned slot;
    bool running;
    bool taking; /* the pass takes from `uid`; else it only tells clients that they may cache again */
    uid_t uid;
    bool left_over; /* a slot is TAKEN whose hold has not ended yet */
    bool again;     /* another pass is wanted, which takes from `next_uid` */
    uid_t next_uid;
    struct caches_done *done; /* slots that clients get back when the ends of their holds are committed */
    size_t n_done;
    size_t done_max;
};

void caches_init(struct caches *caches);
void caches_deinit(struct broker *broker);

/*
 * A request needs what is cached. True: that is still being taken. The ticket is 0 at first. Once this is false for a
 * ticket, all that was cached at the first call is on its way back.
 */
bool caches_wanted(struct broker *broker, uint64_t *ticket, uid_t uid);
bool caches_are_taken(const struct broker *broker, uint64_t ticket);

/* A hold, a name or a token of it has gone: if only caches have it now, it is taken from them. */
void caches_let_go(struct broker *broker, struct buffer *buffer);
/* Another session opens it by name or number. True if it was taken from a cache: then it must be looked up again. */
bool caches_opened(struct broker *broker, const struct session *session, struct buffer *buffer);
/* Its buffer is destroyed. True: a cache had this hold, which has lost claims, or has ended. False: its process may be
 * using the memory, which keeps its contents. */
bool caches_destroyed(struct broker *broker, struct hold *hold);

/* A hold ends, by release or with its session: notes whether its process may have passed the memory on. */
void caches_hold_ends(struct broker *broker, const struct hold *hold);
/* It is unreferenced, and somebody has it open or mapped. Is that only caches? */
bool caches_alone_have(const struct buffer *buffer);

/* Is it in its session's cache now? */
bool caches_have(const struct hold *hold);

/* Takes what another broker began to take, in turns of the loop. */
void caches_restore(struct broker *broker);
/* The ends of the holds that were taken are committed. */
void caches_committed(struct broker *broker);
