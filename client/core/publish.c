/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing, the process's own part of it.
 *
 * The kernel seals a buffer against writing only when no mapping can be made writable any more. So each of ours is
 * replaced, at the same address, by one of a read-only descriptor, which shows the same pages. Both descriptors are got
 * first, so that everything can be put back without another call if the broker refuses.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "core/map.h"
#include "core/pages.h"
#include "core/span.h"
#include "proto/status.h"

/* With the space's lock: maps it again at its address by that descriptor, with the access that all mappings want. */
static int publish_replace(struct mapping *m, int fd, bool writable)
{
    struct sweep sweep;
    struct span span;

    sweep_begin(&sweep, &process_space, m->start, m->size);
    while (sweep_next(&sweep, &span)) {
        int prot = map_prot(span.access) & (writable ? -1 : ~PROT_WRITE);
        void *at = mmap((void *)(uintptr_t)span.start, (size_t)span.size, prot, MAP_SHARED | MAP_FIXED, fd,
                        (off_t)(m->offset + (span.start - m->start)));

        if (at == MAP_FAILED)
            return fail_errno("mapping the buffer again");
        if (!span.for_children)
            (void)madvise(at, (size_t)span.size, MADV_DONTFORK);
    }
    m->writable = writable;
    for (struct mapping *each = space_overlapping(&process_space, m->start, m->size); each;
         each = mapping_found_next(each))
        each->by_writer |= writable;
    m->by_writer = writable;
    return 0;
}

/* With the space's lock. The index keeps the access that each had, to put it back. */
static int publish_drop_writable(const struct memclient_buffer *buf, int fd)
{
    int r = 0;

    for (struct mapping *m = space_first(&process_space); m && !r; m = space_next(m))
        if (mapping_is_of(m, buf) && m->by_writer)
            r = publish_replace(m, fd, false);
    return r;
}

static int publish_put_back(const struct memclient_buffer *buf, int fd)
{
    int r = 0;

    for (struct mapping *m = space_first(&process_space); m; m = space_next(m))
        if (mapping_is_of(m, buf) && m->access & MEMCLIENT_WRITE && !m->writable)
            r |= publish_replace(m, fd, true);
    return r;
}

static void publish_mark(struct memclient_buffer *buf, bool future_only)
{
    buffer_set_published(buf, future_only ? MEMCLIENT_BUFFER_FUTURE_ONLY : 0);
    if (!future_only)
        for (struct mapping *m = space_first(&process_space); m; m = space_next(m))
            if (mapping_is_of(m, buf) && m->access & MEMCLIENT_WRITE) {
                m->access = MEMCLIENT_READ;
                buffer_set_published(m->buffer, 0);
            }
    pthread_mutex_lock(&buf->ctx->lock);
    buffer_drop_fd(buf);
    pthread_mutex_unlock(&buf->ctx->lock);
}

static bool publish_has_writable(const struct memclient_buffer *buf)
{
    bool found = false;

    space_lock_read();
    for (struct mapping *m = space_first(&process_space); m && !found; m = space_next(m))
        found = mapping_is_of(m, buf) && m->by_writer;
    space_unlock();
    return found;
}

int map_publish(struct memclient_buffer *buf, bool future_only)
{
    uint64_t deadline = context_deadline(buf->ctx);
    _cleanup_close_ int reading = -1;
    _cleanup_close_ int writing = -1;
    bool replaced = false;
    int r = 0;

    if (!future_only && publish_has_writable(buf)) {
        r = buffer_export(buf, MEMCLIENT_READ, deadline, &reading);
        if (!r)
            r = buffer_export(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, deadline, &writing);
        /* somebody has sealed it for future writers: these mappings cannot be put back, whatever the broker says */
        if (r && fail_status() == STATUS_PUBLISHED)
            r = 0;
        if (r)
            return r;
    }

    space_lock();
    if (buf->publishing) {
        space_unlock();
        return fail_with(EBUSY, "buffer #%llu is being published by another thread", ULL(buf->id));
    }
    buf->publishing = !future_only;
    if (reading >= 0) {
        replaced = true;
        r = publish_drop_writable(buf, reading);
    }
    space_unlock();

    if (!r)
        r = rpc_publish(buffer_route_by(buf, deadline), buf->id, future_only);

    space_lock();
    if (!r) {
        publish_mark(buf, future_only);
    } else if (replaced) {
        struct fail_saved saved = fail_save(r);

        if (publish_put_back(buf, writing))
            saved.err = fail_with(-saved.err, "%s; and mappings could not be made writable again", saved.sentence);
        else
            (void)fail_restore(&saved);
        r = saved.err;
    }
    if (!future_only)
        buf->publishing = false;
    space_unlock();
    return r;
}
