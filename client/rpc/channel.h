/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the broker, used by any number of threads at once.
 *
 * There is no thread of our own that could receive, so the threads that wait for replies do it:
 * one of them, the leader, polls the socket and hands each reply to the call that it answers; the
 * others sleep until that happens or until they are needed as the next leader. No lock is held
 * while anybody sleeps or polls. Replies are matched by sequence, so they may come in any order.
 *
 * A call whose deadline passes is left behind as an orphan: its reply, if it ever comes, is read by
 * whoever leads then, its descriptors are closed, and what it granted is given back (undo.h).
 *
 * A channel lives for one connection. When that is lost every call fails and the channel stays
 * broken; the session makes a new one. The descriptor is closed with the last reference, never
 * while somebody may poll it.
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
#include "proto/methods.h"

/*
 * Makes a result of a reply; runs in whichever thread received it, without a lock. Steals the
 * descriptors it wants, the rest are closed. 0, or a negative errno if the reply makes no sense:
 * then nothing was stolen and the connection is given up.
 */
typedef int channel_take(void *result, const ProtobufCMessage *reply, struct fdset *fds);

/* An event arrived; in whichever thread received it, without a lock. */
typedef void channel_event(void *data, unsigned id, const ProtobufCMessage *event);

/* Where a listing's reply is copied to, to be decoded by the caller at leisure. */
struct channel_raw {
    uint8_t *bytes; /* MEMORYD_PAYLOAD_MAX of them */
    size_t n;
};

struct channel {
    unsigned refs; /* atomic */
    int socket;
    struct file_id socket_id; /* of it: the program may have closed it under our feet */
    unsigned generation; /* the owner's: of the session that it serves */
    channel_event *event;
    void *event_data;

    pthread_mutex_t lock;
    bool broken;
    int broken_err; /* positive errno */
    const char *broken_why;
    bool may_wait; /* inside recvmsg() */
    bool led;
    uint64_t sequence;    /* the last one used */
    struct list waiting;  /* struct pending without an answer, by sequence */
    struct list unused;   /* struct pending for reuse */

    /* the leader's alone */
    struct arena arena;
    uint8_t *packet;

    struct channel *inherited; /* after fork(): the former one, kept from being a leak */
};

/* Takes the socket on success. The first request has the sequence after the given one. */
int channel_new(int socket, uint64_t sequence, channel_event *event, void *data, struct channel **channel);
struct channel *channel_ref(struct channel *channel);
struct channel *channel_unref(struct channel *channel);
DEFINE_CLEANUP(struct channel *, channel_unref);

/*
 * Sends a request with descriptors, which stay the caller's, and waits for its reply until the
 * deadline. `take` may be NULL; the reply then says no more than that it was done, or it goes to
 * `raw`. 0; a refusal as fail_refused() has it; or
 *     -ENOTCONN    the request was not sent, the connection is lost: try on another one
 *     -ECONNRESET  it was sent, and the connection was lost before the reply
 *     -ETIMEDOUT
 *     -EPROTO      what came makes no sense, and the connection was given up
 */
int channel_call(struct channel *channel, enum method method, const ProtobufCMessage *request,
                 const int *fds, unsigned n_fds, uint64_t deadline, channel_take *take,
                 void *result, struct channel_raw *raw);

/* Sends without waiting; the reply will be ignored. For giving back what nobody wants any more. */
void channel_post(struct channel *channel, enum method method, const ProtobufCMessage *request);

/* Receives what is there, without waiting, unless another thread is at it. */
void channel_poll(struct channel *channel);

/* Is the connection lost? */
bool channel_is_broken(struct channel *channel);

/* The last sequence that it used. Of a lost connection: a session that goes on counts on from there. */
uint64_t channel_sequence(struct channel *channel);

/* Every call fails from now on; sentence and errno as given, for good the first. */
void channel_break(struct channel *channel, int err, const char *why);

/* fork(): between these two no other thread is inside. The child closes and breaks its copy. */
void channel_fork_prepare(struct channel *channel);
void channel_fork_parent(struct channel *channel);
void channel_fork_child(struct channel *channel);
