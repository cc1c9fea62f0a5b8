/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledging: no more than 64 recorded requests are out, a slow one holds nobody up, and no connection that ends
 * makes the broker keep more than it was told.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>

#include "base/align.h"
#include "base/clock.h"
#include "rpc/stubs.h"
#include "tests/support/wait.h"
#include "tests/unit/client/absent.h"
#include "tests/unit/client/caller.h"
#include "tests/unit/client/fake.h"

/* What a broker keeps: the recorded requests that are not acknowledged. */
struct kept {
    uint64_t sequences[MEMORYD_UNACKNOWLEDGED_MAX];
    unsigned n;
};

/* As a broker does it with each request's header. False for a repeat. */
static bool keep(struct kept *kept, const struct frame_header *header)
{
    unsigned n = 0;

    for (unsigned i = 0; i < kept->n; i++)
        if (kept->sequences[i] > header->acknowledged && kept->sequences[i] != header->answered)
            kept->sequences[n++] = kept->sequences[i];
    kept->n = n;
    for (unsigned i = 0; i < n; i++)
        if (kept->sequences[i] == header->sequence)
            return false;
    assert_true(n < MEMORYD_UNACKNOWLEDGED_MAX);
    kept->sequences[kept->n++] = header->sequence;
    return true;
}

#define MANY 1000

static void *reserve_many(void *data)
{
    struct caller *c = data;

    for (unsigned i = 0; i < MANY && !c->result; i++) {
        struct rpc_reserved reserved;

        c->result = rpc_reserve(rpc_route_of(c->channel, deadline_after_ms(PATIENCE_MS)), page_size(), 0, 0, &reserved);
    }
    return NULL;
}

static void reserved(uint64_t sequence)
{
    Memoryd__V1__ReserveReply reply = MEMORYD__V1__RESERVE_REPLY__INIT;

    reply.reservation = sequence;
    reply.address = 0x566000000000;
    fake_reply(w.broker, METHOD_RESERVE, sequence, &reply.base, NULL, 0);
}

/* The broker goes with requests that it has not seen, or has done and not answered. */
static void a_slow_request_holds_nobody_up_and_acknowledgements_do_not_get_lost(void **state)
{
    struct caller slow, many = {.channel = w.channel};
    struct kept kept = {.n = 0};
    struct fake_request request;
    unsigned done = 0, seen = 0;

    start(&slow, ALLOC);
    expect(w.broker, METHOD_ALLOC, &request);
    keep(&kept, &request.header);
    fake_request_deinit(&request);
    assert_int_equal(pthread_create(&many.thread, NULL, reserve_many, &many), 0);
    while (done < MANY) {
        bool repeated;

        assert_true(fake_receive(w.broker, &request));
        seen++;
        if (seen % 7 == 0 && seen < 300) {
            fake_request_deinit(&request);
            hang_up();
            welcome_back(0);
            continue;
        }
        repeated = !keep(&kept, &request.header);
        if (request.header.method == METHOD_ALLOC) {
            assert_true(repeated && request.header.sequence == 1);
        } else if (seen % 11 == 0 && seen < 300) {
            hang_up();
            welcome_back(0);
        } else {
            reserved(request.header.sequence);
            done++;
        }
        fake_request_deinit(&request);
    }
    assert_int_equal(caller_finish(&many), 0);
    fake_buffers(w.broker, METHOD_ALLOC, 1, 77, 1, NULL);
    assert_int_equal(caller_finish(&slow), 0);
    /* the next one acknowledges them all */
    start(&slow, ALLOC);
    expect(w.broker, METHOD_ALLOC, &request);
    assert_int_equal(request.header.acknowledged, request.header.sequence - 1);
    assert_int_equal(request.header.answered, 0);
    fake_buffers(w.broker, METHOD_ALLOC, request.header.sequence, 78, 1, NULL);
    fake_request_deinit(&request);
    assert_int_equal(caller_finish(&slow), 0);
}

