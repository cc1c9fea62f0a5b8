/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context: one session with a broker and everything that was opened through it.
 *
 * Locks, in the order in which they are taken: the list of contexts, the address space
 * (core/space.h), a context's own, its channel's. None of them is held while anything waits for the
 * broker.
 *
 * Generations. A session goes on over a lost connection and a broker that is restarted (rpc/channel.h); it ends when
 * the broker does not know it any more, and in the child of a fork. The context then gets a new one at its next call,
 * one generation later. A handle knows the generation in which its buffer was held; in a later one it is held
 * anew if that can be done (core/buffer.h).
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
/* And for copies in children. */
#define CONTEXT_KEPT_FDS_MAX 256

struct memclient {
    struct list in_contexts;
    unsigned refs; /* atomic: its owner, and every handle */
    bool is_default;

    /* never changed after it was opened */
    char *wanted_path; /* or NULL */
    char program[MEMORYD_PROGRAM_MAX + 1];
    uint64_t deadline_ms;
    unsigned autostart;
    bool administrator;

    pthread_mutex_t lock;
    bool closed;
    bool connecting;           /* one thread is; the others wait for `connected` */
    pthread_cond_t connected;
    struct channel *channel;   /* or NULL */
    struct channel *pending_channel;  /* while it says hello */
    struct channel *inherited; /* from the parent process */
    unsigned generation;
    struct rpc_session session; /* .session is 0 before the first */
    char path[108];
    bool autostarted;

    struct memclient_buffer *buffers; /* hash by id */
    struct list fds;                  /* buffers with a cached descriptor, the oldest first */
    unsigned n_fds;
    struct list kept_fds;             /* those with one that is not to be pushed out: core/own.c */
    unsigned n_kept_fds;
    struct list reservations;
    struct token_cache tokens;
    struct hold_cache_owners cached;
    struct events events;
};

/* All of the process's. */
extern struct list contexts;
extern pthread_mutex_t contexts_lock;

int context_new(const struct memclient_options *options, struct memclient **ctx);
struct memclient *context_ref(struct memclient *ctx);
struct memclient *context_unref(struct memclient *ctx);

/* core/fork.c: registers what is done around a fork(), once per process. */
void context_register_fork(void);

/*
 * core/occupied.c, without the lock: where this context still has something that brokers gave it which are lost, for its
 * next HELLO. Without memory nothing is told.
 */
void context_occupied(struct memclient *ctx, struct rpc_occupied *occupied);

/* core/open.c: a new one, that has said hello, so that what is wrong is known at once. */
int context_open(const struct memclient_options *options, struct memclient **ctx);
/* The process's own one, opened by whoever asks first. */
int context_default(struct memclient **ctx);
/* Says goodbye, unmaps and releases everything; handles may be left. */
void context_close(struct memclient *ctx);

/* When a call that begins now has to have ended. */
uint64_t context_deadline(const struct memclient *ctx);

/* The connection of a context, made or made anew if need be; counted. Its generation is the session's. */
int context_channel(void *ctx, uint64_t deadline, struct channel **channel);

/* Requests go there. */
static inline struct rpc_route context_route_by(struct memclient *ctx, uint64_t deadline)
{
    return (struct rpc_route){.connect = context_channel, .of = ctx, .deadline = deadline};
}

/* A call that begins now. */
static inline struct rpc_route context_route(struct memclient *ctx)
{
    return context_route_by(ctx, context_deadline(ctx));
}
