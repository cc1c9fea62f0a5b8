/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing: descriptors, tokens and numbers of the buffers that blocks and chunks lie in, and opening them elsewhere. */
#include "base/cleanup.h"
#include "base/range.h"
#include "nbla/error.h"
#include "nbla/memory.h"
#include "nbla/physical.h"

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

/* A part of a buffer, without a reference to it. */
struct part {
    struct memclient_buffer *buffer;
    uint64_t offset;
    uint64_t length;
};

static int part_of_memory(nbla_memory *memory, struct part *part)
{
    unsigned before = error_count();
    int r;

    if (!memory->pointer)
        return fail(NBLA_ERROR_MEMORY, "it has no memory that could be shared");
    if (!memory_op(memory, buffer))
        return fail(NBLA_ERROR_NOT_IMPLEMENTED, "this kind of memory is not shared");
    r = wrap_error(memory->ops->buffer(memory, &part->buffer, &part->offset), before, "find its buffer");
    part->length = memory->bytes;
    return r < 0 ? r : 0;
}

static int part_of_chunk(nbla_physical_memory *p, struct part *part)
{
    int r = lock_fd_is_parents(&p->lock_fd) ? fail_parents() : physical_alloc(p);

    if (r < 0)
        return r;
    __atomic_store_n(&p->shared, true, __ATOMIC_RELAXED);
    *part = (struct part){p->lock_fd.buffer, p->offset, p->bytes};
    return 0;
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/*
 * Makes a descriptor or, where fd is NULL, a token. A chunk that has no home yet gets it where it is bound here, so
 * that others find it there. Where that is not possible, others have it anywhere.
 */
static int part_share(const struct part *part, int *fd, struct memclient_token *token, uint64_t *offset,
                      uint64_t *length)
{
    int r;

    (void)memclient_make_home(part->buffer);
    r = fd ? memclient_export_fd(part->buffer, 0, fd) : memclient_share(part->buffer, NULL, token);
    if (r)
        return fail_native(r);
    *offset = part->offset;
    *length = part->length;
    return 0;
}

int nbla_memory_export(nbla_memory *memory, int *fd, uint64_t *offset, uint64_t *length)
{
    struct part part;
    int r =
        memory && fd && offset && length ? part_of_memory(memory, &part) : fail_null("memory, fd, offset or length");

    return r < 0 ? r : part_share(&part, fd, NULL, offset, length);
}

int nbla_memory_token(nbla_memory *memory, struct memclient_token *token, uint64_t *offset, uint64_t *length)
{
    struct part part;
    int r = memory && token && offset && length ? part_of_memory(memory, &part)
                                                : fail_null("memory, token, offset or length");

    return r < 0 ? r : part_share(&part, NULL, token, offset, length);
}

uint64_t nbla_memory_id(const nbla_memory *memory)
{
    struct memclient_buffer *buffer;
    uint64_t offset;

    if (!memory->pointer || !memory_op(memory, buffer) ||
        memory->ops->buffer((nbla_memory *)(uintptr_t)memory, &buffer, &offset) < 0)
        return 0;
    return memclient_buffer_id(buffer);
}

int nbla_physical_memory_export(nbla_physical_memory *p, int *fd, uint64_t *offset, uint64_t *length)
{
    struct part part;
    int r = p && fd && offset && length ? part_of_chunk(p, &part) : fail_null("p, fd, offset or length");

    return r < 0 ? r : part_share(&part, fd, NULL, offset, length);
}

int nbla_physical_memory_token(nbla_physical_memory *p, struct memclient_token *token, uint64_t *offset,
                               uint64_t *length)
{
    struct part part;
    int r = p && token && offset && length ? part_of_chunk(p, &part) : fail_null("p, token, offset or length");

    return r < 0 ? r : part_share(&part, NULL, token, offset, length);
}

uint64_t nbla_physical_memory_id(const nbla_physical_memory *p)
{
    return p->lock_fd.buffer && !lock_fd_is_parents(&p->lock_fd) ? memclient_buffer_id(p->lock_fd.buffer) : 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* What another process shared: a descriptor, or a token if there is one, and the part. */
struct handle {
    struct memclient_context *ctx;
    int fd;
    const struct memclient_token *token;
    uint64_t offset;
    uint64_t length; /* 0 = to the end of what the buffer's maker requested, or of its last page */
};

/* Opens the buffer, whose reference is the caller's, and finds the part. */
static int part_open(const struct handle *handle, struct memclient_buffer **buffer, struct part *part)
{
    uint64_t size, bytes, offset = handle->offset, length = handle->length;
    int r = handle->token ? memclient_open_token(handle->ctx, handle->token, 0, buffer)
                          : memclient_import_fd(handle->ctx, handle->fd, buffer);

    if (r)
        return fail_native(r);
    size = memclient_buffer_size(*buffer);
    bytes = memclient_buffer_bytes(*buffer);
    if (!length && offset < bytes)
        length = (offset < size ? size : bytes) - offset;
    if (!length || !range_in_bounds(offset, length, bytes))
        return fail(NBLA_ERROR_VALUE, "%llu bytes from offset %llu are not within the buffer's %llu",
                    (unsigned long long)length, (unsigned long long)offset, (unsigned long long)bytes);
    *part = (struct part){*buffer, offset, length};
    return 0;
}

static int open_memory(const struct handle *handle, void *wanted, nbla_memory **memory)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct part part;
    int r = part_open(handle, &buffer, &part);

    return r < 0 ? r : normal_open(buffer, part.offset, part.length, wanted, memory);
}

static int open_chunk(const struct handle *handle, void *wanted, nbla_physical_memory **ret)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    nbla_physical_memory *p;
    struct part part;
    uint64_t granule;
    int r = part_open(handle, &buffer, &part);

    if (r < 0)
        return r;
    granule = memclient_buffer_granule(buffer);
    if ((part.offset | part.length | (uintptr_t)wanted) % granule)
        return fail(NBLA_ERROR_VALUE, "offset, length and address of a chunk are multiples of its pages' %llu bytes",
                    (unsigned long long)granule);
    p = physical_new_opened(buffer, part.offset, part.length, wanted);
    if (!p)
        return NBLA_ERROR_MEMORY;
    *ret = p;
    return 0;
}

int nbla_memory_import_fd(struct memclient_context *ctx, int fd, uint64_t offset, uint64_t length, void *wanted,
                          nbla_memory **memory)
{
    const struct handle handle = {ctx, fd, NULL, offset, length};

    return memory ? open_memory(&handle, wanted, memory) : fail_null("memory");
}

int nbla_memory_open_token(struct memclient_context *ctx, const struct memclient_token *token, uint64_t offset,
                           uint64_t length, void *wanted, nbla_memory **memory)
{
    const struct handle handle = {ctx, -1, token, offset, length};

    return token && memory ? open_memory(&handle, wanted, memory) : fail_null("token or memory");
}

int nbla_physical_memory_import_fd(struct memclient_context *ctx, int fd, uint64_t offset, uint64_t length,
                                   void *wanted, nbla_physical_memory **p)
{
    const struct handle handle = {ctx, fd, NULL, offset, length};

    return p ? open_chunk(&handle, wanted, p) : fail_null("p");
}

int nbla_physical_memory_open_token(struct memclient_context *ctx, const struct memclient_token *token, uint64_t offset,
                                    uint64_t length, void *wanted, nbla_physical_memory **p)
{
    const struct handle handle = {ctx, -1, token, offset, length};

    return token && p ? open_chunk(&handle, wanted, p) : fail_null("token or p");
}
