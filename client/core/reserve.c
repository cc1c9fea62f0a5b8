/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: ranges of the arena, which the broker gives to one session of the whole host, and private ranges of
 * this process, of which the broker knows nothing. The rest of the library treats both alike.
 *
 * Each range of the arena takes one request. The library does not reserve large chunks and cut ranges from them: only
 * the broker knows when the home of the last buffer in a range is gone, so the library could not use a part again; a
 * request for an address in the rest of the chunk would be refused; and limits would count what nobody asked for. It
 * would save one round trip for a range, whose memory costs more: in the nbla facade, binding and writing one fresh MiB
 * took fifty times as long. A facade with many small ranges may reserve several at once, as nbla does
 * (client/nbla/lease.h).
 *
 * A private range lies in the arena on request only, even where the arena is free, since this process cannot map homes
 * in it while it lasts. It has its use: memory that another process has placed there is mapped at the same address.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/range.h"
#include "core/map.h"
#include "core/pages.h"

static int reservation_refuse(const struct memclient_reservation *res, int r)
{
    if (r == -ENOMEM)
        return fail_with(
            ENOMEM,
            "0x%llx-0x%llx: the kernel maps no more here: too many mappings (vm.max_map_count), or no such "
            "addresses (ulimit -v); unmap something",
            ULL(res->start), ULL(res->start + res->size));
    return fail_with(EADDRINUSE, "0x%llx-0x%llx: something of this process is there already", ULL(res->start),
                     ULL(res->start + res->size));
}

/* `flags`: MAP_FIXED_NOREPLACE, or MAP_FIXED over pages that were mapped for just this. */
static int reservation_enter(struct memclient_reservation *res, int flags)
{
    bool is_entered = false;
    int r;

    space_lock();
    r = range_index_insert(&process_space.reserved, res->start, res->size, res);
    if (!r) {
        is_entered = true;
        if (!space_is_free(&process_space, res->start, res->size))
            r = -EEXIST;
        else if (pages_reserve(res->start, res->size, flags) < 0)
            r = -errno;
        if (r)
            (void)range_index_remove(&process_space.reserved, res->start);
        else
            pages_keep_spare();
    }
    space_unlock();
    if (r == -ENOMEM && !is_entered)
        return fail_with(ENOMEM, "no memory for a reservation's record");
    return r ? reservation_refuse(res, r) : 0;
}

static void reservation_keep(struct memclient_context *ctx, struct memclient_reservation *res)
{
    res->ctx = context_ref(ctx);
    pthread_mutex_lock(&ctx->lock);
    res->broker = ctx->session.broker;
    list_append(&ctx->reservations, &res->in_context);
    pthread_mutex_unlock(&ctx->lock);
}

static struct memclient_reservation *reservation_new(void)
{
    struct memclient_reservation *res = calloc(1, sizeof(*res));

    if (!res)
        (void)fail_with(ENOMEM, "no memory for a reservation's record");
    return res;
}

int map_reserve(struct memclient_context *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                struct memclient_reservation **resp)
{
    struct rpc_route route = context_route(ctx);
    struct memclient_reservation *res = reservation_new();
    struct rpc_reserved reserved;
    int r;

    if (!res)
        return -ENOMEM;
    r = rpc_reserve(route, size, alignment, address, &reserved);
    if (r) {
        free(res);
        return r;
    }
    res->start = reserved.address;
    res->size = size;
    res->id = reserved.reservation;
    res->generation = reserved.generation;
    r = reservation_enter(res, MAP_FIXED_NOREPLACE);
    if (r) {
        struct fail_saved saved = fail_save(r);

        (void)rpc_unreserve(route, reserved.reservation);
        free(res);
        return fail_restore(&saved);
    }
    reservation_keep(ctx, res);
    *resp = res;
    return 0;
}

/* ---- private ranges ---------------------------------------------------------------------------------------------- */

static struct range reservation_arena_of(struct memclient_context *ctx)
{
    struct range arena;

    pthread_mutex_lock(&ctx->lock);
    arena = (struct range){ctx->session.arena_base, ctx->session.arena_size};
    pthread_mutex_unlock(&ctx->lock);
    return arena;
}

