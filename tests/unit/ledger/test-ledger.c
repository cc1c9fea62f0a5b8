/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger and its tables: ids, states, growth, growth that fails, walks while everything changes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ledger/table.h"
#include "proto/status.h"
#include "sys/sys.h"
#include "tests/support/test.h"

/* any will do */
#define ARENA_BASE (UINT64_C(1) << 46)
#define ARENA_SIZE (UINT64_C(1) << 40)

struct thing {
    OBJECT(struct hold_record);
    uint64_t mark;
};

struct plain {
    OBJECT_UNINDEXED(struct name_record);
    uint64_t mark;
};

static struct ledger *ledger;
static struct table things;

static int setup(void **state)
{
    assert_int_equal(ledger_new(&ledger, ARENA_BASE, ARENA_SIZE), 0);
    table_init(&things, ledger, RECORD_HOLD, sizeof(struct thing), true);
    return 0;
}

static int teardown(void **state)
{
    table_deinit(&things);
    ledger = ledger_free(ledger);
    assert_null(ledger);
    return 0;
}

static struct thing *thing_new(void)
{
    void *object;

    assert_int_equal(table_alloc(&things, &object, NULL), 0);
    return object;
}

static void test_header_says_how_to_read_the_rest(void **state)
{
    const struct ledger_header *header = ledger_header(ledger);
    struct ledger_header copy;
    struct stat st;

    assert_int_equal(header->magic, LEDGER_MAGIC);
    assert_int_equal(header->major, LEDGER_MAJOR);
    assert_int_equal(header->extent_size, LEDGER_EXTENT_SIZE);
    assert_int_equal(header->record_sizes[RECORD_BUFFER], sizeof(struct buffer_record));
    assert_int_not_equal(ledger_broker_id(ledger), 0);
    /* the same through the descriptor: that is what a later broker gets */
    assert_int_equal(pread(ledger_fd(ledger), &copy, sizeof(copy), 0), sizeof(copy));
    assert_memory_equal(&copy, header, sizeof(copy));
    assert_ok(fstat(ledger_fd(ledger), &st));
    assert_true((uint64_t)st.st_size >= header->n_extents * LEDGER_EXTENT_SIZE);
    /* committed, not only reserved */
    assert_true((uint64_t)st.st_blocks * 512 >= header->n_extents * LEDGER_EXTENT_SIZE);
    assert_true(fcntl(ledger_fd(ledger), F_GETFD) & FD_CLOEXEC);
}

static void test_record_comes_zeroed_as_an_intent(void **state)
{
    struct thing *thing = thing_new(), *again;
    uint64_t id = thing->record->head.id;

    assert_int_equal(thing->record->head.kind, RECORD_HOLD);
    assert_int_equal(thing->record->head.state, RECORD_INTENT);
    assert_false(record_is_live(&thing->record->head));
    record_commit(&things, thing);
    assert_true(record_is_live(&thing->record->head));
    assert_ptr_equal(table_find(&things, id), thing);
    memset((char *)record_change(&things, thing) + sizeof(struct record), 0xff,
           sizeof(struct hold_record) - sizeof(struct record));
    thing->mark = 1;
    table_free(&things, thing);
    assert_null(table_find(&things, id));

    /* the same slot, nothing of its past, and another id */
    again = thing_new();
    assert_ptr_equal(again, thing);
    assert_int_not_equal(again->record->head.id, id);
    assert_int_equal(again->record->session, 0);
    assert_int_equal(again->record->buffer, 0);
    assert_int_equal(again->record->refs, 0);
    assert_int_equal(again->mark, 0);
    table_free(&things, again);
}

static void test_ids_are_never_used_again(void **state)
{
    struct table names;
    uint64_t last = 0;
    void *object;

    table_init(&names, ledger, RECORD_NAME, sizeof(struct plain), false);
    assert_false(ledger_id_was_given(ledger, 0));
    assert_false(ledger_id_was_given(ledger, 1));
    for (int i = 0; i < 1000; i++) {
        struct thing *thing = thing_new();
        uint64_t id = thing->record->head.id;

        assert_true(id > last);
        table_free(&things, thing);
        /* not by another kind either */
        assert_int_equal(table_alloc(&names, &object, NULL), 0);
        last = ((struct plain *)object)->record->head.id;
        assert_true(last > id);
        table_free(&names, object);
        assert_true(ledger_id_was_given(ledger, id));
        assert_false(ledger_id_was_given(ledger, last + 1));
    }
    assert_false(ledger_id_was_given(ledger, UINT64_MAX));
    table_deinit(&names);
}

/* Records and objects stay where they are when everything grows around them. */
static void test_growth_moves_nothing(void **state)
{
    enum { N = 40000 };
    static struct thing *all[N];
    static const struct hold_record *records[N];

    for (int i = 0; i < N; i++) {
        all[i] = thing_new();
        records[i] = all[i]->record;
        all[i]->mark = (uint64_t)i;
        record_change(&things, all[i])->buffer = (uint64_t)i;
    }
    assert_int_equal(table_count(&things), N);
    assert_true(ledger_header(ledger)->n_extents * LEDGER_EXTENT_SIZE > N * sizeof(struct hold_record));
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(all[i]->record, records[i]);
        assert_int_equal(all[i]->mark, i);
        assert_int_equal(records[i]->buffer, i);
        assert_ptr_equal(table_find(&things, records[i]->head.id), all[i]);
    }
    for (int i = 0; i < N; i++)
        table_free(&things, all[i]);
    assert_int_equal(table_count(&things), 0);
}

static int fallocates_left;

