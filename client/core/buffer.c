/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: made of replies, counted, held anew, released; see buffer.h. */
#include "core/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "core/token_cache.h"
#include "proto/status.h"

static void buffer_learn(struct memclient_buffer *buf, const struct rpc_opened_item *item)
{
    __atomic_store_n(&buf->rights, item->rights, __ATOMIC_RELAXED);
    __atomic_store_n(&buf->flags, item->flags, __ATOMIC_RELAXED);
    if (item->address)
        buffer_set_address(buf, item->address);
}

/* ---- the cache of descriptors ------------------------------------------------------------------------------------ */

void buffer_drop_fd(struct memclient_buffer *buf)
{
    if (buf->fd < 0)
        return;
    buf->fd = file_id_close(buf->fd_id, buf->fd);
    list_remove(&buf->in_fds);
    if (buf->fd_kept)
        buf->ctx->n_kept_fds--;
    else
        buf->ctx->n_fds--;
    buf->fd_kept = false;
}

void buffer_drop_fds(struct memclient_context *ctx)
{
    struct list *link;

    while ((link = list_first(&ctx->fds)))
        buffer_drop_fd(container_of(link, struct memclient_buffer, in_fds));
    while ((link = list_first(&ctx->kept_fds)))
        buffer_drop_fd(container_of(link, struct memclient_buffer, in_fds));
}

/* A quarter of what the process may have open. */
static unsigned kept_fds_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 4 > CONTEXT_KEPT_FDS_MAX)
        return CONTEXT_KEPT_FDS_MAX;
    return (unsigned)(limit.rlim_cur / 4);
}

void buffer_keep_fd(struct memclient_buffer *buf)
{
    struct memclient_context *ctx = buf->ctx;

    if (buf->fd < 0 || buf->fd_kept || ctx->n_kept_fds >= kept_fds_max())
        return;
    list_remove(&buf->in_fds);
    ctx->n_fds--;
    list_append(&ctx->kept_fds, &buf->in_fds);
    ctx->n_kept_fds++;
    buf->fd_kept = true;
}

/* With the context's lock. Takes the descriptor. */
static void buffer_store_fd(struct memclient_buffer *buf, int fd, bool writable)
{
    struct memclient_context *ctx = buf->ctx;
    bool kept = buf->fd_kept;

    if (ctx->closed || (buf->fd >= 0 && buf->fd_writable && !writable)) {
        fd_close(fd);
        return;
    }
    buffer_drop_fd(buf);
    if (ctx->n_fds == CONTEXT_FDS_MAX)
        buffer_drop_fd(container_of(list_first(&ctx->fds), struct memclient_buffer, in_fds));
    buf->fd = fd;
    buf->fd_id = file_id_of(fd);
    buf->fd_writable = writable;
    list_append(&ctx->fds, &buf->in_fds);
    ctx->n_fds++;
    if (kept)
        buffer_keep_fd(buf);
}

int buffer_cached_fd(struct memclient_buffer *buf, bool writable)
{
    if (buf->fd < 0 || (writable && !buf->fd_writable))
        return -1;
    if (!file_id_is(buf->fd_id, buf->fd)) {
        buffer_drop_fd(buf);
        return -1;
    }
    if (!buf->fd_kept) {
        list_remove(&buf->in_fds);
        list_append(&buf->ctx->fds, &buf->in_fds);
    }
    return buf->fd;
}

/* ---- adopting ---------------------------------------------------------------------------------------------------- */

static struct memclient_buffer *buffer_find(struct memclient_context *ctx, uint64_t id)
{
    struct memclient_buffer *buf;

    HASH_FIND(hh, ctx->buffers, &id, sizeof(id), buf);
    return buf;
}

static void buffer_leave_table(struct memclient_buffer *buf)
{
    if (!buf->in_table)
        return;
    HASH_DELETE(hh, buf->ctx->buffers, buf);
    buf->in_table = false;
}

