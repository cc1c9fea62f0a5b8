/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking before sleeping changes nothing but the time: with it and without, on one processor and on all, calls of
 * many threads have their results, and who has nothing to do sleeps.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/integration/clients.h"

#define THREADS 4
#define ROUNDS  50
#define PINGS   20
#define SIZE    16384

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct caller {
    struct memclient_context *ctx;
    uint64_t number;
};

/* NULL, or what failed. */
static const char *one_round(struct memclient_context *ctx, uint64_t seed)
{
    struct memclient_buffer *buf = NULL, *again = NULL;
    struct memclient_token token;
    void *p = NULL;

    for (unsigned i = 0; i < PINGS; i++)
        if (memclient_broker_ping(ctx))
            return "ping";
    if (memclient_alloc(ctx, SIZE, NULL, &buf) || memclient_map(buf, NULL, &p))
        return "alloc";
    pattern_write(p, SIZE, seed);
    if (memclient_share(buf, NULL, &token) || memclient_open_token(ctx, &token, 0, &again) || again != buf)
        return "token";
    if (!pattern_holds(p, SIZE, seed))
        return "pattern";
    memclient_buffer_unref(again);
    memclient_buffer_unref(buf);
    return memclient_unmap(ctx, p, 0) ? "unmap" : NULL;
}

static void *call(void *data)
{
    const struct caller *caller = data;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        const char *what = one_round(caller->ctx, caller->number * ROUNDS + i);

        if (what) {
            print_message("%s: %s\n", what, memclient_error());
            return (void *)what;
        }
    }
    return NULL;
}

static void call_from_many_threads(struct memclient_context *ctx)
{
    struct caller callers[THREADS];
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.ctx = ctx, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *result = NULL;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

/* ---- sleep ------------------------------------------------------------------------------------------------------- */

/* Of the loop's thread, in ticks. */
static unsigned long ticks_used(pid_t pid)
{
    char path[64], text[1024];
    const char *p;
    unsigned long user, system;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    assert_true(n > 0);
    text[n] = '\0';
    p = strrchr(text, ')'); /* a name may have blanks */
    assert_non_null(p);
    assert_int_equal(sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    return user + system;
}

/* Did it sleep nearly all of a second? */
static bool sleeps(pid_t pid)
{
    unsigned long before = ticks_used(pid);

    sleep(1);
    return ticks_used(pid) - before <= (unsigned long)sysconf(_SC_CLK_TCK) / 20;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static void serve(const char *config)
{
    struct broker_process *broker = broker_for_test(config);
    struct memclient_context *ctx = broker_connect(broker);

    call_from_many_threads(ctx);
    /* the client is still there, and so is what it may ask next */
    assert_true(WAIT_UNTIL(sleeps(broker_child(broker))));
    assert_done(memclient_broker_ping(ctx));
    broker_check(broker);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void serve_on_one_processor(const char *config)
{
    cpu_set_t all, one;

    assert_ok(sched_getaffinity(0, sizeof(all), &all));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_ok(sched_setaffinity(0, sizeof(one), &one));
    serve(config);
    assert_ok(sched_setaffinity(0, sizeof(all), &all));
}

static void a_broker_that_looks_serves_and_sleeps(void **state)
{
    serve("[broker]\nspin = auto\n");
}

static void one_that_does_not_look_as_well(void **state)
{
    serve("[broker]\nspin = off\n");
}

static void one_processor_is_enough(void **state)
{
    serve_on_one_processor("[broker]\nspin = auto\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_broker_that_looks_serves_and_sleeps),
        at_broker(one_that_does_not_look_as_well),
        at_broker(one_processor_is_enough),
    };

    return test_run(tests, NULL, NULL);
}
