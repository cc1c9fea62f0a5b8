/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies for children. What is mapped with MEMCLIENT_MAP_COPY_ON_FORK becomes a private mapping at the same address in
 * a child, as memory of malloc() is, except that the child sees what the parent writes to pages that it has not written
 * itself.
 *
 * A private mapping takes a descriptor, which must be cached, since no request can be made in the middle of a fork. So
 * descriptors of large buffers are kept; small buffers, and those without a descriptor, are copied.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/fileid.h"
#include "core/map.h"
#include "core/pages.h"
#include "core/span.h"

/* Smaller buffers are copied. */
#define KEEP_FROM (UINT64_C(256) << 10)

void map_keep_for_copies(struct memclient_buffer *buf)
{
    if (buf->bytes >= KEEP_FROM)
        buffer_keep_fd(buf);
}

static void *own_map_private(const struct memclient_buffer *buf, uint64_t offset, const struct span *span)
{
    if (!file_id_is(buf->fd_id, buf->fd))
        return MAP_FAILED;
    return mmap(NULL, (size_t)span->size, map_prot(span->access), MAP_PRIVATE, buf->fd, (off_t)offset);
}

static void *own_copy(const struct span *span)
{
    void *from = (void *)(uintptr_t)span->start;
    void *to = mmap(NULL, (size_t)span->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (to == MAP_FAILED)
        return to;
    if (!(map_prot(span->access) & PROT_READ) && mprotect(from, (size_t)span->size, PROT_READ) < 0) {
        munmap(to, (size_t)span->size);
        return MAP_FAILED;
    }
    memcpy(to, from, (size_t)span->size);
    (void)mprotect(to, (size_t)span->size, map_prot(span->access));
    return to;
}

/* Where the kernel gives no memory, the pages stay shared with the parent. */
static void own_pages(const struct mapping *m, const struct span *span)
{
    void *at = own_map_private(m->buffer, m->offset + (span->start - m->start), span);

    /* reading memory of a lazy pool may raise SIGBUS */
    if (at == MAP_FAILED && !(buffer_flags(m->buffer) & MEMCLIENT_BUFFER_LAZY))
        at = own_copy(span);
    if (at == MAP_FAILED)
        return;
    if (mremap(at, (size_t)span->size, (size_t)span->size, MREMAP_MAYMOVE | MREMAP_FIXED,
               (void *)(uintptr_t)span->start) == MAP_FAILED)
        munmap(at, (size_t)span->size);
}

void map_own_in_child(void)
{
    struct sweep sweep;
    struct span span;

    for (struct mapping *m = space_first(&process_space); m; m = space_next(m)) {
        if (!m->own_in_child || m->is_copy)
            continue;
        sweep_begin(&sweep, &process_space, m->start, m->size);
        while (sweep_next(&sweep, &span))
            if (!span.stays_shared)
                own_pages(m, &span);
        m->is_copy = true;
    }
}
