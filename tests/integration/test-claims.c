/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of a named buffer, by processes: one at a time, or many together; ended by the end of who has it, and by
 * nothing else.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdio.h>

#define SIZE MIB

static struct memclient_buffer *named_buffer(struct memclient_context *ctx)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.name = "db";
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    return buf;
}

static int claim(struct memclient_context *ctx, unsigned kind, struct memclient_buffer **buf)
{
    return memclient_claim_name(ctx, "db", 0, kind, buf);
}

static void claim_and_write(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf;
    void *p;

    CHECK_DONE(claim(ctx, MEMCLIENT_CLAIM_EXCLUSIVE, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    pattern_write(p, SIZE, 7);
    tell(channel);
    hear(channel);
}

/* Whoever waits for its place gets it when it dies, with all that it wrote. */
static void an_exclusive_claim_ends_with_its_process(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = named_buffer(ctx), *mine;
    struct child child;
    char who[32];
    void *p;

    child_start(&child, claim_and_write, broker->socket);
    child_hear(&child);
    assert_refused(claim(ctx, MEMCLIENT_CLAIM_EXCLUSIVE, &mine), EBUSY);
    (void)snprintf(who, sizeof(who), "pid %d ", (int)child.pid);
    assert_sentence(who);
    assert_refused(claim(ctx, MEMCLIENT_CLAIM_SHARED, &mine), EBUSY);
    child_kill(&child);
    assert_true(WAIT_UNTIL(claim(ctx, MEMCLIENT_CLAIM_EXCLUSIVE, &mine) == 0));
    assert_done(memclient_map(mine, NULL, &p));
    assert_true(pattern_holds(p, SIZE, 7));
    assert_done(memclient_unmap(ctx, p, SIZE));
    memclient_buffer_unref(mine);
    memclient_buffer_unref(buf);
    assert_done(memclient_unbind_name(ctx, "db"));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static unsigned claim_of(struct memclient_buffer *buf, struct memclient_context *ctx)
{
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_buffer_info info = broker_info(buf);

    assert_done(memclient_context_query(ctx, &connection));
    for (uint32_t i = 0; i < info.n_holders; i++)
        if (info.holders[i] == connection.session)
            return info.holder_claims[i];
    fail_msg("this session does not hold it");
    return 0;
}

static void many_share_it_and_one_may_have_it_alone(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *one = broker_connect(broker),
                             *other = broker_connect(broker);
    struct memclient_buffer *buf = named_buffer(ctx), *first, *second, *again;

    assert_done(claim(one, MEMCLIENT_CLAIM_SHARED, &first));
    assert_done(claim(other, MEMCLIENT_CLAIM_SHARED, &second));
    assert_refused(claim(one, MEMCLIENT_CLAIM_EXCLUSIVE, &again), EBUSY);
    assert_int_equal(claim_of(first, one), MEMCLIENT_CLAIM_SHARED);
    memclient_buffer_unref(second);
    /* more than shared, by the same handle */
    assert_done(claim(one, MEMCLIENT_CLAIM_EXCLUSIVE, &again));
    assert_ptr_equal(again, first);
    assert_int_equal(claim_of(first, one), MEMCLIENT_CLAIM_EXCLUSIVE);
    memclient_buffer_unref(again);
    assert_refused(claim(other, MEMCLIENT_CLAIM_SHARED, &second), EBUSY);
    /* who makes no claim is not kept out, as the maker is not */
    assert_done(memclient_open_name(other, "db", 0, &second));
    assert_int_equal(claim_of(second, other), MEMCLIENT_CLAIM_NONE);
    memclient_buffer_unref(second);
    assert_int_equal(claim_of(buf, ctx), MEMCLIENT_CLAIM_NONE);
    /* closing is as good as letting go, at once */
    memclient_context_close(one);
    memclient_buffer_unref(first);
    assert_done(claim(other, MEMCLIENT_CLAIM_EXCLUSIVE, &second));
    memclient_buffer_unref(second);
    /* nothing of this destroyed anything */
    assert_int_equal(broker_info(buf).state, MEMCLIENT_BUFFER_STATE_LIVE);
    memclient_buffer_unref(buf);
    assert_done(memclient_unbind_name(ctx, "db"));
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Neither the broker's death nor the loss of the connection that goes with it. */
static void a_claim_outlives_the_broker(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf = named_buffer(ctx), *mine, *theirs;

    assert_done(claim(ctx, MEMCLIENT_CLAIM_EXCLUSIVE, &mine));
    broker_kill_child(broker);
    assert_refused(claim(other, MEMCLIENT_CLAIM_SHARED, &theirs), EBUSY);
    assert_int_equal(claim_of(mine, ctx), MEMCLIENT_CLAIM_EXCLUSIVE);
    memclient_buffer_unref(mine);
    memclient_buffer_unref(buf);
    assert_done(claim(other, MEMCLIENT_CLAIM_SHARED, &theirs));
    broker_kill_child(broker);
    assert_refused(claim(ctx, MEMCLIENT_CLAIM_EXCLUSIVE, &mine), EBUSY);
    assert_done(claim(ctx, MEMCLIENT_CLAIM_SHARED, &mine));
    memclient_buffer_unref(theirs);
    memclient_buffer_unref(mine);
    assert_done(memclient_unbind_name(ctx, "db"));
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_claim_outlives_the_broker),
        at_broker(an_exclusive_claim_ends_with_its_process),
        at_broker(many_share_it_and_one_may_have_it_alone),
    };

    return test_run(tests, NULL, NULL);
}
