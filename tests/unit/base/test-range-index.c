/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of ranges: it answers as an array of all addresses would, while others change it, with as much memory as it
 * takes, and in the child of a fork.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/range_index.h"
#include "tests/support/child.h"
#include "tests/support/program.h"
#include "tests/support/test.h"

#define PAGE UINT64_C(4096)

static struct range_index range_index;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int empty_index(void **state)
{
    range_index_deinit(&range_index);
    srandom(1);
    return 0;
}

/* Tells whether the parts of an entry belong together. */
static void *value_of(uint64_t start, uint64_t size)
{
    return (void *)(uintptr_t)(start * UINT64_C(0x9e3779b97f4a7c15) ^ size);
}

static unsigned n_chunks(void)
{
    unsigned n = 0;

    for (const struct range_chunk *chunk = range_index.chunks; chunk; chunk = chunk->next)
        n++;
    return n;
}

/* ---- against an array -------------------------------------------------------------------------------------------- */

enum { CELLS = 2000 };

/* What each cell of `unit` addresses belongs to: which range's first cell, how many, and its value; 0 cells: none. */
static struct cell {
    unsigned first, n;
    void *value;
} cells[CELLS];
static uint64_t base, unit;

static void set_cells(unsigned first, unsigned n, void *value)
{
    for (unsigned i = first; i < first + n; i++)
        cells[i] = (struct cell){first, n, value};
}

static void clear_cells(unsigned first, unsigned n)
{
    memset(&cells[first], 0, n * sizeof(cells[0]));
}

static unsigned n_free_from(unsigned first)
{
    unsigned n = 0;

    while (first + n < CELLS && !cells[first + n].n)
        n++;
    return n;
}

static void assert_entry(const struct range_entry *entry, const struct cell *cell)
{
    assert_int_equal(entry->start, base + cell->first * unit);
    assert_int_equal(entry->size, cell->n * unit);
    assert_ptr_equal(entry->value, cell->value);
}

static void check_cell(unsigned i)
{
    const uint64_t within[] = {0, unit / 2, unit - 1};
    struct range_entry entry = {.size = 4711};

    for (unsigned k = 0; k < sizeof(within) / sizeof(within[0]); k++) {
        bool found = range_index_find(&range_index, base + i * unit + within[k], &entry);

        assert_int_equal(found, cells[i].n != 0);
        if (found)
            assert_entry(&entry, &cells[i]);
        else
            assert_int_equal(entry.size, 4711);
    }
}

static void check_all_cells(void)
{
    uint64_t at = base;
    struct range_entry entry;
    unsigned i = 0;

    for (unsigned k = 0; k < CELLS; k++)
        check_cell(k);
    while (range_index_next(&range_index, at, &entry)) {
        i += n_free_from(i);
        assert_true(i < CELLS);
        assert_entry(&entry, &cells[i]);
        i += cells[i].n;
        at = entry.start + entry.size;
        if (i == CELLS)
            break;
    }
    assert_int_equal(i + n_free_from(i), CELLS);
}

static void random_insert(unsigned i, unsigned n)
{
    void *value = (void *)(uintptr_t)random();
    int r;

    n = n < CELLS - i ? n : CELLS - i;
    r = range_index_insert(&range_index, base + i * unit, n * unit, value);
    if (n_free_from(i) < n) {
        assert_int_equal(r, -EEXIST);
        return;
    }
    assert_int_equal(r, 0);
    set_cells(i, n, value);
}

static void random_remove(unsigned i)
{
    struct range_entry entry = {.start = 0};
    bool there = cells[i].n && cells[i].first == i;

    if (there) {
        assert_false(range_index_take(&range_index, base + i * unit, cells[i].n * unit, &entry, &entry));
        assert_false(range_index_take(&range_index, base + i * unit, cells[i].n * unit + 1, NULL, &entry));
    }
    assert_int_equal(
        range_index_take(&range_index, base + i * unit, there ? cells[i].n * unit : 0, cells[i].value, &entry), there);
    if (!there)
        return;
    assert_entry(&entry, &cells[i]);
    clear_cells(i, cells[i].n);
}

