/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger outlives its broker: what was committed is there, what was not is taken back, what is damaged is left alone.
 * "Another broker" is a second mapping of the same memfd, while the first one has forgotten to say that it ends.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger/journal.h"
#include "ledger/table.h"
#include "sys/sys.h"
#include "tests/support/child.h"
#include "tests/support/test.h"

#define ARENA_BASE (UINT64_C(1) << 46)
#define ARENA_SIZE (UINT64_C(1) << 40)

struct thing {
    OBJECT(struct hold_record);
};

struct broker {
    struct ledger *ledger;
    struct table things;
    unsigned kept;
};

static void broker_begin(struct broker *broker)
{
    assert_int_equal(ledger_new(&broker->ledger, ARENA_BASE, ARENA_SIZE), 0);
    table_init(&broker->things, broker->ledger, RECORD_HOLD, sizeof(struct thing), true);
}

static enum table_verdict keep_live(void *userdata, void *object, const char **why)
{
    struct broker *broker = userdata;
    const struct thing *thing = object;

    if (thing->record->refs == UINT32_MAX) {
        *why = "so many refs are none";
        return TABLE_QUARANTINE;
    }
    broker->kept++;
    return TABLE_KEEP;
}

static int broker_follow(struct broker *broker, const struct broker *former)
{
    int fd = fcntl(ledger_fd(former->ledger), F_DUPFD_CLOEXEC, 3);
    int r;

    assert_true(fd >= 0);
    *broker = (struct broker){.kept = 0};
    r = ledger_adopt(&broker->ledger, fd);
    if (r) {
        close(fd);
        return r;
    }
    table_init(&broker->things, broker->ledger, RECORD_HOLD, sizeof(struct thing), true);
    assert_int_equal(table_recover(&broker->things, keep_live, broker), 0);
    return 0;
}

static void broker_end(struct broker *broker)
{
    uint64_t cursor = 0;
    unsigned budget = UINT32_MAX;
    void *object;

    while ((object = table_next(&broker->things, &cursor, &budget)))
        table_free(&broker->things, object);
    table_deinit(&broker->things);
    ledger_free(broker->ledger);
}

/* It is dead: what it had in its own memory goes, and the ledger is as it left it. */
static void broker_forget(struct broker *broker)
{
    ledger_free(broker->ledger);
    broker->things.count = 0;
    table_deinit(&broker->things);
}

static struct thing *new_thing(struct broker *broker, uint32_t refs)
{
    struct thing *thing;
    void *object;

    assert_int_equal(table_alloc(&broker->things, &object, NULL), 0);
    thing = object;
    record_fresh(thing)->refs = refs;
    record_commit(&broker->things, thing);
    return thing;
}

static void test_committed_changes_stay_and_others_are_taken_back(void **state)
{
    struct broker first, second;
    struct thing *kept, *changed, *freed;
    uint64_t ids[4];

    broker_begin(&first);
    kept = new_thing(&first, 1);
    changed = new_thing(&first, 2);
    freed = new_thing(&first, 3);
    ids[0] = kept->record->head.id;
    ids[1] = changed->record->head.id;
    ids[2] = freed->record->head.id;
    assert_true(ledger_is_changed(first.ledger));
    ledger_commit(first.ledger);
    assert_false(ledger_is_changed(first.ledger));

    record_change(&first.things, changed)->refs = 20;
    record_change(&first.things, changed)->refs = 21;
    table_free(&first.things, freed);
    /* takes the slot of the former, and its contents with it */
    ids[3] = new_thing(&first, 4)->record->head.id;

    assert_int_equal(broker_follow(&second, &first), 0);
    assert_int_equal(second.kept, 3);
    assert_int_equal(((struct thing *)table_find(&second.things, ids[0]))->record->refs, 1);
    assert_int_equal(((struct thing *)table_find(&second.things, ids[1]))->record->refs, 2);
    assert_int_equal(((struct thing *)table_find(&second.things, ids[2]))->record->refs, 3);
    assert_null(table_find(&second.things, ids[3]));
    /* and its number is not given out again */
    assert_true(new_thing(&second, 5)->record->head.id > ids[3]);
    assert_int_equal(ledger_header(second.ledger)->starts, 2);
    assert_int_equal(ledger_broker_id(second.ledger), ledger_broker_id(first.ledger));
    broker_end(&second);
    broker_forget(&first);
}

