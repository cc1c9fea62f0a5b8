/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping a buffer: where, by which descriptor, and over what. */
#include "core/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/range.h"
#include "core/pages.h"
#include "core/target.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int map_check_range(const struct memclient_buffer *buf, const struct memclient_map_options *options,
                           struct map_request *request)
{
    request->offset = options->offset;
    request->length = options->length;
    request->address = (uintptr_t)options->address;
    request->flags = options->flags;
    if (request->offset >= buf->bytes)
        return fail_with(EOVERFLOW, "offset %llu is not inside the buffer's %llu bytes", ULL(request->offset),
                         ULL(buf->bytes));
    if (!request->length)
        request->length = buf->bytes - request->offset;
    if (!is_aligned(request->offset, buf->granule) || !is_aligned(request->length, buf->granule) ||
        !is_aligned(request->address, buf->granule))
        return fail_with(EINVAL, "offset, length and address must be multiples of the granule, %llu bytes",
                         ULL(buf->granule));
    if (!range_in_bounds(request->offset, request->length, buf->bytes))
        return fail_with(EOVERFLOW, "%llu bytes from offset %llu go beyond the buffer's %llu bytes",
                         ULL(request->length), ULL(request->offset), ULL(buf->bytes));
    if (request->address > UINTPTR_MAX - request->length)
        return fail_with(EOVERFLOW, "the range goes beyond the end of all addresses");
    return 0;
}

static int map_check_access(const struct memclient_buffer *buf, unsigned wanted, unsigned *access)
{
    unsigned rights = buffer_rights(buf);

    if (wanted & MEMCLIENT_WRITE) {
        if (buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED)
            return fail_with(EROFS, "buffer #%llu is published: it can be mapped for reading only", ULL(buf->id));
        if (!(rights & MEMCLIENT_WRITE))
            return fail_with(EACCES, "this handle of buffer #%llu has no right to write", ULL(buf->id));
    }
    if (!wanted)
        wanted = buffer_may_write(buf) ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ;
    *access = wanted & MEMCLIENT_WRITE ? MEMCLIENT_READ | MEMCLIENT_WRITE : wanted;
    return 0;
}

static int map_errno(const struct memclient_buffer *buf, const struct target *target)
{
    char text[128];

    if (errno == EEXIST)
        return fail_with(EADDRINUSE, "0x%llx, the home of buffer #%llu: something of this process is there already",
                         ULL(target->address), ULL(buf->id));
    if (errno == ENOMEM)
        return fail_with(ENOMEM,
                         "the kernel maps no more here: too many mappings (vm.max_map_count) or addresses (ulimit -v); "
                         "unmap something");
    return fail_with(errno, "mapping buffer #%llu: %s", ULL(buf->id), strerror_r(errno, text, sizeof(text)));
}

static int map_refuse_another(void)
{
    return fail_with(ENOMEM,
                     "this process has %llu mappings of buffers, and the rest of vm.max_map_count is for others; unmap "
                     "some, raise that, or put small ones together: a UMF pool takes one mapping for a whole slab",
                     ULL(process_space.n_mappings));
}

/*
 * With the context's lock. Another process may have published the buffer without this handle's knowing: the kernel then
 * refuses to map the cached descriptor for writing. The handle notes it, and the next descriptor is for reading.
 */
