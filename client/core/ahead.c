/* SPDX-License-Identifier: Apache-2.0 */
/* Asked for, received, taken, given back; ahead.h tells when. */
#include "core/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/steal.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/ready.h"
#include "proto/status.h"
#include "rpc/channel.h"

/* So many of one kind, no further apart than this, are a habit. */
#define HABIT     8
#define HABIT_NS  (20 * NSEC_PER_MSEC)
/* A habit that was not seen for so long has ended. */
#define END_NS    NSEC_PER_SEC
/* After the broker had no plenty; each time in a row it is twice as long as the last, so often. */
#define PAUSE_NS      (10 * NSEC_PER_MSEC)
#define PAUSE_DOUBLES 4
/* To begin with. */
#define WANTED    2

/* ---- kinds ---------------------------------------------------------------------------------- */

bool ahead_is_plain(uint64_t size, const struct memclient_alloc_options *options)
{
    return size && size <= MEMORYD_AHEAD_BYTES && !options->name && !options->address && !options->wait_ms &&
           options->n_nodes <= 1 && !options->weights && !options->part_size &&
           !(options->flags & MEMCLIENT_NO_DESCRIPTOR);
}

static struct ahead_kind kind_of(uint64_t size, const struct memclient_alloc_options *options)
{
    struct ahead_kind kind = {
        .size = size,
        .alignment = options->alignment,
        .page_size = options->page_size,
        .pages = options->pages,
        .placement = options->placement,
        .flags = options->flags,
        .has_node = options->n_nodes,
        .node = options->n_nodes ? options->nodes[0] : 0,
    };

    if (options->pool)
        (void)snprintf(kind.pool, sizeof(kind.pool), "%s", options->pool);
    return kind;
}

static bool is_kind(const struct ahead_kind *a, const struct ahead_kind *b)
{
    return a->size == b->size && a->alignment == b->alignment && a->page_size == b->page_size &&
           a->pages == b->pages && a->placement == b->placement && a->flags == b->flags &&
           a->has_node == b->has_node && a->node == b->node && !strcmp(a->pool, b->pool);
}

/* May so many be ahead? */
static bool fits(unsigned n, const struct ahead_kind *kind)
{
    return n <= MEMORYD_AHEAD_MAX && n * kind->size <= MEMORYD_AHEAD_BYTES;
}

/* ---- all of them go ------------------------------------------------------------------------- */

/* What was ahead and is not any more, to be given back without the lock. */
struct leftovers {
    struct channel *channel; /* NULL: its session has ended */
    unsigned n;
    struct ahead_item items[MEMORYD_AHEAD_MAX];
};

static bool is_current(const struct memclient *ctx)
{
    return ctx->channel && !ctx->closed && ctx->ahead.generation == ctx->generation &&
           !channel_is_broken(ctx->channel);
}

/* With the lock. */
static void end_locked(struct memclient *ctx, struct leftovers *left)
{
    struct ahead *ahead = &ctx->ahead;

    left->channel = is_current(ctx) ? channel_ref(ctx->channel) : NULL;
    left->n = ahead->n;
    memcpy(left->items, ahead->items, ahead->n * sizeof(ahead->items[0]));
    ahead->n = ahead->n_asked = ahead->wanted = 0;
    ahead->active = false;
    ahead->epoch++;
    if (ahead->generation != ctx->generation) {
        ahead->asking = false;
        ahead->n_untold = ahead->n_telling = 0;
        ahead->generation = ctx->generation;
    }
}

/* Without it. */
static void give_back(struct leftovers *left)
{
    uint64_t ids[MEMORYD_AHEAD_MAX];

    for (unsigned i = 0; i < left->n; i++) {
        struct ahead_item *item = &left->items[i];

        ids[i] = item->opened.id;
        file_id_close(item->fd_id, item->opened.fd);
        buffer_free_unused(item->handle);
    }
    if (left->n && left->channel)
        rpc_post_release(left->channel, left->n, ids);
    left->channel = channel_unref(left->channel);
}

bool ahead_give_back(struct memclient *ctx)
{
    struct leftovers left;

    pthread_mutex_lock(&ctx->lock);
    end_locked(ctx, &left);
    ctx->ahead.in_a_row = 0;
    pthread_mutex_unlock(&ctx->lock);
    give_back(&left);
    return left.n;
}

bool ahead_is_over(struct memclient *ctx)
{
    const struct ahead *ahead = &ctx->ahead;

    return ahead->n && (!is_current(ctx) || clock_now_ns() - ahead->taken_at > END_NS);
}

/* Descriptors are the child's own; the rest goes with the generation, when something is allocated. */
void ahead_fork_child(struct memclient *ctx)
{
    struct ahead *ahead = &ctx->ahead;

    for (unsigned i = 0; i < ahead->n; i++)
        ahead->items[i].opened.fd = file_id_close(ahead->items[i].fd_id, ahead->items[i].opened.fd);
    ahead->n_untold = ahead->n_telling = 0;
}

/* ---- taken ---------------------------------------------------------------------------------- */

