/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Very many buffers at once: one descriptor and one watch each is all that the broker spends on a live,
 * exported buffer, and the kernel goes along. 100 000 where the limits allow it (make check-vm; as root),
 * else what they allow, at least 15 000.
 */
#include "tests/kernel/kinds.h"
#include "tests/kernel/watch.h"

#include <stdlib.h>
#include <sys/resource.h>

#define WANTED      100000
#define AT_LEAST    15000
#define RESERVE     64 /* descriptors and watches for everything else */
#define MAX_WATCHES "/proc/sys/fs/inotify/max_user_watches"

static long number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    long number = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

/* All committed, sealed, watched and alive together; each grant's end is told once and for the right one;
 * and at the end each watch says IN_IGNORED. */
static void very_many_watched_buffers_live_together(void **state)
{
    struct kind kind = {.page = page_size(), .size = page_size()};
    long watches = number_in(MAX_WATCHES);
    long events = number_in("/proc/sys/fs/inotify/max_queued_events");
    int instance = watch_instance(), *fds, *wds;
    size_t n = WANTED, ignored = 0;
    struct rlimit limit;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < WANTED + RESERVE) { /* only root may raise it, and not everywhere */
        struct rlimit more = {WANTED + RESERVE, WANTED + RESERVE};

        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            limit = more;
    }
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_cur < n + RESERVE)
        n = limit.rlim_cur - RESERVE;
    if (geteuid() == 0 && watches < (long)(n + RESERVE)) {
        char enough[16];

        snprintf(enough, sizeof(enough), "%zu", n + RESERVE);
        settings_write(MAX_WATCHES, enough);
        watches = number_in(MAX_WATCHES);
    }
    if ((long)n > watches - RESERVE)
        n = (size_t)watches - RESERVE;
    if (n < AT_LEAST)
        test_skip("RLIMIT_NOFILE is %lu and fs.inotify.max_user_watches %ld: fewer than %d buffers",
                  (unsigned long)limit.rlim_cur, watches, AT_LEAST);
    assert_true(events > 1000);

    fds = calloc(n, sizeof(*fds));
    wds = calloc(n, sizeof(*wds));
    assert_non_null(fds);
    assert_non_null(wds);
    for (size_t i = 0; i < n; i++) {
        fds[i] = kind_buffer(kind);
        wds[i] = watch_add(instance, fds[i], IN_CLOSE);
        assert_ok(wds[i]);
    }
    for (size_t i = 0; i < n; i += 101) {
        struct inotify_event event;

        close(fd_reopen(fds[i], O_RDONLY));
        assert_true(wait_readable(instance));
        assert_int_equal(read(instance, &event, sizeof(event)), sizeof(event));
        assert_int_equal(event.wd, wds[i]);
        assert_int_equal(event.mask, IN_CLOSE_NOWRITE);
    }
    for (size_t i = 0; i < n; i++) {
        unsigned count;

        close(fds[i]);
        if (i % 100 == 99 || i == n - 1) {
            watch_take(instance, &count);
            ignored += count / 2; /* IN_CLOSE_WRITE of our own, and IN_IGNORED */
        }
    }
    assert_int_equal(ignored, n);
    print_message("%zu buffers lived together\n", n);
    free(wds);
    free(fds);
    close(instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_settings(very_many_watched_buffers_live_together),
    };

    return test_run(tests, NULL, NULL);
}
