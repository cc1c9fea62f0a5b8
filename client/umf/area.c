/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations do not overlap, so they are in an index. The value of private memory is its owner. Where one private
 * allocation ends and the next begins does not matter, so neighbours are joined to one area. The value of a buffer's
 * memory is the buffer with its lowest bit set; the buffer knows its owner and where it is mapped. Opened areas may
 * overlap, so they are in an interval tree.
 */
#include "umf/area.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/list.h"
#include "base/range_index.h"
#include "umf/mutex.h"

struct opened_area {
    struct interval range;
    struct area area;
};

static struct range_index allocated;
static struct interval_tree opened_areas;
pthread_mutex_t area_mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t area_end(const struct area *area)
{
    return area->start + area->length;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

struct shared_buffer *shared_buffer_new(struct memclient_buffer *handle)
{
    struct shared_buffer *buffer = calloc(1, sizeof(*buffer));

    if (!buffer)
        return NULL;
    buffer->refs = 1;
    buffer->handle = handle;
    buffer->pid = getpid();
    return buffer;
}

void shared_buffer_ref(struct shared_buffer *buffer)
{
    __atomic_fetch_add(&buffer->refs, 1, __ATOMIC_RELAXED);
}

void shared_buffer_unref(struct shared_buffer *buffer)
{
    struct memclient_context *ctx;

    if (!buffer || __atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL))
        return;
    ctx = memclient_buffer_context(buffer->handle);
    if (buffer->pid == getpid()) {
        /* a token or a name would keep the memory although it was freed */
        if (buffer->token_keeps)
            (void)memclient_revoke_token(ctx, buffer->token);
        if (buffer->name)
            (void)memclient_unbind_name(ctx, buffer->name);
    }
    (void)memclient_reservation_release(buffer->reservation);
    (void)memclient_buffer_unref(buffer->handle);
    free(buffer->token);
    free(buffer->name);
    free(buffer->opened_by);
    free(buffer);
}

/* Pages that others hold too must not be discarded. */
static bool is_ours_alone(struct shared_buffer *buffer)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    if (!__atomic_load_n(&buffer->may_be_shared, __ATOMIC_RELAXED) && buffer->pid == getpid())
        return true;
    return !memclient_buffer_query(buffer->handle, &info) && info.holds <= 1;
}

void shared_buffer_release(const struct area *taken)
{
    struct shared_buffer *buffer = taken->buffer;

    (void)memclient_unmap(memclient_buffer_context(buffer->handle), (void *)(uintptr_t)taken->start, taken->length);
    if (taken->kind == AREA_ALLOCATED && __atomic_load_n(&buffer->refs, __ATOMIC_RELAXED) > 1 && is_ours_alone(buffer))
        (void)memclient_discard(buffer->handle, taken->offset, taken->length);
    shared_buffer_unref(buffer);
}

/* ---- allocations, with the lock ---------------------------------------------------------------------------------- */

static void to_area(const struct range_entry *entry, struct area *area)
{
    struct shared_buffer *buffer = NULL;

    if ((uintptr_t)entry->value & 1)
        buffer = (struct shared_buffer *)(void *)((char *)entry->value - 1);
    *area = (struct area){
        .owner = buffer ? buffer->owner : entry->value,
        .kind = AREA_ALLOCATED,
        .start = entry->start,
        .length = entry->size,
        .buffer = buffer,
        .offset = buffer ? entry->start - buffer->base : 0,
    };
}

/* -EEXIST: the range overlaps another. */
static int insert_allocated(const struct area *area)
{
    struct shared_buffer *buffer = area->buffer;

    if (!buffer)
        return range_index_join(&allocated, area->start, area->length, (void *)(uintptr_t)area->owner);
    buffer->owner = area->owner;
    buffer->base = area->start - area->offset;
    return range_index_insert(&allocated, area->start, area->length, (char *)buffer + 1);
}

/* Finds the allocation that holds the address. */
static bool find_allocated(uint64_t address, struct area *area)
{
    struct range_entry entry;

    if (!range_index_find(&allocated, address, &entry))
        return false;
    to_area(&entry, area);
    return true;
}

/* Finds that, or the next one behind the address. */
static bool find_allocated_from(uint64_t address, struct area *area)
{
    struct range_entry entry;

    if (!range_index_next(&allocated, address, &entry))
        return false;
    to_area(&entry, area);
    return true;
}

