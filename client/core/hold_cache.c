/* SPDX-License-Identifier: Apache-2.0 */
/* See hold_cache.h, and proto/hold_cache.h for who may write what in which order. */
#include "core/hold_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/pages.h"
#include "core/space.h"

#define CACHE_MIB_MAX 64

/* What all contexts of the process cache, and how often the process has forked. */
static unsigned n_cached;
static uint64_t bytes_cached;
static unsigned forks;

/* ---- the option -------------------------------------------------------------------------------------------------- */

static uint64_t most_bytes;

static void hold_cache_read_option(void)
{
    const char *text = secure_getenv("MEMORYD_CACHE");
    unsigned long mib = CACHE_MIB_MAX;
    char *end;

    if (text && *text >= '0' && *text <= '9') {
        mib = strtoul(text, &end, 10);
        if (*end || mib > CACHE_MIB_MAX)
            mib = CACHE_MIB_MAX;
    }
    most_bytes = (uint64_t)mib << 20;
}

static uint64_t hold_cache_bytes_max(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, hold_cache_read_option);
    return most_bytes;
}

static void hold_cache_count_out(const struct memclient_buffer *buf)
{
    __atomic_sub_fetch(&n_cached, 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&bytes_cached, buf->bytes, __ATOMIC_RELAXED);
}

