/* SPDX-License-Identifier: Apache-2.0 */
/* The arena against a model that cannot be wrong, and its answers to everything that may be asked. */
#include <string.h>

#include "proto/status.h"
#include "tests/support/test.h"
#include "va/arena.h"

#define PAGE UINT64_C(4096)
#define BASE UINT64_C(0x400000000000)

static struct arena arena;

static int take(struct arena_extent *extent, uint64_t size, uint64_t alignment, uint64_t wish)
{
    struct problem problem = PROBLEM_NULL;
    int r = arena_take(&arena, extent, size, alignment, wish, &problem);

    /* a refusal says why */
    assert_int_equal(!r, !problem.sentence[0]);
    return r;
}

static bool has(struct arena_extent *extent, uint64_t address)
{
    return address >= extent->start && address - extent->start < arena_extent_size(extent);
}

static bool is_free(uint64_t page)
{
    uint64_t start, size;

    return arena_next_free(&arena, page, page + PAGE, &start, &size) && start == page && size == PAGE;
}

static void test_arguments(void **state)
{
    struct arena_extent extent = ARENA_EXTENT_NULL;

    va_arena_init(&arena, BASE, 16 * PAGE, PAGE);
    assert_int_equal(take(&extent, 0, 0, 0), STATUS_SIZE_ZERO);
    assert_int_equal(take(&extent, 1, 0, 0), STATUS_INVALID_ARGUMENT);
    assert_int_equal(take(&extent, PAGE + 1, 0, 0), STATUS_INVALID_ARGUMENT);
    assert_int_equal(take(&extent, PAGE, 3, 0), STATUS_INVALID_ARGUMENT);
    assert_int_equal(take(&extent, PAGE, PAGE, BASE + 1), STATUS_INVALID_ARGUMENT);
    assert_int_equal(take(&extent, PAGE, 2 * PAGE, BASE + PAGE), STATUS_INVALID_ARGUMENT);
    assert_int_equal(take(&extent, -PAGE, PAGE, BASE), STATUS_SIZE_OVERFLOW);
    assert_int_equal(take(&extent, -PAGE, PAGE, 0), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, PAGE, UINT64_C(1) << 63, 0), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, -PAGE, UINT64_C(1) << 63, 0), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, 17 * PAGE, 0, 0), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, PAGE, 0, BASE - PAGE), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, PAGE, 0, BASE + 16 * PAGE), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, 2 * PAGE, 0, BASE + 15 * PAGE), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, PAGE, 0, PAGE), STATUS_NO_ADDRESS_SPACE);
    assert_false(arena_extent_is_taken(&extent));
    assert_int_equal(arena.used, 0);

    /* an alignment below the page is the page */
    assert_int_equal(take(&extent, 16 * PAGE, 1, 0), 0);
    assert_int_equal(extent.start, BASE);
    assert_int_equal(arena_widest(&arena), 0);
    arena_give(&arena, &extent);
    arena_give(&arena, &extent);
    va_arena_deinit(&arena);
}

static void test_I9_wish_is_exact_or_refused(void **state)
{
    struct arena_extent a = ARENA_EXTENT_NULL, b = ARENA_EXTENT_NULL;

    va_arena_init(&arena, BASE, 16 * PAGE, PAGE);
    assert_int_equal(take(&a, 4 * PAGE, 0, BASE + 4 * PAGE), 0);
    assert_int_equal(a.start, BASE + 4 * PAGE);
    assert_int_equal(arena_extent_size(&a), 4 * PAGE);
    for (uint64_t n = 1; n <= 8; n++)
        assert_int_equal(take(&b, PAGE, 0, BASE + n * PAGE), n >= 4 && n < 8 ? STATUS_ADDRESS_TAKEN : 0),
            arena_give(&arena, &b);
    /* one page too far, from either side, and around it */
    assert_int_equal(take(&b, 5 * PAGE, 0, BASE), STATUS_ADDRESS_TAKEN);
    assert_int_equal(take(&b, 16 * PAGE, 0, BASE), STATUS_ADDRESS_TAKEN);
    assert_int_equal(take(&b, 9 * PAGE, 0, BASE + 7 * PAGE), STATUS_ADDRESS_TAKEN);
    assert_int_equal(take(&b, 4 * PAGE, 0, BASE), 0);
    arena_give(&arena, &b);
    assert_int_equal(take(&b, 8 * PAGE, 0, BASE + 8 * PAGE), 0);
    assert_true(has(&a, BASE + 4 * PAGE) && has(&a, BASE + 8 * PAGE - 1));
    assert_false(has(&a, BASE + 4 * PAGE - 1) || has(&a, BASE + 8 * PAGE));
    assert_true(has(&b, BASE + 8 * PAGE) && has(&b, BASE + 16 * PAGE - 1));
    assert_false(has(&b, BASE + 8 * PAGE - 1) || has(&b, BASE + 16 * PAGE));
    for (uint64_t n = 0; n < 16; n++)
        assert_int_equal(is_free(BASE + n * PAGE), n < 4);
    arena_give(&arena, &a);
    arena_give(&arena, &b);
    va_arena_deinit(&arena);
}