static void who_comes_to_a_full_window_waits_for_room(void **state)
{
    enum { FULL = MEMORYD_UNACKNOWLEDGED_MAX };
    struct caller callers[FULL], late, in_vain;
    struct fake_request request;

    for (unsigned i = 0; i < FULL; i++) {
        start(&callers[i], RESERVE);
        assert_int_equal(expect_plain(w.broker, METHOD_RESERVE), i + 1);
    }
    caller_start(&in_vain, w.channel, RESERVE, QUIET_MS);
    assert_int_equal(caller_finish(&in_vain), -ETIMEDOUT);
    start(&late, RESERVE);
    assert_true(stays_quiet(w.broker));
    call_works(); /* harmless ones need no room */

    /* one that is answered, and acknowledged by the one that takes its place */
    reserved(33);
    expect(w.broker, METHOD_RESERVE, &request);
    assert_int_equal(request.header.sequence, FULL + 2);
    assert_int_equal(request.header.acknowledged, 0);
    assert_int_equal(request.header.answered, 33);
    fake_request_deinit(&request);

    /* it says so again on the next connection, where everybody still waits */
    hang_up();
    welcome_back(0);
    for (uint64_t sequence = 1; sequence <= FULL + 2; sequence++) {
        if (sequence == 33 || sequence == FULL + 1)
            continue;
        expect(w.broker, METHOD_RESERVE, &request);
        assert_int_equal(request.header.sequence, sequence);
        assert_int_equal(request.header.answered, sequence == FULL + 2 ? 33 : 0);
        fake_request_deinit(&request);
        reserved(sequence);
    }
    for (unsigned i = 0; i < FULL; i++)
        assert_int_equal(caller_finish(&callers[i]), 0);
    assert_int_equal(caller_finish(&late), 0);
}

/* An answer that says no more than that. */
static void done(enum method method, uint64_t sequence)
{
    fake_reply(w.broker, method, sequence, NULL, NULL, 0);
}

static void give_back(uint64_t id)
{
    rpc_release(rpc_route_of(w.channel, deadline_after_ms(PATIENCE_MS)), 1, &id, false);
}

static void what_is_given_back_is_sent_and_not_waited_for(void **state)
{
    enum { HALF = MEMORYD_UNACKNOWLEDGED_MAX / 2 };
    struct caller ping, waits;

    /* nobody answers */
    give_back(1);
    give_back(2);
    assert_int_equal(rpc_unreserve(rpc_route_of(w.channel, deadline_after_ms(PATIENCE_MS)), 3), 0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), 1);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), 2);
    assert_int_equal(expect_plain(w.broker, METHOD_UNRESERVE), 3);

    /* the answers come with the next call's, good or bad */
    start(&ping, PING);
    fake_refuse(w.broker, METHOD_RELEASE, 1, 15, "long gone");
    done(METHOD_UNRESERVE, 3);
    done(METHOD_PING, expect_plain(w.broker, METHOD_PING));
    assert_int_equal(caller_finish(&ping), 0);

    for (uint64_t sequence = 5; sequence < 5 + HALF - 1; sequence++) {
        give_back(sequence);
        assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sequence);
    }
    call_works();

    /* who does nothing else does not get further ahead than that */
    caller_start(&waits, w.channel, GIVE_BACK, PATIENCE_MS);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), 5 + HALF);
    assert_true(stays_quiet(w.broker));
    assert_int_equal(pthread_tryjoin_np(waits.thread, NULL), EBUSY);
    done(METHOD_RELEASE, 7);
    assert_int_equal(caller_finish(&waits), 0);
}

/* Nor is it lost with a connection. */
static void what_is_given_back_is_given_back_once(void **state)
{
    struct caller ping;
    struct fake_request request;

    give_back(77);
    hang_up();
    give_back(78);
    start(&ping, PING);
    welcome_back(0);
    for (uint64_t id = 77; id <= 78; id++) {
        expect(w.broker, METHOD_RELEASE, &request);
        assert_int_equal(((const Memoryd__V1__ReleaseRequest *)request.message)->buffers[0], id);
        fake_request_deinit(&request);
    }
    done(METHOD_PING, expect_plain(w.broker, METHOD_PING));
    assert_int_equal(caller_finish(&ping), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_slow_request_holds_nobody_up_and_acknowledgements_do_not_get_lost),
        TEST(who_comes_to_a_full_window_waits_for_room),
        TEST(what_is_given_back_is_sent_and_not_waited_for),
        TEST(what_is_given_back_is_given_back_once),
    };

    return test_run(tests, NULL, NULL);
}
