/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a session that are under way: sent and not answered, or not sent yet.
 *
 * A `struct call` is on the stack of the thread that makes it. A `struct pending` is the channel's note of its request,
 * and outlives the call if that gives up. A request gets its sequence when it is first sent. If the connection is lost
 * before the reply, it stays in its list, and is sent again, under the same sequence, on the next connection.
 *
 * What to acknowledge follows from these notes: the highest sequence before which everything is answered, and beyond
 * it, one by one, what is answered. A broker keeps at most 64 replies, so at most 64 recorded requests are sent without
 * acknowledgement, and the next ones wait for room.
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
    CALL_WAITING,  /* to be sent, or for its reply */
    CALL_DECODING, /* a leader makes its result */
    CALL_ANSWERED, /* `status` and `err` say how */
    CALL_FAILED,   /* `err` and `sentence` say why there is no reply */
    CALL_OF_LEADER /* the channel's own HELLO: no thread sleeps for it */
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
    uint64_t answered; /* the single sequence that it acknowledges, or 0 */
    const struct schema_method *row;
    bool lost;            /* with its connection, so it is sent again */
    unsigned in_log;      /* its place in the release log; 0: none */
    bool fire_and_forget; /* a release whose reply nobody waits for */
    struct call *call;    /* NULL: nobody waits any more */
    const void *payload;
    size_t n;
    const int *fds; /* the caller's, while it waits */
    unsigned n_fds;
    void *copy; /* of the payload, once no caller has it */
    /*
     * The caller sleeps on it. It is the last member, since it stays when the rest is used again. It is not in the call
     * because it is signalled without the lock, when the call may have returned already. So two callers may sleep on it
     * for a moment, and both are woken.
     */
    pthread_cond_t wake;
};

/* Enters a request, to be sent later. NULL without memory. The payload is the caller's while `call` waits. */
struct pending *request_enter(struct channel *channel, const struct schema_method *row, const void *payload, size_t n,
                              struct call *call);
/* Copies its payload, since the caller goes. Without memory it becomes empty: see request_abandon(). */
void request_keep(struct pending *pending);
/* Its caller goes. */
void request_abandon(struct channel *channel, struct pending *pending);
/* Its reply has come, or never will. */
void request_drop(struct channel *channel, struct pending *pending);

struct pending *request_find(struct channel *channel, uint64_t sequence);
/* The reply to it has come: it will be acknowledged. */
void request_answered(struct channel *channel, struct pending *pending);

/*
 * Sends it now, whatever else waits, under a new sequence if it has none. 0, or as sockio_send(): then nothing has
 * changed, unless it is in the release log and so counts as sent and lost.
 */
int request_send(struct channel *channel, struct pending *pending);
/*
 * Sends the requests that may be sent: all, or only releases while HELLO is not answered. (If HELLO is refused so are
 * these, and they stay lost.) While the link is not up, releases that cannot be sent go into the release log. 0, or
 * what sockio_send() returned where it had to stop.
 */
int requests_flush(struct channel *channel);
/* Is there a release that is not sent, or was lost? */
bool requests_have_release(const struct channel *channel);
/* The connection is lost: what was sent is sent again, or forgotten. */
void requests_lost(struct channel *channel);
/* Each call fails with this error. If `forget`, requests that were sent count as answered. */
void requests_fail(struct channel *channel, int err, unsigned status, const char *sentence, bool forget);
/* The same for good: nothing is sent any more. Calls that were not sent, or may be repeated, fail with ENOTCONN. */
void requests_break(struct channel *channel, int err, const char *why);
/* In a child: the callers are in the parent. */
void requests_orphan(struct channel *channel);
/* Does anybody wait for the reply to what was sent? */
bool requests_has_waiting(const struct channel *channel);
/* Wakes a thread that waits, to lead if nobody does. False: none waits. */
bool requests_wake_one(struct channel *channel);
void requests_deinit(struct channel *channel);

/* Is it a release? Then its caller does not wait for a broker that is away: it is sent when there is one again. */
bool request_is_release(const struct pending *pending);
