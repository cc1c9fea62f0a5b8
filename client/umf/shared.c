/* SPDX-License-Identifier: Apache-2.0 */
/* See shared.h. */
#include "umf/shared.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "umf/area.h"
#include "umf/closed.h"

/* A provider's name, a slash, and a number. */
#define NAME_MAX_SIZE (MEMCLIENT_NAME_MAX + 1)

uint64_t shared_new_maker(void)
{
    static uint32_t n;

    return (uint64_t)getpid() << 32 | __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED);
}

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

/* More values of `profile` than enum umf_memoryd_profile_t has. */
enum { NOT_LOOKED_AT = -2, NOBODY_CHOSE = -1 };

static atomic_int profile = NOT_LOOKED_AT;

static int of_environment(void)
{
    const char *text = secure_getenv("MEMORYD_UMF_PROFILE");

    if (text && !strcmp(text, "document"))
        return UMF_MEMORYD_PROFILE_DOCUMENT;
    if (text && !strcmp(text, "upstream"))
        return UMF_MEMORYD_PROFILE_UPSTREAM;
    return NOBODY_CHOSE;
}

bool profile_is_upstream(enum profile_provider provider)
{
    int now = atomic_load_explicit(&profile, memory_order_relaxed), not_yet = NOT_LOOKED_AT;

    if (now == NOT_LOOKED_AT) {
        /* fails if somebody has chosen meanwhile */
        (void)atomic_compare_exchange_strong(&profile, &not_yet, of_environment());
        now = atomic_load_explicit(&profile, memory_order_relaxed);
    }
    return now == NOBODY_CHOSE ? provider == PROFILE_OS : now == UMF_MEMORYD_PROFILE_UPSTREAM;
}

umf_result_t profile_for_unknown(enum profile_provider provider)
{
    return profile_is_upstream(provider) ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t wanted)
{
    if (wanted != UMF_MEMORYD_PROFILE_DOCUMENT && wanted != UMF_MEMORYD_PROFILE_UPSTREAM)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    atomic_store_explicit(&profile, (int)wanted, memory_order_relaxed);
    return UMF_RESULT_SUCCESS;
}

/* ---- giving up all ----------------------------------------------------------------------------------------------- */

static umf_result_t shared_release(const struct shared *shared, const struct area *taken)
{
    if (shared->release_private)
        return shared->release_private(taken);
    shared_buffer_release(taken);
    return UMF_RESULT_SUCCESS;
}

