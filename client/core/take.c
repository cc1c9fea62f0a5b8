/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what other processes have; see share.h. */
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/steal.h"
#include "core/buffer.h"
#include "core/share.h"
#include "proto/status.h"

/* The one item of a reply: its own refusal is the call's. */
static int adopt_only(struct memclient *ctx, struct rpc_opened *opened, bool writable_fd, struct memclient_buffer **buf)
{
    unsigned status = opened->items[0].status;

    if (!status)
        return buffer_adopt(ctx, opened, writable_fd, buf);
    rpc_opened_deinit(opened);
    return fail_refused(status, opened->sentence);
}

int take_imported(struct memclient *ctx, int fd, struct memclient_buffer **buf)
{
    /* kept for mapping it, as a descriptor that comes from the broker is; without room for it, mapping asks for one */
    _cleanup_close_ int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int access = fcntl(kept, F_GETFL) & O_ACCMODE;
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_import(context_route(ctx), kept < 0 ? fd : kept, &opened);

    if (r)
        return r;
    if (!opened.items[0].status && (access == O_RDONLY || access == O_RDWR))
        opened.items[0].fd = steal_fd(&kept);
    r = adopt_only(ctx, &opened, access == O_RDWR, buf);
    if (!r)
        hold_cache_let_out(*buf, true);
    return r;
}

int take_adopted(struct memclient *ctx, int fd, struct memclient_buffer **buf)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_adopt(context_route(ctx), fd, &opened);

    if (!r)
        r = adopt_only(ctx, &opened, false, buf);
    if (!r)
        hold_cache_let_out(*buf, true);
    return r;
}

/* Of a reply to n: each one's own result, and the sentence of the first refusal. */
static void note_results(const struct rpc_opened *opened, unsigned n, int *results)
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

int take_by_tokens(struct memclient *ctx, size_t n, const struct memclient_token *tokens, unsigned rights,
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
        note_results(&opened, part, results + done);
        done += part;
    }
    if (r)
        while (done)
            if (!results[--done])
                bufs[done] = buffer_unref(bufs[done]);
    return r;
}

int take_found(struct memclient *ctx, const struct lookup_spec *spec, struct memclient_buffer **buf)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_lookup(context_route(ctx), spec, &opened);

    if (!r)
        r = adopt_only(ctx, &opened, true, buf);
    if (!r && spec->claim != MEMCLIENT_CLAIM_NONE)
        buffer_set_keeps_out(*buf);
    return r;
}
