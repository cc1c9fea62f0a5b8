/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded memory for one decoded message.
 *
 * protobuf-c allocates each string, each repeated field and each nested message, as many as the input says. Here they
 * come from one block, which is allocated once, cut from its front, and reset as a whole before the next message: a
 * request needs no allocator call, and a packet that needs more than the block has is refused like any malformed one.
 *
 * protobuf-c also allocates an index of the fields of a large message and frees it afterwards, once per row of a
 * listing. Therefore the largest freed piece is kept for the next one of its size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/cleanup.h"

struct arena {
    ProtobufCAllocator allocator; /* for protobuf-c; points back here, so an arena does not move */
    uint8_t *block;
    size_t size;
    size_t used;
    unsigned pieces_max;
    unsigned pieces;
    void *spare; /* the largest freed piece; NULL: none */
    bool exhausted;
};

#define ARENA_NULL    \
    {                 \
        .block = NULL \
    }

/* Allocates `bytes` (eight more are used per piece) for at most `pieces` pieces. 0 or -ENOMEM. */
int arena_init(struct arena *arena, size_t bytes, unsigned pieces);

/* Leaves it as ARENA_NULL, from which every allocation fails. */
void arena_deinit(struct arena *arena);

/* Frees everything that was allocated. */
void arena_reset(struct arena *arena);

/* Aligned to eight bytes; NULL, and the arena is exhausted until its reset, if it does not fit. */
void *arena_alloc(struct arena *arena, size_t size);

/* For protobuf-c, which frees some pieces. NULL is ignored. */
void arena_free(struct arena *arena, void *piece);

#define _cleanup_arena_ _cleanup_(arena_deinit)