/* False if there is no room for it. */
static bool hold_cache_count_in(const struct memclient_buffer *buf)
{
    unsigned n = __atomic_add_fetch(&n_cached, 1, __ATOMIC_RELAXED);
    uint64_t bytes = __atomic_add_fetch(&bytes_cached, buf->bytes, __ATOMIC_RELAXED);

    if (n <= HOLD_CACHE_SLOTS && bytes <= hold_cache_bytes_max())
        return true;
    hold_cache_count_out(buf);
    return false;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* With the context's lock: the cache of the buffer's session, or NULL. */
static struct hold_cache *hold_cache_of(const struct memclient_buffer *buf)
{
    const struct memclient_context *ctx = buf->ctx;

    return !ctx->closed && ctx->channel && buf->generation == ctx->generation ? ctx->channel->cache : NULL;
}

/* A slot that the broker took is free when the broker is done with it. */
static int hold_cache_find_slot(const struct memclient_context *ctx, const struct hold_cache *cache)
{
    for (int i = 0; i < HOLD_CACHE_SLOTS; i++)
        if (!ctx->cached.owners[i] &&
            (__atomic_load_n(&cache->slots[i].state, __ATOMIC_ACQUIRE) & (HOLD_CACHED | HOLD_DONE)) != HOLD_CACHED)
            return i;
    return -1;
}

static bool hold_cache_swap_back(struct hold_cache_slot *slot)
{
    uint32_t cached = HOLD_CACHED;

    return __atomic_compare_exchange_n(&slot->state, &cached, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void hold_cache_leave_slot(struct memclient_buffer *buf)
{
    buf->ctx->cached.owners[buf->cached.slot] = NULL;
    buf->cached.slot = -1;
    hold_cache_count_out(buf);
}

/* Takes the buffer out of its slot. False: the broker was faster, and its holds have ended. */
static bool hold_cache_get_back(struct memclient_buffer *buf)
{
    struct hold_cache *cache = hold_cache_of(buf);
    struct hold_cache_slot *slot;
    bool is_back = false;

    if (cache) {
        slot = &cache->slots[buf->cached.slot];
        is_back = hold_cache_swap_back(slot);
        if (!is_back)
            buf->holds -= slot->claims < buf->holds ? slot->claims : buf->holds;
    }
    hold_cache_leave_slot(buf);
    return is_back;
}

void hold_cache_opened(struct memclient_buffer *buf, uint32_t changes)
{
    buf->cached = (struct cached_hold){
        .slot = -1,
        .forks = __atomic_load_n(&forks, __ATOMIC_RELAXED),
        .changes = changes,
    };
}

void hold_cache_used(struct memclient_buffer *buf)
{
    if (buf->cached.slot < 0)
        return;
    (void)hold_cache_get_back(buf);
    buf->cached.lost = true;
}

void hold_cache_leave(struct memclient_buffer *buf)
{
    if (buf->cached.slot >= 0)
        (void)hold_cache_get_back(buf);
}

void hold_cache_forget_all(struct memclient_context *ctx)
{
    for (unsigned i = 0; i < HOLD_CACHE_SLOTS; i++) {
        struct memclient_buffer *buf = ctx->cached.owners[i];

        if (!buf)
            continue;
        hold_cache_leave_slot(buf);
        buf->cached.lost = true;
    }
}

void hold_cache_let_out(struct memclient_buffer *buf, bool descriptor)
{
    struct hold_cache *cache;

    pthread_mutex_lock(&buf->ctx->lock);
    buf->cached.let_out = true;
    cache = hold_cache_of(buf);
    if (descriptor && cache)
        __atomic_store_n(&cache->in_hand, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&buf->ctx->lock);
}

/* ---- putting and taking ------------------------------------------------------------------------------------------ */

/* With both locks: does the buffer have one user, and that one mapping at most? */
static bool hold_cache_has_one_user(const struct memclient_buffer *buf)
{
    unsigned n = 0;

    list_for_each_entry(m, &buf->mappings, struct mapping, in_buffer) {
        if (m->is_copy || m->own_in_child)
            return false;
        n++;
    }
    return n <= 1 && __atomic_load_n(&buf->refs, __ATOMIC_ACQUIRE) == n + 1;
}

static bool hold_cache_is_wanted(const struct memclient_buffer *buf, const struct hold_cache *cache)
{
    return __atomic_load_n(&cache->wanted, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&cache->changes[buf->id % HOLD_CACHE_CHANGES], __ATOMIC_SEQ_CST) != buf->cached.changes;
}

static int hold_cache_refuse_wanted(const struct memclient_buffer *buf)
{
    return fail_with(EAGAIN, "buffer #%llu is not cached: others need memory, or have had it open", ULL(buf->id));
}

static int hold_cache_check_put(const struct memclient_buffer *buf, const struct hold_cache *cache)
{
    const unsigned never = MEMCLIENT_BUFFER_PUBLISHABLE | MEMCLIENT_BUFFER_FOREIGN | MEMCLIENT_BUFFER_PUBLISHED;

    if (!cache || !hold_cache_bytes_max())
        return fail_with(EOPNOTSUPP, "nothing is cached: MEMORYD_CACHE is 0, or the broker is an older version");
    if (buf->cached.slot >= 0)
        return fail_with(EALREADY, "buffer #%llu is cached already", ULL(buf->id));
    if (buf->bytes > hold_cache_bytes_max())
        return fail_with(E2BIG, "buffer #%llu is larger than the whole cache (MEMORYD_CACHE)", ULL(buf->id));
    if (buf->cached.let_out || buffer_flags(buf) & never || buf->keeps_out || !hold_cache_has_one_user(buf) ||
        buf->cached.forks != __atomic_load_n(&forks, __ATOMIC_RELAXED))
        return fail_with(EBUSY, "buffer #%llu cannot be cached: others have it, or may have it", ULL(buf->id));
    return hold_cache_is_wanted(buf, cache) ? hold_cache_refuse_wanted(buf) : 0;
}

static int hold_cache_put_locked(struct memclient_buffer *buf)
{
    struct hold_cache *cache = hold_cache_of(buf);
    int slot, r = hold_cache_check_put(buf, cache);

    if (r)
        return r;
    slot = hold_cache_find_slot(buf->ctx, cache);
    if (slot < 0 || !hold_cache_count_in(buf))
        return fail_with(ENOSPC, "the cache has no room for another buffer");
    buf->cached.slot = slot;
    buf->cached.lost = false;
    buf->ctx->cached.owners[slot] = buf;
    cache->slots[slot].buffer = buf->id;
    cache->slots[slot].claims = (uint32_t)buf->holds;
    __atomic_store_n(&cache->slots[slot].state, HOLD_CACHED, __ATOMIC_SEQ_CST);
    /* if the broker has taken it meanwhile, hold_cache_take() will tell */
    if (!hold_cache_is_wanted(buf, cache) || !hold_cache_swap_back(&cache->slots[slot]))
        return 0;
    hold_cache_leave_slot(buf);
    return hold_cache_refuse_wanted(buf);
}

int hold_cache_put(struct memclient_buffer *buf)
{
    int r;

    space_lock_read();
    pthread_mutex_lock(&buf->ctx->lock);
    r = hold_cache_put_locked(buf);
    pthread_mutex_unlock(&buf->ctx->lock);
    space_unlock();
    return r;
}

/* With the space's lock: no longer withholds the mappings from children. */
static void hold_cache_give_to_children(struct memclient_buffer *buf)
{
    list_for_each_entry(m, &buf->mappings, struct mapping, in_buffer) {
        m->dont_copy = false;
        (void)madvise((void *)(uintptr_t)m->start, (size_t)m->size, MADV_DOFORK);
    }
}

int hold_cache_take(struct memclient_buffer *buf)
{
    struct memclient_context *ctx = buf->ctx;
    bool is_back, was_withheld;

    pthread_mutex_lock(&ctx->lock);
    is_back = buf->cached.slot >= 0 ? hold_cache_get_back(buf) : !buf->cached.lost;
    buf->cached.lost = !is_back;
    was_withheld = buf->cached.withheld;
    buf->cached.withheld = false;
    pthread_mutex_unlock(&ctx->lock);
    if (!is_back)
        return fail_with(ESTALE, "the broker took buffer #%llu out of the cache: get another one", ULL(buf->id));
    if (was_withheld) {
        space_lock();
        hold_cache_give_to_children(buf);
        space_unlock();
    }
    return 0;
}

bool hold_cache_is_lost(struct memclient_buffer *buf)
{
    const struct hold_cache *cache;
    bool is_lost;

    pthread_mutex_lock(&buf->ctx->lock);
    cache = hold_cache_of(buf);
    is_lost = buf->cached.slot < 0
                  ? buf->cached.lost
                  : !cache || __atomic_load_n(&cache->slots[buf->cached.slot].state, __ATOMIC_RELAXED) != HOLD_CACHED;
    pthread_mutex_unlock(&buf->ctx->lock);
    return is_lost;
}

/* ---- around a fork ----------------------------------------------------------------------------------------------- */

static bool hold_cache_is_for_children(const struct memclient_buffer *buf)
{
    list_for_each_entry(m, &buf->mappings, struct mapping, in_buffer) {
        if (!m->dont_copy && !m->is_copy)
            return true;
    }
    return false;
}

/* Withholds the mappings from children, but for pages that other mappings show as well. */
static void hold_cache_withhold(struct memclient_buffer *buf)
{
    list_for_each_entry(m, &buf->mappings, struct mapping, in_buffer) {
        if (m->dont_copy)
            continue;
        m->dont_copy = true;
        if (pages_dontfork(m->start, m->size) < 0)
            m->dont_copy = false;
        else
            buf->cached.withheld = true;
    }
}

void hold_cache_fork_prepare(struct memclient_context *ctx)
{
    struct hold_cache *cache = ctx->channel ? ctx->channel->cache : NULL;

    for (unsigned i = 0; i < HOLD_CACHE_SLOTS; i++)
        if (ctx->cached.owners[i])
            hold_cache_withhold(ctx->cached.owners[i]);
    for (struct memclient_buffer *buf = cache ? ctx->buffers : NULL; buf; buf = buf->hh.next)
        if (hold_cache_is_for_children(buf)) {
            __atomic_store_n(&cache->in_hand, 0, __ATOMIC_SEQ_CST);
            break;
        }
}

void hold_cache_forked(void)
{
    __atomic_add_fetch(&forks, 1, __ATOMIC_RELAXED);
}
