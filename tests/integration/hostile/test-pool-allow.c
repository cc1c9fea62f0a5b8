/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that is not for everybody, and who wants to allocate from it all the same: another user, who says nothing
 * about itself that the broker would believe (I3); a process in a control group that only looks like the one; one that
 * was moved away.
 */
#include "tests/integration/clients.h"
#include "tests/support/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define UID_FRIEND UID_BROKER

struct user {
    const char *socket;
    uid_t uid;
};

struct rights {
    int by_name; /* what an allocation from the pool comes to: 0, or -errno */
    int by_rest; /* what one that names no pool comes to */
    uint64_t available;
};

static int find_pool(const struct memclient_pool_info *pool, void *data)
{
    if (!strcmp(pool->name, "fast")) {
        CHECK(!strncmp(pool->allow, "user:61001 ", 11) || !strncmp(pool->allow, "cgroup:", 7) ||
              !strncmp(pool->allow, "unit:", 5));
        ((struct rights *)data)->available = pool->available;
    }
    return 0;
}

static int allocate(struct memclient_context *ctx, const char *pool)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    int r;

    options.pool = pool;
    r = memclient_alloc(ctx, 4096, &options, &buf);
    if (!r)
        memclient_buffer_unref(buf);
    return r;
}

/* Tries each time that it is told to, in one session. */
static void be_user(int channel, void *context)
{
    const struct user *user = context;
    struct memclient_context *ctx;
    char byte;

    become(user->uid);
    ctx = broker_connect_in_child(user->socket);
    while (take_bytes(channel, &byte, 1) && byte) {
        struct rights rights = {.by_name = allocate(ctx, "fast")};

        if (rights.by_name)
            CHECK(strstr(memclient_error(), "allow in [pool fast]"));
        rights.by_rest = allocate(ctx, NULL);
        CHECK_DONE(memclient_list_pools(ctx, find_pool, &rights));
        CHECK(pass_bytes(channel, &rights, sizeof(rights)));
    }
    memclient_context_close(ctx);
}

static void assert_may(struct child *child, bool may)
{
    struct rights rights;
    char go = 1;

    assert_true(pass_bytes(child->channel, &go, 1));
    assert_true(take_bytes(child->channel, &rights, sizeof(rights)));
    assert_int_equal(rights.by_name, may ? 0 : -EACCES);
    assert_int_equal(rights.by_rest, 0);
    assert_true((rights.available != 0) == may);
}

static void let_go(struct child *child)
{
    char end = 0;

    assert_true(pass_bytes(child->channel, &end, 1));
    child_finish(child);
}

/* ---- by user and group ------------------------------------------------------------------------------------------- */

static void I3_a_pool_for_a_user_is_for_no_other(void **state)
{
    struct user friend = {.uid = UID_FRIEND}, stranger = {.uid = UID_STRANGER};
    struct broker_process *broker;
    struct memclient_reload_result *result;
    struct child a, b;
    struct memclient_context *ctx;
    FILE *f;

    test_needs_root();
    broker = broker_for_test("[pool fast]\nnodes = 0\nallow = user:61001 group:60007\n");
    friend.socket = stranger.socket = broker->socket;
    child_start(&a, be_user, &friend);
    child_start(&b, be_user, &stranger);
    assert_may(&a, true);
    assert_may(&b, false);
    /* root neither, and what is there already is nobody else's to take */
    ctx = broker_connect(broker);
    assert_int_equal(allocate(ctx, "fast"), -EACCES);
    assert_sentence("not for uid 0");
    /* a reload puts another list in force, for those that are connected */
    f = fopen(broker->config, "we");
    assert_non_null(f);
    fprintf(f, "[pools]\npages = base\n[arena]\nbase = 0x566000000000\nsize = 128G\n[pool fast]\nnodes = 0\n"
               "allow = user:61001 user:nobody-has-this-name group:61002\n");
    assert_int_equal(fclose(f), 0);
    result = calloc(1, sizeof(*result));
    assert_non_null(result);
    result->size = sizeof(*result);
    assert_done(memclient_broker_reload(ctx, result));
    free(result);
    assert_may(&a, true);
    assert_may(&b, true); /* become() takes the group of the same number */
    assert_true(broker_said(broker, "this machine has no user \"nobody-has-this-name\""));
    let_go(&a);
    let_go(&b);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- by control group and unit ----------------------------------------------------------------------------------- */

static void I3_a_pool_for_a_control_group_is_for_those_that_are_in_it(void **state)
{
    struct user stranger = {.uid = UID_STRANGER};
    struct broker_process *broker;
    char config[320], path[256];
    struct child child;

    test_needs_root();
    cgroup_begin("");
    cgroup_make("in");
    cgroup_make("in/below");
    cgroup_make("inner");
    snprintf(config, sizeof(config), "[pool fast]\nnodes = 0\nallow = cgroup:%s\n", cgroup_path("in", path));
    broker = broker_for_test(config);
    stranger.socket = broker->socket;
    child_start(&child, be_user, &stranger);
    assert_may(&child, false);
    assert_true(cgroup_put("in", child.pid));
    assert_may(&child, true);
    assert_true(cgroup_put("in/below", child.pid));
    assert_may(&child, true);
    assert_true(cgroup_put("inner", child.pid));
    assert_may(&child, false);
    assert_true(cgroup_put(NULL, child.pid));
    assert_may(&child, false);
    let_go(&child);
    broker_finish(broker);
}

/* What a user makes below its own manager may be called as it likes. */
static void I3_a_unit_is_one_of_the_systems_manager(void **state)
{
    struct user stranger = {.uid = UID_STRANGER};
    struct broker_process *broker;
    struct child child;

    test_needs_root();
    cgroup_begin(".slice");
    cgroup_make("render.service");
    cgroup_make("render.service/worker");
    cgroup_make("user@61002.service");
    cgroup_make("user@61002.service/render.service");
    broker = broker_for_test("[pool fast]\nnodes = 0\nallow = unit:render.service\n");
    stranger.socket = broker->socket;
    child_start(&child, be_user, &stranger);
    assert_may(&child, false);
    assert_true(cgroup_put("user@61002.service/render.service", child.pid));
    assert_may(&child, false);
    assert_true(cgroup_put("render.service", child.pid));
    assert_may(&child, true);
    assert_true(cgroup_put("render.service/worker", child.pid));
    assert_may(&child, true);
    assert_true(cgroup_put(NULL, child.pid));
    assert_may(&child, false);
    let_go(&child);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I3_a_pool_for_a_user_is_for_no_other),
        at_broker_with_groups(I3_a_pool_for_a_control_group_is_for_those_that_are_in_it),
        at_broker_with_groups(I3_a_unit_is_one_of_the_systems_manager),
    };

    return test_run(tests, NULL, NULL);
}
