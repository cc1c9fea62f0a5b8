/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a buffer as a whole: allocating, moving, destroying. */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "core/buffer.h"
#include "core/map.h"
#include "core/token_cache.h"

/* The call may take as long as the program waits for room, and its usual time. */
static uint64_t alloc_deadline(const struct memclient_context *ctx, uint64_t wait_ms)
{
    uint64_t ms;

    return __builtin_add_overflow(ctx->deadline_ms, wait_ms, &ms) ? DEADLINE_NEVER : deadline_after_ms(ms);
}

/* All of them, or they are given back, whatever name they have. */
static int alloc_commit(unsigned n, struct memclient_buffer **bufs, uint64_t deadline)
{
    struct fail_saved saved;
    int r = 0;

    for (unsigned i = 0; i < n && !r; i++)
        r = buffer_commit(bufs[i], deadline);
    if (!r)
        return 0;
    saved = fail_save(r);
    for (unsigned i = 0; i < n; i++) {
        (void)buffer_destroy(bufs[i]->ctx, bufs[i]->id, false);
        buffer_unref(bufs[i]);
    }
    return fail_restore(&saved);
}

int buffer_alloc(struct memclient_context *ctx, struct alloc_spec *spec, struct memclient_buffer **bufs)
{
    struct memclient_buffer *made[MEMORYD_BATCH_MAX];
    struct rpc_opened opened = RPC_OPENED_NULL;
    uint64_t deadline = alloc_deadline(ctx, spec->options.wait_ms);
    unsigned cpu, node;
    uint32_t here;
    int r;

    if (spec->options.placement == MEMCLIENT_PLACEMENT_LOCAL && !spec->options.n_nodes && !getcpu(&cpu, &node)) {
        here = node;
        spec->options.nodes = &here;
        spec->options.n_nodes = 1;
    }
    spec->want_token = token_cache_is_wanted(ctx, spec);
    r = rpc_alloc(context_route_by(ctx, deadline), spec, &opened);
    if (!r)
        r = buffer_adopt(ctx, &opened, true, made);
    if (!r)
        r = alloc_commit(spec->n, made, deadline);
    if (r)
        return r;
    memcpy(bufs, made, spec->n * sizeof(*bufs));
    if (spec->options.name && spec->name.policy != MEMCLIENT_NAME_FREE)
        hold_cache_let_out(bufs[0], false);
    if (spec->n == 1)
        token_cache_allocated(bufs[0], &opened.items[0]);
    for (unsigned i = 0; i < spec->n; i++)
        map_prefault_when_mapped(bufs[i]);
    return 0;
}

/*
 * The kernel moves no page for the broker that is in another process's page tables, so those of this process are
 * emptied first: for a mapping of a file that drops nothing else, and the next access fills them again. The pages of
 * locked memory stay in them, and the broker then says that the buffer is in use.
 */
int buffer_move(struct memclient_buffer *buf, uint32_t node)
{
    space_lock_read();
    for (struct mapping *m = space_first(&process_space); m; m = space_next(m))
        if (mapping_is_of(m, buf))
            (void)madvise((void *)(uintptr_t)m->start, (size_t)m->size, MADV_DONTNEED);
    space_unlock();
    return rpc_move(buffer_route(buf), buf->id, node);
}

int buffer_destroy(struct memclient_context *ctx, uint64_t id, bool force)
{
    token_cache_forget_id(ctx, id);
    return rpc_destroy(context_route(ctx), id, force);
}
