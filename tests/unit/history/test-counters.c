/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters outlive their broker, whatever else is handed over in their place. "Another broker" is a second mapping
 * of the same memfd.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "history/counters.h"
#include "sys/sys.h"
#include "tests/support/test.h"

static int copy_of(const struct counters *counters)
{
    int fd = fcntl(counters->fd, F_DUPFD_CLOEXEC, 3);

    assert_true(fd >= 0);
    return fd;
}

static struct counters *another(const struct counters *counters)
{
    struct counters *next;

    assert_int_equal(counters_adopt(&next, copy_of(counters)), 0);
    return next;
}

static void each_reply_is_in_one_bucket(void **state)
{
    const struct counters_replies *replies;
    struct counters *counters;
    uint64_t n = 0;

    assert_int_equal(counters_new(&counters), 0);
    replies = &counters->file->replies[10];
    counters_reply(counters, 10, 0);
    counters_reply(counters, 10, 5000);
    counters_reply(counters, 10, 5001);
    counters_reply(counters, 10, 10000000001);
    assert_int_equal(replies->buckets[0], 2);
    assert_int_equal(replies->buckets[1], 1);
    assert_int_equal(replies->buckets[COUNTERS_BUCKETS - 1], 1);
    for (unsigned i = 0; i < COUNTERS_BUCKETS; i++)
        n += replies->buckets[i];
    assert_int_equal(n, 4);
    assert_int_equal(replies->ns, 10000000001 + 5001 + 5000);
    counters_free(counters);
}

/* The number comes from the wire. */
static void what_has_no_place_is_not_counted(void **state)
{
    struct counters *counters;
    const uint8_t *bytes;
    size_t size;

    assert_int_equal(counters_new(&counters), 0);
    counters_reply(counters, COUNTERS_METHODS, 1);
    counters_reply(counters, UINT16_MAX, 1);
    counters_refusal(counters, COUNTERS_STATUSES);
    counters_refusal(counters, UINT32_MAX);
    bytes = (const uint8_t *)counters->file->replies;
    size = sizeof(*counters->file) - offsetof(struct counters_file, replies);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], 0);
    counters_free(counters);
}

static void the_next_broker_goes_on(void **state)
{
    struct counters *counters, *next, *last;

    assert_int_equal(counters_new(&counters), 0);
    counters_reply(counters, 3, 1);
    counters_refusal(counters, 8);
    counters_end(counters, HISTORY_END_SIGNAL);
    counters_wait(counters, 30);
    next = another(counters);
    assert_int_equal(counters_start(next), HISTORY_END_DIED);
    counters_reply(next, 3, 1);
    counters_wait(next, 12);
    assert_int_equal(next->file->replies[3].buckets[0], 2);
    assert_int_equal(next->file->refusals[8], 1);
    assert_int_equal(next->file->ends[HISTORY_END_SIGNAL], 1);
    assert_int_equal(next->file->waits, 2);
    assert_int_equal(next->file->waits_ms, 42);
    assert_int_equal(next->file->recoveries[1], 1);
    assert_int_equal(next->file->recoveries[0], 0);

    counters_leave(next);
    last = another(next);
    assert_int_equal(counters_start(last), HISTORY_END_GOODBYE);
    assert_int_equal(last->file->recoveries[1], 1);
    assert_int_equal(last->file->recoveries[0], 1);
    counters_free(last);
    last = another(counters);
    assert_int_equal(counters_start(last), HISTORY_END_DIED);
    assert_int_equal(last->file->recoveries[1], 2);
    counters_free(last);
    counters_free(next);
    counters_free(counters);
}

static int file_of(size_t size, int seals)
{
    int fd = sys_memfd_new("test", 0);

    assert_true(fd >= 0 && !ftruncate(fd, (off_t)size) && !sys->add_seals(fd, seals));
    return fd;
}

static void what_is_no_block_of_counters_is_left_alone(void **state)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    struct counters *counters, *next = NULL;
    int fds[] = {
        file_of(sizeof(struct counters_file) - 1, seals),
        file_of(sizeof(struct counters_file), 0),
        file_of(sizeof(struct counters_file), seals),
    };

    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        assert_int_equal(counters_adopt(&next, fds[i]), HISTORY_E_FORMAT);
        assert_null(next);
        assert_int_equal(close(fds[i]), 0);
    }
    assert_int_equal(counters_new(&counters), 0);
    fds[0] = copy_of(counters);
    counters->file->major++;
    assert_int_equal(counters_adopt(&next, fds[0]), HISTORY_E_FORMAT);
    assert_int_equal(close(fds[0]), 0);
    counters_free(counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reply_is_in_one_bucket),
        cmocka_unit_test(what_has_no_place_is_not_counted),
        cmocka_unit_test(the_next_broker_goes_on),
        cmocka_unit_test(what_is_no_block_of_counters_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
