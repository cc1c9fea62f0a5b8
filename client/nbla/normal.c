/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of type normal: a part of a segment, which it shares with the blocks that it was divided from. */
#include "nbla/memory.h"

#include <stdlib.h>

#include "base/align.h"
#include "nbla/device.h"
#include "nbla/error.h"
#include "nbla/lock_fd.h"
#include "nbla/spare.h"

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/*
 * A mapped buffer of the broker, or a mapped part of one. Each block has a reference, whether it was divided from
 * another or not, and the last one releases the segment.
 */
struct segment {
    unsigned refs;
    struct lock_fd lock_fd;
    char *base;
    uint64_t offset; /* of base, in the buffer */
    uint64_t length;
};

static struct segment *segment_ref(struct segment *segment)
{
    __atomic_fetch_add(&segment->refs, 1, __ATOMIC_RELAXED);
    return segment;
}

/* Accepts NULL. */
static void segment_unref(struct segment *segment)
{
    if (!segment || __atomic_sub_fetch(&segment->refs, 1, __ATOMIC_ACQ_REL))
        return;
    (void)memclient_unmap(memclient_buffer_context(segment->lock_fd.buffer), segment->base, segment->length);
    lock_fd_deinit(&segment->lock_fd);
    free(segment);
}

/* Blocks that were opened may share pages: the native library maps a page once, as long as any block has it. */
static int segment_place(struct segment *segment, struct memclient_buffer *buffer, bool opened, uint64_t at)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    uint64_t home = (uintptr_t)memclient_buffer_home(buffer);
    void *base;
    int r;

    options.offset = segment->offset;
    options.length = segment->length;
    if (!at) {
        options.flags = MEMCLIENT_MAP_ANYWHERE;
    } else if (!home || at != home + segment->offset) {
        options.flags = MEMCLIENT_MAP_UNRESERVED;
        options.address = (void *)(uintptr_t)at;
    }
    if (!opened)
        options.flags |= MEMCLIENT_MAP_COPY_ON_FORK;
    r = memclient_map(buffer, &options, &base);
    if (!r)
        segment->base = base;
    return r;
}

/*
 * Maps the bytes [offset, offset + length) of the buffer, whose reference it takes over on success: with `wanted`, so
 * that the first of them is there; without it, at home or wherever there is room.
 */
static int segment_map(struct memclient_buffer *buffer, bool opened, uint64_t offset, uint64_t length, void *wanted,
                       struct segment **ret)
{
    uint64_t granule = memclient_buffer_granule(buffer), at = 0;
    struct segment *segment;
    int r;

    if (wanted) {
        at = (uintptr_t)wanted - offset % granule;
        if (at % granule)
            return fail(NBLA_ERROR_VALUE, "%p is no address for offset %llu: pages have %llu bytes", wanted,
                        (unsigned long long)offset, (unsigned long long)granule);
    }
    segment = object_new(sizeof(*segment));
    if (!segment)
        return NBLA_ERROR_MEMORY;
    segment->refs = 1;
    segment->offset = align_down(offset, granule);
    segment->length = align_up(offset + length, granule) - segment->offset;
    r = segment_place(segment, buffer, opened, at);
    if (r) {
        free(segment);
        return fail_native(r);
    }
    lock_fd_init(&segment->lock_fd, buffer, opened);
    *ret = segment;
    return 0;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

struct normal {
    struct memclient_context *ctx;
    struct device *device;   /* NULL: the memory was opened */
    struct segment *segment; /* while it has memory */
};

static const struct nbla_memory_ops normal_ops;

/* Takes over device and segment, on success. */
static nbla_memory *normal_make(size_t bytes, const char *device_id, const struct normal *from)
{
    struct normal *normal = object_new(sizeof(*normal));
    nbla_memory *memory;

    if (!normal)
        return NULL;
    *normal = *from;
    memory = nbla_memory_new_ops(bytes, device_id, NBLA_TYPE_NORMAL, &normal_ops, normal);
    if (!memory)
        free(normal);
    return memory;
}

nbla_memory *nbla_memory_new(struct memclient_context *ctx, size_t bytes, const char *device_id)
{
    const struct normal normal = {.ctx = ctx, .device = device_new(ctx, device_id)};
    nbla_memory *memory = normal.device ? normal_make(bytes, device_id, &normal) : NULL;

    if (!memory)
        device_unref(normal.device);
    return memory;
}

int normal_open(struct memclient_buffer *buffer, uint64_t offset, uint64_t length, void *wanted, nbla_memory **ret)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct normal normal = {.ctx = memclient_buffer_context(buffer)};
    nbla_memory *memory;
    int r = memclient_buffer_query(buffer, &info);