static void random_split(unsigned i)
{
    const struct cell cell = cells[i];

    assert_int_equal(range_index_split(&range_index, base + i * unit), 0);
    if (!cell.n)
        return;
    set_cells(cell.first, i - cell.first, cell.value);
    set_cells(i, cell.first + cell.n - i, cell.value);
}

static void random_merge(unsigned i)
{
    const struct cell low = cells[i];
    unsigned behind = low.first + low.n;
    bool there = low.n && behind < CELLS && cells[behind].n;

    assert_int_equal(range_index_merge(&range_index, base + low.first * unit, base + behind * unit),
                     there ? 0 : -ENOENT);
    if (there)
        set_cells(low.first, low.n + cells[behind].n, low.value);
}

static void random_change(unsigned longest)
{
    unsigned i = (unsigned)random() % CELLS;

    switch (random() % 6) {
    case 0:
        random_split(i);
        break;
    case 1:
        random_merge(i);
        break;
    case 2:
    case 3:
        random_remove(cells[i].n ? cells[i].first : i);
        break;
    default:
        random_insert(i, 1 + (unsigned)random() % longest);
    }
    check_cell(i);
}

static void as_an_array(void **state)
{
    static const struct {
        uint64_t base, unit;
        unsigned longest;
    } kinds[] = {
        {0, 1, 1},
        {UINT64_C(0x7f1234567000), 4096, 1},
        {UINT64_C(0x7f1234567000), 4096, 40},
        {UINT64_C(0x7ffffff0), 16, 8},
        {UINT64_C(0xfffff), UINT64_C(1) << 40, 300},
        {-(uint64_t)CELLS * 512, 512, 20}, /* up to the last address */
    };

    for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        base = kinds[kind].base;
        unit = kinds[kind].unit;
        clear_cells(0, CELLS);
        for (unsigned i = 0; i < 20000; i++) {
            random_change(kinds[kind].longest);
            if (i % 1000 == 999)
                check_all_cells();
        }
        for (unsigned i = 0; i < CELLS; i++)
            random_remove(i);
        assert_true(range_index_is_empty(&range_index));
    }
}

/* Ranges of one value that touch each other are one. */
static void check_joined(void)
{
    for (unsigned i = 0; i < CELLS; i += cells[i].n ? cells[i].n : 1) {
        unsigned n = 0;

        while (cells[i].n && i + n < CELLS && cells[i + n].value == cells[i].value && cells[i + n].n)
            n++;
        set_cells(i, n, cells[i].value);
    }
    check_all_cells();
}

static void random_join(unsigned i, unsigned n, void *value)
{
    int r = range_index_join(&range_index, base + i * unit, n * unit, value);

    assert_int_equal(r, n_free_from(i) < n ? -EEXIST : 0);
    if (!r)
        set_cells(i, n, value);
}

static void random_cut(unsigned i, unsigned n, void *value)
{
    bool whole = true;

    for (unsigned k = i; k < i + n; k++)
        whole = whole && cells[k].n && cells[k].value == value;
    assert_int_equal(range_index_cut(&range_index, base + i * unit, n * unit, value), whole);
    if (whole)
        clear_cells(i, n);
}

static void joined_as_an_array(void **state)
{
    base = UINT64_C(0x7f1234567000);
    unit = PAGE;
    clear_cells(0, CELLS);
    for (unsigned i = 0; i < 50000; i++) {
        void *value = (void *)(uintptr_t)(random() % 2 + 1);
        unsigned n = 1 + (unsigned)random() % 8, at = (unsigned)random() % (CELLS - n);

        if (random() % 2)
            random_join(at, n, value);
        else
            random_cut(at, n, value);
        if (i % 1000 == 999)
            check_joined();
    }
    /* all of one value is one range */
    range_index_deinit(&range_index);
    for (unsigned i = 0; i < CELLS; i++)
        assert_int_equal(range_index_join(&range_index, base + (i * 7 % CELLS) * unit, unit, &base), 0);
    clear_cells(0, CELLS);
    set_cells(0, CELLS, &base);
    check_all_cells();
}

