/* SPDX-License-Identifier: Apache-2.0 */
/* See share.h. */
#include "core/share.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "core/buffer.h"
#include "core/token_cache.h"
#include "proto/status.h"

int share_fd(struct memclient_buffer *buf, unsigned rights, int *fd)
{
    if (!rights)
        rights = buffer_may_write(buf) ? MEMCLIENT_WRITE : MEMCLIENT_READ;
    hold_cache_let_out(buf, true);
    return buffer_export(buf, rights | MEMCLIENT_READ, context_deadline(buf->ctx), fd);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* Buffers of one context, as many as one request may ask for. */
struct sharing {
    unsigned n;
    struct memclient_buffer *const *bufs;
    struct memclient_share_options terms;
    struct memclient_token *tokens;
    int *results;
};

/* Some of these, by index. */
struct wanted {
    unsigned n;
    unsigned at[MEMORYD_BATCH_MAX];
};

static int share_ask(const struct sharing *part, const struct wanted *wanted, uint64_t deadline,
                     struct rpc_shared *shared)
{
    struct memclient_buffer *some[MEMORYD_BATCH_MAX];
    uint64_t ids[MEMORYD_BATCH_MAX];
    int r;

    for (unsigned i = 0; i < wanted->n; i++) {
        some[i] = part->bufs[wanted->at[i]];
        ids[i] = some[i]->id;
    }
    r = buffer_hold_others(wanted->n, some, deadline);
    if (r)
        return r;
    return rpc_share(buffer_route_by(some[wanted->n - 1], deadline), wanted->n, ids, &part->terms, shared);
}

static struct wanted share_refused_by_limit(const struct sharing *part)
{
    struct wanted wanted = {.n = 0};

    for (unsigned i = 0; i < part->n; i++)
        if (part->results[i] == -EDQUOT)
            wanted.at[wanted.n++] = i;
    return wanted;
}

/* Where a limit of tokens is reached, the cached ones are revoked to make room, and the rest is asked for once more. */
static int share_ask_all(const struct sharing *part, struct wanted wanted)
{
    struct memclient_context *ctx = part->bufs[0]->ctx;
    uint64_t deadline = context_deadline(ctx);
    struct rpc_shared shared;
    unsigned first;
    int r;

    do {
        r = share_ask(part, &wanted, deadline, &shared);
        if (r)
            return r;
        first = 0;
        for (unsigned i = wanted.n; i-- > 0;) {
            unsigned at = wanted.at[i];

            part->results[at] = shared.statuses[i] ? -status_errno(shared.statuses[i]) : 0;
            if (!part->results[at])
                part->tokens[at] = shared.tokens[i];
            else
                first = shared.statuses[i];
        }
        if (first)
            (void)fail_refused(first, shared.sentence);
        wanted = share_refused_by_limit(part);
    } while (wanted.n && token_cache_revoke_all(ctx, deadline));
    return 0;
}

static int share_part(struct sharing *part)
{
    struct memclient_share_options *terms = &part->terms;
    struct wanted wanted = {.n = 0};
    bool plain;

    if (!terms->rights) {
        terms->rights = MEMCLIENT_READ | MEMCLIENT_WRITE;
        for (unsigned i = 0; i < part->n; i++)
            if (!buffer_may_write(part->bufs[i]))
                terms->rights = MEMCLIENT_READ;
    }
    plain = terms->rights == (MEMCLIENT_READ | MEMCLIENT_WRITE) && !terms->flags && !terms->uses && !terms->expiry_ms;
    for (unsigned i = 0; i < part->n; i++) {
        hold_cache_let_out(part->bufs[i], false);
        if (plain && token_cache_take(part->bufs[i], &part->tokens[i]))
            part->results[i] = 0;
        else
            wanted.at[wanted.n++] = i;
    }
    return wanted.n ? share_ask_all(part, wanted) : 0;
}

int share_tokens(size_t n, struct memclient_buffer *const *bufs, const struct memclient_share_options *options,
                 struct memclient_token *tokens, int *results)
{
    int r;

    for (size_t i = 0; i < n; i += MEMORYD_BATCH_MAX) {
        struct sharing part = {
            .n = (unsigned)(n - i < MEMORYD_BATCH_MAX ? n - i : MEMORYD_BATCH_MAX),
            .bufs = bufs + i,
            .terms = *options,
            .tokens = tokens + i,
            .results = results + i,
        };

        r = share_part(&part);
        if (!r)
            continue;
        if (!i)
            return r;
        /*
         * the tokens that were made cannot be taken back in one step, so each buffer left gets the error as its result
         */
        for (size_t k = i; k < n; k++)
            results[k] = r;
        break;
    }
    return 0;
}

int share_revoke_all(struct memclient_buffer *buf)
{
    token_cache_forget_id(buf->ctx, buf->id);
    return rpc_revoke(buffer_route(buf), NULL, 0, buf->id);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

int share_name(struct memclient_buffer *buf, const char *name, const struct memclient_name_options *options)
{
    hold_cache_let_out(buf, false);
    return rpc_name_bind(buffer_route(buf), buf->id, name, options);
}

/* ---- opening what other processes have --------------------------------------------------------------------------- */

/* Makes the handle of a reply to one: the refusal of the item is the call's. */
static int share_adopt_only(struct memclient_context *ctx, struct rpc_opened *opened, bool writable_fd,
                            struct memclient_buffer **buf)
{
    unsigned status = opened->items[0].status;

    if (!status)
        return buffer_adopt(ctx, opened, writable_fd, buf);
    rpc_opened_deinit(opened);
    return fail_refused(status, opened->sentence);
}

int share_import(struct memclient_context *ctx, int fd, struct memclient_buffer **buf)
{
    /* a copy is cached for mapping, like a descriptor from the broker; if there can be none, mapping asks for one */
    _cleanup_close_ int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int access = fcntl(kept, F_GETFL) & O_ACCMODE;
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_import(context_route(ctx), kept < 0 ? fd : kept, &opened);

    if (r)
        return r;
    if (!opened.items[0].status && (access == O_RDONLY || access == O_RDWR))
        opened.items[0].fd = steal_fd(&kept);
    r = share_adopt_only(ctx, &opened, access == O_RDWR, buf);
    if (!r)
        hold_cache_let_out(*buf, true);
    return r;
}

int share_adopt(struct memclient_context *ctx, int fd, struct memclient_buffer **buf)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_adopt(context_route(ctx), fd, &opened);

    if (!r)
        r = share_adopt_only(ctx, &opened, false, buf);
    if (!r)
        hold_cache_let_out(*buf, true);
    return r;
}

/* Each item of a reply gets its own result; the sentence is that of the first refusal. */
static void share_note_results(const struct rpc_opened *opened, unsigned n, int *results)
{
    unsigned first = 0;

    for (unsigned i = n; i-- > 0;) {
        unsigned status = opened->items[i].status;

        results[i] = status ? -status_errno(status) : 0;
        if (status)
            first = status;
    }
    if (first)
        (void)fail_refused(first, opened->sentence);
}

int share_open_tokens(struct memclient_context *ctx, size_t n, const struct memclient_token *tokens, unsigned rights,
                      struct memclient_buffer **bufs, int *results)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    struct rpc_route route = context_route(ctx);
    size_t done = 0;
    int r = 0;

    while (done < n) {
        unsigned part = n - done < MEMORYD_BATCH_MAX ? (unsigned)(n - done) : MEMORYD_BATCH_MAX;

        r = rpc_open(route, part, tokens + done, rights, &opened);
        if (!r)
            r = buffer_adopt(ctx, &opened, true, bufs + done);
        if (r)
            break;
        share_note_results(&opened, part, results + done);
        done += part;
    }
    if (r)
        while (done)
            if (!results[--done])
                bufs[done] = buffer_unref(bufs[done]);
    return r;
}

int share_lookup(struct memclient_context *ctx, const struct lookup_spec *spec, struct memclient_buffer **buf)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_lookup(context_route(ctx), spec, &opened);

    if (!r)
        r = share_adopt_only(ctx, &opened, true, buf);
    if (!r && spec->claim != MEMCLIENT_CLAIM_NONE) {
        pthread_mutex_lock(&ctx->lock);
        (*buf)->keeps_out = true;
        pthread_mutex_unlock(&ctx->lock);
    }
    return r;
}
