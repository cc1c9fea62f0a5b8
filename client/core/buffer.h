/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of buffers, and the descriptors kept for mapping them.
 *
 * A context has one handle of a buffer however often it was opened; the handle counts the holds that the broker
 * counted, and gives them up together. A descriptor comes with the buffer or is asked for when a mapping needs it. It
 * stays in a cache of the context until 64 newer ones push it out, so that mapping again makes no call. A buffer that
 * is still mapped then can be mapped again by its mapping.
 *
 * A handle of a former session (see core/context.h) gets a new hold of its buffer by importing its cached descriptor.
 * Without one, nothing can prove that it ever had the right, and the handle is stale.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "base/fileid.h"
#include "base/hash.h"
#include "base/list.h"
#include "core/context.h"

struct memclient_buffer {
    unsigned refs; /* atomic: handles given out, and mappings */
    struct memclient_context *ctx;
    uint64_t id;
    uint64_t size;
    uint64_t bytes;
    uint64_t granule;
    uint32_t broker;      /* whose id it is */
    uint64_t to_prefault; /* atomic: bytes whose pages are entered when they are mapped; core/prefault.c */

    /* under the context's lock; the first three are read without it, atomically */
    uint64_t address;
    unsigned rights;
    unsigned flags;
    unsigned generation;
    uint64_t holds; /* that the session of that generation has */
    bool keeps_out; /* one of them keeps other sessions out, which may wait for its end */
    bool in_table;
    int fd;               /* or -1 */
    struct file_id fd_id; /* tells whether the program has closed it */
    bool fd_writable;
    bool fd_kept; /* in the context's other list */
    struct list in_fds;
    struct cached_token token;
    struct cached_hold cached;
    UT_hash_handle hh;

    /* under the space's lock */
    bool publishing; /* no new writable mapping meanwhile */
    struct list mappings;
};

static inline unsigned buffer_rights(const struct memclient_buffer *buf)
{
    return __atomic_load_n(&buf->rights, __ATOMIC_RELAXED);
}

static inline unsigned buffer_flags(const struct memclient_buffer *buf)
{
    return __atomic_load_n(&buf->flags, __ATOMIC_RELAXED);
}

static inline uint64_t buffer_address(const struct memclient_buffer *buf)
{
    return __atomic_load_n(&buf->address, __ATOMIC_RELAXED);
}

static inline bool buffer_may_write(const struct memclient_buffer *buf)
{
    return (buffer_rights(buf) & MEMCLIENT_WRITE) && !(buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED);
}

static inline void buffer_set_address(struct memclient_buffer *buf, uint64_t address)
{
    __atomic_store_n(&buf->address, address, __ATOMIC_RELAXED);
}

static inline void buffer_set_published(struct memclient_buffer *buf, unsigned flags)
{
    __atomic_or_fetch(&buf->flags, MEMCLIENT_BUFFER_PUBLISHED | flags, __ATOMIC_RELAXED);
}

/*
 * Makes handles of what a reply granted; all or none. Items that were refused are skipped, and their bufs[i] is NULL.
 * Takes the descriptors of the items. On failure the holds are released.
 */
int buffer_adopt(struct memclient_context *ctx, struct rpc_opened *opened, bool writable_fds,
                 struct memclient_buffer **bufs);

struct memclient_buffer *buffer_ref(struct memclient_buffer *buf);
/* May send a request, so no lock may be held. */
struct memclient_buffer *buffer_unref(struct memclient_buffer *buf);

/*
 * The same for several: where these were the last references, the holds are released together, 64 to a request, and
 * the rest by release_batch_send(). The release of holds that keep other sessions out is waited for.
 */
struct release_batch {
    struct channel *channel; /* of the session that has the holds */
    uint64_t deadline;
    unsigned n;
    uint64_t ids[MEMORYD_BATCH_MAX];
};
#define RELEASE_BATCH_NULL ((struct release_batch){.channel = NULL})

void release_batch_unref(struct release_batch *batch, struct memclient_buffer *buf);
void release_batch_send(struct release_batch *batch);

/* core/alloc.c: as many buffers as are wanted, all or none. The broker chooses what the options leave open. */
int buffer_alloc(struct memclient_context *ctx, struct alloc_spec *spec, struct memclient_buffer **bufs);
/* Moves a buffer's memory to another node. */
int buffer_move(struct memclient_buffer *buf, uint32_t node);
/* Ends a buffer, whoever holds it. */
int buffer_destroy(struct memclient_context *ctx, uint64_t id, bool force);

/* A connection in whose session a buffer is held. */
int buffer_channel(void *buf, uint64_t deadline, struct channel **channel);
/* The same for all of a batch but the last one, whose call gives the connection. */
int buffer_hold_others(unsigned n, struct memclient_buffer *const *bufs, uint64_t deadline);

/* The route of requests that need the hold. */
static inline struct rpc_route buffer_route_by(struct memclient_buffer *buf, uint64_t deadline)
{
    return (struct rpc_route){.connect = buffer_channel, .of = buf, .deadline = deadline};
}

/* The same for a call that begins now. */
static inline struct rpc_route buffer_route(struct memclient_buffer *buf)
{
    return buffer_route_by(buf, context_deadline(buf->ctx));
}

/* The descriptor is the caller's; rights are READ, or READ and WRITE. */
int buffer_export(struct memclient_buffer *buf, unsigned rights, uint64_t deadline, int *fd);

/*
 * Has a descriptor cached, writable if wanted. Without the context's lock it may be gone again at any time. If the
 * buffer turns out to be published, the handle notes that, and gets a readable one.
 */
int buffer_cache_fd(struct memclient_buffer *buf, bool writable, uint64_t deadline);

/*
 * The same for n buffers, 64 at most, by one request. It leaves to buffer_cache_fd() what the broker refuses, buffers
 * of another context than the first one's, and a buffer that is the only one.
 */
int buffer_cache_fds(unsigned n, struct memclient_buffer *const *bufs, uint64_t deadline);

/* core/commit.c: allocates the pages of a buffer that was just allocated, if its pool leaves that to this process. */
int buffer_commit(struct memclient_buffer *buf, uint64_t deadline);

/* With the context's lock: the cached descriptor or -1. It becomes the most recently used. */
int buffer_cached_fd(struct memclient_buffer *buf, bool writable);

/* With the context's lock: the cached descriptor is kept as long as the handle, if there is room for another such. */
void buffer_keep_fd(struct memclient_buffer *buf);

/* With the context's lock: closes all cached descriptors, or that of one buffer. */
void buffer_drop_fds(struct memclient_context *ctx);
void buffer_drop_fd(struct memclient_buffer *buf);
