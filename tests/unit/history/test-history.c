/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history counts what happens again, shares its records between users, and outlives its broker. "Another broker" is
 * a second mapping of the same memfd.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "history/history.h"
#include "sys/sys.h"
#include "tests/support/test.h"

#define FILE_HEADER 64
#define FILE_BYTES  (FILE_HEADER + HISTORY_RECORDS * sizeof(struct history_record))

static struct history_record refusal(uint32_t uid, uint64_t session)
{
    return (struct history_record){
        .kind = HISTORY_REFUSED,
        .uid = uid,
        .pid = 7,
        .session = session,
        .method = 10,
        .status = 8,
        .most_uid = (uint32_t)-1,
        .pool = "node0-4k",
        .program = "test",
    };
}

static struct history_record ended(uint32_t uid, uint64_t session, enum history_end end)
{
    return (struct history_record){.kind = HISTORY_ENDED, .uid = uid, .session = session, .end = end};
}

static uint32_t add(struct history *history, struct history_record entry)
{
    return history_add(history, &entry);
}

struct found {
    unsigned n, of_uid;
    struct history_record last; /* of that uid */
};

/* All, in order; how many are this user's. */
static struct found look(const struct history *history, uint32_t uid)
{
    const struct history_record *record;
    unsigned budget = UINT32_MAX;
    struct found found = {.n = 0};
    uint64_t cursor = 0, before = 0;

    while ((record = history_next(history, &cursor, &budget))) {
        assert_true(record->serial > before);
        before = record->serial;
        found.n++;
        if (record->uid != uid)
            continue;
        found.of_uid++;
        found.last = *record;
    }
    assert_int_equal(cursor, 0);
    return found;
}

static struct history *another(const struct history *history)
{
    int fd = fcntl(history_fd(history), F_DUPFD_CLOEXEC, 3);
    struct history *next;

    assert_true(fd >= 0);
    assert_int_equal(history_adopt(&next, fd), 0);
    return next;
}

static void what_happens_again_is_counted(void **state)
{
    struct history_record full = refusal(1000, 5), other;
    struct history *history;
    struct found found;

    assert_int_equal(history_new(&history), 0);
    for (unsigned i = 1; i <= 100; i++) {
        full.used = i;
        add(history, full);
    }
    found = look(history, 1000);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.last.count, 100);
    assert_int_equal(found.last.used, 100);
    assert_true(found.last.first_ms && found.last.first_ms <= found.last.last_ms);

    /* anything else is another one */
    other = full, other.session = 6, add(history, other);
    other = full, other.method = 11, add(history, other);
    other = full, other.status = 11, add(history, other);
    other.pool[0] = 'm', add(history, other);
    other.resource[0] = 'b', add(history, other);
    assert_int_equal(look(history, 1000).n, 6);
    /* what happens again is the latest again */
    add(history, full);
    assert_int_equal(look(history, 1000).last.count, 101);
    history_free(history);
}

static void nobody_washes_out_the_others(void **state)
{
    struct history *history;

    assert_int_equal(history_new(&history), 0);
    for (unsigned i = 0; i < 500; i++)
        add(history, refusal(1000, i + 1));
    for (unsigned i = 0; i < 5 * HISTORY_RECORDS; i++)
        add(history, refusal(2000, i + 1));
    assert_int_equal(look(history, 1000).of_uid, 500);
    assert_int_equal(look(history, 2000).of_uid, HISTORY_RECORDS - 500);
    /* a third one gets its share of who has most, and no more than that once the others want it */
    for (unsigned i = 0; i < 5 * HISTORY_RECORDS; i++)
        add(history, refusal(3000, i + 1));
    assert_int_equal(look(history, 1000).of_uid, 500);
    assert_true(look(history, 3000).of_uid >= HISTORY_RECORDS / 3);
    assert_true(look(history, 2000).of_uid >= HISTORY_RECORDS / 3);
    assert_int_equal(look(history, 3000).n, HISTORY_RECORDS);
    /* the oldest went */
    assert_int_equal(look(history, 3000).last.session, 5 * HISTORY_RECORDS);
    history_free(history);
}

static void so_many_users_have_one_each(void **state)
{
    struct history *history;

    assert_int_equal(history_new(&history), 0);
    for (uint32_t uid = 1; uid <= 3 * HISTORY_RECORDS; uid++)
        assert_true(add(history, refusal(uid, 1)) != HISTORY_NONE);
    assert_int_equal(look(history, 3 * HISTORY_RECORDS).n, HISTORY_RECORDS);
    assert_int_equal(look(history, 3 * HISTORY_RECORDS).of_uid, 1);
    history_free(history);
}

static void another_broker_goes_on(void **state)
{
    struct history *history, *next;
    struct found before, after;

    assert_int_equal(history_new(&history), 0);
    for (unsigned i = 0; i < 3 * HISTORY_RECORDS; i++)
        add(history, refusal(1000 + i % 3, i + 1));
    before = look(history, 1001);
    next = another(history);
    after = look(next, 1001);
    assert_memory_equal(&before, &after, sizeof(before));
    add(next, refusal(1001, 1));
    after = look(next, 1001);
    assert_true(after.last.serial > before.last.serial);
    assert_int_equal(after.of_uid, before.of_uid);
    history_free(next);
    history_free(history);
}