/* A gap that has just the size is used although a larger one would be the easy choice. */
static void test_tight_aligned_gap(void **state)
{
    struct arena_extent low = ARENA_EXTENT_NULL, high = ARENA_EXTENT_NULL, tight = ARENA_EXTENT_NULL;

    va_arena_init(&arena, BASE, 16 * PAGE, PAGE);
    assert_int_equal(take(&low, 8 * PAGE, 0, BASE), 0);
    assert_int_equal(take(&high, 4 * PAGE, 0, BASE + 12 * PAGE), 0);
    assert_int_equal(take(&tight, 4 * PAGE, 4 * PAGE, 0), 0);
    assert_int_equal(tight.start, BASE + 8 * PAGE);
    arena_give(&arena, &tight);
    assert_int_equal(take(&tight, 4 * PAGE, 8 * PAGE, 0), 0);
    arena_give(&arena, &tight);
    assert_int_equal(take(&tight, PAGE, 16 * PAGE, 0), STATUS_NO_ADDRESS_SPACE);
    arena_give(&arena, &low);
    arena_give(&arena, &high);
    va_arena_deinit(&arena);
}

/* At the top of the address space sums must not wrap. */
static void test_arena_at_the_top(void **state)
{
    struct arena_extent extent = ARENA_EXTENT_NULL;
    uint64_t top = -PAGE;

    va_arena_init(&arena, top - 8 * PAGE, 8 * PAGE, PAGE);
    assert_int_equal(take(&extent, 9 * PAGE, 0, 0), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, PAGE, UINT64_C(1) << 63, 0), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(take(&extent, PAGE, 0, top), STATUS_SIZE_OVERFLOW);
    assert_int_equal(take(&extent, 2 * PAGE, 0, top), STATUS_SIZE_OVERFLOW);
    assert_int_equal(take(&extent, PAGE, 0, top - PAGE), 0);
    arena_give(&arena, &extent);
    assert_int_equal(take(&extent, 8 * PAGE, 0, 0), 0);
    arena_give(&arena, &extent);
    va_arena_deinit(&arena);
}

#define N_PAGES   2048
#define N_EXTENTS 400

static unsigned owner[N_PAGES]; /* 1 + the extent's number; 0 = free */
static struct arena_extent extents[N_EXTENTS];
static uint64_t sizes[N_EXTENTS];

/* The lowest page where it fits, or N_PAGES. */
static unsigned model_find(unsigned n, unsigned alignment)
{
    for (unsigned start = 0; start + n <= N_PAGES; start += alignment) {
        unsigned i = 0;

        while (i < n && !owner[start + i])
            i++;
        if (i == n)
            return start;
    }
    return N_PAGES;
}

static unsigned model_widest(void)
{
    unsigned widest = 0, run = 0;

    for (unsigned i = 0; i < N_PAGES; i++) {
        run = owner[i] ? 0 : run + 1;
        widest = run > widest ? run : widest;
    }
    return widest;
}

static void model_set(unsigned start, uint64_t n, unsigned value)
{
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(!owner[start + i], !!value);
        owner[start + i] = value;
    }
}