/* One change may be larger than anything that a client can ask for in one packet. */
static void test_large_change_is_taken_back_whole(void **state)
{
    enum { N = 20000 };
    struct broker first, second;
    uint64_t cursor = 0;
    unsigned budget = UINT32_MAX;
    void *object;

    broker_begin(&first);
    for (uint32_t i = 0; i < N; i++)
        (void)new_thing(&first, 100 + i);
    ledger_commit(first.ledger);
    while ((object = table_next(&first.things, &cursor, &budget)))
        table_free(&first.things, object);
    assert_int_equal(table_count(&first.things), 0);

    assert_int_equal(broker_follow(&second, &first), 0);
    assert_int_equal(second.kept, N);
    broker_end(&second);
    broker_forget(&first);
}

static void test_intents_go(void **state)
{
    struct broker first, second;
    void *object;

    broker_begin(&first);
    assert_int_equal(table_alloc(&first.things, &object, NULL), 0);
    ledger_commit(first.ledger);
    assert_int_equal(broker_follow(&second, &first), 0);
    assert_int_equal(second.kept, 0);
    assert_int_equal(table_count(&second.things), 0);
    broker_end(&second);
    broker_forget(&first);
}

static void test_damaged_records_are_left_alone(void **state)
{
    struct broker first, second, third;
    struct thing *things[6];

    broker_begin(&first);
    for (unsigned i = 0; i < 6; i++)
        things[i] = new_thing(&first, i + 1);
    things[0]->writable->head.kind = RECORD_NAME;
    things[1]->writable->head.state = 77;
    things[2]->writable->head.id = things[3]->record->head.id;
    things[4]->writable->head.id = UINT64_MAX;
    things[5]->writable->refs = UINT32_MAX;
    ledger_commit(first.ledger);

    assert_int_equal(broker_follow(&second, &first), 0);
    assert_int_equal(second.kept, 1);
    assert_int_equal(table_count(&second.things), 1);
    assert_int_equal(second.things.n_quarantined, 5);
    /* nobody gets their slots, and the next broker finds them as they are */
    for (unsigned i = 0; i < 2000; i++)
        (void)new_thing(&second, 1);
    ledger_commit(second.ledger);
    assert_int_equal(broker_follow(&third, &second), 0);
    assert_int_equal(third.kept, 2001);
    assert_int_equal(third.things.n_quarantined, 5);
    broker_end(&third);
    broker_forget(&second);
    broker_forget(&first);
}

static void write_header(const struct broker *broker, size_t offset, uint64_t value, size_t size)
{
    assert_int_equal(pwrite(ledger_fd(broker->ledger), &value, size, (off_t)offset), size);
}

static void test_other_formats_are_not_touched(void **state)
{
    static const struct {
        size_t offset;
        size_t size;
        int outcome;
    } damage[] = {
        {offsetof(struct ledger_header, magic), 8, LEDGER_E_DAMAGED},
        {offsetof(struct ledger_header, broker_id), 4, LEDGER_E_DAMAGED},
        {offsetof(struct ledger_header, checksum), 8, LEDGER_E_DAMAGED},
        {offsetof(struct ledger_header, n_extents), 4, LEDGER_E_DAMAGED},
        {offsetof(struct ledger_header, next_id), 8, LEDGER_E_DAMAGED},
    };
    int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct ledger *none = NULL;

    for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
        struct broker first, second;

        broker_begin(&first);
        write_header(&first, damage[i].offset, 0, damage[i].size);
        assert_int_equal(broker_follow(&second, &first), damage[i].outcome);
        broker_end(&first);
    }
    assert_true(other >= 0);
    assert_int_equal(ledger_adopt(&none, other), LEDGER_E_DAMAGED);
    assert_ok(ftruncate(other, 1 << 20));
    assert_int_equal(ledger_adopt(&none, other), LEDGER_E_DAMAGED);
    assert_null(none);
    close(other);
}

