/* SPDX-License-Identifier: Apache-2.0 */
/* See range.h. */
#include "nbla/range.h"

#include <errno.h>
#include <stdlib.h>

#include "base/align.h"
#include "base/checked.h"
#include "nbla/error.h"

#define MIB (UINT64_C(1) << 20)
/* Memory that may have huge pages gets addresses that suit them. */
#define HUGE_PAGE (2 * MIB)

/*
 * What is reserved, tried in turn until one succeeds: so many times the chunks' bytes, in the host's arena or of this
 * process alone. The arena is thousands of times as large as a machine's memory, so that all memories together have
 * room to double twice in place. Less room is better than none; but growing is worth more than the same address in
 * other processes, so a range of this process with room comes before one of the arena without.
 */
static const struct {
    bool of_process;
    unsigned times;
} attempts[] = {{false, 4}, {false, 2}, {true, 4}, {true, 2}, {false, 1}, {true, 1}};
/* The least to be reserved, but for the last two attempts. A lease serves ranges that need no more. */
#define ROOM_MIN LEASE_PART

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* Unmaps all chunks but the first n. */
static void range_cut(struct range *range, size_t n)
{
    while (range->chunks.n > n) {
        const nbla_physical_memory *p = range->chunks.at[range->chunks.n - 1];

        range->had_home |= __atomic_load_n(&p->shared, __ATOMIC_RELAXED) || physical_home(p) ||
                           memclient_buffer_home(p->lock_fd.buffer);
        range->used -= p->bytes;
        /* by length, since the buffer may be another one by now: what a child has bound is a copy of its parent's */
        (void)memclient_unmap(p->ctx, (void *)(uintptr_t)(range->base + range->used), p->bytes);
        chunks_cut(&range->chunks, range->chunks.n - 1);
    }
}

/* A chunk gets its home when it is shared, or here, if it was shared before it had an address. */
static struct memclient_map_options range_options(const struct range *range, const nbla_physical_memory *p, uint64_t at)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    options.offset = p->offset;
    options.length = p->bytes;
    if (range->reservation) {
        options.address = (void *)(uintptr_t)at;
        options.flags = __atomic_load_n(&p->shared, __ATOMIC_RELAXED) ? 0 : MEMCLIENT_MAP_NOT_HOME;
    } else if (!range->is_wanted) {
        options.flags = MEMCLIENT_MAP_ALONE;
    }
    if (!p->lock_fd.opened)
        options.flags |= MEMCLIENT_MAP_COPY_ON_FORK;
    return options;
}

/* 0, or a negative errno. MEMCLIENT_BATCH_MAX at most: all or none. */
static int range_map_some(const struct range *range, nbla_physical_memory *const *p, size_t n)
{
    struct memclient_map_options options[MEMCLIENT_BATCH_MAX];
    struct memclient_buffer *buffers[MEMCLIENT_BATCH_MAX];
    void *addresses[MEMCLIENT_BATCH_MAX];
    uint64_t at = range->base + range->used;

    for (size_t i = 0; i < n; i++) {
        options[i] = range_options(range, p[i], at);
        buffers[i] = p[i]->lock_fd.buffer;
        at += p[i]->bytes;
    }
    return n == 1 ? memclient_map(*buffers, options, addresses) : memclient_map_many(n, buffers, options, addresses);
}

/* 0, or a negative errno. */
static int range_map_all(struct range *range, nbla_physical_memory *const *p, size_t n)
{
    size_t before = range->chunks.n;

    if (chunks_append(&range->chunks, p, n) < 0)
        return -ENOMEM;
    for (size_t done = 0, some; done < n; done += some) {
        int r;

        some = n - done < MEMCLIENT_BATCH_MAX ? n - done : MEMCLIENT_BATCH_MAX;
        r = range_map_some(range, p + done, some);
        if (r) {
            chunks_cut(&range->chunks, before + done);
            range_cut(range, before);
            return r;
        }
        for (size_t i = 0; i < some; i++)
            range->used += p[done + i]->bytes;
    }
    return 0;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static bool have_homes(nbla_physical_memory *const *p, size_t n, uint64_t at)
{
    for (size_t i = 0; i < n; i++) {
        if (!at || physical_home(p[i]) != at)
            return false;
        at += p[i]->bytes;
    }
    return n;
}

/* The address of the first chunk at which all chunks are where they are wanted; 0 = any. */
static int wanted_base(const struct chunks *chunks, uint64_t *ret)
{
    uint64_t base = 0, before = 0;

    for (size_t i = 0; i < chunks->n; i++) {
        const nbla_physical_memory *p = chunks->at[i];

        if (p->wanted && !base)
            base = p->wanted - before;
        if (p->wanted && p->wanted != base + before)
            return fail(NBLA_ERROR_MEMORY, "the wanted addresses of the chunks do not follow each other");
        before += p->bytes;
    }
    *ret = base;
    return 0;
}

/* Is a chunk wanted elsewhere? */
static bool wants_other(nbla_physical_memory *const *p, size_t n, uint64_t at)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]->wanted && p[i]->wanted != at)
            return true;
        at += p[i]->bytes;
    }
    return false;
}

static int range_reserve(struct range *range, bool of_process, uint64_t size, uint64_t alignment, uint64_t at)
{
    struct memclient_reserve_options options = MEMCLIENT_RESERVE_OPTIONS_INIT;
    int r;

    options.alignment = alignment;
    options.address = at;
    options.flags = of_process ? MEMCLIENT_RESERVE_PRIVATE : 0;
    r = memclient_reserve(range->ctx, size, &options, &range->reservation);
    if (r)
        return r;
    range->base = (uintptr_t)memclient_reservation_address(range->reservation);
    range->size = size;
    return 0;
}

