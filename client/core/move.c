/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a buffer to another node: the process's own part of it.
 *
 * The kernel moves no page for the broker that another process has in its page tables. Ours are emptied just before:
 * of a mapping of a file that drops nothing but the tables, and whoever touches it next gets them filled again.
 */
#include <sys/mman.h>

#include "core/map.h"

/* What is locked in memory cannot be emptied: then the broker will say that it is in use. */
static void empty_page_tables(const struct memclient_buffer *buf)
{
    space_lock_read();
    for (struct mapping *m = space_first(&process_space); m; m = space_next(m))
        if (mapping_is_of(m, buf))
            (void)madvise((void *)(uintptr_t)m->start, (size_t)m->size, MADV_DONTNEED);
    space_unlock();
}

int map_move(struct memclient_buffer *buf, uint32_t node)
{
    empty_page_tables(buf);
    return rpc_move(buffer_route(buf), buf->id, node);
}
