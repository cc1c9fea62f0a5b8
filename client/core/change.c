/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing what is mapped: access, unmapping, withholding from children.
 *
 * Each change is of a range that mappings of the context must cover. It cuts them where the range begins and ends, and
 * is then made to whole mappings. The records that the cuts need are allocated before anything is touched. The kernel
 * is told, span by span, what the pages have to be by all mappings that show them.
 *
 * Where several mappings show the same pages, the caller does not say which one it means. It is taken to mean one of
 * just the range, and of several of those the one with the least access: whichever it meant, the others then have no
 * less access than is still needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/range.h"
#include "core/map.h"
#include "core/pages.h"
#include "core/span.h"

struct cut {
    uint64_t start;
    uint64_t size;
    bool wants_write;       /* the mappings must be such that may be made writable */
    struct mapping *chosen; /* by `taken` */
    unsigned n_spares;
    struct mapping *spares; /* by `taken` */
};

static void cut_deinit(struct cut *cut)
{
    while (cut->spares) {
        struct mapping *next = cut->spares->taken;

        free(cut->spares);
        cut->spares = next;
    }
}

/* ---- which mappings are meant ------------------------------------------------------------------------------------ */

/* How badly the mapping fits a call about [at, end): the less the better. */
static unsigned cut_misfit(const struct mapping *m, uint64_t at, uint64_t end)
{
    if (m->start != at)
        return 3;
    return mapping_end(m) == end ? 0 : mapping_end(m) < end ? 1 : 2;
}

static bool cut_is_better(const struct mapping *m, const struct mapping *than, uint64_t at, uint64_t end)
{
    unsigned a, b;

    if (!than)
        return true;
    a = cut_misfit(m, at, end);
    b = cut_misfit(than, at, end);
    if (a != b)
        return a < b;
    if (a == 1 && m->size != than->size)
        return m->size > than->size;
    return span_level(m->access) < span_level(than->access);
}

/* With the space's lock: the context's mapping with which a change of [at, end) begins. */
static struct mapping *cut_choose_best(struct memclient_context *ctx, uint64_t at, uint64_t end)
{
    struct mapping *best = NULL;

    for (struct mapping *m = space_overlapping(&process_space, at, 1); m; m = mapping_found_next(m))
        if (m->buffer->ctx == ctx && cut_is_better(m, best, at, end))
            best = m;
    return best;
}

/* With the space's lock: of the context's mappings that start there the shortest, or the one with least access. */
static struct mapping *cut_choose_whole(struct memclient_context *ctx, uint64_t start)
{
    struct mapping *best = NULL;

    for (struct mapping *m = space_overlapping(&process_space, start, 1); m; m = mapping_found_next(m))
        if (m->buffer->ctx == ctx && m->start == start &&
            (!best || m->size < best->size ||
             (m->size == best->size && span_level(m->access) < span_level(best->access))))
            best = m;
    return best;
}

static int cut_refuse(const struct cut *cut, uint64_t at)
{
    if (space_find(&process_space, at))
        return fail_with(EFAULT, "0x%llx is mapped by another context", ULL(at));
    return fail_with(EFAULT, "0x%llx-0x%llx is not all mapped by this library", ULL(cut->start),
                     ULL(cut->start + cut->size));
}

/* With the space's lock: may the mapping be changed, and cut at `at` and `end`? Counts the records that this needs. */
static int cut_check(struct cut *cut, const struct mapping *m, uint64_t at, uint64_t end)
{
    if ((m->start < at && !is_aligned(at - m->start, m->buffer->granule)) ||
        (mapping_end(m) > end && !is_aligned(end - m->start, m->buffer->granule)))
        return fail_with(EINVAL, "a buffer of granule %llu can only be cut at multiples of it",
                         ULL(m->buffer->granule));
    if (cut->wants_write && !m->writable)
        return fail_with(EACCES, "0x%llx was mapped for reading only: unmap it and map it again", ULL(m->start));
    cut->n_spares += (m->start < at) + (mapping_end(m) > end);
    return 0;
}