    if (r)
        return fail_native(r);
    r = segment_map(buffer, true, offset, length, wanted, &normal.segment);
    if (r < 0)
        return r;
    (void)memclient_buffer_ref(buffer);
    memory = normal_make((size_t)length, info.pool, &normal);
    if (!memory) {
        segment_unref(normal.segment);
        return NBLA_ERROR_MEMORY;
    }
    nbla_memory_set_pointer(memory, normal.segment->base + (offset - normal.segment->offset));
    *ret = memory;
    return 0;
}

static uint64_t normal_offset(nbla_memory *memory)
{
    const struct normal *normal = nbla_memory_priv(memory);

    return normal->segment->offset + (uint64_t)((char *)nbla_memory_pointer(memory) - normal->segment->base);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static int normal_alloc(nbla_memory *memory)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct normal *normal = nbla_memory_priv(memory);
    uint64_t bytes = nbla_memory_bytes(memory);
    struct memclient_buffer *buffer;
    int r;

    if (normal->device)
        device_choose(normal->device, &options);
    else
        options.pool = nbla_memory_device_id(memory);
    r = spare_alloc_many(normal->ctx, 1, &bytes, &options, &buffer);
    if (r)
        return fail_alloc(r);
    r = segment_map(buffer, false, 0, bytes, NULL, &normal->segment);
    if (r < 0) {
        (void)memclient_buffer_unref(buffer);
        return r;
    }
    nbla_memory_set_pointer(memory, normal->segment->base);
    return 0;
}

static int normal_divide(nbla_memory *memory, size_t second_start, nbla_memory **second)
{
    const struct normal *normal = nbla_memory_priv(memory);
    nbla_memory *made = normal_make(nbla_memory_bytes(memory) - second_start, nbla_memory_device_id(memory), normal);

    if (!made)
        return NBLA_ERROR_MEMORY;
    if (normal->device)
        (void)device_ref(normal->device);
    (void)segment_ref(normal->segment);
    nbla_memory_set_pointer(made, (char *)nbla_memory_pointer(memory) + second_start);
    *second = made;
    return 0;
}

/* Merges two adjacent parts of a segment: `from`, which is one of them, drops its reference. */
static int normal_merge(nbla_memory *left, nbla_memory *right, nbla_memory *from)
{
    const struct normal *l = nbla_memory_priv(left), *r = nbla_memory_priv(right);
    struct normal *gone = nbla_memory_priv(from);

    if (!l->segment || l->segment != r->segment ||
        (char *)nbla_memory_pointer(left) + nbla_memory_bytes(left) != nbla_memory_pointer(right))
        return fail(NBLA_ERROR_RUNTIME, "the blocks are not adjacent parts of one allocation");
    segment_unref(gone->segment);
    gone->segment = NULL;
    return 0;
}

static int normal_merge_next(nbla_memory *memory, nbla_memory *from)
{
    return normal_merge(memory, from, from);
}

static int normal_merge_prev(nbla_memory *memory, nbla_memory *from)
{
    void *pointer = nbla_memory_pointer(from);
    int r = normal_merge(from, memory, from);

    if (!r)
        nbla_memory_set_pointer(memory, pointer);
    return r;
}

static nbla_device_memory_state normal_get_device_state(nbla_memory *memory)
{
    struct normal *normal = nbla_memory_priv(memory);

    if (!normal->segment)
        return NBLA_DEVICE_UNLOCKED;
    return lock_fd_state(&normal->segment->lock_fd, normal_offset(memory), nbla_memory_bytes(memory));
}

static void normal_lock_device(nbla_memory *memory)
{
    struct normal *normal = nbla_memory_priv(memory);

    if (normal->segment)
        lock_fd_lock(&normal->segment->lock_fd, normal_offset(memory), nbla_memory_bytes(memory));
}

static void normal_unlock_device(nbla_memory *memory)
{
    struct normal *normal = nbla_memory_priv(memory);

    if (normal->segment)
        lock_fd_unlock(&normal->segment->lock_fd, normal_offset(memory), nbla_memory_bytes(memory));
}

static void normal_destroy(nbla_memory *memory)
{
    struct normal *normal = nbla_memory_priv(memory);

    normal_unlock_device(memory);
    segment_unref(normal->segment);
    device_unref(normal->device);
    free(normal);
}

static int normal_buffer(nbla_memory *memory, struct memclient_buffer **buffer, uint64_t *offset)
{
    const struct normal *normal = nbla_memory_priv(memory);

    if (lock_fd_is_parents(&normal->segment->lock_fd))
        return fail_parents();
    *buffer = normal->segment->lock_fd.buffer;
    *offset = normal_offset(memory);
    return 0;
}

static const struct nbla_memory_ops normal_ops = {
    .size = sizeof(normal_ops),
    .alloc = normal_alloc,
    .divide = normal_divide,
    .merge_next = normal_merge_next,
    .merge_prev = normal_merge_prev,
    .get_device_state = normal_get_device_state,
    .lock_device = normal_lock_device,
    .destroy = normal_destroy,
    .unlock_device = normal_unlock_device,
    .buffer = normal_buffer,
};
