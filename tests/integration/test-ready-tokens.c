/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that shares what it allocates gets the tokens along with the buffers, and notices it by the calls that it
 * does not make: they are tokens like others, given out once, and gone when they should be.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdlib.h>

#define SIZE 4096

static bool same_token(const struct memclient_token *a, const struct memclient_token *b)
{
    return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static struct memclient_buffer *make(struct memclient_context *ctx)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    return buf;
}

/* What makes a context expect that buffers will be shared. */
static void share_what_is_allocated(struct memclient_context *ctx)
{
    for (unsigned i = 0; i < 8; i++) {
        struct memclient_buffer *buf = make(ctx);
        struct memclient_token token;

        assert_done(memclient_share(buf, NULL, &token));
        memclient_buffer_unref(buf);
    }
}

/* That opens its buffer, to read and write it and no more. */
static void opens(struct memclient_context *other, const struct memclient_token *token, uint64_t id)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_open_token(other, token, 0, &buf));
    assert_int_equal(memclient_buffer_id(buf), id);
    assert_int_equal(memclient_buffer_rights(buf), MEMCLIENT_READ | MEMCLIENT_WRITE);
    memclient_buffer_unref(buf);
}

static void sharing_after_alloc_makes_no_call(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_token token, second;
    struct memclient_buffer *buf;
    uint64_t requests;

    buf = make(ctx);
    assert_int_equal(broker_info(buf).tokens, 0);
    memclient_buffer_unref(buf);

    share_what_is_allocated(ctx);
    buf = make(ctx);
    assert_int_equal(broker_info(buf).tokens, 1);
    requests = broker_status(ctx).requests;
    assert_done(memclient_share(buf, NULL, &token));
    assert_int_equal(broker_status(ctx).requests, requests + 1);
    assert_int_equal(broker_info(buf).tokens, 1);
    opens(other, &token, memclient_buffer_id(buf));

    /* each is given out once, and each can be revoked by itself */
    assert_done(memclient_share(buf, NULL, &second));
    assert_false(same_token(&token, &second));
    assert_int_equal(broker_info(buf).tokens, 2);
    assert_done(memclient_revoke_token(ctx, &token));
    assert_refused(memclient_open_token(other, &token, 0, &buf), EKEYREVOKED);
    opens(other, &second, memclient_buffer_id(buf));
    memclient_buffer_unref(buf);

    /* other terms are the broker's to look at */
    {
        struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
        struct memclient_buffer *opened = NULL;

        share_what_is_allocated(ctx);
        buf = make(ctx);
        options.rights = MEMCLIENT_READ;
        assert_done(memclient_share(buf, &options, &token));
        assert_int_equal(broker_info(buf).tokens, 2);
        assert_done(memclient_open_token(other, &token, 0, &opened));
        assert_int_equal(memclient_buffer_rights(opened), MEMCLIENT_READ);
        memclient_buffer_unref(opened);
        memclient_buffer_unref(buf);
    }
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void sessions_that_share_little_get_no_tokens_in_advance(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[16];
    struct memclient_token token;

    share_what_is_allocated(ctx);
    for (unsigned i = 0; i < 16; i++)
        bufs[i] = make(ctx);
    assert_int_equal(broker_info(bufs[0]).tokens, 1);
    assert_int_equal(broker_info(bufs[15]).tokens, 0);
    for (unsigned i = 0; i < 16; i += 4)
        assert_done(memclient_share(bufs[i], NULL, &token));
    /* what nobody has got goes with its buffer */
    memclient_buffer_unref_many(16, bufs);
    assert_int_equal(broker_status(ctx).tokens, 0);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void who_says_so_has_the_token_of_the_first(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[70];
    struct memclient_token token;
    uint64_t requests;

    options.flags = MEMCLIENT_ALLOC_SHARED_SOON;
    for (unsigned i = 0; i < 70; i++)
        assert_done(memclient_alloc(ctx, SIZE, &options, &bufs[i]));
    assert_int_equal(broker_status(other).tokens, 64);
    requests = broker_status(other).requests;
    for (unsigned i = 0; i < 64; i++)
        assert_done(memclient_share(bufs[i], NULL, &token));
    assert_int_equal(broker_status(other).requests, requests + 1);
    opens(other, &token, memclient_buffer_id(bufs[63]));
    memclient_buffer_unref_many(70, bufs);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void tokens_in_advance_end_as_all_tokens_do(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_token token;
    struct memclient_buffer *buf;

    share_what_is_allocated(ctx);
    buf = make(ctx);
    assert_done(memclient_revoke_all_tokens(buf));
    assert_int_equal(broker_info(buf).tokens, 0);
    assert_done(memclient_share(buf, NULL, &token));
    opens(other, &token, memclient_buffer_id(buf));
    memclient_buffer_unref(buf);

    share_what_is_allocated(ctx);
    buf = make(ctx);
    assert_done(memclient_destroy_id(ctx, memclient_buffer_id(buf), 0));
    assert_refused(memclient_share(buf, NULL, &token), ESTALE);
    memclient_buffer_unref(buf);

    /* what can only be read any more is shared so */
    {
        struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
        struct memclient_buffer *opened = NULL;

        share_what_is_allocated(ctx);
        options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
        assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
        assert_int_equal(broker_info(buf).tokens, 1);
        assert_done(memclient_publish(buf, 0));
        assert_done(memclient_share(buf, NULL, &token));
        assert_done(memclient_open_token(other, &token, 0, &opened));
        assert_int_equal(memclient_buffer_rights(opened), MEMCLIENT_READ);
        memclient_buffer_unref(opened);
        memclient_buffer_unref(buf);
    }
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Those that nobody has got are no reason to refuse one that somebody wants, nor to refuse a buffer. */
static void those_that_wait_make_room_at_a_limit_I7(void **state)
{
    struct broker_process *broker = broker_for_test("[limits]\nsession_tokens = 5\n");
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_token tokens[6];
    struct memclient_buffer *bufs[4];

    share_what_is_allocated(ctx);
    for (unsigned i = 0; i < 4; i++)
        bufs[i] = make(ctx);
    assert_int_equal(broker_status(ctx).tokens, 3); /* as long as half of the limit was free */
    for (unsigned i = 0; i < 5; i++)
        assert_done(memclient_share(bufs[0], NULL, &tokens[i]));
    assert_refused(memclient_share(bufs[0], NULL, &tokens[5]), EDQUOT);
    assert_int_equal(broker_status(ctx).tokens, 5);
    for (unsigned i = 0; i < 5; i++)
        opens(other, &tokens[i], memclient_buffer_id(bufs[0]));
    memclient_buffer_unref_many(4, bufs);

    share_what_is_allocated(ctx);
    bufs[0] = make(ctx);
    for (unsigned i = 0; i < 5; i++)
        assert_done(memclient_share(bufs[0], NULL, &tokens[i]));
    for (unsigned i = 1; i < 4; i++)
        bufs[i] = make(ctx);
    memclient_buffer_unref_many(4, bufs);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void a_broker_that_dies_takes_none_of_them_along(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_token token;
    struct memclient_buffer *buf;

    share_what_is_allocated(ctx);
    buf = make(ctx);
    assert_int_equal(broker_info(buf).tokens, 1);
    broker_kill_child(broker);
    assert_done(memclient_share(buf, NULL, &token));
    opens(other, &token, memclient_buffer_id(buf));
    assert_int_equal(broker_info(buf).tokens, 1);
    broker_check(broker);
    memclient_buffer_unref(buf);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static struct memclient_buffer *inherited;

/* Its session is another one, in which it opens the buffer anew and makes a token of its own. */
static void share_it_again(int channel, void *data)
{
    struct memclient_token token;

    (void)data;
    CHECK_DONE(memclient_share(inherited, NULL, &token));
    CHECK(pass_bytes(channel, &token, sizeof(token)));
    hear(channel);
}

static void a_child_has_none_of_its_parents(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_token token, its;
    struct child child;

    share_what_is_allocated(ctx);
    inherited = make(ctx);
    child_start(&child, share_it_again, NULL);
    assert_true(take_bytes(child.channel, &its, sizeof(its)));
    assert_done(memclient_share(inherited, NULL, &token));
    assert_false(same_token(&token, &its));
    opens(other, &token, memclient_buffer_id(inherited));
    opens(other, &its, memclient_buffer_id(inherited));
    child_tell(&child);
    child_finish(&child);
    memclient_buffer_unref(inherited);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(sharing_after_alloc_makes_no_call),
        at_broker(sessions_that_share_little_get_no_tokens_in_advance),
        at_broker(who_says_so_has_the_token_of_the_first),
        at_broker(tokens_in_advance_end_as_all_tokens_do),
        at_broker(those_that_wait_make_room_at_a_limit_I7),
        at_broker(a_broker_that_dies_takes_none_of_them_along),
        at_broker(a_child_has_none_of_its_parents),
    };

    return test_run(tests, NULL, NULL);
}