/* The byte that says so: 0 or -1. */
static int set_lock(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = MEMORYD_AHEAD_LOCK, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock);
}

bool ahead_is_untold(const struct memclient *ctx, uint64_t id)
{
    const struct ahead *ahead = &ctx->ahead;

    for (unsigned i = 0; i < ahead->n_untold; i++)
        if (ahead->untold[i] == id)
            return true;
    return false;
}

static void forget_at(struct ahead *ahead, unsigned i)
{
    ahead->n_untold--;
    memmove(ahead->untold + i, ahead->untold + i + 1, (ahead->n_untold - i) * sizeof(ahead->untold[0]));
    if (i < ahead->n_telling)
        ahead->n_telling--;
}

static void unlock(struct memclient *ctx, uint64_t id)
{
    struct memclient_buffer *buf;

    HASH_FIND(hh, ctx->buffers, &id, sizeof(id), buf);
    /* of another description than it came with this does nothing */
    if (buf && file_id_is(buf->fd_id, buf->fd))
        (void)set_lock(buf->fd, F_UNLCK);
}

void ahead_forget(struct memclient *ctx, uint64_t id)
{
    struct ahead *ahead = &ctx->ahead;

    for (unsigned i = 0; i < ahead->n_untold; i++)
        if (ahead->untold[i] == id) {
            forget_at(ahead, i);
            unlock(ctx, id);
            return;
        }
}

/* ---- asking --------------------------------------------------------------------------------- */

/* A request is known by how many it asked for, and when. */
static uint64_t tag_of(unsigned epoch, unsigned n)
{
    return (uint64_t)epoch << 8 | n;
}

/* What came too late, or finds no memory. */
static void refuse(struct channel *channel, struct rpc_opened *opened)
{
    uint64_t ids[MEMORYD_BATCH_MAX];
    unsigned n = rpc_opened_ids(opened, ids);

    if (n)
        rpc_post_release(channel, n, ids);
    rpc_opened_deinit(opened);
}

/* With the lock. `heard`: the broker has read what was told. */
static void end_request(struct memclient *ctx, bool heard)
{
    struct ahead *ahead = &ctx->ahead;

    while (heard && ahead->n_telling)
        ahead_forget(ctx, ahead->untold[0]);
    ahead->n_telling = 0;
    ahead->n_asked = 0;
    ahead->asking = false;
}

/* A channel_receiver's. */
static int receive(struct channel *channel, void *data, uint64_t tag, const ProtobufCMessage *reply, struct fdset *fds)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    struct memclient *ctx = data;
    struct ahead *ahead = &ctx->ahead;
    struct memclient_buffer *handles[MEMORYD_AHEAD_MAX] = {NULL};
    bool kept;
    unsigned n_asked = tag & 0xff;
    int r = reply ? rpc_take_ahead(reply, fds, n_asked, &opened) : 0;

    if (r)
        return r;
    for (unsigned i = 0; i < opened.n; i++)
        handles[i] = opened.items[i].status ? NULL : buffer_new_unused(ctx, &opened.items[i]);
    pthread_mutex_lock(&ctx->lock);
    kept = tag >> 8 == ahead->epoch && is_current(ctx);
    if (channel->generation == ahead->generation)
        end_request(ctx, reply);
    if (kept && opened.n) {
        ahead->pauses = 0;
    } else if (kept) {
        ahead->not_before = deadline_after_ns(PAUSE_NS << ahead->pauses);
        ahead->pauses += ahead->pauses < PAUSE_DOUBLES;
    }
    for (unsigned i = 0; i < opened.n && kept; i++) {
        struct rpc_opened_item *item = &opened.items[i];

        if (!handles[i] || item->fd < 0 || ahead->n == MEMORYD_AHEAD_MAX)
            continue;
        ahead->items[ahead->n++] = (struct ahead_item){
            .opened = *item,
            .fd_id = file_id_of(item->fd),
            .handle = steal_ptr(&handles[i]),
        };
        item->fd = -1;
        item->status = STATUS_BUSY; /* kept */
    }
    pthread_mutex_unlock(&ctx->lock);
    refuse(channel, &opened);
    for (unsigned i = 0; i < MEMORYD_AHEAD_MAX; i++)
        buffer_free_unused(handles[i]);
    return 0;
}

/* With the lock. Sends, and does not wait. */
static void ask(struct memclient *ctx, unsigned n)
{
    struct ahead *ahead = &ctx->ahead;
    const struct ahead_kind *kind = &ahead->kind;
    const struct channel_receiver receiver = {.fn = receive, .data = ctx, .tag = tag_of(ahead->epoch, n)};
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pool = kind->pool;
    options.nodes = kind->has_node ? &kind->node : NULL;
    options.n_nodes = kind->has_node;
    options.alignment = kind->alignment;
    options.page_size = kind->page_size;
    options.pages = kind->pages;
    options.placement = kind->placement;
    options.flags = kind->flags;
    if (!channel_speaks(ctx->channel, 2) ||
        !rpc_alloc_ahead(ctx->channel, n, kind->size, &options, ready_is_wanted(ctx), ahead->n_untold, ahead->untold,
                         &receiver))
        return;
    ahead->asking = true;
    ahead->n_asked = n;
    ahead->n_telling = ahead->n_untold;
}