/* With the space's lock: finds the mappings that are meant, or says why there are none. */
static int cut_choose(struct memclient_context *ctx, struct cut *cut)
{
    struct mapping **last = &cut->chosen;
    uint64_t at = cut->start, end;

    if (!cut->size) {
        const struct mapping *whole = cut_choose_whole(ctx, at);

        if (!whole && cut_choose_best(ctx, at, at))
            return fail_with(EINVAL, "0x%llx is not where a mapping starts: say how much of it", ULL(at));
        if (!whole)
            return cut_refuse(cut, at);
        cut->size = whole->size;
    }
    end = at + cut->size;
    for (struct mapping *m; at < end; at = mapping_end(m)) {
        int r;

        m = cut_choose_best(ctx, at, end);
        if (!m)
            return cut_refuse(cut, at);
        r = cut_check(cut, m, at, end);
        if (r)
            return r;
        *last = m;
        last = &m->taken;
        *last = NULL;
    }
    return 0;
}

static int cut_prepare(struct cut *cut)
{
    for (; cut->n_spares; cut->n_spares--) {
        struct mapping *spare = malloc(sizeof(*spare));

        if (!spare)
            return fail_with(ENOMEM, "no memory for a mapping's record");
        spare->taken = cut->spares;
        cut->spares = spare;
    }
    return 0;
}

/* Makes the part from `at` on a mapping by itself. */
static struct mapping *cut_at(struct cut *cut, struct mapping *m, uint64_t at)
{
    struct mapping *rest = cut->spares;

    cut->spares = rest->taken;
    space_split(&process_space, m, at, rest);
    list_append(&m->buffer->mappings, &rest->in_buffer);
    buffer_ref(m->buffer);
    return rest;
}

/* Begins a change. On success the lock is held, and the chosen mappings make up the range. */
static int cut_begin(struct memclient_context *ctx, struct cut *cut)
{
    uint64_t at = cut->start;
    int r;

    if (cut->size > UINT64_MAX - cut->start)
        return fail_with(EFAULT, "the range goes beyond the end of all addresses");
    space_lock();
    r = cut_choose(ctx, cut);
    if (!r)
        r = cut_prepare(cut);
    if (r) {
        space_unlock();
        return r;
    }
    for (struct mapping **link = &cut->chosen; *link; link = &(*link)->taken) {
        struct mapping *m = *link;

        if (m->start < at) {
            *link = cut_at(cut, m, at);
            (*link)->taken = m->taken;
            m = *link;
        }
        if (mapping_end(m) > cut->start + cut->size) {
            struct mapping *next = m->taken;

            (void)cut_at(cut, m, cut->start + cut->size);
            m->taken = next;
        }
        at = mapping_end(m);
    }
    return 0;
}

#define FOR_EACH_CUT(m, cut) for (struct mapping *m = (cut)->chosen; m; m = m->taken)

/* ---- access ------------------------------------------------------------------------------------------------------ */

/* With the space's lock: -1 and errno, or 0. */
static int change_protect_pages(const struct mapping *m)
{
    struct sweep sweep;
    struct span span;

    sweep_begin(&sweep, &process_space, m->start, m->size);
    while (sweep_next(&sweep, &span))
        if (mprotect((void *)(uintptr_t)span.start, (size_t)span.size, map_prot(span.access)) < 0)
            return -1;
    return 0;
}

static unsigned change_full_access(const struct mapping *m, unsigned access)
{
    if (!access)
        return m->writable ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ;
    return access & MEMCLIENT_WRITE ? MEMCLIENT_READ | MEMCLIENT_WRITE : access;
}

