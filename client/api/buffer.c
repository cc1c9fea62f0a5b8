/* SPDX-License-Identifier: Apache-2.0 */
/* Allocating buffers, handles, what is done to a buffer as a whole. */
#include <string.h>

#include "api/check.h"
#include "base/align.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/map.h"

static int check_alloc(const struct memclient_alloc_options *o, size_t n)
{
    if (n > 1 && (o->name || o->address))
        return fail_with(EINVAL, "a name or an address is for one buffer, not for %zu", n);
    if (o->pool && strnlen(o->pool, MEMCLIENT_POOL_NAME_SIZE) == MEMCLIENT_POOL_NAME_SIZE)
        return fail_with(EINVAL, "a pool's name has at most %d bytes", MEMCLIENT_POOL_NAME_SIZE - 1);
    if (o->n_nodes > MEMORYD_NODES_MAX || (o->n_nodes && !o->nodes))
        return fail_with(EINVAL, "nodes: at most %d of them, and not NULL", MEMORYD_NODES_MAX);
    if (o->pages > MEMCLIENT_PAGES_HUGETLB)
        return fail_with(EINVAL, "%u is no kind of pages", o->pages);
    if (o->placement > MEMCLIENT_PLACEMENT_LOCAL)
        return fail_with(EINVAL, "%u is no placement", o->placement);
    if (o->alignment && !is_power_of_two(o->alignment))
        return fail_with(EINVAL, "the alignment is no power of two");
    if (o->flags & ~(unsigned)(MEMCLIENT_ALLOC_PUBLISHABLE | MEMCLIENT_ALLOC_NO_HOME | MEMCLIENT_ALLOC_NO_DESCRIPTOR |
                               MEMCLIENT_ALLOC_SHARED_SOON))
        return fail_with(EINVAL, "flags: 0x%x has bits that no allocation has", o->flags);
    if (o->address && o->flags & MEMCLIENT_ALLOC_NO_HOME)
        return fail_with(EINVAL, "an address is wanted and MEMCLIENT_ALLOC_NO_HOME is set");
    return o->name ? check_name(o->name) : 0;
}

int memclient_alloc_many(struct memclient_context *ctx, size_t n, const uint64_t *sizes,
                         const struct memclient_alloc_options *from, struct memclient_buffer **bufs)
{
    struct alloc_spec spec = {.n = (unsigned)n, .sizes = sizes};
    int r;

    r = check_pointer(sizes, "sizes");
    if (!r)
        r = check_pointer(bufs, "bufs");
    if (!r)
        r = check_options(&spec.options, sizeof(spec.options), from, "allocation options");
    if (!r && (!n || n > MEMCLIENT_BATCH_MAX))
        r = fail_with(EINVAL, "%zu buffers: 1 to %d can be made at once", n, MEMCLIENT_BATCH_MAX);
    if (!r)
        r = check_alloc(&spec.options, n);
    if (!r)
        r = check_name_options(spec.options.name_options, &spec.name);
    if (!r)
        r = check_context(&ctx);
    return r ? r : buffer_alloc(ctx, &spec, bufs);
}

int memclient_alloc(struct memclient_context *ctx, uint64_t size, const struct memclient_alloc_options *options,
                    struct memclient_buffer **buf)
{
    int r = check_pointer(buf, "buf");

    return r ? r : memclient_alloc_many(ctx, 1, &size, options, buf);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

struct memclient_buffer *memclient_buffer_ref(struct memclient_buffer *buf)
{
    return buf ? buffer_ref(buf) : NULL;
}

struct memclient_buffer *memclient_buffer_unref(struct memclient_buffer *buf)
{
    return buffer_unref(buf);
}

void memclient_buffer_unref_many(size_t n, struct memclient_buffer *const *bufs)
{
    struct release_batch batch = RELEASE_BATCH_NULL;

    for (size_t i = 0; i < n; i++)
        release_batch_unref(&batch, bufs[i]);
    release_batch_send(&batch);
}

int memclient_cache_put(struct memclient_buffer *buf)
{
    int r = check_pointer(buf, "buf");

    return r ? r : hold_cache_put(buf);
}

int memclient_cache_take(struct memclient_buffer *buf)
{
    int r = check_pointer(buf, "buf");

    return r ? r : hold_cache_take(buf);
}

bool memclient_cache_is_lost(struct memclient_buffer *buf)
{
    return hold_cache_is_lost(buf);
}

uint64_t memclient_buffer_id(const struct memclient_buffer *buf)
{
    return buf->id;
}

uint64_t memclient_buffer_size(const struct memclient_buffer *buf)
{
    return buf->size;
}

uint64_t memclient_buffer_bytes(const struct memclient_buffer *buf)
{
    return buf->bytes;
}

uint64_t memclient_buffer_granule(const struct memclient_buffer *buf)
{
    return buf->granule;
}

unsigned memclient_buffer_rights(const struct memclient_buffer *buf)
{
    return buffer_rights(buf);
}

unsigned memclient_buffer_flags(const struct memclient_buffer *buf)
{
    return buffer_flags(buf);
}

void *memclient_buffer_home(const struct memclient_buffer *buf)
{
    return (void *)(uintptr_t)buffer_address(buf);
}

struct memclient_context *memclient_buffer_context(const struct memclient_buffer *buf)
{
    return buf->ctx;
}

int memclient_buffer_query(struct memclient_buffer *buf, struct memclient_buffer_info *info)
{
    struct memclient_buffer_info filled;
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_output(info, "info");
    if (!r)
        r = rpc_info(buffer_route(buf), buf->id, &filled);
    return r ? r : write_output(info, &filled, sizeof(filled));
}

/* ---- what is done to one ----------------------------------------------------------------------------------------- */

int memclient_publish(struct memclient_buffer *buf, unsigned flags)
{
    int r = check_pointer(buf, "buf");

    if (r)
        return r;
    if (flags & ~(unsigned)MEMCLIENT_PUBLISH_FUTURE_ONLY)
        return fail_with(EINVAL, "flags: 0x%x is not known", flags);
    return map_publish(buf, flags & MEMCLIENT_PUBLISH_FUTURE_ONLY);
}

int memclient_discard(struct memclient_buffer *buf, uint64_t offset, uint64_t length)
{
    int r = check_pointer(buf, "buf");

    return r ? r : rpc_discard(buffer_route(buf), buf->id, offset, length);
}

int memclient_move(struct memclient_buffer *buf, uint32_t node)
{
    int r = check_pointer(buf, "buf");

    return r ? r : buffer_move(buf, node);
}

int memclient_destroy_id(struct memclient_context *ctx, uint64_t id, unsigned flags)
{
    int r;

    if (!id)
        return fail_with(EINVAL, "0 is no buffer's id");
    if (flags & ~(unsigned)MEMCLIENT_DESTROY_FORCE)
        return fail_with(EINVAL, "flags: 0x%x is not known", flags);
    r = check_context(&ctx);
    return r ? r : buffer_destroy(ctx, id, flags & MEMCLIENT_DESTROY_FORCE);
}