static struct memclient_buffer *buffer_new(struct memclient_context *ctx, const struct rpc_opened_item *item,
                                           uint32_t broker)
{
    struct memclient_buffer *buf = calloc(1, sizeof(*buf));

    if (!buf)
        return NULL;
    buf->refs = 1;
    buf->ctx = context_ref(ctx);
    buf->id = item->id;
    buf->size = item->size;
    buf->bytes = item->bytes;
    buf->granule = item->granule;
    buf->broker = broker;
    buf->fd = -1;
    list_init(&buf->in_fds);
    cached_token_init(&buf->token);
    list_init(&buf->mappings);
    return buf;
}

/* With the lock. `spare` is used if the context has no handle of it in this generation. */
static struct memclient_buffer *buffer_adopt_one(struct memclient_context *ctx, unsigned generation,
                                                 struct rpc_opened_item *item, bool writable_fd, uint32_t changes,
                                                 struct memclient_buffer **spare)
{
    struct memclient_buffer *buf = buffer_find(ctx, item->id);

    if (buf && buf->generation == generation) {
        __atomic_add_fetch(&buf->refs, 1, __ATOMIC_RELAXED);
        hold_cache_used(buf);
    } else {
        /* it is of a session that ended: the id may be another buffer's by now */
        if (buf)
            buffer_leave_table(buf);
        buf = steal_ptr(spare);
        buf->generation = generation;
        hold_cache_opened(buf, changes);
        HASH_ADD(hh, ctx->buffers, id, sizeof(buf->id), buf);
        /* without memory for the table the handle works as well, but is not found again */
        buf->in_table = buf->hh.tbl;
    }
    buf->holds++;
    buffer_learn(buf, item);
    /* a foreign buffer is never mapped, and its descriptor cannot be imported */
    if (item->fd >= 0 && !(item->flags & MEMCLIENT_BUFFER_FOREIGN))
        buffer_store_fd(buf, steal_fd(&item->fd), writable_fd);
    return buf;
}

static void buffer_release_opened(const struct rpc_opened *opened, uint64_t deadline)
{
    uint64_t ids[MEMORYD_BATCH_MAX];
    unsigned n = rpc_opened_ids(opened, ids);

    if (n)
        rpc_release(rpc_route_of(opened->channel, deadline), n, ids, false);
}

int buffer_adopt(struct memclient_context *ctx, struct rpc_opened *opened, bool writable_fds,
                 struct memclient_buffer **bufs)
{
    struct memclient_buffer *spares[MEMORYD_BATCH_MAX] = {NULL};
    bool enough = true;
    uint32_t broker;

    pthread_mutex_lock(&ctx->lock);
    broker = ctx->session.broker;
    pthread_mutex_unlock(&ctx->lock);
    for (unsigned i = 0; i < opened->n && enough; i++)
        if (!opened->items[i].status) {
            spares[i] = buffer_new(ctx, &opened->items[i], broker);
            enough = spares[i];
        }
    if (!enough)
        buffer_release_opened(opened, context_deadline(ctx));