int map_protect(struct memclient_context *ctx, uint64_t start, uint64_t size, unsigned access)
{
    _cleanup_(cut_deinit) struct cut cut = {.start = start, .size = size, .wants_write = access & MEMCLIENT_WRITE};
    const struct mapping *refused = NULL;
    int r = cut_begin(ctx, &cut);

    if (r)
        return r;
    FOR_EACH_CUT(m, &cut) {
        m->former = m->access;
        m->access = change_full_access(m, access);
        if (change_protect_pages(m) < 0) {
            r = fail_errno("mprotect");
            refused = m;
            break;
        }
    }
    /* all or nothing: undo what the kernel did before it refused */
    if (r)
        FOR_EACH_CUT(m, &cut) {
            m->access = m->former;
            (void)change_protect_pages(m);
            if (m == refused)
                break;
        }
    space_unlock();
    return r;
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

int map_dont_copy(struct memclient_context *ctx, uint64_t start, uint64_t size)
{
    _cleanup_(cut_deinit) struct cut cut = {.start = start, .size = size};
    int r = cut_begin(ctx, &cut);

    if (r)
        return r;
    FOR_EACH_CUT(m, &cut) {
        bool before = m->dont_copy;

        m->dont_copy = true;
        if (pages_dontfork(m->start, m->size) < 0) {
            m->dont_copy = before;
            r = fail_errno("MADV_DONTFORK");
            break;
        }
    }
    space_unlock();
    return r;
}

/* ---- unmapping --------------------------------------------------------------------------------------------------- */

/* With the space's lock: pages that other mappings still show get what those want. */
static void change_lower_pages(const struct mapping *m, const struct span *span)
{
    if (span_level(span->access) < span_level(m->access))
        (void)mprotect((void *)(uintptr_t)span->start, (size_t)span->size, map_prot(span->access));
    if (!span->for_children && !m->dont_copy)
        (void)pages_dontfork(span->start, span->size);
}

/*
 * With the space's lock: removes one whole mapping, whose record is the caller's then. The kernel refuses only where it
 * has to cut one of its own mappings, so it can refuse at the first span only.
 */
static int change_remove(struct mapping *m)
{
    bool is_begun = false;
    struct sweep sweep;
    struct span span;
    int r = 0;

    space_remove(&process_space, m);
    sweep_begin(&sweep, &process_space, m->start, m->size);
    while (!r && sweep_next(&sweep, &span)) {
        if (span.mapped)
            change_lower_pages(m, &span);
        else if (pages_unmap(span.start, span.size) < 0 && !is_begun)
            r = fail_errno("unmapping");
        is_begun = true;
    }
    if (r)
        space_insert(&process_space, m);
    else
        list_remove(&m->in_buffer);
    return r;
}

/* Without a lock: these may be the last references to buffers. */
void map_drop_taken(struct mapping *taken)
{
    struct release_batch batch = RELEASE_BATCH_NULL;

    while (taken) {
        struct mapping *next = taken->taken;

        release_batch_unref(&batch, taken->buffer);
        free(taken);
        taken = next;
    }
    release_batch_send(&batch);
}

int map_unmap(struct memclient_context *ctx, uint64_t start, uint64_t size)
{
    _cleanup_(cut_deinit) struct cut cut = {.start = start, .size = size};
    struct mapping *taken = NULL;
    int r = cut_begin(ctx, &cut);

    if (r)
        return r;
    for (struct mapping *m = cut.chosen, *next; m && !r; m = next) {
        next = m->taken;
        r = change_remove(m);
        if (!r) {
            m->taken = taken;
            taken = m;
        }
    }
    space_unlock();
    map_drop_taken(taken);
    return r;
}

/* ---- the end of a context ---------------------------------------------------------------------------------------- */

void map_drop_context(struct memclient_context *ctx)
{
    struct mapping *taken = NULL;
    struct list *link;

    space_lock();
    for (struct mapping *m = space_first(&process_space), *next; m; m = next) {
        next = space_next(m);
        if (m->buffer->ctx == ctx && !change_remove(m)) {
            m->taken = taken;
            taken = m;
        }
    }
    pthread_mutex_lock(&ctx->lock);
    while ((link = list_pop(&ctx->reservations))) {
        struct memclient_reservation *res = container_of(link, struct memclient_reservation, in_context);

        (void)range_index_remove(&process_space.reserved, res->start);
        pages_unreserve(res->start, res->size);
    }
    pthread_mutex_unlock(&ctx->lock);
    space_unlock();
    map_drop_taken(taken);
}