void shared_deinit(const struct shared *shared)
{
    struct area left;
    uint64_t from = 0;

    while (area_take_any(shared, &from, &left))
        (void)shared_release(shared, &left);
    closed_release_all(shared);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

DEFINE_CLEANUP(struct shared_buffer *, shared_buffer_unref);

umf_result_t umfMemorydGetBuffer(const void *ptr, struct memclient_buffer **ret)
{
    struct area area;

    if (!ptr || !ret || !area_find(NULL, ptr, &area) || !area.buffer)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    __atomic_store_n(&area.buffer->may_be_shared, true, __ATOMIC_RELAXED);
    *ret = memclient_buffer_ref(area.buffer->handle);
    shared_buffer_unref(area.buffer);
    return UMF_RESULT_SUCCESS;
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Allocates with the provider's next name. If names are optional and this one is taken, the buffer has none. */
static int alloc_named(struct shared *shared, uint64_t size, struct memclient_alloc_options *options,
                       struct memclient_buffer **handle, char **name)
{
    struct memclient_name_options binding = MEMCLIENT_NAME_OPTIONS_INIT;
    _cleanup_free_ char *next = malloc(NAME_MAX_SIZE);
    int r;

    if (!next)
        return -ENOMEM;
    (void)snprintf(next, NAME_MAX_SIZE, "%s/%llu", shared->name,
                   (unsigned long long)__atomic_add_fetch(&shared->names, 1, __ATOMIC_RELAXED));
    binding.policy = MEMCLIENT_NAME_FREE;
    options->name = next;
    options->name_options = &binding;
    r = memclient_alloc(shared->ctx, size, options, handle);
    options->name = NULL;
    options->name_options = NULL;
    if (!r)
        *name = steal_ptr(&next);
    else if (shared->name_is_optional && (r == -EEXIST || r == -EINVAL))
        r = memclient_alloc(shared->ctx, size, options, handle);
    return r;
}

static int shared_make_buffer(struct shared *shared, uint64_t size, struct memclient_alloc_options *options,
                              struct shared_buffer **ret)
{
    struct memclient_buffer *handle = NULL;
    _cleanup_free_ char *name = NULL;
    struct shared_buffer *buffer;
    int r = shared->name ? alloc_named(shared, size, options, &handle, &name)
                         : memclient_alloc(shared->ctx, size, options, &handle);

    if (r)
        return r;
    buffer = shared_buffer_new(handle);
    if (!buffer) {
        (void)memclient_buffer_unref(handle);
        return -ENOMEM;
    }
    buffer->name = steal_ptr(&name);
    buffer->may_be_shared = buffer->name;
    *ret = buffer;
    return 0;
}

/* Maps the buffer in a reservation, which has room for any alignment. If the buffer has no home yet, the reservation is
 * host-wide and becomes its home. If its home is occupied here, it is this process's only. */
static int map_in_reservation(struct shared_buffer *buffer, uint64_t alignment, unsigned access, bool only_here,
                              void **ptr)
{
    struct memclient_context *ctx = memclient_buffer_context(buffer->handle);
    struct memclient_reserve_options where = MEMCLIENT_RESERVE_OPTIONS_INIT;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_reservation *res;
    uint64_t granule = memclient_buffer_granule(buffer->handle), size, address;
    int r;

    if (alignment < granule)
        alignment = granule;
    if (__builtin_add_overflow(memclient_buffer_bytes(buffer->handle), alignment, &size))
        return -EOVERFLOW;
    where.flags = only_here ? MEMCLIENT_RESERVE_PRIVATE : 0;
    r = memclient_reserve(ctx, size, &where, &res);
    if (r)
        return r;
    address = (uintptr_t)memclient_reservation_address(res);
    address += (alignment - address % alignment) % alignment;
    options.address = (void *)(uintptr_t)address;
    options.access = access;
    r = memclient_map(buffer->handle, &options, ptr);
    if (r)
        (void)memclient_reservation_release(res);
    else
        buffer->reservation = res;
    return r;
}

static int shared_map(struct shared_buffer *buffer, uint64_t alignment, unsigned access, void **ptr)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    int r;

    if (!memclient_buffer_home(buffer->handle))
        return map_in_reservation(buffer, alignment, access, false, ptr);
    options.access = access;
    r = memclient_map(buffer->handle, &options, ptr);
    if (r == -EADDRINUSE)
        r = map_in_reservation(buffer, alignment, access, true, ptr);
    return r;
}

int shared_note(struct shared *shared, enum area_kind kind, void *ptr, uint64_t length, uint64_t offset,
                struct shared_buffer *buffer)
{
    const struct area area = {
        .owner = shared,
        .kind = kind,
        .start = (uintptr_t)ptr,
        .length = length,
        .buffer = buffer,
        .offset = offset,
    };
    int r = 0;

    if (shared->protection && mprotect(ptr, (size_t)length, shared->protection) < 0)
        r = -errno;
    if (!r)
        r = area_add(&area);
    if (r)
        (void)memclient_unmap(memclient_buffer_context(buffer->handle), ptr, length);
    return r;
}

int shared_alloc(struct shared *shared, uint64_t size, uint64_t alignment, const struct memclient_alloc_options *from,
                 void **ptr)
{
    struct memclient_alloc_options options = from ? *from : shared->options;
    _cleanup_(shared_buffer_unrefp) struct shared_buffer *buffer = NULL;
    void *at;
    int r;

    if (alignment <= page_size())
        alignment = 0;
    if (alignment && !is_power_of_two(alignment))
        options.flags |= MEMCLIENT_ALLOC_NO_HOME;
    else
        options.alignment = alignment;
    r = shared_make_buffer(shared, size, &options, &buffer);
    if (!r)
        r = shared_map(buffer, alignment, shared->access, &at);
    if (!r)
        r = shared_note(shared, AREA_ALLOCATED, at, memclient_buffer_bytes(buffer->handle), 0, buffer);
    if (r)
        return r;
    buffer = NULL;
    *ptr = at;
    return 0;
}

/* ---- giving back ------------------------------------------------------------------------------------------------- */

umf_result_t shared_free(const struct shared *shared, void *ptr, uint64_t length)
{
    uint64_t from = (uintptr_t)ptr, end = from + length;
    struct area area;
    umf_result_t result;
    int r = area_take(shared, &from, end, !profile_is_upstream(shared->profile), &area);

    if (r <= 0)
        return r ? UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY : profile_for_unknown(shared->profile);
    do
        result = shared_release(shared, &area);
    while (result == UMF_RESULT_SUCCESS && from < end && area_take(shared, &from, end, false, &area) > 0);
    return result;
}

int shared_purge(const struct shared *shared, void *ptr, uint64_t length)
{
    uint64_t at = (uintptr_t)ptr, end = at + length;
    int r = 0;

    while (!r && at < end) {
        struct area area;
        uint64_t last;

        if (!area_find(shared, (void *)(uintptr_t)at, &area))
            return -EFAULT;
        last = area.start + area.length < end ? area.start + area.length : end;
        r = memclient_discard(area.buffer->handle, area.offset + (at - area.start), last - at);
        shared_buffer_unref(area.buffer);
        at = last;
    }
    return r;
}

uint64_t shared_page_size(const struct shared *shared, const void *ptr)
{
    struct area area;
    uint64_t granule;

    if (!area_find(shared, ptr, &area))
        return 0;
    granule = memclient_buffer_granule(area.buffer->handle);
    shared_buffer_unref(area.buffer);
    return granule;
}

/* Two buffers cannot be merged: no handle could name both. */
umf_result_t shared_merge(void *provider, void *low, void *high, size_t total)
{
    const struct shared *shared = provider;

    if (area_is_one(shared, (uintptr_t)low, total))
        return UMF_RESULT_SUCCESS;
    return shared->release_private ? profile_for_unknown(shared->profile) : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}
