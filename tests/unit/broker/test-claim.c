/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of a name keep out other sessions' claims, and nothing else; they end with the hold. */
#include "tests/unit/broker/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mem/rights.h"
#include "session/hold.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(64) << 10)

static uint64_t maker, one, other, buffer;

static int claim_as(uint64_t session, uint32_t claim, uint32_t rights, const char *name)
{
    struct lookup_args args = {.claim = claim, .rights = rights};
    static struct opened result;

    (void)snprintf(args.name, sizeof(args.name), "%s", name);
    return CALL(session, op_lookup, &args, &result);
}

static int claim(uint64_t session, uint32_t kind)
{
    return claim_as(session, kind, 0, "db");
}

/* Of the session's hold, as everybody may see it. */
static uint32_t kind_of(uint64_t session)
{
    struct buffer_info info;

    assert_int_equal(host_info(maker, buffer, &info), 0);
    for (uint32_t i = 0; i < info.n_holders; i++)
        if (info.holders[i] == session)
            return info.holder_claims[i];
    fail_msg("session %llu does not hold it", (unsigned long long)session);
    return 0;
}

static int setup(void **state)
{
    host_setup(state);
    maker = host_session(1);
    one = host_session(2);
    other = host_session(3);
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_bind(maker, buffer, "db", 0, 0), 0);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(host_check(maker), 0);
    return host_teardown(state);
}

static void exclusive_is_alone(void **state)
{
    char who[64];

    assert_int_equal(claim(one, HOLD_EXCLUSIVE), 0);
    assert_int_equal(kind_of(one), HOLD_EXCLUSIVE);
    assert_int_equal(claim(other, HOLD_EXCLUSIVE), STATUS_BUSY);
    (void)snprintf(who, sizeof(who), "session %llu of pid %d ", (unsigned long long)one, (int)getpid());
    assert_non_null(strstr(host_sentence, who));
    assert_int_equal(claim(other, HOLD_SHARED), STATUS_BUSY);
    /* who was refused got nothing, and who makes no claim is not asked */
    assert_int_equal(host_release(other, buffer), STATUS_STALE);
    assert_int_equal(claim(other, HOLD_PLAIN), 0);
    assert_int_equal(kind_of(other), HOLD_PLAIN);
    assert_int_equal(claim(other, HOLD_SHARED), STATUS_BUSY);
    assert_int_equal(kind_of(maker), HOLD_PLAIN);
}

static void shared_keeps_out_exclusive(void **state)
{
    assert_int_equal(claim(one, HOLD_SHARED), 0);
    assert_int_equal(claim(other, HOLD_SHARED), 0);
    assert_int_equal(claim(maker, HOLD_EXCLUSIVE), STATUS_BUSY);
    assert_int_equal(host_release(one, buffer), 0);
    assert_int_equal(claim(maker, HOLD_EXCLUSIVE), STATUS_BUSY);
    assert_int_equal(host_release(other, buffer), 0);
    assert_int_equal(claim(maker, HOLD_EXCLUSIVE), 0);
}

static void a_session_may_claim_again_and_more(void **state)
{
    assert_int_equal(claim(one, HOLD_SHARED), 0);
    assert_int_equal(claim(other, HOLD_SHARED), 0);
    assert_int_equal(claim(one, HOLD_EXCLUSIVE), STATUS_BUSY);
    assert_int_equal(kind_of(one), HOLD_SHARED);
    assert_int_equal(host_release(other, buffer), 0);
    assert_int_equal(claim(one, HOLD_EXCLUSIVE), 0);
    assert_int_equal(claim(one, HOLD_EXCLUSIVE), 0);
    assert_int_equal(claim(one, HOLD_SHARED), 0);
    assert_int_equal(kind_of(one), HOLD_EXCLUSIVE);
    /* it ends with the last of the four, and the buffer does not */
    for (int i = 0; i < 3; i++)
        assert_int_equal(host_release(one, buffer), 0);
    assert_int_equal(claim(other, HOLD_SHARED), STATUS_BUSY);
    assert_int_equal(host_release(one, buffer), 0);
    assert_int_equal(claim(other, HOLD_SHARED), 0);
    assert_int_equal(claim(one, HOLD_PLAIN), 0);
    assert_int_equal(kind_of(one), HOLD_PLAIN);
}

static void a_claim_ends_with_its_session(void **state)
{
    assert_int_equal(claim(one, HOLD_EXCLUSIVE), 0);
    assert_int_equal(CALL(one, op_goodbye), 0);
    /* at once, even if it takes turns of the loop to take the session apart */
    assert_int_equal(claim(other, HOLD_EXCLUSIVE), 0);
    host_settle();
    assert_int_equal(kind_of(other), HOLD_EXCLUSIVE);
}

static void a_lost_connection_ends_no_claim(void **state)
{
    assert_int_equal(claim(one, HOLD_EXCLUSIVE), 0);
    assert_int_equal(broker_connection_lost(host.broker, one, (void *)(uintptr_t)2), 0);
    assert_int_equal(claim(other, HOLD_EXCLUSIVE), STATUS_BUSY);
    assert_int_equal(kind_of(one), HOLD_EXCLUSIVE);
}

static void exclusive_needs_that_the_name_grants_writing(void **state)
{
    struct name_args args = {.buffer = buffer, .other_rights = RIGHT_READ};
    uint64_t reader = host_session_of(4, getpid(), 7001), writer = host_session_of(5, getpid(), 7001);
    char reading[64], writing[64];

    (void)snprintf(args.name, sizeof(args.name), "reading");
    assert_int_equal(CALL(maker, op_name_bind, &args), 0);
    (void)snprintf(args.name, sizeof(args.name), "writing");
    args.other_rights = RIGHT_READ | RIGHT_WRITE;
    assert_int_equal(CALL(maker, op_name_bind, &args), 0);
    (void)snprintf(reading, sizeof(reading), "uid:%u/reading", (unsigned)getuid());
    (void)snprintf(writing, sizeof(writing), "uid:%u/writing", (unsigned)getuid());
    assert_int_equal(claim_as(reader, HOLD_EXCLUSIVE, 0, reading), STATUS_NO_RIGHT);
    assert_int_equal(claim_as(reader, HOLD_SHARED, 0, reading), 0);
    assert_int_equal(claim_as(writer, HOLD_EXCLUSIVE, RIGHT_READ, writing), STATUS_BUSY);
    assert_int_equal(host_release(reader, buffer), 0);
    assert_int_equal(claim_as(writer, HOLD_EXCLUSIVE, RIGHT_READ, writing), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(exclusive_is_alone),
        TEST(shared_keeps_out_exclusive),
        TEST(a_session_may_claim_again_and_more),
        TEST(a_claim_ends_with_its_session),
        TEST(a_lost_connection_ends_no_claim),
        TEST(exclusive_needs_that_the_name_grants_writing),
    };

    return test_run(tests, NULL, NULL);
}
