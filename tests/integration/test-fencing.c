/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stale token, handle, name or session id fails at once with its own error and never opens another's memory.
 *
 * Each becomes stale in every way that there is, then what it stood for is made anew many times over, so that the
 * broker has used again whatever it uses again. It is the same if brokers die meanwhile.
 */
#include "tests/integration/clients.h"

#include <stdio.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"

#define SIZE (64 * KIB)

enum { AGAIN = 200 };

static bool brokers_die;

static void another_broker(struct broker_process *broker)
{
    if (brokers_die)
        broker_kill_child(broker);
}

/* Who came later: as many buffers, each with a token, a name and a handle of another user of the same broker. */
struct later {
    struct memclient_context *ctx;
    struct memclient_buffer *bufs[AGAIN];
    struct memclient_token tokens[AGAIN];
};

static void others_come(struct later *later, struct broker_process *broker)
{
    char name[32];

    another_broker(broker);
    later->ctx = broker_connect(broker);
    for (unsigned i = 0; i < AGAIN; i++) {
        assert_done(memclient_alloc(later->ctx, SIZE, NULL, &later->bufs[i]));
        assert_done(memclient_share(later->bufs[i], NULL, &later->tokens[i]));
        (void)snprintf(name, sizeof(name), "later/%u", i);
        assert_done(memclient_bind_name(later->bufs[i], name, NULL));
    }
    another_broker(broker);
}

/* Nobody has got at anything of theirs: each still has one holder. */
static void others_go(struct later *later)
{
    char name[32];

    for (unsigned i = 0; i < AGAIN; i++) {
        assert_int_equal(broker_info(later->bufs[i]).holds, 1);
        (void)snprintf(name, sizeof(name), "later/%u", i);
        assert_done(memclient_unbind_name(later->ctx, name));
        memclient_buffer_unref(later->bufs[i]);
    }
    memclient_context_close(later->ctx);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static struct memclient_token token_of(struct memclient_buffer *buf, uint32_t uses, uint64_t expiry_ms)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_token token;

    options.uses = uses;
    options.expiry_ms = expiry_ms;
    assert_done(memclient_share(buf, &options, &token));
    return token;
}

static void a_stale_token_fails_with_its_own_error(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *bearer = broker_connect(broker);
    struct memclient_token ended, revoked, used_up, expired, forged;
    struct memclient_buffer *buf, *kept, *opened;
    struct later later;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_alloc(ctx, SIZE, NULL, &kept));
    ended = token_of(buf, 0, 0);
    revoked = token_of(kept, 0, 0);
    used_up = token_of(kept, 1, 0);
    expired = token_of(kept, 0, 1);
    assert_done(memclient_revoke_token(ctx, &revoked));
    assert_done(memclient_open_token(bearer, &used_up, 0, &opened));
    memclient_buffer_unref(opened);
    memclient_buffer_unref(buf);
    assert_done(memclient_broker_ping(ctx)); /* what was given back before has arrived */
    others_come(&later, broker);

    assert_refused(memclient_open_token(bearer, &ended, 0, &opened), ESTALE);
    assert_refused(memclient_open_token(bearer, &revoked, 0, &opened), EKEYREVOKED);
    assert_refused(memclient_open_token(bearer, &used_up, 0, &opened), EKEYEXPIRED);
    assert_true(WAIT_UNTIL(memclient_open_token(bearer, &expired, 0, &opened) == -EKEYEXPIRED));
    /* an old secret with the serial of a token that lives, and the token of a broker that there is not */
    for (unsigned i = 0; i < AGAIN; i++) {
        forged = ended;
        memcpy(forged.bytes + 8, later.tokens[i].bytes + 8, 8);
        assert_refused(memclient_open_token(bearer, &forged, 0, &opened), EKEYREJECTED);
        forged = later.tokens[i];
        forged.bytes[0] ^= 1;
        assert_refused(memclient_open_token(bearer, &forged, 0, &opened), EREMOTE);
    }
    others_go(&later);
    memclient_buffer_unref(kept);
    memclient_context_close(bearer);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- handles and ids --------------------------------------------------------------------------------------------- */

