/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded memory for one decoded message.
 *
 * protobuf-c allocates each string, each repeated field and each nested message,
 * as many as the input says. Here it gets them from one block that is made once,
 * cut from its front, and forgotten as a whole before the next message: no
 * allocator call for a request, and a packet that wants more than the block has
 * is refused like any malformed one.
 *
 * One refinement: to read a message with many fields protobuf-c takes a note of
 * them and gives it back afterwards, once per row of a listing. The largest piece
 * that was given back is therefore kept for the next one of its size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/cleanup.h"

struct arena {
    ProtobufCAllocator
        allocator; /* what protobuf-c is given; points back here, so an arena does not move */
    uint8_t *block;
    size_t size;
    size_t used;
    unsigned pieces_max;
    unsigned pieces;
    void *spare; /* given back, and free to use; NULL if none */
    bool exhausted;
};

#define ARENA_NULL    \
    {                 \
        .block = NULL \
    }

/* Room for `bytes` (with eight for each piece) in at most `pieces` pieces. 0 or -ENOMEM. */
int arena_init(struct arena *arena, size_t bytes, unsigned pieces);

/* Leaves it as ARENA_NULL, from which every allocation fails. */
void arena_deinit(struct arena *arena);

/* Forgets everything that was allocated. */
void arena_reset(struct arena *arena);

/* Aligned to eight bytes; NULL, and the arena is exhausted until its reset, if it does not fit. */
void *arena_alloc(struct arena *arena, size_t size);

/* For protobuf-c, which gives some pieces back. NULL is ignored. */
void arena_free(struct arena *arena, void *piece);

#define _cleanup_arena_ _cleanup_(arena_deinit)