/* A range without a byte has its start; two cannot have one. */
static void empty_ranges(void **state)
{
    struct range_entry entry;

    assert_int_equal(range_index_insert(&range_index, 100, 0, &range_index), 0);
    assert_true(range_index_find(&range_index, 100, &entry));
    assert_int_equal(entry.size, 0);
    assert_ptr_equal(entry.value, &range_index);
    assert_false(range_index_find(&range_index, 99, &entry));
    assert_false(range_index_find(&range_index, 101, &entry));
    assert_int_equal(range_index_insert(&range_index, 100, 0, NULL), -EEXIST);
    assert_int_equal(range_index_insert(&range_index, 99, 2, NULL), -EEXIST);
    assert_int_equal(range_index_insert(&range_index, 99, 1, NULL), 0);
    assert_int_equal(range_index_insert(&range_index, 101, 1, NULL), 0);
    assert_true(range_index_remove(&range_index, 100));
    assert_false(range_index_remove(&range_index, 100));
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* As much as the most that was in it takes, however often that changes and wherever it is. */
static void memory_is_bounded(void **state)
{
    enum { LIVE = 2000, ROUNDS = 100 };
    uint64_t at[LIVE];
    unsigned n = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < LIVE; i++) {
            at[i] = (uint64_t)random() << 20 | (uint64_t)i << 4;
            assert_int_equal(range_index_insert(&range_index, at[i], 16, &at[i]), 0);
        }
        for (unsigned i = 0; i < LIVE; i++)
            assert_int_equal(range_index_split(&range_index, at[i] + 8), 0);
        for (unsigned i = 0; i < LIVE; i++)
            assert_int_equal(range_index_merge(&range_index, at[i], at[i] + 8), 0);
        for (unsigned i = 0; i < LIVE; i++)
            assert_true(range_index_remove(&range_index, at[i]));
        /* at the worst each leaf has a node to itself */
        if (!round)
            n = n_chunks();
        assert_true(n_chunks() <= 1 + 2 * LIVE * (sizeof(struct range_node) + sizeof(struct range_leaf)) /
                                          (RANGE_INDEX_CHUNK - sizeof(struct range_node)));
    }
    assert_true(n_chunks() <= n + 1);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 20, SLOTS = 64 };

static unsigned turns;
static bool stop;

/* The threads' slots lie among each other: all change the same nodes. */
static uint64_t slot_of(unsigned thread, unsigned i)
{
    return UINT64_C(0x7f0000000000) + (i * THREADS + thread) * 4 * PAGE;
}

static void validate(uint64_t address, const struct range_entry *entry)
{
    if (!range_entry_holds(entry, address) || entry->value != value_of(entry->start, 4 * PAGE))
        abort();
}

