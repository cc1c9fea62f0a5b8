/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I3, identity is the kernel's: who a client is is not what it says, a token for somebody is for nobody else, and a
 * session is resumed by its own process only, whoever knows its secret.
 */
#include "tests/integration/clients.h"

#include <grp.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

struct guest {
    const char *socket;
    uid_t uid;   /* whom to become; 0 = as the test */
    gid_t group; /* a supplementary group to take; 0 = none */
};

static void try_token(int channel, void *context)
{
    const struct guest *guest = context;
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    int r;

    if (guest->uid != 0)
        become(guest->uid);
    else if (guest->group != 0)
        CHECK(setgroups(1, &guest->group) == 0);
    ctx = broker_connect_in_child(guest->socket);
    CHECK(take_bytes(channel, &token, sizeof(token)));
    r = memclient_open_token(ctx, &token, 0, &buf);
    CHECK(pass_bytes(channel, &r, sizeof(r)));
    if (r == 0)
        memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

/* What opening says to the guest, who has a pid of his own already. */
static int opened_by(struct child *child, struct memclient_buffer *buf, const struct memclient_share_options *terms)
{
    struct memclient_token token;
    int r;

    assert_done(memclient_share(buf, terms, &token));
    assert_true(pass_bytes(child->channel, &token, sizeof(token)));
    assert_true(take_bytes(child->channel, &r, sizeof(r)));
    child_finish(child);
    return r;
}

static int opened_by_guest(struct broker_process *broker, struct memclient_buffer *buf, uid_t uid, gid_t group,
                           const struct memclient_share_options *terms)
{
    struct guest guest = {broker->socket, uid, group};
    struct child child;

    child_start(&child, try_token, &guest);
    return opened_by(&child, buf, terms);
}

static void I3_a_token_for_a_process_is_for_no_other(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect(broker);
    struct guest guest = {broker->socket, 0, 0};
    struct memclient_buffer *buf;
    struct child first, second;

    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    child_start(&first, try_token, &guest);
    child_start(&second, try_token, &guest);
    terms.flags = MEMCLIENT_TOKEN_ONLY_PID;
    terms.pid = first.pid;
    assert_int_equal(opened_by(&second, buf, &terms), -EACCES);
    assert_int_equal(opened_by(&first, buf, &terms), 0);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I3_a_token_for_a_user_or_group_is_for_no_other(void **state)
{
    enum { GROUP = 61003 };
    struct broker_process *broker;
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    test_needs_root();
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    terms.flags = MEMCLIENT_TOKEN_ONLY_UID;
    terms.uid = UID_STRANGER;
    assert_int_equal(opened_by_guest(broker, buf, UID_BROKER, 0, &terms), -EACCES);
    assert_int_equal(opened_by_guest(broker, buf, UID_STRANGER, 0, &terms), 0);
    terms = (struct memclient_share_options)MEMCLIENT_SHARE_OPTIONS_INIT;
    terms.flags = MEMCLIENT_TOKEN_ONLY_GID;
    terms.gid = UID_STRANGER; /* become() takes the group of the same number */
    assert_int_equal(opened_by_guest(broker, buf, UID_BROKER, 0, &terms), -EACCES);
    assert_int_equal(opened_by_guest(broker, buf, UID_STRANGER, 0, &terms), 0);
    terms.gid = GROUP; /* a supplementary one is as good */
    assert_int_equal(opened_by_guest(broker, buf, UID_STRANGER, 0, &terms), -EACCES);
    assert_int_equal(opened_by_guest(broker, buf, 0, GROUP, &terms), 0);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What is another user's: neither his names nor his ids nor his sessions. */
static int see_nothing(const struct memclient_session_info *session, void *data)
{
    (void)data;
    CHECK(session->uid == geteuid());
    return 0;
}

static void look_at_others(int channel, void *context)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    uint64_t id;

    become(UID_STRANGER);
    ctx = broker_connect_in_child(context);
    CHECK(take_bytes(channel, &id, sizeof(id)));
    CHECK_REFUSED(memclient_open_name(ctx, "uid:0/mine", 0, &buf), EACCES);
    CHECK_DONE(memclient_open_name(ctx, "uid:0/shown", 0, &buf));
    CHECK(memclient_buffer_rights(buf) == MEMCLIENT_READ);
    memclient_buffer_unref(buf);
    CHECK_REFUSED(memclient_open_name(ctx, "uid:0/shown", MEMCLIENT_WRITE, &buf), EACCES);
    CHECK_REFUSED(memclient_open_name(ctx, "mine", 0, &buf), ENOENT);
    CHECK_REFUSED(memclient_unbind_name(ctx, "uid:0/mine"), EACCES);
    CHECK_REFUSED(memclient_open_id(ctx, id, 0, &buf), EACCES);
    CHECK_REFUSED(memclient_destroy_id(ctx, id, 0), EACCES);
    CHECK(memclient_destroy_id(ctx, id, MEMCLIENT_DESTROY_FORCE) < 0);
    CHECK_REFUSED(memclient_broker_check(ctx, &result), EPERM);
    CHECK_DONE(memclient_list_sessions(ctx, see_nothing, NULL));
    memclient_context_close(ctx);
}

static void I3_what_is_anothers_is_out_of_reach(void **state)
{
    struct memclient_name_options shown = MEMCLIENT_NAME_OPTIONS_INIT;
    struct broker_process *broker;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct child child;
    uint64_t id;

    test_needs_root();
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    assert_done(memclient_bind_name(buf, "mine", NULL));
    shown.other_rights = MEMCLIENT_READ;
    assert_done(memclient_bind_name(buf, "shown", &shown));
    child_start(&child, look_at_others, broker->socket);
    id = memclient_buffer_id(buf);
    assert_true(pass_bytes(child.channel, &id, sizeof(id)));
    child_finish(&child);
    assert_done(memclient_unbind_name(ctx, "mine"));
    assert_done(memclient_unbind_name(ctx, "shown"));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- what a client says of itself -------------------------------------------------------------------------------- */

struct claim {
    const char *socket;
    const char *program;
};

static void claim_to_be_another(int channel, void *context)
{
    const struct claim *claim = context;
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx;

    options.socket = claim->socket;
    options.program = claim->program;
    CHECK_DONE(memclient_context_open(&options, &ctx));
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

struct wanted_session {
    const char *program;
    pid_t pid;
    bool seen;
};

static int find_session(const struct memclient_session_info *session, void *data)
{
    struct wanted_session *wanted = data;

    if (strcmp(session->program, wanted->program) == 0) {
        wanted->seen = true;
        assert_int_equal(session->pid, wanted->pid);
        assert_int_equal(session->uid, geteuid());
        assert_int_equal(session->gid, getegid());
    }
    return 0;
}

static void I3_a_claimed_name_is_shown_beside_the_kernels_word(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct claim claim = {broker->socket, "pid 1, init, uid 0"};
    struct wanted_session wanted = {.program = claim.program};
    struct child child;

    child_start(&child, claim_to_be_another, &claim);
    child_hear(&child);
    wanted.pid = child.pid;
    assert_done(memclient_list_sessions(ctx, find_session, &wanted));
    assert_true(wanted.seen);
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

struct secret {
    struct broker_process *broker;
    uint64_t session;
    uint8_t bytes[16];
};

/* HELLO by hand, since the library never lets its secret out. The status; the secret if it began a session. */
static uint32_t say_hello(int fd, struct secret *secret)
{
    Memoryd__V1__HelloRequest request = MEMORYD__V1__HELLO_REQUEST__INIT;
    Memoryd__V1__HelloReply *answer;
    static struct raw_reply reply;
    uint8_t payload[128];
    char nobody[] = "";
    size_t size;

    request.program = nobody;
    request.session = secret->session;
    if (secret->session != 0)
        request.secret = (ProtobufCBinaryData){sizeof(secret->bytes), secret->bytes};
    size = memoryd__v1__hello_request__pack(&request, payload);
    raw_send(fd, METHOD_HELLO, payload, size, NULL, 0);
    raw_receive(fd, &reply);
    if (reply.size <= 0)
        return UINT32_MAX;
    if (reply.status != 0)
        return reply.status;
    answer = memoryd__v1__hello_reply__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
    if (answer == NULL || answer->secret.len != sizeof(secret->bytes))
        return UINT32_MAX;
    if (secret->session == 0) {
        secret->session = answer->session;
        memcpy(secret->bytes, answer->secret.data, sizeof(secret->bytes));
    } else if (answer->session != secret->session) {
        return UINT32_MAX;
    }
    memoryd__v1__hello_reply__free_unpacked(answer, NULL);
    return 0;
}

static void resume_as_a_child(int channel, void *context)
{
    struct secret secret = *(struct secret *)context;
    int fd = raw_connect(secret.broker);

    (void)channel;
    CHECK(say_hello(fd, &secret) == STATUS_SESSION_REJECTED);
    close(fd);
}

static void resume_as_a_stranger(int channel, void *context)
{
    become(UID_STRANGER);
    resume_as_a_child(channel, context);
}

static void I3_only_its_own_process_resumes_a_session(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct secret secret = {.broker = broker}, wrong;
    int fd = raw_connect(broker);

    assert_int_equal(say_hello(fd, &secret), 0);
    /* while it is connected, and when it is not */
    child_run(resume_as_a_child, &secret);
    close(fd);
    child_run(resume_as_a_child, &secret);
    if (geteuid() == 0)
        child_run(resume_as_a_stranger, &secret);
    fd = raw_connect(broker);
    wrong = secret;
    wrong.bytes[15] ^= 1;
    assert_int_equal(say_hello(fd, &wrong), STATUS_SESSION_REJECTED);
    wrong = secret;
    wrong.session += 1000;
    assert_int_equal(say_hello(fd, &wrong), STATUS_SESSION_REJECTED);
    assert_int_equal(say_hello(fd, &secret), 0);
    assert_true(raw_is_served(fd));
    assert_int_equal(raw_call(fd, METHOD_GOODBYE, NULL, 0), 0);
    close(fd);
    /* ended is ended */
    fd = raw_connect(broker);
    assert_int_equal(say_hello(fd, &secret), STATUS_STALE);
    close(fd);
    broker_finish(broker);
}

/* Asks for buffers, some of which a worker makes, and for more than there is, without a bound; reads no answer. */
static void ask_for_much(int fd)
{
    static const uint64_t sizes[] = {UINT64_C(96) << 20, 65536, UINT64_C(32) << 20};
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint8_t payload[128];

    request.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    request.n_sizes = 1;
    for (size_t i = 0; i < 3; i++) {
        uint64_t size = sizes[i];

        request.sizes = &size;
        raw_send(fd, METHOD_ALLOC, payload, memoryd__v1__alloc_request__pack(&request, payload), NULL, 0);
    }
    for (size_t i = 0; i < 8; i++) {
        uint64_t size = UINT64_C(200) << 20;

        request.wait_ms = UINT64_MAX;
        request.sizes = &size;
        raw_send(fd, METHOD_ALLOC, payload, memoryd__v1__alloc_request__pack(&request, payload), NULL, 0);
    }
}

static void requests_under_way_end_with_their_session(void **state)
{
    struct broker_process *broker = broker_for_test("[pools]\ncapacity = 256M\n");
    int fd = raw_client(broker);

    ask_for_much(fd);
    raw_send(fd, METHOD_GOODBYE, NULL, 0, NULL, 0);
    raw_send_if_open(fd, METHOD_PING);
    assert_true(raw_has_ended(fd));
    close(fd);
    broker_finish(broker);
}

static void I6_a_session_goes_on_beside_what_its_old_connection_asked(void **state)
{
    struct broker_process *broker = broker_for_test("[pools]\ncapacity = 256M\n");
    struct secret secret = {.broker = broker};
    int old = raw_connect(broker), fd;

    assert_int_equal(say_hello(old, &secret), 0);
    for (unsigned i = 0; i < 5; i++) {
        ask_for_much(old);
        fd = raw_connect(broker);
        assert_int_equal(say_hello(fd, &secret), 0);
        assert_true(raw_has_ended(old));
        assert_true(raw_is_served(fd));
        close(old);
        old = fd;
    }
    broker_check(broker);
    assert_int_equal(raw_call(old, METHOD_GOODBYE, NULL, 0), 0);
    close(old);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I3_a_token_for_a_process_is_for_no_other),
        at_broker(I3_a_token_for_a_user_or_group_is_for_no_other),
        at_broker(I3_what_is_anothers_is_out_of_reach),
        at_broker(I3_a_claimed_name_is_shown_beside_the_kernels_word),
        at_broker(I3_only_its_own_process_resumes_a_session),
        at_broker(requests_under_way_end_with_their_session),
        at_broker(I6_a_session_goes_on_beside_what_its_old_connection_asked),
    };

    return test_run(tests, NULL, NULL);
}
