/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as the client has it: calls from any number of threads, over one connection after another.
 *
 * No thread exists only to receive, so the threads that wait for replies do it: one of them, the leader, polls the
 * socket and hands each reply to the call that it answers; the others sleep until that happens or until they are needed
 * as the next leader. No lock is held while a thread sleeps or polls. Replies are matched by sequence, so they may come
 * in any order.
 *
 * When the connection is lost the leader makes another one. Calls go on waiting, each until its own deadline, and when
 * the session is resumed their requests are sent again under the same sequences (PROTOCOL.md, section 6). So the
 * restart of a broker is just a call that takes longer. Only when the broker does not know the session any more does
 * every call fail; the channel then stays broken, and its owner makes another one.
 *
 * A call whose deadline passes leaves its request behind: if the reply comes after all the leader reads it, closes its
 * descriptors and undoes what it granted (link.c).
 *
 * channel.c has the calls, requests.c the requests under way and how they are sent, link.c the receiving, resume.c the
 * next connection.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/fileid.h"
#include "base/list.h"
#include "proto/arena.h"
#include "proto/fdset.h"
#include "proto/hold_cache.h"
#include "proto/limits.h"
#include "proto/methods.h"
#include "rpc/door.h"

/*
 * Makes a result of a reply; runs in whichever thread received it, without a lock. Takes the descriptors that it wants;
 * the rest are closed. 0, or a negative errno if the reply makes no sense: then it took nothing, and the connection is
 * given up.
 */
typedef int channel_decode(void *result, const ProtobufCMessage *reply, struct fdset *fds);

/* Where the reply of a listing is copied to, for the caller to decode. */
struct channel_raw {
    uint8_t *bytes; /* MEMORYD_PAYLOAD_MAX of them */
    size_t n;
};

struct channel;

/* What the owner is told, in whichever thread leads, without a lock. Each may be NULL. */
struct channel_owner {
    void (*event)(void *data, unsigned id, const ProtobufCMessage *event);
    void (*lost)(void *data, struct channel *channel);    /* the socket will be closed in a moment */
    void (*resumed)(void *data, struct channel *channel); /* there is another one */
    void *data;
};

enum link_state {
    LINK_DOWN,
    LINK_HANDSHAKING, /* connected, HELLO is sent */
    LINK_UP
};

struct channel {
    unsigned refs;       /* atomic */
    unsigned generation; /* the owner's: of the session that it serves */
    struct channel_owner owner;

    pthread_mutex_t lock;
    bool broken; /* atomic for those without the lock */
    bool led;

    /* the connection; only the leader changes it */
    enum link_state link;
    int socket;
    struct file_id socket_id; /* tells whether the program has closed it */
    bool fd_replaced;         /* it has */
    bool may_wait;            /* inside recvmsg() */

    /* how the next connection is made, or NULL; resume.c */
    struct resumption *resumption;
    bool has_nodes; /* atomic: the broker has several, so it is told on which one a caller runs */
    unsigned minor; /* atomic: version of the protocol that the broker speaks; from 1 on it keeps replies for repeats */

    struct channel_door door;

    /* requests under way, struct pending; requests.c */
    uint64_t sequence;          /* the last one used */
    struct list waiting;        /* sent, by sequence */
    struct list unsent[2];      /* not yet, by enum method_repeat */
    struct list unused;         /* for reuse */
    unsigned n_recorded;        /* of the waiting ones */
    unsigned n_fire_and_forget; /* releases that nobody waits for */
    unsigned n_answered;
    uint64_t answered[MEMORYD_UNACKNOWLEDGED_MAX]; /* to be acknowledged one by one */
    struct release_log *release_log;               /* where releases are noted first; or NULL */
    struct hold_cache *cache; /* of the session, in the same memory; NULL if an older broker made that */
    uint64_t since;           /* when the connection was lost or, if that was later, HELLO was sent on the next one */
    bool needs_resend;        /* some of the waiting ones must be sent again */
    int send_blocked;         /* why sending stopped: see sockio_send() */

