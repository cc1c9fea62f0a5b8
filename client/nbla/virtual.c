/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of type virtual: a range of addresses that shows chunks while it is bound. */
#include <stdlib.h>

#include "base/checked.h"
#include "nbla/device.h"
#include "nbla/error.h"
#include "nbla/memory.h"
#include "nbla/range.h"

struct virtual
{
    struct memclient_context *ctx;
    struct range range; /* while it is bound */
};

static const struct nbla_memory_ops virtual_ops;

nbla_memory *nbla_memory_new_virtual(struct memclient_context *ctx, size_t bytes, const char *device_id,
                                     nbla_physical_memory *const *p, size_t n)
{
    struct device *device = device_new(ctx, device_id); /* only checked: each chunk has its own */
    struct virtual *virtual;
    nbla_memory *memory;

    if (!device)
        return NULL;
    device_unref(device);
    virtual = object_new(sizeof(*virtual));
    if (!virtual)
        return NULL;
    virtual->ctx = ctx;
    memory = nbla_memory_new_ops(bytes, device_id, NBLA_TYPE_VIRTUAL, &virtual_ops, virtual);
    if (!memory) {
        free(virtual);
        return NULL;
    }
    if (nbla_memory_append_phys(memory, p, n) < 0) {
        (void)nbla_memory_destroy(memory);
        return NULL;
    }
    return memory;
}

/* Allocates the memory of chunks, and sums up their bytes. */
static int alloc_chunks(nbla_physical_memory *const *p, size_t n, uint64_t *total)
{
    int r = chunks_alloc(p, n);

    if (r < 0)
        return r;
    *total = 0;
    for (size_t i = 0; i < n; i++)
        if (!checked_add_u64(*total, p[i]->bytes, total))
            return fail(NBLA_ERROR_MEMORY, "the chunks have too many bytes");
    return 0;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static int fail_virtual(const char *what)
{
    return fail(NBLA_ERROR_MEMORY, "virtual memory is not %s", what);
}

static int virtual_alloc(nbla_memory *memory)
{
    return fail_virtual("allocated: bind() it");
}

static int virtual_divide(nbla_memory *memory, size_t second_start, nbla_memory **second)
{
    return fail_virtual("divided");
}

static int virtual_merge(nbla_memory *memory, nbla_memory *from)
{
    return fail(NBLA_ERROR_RUNTIME, "the blocks are not adjacent parts of one allocation");
}

static int virtual_bind(nbla_memory *memory)
{
    struct virtual *virtual = nbla_memory_priv(memory);
    const struct chunks *chunks = &memory->chunks;
    uint64_t total;
    int r;

    if (memory->pointer)
        return fail_virtual("bound twice: unbind() it first");
    r = alloc_chunks(chunks->at, chunks->n, &total);
    if (r < 0)
        return r;
    if (total < memory->bytes)
        return fail(NBLA_ERROR_MEMORY, "the chunks have %llu bytes together, and the memory %zu",
                    (unsigned long long)total, memory->bytes);
    r = range_bind(&virtual->range, virtual->ctx, chunks, total);
    if (r < 0)
        return r;
    nbla_memory_set_pointer(memory, (void *)(uintptr_t) virtual->range.base);
    return 0;
}

static int virtual_grow(nbla_memory *memory, nbla_physical_memory *const *p, size_t n)
{
    struct virtual *virtual = nbla_memory_priv(memory);
    uint64_t total;
    int r;

    if (!memory->pointer)
        return fail(NBLA_ERROR_MEMORY, "it is not bound, so it cannot grow: bind() it");
    r = alloc_chunks(p, n, &total);
    if (r < 0 || !n)
        return r < 0 ? r : 1;
    return range_append(&virtual->range, p, n, total);
}

static void virtual_lock_device(nbla_memory *memory)
{
    struct virtual *virtual = nbla_memory_priv(memory);

    range_lock(&virtual->range);
}

static void virtual_unlock_device(nbla_memory *memory)
{
    struct virtual *virtual = nbla_memory_priv(memory);

    range_unlock(&virtual->range);
}

static nbla_device_memory_state virtual_get_device_state(nbla_memory *memory)
{
    struct virtual *virtual = nbla_memory_priv(memory);

    return range_state(&virtual->range);
}

static int virtual_unbind(nbla_memory *memory)
{
    struct virtual *virtual = nbla_memory_priv(memory);

    range_unbind(&virtual->range);
    return 0;
}

static void virtual_destroy(nbla_memory *memory)
{
    (void)virtual_unbind(memory);
    free(nbla_memory_priv(memory));
}

static int virtual_buffer(nbla_memory *memory, struct memclient_buffer **buffer, uint64_t *offset)
{
    const struct virtual *virtual = nbla_memory_priv(memory);

    if (virtual->range.chunks.n != 1)
        return fail(NBLA_ERROR_NOT_IMPLEMENTED, "it consists of %zu chunks: share them one by one",
                    virtual->range.chunks.n);
    if (lock_fd_is_parents(&(*virtual->range.chunks.at)->lock_fd))
        return fail_parents();
    *buffer = (*virtual->range.chunks.at)->lock_fd.buffer;
    *offset = (*virtual->range.chunks.at)->offset;
    return 0;
}

static const struct nbla_memory_ops virtual_ops = {
    .size = sizeof(virtual_ops),
    .alloc = virtual_alloc,
    .divide = virtual_divide,
    .merge_next = virtual_merge,
    .merge_prev = virtual_merge,
    .bind = virtual_bind,
    .unbind = virtual_unbind,
    .grow = virtual_grow,
    .get_device_state = virtual_get_device_state,
    .lock_device = virtual_lock_device,
    .destroy = virtual_destroy,
    .unlock_device = virtual_unlock_device,
    .buffer = virtual_buffer,
};
