/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing what is mapped: access, unmapping, not for children.
 *
 * Each takes a range that must be covered by mappings of the context, cuts the first and the last
 * mapping where the range begins and ends, and then goes over whole ones. The two records that the
 * cuts need are allocated before anything is touched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/range.h"
#include "core/map.h"

#define HEX(number) ((unsigned long long)(number))

struct cut {
    uint64_t start;
    uint64_t size;
    struct mapping *spare[2];
};

static void cut_deinit(struct cut *cut)
{
    free(cut->spare[0]);
    free(cut->spare[1]);
}

/* With the space's lock: are these all the context's, and may they be cut there? */
static int cut_check(struct memclient *ctx, struct cut *cut)
{
    struct mapping *m = space_find(&process_space, cut->start);

    if (m && !cut->size) {
        if (m->start != cut->start)
            return fail_with(EINVAL, "0x%llx is not where a mapping starts: say how much of it",
                        HEX(cut->start));
        cut->size = m->size;
    }
    if (!space_is_covered(&process_space, cut->start, cut->size))
        return fail_with(EFAULT, "0x%llx-0x%llx is not all mapped by this library", HEX(cut->start),
                    HEX(cut->start + cut->size));
    for (; m && m->start < cut->start + cut->size; m = space_next(m)) {
        uint64_t end = cut->start + cut->size;

        if (m->buffer->ctx != ctx)
            return fail_with(EFAULT, "0x%llx is mapped by another context", HEX(m->start));
        if ((m->start < cut->start && !is_aligned(cut->start - m->start, m->buffer->granule)) ||
            (end - m->start < m->size && !is_aligned(end - m->start, m->buffer->granule)))
            return fail_with(EINVAL, "a buffer of granule %llu can only be cut at multiples of it",
                        HEX(m->buffer->granule));
    }
    return 0;
}

static void cut_at(struct cut *cut, unsigned i, uint64_t at)
{
    struct mapping *m = space_find(&process_space, at);

    if (!m || m->start == at)
        return;
    space_split(&process_space, m, at, cut->spare[i]);
    list_append(&m->buffer->mappings, &cut->spare[i]->in_buffer);
    buffer_ref(m->buffer);
    cut->spare[i] = NULL;
}

/* Begins a change: the lock is held on success, and the range consists of whole mappings. */
static int cut_begin(struct memclient *ctx, struct cut *cut,
                     int (*allows)(const struct mapping *, unsigned), unsigned access)
{
    int r;

    if (cut->size > UINT64_MAX - cut->start)
        return fail_with(EFAULT, "the range goes beyond the end of all addresses");
    for (unsigned i = 0; i < 2; i++) {
        cut->spare[i] = malloc(sizeof(*cut->spare[i]));
        if (!cut->spare[i])
            return fail_with(ENOMEM, "no memory for a mapping's record");
    }
    space_lock();
    r = cut_check(ctx, cut);
    for (struct mapping *m = space_find(&process_space, cut->start);
         !r && allows && m && m->start < cut->start + cut->size; m = space_next(m))
        r = allows(m, access);
    if (r) {
        space_unlock();
        return r;
    }
    cut_at(cut, 0, cut->start);
    cut_at(cut, 1, cut->start + cut->size);
    return 0;
}

#define FOR_EACH_CUT(m, cut)                                                              \
    for (struct mapping *m = space_find(&process_space, (cut)->start), *next_ = NULL;    \
         m && m->start < (cut)->start + (cut)->size && (next_ = space_next(m), true);    \
         m = next_)

/* ---- access --------------------------------------------------------------------------------- */

static int allows_access(const struct mapping *m, unsigned access)
{
    if (!(access & MEMCLIENT_WRITE) || m->writable)
        return 0;
    return fail_with(EACCES, "0x%llx was mapped for reading only: unmap it and map it again",
                HEX(m->start));
}

