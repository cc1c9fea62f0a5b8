/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies for children. What is mapped with MEMCLIENT_MAP_OWN_IN_CHILD is, in a child, a private mapping at the same
 * place: as of memory of malloc(), but that of pages which the child has not written it sees what the parent writes.
 *
 * A private mapping takes a descriptor, and only those at hand can be used, since nobody may be asked for anything in
 * the middle of a fork. So those of large buffers are kept; what is small, or of a buffer without one, is copied.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/fileid.h"
#include "core/map.h"
#include "core/pages.h"
#include "core/span.h"

/* What is smaller is copied in less time than it takes to be told of. */
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

/* Where the kernel gives no memory for it, the pages stay the parent's as well. */
static void own_pages(const struct mapping *m, const struct span *span)
{
    void *at = own_map_private(m->buffer, m->offset + (span->start - m->start), span);

    /* touching memory of a lazy pool may raise SIGBUS */
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
