/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the broker did not make goes from process to process by it: a descriptor that one hands in reaches
 * another, which has said that it takes such, over the deaths of brokers and of who handed it in.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>

#include "proto/methods.h"
#include "proto/status.h"

#define SIZE (100 * KIB)

static int device_memory(void)
{
    int fd = memfd_create("device", MFD_CLOEXEC);

    CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0);
    CHECK(pwrite(fd, "frame 1", 8, 0) == 8);
    return fd;
}

static bool says(int fd, const char *text)
{
    char here[8] = "";

    return pread(fd, here, sizeof(here), 0) == sizeof(here) && !strcmp(here, text);
}

static struct memclient_buffer *adopt(struct memclient_context *ctx)
{
    struct memclient_buffer *buf;
    int fd = device_memory();

    assert_done(memclient_adopt_fd(ctx, fd, &buf));
    close(fd);
    return buf;
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

struct guest {
    const char *socket;
    uid_t uid; /* whom to become; 0 = as the test */
    bool refused;
};

/* Opens what it is given, answers in it, and stays until it hears. */
static void take_it(int channel, void *context)
{
    const struct guest *guest = context;
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    int fd;

    if (guest->uid)
        become(guest->uid);
    CHECK(take_bytes(channel, &token, sizeof(token)));
    ctx = broker_connect_in_child(guest->socket);
    CHECK_REFUSED(memclient_open_token(ctx, &token, 0, &buf), guest->refused ? EACCES : EOPNOTSUPP);
    if (guest->refused) {
        CHECK_REFUSED(memclient_open_token(ctx, &token, MEMCLIENT_ACCEPT_FOREIGN, &buf), EACCES);
    } else {
        CHECK_DONE(memclient_open_token(ctx, &token, MEMCLIENT_ACCEPT_FOREIGN, &buf));
        CHECK(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_FOREIGN);
        CHECK_DONE(memclient_export_fd(buf, 0, &fd));
        CHECK(says(fd, "frame 1"));
        CHECK(pwrite(fd, "frame 2", 8, 0) == 8);
        tell(channel);
        hear(channel);
        CHECK(says(fd, "frame 2"));
        memclient_buffer_unref(buf);
    }
    memclient_context_close(ctx);
}

static void hand_it_to(struct broker_process *broker, struct guest *guest, const struct memclient_share_options *terms)
{
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct memclient_token token;
    struct child child;
    int fd;

    guest->socket = broker->socket;
    child_start(&child, take_it, guest);
    buf = adopt(ctx);
    assert_done(memclient_share(buf, terms, &token));
    assert_true(pass_bytes(child.channel, &token, sizeof(token)));
    if (!guest->refused) {
        child_hear(&child);
        assert_done(memclient_export_fd(buf, 0, &fd));
        assert_true(says(fd, "frame 2"));
        close(fd);
        child_tell(&child);
    }
    child_finish(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void another_process_gets_it(void **state)
{
    hand_it_to(broker_for_test(NULL), &(struct guest){.uid = 0}, NULL);
}

static void another_user_gets_it_by_a_token(void **state)
{
    hand_it_to(broker_for_test_as(UID_BROKER, NULL), &(struct guest){.uid = UID_STRANGER}, NULL);
}

static void a_token_for_somebody_is_for_nobody_else(void **state)
{
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;

    terms.flags = MEMCLIENT_TOKEN_ONLY_UID;
    terms.uid = 4711;
    hand_it_to(broker_for_test_as(UID_BROKER, NULL), &(struct guest){.uid = UID_STRANGER, .refused = true}, &terms);
}

static void hand_in_and_die(int channel, void *context)
{
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_token tokens[2];
    struct memclient_buffer *buf;
    int fd = device_memory();

    CHECK_DONE(memclient_adopt_fd(ctx, fd, &buf));
    CHECK_DONE(memclient_share(buf, NULL, &tokens[0]));
    terms.flags = MEMCLIENT_TOKEN_KEEPING;
    terms.uses = 1;
    CHECK_DONE(memclient_adopt_fd(ctx, fd, &buf));
    CHECK_DONE(memclient_share(buf, &terms, &tokens[1]));
    CHECK(pass_bytes(channel, tokens, sizeof(tokens)));
    hear(channel);
}

/* A keeping token keeps it after its maker, and another does not, as of any buffer. */
static void imported_memory_outlives_its_importer(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct memclient_token tokens[2];
    struct child child;
    int fd;

    child_start(&child, hand_in_and_die, broker->socket);
    assert_true(take_bytes(child.channel, tokens, sizeof(tokens)));
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 1));
    broker_kill_child(broker);
    assert_refused(memclient_open_token(ctx, &tokens[0], MEMCLIENT_ACCEPT_FOREIGN, &buf), ESTALE);
    assert_done(memclient_open_token(ctx, &tokens[1], MEMCLIENT_ACCEPT_FOREIGN, &buf));
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_true(says(fd, "frame 1"));
    close(fd);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

static void imported_memory_outlives_brokers(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer_info before, after;
    struct memclient_buffer *buf = adopt(ctx), *again;
    int fd;

    assert_done(memclient_bind_name(buf, "camera/left", NULL));
    before = broker_info(buf);
    assert_int_equal(before.bytes, 0);
    assert_int_equal(before.length, SIZE);
    assert_string_equal(before.pool, "");
    assert_true(before.flags & MEMCLIENT_BUFFER_FOREIGN);
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            broker_kill_child(broker);
        else
            assert_done(memclient_broker_upgrade(ctx));
        after = broker_info(buf);
        /* the next broker does not know how long */
        assert_int_equal(after.holder_since_ms[0], 0);
        after.holder_since_ms[0] = before.holder_since_ms[0];
        assert_memory_equal(&before, &after, sizeof(before));
        assert_done(memclient_export_fd(buf, 0, &fd));
        assert_true(says(fd, "frame 1"));
        close(fd);
    }
    assert_int_equal(broker_status(ctx).quarantined, 0);
    broker_check(broker);
    memclient_buffer_unref(buf);
    assert_refused(memclient_open_name(ctx, "camera/left", 0, &again), EOPNOTSUPP);
    assert_sentence("foreign");
    assert_done(memclient_open_name(ctx, "camera/left", MEMCLIENT_ACCEPT_FOREIGN, &again));
    assert_int_equal(memclient_buffer_id(again), before.id);
    memclient_buffer_unref(again);
    assert_done(memclient_open_id(ctx, before.id, MEMCLIENT_ACCEPT_FOREIGN, &again));
    assert_done(memclient_destroy_id(ctx, before.id, 0));
    assert_refused(memclient_export_fd(again, 0, &fd), ESTALE);
    memclient_buffer_unref(again);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- what it cannot ---------------------------------------------------------------------------------------------- */

static void calls_only_for_the_brokers_own_memory_are_refused(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = adopt(ctx), *other;
    struct memclient_reservation *res;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *p;
    int fd;

    assert_refused(memclient_map(buf, NULL, &p), EOPNOTSUPP);
    assert_sentence("export");
    assert_done(memclient_reserve(ctx, MIB, NULL, &res));
    options.address = memclient_reservation_address(res);
    assert_refused(memclient_map(buf, &options, &p), EOPNOTSUPP);
    assert_refused(memclient_publish(buf, 0), EOPNOTSUPP);
    assert_refused(memclient_discard(buf, 0, 0), EOPNOTSUPP);
    assert_refused(memclient_move(buf, 0), EOPNOTSUPP);
    assert_refused(memclient_export_fd(buf, MEMCLIENT_READ, &fd), EACCES);
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_refused(memclient_import_fd(ctx, fd, &other), EREMOTE);
    close(fd);
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void descriptors_of_no_memory_are_refused(void **state)
{
    struct broker_process *broker = broker_for_test("[limits]\nuid_buffers = 2\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[2], *buf;
    int pair[2], fd;

    assert_refused(memclient_adopt_fd(ctx, -1, &buf), EBADF);
    assert_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    assert_refused(memclient_adopt_fd(ctx, pair[0], &buf), EOPNOTSUPP);
    close(pair[0]);
    close(pair[1]);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_refused(memclient_adopt_fd(ctx, fd, &buf), EOPNOTSUPP);
    assert_sentence("dma-buf");
    close(fd);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &bufs[0]));
    assert_done(memclient_export_fd(bufs[0], 0, &fd));
    assert_refused(memclient_adopt_fd(ctx, fd, &buf), EINVAL);
    assert_sentence("import");
    close(fd);
    bufs[1] = adopt(ctx);
    fd = device_memory();
    assert_refused(memclient_adopt_fd(ctx, fd, &buf), EDQUOT);
    close(fd);
    memclient_buffer_unref(bufs[0]);
    memclient_buffer_unref(bufs[1]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void packets_that_are_none(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    int client = raw_client(broker);

    assert_int_equal(raw_call(client, METHOD_ADOPT, NULL, 0), STATUS_INVALID_ARGUMENT);
    close(client);
    /* the session that holds it is never at an end while this process lives: the teardown ends the broker */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(another_process_gets_it),
        at_broker(another_user_gets_it_by_a_token),
        at_broker(a_token_for_somebody_is_for_nobody_else),
        at_broker(imported_memory_outlives_its_importer),
        at_broker(imported_memory_outlives_brokers),
        at_broker(calls_only_for_the_brokers_own_memory_are_refused),
        at_broker(descriptors_of_no_memory_are_refused),
        at_broker(packets_that_are_none),
    };

    return test_run(tests, NULL, NULL);
}
