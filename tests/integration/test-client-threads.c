/* SPDX-License-Identifier: Apache-2.0 */
/* One context, many threads: everything at once, and nothing is lost or mixed up. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/context.h"

#define THREADS 6
#define ROUNDS  60
#define SIZE    16384

/* Everything that one buffer can go through; NULL, or what failed. */
static const char *one_round(unsigned number)
{
    struct memclient_map_options anywhere = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_buffer *buf = NULL, *again = NULL, *imported = NULL;
    struct memclient_token token;
    char *p = NULL, *q = NULL;
    int fd = -1;

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    anywhere.flags = MEMCLIENT_MAP_NOT_HOME;
    if (memclient_alloc(ctx, SIZE, &options, &buf) || memclient_map(buf, NULL, (void **)&p))
        return "alloc";
    memcpy(p, &number, sizeof(number));
    if (memclient_share(buf, NULL, &token) || memclient_open_token(ctx, &token, 0, &again) || again != buf)
        return "token";
    if (memclient_export_fd(buf, MEMCLIENT_READ, &fd) || memclient_import_fd(ctx, fd, &imported) || imported != buf)
        return "import";
    close(fd);
    if (memclient_map(imported, &anywhere, (void **)&q) || memcmp(q, &number, sizeof(number)))
        return "alias";
    if (memclient_address_query(q + 10, &info) || info.offset != 10 || info.buffer != buf)
        return "query";
    if (memclient_unmap(ctx, q + 4096, 4096) || memclient_protect(ctx, q, 4096, MEMCLIENT_READ))
        return "cut";
    if (memclient_publish(buf, 0) || memcmp(p, &number, sizeof(number)))
        return "publish";
    memclient_buffer_unref(buf);
    memclient_buffer_unref(again);
    if (memclient_unmap(ctx, q, 4096) || memclient_unmap(ctx, q + 8192, 0) || memclient_unmap(ctx, p, 0))
        return "unmap";
    memclient_buffer_unref(imported);
    return NULL;
}

static void *work(void *data)
{
    unsigned first = *(unsigned *)data * ROUNDS;

    for (unsigned i = 0; i < ROUNDS; i++) {
        const char *what = one_round(first + i);

        if (what) {
            print_message("%s: %s\n", what, memclient_error());
            return (void *)what;
        }
    }
    return NULL;
}

static void many_threads_share_one_context(void **state)
{
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    unsigned fds = fd_count();

    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *result = NULL;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    /* and a socket to the door, which is kept */
    assert_int_equal(fd_count(), fds + 1);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    broker_check(&broker);
}

/* Threads that open and drop one buffer: the handle is made and given up at the same time. */
static struct memclient_token common;

static void *open_and_drop(void *data)
{
    (void)data;
    for (unsigned i = 0; i < ROUNDS * 3; i++) {
        struct memclient_buffer *buf = NULL;

        if (memclient_open_token(ctx, &common, 0, &buf))
            return (void *)"open";
        if (memclient_buffer_size(buf) != SIZE)
            return (void *)"size";
        memclient_buffer_unref(buf);
    }
    return NULL;
}

static void one_handle_is_opened_and_dropped_by_all(void **state)
{
    struct memclient_context *owner = broker_connect(&broker);
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buf = NULL;
    pthread_t threads[THREADS];

    assert_done(memclient_alloc(owner, SIZE, NULL, &buf));
    assert_done(memclient_share(buf, NULL, &common));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_drop, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *result = NULL;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    /* every claim was given up: a call is answered after what was given back before */
    assert_done(memclient_broker_ping(ctx));
    assert_done(memclient_buffer_query(buf, &info));
    assert_int_equal(info.holds, 1);
    memclient_buffer_unref(buf);
    memclient_context_close(owner);
}

/* The default context, opened by all threads at once, is one. */
static void *open_default(void *data)
{
    struct memclient_context *c = NULL;

    (void)data;
    return memclient_context_default(&c) ? NULL : c;
}

static void the_default_context_is_one(void **state)
{
    pthread_t threads[THREADS];
    void *first = NULL;

    assert_ok(setenv("MEMORYD_SOCKET", broker.socket, 1));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_default, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *result = NULL;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
        if (first)
            assert_ptr_equal(result, first);
        first = result;
    }
    assert_done(memclient_broker_ping(NULL));
    memclient_context_close(first); /* is ignored */
    assert_done(memclient_broker_ping(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_share_one_context),
        cmocka_unit_test(one_handle_is_opened_and_dropped_by_all),
        cmocka_unit_test(the_default_context_is_one),
    };

    return test_run(tests, context_setup, context_teardown);
}
