/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded bump allocator; arena.h says what for.
 *
 * Each piece has its length in the eight bytes before it. Under AddressSanitizer, memory that is not allocated is
 * poisoned, so that using a decoded message after the next one was read is detected.
 */
#include "proto/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ARENA_POISON 1
#endif

#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define ALIGNMENT 8
#define PREFIX    8

static void *alloc_for_protobuf(void *data, size_t size)
{
    return arena_alloc(data, size);
}

static void free_for_protobuf(void *data, void *piece)
{
    arena_free(data, piece);
}

static void piece_set_length(void *piece, uint64_t length)
{
    memcpy((uint8_t *)piece - PREFIX, &length, PREFIX);
}

static size_t piece_length(const void *piece)
{
    uint64_t length;

    memcpy(&length, (const uint8_t *)piece - PREFIX, PREFIX);
    return (size_t)length;
}

int arena_init(struct arena *arena, size_t bytes, unsigned pieces)
{
    uint8_t *block;

    assert(is_aligned(bytes, ALIGNMENT) && bytes);
    block = malloc(bytes);
    if (!block)
        return -ENOMEM;
    *arena = (struct arena){
        .allocator =
            {
                .alloc = alloc_for_protobuf,
                .free = free_for_protobuf,
                .allocator_data = arena,
            },
        .block = block,
        .size = bytes,
        .pieces_max = pieces,
    };
    ASAN_POISON_MEMORY_REGION(block, bytes);
    return 0;
}

void arena_deinit(struct arena *arena)
{
    int saved = errno;

    if (arena->block)
        ASAN_UNPOISON_MEMORY_REGION(arena->block, arena->size);
    free(arena->block);
    *arena = (struct arena)ARENA_NULL;
    errno = saved;
}

void arena_reset(struct arena *arena)
{
    ASAN_POISON_MEMORY_REGION(arena->block, arena->used);
    arena->used = 0;
    arena->pieces = 0;
    arena->spare = NULL;
    arena->exhausted = false;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t length, whole;
    void *piece;

    if (arena->exhausted || arena->pieces == arena->pieces_max ||
        !checked_align_up_size(size ? size : 1, ALIGNMENT, &length) || !checked_add_size(length, PREFIX, &whole))
        goto exhausted;

    /* only an exact fit: a small piece would take the place that protobuf-c needs for the next row */
    if (arena->spare && piece_length(arena->spare) == length) {
        piece = arena->spare;
        arena->spare = NULL;
    } else {
        if (whole > arena->size - arena->used)
            goto exhausted;
        piece = arena->block + arena->used + PREFIX;
        arena->used += whole;
        ASAN_UNPOISON_MEMORY_REGION((uint8_t *)piece - PREFIX, PREFIX);
        piece_set_length(piece, length);
    }
    ASAN_UNPOISON_MEMORY_REGION(piece, size);
    arena->pieces++;
    return piece;

exhausted:
    arena->exhausted = true;
    return NULL;
}

void arena_free(struct arena *arena, void *piece)
{
    if (!piece)
        return;
    ASAN_POISON_MEMORY_REGION(piece, piece_length(piece));
    if ((uint8_t *)piece + piece_length(piece) == arena->block + arena->used)
        arena->used -= piece_length(piece) + PREFIX;
    else if (!arena->spare || piece_length(piece) > piece_length(arena->spare))
        arena->spare = piece;
}