/* What this thread has in the index is found, and what it has not is not; what others have may be there or not. */
static void look_around(unsigned thread, const bool *there, unsigned seed)
{
    struct range_entry entry;

    for (unsigned i = 0; i < 16; i++) {
        unsigned k = (seed + i * 7) % SLOTS, other = (seed + i * 13) % THREADS;
        uint64_t address = slot_of(thread, k) + (seed + i) % 4 * PAGE;

        if (range_index_find(&range_index, address, &entry) != there[k])
            abort();
        if (there[k])
            validate(address, &entry);
        address = slot_of(other, k) + 3 * PAGE;
        if (range_index_find(&range_index, address, &entry))
            validate(address, &entry);
    }
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void *change_and_look(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg, seed = thread + 1;
    bool there[SLOTS] = {false};

    for (unsigned turn = 0; turn < turns; turn++) {
        unsigned i = next_random(&seed) % SLOTS;
        uint64_t start = slot_of(thread, i);

        pthread_mutex_lock(&lock);
        if (there[i] ? !range_index_remove(&range_index, start)
                     : range_index_insert(&range_index, start, 4 * PAGE, value_of(start, 4 * PAGE)))
            abort();
        pthread_mutex_unlock(&lock);
        there[i] = !there[i];
        look_around(thread, there, next_random(&seed));
    }
    return NULL;
}

static void threads_look_while_others_change(void **state)
{
    pthread_t threads[THREADS];

    turns = TEST_TSAN || test_under_valgrind() ? 1000 : 10000;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_and_look, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/*
 * A long range whose last page is cut off and joined again, at the end of a long way down beside what lies behind it: a
 * search for an address of that page comes by the range at the top, and looks for the page at the bottom.
 */
#define LONG_START UINT64_C(0x7f0010000000)
#define LONG_CUT   UINT64_C(0x7f0077777000)
#define LONG_END   UINT64_C(0x7f0077778000)

static void *look_at_the_cut(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct range_entry entry;

    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        uint64_t address = LONG_CUT + next_random(&seed) % PAGE;

        if (!range_index_find(&range_index, address, &entry) || !range_entry_holds(&entry, address))
            abort();
    }
    return NULL;
}

static void threads_look_while_ranges_are_cut(void **state)
{
    static const uint64_t others[] = {LONG_END, 0x7f0077779000, 0x7f0077780000, 0x7f0077800000, 0x7f0078000000};
    pthread_t threads[4];

    assert_int_equal(range_index_insert(&range_index, LONG_START, LONG_END - LONG_START, NULL), 0);
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(range_index_insert(&range_index, others[i], PAGE, NULL), 0);
    stop = false;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_at_the_cut, (void *)(uintptr_t)(i + 1)), 0);
    for (unsigned i = 0; i < (TEST_TSAN || test_under_valgrind() ? 20000u : 2000000u); i++) {
        assert_int_equal(range_index_split(&range_index, LONG_CUT), 0);
        assert_int_equal(range_index_merge(&range_index, LONG_START, LONG_CUT), 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

/* The tree is whole: all in it follow each other, can be found, and be taken out; and it can be filled anew. */
static void use_in_child(int channel, void *context)
{
    struct range_entry entry, found;
    uint64_t at = 0;

    (void)channel;
    (void)context;
    while (range_index_next(&range_index, at, &entry)) {
        CHECK(entry.start >= at);
        CHECK(range_index_find(&range_index, entry.start + entry.size - 1, &found));
        CHECK(found.start == entry.start && found.value == value_of(entry.start, 4 * PAGE));
        CHECK(range_index_remove(&range_index, entry.start));
        at = entry.start + entry.size;
    }
    CHECK(range_index_is_empty(&range_index));
    for (unsigned i = 0; i < SLOTS; i++)
        CHECK(!range_index_insert(&range_index, slot_of(0, i), PAGE, NULL));
    for (unsigned i = 0; i < SLOTS; i++)
        CHECK(range_index_find(&range_index, slot_of(0, i), &entry));
}

static void forks_in_the_middle(void **state)
{
    pthread_t threads[3];
    struct child child;

    turns = TEST_TSAN || test_under_valgrind() ? 3000 : 200000;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_and_look, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        child_start(&child, use_in_child, NULL);
        pthread_mutex_unlock(&lock);
        child_finish(&child);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* A leak checker that looks when the program ends finds what only the index knows of. */
static void what_is_in_it_is_no_leak(void **state)
{
    static struct range_index left_at_exit;

    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(range_index_insert(&left_at_exit, i * PAGE, PAGE, malloc(1)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(as_an_array, empty_index),
        cmocka_unit_test_setup(joined_as_an_array, empty_index),
        cmocka_unit_test_setup(empty_ranges, empty_index),
        cmocka_unit_test_setup(memory_is_bounded, empty_index),
        cmocka_unit_test_setup(threads_look_while_others_change, empty_index),
        cmocka_unit_test_setup(threads_look_while_ranges_are_cut, empty_index),
        cmocka_unit_test_setup(forks_in_the_middle, empty_index),
        cmocka_unit_test(what_is_in_it_is_no_leak),
    };

    return test_run(tests, NULL, NULL);
}