    /* the leader's alone */
    bool others_wait; /* as seen when it received last */
    struct arena arena;
    uint8_t *packet;

    struct channel *inherited; /* after fork(): the former one, kept so that it is no leak */
};

/* Takes the connected socket on success. When that is lost the channel is broken, unless it may resume. */
int channel_new(int socket, const struct channel_owner *owner, struct channel **channel);
struct channel *channel_ref(struct channel *channel);
struct channel *channel_unref(struct channel *channel);
DEFINE_CLEANUP(struct channel *, channel_unref);

struct connected;
struct rpc_session;

/* From now on the session is resumed at the same socket. Takes the session's release log in any case. 0 or -ENOMEM. */
int channel_may_resume(struct channel *channel, const struct connected *connected, const char *program,
                       struct rpc_session *session);

/* A request; all of it is the caller's until the call returns. */
struct channel_request {
    enum method method;
    const ProtobufCMessage *message;
    const int *fds; /* sent with it */
    unsigned n_fds;
    channel_decode *decode; /* NULL: the reply only says that it was done, or goes to `raw` */
    void *result;           /* of decode() */
    struct channel_raw *raw;

    /* filled in by call_request(): what the broker had told before, and a reference to the channel of the answer */
    uint32_t *changes;
    struct channel **answered_by;
};

/*
 * Sends a request and waits for its reply until the deadline. 0; a refusal as fail_refused() has it; or
 *     -ENOTCONN    the session is lost, and the request was not sent or is harmless: try in another one
 *     -ECONNRESET  it was sent, and the session was lost before the reply
 *     -ETIMEDOUT
 *     -EMFILE      it was done, and is undone: the descriptors of the reply could not be received
 *     -EPROTO      what came makes no sense, and the connection was given up
 *     or why no connection can be made, other than that nobody listens.
 * A release (RELEASE, UNRESERVE) does not wait for a broker that is away: it succeeds as soon as it is in the release
 * log, from which the next broker takes it even if this process never calls again. Without a `decode` it waits for no
 * reply at all: it succeeds when it is sent, which is before any later call, and its outcome is ignored. Only when very
 * many such replies are missing are some waited for, so that a caller that does nothing else does not get ahead of the
 * broker; if that is away, or does not answer HELLO, for two seconds.
 */
int channel_call(struct channel *channel, const struct channel_request *request, uint64_t deadline);

/*
 * Sends, now or later, without waiting, and ignores the reply: for giving back what nobody wants any more. If the
 * connection is lost it makes another one, without waiting for the answer to HELLO.
 */
void channel_post(struct channel *channel, enum method method, const ProtobufCMessage *request);

/* Receives what is there, without waiting, unless another thread does. */
void channel_poll(struct channel *channel);

/* If the connection is lost, takes a step towards the next one, without waiting, unless another thread does. Is there
 * one afterwards? */
bool channel_resume(struct channel *channel);

/* Does the present broker speak this minor version? */
static inline bool channel_speaks(const struct channel *channel, unsigned minor)
{
    return __atomic_load_n(&channel->minor, __ATOMIC_RELAXED) >= minor;
}

/* The counters of changes in the session's cache; 0 without one. */
void channel_cache_changes(struct channel *channel, uint32_t changes[static HOLD_CACHE_CHANGES]);

/* 1 + the node on which this thread runs, where the broker has several; else 0. */
uint32_t channel_caller_node(struct channel *channel);

/* Is the session lost? */
static inline bool channel_is_broken(const struct channel *channel)
{
    return __atomic_load_n(&channel->broken, __ATOMIC_ACQUIRE);
}

/* Every call fails from now on, with this errno and sentence if it was the first. */
void channel_break(struct channel *channel, int err, const char *why);

/* In the child of a fork before which the lock was taken: closes and breaks its copy, and gives the lock up. */
void channel_fork_child(struct channel *channel);
