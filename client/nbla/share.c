/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing: descriptors, tokens and numbers of the buffers that blocks and chunks lie in, and opening them elsewhere. */
#include "base/cleanup.h"
#include "base/range.h"
#include "base/steal.h"
#include "nbla/error.h"
#include "nbla/memory.h"
#include "nbla/normal.h"
#include "nbla/physical.h"

static void buffer_unref(struct memclient_buffer *buffer)
{
    (void)memclient_buffer_unref(buffer);
}

DEFINE_CLEANUP(struct memclient_buffer *, buffer_unref);

/* A part of a buffer; that is not counted. */
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

/* ---- sharing --------------------------------------------------------------------------------------------- */

/* Chunks have no home before: others are to find it where it is bound here. Where it cannot be made, anywhere. */
static int export_part(const struct part *part, int *fd, uint64_t *offset, uint64_t *length)
{
    int r;

    (void)memclient_make_home(part->buffer);
    r = memclient_export_fd(part->buffer, 0, fd);
    if (r)
        return fail_native(r);
    *offset = part->offset;
    *length = part->length;
    return 0;
}

/* Likewise. */
static int share_part(const struct part *part, struct memclient_token *token, uint64_t *offset, uint64_t *length)
{
    int r;

    (void)memclient_make_home(part->buffer);
    r = memclient_share(part->buffer, NULL, token);
    if (r)
        return fail_native(r);
    *offset = part->offset;
    *length = part->length;
    return 0;
}

int nbla_memory_export(nbla_memory *memory, int *fd, uint64_t *offset, uint64_t *length)
{
    struct part part;
    int r;

    if (!memory || !fd || !offset || !length)
        return fail_null("memory, fd, offset or length");
    r = part_of_memory(memory, &part);
    return r < 0 ? r : export_part(&part, fd, offset, length);
}

int nbla_memory_token(nbla_memory *memory, struct memclient_token *token, uint64_t *offset, uint64_t *length)
{
    struct part part;
    int r;

    if (!memory || !token || !offset || !length)
        return fail_null("memory, token, offset or length");
    r = part_of_memory(memory, &part);
    return r < 0 ? r : share_part(&part, token, offset, length);
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
    int r;

    if (!p || !fd || !offset || !length)
        return fail_null("p, fd, offset or length");
    r = part_of_chunk(p, &part);
    return r < 0 ? r : export_part(&part, fd, offset, length);
}

int nbla_physical_memory_token(nbla_physical_memory *p, struct memclient_token *token, uint64_t *offset,
                               uint64_t *length)
{
    struct part part;
    int r;

    if (!p || !token || !offset || !length)
        return fail_null("p, token, offset or length");
    r = part_of_chunk(p, &part);
    return r < 0 ? r : share_part(&part, token, offset, length);
}

uint64_t nbla_physical_memory_id(const nbla_physical_memory *p)
{
    return p->lock_fd.buffer && !lock_fd_is_parents(&p->lock_fd) ? memclient_buffer_id(p->lock_fd.buffer) : 0;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* Which part is meant: length 0 = to the end of what the buffer's maker asked for, or of its last page. */
static int find_part(struct memclient_buffer *buffer, uint64_t offset, uint64_t length, struct part *part)
{
    uint64_t size = memclient_buffer_size(buffer), bytes = memclient_buffer_bytes(buffer);

    if (!length && offset < bytes)
        length = (offset < size ? size : bytes) - offset;
    if (!length || !range_in_bounds(offset, length, bytes))
        return fail(NBLA_ERROR_VALUE, "%llu bytes from offset %llu are not within the buffer's %llu",
                    (unsigned long long)length, (unsigned long long)offset, (unsigned long long)bytes);
    *part = (struct part){buffer, offset, length};
    return 0;
}

/* Takes the buffer over, on success. */
static int open_memory(struct memclient_buffer *buffer, const struct part *part, void *wanted, nbla_memory **ret)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct segment *segment;
    nbla_memory *memory;
    int r = memclient_buffer_info(buffer, &info);

    if (r)
        return fail_native(r);
    r = segment_map(memclient_buffer_ref(buffer), true, part->offset, part->length, wanted, &segment);
    if (r < 0) {
        (void)memclient_buffer_unref(buffer);
        return r;
    }
    memory = normal_new(segment, segment->base + (part->offset - segment->offset), (size_t)part->length, info.pool);
    if (!memory) {
        segment_unref(segment);
        return NBLA_ERROR_MEMORY;
    }
    *ret = memory;
    return 0;
}

static int open_chunk(struct memclient_buffer *buffer, const struct part *part, void *wanted,
                      nbla_physical_memory **ret)
{
    uint64_t granule = memclient_buffer_granule(buffer);
    nbla_physical_memory *p;

    if ((part->offset | part->length | (uintptr_t)wanted) % granule)
        return fail(NBLA_ERROR_VALUE, "a chunk is of whole pages, and wanted at one: %llu bytes",
                    (unsigned long long)granule);
    p = physical_new_opened(memclient_buffer_ref(buffer), part->offset, part->length, wanted);
    if (!p) {
        (void)memclient_buffer_unref(buffer);
        return NBLA_ERROR_MEMORY;
    }
    *ret = p;
    return 0;
}

int nbla_memory_import_fd(memclient *ctx, int fd, uint64_t offset, uint64_t length, void *wanted, nbla_memory **memory)
{
    _cleanup_(buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct part part;
    int r;

    if (!memory)
        return fail_null("memory");
    r = memclient_import_fd(ctx, fd, &buffer);
    r = r ? fail_native(r) : find_part(buffer, offset, length, &part);
    return r < 0 ? r : open_memory(buffer, &part, wanted, memory);
}

int nbla_memory_open_token(memclient *ctx, const struct memclient_token *token, uint64_t offset, uint64_t length,
                           void *wanted, nbla_memory **memory)
{
    _cleanup_(buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct part part;
    int r;

    if (!token || !memory)
        return fail_null("token or memory");
    r = memclient_open_token(ctx, token, 0, &buffer);
    r = r ? fail_native(r) : find_part(buffer, offset, length, &part);
    return r < 0 ? r : open_memory(buffer, &part, wanted, memory);
}

int nbla_physical_memory_import_fd(memclient *ctx, int fd, uint64_t offset, uint64_t length, void *wanted,
                                   nbla_physical_memory **p)
{
    _cleanup_(buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct part part;
    int r;

    if (!p)
        return fail_null("p");
    r = memclient_import_fd(ctx, fd, &buffer);
    r = r ? fail_native(r) : find_part(buffer, offset, length, &part);
    return r < 0 ? r : open_chunk(buffer, &part, wanted, p);
}

int nbla_physical_memory_open_token(memclient *ctx, const struct memclient_token *token, uint64_t offset,
                                    uint64_t length, void *wanted, nbla_physical_memory **p)
{
    _cleanup_(buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct part part;
    int r;

    if (!token || !p)
        return fail_null("token or p");
    r = memclient_open_token(ctx, token, 0, &buffer);
    r = r ? fail_native(r) : find_part(buffer, offset, length, &part);
    return r < 0 ? r : open_chunk(buffer, &part, wanted, p);
}