int map_protect(struct memclient *ctx, uint64_t start, uint64_t size, unsigned access)
{
    _cleanup_(cut_deinit) struct cut cut = {.start = start, .size = size};
    uint64_t done = start;
    int r;

    r = cut_begin(ctx, &cut, allows_access, access);
    if (r)
        return r;
    FOR_EACH_CUT(m, &cut)
    {
        unsigned wanted = access;

        if (!wanted)
            wanted = m->writable ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ;
        if (mprotect((void *)(uintptr_t)m->start, (size_t)m->size, map_prot(wanted)) < 0) {
            r = fail_errno("mprotect");
            break;
        }
        done = m->start + m->size;
    }
    /* all or nothing: what the kernel did before it refused is put back as the index has it */
    FOR_EACH_CUT(m, &cut)
    {
        if (m->start >= done)
            break;
        if (r)
            (void)mprotect((void *)(uintptr_t)m->start, (size_t)m->size, map_prot(m->access));
        else
            m->access = access ? (access & MEMCLIENT_WRITE ? MEMCLIENT_READ | MEMCLIENT_WRITE : access)
                        : m->writable ? MEMCLIENT_READ | MEMCLIENT_WRITE
                                      : MEMCLIENT_READ;
    }
    space_unlock();
    return r;
}

/* ---- children ------------------------------------------------------------------------------- */

int map_dont_copy(struct memclient *ctx, uint64_t start, uint64_t size)
{
    _cleanup_(cut_deinit) struct cut cut = {.start = start, .size = size};
    int r;

    r = cut_begin(ctx, &cut, NULL, 0);
    if (r)
        return r;
    FOR_EACH_CUT(m, &cut)
    {
        if (madvise((void *)(uintptr_t)m->start, (size_t)m->size, MADV_DONTFORK) < 0) {
            r = fail_errno("MADV_DONTFORK");
            break;
        }
        m->dont_copy = true;
    }
    space_unlock();
    return r;
}

/* ---- unmapping ------------------------------------------------------------------------------ */

/* With the space's lock. Takes one whole mapping away; the record is the caller's then. */
static int take_away(struct mapping *m)
{
    int r = space_reserved_find(&process_space, m->start)
                ? map_reserve_pages(m->start, m->size, MAP_FIXED)
                : munmap((void *)(uintptr_t)m->start, (size_t)m->size);

    if (r < 0)
        return fail_errno("unmapping");
    space_remove(&process_space, m);
    list_remove(&m->in_buffer);
    return 0;
}

/* Without a lock: these may have been the last references of buffers. */
void map_drop_taken(struct mapping *taken)
{
    struct leaving leaving = LEAVING_NULL;

    while (taken) {
        struct mapping *next = taken->taken;

        leaving_unref(&leaving, taken->buffer);
        free(taken);
        taken = next;
    }
    leaving_send(&leaving);
}

int map_unmap(struct memclient *ctx, uint64_t start, uint64_t size)
{
    _cleanup_(cut_deinit) struct cut cut = {.start = start, .size = size};
    struct mapping *taken = NULL;
    int r;

    r = cut_begin(ctx, &cut, NULL, 0);
    if (r)
        return r;
    FOR_EACH_CUT(m, &cut)
    {
        r = take_away(m);
        if (r)
            break;
        m->taken = taken;
        taken = m;
    }
    space_unlock();
    map_drop_taken(taken);
    return r;
}

/* ---- the end of a context -------------------------------------------------------------------- */

void map_drop_context(struct memclient *ctx)
{
    struct mapping *taken = NULL;
    struct list *link;

    space_lock();
    for (struct mapping *m = space_first(&process_space, 0), *next; m; m = next) {
        next = space_next(m);
        if (m->buffer->ctx == ctx && !take_away(m)) {
            m->taken = taken;
            taken = m;
        }
    }
    pthread_mutex_lock(&ctx->lock);
    while ((link = list_pop(&ctx->reservations))) {
        struct memclient_reservation *res =
            container_of(link, struct memclient_reservation, in_context);

        munmap((void *)(uintptr_t)res->range.start, (size_t)res->range.size);
        space_reserved_remove(&process_space, &res->range);
    }
    pthread_mutex_unlock(&ctx->lock);
    space_unlock();
    map_drop_taken(taken);
}
