/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping buffers into this process's address space. client/api has checked the form of arguments; what depends on the
 * buffer or the addresses is checked here.
 *
 * Each change is made under the space's lock together with its entry in the index. If the handle may write the buffer,
 * mappings are made by a descriptor open for writing, whatever their access, so that they can be made writable later.
 * This is what publishing has to undo.
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
    struct memclient_context *ctx;
    uint64_t id;     /* 0 = of this process only */
    uint32_t broker; /* whose id it is */
    unsigned generation;
};

int map_buffer(struct memclient_buffer *buf, const struct memclient_map_options *options, void **address);
/* core/map_many.c: n buffers, 64 at most, all or none. */
int map_buffers(unsigned n, struct memclient_buffer *const *bufs, const struct memclient_map_options *options,
                void **addresses);
int map_protect(struct memclient_context *ctx, uint64_t start, uint64_t size, unsigned access);
int map_unmap(struct memclient_context *ctx, uint64_t start, uint64_t size);
int map_dont_copy(struct memclient_context *ctx, uint64_t start, uint64_t size);
int map_query(uint64_t address, struct memclient_address_info *info);

/* core/home.c: makes the buffer's home where it is mapped, if it has none. */
int map_make_home(struct memclient_buffer *buf);
/* The same for a first mapping at `address`, if it is in a reservation into which all of the buffer fits. */
int map_make_home_by(struct memclient_buffer *buf, uint64_t address, uint64_t offset, uint64_t length,
                     uint64_t deadline);

/* Without a lock: frees mappings that were taken out of the index, linked by `taken`, and drops their references. */
void map_drop_taken(struct mapping *taken);

/* Unmaps and releases everything of the context. */
void map_drop_context(struct memclient_context *ctx);

/* core/reserve.c */
int map_reserve(struct memclient_context *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                struct memclient_reservation **res);
int map_reserve_private(struct memclient_context *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                        struct memclient_reservation **res);
int map_release(struct memclient_reservation *res);

/* Does the mapping show the buffer? */
static inline bool mapping_is_of(const struct mapping *m, const struct memclient_buffer *buf)
{
    return !m->is_copy && m->buffer->id == buf->id && m->buffer->broker == buf->broker;
}

/* core/own.c, with the context's lock: the buffer is mapped so that children get a copy. */
void map_keep_for_copies(struct memclient_buffer *buf);
/* In a child, with all locks: makes the copies. */
void map_own_in_child(void);

/* core/prefault.c: this process allocated the buffer, so its first mapping for writing prefaults it. */
void map_prefault_when_mapped(struct memclient_buffer *buf);
/* Without a lock: prefaults what was just mapped with this access, as far as that is useful. */
void map_prefault(struct memclient_buffer *buf, const struct memclient_map_options *options, unsigned access,
                  uint64_t start, uint64_t length);

/* core/publish.c */
int map_publish(struct memclient_buffer *buf, bool future_only);
