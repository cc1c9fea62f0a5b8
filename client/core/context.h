/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context: one session with a broker and everything that was opened through it.
 *
 * Locks, in the order in which they are taken: that of the list of contexts, of the address space (core/space.h), of a
 * context, of its channel. None of them is held while a thread waits for the broker.
 *
 * Generations. A session survives a lost connection and a broker that is restarted (rpc/channel.h). It ends when the
 * broker does not know it any more, and in the child of a fork. The next call of the context then opens a new one, one
 * generation later. A handle knows the generation in which its buffer was held; in a later one it gets a new hold if
 * that can be done (core/buffer.h).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "base/clock.h"
#include "base/list.h"
#include "core/event.h"
#include "core/hold_cache.h"
#include "core/token_cache.h"
#include "rpc/channel.h"
#include "rpc/fail.h"
#include "rpc/stubs.h"

/* Descriptors kept open for the next mapping. */
#define CONTEXT_FDS_MAX 64
/* Those kept for copies in children. */
#define CONTEXT_KEPT_FDS_MAX 256

struct memclient_context {
    struct list in_contexts;
    unsigned refs; /* atomic: its owner, and every handle */
    bool is_default;

    /* constant once it is open */
    char *wanted_path; /* or NULL */
    char program[MEMORYD_PROGRAM_MAX + 1];
    uint64_t deadline_ms;
    unsigned autostart;
    bool administrator;

    pthread_mutex_t lock;
    bool closed;
    bool connecting; /* one thread is; the others wait for `connected` */
    pthread_cond_t connected;
    struct channel *channel;         /* or NULL */
    struct channel *pending_channel; /* while HELLO has no answer */
    struct channel *inherited;       /* from the parent process */
    unsigned generation;
    struct rpc_session session; /* .session is 0 before the first */
    char path[108];
    bool autostarted;

    struct memclient_buffer *buffers; /* hash by id */
    struct list fds;                  /* buffers with a cached descriptor, the least recently used first */
    unsigned n_fds;
    struct list kept_fds; /* those whose descriptor is not pushed out: core/own.c */
    unsigned n_kept_fds;
    struct list reservations;
    struct token_cache tokens;
    struct hold_cache_owners cached;
    struct events events;
};

/* All contexts of the process. */
extern struct list contexts;
extern pthread_mutex_t contexts_lock;

int context_new(const struct memclient_context_options *options, struct memclient_context **ctx);
struct memclient_context *context_ref(struct memclient_context *ctx);
struct memclient_context *context_unref(struct memclient_context *ctx);

/* core/fork.c: registers what is done around a fork(), once per process. */
void context_register_fork(void);

/* core/occupied.c, without the lock: the ranges that this context still has of lost brokers. Without memory, none. */
void context_occupied(struct memclient_context *ctx, struct rpc_occupied *occupied);

/* core/open.c: opens a context and its session, so that a failure is known at once. */
int context_open(const struct memclient_context_options *options, struct memclient_context **ctx);
/* The default context, which the first call that wants it opens. */
int context_default(struct memclient_context **ctx);
/* Ends the session, unmaps and releases everything; handles may be left. */
void context_close(struct memclient_context *ctx);

/* The deadline of a call that begins now. */
uint64_t context_deadline(const struct memclient_context *ctx);

/* A reference to the context's channel, with a new session if need be. Its generation is the session's. */
int context_channel(void *ctx, uint64_t deadline, struct channel **channel);

/* The route of requests. */
static inline struct rpc_route context_route_by(struct memclient_context *ctx, uint64_t deadline)
{
    return (struct rpc_route){.connect = context_channel, .of = ctx, .deadline = deadline};
}

/* The same for a call that begins now. */
static inline struct rpc_route context_route(struct memclient_context *ctx)
{
    return context_route_by(ctx, context_deadline(ctx));
}