/* What records need that brokers of before do not know keeps those off, and a death at saying so is no harm. */
static void test_what_is_needed_is_said_first(void **state)
{
    struct broker first, second;

    broker_begin(&first);
    assert_int_equal(ledger_header(first.ledger)->features, 0);
    write_header(&first, offsetof(struct ledger_header, features), LEDGER_FOREIGN, 8);
    assert_int_equal(broker_follow(&second, &first), 0);
    assert_int_equal(ledger_header(second.ledger)->features, 0);
    broker_end(&second);
    ledger_need(first.ledger, LEDGER_FOREIGN);
    assert_int_equal(broker_follow(&second, &first), 0);
    assert_int_equal(ledger_header(second.ledger)->features, LEDGER_FOREIGN);
    broker_end(&second);
    write_header(&first, offsetof(struct ledger_header, features), 0, 8);
    assert_int_equal(broker_follow(&second, &first), LEDGER_E_DAMAGED);
    broker_end(&first);
}

static void test_damaged_journal_is_no_reason_to_stop(void **state)
{
    static const uint64_t sizes[] = {8, 16, 24, 4096, UINT64_C(1) << 40, UINT64_MAX, 7};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct broker first, second;

        broker_begin(&first);
        (void)new_thing(&first, 1);
        ledger_commit(first.ledger);
        write_header(&first, offsetof(struct ledger_header, journal), sizes[i], 8);
        assert_int_equal(broker_follow(&second, &first), 0);
        assert_int_equal(second.kept, 1);
        assert_false(ledger_is_changed(second.ledger));
        broker_end(&second);
        broker_forget(&first);
    }
}

struct moving {
    struct broker *broker;
    struct thing *pair[2];
};

static void move(int channel, void *context)
{
    const struct moving *moving = context;
    const struct table *things = &moving->broker->things;

    (void)channel;
    for (uint64_t i = 0;; i++) {
        struct thing *from = moving->pair[i / 40 % 2], *to = moving->pair[1 - i / 40 % 2];

        if (!from->record->refs)
            continue;
        record_change(things, from)->refs--;
        record_change(things, to)->refs++;
        record_change(things, to)->session++;
        ledger_commit(moving->broker->ledger);
    }
}

/*
 * Each change moves one claim from one of two records to the other, so that their sum is 100 always, and a process that
 * does that is killed whenever it pleases the scheduler.
 */
static void test_kill_at_any_moment(void **state)
{
    enum { ROUNDS = 200 };
    struct broker first, second;
    struct moving moving = {.broker = &first};
    struct thing **pair = moving.pair;
    uint64_t ids[2], moved = 0;

    broker_begin(&first);
    for (unsigned i = 0; i < 2; i++) {
        pair[i] = new_thing(&first, 50);
        ids[i] = pair[i]->record->head.id;
    }
    ledger_commit(first.ledger);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct child child;

        child_start(&child, move, &moving);
        usleep((useconds_t)(rand() % 2000));
        child_kill(&child);
        assert_int_equal(broker_follow(&second, &first), 0);
        for (unsigned i = 0; i < 2; i++) {
            pair[i] = table_find(&second.things, ids[i]);
            assert_non_null(pair[i]);
        }
        assert_int_equal(pair[0]->record->refs + pair[1]->record->refs, 100);
        moved = pair[0]->record->session + pair[1]->record->session;
        broker_forget(&first);
        first = second;
    }
    assert_true(moved > ROUNDS);
    broker_end(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_committed_changes_stay_and_others_are_taken_back),
        cmocka_unit_test(test_large_change_is_taken_back_whole),
        cmocka_unit_test(test_intents_go),
        cmocka_unit_test(test_damaged_records_are_left_alone),
        cmocka_unit_test(test_other_formats_are_not_touched),
        cmocka_unit_test(test_what_is_needed_is_said_first),
        cmocka_unit_test(test_damaged_journal_is_no_reason_to_stop),
        cmocka_unit_test(test_kill_at_any_moment),
    };

    return test_run(tests, NULL, NULL);
}
