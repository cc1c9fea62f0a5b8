/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: a buffer with many tokens. They are worth nothing from the moment on that its life is over or they were revoked,
 * and go a few at a turn, while everybody else is served; and if the broker dies in between, the next one goes on.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "proto/status.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"
#include "tests/unit/broker/steps.h"

#define SIZE (UINT64_C(64) << 10)
#define MANY 3000

static const struct share_args plain = {.rights = RIGHT_READ};
static const struct share_args keeping = {.rights = RIGHT_READ, .flags = TOKEN_KEEPING, .uses = 1};

static uint8_t first[32], last[32];

static void make_tokens(uint64_t session, uint64_t buffer, const struct share_args *terms)
{
    assert_int_equal(host_share(session, buffer, terms, first), 0);
    for (unsigned i = 1; i < MANY; i++)
        assert_int_equal(host_share(session, buffer, terms, last), 0);
}

static struct buffer_info info_of(uint64_t session, uint64_t buffer)
{
    struct buffer_info info = {.id = 0};

    assert_int_equal(host_info(session, buffer, &info), 0);
    return info;
}

/* Some are left, none opens anything, and the sums are exact. */
static void assert_worthless(uint64_t admin, uint64_t buffer)
{
    assert_true(info_of(admin, buffer).tokens > 0);
    assert_int_equal(host_open(admin, first, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_open(admin, last, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_check(admin), 0);
}

static void tokens_end_with_their_buffer(void **state)
{
    uint64_t admin = host_session(1), buffer;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &plain);
    assert_int_equal(host_release(admin, buffer), 0);
    assert_int_equal(host_used(), SIZE);
    assert_worthless(admin, buffer);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_open(admin, last, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_check(admin), 0);
}

/* What kept it does so no more, and its maker may be gone. */
static void tokens_end_when_the_buffer_is_destroyed(void **state)
{
    uint64_t admin = host_session(1), maker = host_session(2), buffer;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    make_tokens(maker, buffer, &keeping);
    assert_int_equal(host_release(maker, buffer), 0);
    assert_int_equal(info_of(admin, buffer).state, BUFFER_LIVE);
    assert_int_equal(CALL(admin, op_destroy, buffer, false), 0);
    assert_worthless(admin, buffer);
    assert_int_equal(CALL(maker, op_goodbye), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

/* With the buffer they do not come back to life. */
static void tokens_stay_ended_when_the_buffer_is_imported_again(void **state)
{
    uint64_t admin = host_session(1), buffer, found;
    _cleanup_close_ int fd = -1;
    uint8_t token[32];

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &plain);
    fd = host_export(admin, buffer, RIGHT_READ);
    assert_int_equal(host_release(admin, buffer), 0);
    assert_int_equal(info_of(admin, buffer).state, BUFFER_DETACHED);
    assert_int_equal(host_import(admin, fd, &found), STATUS_BUSY);
    assert_worthless(admin, buffer);
    assert_true(HOST_UNTIL(host_import(admin, fd, &found) == 0));
    assert_int_equal(found, buffer);
    assert_int_equal(info_of(admin, buffer).state, BUFFER_LIVE);
    assert_int_equal(info_of(admin, buffer).tokens, 0);
    assert_int_equal(host_open(admin, first, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_open(admin, last, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_share(admin, buffer, &plain, token), 0);
    assert_int_equal(host_open(admin, token, 0, NULL), 0);
    assert_int_equal(host_release(admin, buffer), 0);
    assert_int_equal(host_release(admin, buffer), 0);
    fd = fd_close(fd);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

/* Its last descriptor goes while they do. */
static void tokens_may_outlast_the_last_descriptor(void **state)
{
    uint64_t admin = host_session(1), buffer;
    int fd;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &plain);
    fd = host_export(admin, buffer, RIGHT_READ);
    assert_int_equal(host_release(admin, buffer), 0);
    assert_int_equal(info_of(admin, buffer).state, BUFFER_DETACHED);
    assert_ok(close(fd));
    host_turn(0);
    assert_worthless(admin, buffer);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

/* The broker ends first. */
static void tokens_end_with_the_broker(void **state)
{
    uint64_t admin = host_session(1), buffer;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &plain);
    assert_int_equal(host_release(admin, buffer), 0);
    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &keeping);
}

static int begin_to_revoke(struct call *call, uint64_t session, uint64_t buffer, uint32_t *revoked)
{
    const struct revoke_args args = {.buffer = buffer};

    call_init(call, session);
    return op_revoke(&call->op, &args, revoked);
}

/* All that there were when it was asked for, and none that is made while that goes on. */
static void all_are_revoked(void **state)
{
    uint64_t admin = host_session(1), buffer;
    static struct call call;
    uint32_t revoked = 0;
    uint8_t later[32];

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &keeping);
    assert_int_equal(begin_to_revoke(&call, admin, buffer, &revoked), OP_PENDING);
    assert_int_equal(host_share(admin, buffer, &plain, later), 0);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    assert_int_equal(revoked, MANY);
    assert_int_equal(info_of(admin, buffer).tokens, 1);
    assert_int_equal(host_open(admin, first, 0, NULL), STATUS_TOKEN_REVOKED);
    assert_int_equal(host_open(admin, last, 0, NULL), STATUS_TOKEN_REVOKED);
    assert_int_equal(host_open(admin, later, 0, NULL), 0);
    assert_int_equal(host_check(admin), 0);
}

/* Nothing else keeps it: it ends with the last of them, and the operation ends, too. */
static void the_buffer_may_end_of_it(void **state)
{
    uint64_t admin = host_session(1), buffer;
    static struct call call;
    uint32_t revoked = 0;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(admin, buffer, &keeping, last), 0);
    make_tokens(admin, buffer, &plain);
    assert_int_equal(host_release(admin, buffer), 0);
    assert_int_equal(info_of(admin, buffer).state, BUFFER_LIVE);
    assert_int_equal(call_finish(&call, begin_to_revoke(&call, admin, buffer, &revoked)), 0);
    assert_int_equal(revoked, 1);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

static void its_session_may_end_meanwhile(void **state)
{
    uint64_t admin = host_session(1), other = host_session(2), buffer;
    static struct call call;
    uint32_t revoked = 0;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    make_tokens(admin, buffer, &plain);
    assert_int_equal(begin_to_revoke(&call, other, buffer, &revoked), OP_PENDING);
    assert_int_equal(CALL(other, op_goodbye), 0);
    assert_true(HOST_UNTIL(call.ended));
    assert_int_not_equal(call.status, 0);
    assert_true(info_of(admin, buffer).tokens > 0);
    assert_int_equal(host_check(admin), 0);
}

/* ---- a broker that dies ------------------------------------------------------------------------------------------ */

/* Two that are over, the second with a descriptor outside, and some of their tokens are gone. */
static void begin_to_end(void)
{
    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(host_alloc(shared->sessions[0], SIZE, 0, &shared->buffers[i]), 0);
        make_tokens(shared->sessions[0], shared->buffers[i], &plain);
    }
    (void)host_export(shared->sessions[0], shared->buffers[1], RIGHT_READ);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(host_release(shared->sessions[0], shared->buffers[i]), 0);
    memcpy(shared->token, last, sizeof(shared->token));
    host_turn(0);
    for (unsigned i = 0; i < 2; i++)
        assert_true(info_of(shared->sessions[0], shared->buffers[i]).tokens > 0);
    broker_commit(host.broker);
}

static void the_next_broker_goes_on(void **state)
{
    uint64_t observer;

    generation_run(begin_to_end);
    generation_adopt();
    assert_int_equal(host_status, 0);
    observer = host_session_of(9, keeper_test, getuid());
    assert_int_equal(host_open(observer, shared->token, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_check(observer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(observer), 0);
    generation_finish();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
    const struct CMUnitTest tests[] = {
        TEST(tokens_end_with_their_buffer),
        TEST(tokens_end_when_the_buffer_is_destroyed),
        TEST(tokens_stay_ended_when_the_buffer_is_imported_again),
        TEST(tokens_may_outlast_the_last_descriptor),
        TEST(tokens_end_with_the_broker),
        TEST(all_are_revoked),
        TEST(the_buffer_may_end_of_it),
        TEST(its_session_may_end_meanwhile),
        cmocka_unit_test_setup_teardown(the_next_broker_goes_on, steps_set_up, steps_tear_down),
    };

    return test_run(tests, NULL, NULL);
}