static uint64_t range_headroom(uint64_t total, unsigned times)
{
    uint64_t size;

    if (times == 1)
        return total;
    if (!checked_mul_u64(total, times, &size) || !checked_align_up_u64(size, HUGE_PAGE, &size))
        return total;
    return size < ROOM_MIN ? ROOM_MIN : size;
}

static uint64_t range_alignment_of(const struct chunks *chunks, uint64_t total)
{
    uint64_t alignment = total >= HUGE_PAGE ? HUGE_PAGE : page_size();

    for (size_t i = 0; i < chunks->n; i++) {
        uint64_t granule = memclient_buffer_granule(chunks->at[i]->lock_fd.buffer);

        if (granule > alignment)
            alignment = granule;
    }
    return alignment;
}

/* Takes addresses of a lease. False: it cannot. */
static bool range_take_part(struct range *range, uint64_t total, uint64_t alignment)
{
    if (alignment > HUGE_PAGE || range_headroom(total, attempts[0].times) > LEASE_PART)
        return false;
    range->lease = lease_take_part(range->ctx, &range->reservation, &range->base);
    range->size = range->lease ? LEASE_PART : 0;
    return range->lease;
}

/* 0, or a negative errno. */
static int range_find_addresses(struct range *range, const struct chunks *chunks, uint64_t total, uint64_t wanted)
{
    uint64_t alignment = wanted ? 0 : range_alignment_of(chunks, total);
    int r = 0;

    if (!wanted && range_take_part(range, total, alignment))
        return 0;
    for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
        r = range_reserve(range, attempts[i].of_process, range_headroom(total, attempts[i].times), alignment, wanted);
        if (!r)
            break;
    }
    return r;
}

int range_bind(struct range *range, struct memclient_context *ctx, const struct chunks *chunks, uint64_t total)
{
    uint64_t wanted = 0;
    int r = wanted_base(chunks, &wanted);

    if (r < 0)
        return r;
    *range = (struct range){.ctx = ctx, .base = physical_home(*chunks->at), .is_wanted = wanted};
    if (have_homes(chunks->at, chunks->n, range->base) && (!wanted || wanted == range->base)) {
        r = range_map_all(range, chunks->at, chunks->n);
        if (!r)
            return 0;
    }
    r = range_find_addresses(range, chunks, total, wanted);
    if (!r)
        r = range_map_all(range, chunks->at, chunks->n);
    if (r) {
        range_unbind(range);
        return fail_alloc(r);
    }
    return 0;
}

int range_append(struct range *range, nbla_physical_memory *const *p, size_t n, uint64_t total)
{
    uint64_t at = range->base + range->used;
    int r;

    if (range->reservation ? total > range->size - range->used : !have_homes(p, n, at))
        return 0;
    if (wants_other(p, n, at))
        return 0;
    r = range_map_all(range, p, n);
    if (r == -EADDRINUSE)
        return 0;
    if (r)
        return fail_alloc(r);
    if (range->locked)
        range_lock(range);
    return 1;
}

void range_unbind(struct range *range)
{
    for (size_t i = 0; i < range->n_lock_fds; i++)
        lock_fd_deinit(&range->lock_fds[i]);
    free(range->lock_fds);
    range_cut(range, 0);
    chunks_clear(&range->chunks);
    if (range->lease)
        lease_end_part(range->lease, range->base, !range->had_home);
    else
        (void)memclient_reservation_release(range->reservation);
    *range = (struct range){0};
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* Makes a lock_fd for each mapped chunk. */
static int range_have_lock_fds(struct range *range)
{
    struct lock_fd *lock_fds = reallocarray(range->lock_fds, range->chunks.n, sizeof(*lock_fds));

    if (!lock_fds)
        return fail(NBLA_ERROR_MEMORY, "no memory for locks of chunks");
    range->lock_fds = lock_fds;
    for (; range->n_lock_fds < range->chunks.n; range->n_lock_fds++) {
        const struct lock_fd *of = &range->chunks.at[range->n_lock_fds]->lock_fd;

        lock_fd_init(&lock_fds[range->n_lock_fds], memclient_buffer_ref(of->buffer), of->opened);
    }
    return 0;
}

static bool range_opened_any(const struct range *range)
{
    for (size_t i = 0; i < range->chunks.n; i++)
        if (range->chunks.at[i]->lock_fd.opened)
            return true;
    return false;
}

void range_lock(struct range *range)
{
    range->locked = true;
    if (!range_opened_any(range) || range_have_lock_fds(range) < 0)
        return;
    for (size_t i = 0; i < range->n_lock_fds; i++)
        lock_fd_lock(&range->lock_fds[i], range->chunks.at[i]->offset, range->chunks.at[i]->bytes);
}

void range_unlock(struct range *range)
{
    range->locked = false;
    for (size_t i = 0; i < range->n_lock_fds; i++)
        lock_fd_unlock(&range->lock_fds[i], range->chunks.at[i]->offset, range->chunks.at[i]->bytes);
}

nbla_device_memory_state range_state(struct range *range)
{
    for (size_t i = 0; i < range->chunks.n; i++) {
        nbla_physical_memory *p = range->chunks.at[i];
        struct lock_fd *lock_fd = i < range->n_lock_fds ? &range->lock_fds[i] : &p->lock_fd;

        if (lock_fd_state(lock_fd, p->offset, p->bytes) == NBLA_DEVICE_LOCKED)
            return NBLA_DEVICE_LOCKED;
    }
    return NBLA_DEVICE_UNLOCKED;
}