/* Unmaps what surrounds the aligned part, and returns where that begins. */
static uint64_t reservation_trim(uint64_t at, uint64_t room, uint64_t size, uint64_t alignment)
{
    uint64_t start = align_up(at, alignment);

    if (start > at)
        munmap((void *)(uintptr_t)at, (size_t)(start - at));
    if (at + room > start + size)
        munmap((void *)(uintptr_t)(start + size), (size_t)(at + room - start - size));
    return start;
}

/* Maps a range outside of the arena: where the kernel puts it, or else right below the arena, or behind it. 0: there is
 * no such range. */
static uint64_t reservation_take_anywhere(uint64_t size, uint64_t alignment, struct range arena)
{
    uint64_t room = size + (alignment - page_size());
    uint64_t below = arena.start > room ? page_align_down(arena.start - room) : 0;
    const uint64_t hints[] = {0, below, range_end(arena)};

    for (unsigned i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        void *at = pages_map_inaccessible(hints[i], room, 0);

        if (at == MAP_FAILED)
            return 0;
        if (!range_overlaps((struct range){(uintptr_t)at, room}, arena))
            return reservation_trim((uintptr_t)at, room, size, alignment);
        munmap(at, (size_t)room);
    }
    return 0;
}

static int reservation_take_private(struct memclient_reservation *res, struct memclient_context *ctx,
                                    uint64_t alignment, uint64_t wanted)
{
    uint64_t size = res->size;
    int r;

    if (wanted) {
        if (!is_aligned(wanted, alignment))
            return fail_with(EINVAL, "the wanted address 0x%llx is no multiple of the alignment %llu", ULL(wanted),
                             ULL(alignment));
        if (wanted > UINT64_MAX - size)
            return fail_with(EINVAL, "the wanted range goes beyond the end of all addresses");
        res->start = wanted;
        return reservation_enter(res, MAP_FIXED_NOREPLACE);
    }
    res->start = reservation_take_anywhere(size, alignment, reservation_arena_of(ctx));
    if (!res->start)
        return fail_with(ENOMEM, "the kernel has no free range of %llu bytes", ULL(size));
    r = reservation_enter(res, MAP_FIXED);
    if (r)
        munmap((void *)(uintptr_t)res->start, (size_t)size);
    return r;
}

int map_reserve_private(struct memclient_context *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                        struct memclient_reservation **resp)
{
    struct memclient_reservation *res = reservation_new();
    int r;

    if (!res)
        return -ENOMEM;
    res->size = size;
    r = reservation_take_private(res, ctx, alignment > page_size() ? alignment : page_size(), address);
    if (r) {
        free(res);
        return r;
    }
    reservation_keep(ctx, res);
    *resp = res;
    return 0;
}

/* ---- releasing --------------------------------------------------------------------------------------------------- */

/* With the space's lock. Buffers that are mapped at their homes need no reservation, and stay. */
static bool reservation_is_used(const struct memclient_reservation *res)
{
    for (const struct mapping *m = space_overlapping(&process_space, res->start, res->size); m;
         m = mapping_found_next(m))
        if (!m->at_home)
            return true;
    return false;
}

int map_release(struct memclient_reservation *res)
{
    struct memclient_context *ctx = res->ctx;
    struct channel *channel = NULL;
    struct fail_saved saved;

    space_lock();
    if (reservation_is_used(res)) {
        space_unlock();
        return fail_with(EBUSY, "something is mapped in the reservation at 0x%llx: unmap it first", ULL(res->start));
    }
    pthread_mutex_lock(&ctx->lock);
    /* map_drop_context() may have released it already: then it is in no list */
    if (list_is_linked(&res->in_context)) {
        (void)range_index_remove(&process_space.reserved, res->start);
        pages_unreserve(res->start, res->size);
        list_remove(&res->in_context);
        if (res->id && ctx->channel && res->generation == ctx->generation)
            channel = channel_ref(ctx->channel);
    }
    pthread_mutex_unlock(&ctx->lock);
    space_unlock();
    if (channel) {
        saved = fail_save(0);
        (void)rpc_unreserve(rpc_route_of(channel, context_deadline(ctx)), res->id);
        (void)fail_restore(&saved);
        channel_unref(channel);
    }
    free(res);
    context_unref(ctx);
    return 0;
}
