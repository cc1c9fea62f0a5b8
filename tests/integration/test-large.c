/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wants a machine of its own, which make check-vm has: 100 000 live buffers, and limits of the whole machine.
 */
#include "tests/integration/clients.h"

#include <stdlib.h>

#define VERY_MANY 100000

static int count_buffers(const struct memclient_buffer_info *info, void *data)
{
    (void)info;
    ++*(size_t *)data;
    return 0;
}

static void one_hundred_thousand_live_buffers(void **state)
{
    static struct memclient_buffer *bufs[VERY_MANY];
    uint64_t sizes[MEMCLIENT_BATCH_MAX];
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct rlimit limit;
    size_t listed = 0, n;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    /* the broker keeps a quarter for others than one user's buffers */
    if (limit.rlim_max < VERY_MANY + VERY_MANY / 2)
        test_skip("the hard limit of open files is %lu; make check-vm has a machine with more",
                  (unsigned long)limit.rlim_max);
    settings_write("/proc/sys/fs/inotify/max_user_watches", "200000"); /* one a buffer */
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        sizes[i] = 1;
    for (size_t made = 0; made < VERY_MANY; made += n) {
        n = VERY_MANY - made < MEMCLIENT_BATCH_MAX ? VERY_MANY - made : MEMCLIENT_BATCH_MAX;
        assert_done(memclient_alloc_many(ctx, n, sizes, NULL, bufs + made));
    }
    assert_int_equal(broker_status(ctx).buffers, VERY_MANY);
    assert_done(memclient_list_buffers(ctx, count_buffers, &listed));
    assert_int_equal(listed, VERY_MANY);
    broker_check(broker);
    for (size_t i = 0; i < VERY_MANY; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* fs.inotify.max_user_watches: a buffer that leaves the broker takes one. */
static void too_low_a_limit_of_watches_is_told(void **state)
{
    enum { MOST = 300 };
    struct memclient_buffer *bufs[MOST];
    struct broker_process *broker;
    struct memclient_context *ctx;
    size_t n = 0;
    int fd, r = 0;

    test_needs_root();
    if (getenv("MEMORYD_VM") == NULL)
        test_skip("lowers a limit of the whole machine: only in make check-vm");
    settings_write("/proc/sys/fs/inotify/max_user_watches", "200");
    broker = broker_for_test_as(UID_BROKER, NULL);
    ctx = broker_connect(broker);
    while (n < MOST && r == 0) {
        r = memclient_alloc(ctx, 1, NULL, &bufs[n]);
        if (r == 0) {
            n++;
            r = memclient_export_fd(bufs[n - 1], 0, &fd);
            if (r == 0)
                close(fd);
        }
    }
    assert_int_equal(r, -EDQUOT);
    assert_sentence("fs.inotify.max_user_watches");
    assert_true(n > 100);
    broker_check(broker);
    for (size_t i = 0; i < n; i++)
        memclient_buffer_unref(bufs[i]);
    broker_wait_until_empty(broker);
    assert_done(memclient_alloc(ctx, 1, NULL, &bufs[0]));
    assert_done(memclient_export_fd(bufs[0], 0, &fd));
    close(fd);
    memclient_buffer_unref(bufs[0]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker_with_settings(one_hundred_thousand_live_buffers),
        at_broker_with_settings(too_low_a_limit_of_watches_is_told),
    };

    return test_run(tests, NULL, NULL);
}