/* What all areas of a range without gaps must be. */
enum demand { ALLOCATED, ONE_BUFFER };

static bool is_whole(const void *owner, uint64_t start, uint64_t end, enum demand demand)
{
    const struct shared_buffer *buffer;
    struct area area;

    if (!find_allocated(start, &area))
        return false;
    buffer = area.buffer;
    do {
        if (area.owner != owner || (demand == ONE_BUFFER && area.buffer != buffer))
            return false;
        if (area_end(&area) >= end)
            return true;
    } while (find_allocated(area_end(&area), &area));
    return false;
}

/* Splits the area around the address there. */
static int cut_at(uint64_t address)
{
    struct area area;
    int r;

    if (!find_allocated(address, &area) || area.start == address)
        return 0;
    r = range_index_split(&allocated, address);
    if (!r && area.buffer)
        shared_buffer_ref(area.buffer);
    return r;
}

/* Cuts the area down to the range. If the range has several areas, its end is split along with the first. */
static int cut_to(struct area *area, uint64_t from, uint64_t end)
{
    uint64_t start = area->start < from ? from : area->start;
    int r = cut_at(start);

    if (!r)
        r = cut_at(end);
    if (!r)
        (void)find_allocated(start, area);
    return r;
}

/*
 * Finds the owner's (NULL: anybody's) first area in the range, and cuts it down to the range. Returns 1, 0 or -ENOMEM.
 */
static int first_in(const void *owner, uint64_t from, uint64_t end, struct area *area)
{
    int r;

    for (uint64_t at = from; find_allocated_from(at, area) && area->start < end; at = area_end(area))
        if (!owner || area->owner == owner) {
            r = cut_to(area, from, end);
            return r ? r : 1;
        }
    return 0;
}

static int take_allocated(const void *owner, uint64_t *from, uint64_t end, bool whole, struct area *taken)
{
    struct area area;
    int r;

    if (whole && !is_whole(owner, *from, end, ALLOCATED))
        return 0;
    r = first_in(owner, *from, end, &area);
    if (r <= 0)
        return r;
    (void)range_index_remove(&allocated, area.start);
    *from = area_end(&area);
    *taken = area;
    return 1;
}

int area_take(const void *owner, uint64_t *from, uint64_t end, bool whole, struct area *taken)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);
    uint64_t start = *from;
    int r;

    if (end <= start)
        return 0;
    r = range_index_cut(&allocated, start, end - start, owner);
    if (r > 0) {
        *taken = (struct area){.owner = owner, .start = start, .length = end - start};
        *from = end;
    } else if (!r) {
        r = take_allocated(owner, from, end, whole, taken);
    }
    return r;
}

void area_put_back(const struct area *taken)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);

    (void)insert_allocated(taken);
}

/* ---- what was opened, with the lock ------------------------------------------------------------------------------ */

static struct opened_area *opened_area_of(struct interval *range)
{
    return range ? container_of(range, struct opened_area, range) : NULL;
}

/* Of the owner's (NULL: anybody's) opened areas around the address, the one that ends last. */
static const struct area *find_opened(const void *owner, uint64_t address)
{
    const struct opened_area *opened = opened_area_of(interval_furthest(&opened_areas, address, owner));

    return opened ? &opened->area : NULL;
}

/* Has the owner opened all of the range? */
static bool is_opened(const void *owner, uint64_t start, uint64_t end)
{
    const struct area *area;

    while (start < end && (area = find_opened(owner, start)))
        start = area_end(area);
    return start >= end;
}

/* Is it the same buffer, mapped so that shared pages have the same addresses? */
static bool is_same_place(const struct area *a, const struct area *b)
{
    return a->buffer && b->buffer && a->start - a->offset == b->start - b->offset &&
           memclient_buffer_id(a->buffer->handle) == memclient_buffer_id(b->buffer->handle);
}

/* Takes out opened areas whose addresses something else has now, as a chain by `found`. */
static struct interval *take_stale(const struct area *by)
{
    struct interval *range = interval_overlapping(&opened_areas, by->start, area_end(by) - 1), *stale = NULL, *next;