    if (enough) {
        pthread_mutex_lock(&ctx->lock);
        for (unsigned i = 0; i < opened->n; i++) {
            struct rpc_opened_item *item = &opened->items[i];
            uint32_t changes = opened->changes[item->id % HOLD_CACHE_CHANGES];
            bool may_write = (item->rights & MEMCLIENT_WRITE) && !(item->flags & MEMCLIENT_BUFFER_PUBLISHED);

            bufs[i] = NULL;
            if (!item->status)
                bufs[i] = buffer_adopt_one(ctx, opened->channel->generation, item, may_write && writable_fds, changes,
                                           &spares[i]);
        }
        pthread_mutex_unlock(&ctx->lock);
    }
    for (unsigned i = 0; i < opened->n; i++)
        if (spares[i]) {
            free(spares[i]);
            context_unref(ctx);
        }
    rpc_opened_deinit(opened);
    return enough ? 0 : fail_with(ENOMEM, "no memory for a handle");
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

struct memclient_buffer *buffer_ref(struct memclient_buffer *buf)
{
    __atomic_add_fetch(&buf->refs, 1, __ATOMIC_RELAXED);
    return buf;
}

/* Gives up one reference. True if it was the last: then nobody else has the handle any more. */
static bool buffer_drop_reference(struct memclient_buffer *buf, struct channel **channel)
{
    struct memclient_context *ctx = buf->ctx;
    unsigned refs = __atomic_load_n(&buf->refs, __ATOMIC_RELAXED);
    bool last;

    /* the last reference is dropped under the lock, since the table could hand out another */
    while (refs > 1)
        if (__atomic_compare_exchange_n(&buf->refs, &refs, refs - 1, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return false;

    pthread_mutex_lock(&ctx->lock);
    last = !__atomic_sub_fetch(&buf->refs, 1, __ATOMIC_ACQ_REL);
    if (last) {
        buffer_leave_table(buf);
        buffer_drop_fd(buf);
        token_cache_forget(buf);
        hold_cache_leave(buf);
        if (!ctx->closed && ctx->channel && buf->generation == ctx->generation)
            *channel = channel_ref(ctx->channel);
    }
    pthread_mutex_unlock(&ctx->lock);
    return last;
}

static void release_batch_flush(struct release_batch *batch, bool wait)
{
    rpc_release(rpc_route_of(batch->channel, batch->deadline), batch->n, batch->ids, wait);
    batch->n = 0;
}

void release_batch_send(struct release_batch *batch)
{
    if (batch->n)
        release_batch_flush(batch, false);
    batch->channel = channel_unref(batch->channel);
}

/* Takes the channel. */
static void release_batch_add(struct release_batch *batch, const struct memclient_buffer *buf, struct channel *channel)
{
    if (batch->channel != channel)
        release_batch_send(batch);
    channel_unref(batch->channel);
    batch->channel = channel;
    batch->deadline = context_deadline(buf->ctx);
    for (uint64_t i = 0; i < buf->holds; i++) {
        if (batch->n == MEMORYD_BATCH_MAX)
            release_batch_flush(batch, false);
        batch->ids[batch->n++] = buf->id;
    }
    if (buf->keeps_out)
        release_batch_flush(batch, true);
}

void release_batch_unref(struct release_batch *batch, struct memclient_buffer *buf)
{
    struct channel *channel = NULL;
    struct memclient_context *ctx;
    int err = errno;

    if (!buf || !buffer_drop_reference(buf, &channel))
        return;
    ctx = buf->ctx;
    if (channel)
        release_batch_add(batch, buf, channel);
    free(buf);
    context_unref(ctx);
    errno = err;
}

struct memclient_buffer *buffer_unref(struct memclient_buffer *buf)
{
    struct release_batch batch = RELEASE_BATCH_NULL;

    release_batch_unref(&batch, buf);
    release_batch_send(&batch);
    return NULL;
}

/* ---- the hold ---------------------------------------------------------------------------------------------------- */

/* The buffer is not held in the channel's session: tries to import its cached descriptor. */
static int buffer_hold_anew(struct memclient_buffer *buf, struct channel *channel, uint64_t deadline)
{
    struct memclient_context *ctx = buf->ctx;
    struct rpc_opened opened = RPC_OPENED_NULL;
    _cleanup_close_ int fd = -1;
    int r;

    pthread_mutex_lock(&ctx->lock);
    if (file_id_is(buf->fd_id, buf->fd))
        fd = fcntl(buf->fd, F_DUPFD_CLOEXEC, 3);
    pthread_mutex_unlock(&ctx->lock);
    if (fd < 0)
        return fail_with(ESTALE,
                         "buffer #%llu was opened in a session that has ended (with its connection, or "
                         "before a fork); open it again",
                         ULL(buf->id));
    r = rpc_import(rpc_route_of(channel, deadline), fd, &opened);
    if (r == -EREMOTE)
        return fail_with(ESTALE, "buffer #%llu is of a broker that has ended", ULL(buf->id));
    if (r)
        return r;
    if (opened.items[0].status || opened.items[0].id != buf->id) {
        buffer_release_opened(&opened, deadline);
        rpc_opened_deinit(&opened);
        return fail_with(ESTALE, "buffer #%llu is of a session that has ended", ULL(buf->id));
    }
    pthread_mutex_lock(&ctx->lock);
    if (buf->generation == channel->generation) {
        buf->holds++;
    } else {
        buf->generation = channel->generation;
        buf->holds = 1;
        buf->keeps_out = false;
        buffer_learn(buf, &opened.items[0]);
    }
    pthread_mutex_unlock(&ctx->lock);
    rpc_opened_deinit(&opened);
    return 0;
}

int buffer_channel(void *buffer, uint64_t deadline, struct channel **channelp)
{
    struct memclient_buffer *buf = buffer;
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    bool held;
    int r;

    r = context_channel(buf->ctx, deadline, &channel);
    if (r)
        return r;
    pthread_mutex_lock(&buf->ctx->lock);
    held = buf->generation == channel->generation;
    pthread_mutex_unlock(&buf->ctx->lock);
    if (!held) {
        r = buffer_hold_anew(buf, channel, deadline);
        if (r)
            return r;
    }
    *channelp = steal_ptr(&channel);
    return 0;
}

int buffer_hold_others(unsigned n, struct memclient_buffer *const *bufs, uint64_t deadline)
{
    for (unsigned i = 0; i + 1 < n; i++) {
        _cleanup_(channel_unrefp) struct channel *channel = NULL;
        int r = buffer_channel(bufs[i], deadline, &channel);

        if (r)
            return r;
    }
    return 0;
}

int buffer_export(struct memclient_buffer *buf, unsigned rights, uint64_t deadline, int *fd)
{
    struct rpc_exported exported;
    uint32_t wanted = rights;
    int r;

    r = rpc_export(buffer_route_by(buf, deadline), 1, &buf->id, &wanted, &exported);
    if (!r && exported.statuses[0])
        r = fail_refused(exported.statuses[0], exported.sentence);
    if (!r)
        *fd = exported.fds[0];
    return r;
}

static bool buffer_has_cached_fd(struct memclient_buffer *buf, bool writable)
{
    int fd;

    pthread_mutex_lock(&buf->ctx->lock);
    fd = buffer_cached_fd(buf, writable);
    pthread_mutex_unlock(&buf->ctx->lock);
    return fd >= 0;
}

static void buffer_take_fd(struct memclient_buffer *buf, int fd, bool writable)
{
    pthread_mutex_lock(&buf->ctx->lock);
    buffer_store_fd(buf, fd, writable);
    pthread_mutex_unlock(&buf->ctx->lock);
}

int buffer_cache_fd(struct memclient_buffer *buf, bool writable, uint64_t deadline)
{
    int fd;
    int r;

    if (buffer_has_cached_fd(buf, writable))
        return 0;
    r = buffer_export(buf, writable ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ, deadline, &fd);
    if (r && writable && fail_status() == STATUS_PUBLISHED) {
        writable = false;
        r = buffer_export(buf, MEMCLIENT_READ, deadline, &fd);
        /* without this seal, writable mappings that were made before may be left */
        if (!r)
            buffer_set_published(buf, fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE ? 0 : MEMCLIENT_BUFFER_FUTURE_ONLY);
    }
    if (!r)
        buffer_take_fd(buf, fd, writable);
    return r;
}

int buffer_cache_fds(unsigned n, struct memclient_buffer *const *bufs, uint64_t deadline)
{
    struct memclient_buffer *wanted[MEMORYD_BATCH_MAX];
    uint64_t ids[MEMORYD_BATCH_MAX];
    uint32_t rights[MEMORYD_BATCH_MAX];
    struct rpc_exported exported;
    unsigned n_wanted = 0;
    int r;

    for (unsigned i = 0; i < n; i++) {
        bool writable = buffer_may_write(bufs[i]);

        if (bufs[i]->ctx != bufs[0]->ctx || buffer_has_cached_fd(bufs[i], writable))
            continue;
        wanted[n_wanted] = bufs[i];
        ids[n_wanted] = bufs[i]->id;
        rights[n_wanted++] = writable ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ;
    }
    if (n_wanted < 2)
        return 0;
    r = buffer_hold_others(n_wanted, wanted, deadline);
    if (r)
        return r;
    r = rpc_export(buffer_route_by(wanted[n_wanted - 1], deadline), n_wanted, ids, rights, &exported);
    if (r)
        return r;
    for (unsigned i = 0; i < n_wanted; i++)
        if (exported.fds[i] >= 0)
            buffer_take_fd(wanted[i], exported.fds[i], rights[i] & MEMCLIENT_WRITE);
    return 0;
}
