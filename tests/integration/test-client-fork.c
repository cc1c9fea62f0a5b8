/* SPDX-License-Identifier: Apache-2.0 */
/* fork(): what a child has of its parent's mappings, handles and connection, also while threads are busy. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/context.h"

#define SIZE 65536

static uint64_t session_of(struct memclient_context *c)
{
    struct memclient_context_info info = MEMCLIENT_CONTEXT_INFO_INIT;

    return memclient_context_query(c, &info) ? 0 : info.session;
}

struct shared {
    struct memclient_buffer *buf;
    char *p;
    uint64_t session;
};

static void use_in_child(int channel, void *data)
{
    struct shared *s = data;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *own = NULL;
    struct memclient_token token;
    void *q = NULL;

    (void)channel;
    /* the mapping is there before any call */
    CHECK(s->p[0] == 'p');
    s->p[1] = 'c';
    /* a session of its own */
    CHECK_DONE(memclient_broker_ping(ctx));
    CHECK(session_of(ctx) && session_of(ctx) != s->session);
    /* the parent's handle, claimed anew by its descriptor */
    CHECK_DONE(memclient_buffer_query(s->buf, &info));
    CHECK(info.holds == 2);
    CHECK_DONE(memclient_share(s->buf, NULL, &token));
    CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &own));
    CHECK_DONE(memclient_map(own, NULL, &q));
    CHECK_DONE(memclient_unmap(ctx, s->p, 0));
    memclient_buffer_unref(s->buf);
    memclient_context_close(ctx);
}

static void a_child_goes_on_with_a_session_of_its_own(void **state)
{
    struct shared s = {.buf = make(SIZE, 0)};
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    void *p = NULL;

    assert_done(memclient_map(s.buf, NULL, &p));
    s.p = p;
    s.p[0] = 'p';
    s.session = session_of(ctx);
    child_run(use_in_child, &s);
    /* what the child closed was not ours */
    assert_int_equal(s.p[1], 'c');
    assert_int_equal(session_of(ctx), s.session);
    assert_done(memclient_buffer_query(s.buf, &info));
    assert_done(memclient_unmap(ctx, s.p, 0));
    memclient_buffer_unref(s.buf);
}

static void close_in_child(int channel, void *data)
{
    (void)channel;
    (void)data;
    memclient_context_close(ctx);
}

static void a_child_that_closes_at_once_harms_nobody(void **state)
{
    struct memclient_buffer *buf = make(SIZE, 0);
    uint64_t session = session_of(ctx);
    void *p = NULL;

    assert_done(memclient_map(buf, NULL, &p));
    child_run(close_in_child, NULL);
    *(char *)p = 1;
    assert_int_equal(session_of(ctx), session);
    assert_done(memclient_unmap(ctx, p, 0));
    memclient_buffer_unref(buf);
}

static void use_stale(int channel, void *data)
{
    struct shared *s = data;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    (void)channel;
    CHECK(memclient_buffer_query(s->buf, &info) == -ESTALE);
    CHECK(*memclient_error());
    memclient_buffer_unref(s->buf);
}