static void a_stale_handle_fails_with_its_own_error(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf, *opened;
    struct memclient_token token;
    struct later later;
    uint64_t id;
    int fd = -1;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    id = memclient_buffer_id(buf);
    assert_done(memclient_destroy_id(ctx, id, 0));
    others_come(&later, broker);

    assert_refused(memclient_export_fd(buf, 0, &fd), ESTALE);
    assert_refused(memclient_share(buf, NULL, &token), ESTALE);
    assert_refused(memclient_bind_name(buf, "mine", NULL), ESTALE);
    assert_refused(memclient_publish(buf, 0), ESTALE);
    assert_refused(memclient_discard(buf, 0, 0), ESTALE);
    assert_refused(memclient_open_id(ctx, id, 0, &opened), ESTALE);
    assert_refused(memclient_destroy_id(ctx, id, 0), ESTALE);
    assert_int_equal(fd, -1);
    /* giving up what is gone takes nothing from anybody */
    memclient_buffer_unref(buf);
    others_go(&later);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void a_stale_name_fails_with_its_own_error(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *binder = broker_connect(broker);
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_buffer *buf, *opened;
    struct later later;

    assert_done(memclient_alloc(binder, SIZE, NULL, &buf));
    assert_done(memclient_bind_name(buf, "unbound", NULL));
    options.policy = MEMCLIENT_NAME_FREE;
    assert_done(memclient_bind_name(buf, "free", &options));
    options.policy = MEMCLIENT_NAME_KEEP_FOR;
    options.keep_ms = 1;
    assert_done(memclient_bind_name(buf, "keep-for", &options));
    assert_done(memclient_unbind_name(ctx, "unbound"));
    memclient_context_close(binder);
    memclient_buffer_unref(buf);
    others_come(&later, broker);

    assert_refused(memclient_open_name(ctx, "unbound", 0, &opened), ENOENT);
    assert_true(WAIT_UNTIL(broker_status(ctx).names == AGAIN));
    assert_refused(memclient_open_name(ctx, "free", 0, &opened), ENOENT);
    assert_refused(memclient_open_name(ctx, "keep-for", 0, &opened), ENOENT);
    assert_refused(memclient_unbind_name(ctx, "unbound"), ENOENT);
    assert_refused(memclient_claim_name(ctx, "unbound", 0, MEMCLIENT_CLAIM_EXCLUSIVE, &opened), ENOENT);
    others_go(&later);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

/* HELLO by hand, since the library never lets its secret out. The status. */
static uint32_t say_hello(int fd, uint64_t *session, uint8_t secret[MEMORYD_SECRET_SIZE])
{
    Memoryd__V1__HelloRequest request = MEMORYD__V1__HELLO_REQUEST__INIT;
    Memoryd__V1__HelloReply *answer;
    static struct raw_reply reply;
    uint8_t payload[128];

    request.session = *session;
    if (*session)
        request.secret = (ProtobufCBinaryData){MEMORYD_SECRET_SIZE, secret};
    raw_send(fd, METHOD_HELLO, payload, memoryd__v1__hello_request__pack(&request, payload), NULL, 0);
    raw_receive(fd, &reply);
    assert_true(reply.size > 0);
    if (reply.status)
        return reply.status;
    answer = memoryd__v1__hello_reply__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
    assert_non_null(answer);
    *session = answer->session;
    memcpy(secret, answer->secret.data, MEMORYD_SECRET_SIZE);
    memoryd__v1__hello_reply__free_unpacked(answer, NULL);
    return 0;
}

static void a_stale_session_id_fails_with_its_own_error(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    uint8_t secret[MEMORYD_SECRET_SIZE] = {0}, theirs[MEMORYD_SECRET_SIZE] = {0};
    uint64_t session = 0, living = 0;
    struct later later;
    int fd = raw_connect(broker), other = raw_connect(broker);

    assert_int_equal(say_hello(fd, &session, secret), 0);
    assert_int_equal(raw_call(fd, METHOD_GOODBYE, NULL, 0), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(say_hello(other, &living, theirs), 0);
    assert_int_not_equal(living, session);
    others_come(&later, broker);

    fd = raw_connect(broker);
    assert_int_equal(say_hello(fd, &session, secret), STATUS_STALE);
    assert_int_equal(close(fd), 0);
    /* the old secret opens no session that lives, and nothing was ever said of an id that was not given out */
    fd = raw_connect(broker);
    assert_int_equal(say_hello(fd, &living, secret), STATUS_SESSION_REJECTED);
    assert_int_equal(close(fd), 0);
    fd = raw_connect(broker);
    assert_int_equal(say_hello(fd, &(uint64_t){living + (UINT64_C(1) << 40)}, secret), STATUS_SESSION_REJECTED);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(other), 0);
    other = raw_connect(broker);
    assert_int_equal(say_hello(other, &living, theirs), 0);
    assert_true(raw_is_served(other));
    assert_int_equal(raw_call(other, METHOD_GOODBYE, NULL, 0), 0);
    assert_int_equal(close(other), 0);
    others_go(&later);
    broker_finish(broker);
}

#define ALSO_WHEN_BROKERS_DIE(test)                        \
    static void test##_also_when_brokers_die(void **state) \
    {                                                      \
        brokers_die = true;                                \
        test(state);                                       \
    }
ALSO_WHEN_BROKERS_DIE(a_stale_token_fails_with_its_own_error)
ALSO_WHEN_BROKERS_DIE(a_stale_handle_fails_with_its_own_error)
ALSO_WHEN_BROKERS_DIE(a_stale_name_fails_with_its_own_error)
ALSO_WHEN_BROKERS_DIE(a_stale_session_id_fails_with_its_own_error)

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_stale_token_fails_with_its_own_error),
        at_broker(a_stale_handle_fails_with_its_own_error),
        at_broker(a_stale_name_fails_with_its_own_error),
        at_broker(a_stale_session_id_fails_with_its_own_error),
        at_broker(a_stale_token_fails_with_its_own_error_also_when_brokers_die),
        at_broker(a_stale_handle_fails_with_its_own_error_also_when_brokers_die),
        at_broker(a_stale_name_fails_with_its_own_error_also_when_brokers_die),
        at_broker(a_stale_session_id_fails_with_its_own_error_also_when_brokers_die),
    };

    return test_run(tests, NULL, NULL);
}