static bool map_was_published(struct memclient_buffer *buf, int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (!buf->fd_writable || seals < 0 || !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
        return false;
    buffer_set_published(buf, seals & F_SEAL_WRITE ? 0 : MEMCLIENT_BUFFER_FUTURE_ONLY);
    buffer_drop_fd(buf);
    return true;
}

/* Beside 0 and a negative errno: no descriptor is cached, or it cannot be used any more. */
enum { MAP_NEEDS_FD = 1 };

/* What to map from: a descriptor or, without one, a mapping. */
struct map_source {
    int fd; /* or -1 */
    const struct mapping *mapping;
    bool writable;
};

/* With the space's lock: are all pages there already, by a descriptor that is good enough? */
static bool map_is_there(const struct map_request *request, uint64_t address, bool writable)
{
    struct sweep sweep;
    struct span span;

    sweep_begin(&sweep, &process_space, address, request->length);
    while (sweep_next(&sweep, &span))
        if (!span.mapped || (writable && !span.writable))
            return false;
    return true;
}

/* With the space's lock and the context's. False if there is none. */
static bool map_find_source(struct memclient_buffer *buf, const struct map_request *request,
                            const struct target *target, bool writable, struct map_source *from)
{
    int fd = buffer_cached_fd(buf, writable);

    *from = (struct map_source){.fd = fd, .writable = fd >= 0 ? buf->fd_writable : writable};
    if (fd >= 0)
        return true;
    if (target->address && !space_is_free(&process_space, target->address, request->length))
        return map_is_there(request, target->address, writable);
    list_for_each_entry(m, &buf->mappings, struct mapping, in_buffer) {
        if (m->writable == writable && m->by_writer == writable && !m->is_copy &&
            range_contains((struct range){m->offset, m->size}, request->offset)) {
            from->mapping = m;
            return true;
        }
    }
    return false;
}

static void *map_descriptor(int fd, const struct map_request *request, const struct target *target)
{
    void *at = mmap((void *)(uintptr_t)target->address, (size_t)request->length, map_prot(request->access),
                    MAP_SHARED | target->flags, fd, (off_t)request->offset);

    /* where MAP_FIXED_NOREPLACE is not known (valgrind) the address is a mere hint */
    if (at != MAP_FAILED && target->address && (uintptr_t)at != target->address) {
        munmap(at, (size_t)request->length);
        at = MAP_FAILED;
        errno = EEXIST;
    }
    return at;
}

/*
 * mremap() of size 0 duplicates a shared mapping, from that page of the file on, with any length. The copy goes
 * where the kernel likes, so that a refusal, as for huge pages and in valgrind, loses nothing.
 */
static void *map_duplicate(const struct mapping *m, const struct map_request *request)
{
    size_t length = (size_t)request->length;
    uint64_t from = m->start + (request->offset - m->offset);
    void *at = mremap((void *)(uintptr_t)from, 0, length, MREMAP_MAYMOVE);

    if (at == MAP_FAILED)
        return at;
    if (mprotect(at, length, map_prot(request->access)) < 0 || (m->dont_copy && madvise(at, length, MADV_DOFORK) < 0)) {
        munmap(at, length);
        return MAP_FAILED;
    }
    return at;
}

static void *map_move_to(void *from, uint64_t length, const struct target *target)
{
    void *to = (void *)(uintptr_t)target->address;

    if (!to)
        return from;
    if (target->flags & MAP_FIXED_NOREPLACE && pages_reserve(target->address, length, MAP_FIXED_NOREPLACE) < 0) {
        errno = EEXIST;
        to = MAP_FAILED;
    } else {
        to = mremap(from, (size_t)length, (size_t)length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (to == MAP_FAILED && target->flags & MAP_FIXED_NOREPLACE)
            munmap((void *)(uintptr_t)target->address, (size_t)length);
    }
    if (to == MAP_FAILED) {
        int err = errno;

        munmap(from, (size_t)length);
        errno = err;
    }
    return to;
}

static int map_refuse_publishing(const struct memclient_buffer *buf)
{
    return fail_with(EBUSY, "buffer #%llu is being published; try again in a moment", ULL(buf->id));
}

/* With the space's lock and the context's: maps where nothing of ours is. 0, MAP_NEEDS_FD, or a negative errno. */
static int map_pages(struct memclient_buffer *buf, const struct map_source *from, const struct map_request *request,
                     const struct target *target, void **at)
{
    int r;

    if (from->fd >= 0) {
        *at = map_descriptor(from->fd, request, target);
    } else {
        *at = map_duplicate(from->mapping, request);
        if (*at == MAP_FAILED)
            return MAP_NEEDS_FD;
        *at = map_move_to(*at, request->length, target);
    }
    if (*at != MAP_FAILED)
        return 0;
    r = map_errno(buf, target);
    /* some kernels unmap what is there before they refuse */
    if (target->flags & MAP_FIXED)
        (void)pages_reserve(target->address, request->length, MAP_FIXED_NOREPLACE);
    if (r != -EPERM || from->fd < 0 || !from->writable)
        return r;
    /* while publishing tries to seal the file the kernel refuses already, but shows no seal yet */
    return map_was_published(buf, from->fd) ? MAP_NEEDS_FD : map_refuse_publishing(buf);
}

/* The part of the request that is in the span. */
static struct map_request map_request_part(const struct map_request *request, uint64_t address, const struct span *span)
{
    struct map_request part = *request;

    part.offset += span->start - address;
    part.length = span->size;
    return part;
}

/*
 * With both locks. Makes pages that are mapped already allow the requested access as well. Where they are mapped by a
 * descriptor for reading they are replaced: the pages are mapped elsewhere by one for writing and then moved there, so
 * that a refusal costs the other mappings nothing.
 */
static int map_raise_pages(struct memclient_buffer *buf, const struct map_source *from,
                           const struct map_request *request, const struct span *span)
{
    bool is_more = span_level(request->access) > span_level(span->access);
    void *at = (void *)(uintptr_t)span->start;
    int r = 0;

    if (from->writable && !span->writable) {
        struct map_request all = *request;

        all.access = is_more ? request->access : span->access;
        r = map_pages(buf, from, &all, &(struct target){0}, &at);
        if (!r && mremap(at, (size_t)span->size, (size_t)span->size, MREMAP_MAYMOVE | MREMAP_FIXED,
                         (void *)(uintptr_t)span->start) == MAP_FAILED) {
            r = fail_errno("putting pages in their place");
            munmap(at, (size_t)span->size);
        }
        return r;
    }
    if (is_more && mprotect(at, (size_t)span->size, map_prot(request->access)) < 0)
        return fail_errno("mprotect");
    if (!span->for_children && madvise(at, (size_t)span->size, MADV_DOFORK) < 0)
        return fail_errno("MADV_DOFORK");
    return 0;
}

/* With both locks. Undoes map_spans(): the pages from `start` to `end` become what the index says of them. */
static void map_take_back(uint64_t start, uint64_t end)
{
    struct sweep sweep;
    struct span span;

    sweep_begin(&sweep, &process_space, start, end - start);
    while (sweep_next(&sweep, &span)) {
        if (!span.mapped)
            (void)pages_unmap(span.start, span.size);
        else
            (void)mprotect((void *)(uintptr_t)span.start, (size_t)span.size, map_prot(span.access));
    }
}

/* With both locks. As map_pages(). */
static int map_spans(struct memclient_buffer *buf, const struct map_source *from, const struct map_request *request,
                     uint64_t address)
{
    struct sweep sweep;
    struct span span;
    void *at;
    int r = 0;

    sweep_begin(&sweep, &process_space, address, request->length);
    while (!r && sweep_next(&sweep, &span)) {
        struct map_request part = map_request_part(request, address, &span);
        struct target target = {.address = span.start};

        if (span.mapped) {
            r = map_raise_pages(buf, from, &part, &span);
        } else {
            r = target_flags(buf, request, &span, &target.flags);
            if (!r)
                r = map_pages(buf, from, &part, &target, &at);
        }
    }
    if (r) {
        struct fail_saved saved = fail_save(r);

        map_take_back(address, span.start);
        return r == MAP_NEEDS_FD ? r : fail_restore(&saved);
    }
    return 0;
}

/* With both locks. Notes in all mappings of these pages whether they are mapped by a descriptor for writing now. */
static void map_note_writers(struct mapping *mapping)
{
    for (struct mapping *m = space_overlapping(&process_space, mapping->start, mapping->size); m;
         m = mapping_found_next(m)) {
        if (mapping->writable)
            m->by_writer = true;
        else
            mapping->by_writer |= m->by_writer;
    }
}

/* With the space's lock and the context's. As map_pages(). */
static int map_at(struct memclient_buffer *buf, const struct map_source *from, const struct map_request *request,
                  const struct target *target, struct mapping *mapping)
{
    void *at = (void *)(uintptr_t)target->address;
    int r = at ? map_spans(buf, from, request, target->address) : map_pages(buf, from, request, target, &at);

    if (r)
        return r;
    *mapping = (struct mapping){
        .start = (uintptr_t)at,
        .size = request->length,
        .buffer = buffer_ref(buf),
        .offset = request->offset,
        .access = request->access,
        .writable = from->writable,
        .by_writer = from->writable,
        .at_home = !request->address,
        .own_in_child = request->flags & MEMCLIENT_MAP_COPY_ON_FORK,
    };
    if (mapping->own_in_child)
        map_keep_for_copies(buf);
    map_note_writers(mapping);
    space_insert(&process_space, mapping);
    list_prepend(&buf->mappings, &mapping->in_buffer);
    return 0;
}

/* With the space's lock. As map_pages(). */
static int map_try(struct memclient_buffer *buf, const struct map_request *request, bool writable,
                   struct mapping *mapping)
{
    struct map_source from;
    struct target target;
    int r;

    if (buf->publishing && writable)
        return map_refuse_publishing(buf);
    if (process_space.n_mappings >= space_mappings_max())
        return map_refuse_another();
    r = target_find(buf, request, &target);
    if (r && !(r == -EADDRINUSE && request->flags & MEMCLIENT_MAP_ANYWHERE))
        return r;
    if (r)
        target = (struct target){0};
    pthread_mutex_lock(&buf->ctx->lock);
    if (buf->ctx->closed) {
        r = fail_with(ESHUTDOWN, "the context was closed");
    } else if (!map_find_source(buf, request, &target, writable, &from)) {
        r = MAP_NEEDS_FD;
    } else {
        r = map_at(buf, &from, request, &target, mapping);
        if (r == -EADDRINUSE && request->flags & MEMCLIENT_MAP_ANYWHERE) {
            target = (struct target){0};
            r = MAP_NEEDS_FD;
            if (map_find_source(buf, request, &target, writable, &from))
                r = map_at(buf, &from, request, &target, mapping);
        }
    }
    pthread_mutex_unlock(&buf->ctx->lock);
    return r;
}

int map_buffer(struct memclient_buffer *buf, const struct memclient_map_options *options, void **address)
{
    uint64_t deadline = context_deadline(buf->ctx);
    struct mapping *mapping;
    struct map_request request;
    uint64_t start;
    int r;

    if (buffer_flags(buf) & MEMCLIENT_BUFFER_FOREIGN)
        return fail_with(EOPNOTSUPP, "buffer #%llu is foreign: export its descriptor, and use that as its maker says",
                         ULL(buf->id));
    r = map_check_range(buf, options, &request);
    if (r)
        return r;
    mapping = malloc(sizeof(*mapping));
    if (!mapping)
        return fail_with(ENOMEM, "no memory for a mapping's record");
    if (request.address && !(request.flags & (MEMCLIENT_MAP_NOT_HOME | MEMCLIENT_MAP_UNRESERVED)))
        r = map_make_home_by(buf, request.address, request.offset, request.length, deadline);
    while (!r) {
        bool writable;

        r = map_check_access(buf, options->access, &request.access);
        if (r)
            break;
        writable = buffer_may_write(buf);
        space_lock();
        r = map_try(buf, &request, writable, mapping);
        if (!r)
            start = mapping->start;
        space_unlock();
        if (!r) {
            map_prefault(buf, options, request.access, start, request.length);
            *address = (void *)(uintptr_t)start;
            return 0;
        }
        if (r == MAP_NEEDS_FD)
            r = buffer_cache_fd(buf, writable, deadline);
    }
    free(mapping);
    return r;
}

int map_query(uint64_t address, struct memclient_address_info *info)
{
    struct range_entry range;
    struct mapping *mapping;
    bool reserved;

    space_lock_read();
    mapping = space_find(&process_space, address);
    reserved = range_index_find(&process_space.reserved, address, &range);
    if (reserved) {
        struct memclient_reservation *res = range.value;

        info->reservation = res;
        info->context = res->ctx;
        info->address = (void *)(uintptr_t)range.start;
        info->length = range.size;
        info->access = MEMCLIENT_NO_ACCESS;
        info->process_private = !res->id;
    }
    if (mapping) {
        info->context = mapping->buffer->ctx;
        info->address = (void *)(uintptr_t)mapping->start;
        info->length = mapping->size;
        info->buffer = mapping->is_copy ? NULL : mapping->buffer;
        info->buffer_id = mapping->is_copy ? 0 : mapping->buffer->id;
        info->offset = mapping->offset + (address - mapping->start);
        info->access = mapping->access;
    }
    space_unlock();
    if (!reserved && !mapping)
        return fail_with(EFAULT, "0x%llx: nothing of this library is there", ULL(address));
    return 0;
}