/* With the lock: as many as are missing, if it is at least so many and there is no reason to wait. */
static void ask_from(struct memclient *ctx, unsigned least)
{
    struct ahead *ahead = &ctx->ahead;

    if (!ahead->active || ahead->wanted < ahead->n + least || !is_current(ctx) ||
        !deadline_passed(ahead->not_before, clock_now_ns()))
        return;
    /* a request that was lost, and perhaps never read */
    if (ahead->asking && !channel_owes(ctx->channel))
        end_request(ctx, false);
    if (!ahead->asking)
        ask(ctx, ahead->wanted - ahead->n);
}

void ahead_ask(struct memclient *ctx)
{
    struct ahead *ahead = &ctx->ahead;
    struct leftovers left = {.n = 0};

    pthread_mutex_lock(&ctx->lock);
    if (!ahead->active && ahead->in_a_row >= HABIT && ctx->channel) {
        end_locked(ctx, &left); /* of another session, after a fork */
        ahead->active = true;
        ahead->kind = ahead->last;
        ahead->taken_at = ahead->last_at;
        ahead->not_before = 0;
        ahead->pauses = 0;
        ahead->wanted = fits(WANTED, &ahead->kind) ? WANTED : 1;
    }
    if (is_kind(&ahead->kind, &ahead->last))
        ask_from(ctx, 1);
    pthread_mutex_unlock(&ctx->lock);
    give_back(&left);
}

void ahead_refill(struct memclient *ctx)
{
    pthread_mutex_lock(&ctx->lock);
    ask_from(ctx, (ctx->ahead.wanted + 1) / 2);
    pthread_mutex_unlock(&ctx->lock);
}

/* ---- taking --------------------------------------------------------------------------------- */

static void note(struct ahead *ahead, const struct ahead_kind *kind, uint64_t now)
{
    bool again = is_kind(kind, &ahead->last) && now - ahead->last_at < HABIT_NS;

    ahead->in_a_row = again ? ahead->in_a_row + 1 : 1;
    ahead->last = *kind;
    ahead->last_at = now;
}

/* Has the habit ended, or the session, or does the program close descriptors that it does not know? */
static bool has_ended(const struct memclient *ctx, const struct ahead_kind *kind, uint64_t now)
{
    const struct ahead *ahead = &ctx->ahead;

    if (!ahead->active)
        return false;
    return !is_current(ctx) || now - ahead->taken_at > END_NS ||
           (ahead->in_a_row >= HABIT && !is_kind(kind, &ahead->kind)) ||
           (ahead->n && !file_id_is(ahead->items[0].fd_id, ahead->items[0].opened.fd));
}

/* With the lock. One is there. */
static bool take_first(struct memclient *ctx, struct memclient_buffer **buf)
{
    struct ahead *ahead = &ctx->ahead;
    struct ahead_item item = ahead->items[0];

    /* without the lock it is not taken, whatever this process thinks */
    if (ahead->n_untold == MEMORYD_AHEAD_MAX || set_lock(item.opened.fd, F_WRLCK) < 0)
        return false;
    ahead->untold[ahead->n_untold++] = item.opened.id;
    ahead->n--;
    memmove(ahead->items, ahead->items + 1, ahead->n * sizeof(ahead->items[0]));
    ahead->taken_at = ahead->last_at;
    ready_note_allocation(ctx);
    *buf = buffer_use(ctx, &item.opened, item.handle);
    ready_put(*buf, &item.opened.token);
    return true;
}

bool ahead_take(struct memclient *ctx, uint64_t size, const struct memclient_alloc_options *options,
                struct memclient_buffer **buf)
{
    struct ahead_kind kind = kind_of(size, options);
    struct ahead *ahead = &ctx->ahead;
    struct channel *channel = NULL;
    struct leftovers left = {.n = 0};
    uint64_t now = clock_now_ns();
    bool taken = false;

    pthread_mutex_lock(&ctx->lock);
    note(ahead, &kind, now);
    if (has_ended(ctx, &kind, now)) {
        end_locked(ctx, &left);
    } else if (ahead->active && is_kind(&kind, &ahead->kind)) {
        if (!ahead->n && ahead->n_asked) {
            /* it may have come meanwhile */
            channel = channel_ref(ctx->channel);
            pthread_mutex_unlock(&ctx->lock);
            channel_poll(channel);
            channel_unref(channel);
            pthread_mutex_lock(&ctx->lock);
        }
        if (ahead->active && is_kind(&kind, &ahead->kind) && is_current(ctx)) {
            taken = ahead->n && take_first(ctx, buf);
            /* one more would have been of use */
            if (!taken && fits(ahead->wanted * 2, &kind))
                ahead->wanted *= 2;
            /* nothing has been given back for long */
            if (taken)
                ask_from(ctx, ahead->wanted / 2 + 1);
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    give_back(&left);
    return taken;
}
