/* SPDX-License-Identifier: Apache-2.0 */
/* The decoding arena: its two ends, and what is used again. */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#include "base/align.h"
#include "proto/arena.h"

static void test_ends_at_its_last_byte(void **state)
{
    _cleanup_arena_ struct arena arena = ARENA_NULL;

    assert_int_equal(arena_init(&arena, 64, 100), 0);
    /* eight bytes go before each piece */
    assert_non_null(arena_alloc(&arena, 24));
    assert_non_null(arena_alloc(&arena, 24));
    assert_false(arena.exhausted);
    assert_null(arena_alloc(&arena, 1));
    assert_true(arena.exhausted);

    arena_reset(&arena);
    assert_false(arena.exhausted);
    assert_non_null(arena_alloc(&arena, 56));
    arena_reset(&arena);
    assert_null(arena_alloc(&arena, 57));
}

static void test_ends_after_so_many_pieces(void **state)
{
    _cleanup_arena_ struct arena arena = ARENA_NULL;

    assert_int_equal(arena_init(&arena, 4096, 3), 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            assert_non_null(arena_alloc(&arena, 1));
        assert_null(arena_alloc(&arena, 1));
        assert_true(arena.exhausted);
        arena_reset(&arena);
    }
}

static void test_once_exhausted_stays_so(void **state)
{
    _cleanup_arena_ struct arena arena = ARENA_NULL;

    assert_int_equal(arena_init(&arena, 4096, 100), 0);
    assert_null(arena_alloc(&arena, 5000));
    /* this would fit, but half a message is none */
    assert_null(arena_alloc(&arena, 8));
    arena_reset(&arena);
    assert_non_null(arena_alloc(&arena, 8));
}

static void test_absurd_sizes(void **state)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX - 8, SIZE_MAX - 15, SIZE_MAX / 2 + 1, PTRDIFF_MAX};
    _cleanup_arena_ struct arena arena = ARENA_NULL;

    assert_int_equal(arena_init(&arena, 4096, 100), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_null(arena_alloc(&arena, sizes[i]));
        assert_true(arena.exhausted);
        arena_reset(&arena);
    }
    /* nothing is something: protobuf-c takes NULL for a failure */
    assert_non_null(arena_alloc(&arena, 0));
}

static void test_pieces_are_apart_and_aligned(void **state)
{
    _cleanup_arena_ struct arena arena = ARENA_NULL;
    uint8_t *pieces[50];

    assert_int_equal(arena_init(&arena, 4096, 100), 0);
    for (unsigned i = 0; i < 50; i++) {
        pieces[i] = arena_alloc(&arena, i + 1);
        assert_non_null(pieces[i]);
        assert_true(is_aligned((uintptr_t)pieces[i], 8));
        memset(pieces[i], (int)i, i + 1);
    }
    for (unsigned i = 0; i < 50; i++)
        for (unsigned j = 0; j <= i; j++)
            assert_int_equal(pieces[i][j], i);
}

static void test_given_back_is_used_again(void **state)
{
    _cleanup_arena_ struct arena arena = ARENA_NULL;
    void *note, *kept;

    assert_int_equal(arena_init(&arena, 1024, 1000), 0);

    /* the last piece: as if it had never been */
    note = arena_alloc(&arena, 100);
    arena_free(&arena, note);
    assert_ptr_equal(arena_alloc(&arena, 200), note);
    arena_reset(&arena);

    /* the pattern of a listing: a note, what the row keeps, the note goes */
    for (int row = 0; row < 10; row++) {
        note = arena_alloc(&arena, 400);
        kept = arena_alloc(&arena, 16);
        assert_non_null(note);
        assert_non_null(kept);
        arena_free(&arena, note);
        arena_free(&arena, NULL);
    }
    /* too small for this, so it is left alone */
    assert_non_null(arena_alloc(&arena, 300));
    assert_null(arena_alloc(&arena, 500));
}

static void test_without_a_block(void **state)
{
    struct arena arena = ARENA_NULL;

    arena_deinit(&arena);
    assert_null(arena_alloc(&arena, 1));
    arena_reset(&arena);
    assert_int_equal(arena_init(&arena, 64, 1), 0);
    errno = ENOENT;
    arena_deinit(&arena);
    assert_int_equal(errno, ENOENT);
    assert_null(arena_alloc(&arena, 1));
    arena_deinit(&arena);
}

static void test_as_protobuf_sees_it(void **state)
{
    _cleanup_arena_ struct arena arena = ARENA_NULL;
    ProtobufCAllocator *allocator = &arena.allocator;
    void *piece;

    assert_int_equal(arena_init(&arena, 64, 100), 0);
    piece = allocator->alloc(allocator->allocator_data, 32);
    assert_non_null(piece);
    assert_null(allocator->alloc(allocator->allocator_data, 32));
    allocator->free(allocator->allocator_data, piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_at_its_last_byte),
        cmocka_unit_test(test_ends_after_so_many_pieces),
        cmocka_unit_test(test_once_exhausted_stays_so),
        cmocka_unit_test(test_absurd_sizes),
        cmocka_unit_test(test_pieces_are_apart_and_aligned),
        cmocka_unit_test(test_given_back_is_used_again),
        cmocka_unit_test(test_without_a_block),
        cmocka_unit_test(test_as_protobuf_sees_it),
    };

    return test_run(tests, NULL, NULL);
}