static void an_end_is_known_later(void **state)
{
    const struct history_record *open;
    struct history *history, *next;
    uint32_t index, other;

    assert_int_equal(history_new(&history), 0);
    index = add(history, ended(1000, 5, HISTORY_END_DIED));
    other = add(history, ended(1000, 6, HISTORY_END_DIED));
    add(history, ended(1000, 7, HISTORY_END_GOODBYE));
    assert_int_equal(history_next_open(history, 0, &open), index);
    assert_int_equal(open->session, 5);
    assert_int_equal(history_next_open(history, index + 1, &open), other);
    assert_int_equal(history_next_open(history, other + 1, &open), HISTORY_NONE);
    assert_non_null(history_ended(history, index, 5));
    assert_null(history_ended(history, index, 6));
    assert_null(history_ended(history, HISTORY_NONE, 5));
    history_set_end(history, index, HISTORY_END_SIGNAL, 9);
    assert_int_equal(look(history, 1000).last.session, 5);
    assert_int_equal(look(history, 1000).last.status, 9);
    /* a broker died, and the next one sees the same end again */
    next = another(history);
    assert_int_equal(add(next, ended(1000, 5, HISTORY_END_DIED)), index);
    assert_int_equal(look(next, 1000).last.end, HISTORY_END_SIGNAL);
    assert_int_equal(look(next, 1000).n, 3);
    assert_int_equal(history_next_open(next, 0, &open), other);
    history_free(next);
    history_free(history);
}

static void ends_of_nothing_are_one(void **state)
{
    struct history *history;
    struct history_record holds = ended(1000, 1001, HISTORY_END_GOODBYE);

    assert_int_equal(history_new(&history), 0);
    for (unsigned i = 1; i <= 1000; i++)
        add(history, ended(1000, i, HISTORY_END_GOODBYE));
    assert_int_equal(look(history, 1000).n, 1);
    assert_int_equal(look(history, 1000).last.count, 1000);
    assert_int_equal(look(history, 1000).last.session, 1000);
    holds.holds = 1;
    add(history, holds);
    assert_int_equal(look(history, 1000).n, 2);
    history_free(history);
}

/* Whatever is in the file, the next broker has a history. */
static void damage_costs_what_is_damaged(void **state)
{
    struct history *history, *next;
    struct history_record *records;
    char *file;
    int fd;

    assert_int_equal(history_new(&history), 0);
    for (unsigned i = 0; i < 10; i++)
        add(history, refusal(1000, i + 1));
    file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, history_fd(history), 0);
    assert_ptr_not_equal(file, MAP_FAILED);
    records = (struct history_record *)(void *)(file + FILE_HEADER);
    records[0].serial = 0; /* its broker died while it was being written */
    memset(records[1].sentence, 'x', sizeof(records[1].sentence));
    records[2].kind = 77;
    records[3].serial = records[4].serial;
    records[5].serial = UINT64_MAX;
    next = another(history);
    assert_int_equal(look(next, 1000).n, 5);
    for (unsigned i = 0; i < 3 * HISTORY_RECORDS; i++)
        add(next, refusal(1000, i + 100));
    assert_int_equal(look(next, 1000).n, HISTORY_RECORDS);
    history_free(next);

    file[0] ^= 1;
    fd = fcntl(history_fd(history), F_DUPFD_CLOEXEC, 3);
    assert_int_equal(history_adopt(&next, fd), HISTORY_E_FORMAT);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
    assert_int_equal(munmap(file, FILE_BYTES), 0);
    history_free(history);

    /* what could shrink would be a SIGBUS */
    fd = sys_memfd_new("test", 0);
    assert_int_equal(ftruncate(fd, (off_t)FILE_BYTES), 0);
    assert_int_equal(history_adopt(&next, fd), HISTORY_E_FORMAT);
    close(fd);
}

static void a_page_has_an_end(void **state)
{
    struct history *history;
    unsigned budget = 3, n = 0;
    uint64_t cursor = 0;

    assert_int_equal(history_new(&history), 0);
    for (unsigned i = 0; i < 10; i++)
        add(history, refusal(1000, i + 1));
    while (history_next(history, &cursor, &budget))
        n++;
    assert_int_equal(n, 3);
    assert_true(cursor);
    budget = 100;
    while (history_next(history, &cursor, &budget))
        n++;
    assert_int_equal(n, 10);
    assert_int_equal(cursor, 0);
    history_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_happens_again_is_counted), cmocka_unit_test(nobody_washes_out_the_others),
        cmocka_unit_test(so_many_users_have_one_each),   cmocka_unit_test(another_broker_goes_on),
        cmocka_unit_test(an_end_is_known_later),         cmocka_unit_test(ends_of_nothing_are_one),
        cmocka_unit_test(damage_costs_what_is_damaged),  cmocka_unit_test(a_page_has_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