static void a_handle_without_a_descriptor_is_stale_in_a_child(void **state)
{
    struct shared s = {.buf = make(SIZE, 0)};
    struct memclient_buffer *more[64];
    uint64_t sizes[64];

    /* pushes the descriptor of the first out */
    for (unsigned i = 0; i < 64; i++)
        sizes[i] = 1;
    assert_done(memclient_alloc_many(ctx, 64, sizes, NULL, more));
    child_run(use_stale, &s);
    for (unsigned i = 0; i < 64; i++)
        memclient_buffer_unref(more[i]);
    memclient_buffer_unref(s.buf);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static void use_copy(int channel, void *data)
{
    struct memclient_map_options anywhere = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct shared *s = data;
    void *at = NULL;

    (void)channel;
    CHECK(s->p[0] == 'p' && s->p[8192] == 'p');
    s->p[0] = s->p[8192] = 'c';
    /* a page that another mapping shows too is shared */
    s->p[4096] = 's';
    CHECK_DONE(memclient_address_query(s->p, &info));
    CHECK(!info.buffer && !info.buffer_id);
    /* it is not the buffer: that is elsewhere */
    CHECK(memclient_map(s->buf, NULL, &at) == -EADDRINUSE);
    anywhere.flags = MEMCLIENT_MAP_ANYWHERE;
    CHECK_DONE(memclient_map(s->buf, &anywhere, &at));
    CHECK(at != s->p && *(char *)at == 'p');
    CHECK_DONE(memclient_unmap(ctx, at, 0));
    CHECK_DONE(memclient_protect(ctx, s->p, 0, MEMCLIENT_READ));
    CHECK_DONE(memclient_protect(ctx, s->p, 0, MEMCLIENT_READ | MEMCLIENT_WRITE));
    CHECK(s->p[0] == 'c');
    CHECK_DONE(memclient_unmap(ctx, s->p, s->session));
    CHECK(s->p[4096] == 's');
}

/* Of what a descriptor is kept, and of what is copied; in a child as of malloc()'s memory. */
static void a_child_gets_a_copy_where_that_was_asked_for(void **state)
{
    static const uint64_t sizes[] = {SIZE, 8 * SIZE};
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    for (int i = 0; i < 2; i++) {
        struct shared s = {.buf = make(sizes[i], 0), .session = sizes[i]};
        void *p = NULL, *page = NULL;

        options = (struct memclient_map_options)MEMCLIENT_MAP_OPTIONS_INIT;
        options.flags = MEMCLIENT_MAP_COPY_ON_FORK;
        assert_done(memclient_map(s.buf, &options, &p));
        s.p = p;
        options = (struct memclient_map_options)MEMCLIENT_MAP_OPTIONS_INIT;
        options.offset = options.length = 4096;
        assert_done(memclient_map(s.buf, &options, &page));
        s.p[0] = s.p[8192] = 'p';
        child_run(use_copy, &s);
        assert_int_equal(s.p[0], 'p');
        assert_int_equal(s.p[8192], 'p');
        assert_int_equal(s.p[4096], 's');
        assert_done(memclient_unmap(ctx, page, 4096));
        assert_done(memclient_unmap(ctx, p, 0));
        memclient_buffer_unref(s.buf);
    }
}

static void touch(int channel, void *p)
{
    (void)channel;
    *(volatile char *)p = 1;
}

static void look_up_uncopied(int channel, void *data)
{
    struct shared *s = data;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    (void)channel;
    CHECK(memclient_address_query(s->p, &info) == 0);
    CHECK(memclient_address_query(s->p + 4096, &info) == -EFAULT);
    CHECK(memclient_address_query(s->p + 8192, &info) == 0);
    CHECK_DONE(memclient_unmap(ctx, s->p, 4096));
}

static void what_is_not_to_be_copied_is_not_in_the_child(void **state)
{
    struct shared s = {.buf = make(SIZE, 0)};
    void *p = NULL;

    assert_done(memclient_map(s.buf, NULL, &p));
    s.p = p;
    assert_refused(memclient_dont_fork(ctx, s.p, SIZE * 2), EFAULT);
    assert_done(memclient_dont_fork(ctx, s.p + 4096, 4096));
    s.p[4096] = 1;
    assert_int_equal(child_signal(touch, s.p), 0);
    assert_int_equal(child_signal(touch, s.p + 4096), SIGSEGV);
    child_run(look_up_uncopied, &s);
    assert_done(memclient_unmap(ctx, s.p, SIZE));
    memclient_buffer_unref(s.buf);
}

/* ---- while threads are inside ------------------------------------------------------------------------------------ */

static bool enough;

static void *be_busy(void *data)
{
    (void)data;
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
        struct memclient_buffer *buf = NULL;
        void *p = NULL;

        options.flags = MEMCLIENT_MAP_ANYWHERE;
        if (memclient_alloc(ctx, SIZE, NULL, &buf) || memclient_map(buf, &options, &p) || memclient_unmap(ctx, p, 0))
            return (void *)"failed";
        memclient_buffer_unref(buf);
    }
    return NULL;
}

static void work_in_child(int channel, void *data)
{
    struct memclient_buffer *buf = NULL;

    (void)channel;
    (void)data;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
        memclient_buffer_unref(buf);
    }
    /* what threads that the child does not have had allocated is no leak of anybody's */
    execlp("true", "true", (char *)NULL);
}

static void threads_may_be_busy_meanwhile(void **state)
{
    pthread_t threads[4];

    child_need_malloc();
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
    for (unsigned i = 0; i < 30; i++)
        child_run(work_in_child, NULL);
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 4; i++) {
        void *result;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    broker_check(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_goes_on_with_a_session_of_its_own),
        cmocka_unit_test(a_child_that_closes_at_once_harms_nobody),
        cmocka_unit_test(a_handle_without_a_descriptor_is_stale_in_a_child),
        cmocka_unit_test(a_child_gets_a_copy_where_that_was_asked_for),
        cmocka_unit_test(what_is_not_to_be_copied_is_not_in_the_child),
        cmocka_unit_test(threads_may_be_busy_meanwhile),
    };

    return test_run(tests, context_setup, context_teardown);
}
