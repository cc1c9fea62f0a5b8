/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who touches a page first pays for it, if only to read it. So a program that may have memory at its own cost takes it,
 * leaves no page in it, and hands it to others: who maps it and reads it would pay. The broker gives them no descriptor
 * of it, also not the next broker; nor does it pay itself, when the buffer is moved.
 */
#include "tests/integration/clients.h"

#include <stdlib.h>

#define SIZE (4 * MIB)

struct giving {
    const char *socket;
    struct memclient_token token;
};

static const char config[] = "[pool own]\nnodes = 0\ncapacity = 64M\ncharge = client\n";

/* Another user, each time that it is told to: -errno of what it gets. */
static void be_given(int channel, void *context)
{
    const struct giving *giving = context;
    struct memclient_context *ctx;
    char go;

    if (geteuid() == 0)
        become(UID_STRANGER);
    ctx = broker_connect_in_child(giving->socket);
    while (take_bytes(channel, &go, 1) && go) {
        struct memclient_buffer *buf;
        int r = memclient_open_token(ctx, &giving->token, MEMCLIENT_READ, &buf);

        if (!r)
            memclient_buffer_unref(buf);
        else
            CHECK(strstr(memclient_error(), "charge = client"));
        CHECK(pass_bytes(channel, &r, sizeof(r)));
    }
    memclient_context_close(ctx);
}

static int tries(struct child *child)
{
    char go = 1;
    int r = 0;

    assert_true(pass_bytes(child->channel, &go, 1));
    assert_true(take_bytes(child->channel, &r, sizeof(r)));
    return r;
}

static void I7_nobody_pays_for_what_another_left_untouched(void **state)
{
    struct broker_process *broker = broker_for_test(config);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct giving giving = {.socket = broker->socket};
    struct memclient_buffer *buf;
    struct child child;
    char end = 0;
    int fd;

    options.pool = "own";
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_done(memclient_share(buf, NULL, &giving.token));
    child_start(&child, be_given, &giving);
    assert_int_equal(tries(&child), 0);
    /* all of it, and a single page */
    assert_ok(memfd_punch(fd, 0, SIZE));
    assert_int_equal(tries(&child), -EBUSY);
    assert_refused(memclient_move(buf, 0), EBUSY);
    assert_int_equal(memfd_allocated(fd), 0);
    assert_ok(fallocate(fd, 0, 0, SIZE - page_size()));
    assert_int_equal(tries(&child), -EBUSY);
    broker_kill_child(broker);
    assert_int_equal(tries(&child), -EBUSY);
    assert_int_equal(memfd_allocated(fd), SIZE - page_size());
    assert_ok(fallocate(fd, 0, 0, SIZE));
    assert_int_equal(tries(&child), 0);
    assert_true(pass_bytes(child.channel, &end, 1));
    child_finish(&child);
    close(fd);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I7_nobody_pays_for_what_another_left_untouched),
    };

    return test_run(tests, NULL, NULL);
}