    for (; range; range = next) {
        next = range->found;
        if (by->kind == AREA_OPENED && is_same_place(&opened_area_of(range)->area, by))
            continue;
        interval_remove(&opened_areas, range);
        range->found = stale;
        stale = range;
    }
    return stale;
}

static void insert_opened(struct opened_area *opened, const struct area *area)
{
    opened->area = *area;
    opened->range = (struct interval){.start = area->start, .last = area_end(area) - 1, .owner = area->owner};
    interval_insert(&opened_areas, &opened->range);
}

/* ---- taking out -------------------------------------------------------------------------------------------------- */

static bool take_one_opened(struct opened_area *opened, struct area *taken)
{
    if (!opened)
        return false;
    interval_remove(&opened_areas, &opened->range);
    *taken = opened->area;
    free(opened);
    return true;
}

bool area_take_opened(const void *owner, uint64_t start, struct area *taken)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);
    struct interval *range, *shortest = NULL;

    for (range = interval_at(&opened_areas, start); range && range->start == start; range = interval_next(range))
        if (range->owner == owner && (!shortest || range->last < shortest->last))
            shortest = range;
    return take_one_opened(opened_area_of(shortest), taken);
}

bool area_take_any(const void *owner, uint64_t *from, struct area *taken)
{
    struct interval *range;
    bool found;

    if (area_take(owner, from, UINT64_MAX, false, taken) > 0)
        return true;
    pthread_mutex_lock(&area_mutex);
    range = interval_from(&opened_areas, 0);
    while (range && range->owner != owner)
        range = interval_next(range);
    found = take_one_opened(opened_area_of(range), taken);
    pthread_mutex_unlock(&area_mutex);
    return found;
}

/* ---- adding and finding ------------------------------------------------------------------------------------------ */

static void forget_stale(struct interval *stale)
{
    struct interval *next;

    for (; stale; stale = next) {
        next = stale->found;
        shared_buffer_unref(opened_area_of(stale)->area.buffer);
        free(opened_area_of(stale));
    }
}

int area_add(const struct area *area)
{
    struct opened_area *opened = area->kind == AREA_OPENED ? malloc(sizeof(*opened)) : NULL;
    struct interval *stale;
    struct area other;
    uint64_t from;
    int r;

    if (area->kind == AREA_OPENED && !opened)
        return -ENOMEM;
    do {
        from = area->start;
        pthread_mutex_lock(&area_mutex);
        stale = take_stale(area);
        r = opened ? -EEXIST : insert_allocated(area);
        if (r == -EEXIST)
            r = take_allocated(NULL, &from, area_end(area), false, &other);
        if (!r && opened)
            insert_opened(opened, area);
        pthread_mutex_unlock(&area_mutex);
        forget_stale(stale);
        if (r == 1)
            shared_buffer_unref(other.buffer);
    } while (r == 1);
    if (r)
        free(opened);
    return r;
}

bool area_find(const void *owner, const void *address, struct area *copy)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);
    const struct area *opened;
    struct area area;
    bool found = find_allocated((uintptr_t)address, &area) && (!owner || area.owner == owner);

    opened = found ? NULL : find_opened(owner, (uintptr_t)address);
    if (opened)
        area = *opened;
    found = found || opened;
    if (found && area.buffer)
        shared_buffer_ref(area.buffer);
    if (found)
        *copy = area;
    return found;
}

bool area_is_allocated(uint64_t start, uint64_t length)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);
    struct area area;

    return find_allocated_from(start, &area) && area.start < start + length;
}

bool area_covers(const void *owner, uint64_t start, uint64_t length)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);

    return start + length >= start &&
           (is_whole(owner, start, start + length, ALLOCATED) || is_opened(owner, start, start + length));
}

bool area_is_one(const void *owner, uint64_t start, uint64_t length)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);

    return start + length >= start && is_whole(owner, start, start + length, ONE_BUFFER);
}

/* ---- around a fork ----------------------------------------------------------------------------------------------- */

static void area_before_fork(void)
{
    pthread_mutex_lock(&area_mutex);
}

static void area_in_parent(void)
{
    pthread_mutex_unlock(&area_mutex);
}

static void area_in_child(void)
{
    mutex_renew(&area_mutex);
}

__attribute__((__constructor__)) static void area_loaded(void)
{
    (void)pthread_atfork(area_before_fork, area_in_parent, area_in_child);
}
