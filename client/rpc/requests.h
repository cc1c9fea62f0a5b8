/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a session that are under way: sent and not answered, or not even sent.
 *
 * A `struct call` is on the stack of the thread that makes it; a `struct pending` is the channel's note of its request,
 * and outlives the call if that gives up. A request gets its sequence when it is first sent. When its connection is
 * lost before the reply it stays where it is, and is sent again, under the same sequence, on the next one.
 *
 * What is acknowledged is computed from these notes: the highest sequence that has no unanswered one before it; and
 * beyond that one by one what is answered. A broker keeps at most 64 replies, so of the recorded requests at most 64
 * are out without acknowledgement, and the next ones wait for room.
 *
 * Everything here is under the channel's lock.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/limits.h"
#include "proto/schema.h"
#include "rpc/channel.h"

enum call_state {
    CALL_WAITING,  /* for its reply, or for being sent */
    CALL_DECODING, /* a leader is making its result */
    CALL_ANSWERED, /* `status` and `err` say how */
    CALL_FAILED,   /* `err` and `sentence` say why there will be no reply */
    CALL_OF_LEADER /* a HELLO of the channel's own: nobody sleeps for it */
};

struct call {
    enum call_state state;
    struct pending *pending; /* while it waits */
    channel_decode *decode;
    void *result;
    struct channel_raw *raw;
    int err;         /* answered: of decode(), negative; failed: a positive errno */
    unsigned status; /* the broker's */
    char sentence[MEMORYD_SENTENCE_MAX + 1];
};

struct pending {
    struct list link;
    uint64_t sequence; /* 0: it was never sent */
    uint64_t answered; /* what it acknowledges besides, or 0 */
    const struct schema_method *row;
    bool lost;         /* with its connection: to be sent again */
    unsigned in_log;   /* its place in the release log; 0: it is not there */
    bool fire_and_forget; /* it gives something back, and nobody waits for the reply */
    struct call *call; /* NULL: nobody waits any more */
    const void *payload;
    size_t n;
    const int *fds; /* the caller's, only while it waits */
    unsigned n_fds;
    void *copy; /* of the payload, once no caller has it */
    /*
     * The caller's, if it sleeps; last, since it stays when the rest is used anew. It is here and not with the call so
     * that it may be woken without the lock, when the call may be over already: those who sleep may therefore be more
     * than one for a moment, and all of them are woken.
     */
    pthread_cond_t wake;
};

/* Enters a request that is not sent yet. NULL without memory. The payload is the caller's while `call` waits. */
struct pending *request_enter(struct channel *channel, const struct schema_method *row, const void *payload, size_t n,
                              struct call *call);
/* Copies its payload, for as long as nobody has it. Without memory it becomes empty: see request_abandon(). */
void request_keep(struct pending *pending);
/* Its caller goes. */
void request_abandon(struct channel *channel, struct pending *pending);
/* Its reply has come, or never will. */
void request_drop(struct channel *channel, struct pending *pending);

struct pending *request_find(struct channel *channel, uint64_t sequence);
/* The reply to it has come: it will be acknowledged. */
void request_answered(struct channel *channel, struct pending *pending);

/*
 * Sends it, now, whatever else waits: a new sequence if it has none. 0, or as sockio_send(); then it is as it was, or,
 * if it is in the release log, it is one that was sent and lost.
 */
int request_send(struct channel *channel, struct pending *pending);
/*
 * Sends what waits for that and may be sent: behind a HELLO that is not answered yet, what gives something back. (If
 * HELLO is refused so are these, and they stay lost.) While the link is not up, what gives something back and cannot be
 * sent goes into the release log. 0, or what sockio_send() said where it had to stop.
 */
int requests_flush(struct channel *channel);
/* Is anything to be given back that is not sent, or was lost? */
bool requests_have_release(const struct channel *channel);
/* The connection is lost: all that was sent is to be sent again, or is forgotten. */
void requests_lost(struct channel *channel);
/* Each caller goes with this error. If `forget`, what was sent does not stay either, as if it was answered. */
void requests_fail(struct channel *channel, int err, unsigned status, const char *sentence, bool forget);
/* The same for good: nothing is sent any more. What was not sent, or does no harm twice, fails with ENOTCONN. */
void requests_break(struct channel *channel, int err, const char *why);
/* No caller is there any more: they are in another process. */
void requests_orphan(struct channel *channel);
/* Does anybody wait for the reply to what was sent? */
bool requests_has_waiting(const struct channel *channel);
/* Somebody who waits must lead if nobody does. False: nobody waits. */
bool requests_wake_one(struct channel *channel);
void requests_deinit(struct channel *channel);

/* Does it give something back? Then nobody waits for a broker that is away: it is sent when there is one again. */
bool request_is_release(const struct pending *pending);
