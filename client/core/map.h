/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing buffers in this process's address space. Arguments were checked by api for their form;
 * what depends on the buffer or the addresses is checked here.
 *
 * Every change is made under the space's lock together with its entry in the index. Mappings of a
 * buffer that the handle may write are made by a descriptor open for writing whatever their access,
 * so that they can be made writable later; this is what publishing has to undo.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/space.h"

struct memclient_reservation {
    uint64_t start;
    uint64_t size;
    struct list in_context;
    struct memclient *ctx;
    uint64_t id; /* 0 = of this process only */
    uint32_t broker; /* whose id it is */
    unsigned generation;
};

int map_buffer(struct memclient_buffer *buf, const struct memclient_map_options *options,
               void **address);
/* core/map_many.c: n buffers, 64 at most, all or none. */
int map_buffers(unsigned n, struct memclient_buffer *const *bufs, const struct memclient_map_options *options,
                void **addresses);
int map_protect(struct memclient *ctx, uint64_t start, uint64_t size, unsigned access);
int map_unmap(struct memclient *ctx, uint64_t start, uint64_t size);
int map_dont_copy(struct memclient *ctx, uint64_t start, uint64_t size);
int map_query(uint64_t address, struct memclient_address_info *info);

/* core/home.c: where it is mapped, if it has none. */
int map_make_home(struct memclient_buffer *buf);
/* The first mapping of a buffer without a home, in a reservation that it fits into, makes its home. */
int map_make_home_by(struct memclient_buffer *buf, uint64_t address, uint64_t offset, uint64_t length,
                     uint64_t deadline);

/* Without a lock. Frees what was taken out of the index, each the next one's `taken`, and drops their references. */
void map_drop_taken(struct mapping *taken);

/* Unmaps and releases all that is the context's. */
void map_drop_context(struct memclient *ctx);

/* core/reserve.c */
int map_reserve(struct memclient *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                struct memclient_reservation **res);
int map_reserve_private(struct memclient *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                        struct memclient_reservation **res);
int map_release(struct memclient_reservation *res);

/* Does it show the buffer? */
static inline bool mapping_is_of(const struct mapping *m, const struct memclient_buffer *buf)
{
    return !m->is_copy && m->buffer->id == buf->id && m->buffer->broker == buf->broker;
}

/* core/own.c, with the context's lock: it is mapped so that children get a copy. */
void map_keep_for_copies(struct memclient_buffer *buf);
/* In a child, with all locks: makes the copies. */
void map_own_in_child(void);

/* core/prefault.c: the process has made it, so its first mapping for writing enters its pages into the page tables. */
void map_prefault_when_mapped(struct memclient_buffer *buf);
/* Without a lock: enters what is to be entered of what was just mapped with this access. */
void map_prefault(struct memclient_buffer *buf, const struct memclient_map_options *options, unsigned access,
                     uint64_t start, uint64_t length);

/* core/publish.c */
int map_publish(struct memclient_buffer *buf, bool future_only);