static void check_all(void)
{
    uint64_t used = 0;

    for (unsigned i = 0; i < N_PAGES; i++) {
        assert_int_equal(is_free(BASE + i * PAGE), !owner[i]);
        assert_true(!owner[i] || has(&extents[owner[i] - 1], BASE + i * PAGE + PAGE / 2));
        used += owner[i] ? PAGE : 0;
    }
    assert_int_equal(arena.used, used);
}

/* I9: reservations never overlap, whatever is asked for in whatever order, and what was free is found. */
static void test_I9_never_overlaps(void **state)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15);

    va_arena_init(&arena, BASE, N_PAGES * PAGE, PAGE);
    for (int round = 0; round < 100000; round++) {
        unsigned which, n, alignment, start;
        struct arena_extent *extent;

        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        which = (unsigned)(random % N_EXTENTS);
        extent = &extents[which];
        if (arena_extent_is_taken(extent)) {
            start = (unsigned)((extent->start - BASE) / PAGE);
            assert_int_equal(arena_extent_size(extent), sizes[which]);
            model_set(start, sizes[which] / PAGE, 0);
            arena_give(&arena, extent);
        } else {
            n = 1 + (unsigned)(random >> 20 & 15);
            alignment = 1u << (random >> 30 & 7);
            sizes[which] = n * PAGE;
            if (random >> 40 & 1) {
                bool is_free = true;

                start = (unsigned)(random >> 41) % N_PAGES / alignment * alignment;
                for (unsigned i = 0; i < n && start + i < N_PAGES; i++)
                    is_free &= !owner[start + i];
                assert_int_equal(take(extent, n * PAGE, alignment * PAGE, BASE + start * PAGE),
                                 start + n > N_PAGES ? STATUS_NO_ADDRESS_SPACE
                                 : is_free           ? 0
                                                     : STATUS_ADDRESS_TAKEN);
            } else {
                assert_int_equal(take(extent, n * PAGE, alignment * PAGE, 0),
                                 model_find(n, alignment) == N_PAGES ? STATUS_NO_ADDRESS_SPACE : 0);
            }
            if (arena_extent_is_taken(extent)) {
                assert_int_equal((extent->start - BASE) % (alignment * PAGE), 0);
                model_set((unsigned)((extent->start - BASE) / PAGE), n, which + 1);
            }
        }
        assert_int_equal(arena_widest(&arena), model_widest() * PAGE);
        if (round % 500 == 0)
            check_all();
    }
    for (unsigned i = 0; i < N_EXTENTS; i++)
        arena_give(&arena, &extents[i]);
    assert_int_equal(arena_widest(&arena), N_PAGES * PAGE);
    va_arena_deinit(&arena);
}

/* The largest free range is what sizes and waste leave of it. */
static void test_waste(void **state)
{
    struct arena_extent first = ARENA_EXTENT_NULL, middle = ARENA_EXTENT_NULL, tight = ARENA_EXTENT_NULL;

    va_arena_init(&arena, BASE, 64 * PAGE, PAGE);
    assert_int_equal(arena_take(&arena, &first, PAGE, 0, 0, NULL), 0);
    assert_int_equal(arena_extent_waste(&first), 0);
    assert_int_equal(arena_take(&arena, &middle, PAGE, 16 * PAGE, 0, NULL), 0);
    assert_int_equal(arena_extent_waste(&middle), middle.start - BASE - PAGE);
    assert_int_equal(arena_widest(&arena), 64 * PAGE - 2 * PAGE - arena_extent_waste(&middle));
    assert_int_equal(arena_take(&arena, &tight, PAGE, 0, BASE + 63 * PAGE, NULL), 0);
    assert_int_equal(arena_extent_waste(&tight), 0);
    arena_give(&arena, &first);
    arena_give(&arena, &tight);
    assert_int_equal(arena_extent_waste(&middle), middle.start - BASE);
    arena_give(&arena, &middle);
    va_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),         cmocka_unit_test(test_I9_wish_is_exact_or_refused),
        cmocka_unit_test(test_tight_aligned_gap), cmocka_unit_test(test_arena_at_the_top),
        cmocka_unit_test(test_I9_never_overlaps), cmocka_unit_test(test_waste),
    };

    return test_run(tests, NULL, NULL);
}