static int failing_fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (fallocates_left-- > 0)
        return sys_kernel.fallocate(fd, mode, offset, length);
    errno = ENOSPC;
    return -1;
}

static void *failing_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    (void)address, (void)length, (void)protection, (void)flags, (void)fd, (void)offset;
    errno = ENOMEM;
    return MAP_FAILED;
}

/* No room is an outcome with a sentence, and when there is room again it goes on. */
static void test_growth_that_fails(void **state)
{
    struct sys_calls faulty = sys_kernel;
    struct problem problem = PROBLEM_NULL;
    void *object, *first = NULL;
    uint64_t count, cursor = 0;
    unsigned budget = UINT32_MAX;
    int r;

    faulty.fallocate = failing_fallocate;
    fallocates_left = 1;
    sys = &faulty;
    while (!(r = table_alloc(&things, &object, &problem))) {
        first = first ? first : object;
        /* so that the journal needs no more room than there is */
        ledger_commit(ledger);
    }
    assert_int_equal(r, STATUS_NO_MEMORY);
    assert_true(strlen(problem.sentence) > 0);
    count = table_count(&things);
    assert_true(count > 1000);
    /* freeing makes room for as many again */
    table_free(&things, first);
    assert_int_equal(table_alloc(&things, &object, NULL), 0);
    assert_int_equal(table_alloc(&things, &object, NULL), STATUS_NO_MEMORY);

    faulty = sys_kernel;
    faulty.mmap = failing_mmap;
    assert_int_equal(table_alloc(&things, &object, NULL), STATUS_NO_MEMORY);
    sys = &sys_kernel;
    assert_int_equal(table_alloc(&things, &object, NULL), 0);
    assert_int_equal(table_count(&things), count + 1);
    while ((object = table_next(&things, &cursor, &budget)))
        table_free(&things, object);
    assert_int_equal(table_count(&things), 0);
}

static void test_ledger_that_cannot_be_made(void **state)
{
    struct sys_calls faulty = sys_kernel;
    struct ledger *none = NULL;

    faulty.fallocate = failing_fallocate;
    fallocates_left = 0;
    sys = &faulty;
    assert_int_equal(ledger_new(&none, ARENA_BASE, ARENA_SIZE), -ENOSPC);
    faulty = sys_kernel;
    faulty.mmap = failing_mmap;
    assert_int_equal(ledger_new(&none, ARENA_BASE, ARENA_SIZE), -ENOMEM);
    sys = &sys_kernel;
    assert_null(none);
}

static void test_walk_in_slices(void **state)
{
    struct thing *all[10];
    uint64_t cursor = 0;
    unsigned budget = 100, met = 0;

    assert_null(table_next(&things, &cursor, &budget));
    assert_int_equal(cursor, 0);
    assert_int_equal(budget, 100);
    for (int i = 0; i < 10; i++)
        all[i] = thing_new();
    for (int i = 0; i < 10; i += 2)
        table_free(&things, all[i]);
    /* three slots at a time; holes cost too, so that a slice is bounded */
    do {
        budget = 3;
        while (table_next(&things, &cursor, &budget))
            met++;
        assert_true(budget == 0 || cursor == 0);
    } while (cursor);
    assert_int_equal(met, 5);
    /* the slot of the last one, and nothing behind it: the cursor is at the end only when that was seen */
    cursor = 9;
    budget = 1;
    assert_ptr_equal(table_next(&things, &cursor, &budget), all[9]);
    assert_int_equal(cursor, 10);
    assert_null(table_next(&things, &cursor, &budget));
    assert_int_equal(cursor, 0);
    /* a cursor that somebody made up */
    cursor = UINT64_MAX;
    budget = 1;
    assert_null(table_next(&things, &cursor, &budget));
    assert_int_equal(cursor, 0);
    for (int i = 1; i < 10; i += 2)
        table_free(&things, all[i]);
}

/* Whatever comes and goes meanwhile: what was there all the time is met once, and nothing twice. */
static void test_walk_while_things_change(void **state)
{
    enum { N = 5000 };
    static struct thing *all[2 * N];
    uint64_t random = 2463534242u, last = 0, cursor = 0;
    unsigned met = 0;

    for (int i = 0; i < 2 * N; i++) {
        all[i] = thing_new();
        /* every other one stays */
        all[i]->mark = i % 2;
    }
    last = all[2 * N - 1]->record->head.id;
    do {
        unsigned budget = 7;
        struct thing *thing;

        while ((thing = table_next(&things, &cursor, &budget))) {
            if (thing->mark == 1) {
                thing->mark = 2;
                met++;
            } else {
                assert_int_not_equal(thing->mark, 2);
                if (thing->record->head.id <= last)
                    assert_int_equal(thing->mark, 0);
            }
        }
        for (int n = 0; n < 5; n++) {
            int i;

            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            i = (int)(random % N) * 2;
            if (all[i]) {
                table_free(&things, all[i]);
                all[i] = NULL;
            } else {
                all[i] = thing_new();
                all[i]->mark = 3;
            }
        }
    } while (cursor);
    assert_int_equal(met, N);
    for (int i = 0; i < 2 * N; i++)
        if (all[i])
            table_free(&things, all[i]);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_header_says_how_to_read_the_rest),
        T(test_record_comes_zeroed_as_an_intent),
        T(test_ids_are_never_used_again),
        T(test_growth_moves_nothing),
        T(test_growth_that_fails),
        T(test_ledger_that_cannot_be_made),
        T(test_walk_in_slices),
        T(test_walk_while_things_change),
    };

    return test_run(tests, NULL, NULL);
}
