/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that is not for everybody, and who wants to allocate from it all the same: another user, who says nothing
 * about itself that the broker would believe (I3); a process in a control group that only looks like the one; one that
 * was moved away.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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

static int find_pool(const struct memclient_pool *pool, void *data)
{
    if (!strcmp(pool->name, "fast")) {
        CHECK(!strncmp(pool->allow, "user:61001 ", 11) || !strncmp(pool->allow, "cgroup:", 7) ||
              !strncmp(pool->allow, "unit:", 5));
        ((struct rights *)data)->available = pool->available;
    }
    return 0;
}

static int allocate(struct memclient *ctx, const char *pool)
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
    struct memclient *ctx;
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
    memclient_close(ctx);
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
    struct memclient *ctx;
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
    assert_done(memclient_reload(ctx, result));
    free(result);
    assert_may(&a, true);
    assert_may(&b, true); /* become() takes the group of the same number */
    assert_true(broker_said(broker, "this machine has no user \"nobody-has-this-name\""));
    let_go(&a);
    let_go(&b);
    memclient_close(ctx);
    broker_finish(broker);
}

/* ---- by control group and unit ----------------------------------------------------------------------------------- */

/* Version 2, as the kernel of this machine has it: alone, or beside version 1. */
static const char *cgroup_root(void)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
        if (access(path, W_OK) == 0)
            return roots[i];
    }
    test_skip("no control groups of version 2 that this user may make");
}

/* Groups of a test, below the root of the machine's: ROOT/PREFIX/NAME. */
static struct {
    const char *root;
    char prefix[64];
    char made[8][256];
    unsigned n_made;
} groups;

static void begin_groups(const char *suffix)
{
    groups.root = cgroup_root();
    groups.n_made = 0;
    snprintf(groups.prefix, sizeof(groups.prefix), "/memoryd%d%s", getpid(), suffix);
}

static void make_group(const char *name)
{
    char *path = groups.made[groups.n_made];

    snprintf(path, sizeof(groups.made[0]), "%s%s%s", groups.root, groups.prefix, name);
    if (mkdir(path, 0755) < 0)
        test_skip("no control group can be made: %s", strerror(errno));
    groups.n_made++;
}

/* Also of a test that failed, whose child is still in one. */
static int remove_groups(void **state)
{
    (void)broker_cleanup(state);
    if (groups.n_made) {
        char path[300];
        FILE *f;

        snprintf(path, sizeof(path), "%s/cgroup.kill", groups.made[0]);
        f = fopen(path, "we");
        if (f) {
            fputs("1\n", f);
            fclose(f);
        }
    }
    for (; groups.n_made; groups.n_made--) {
        const char *path = groups.made[groups.n_made - 1];

        if (!WAIT_UNTIL(rmdir(path) == 0))
            return -1;
    }
    return 0;
}

/* NULL: back to the root */
static void put_into(const char *name, pid_t pid)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s%s%s/cgroup.procs", groups.root, name ? groups.prefix : "", name ? name : "");
    f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "%d\n", pid);
    assert_int_equal(fclose(f), 0);
}

static void I3_a_pool_for_a_control_group_is_for_those_that_are_in_it(void **state)
{
    struct user stranger = {.uid = UID_STRANGER};
    struct broker_process *broker;
    char config[256];
    struct child child;

    test_needs_root();
    begin_groups("");
    make_group("");
    make_group("/in");
    make_group("/in/below");
    make_group("/inner");
    snprintf(config, sizeof(config), "[pool fast]\nnodes = 0\nallow = cgroup:%s/in\n", groups.prefix);
    broker = broker_for_test(config);
    stranger.socket = broker->socket;
    child_start(&child, be_user, &stranger);
    assert_may(&child, false);
    put_into("/in", child.pid);
    assert_may(&child, true);
    put_into("/in/below", child.pid);
    assert_may(&child, true);
    put_into("/inner", child.pid);
    assert_may(&child, false);
    put_into(NULL, child.pid);
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
    begin_groups(".slice");
    make_group("");
    make_group("/render.service");
    make_group("/render.service/worker");
    make_group("/user@61002.service");
    make_group("/user@61002.service/render.service");
    broker = broker_for_test("[pool fast]\nnodes = 0\nallow = unit:render.service\n");
    stranger.socket = broker->socket;
    child_start(&child, be_user, &stranger);
    assert_may(&child, false);
    put_into("/user@61002.service/render.service", child.pid);
    assert_may(&child, false);
    put_into("/render.service", child.pid);
    assert_may(&child, true);
    put_into("/render.service/worker", child.pid);
    assert_may(&child, true);
    put_into(NULL, child.pid);
    assert_may(&child, false);
    let_go(&child);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I3_a_pool_for_a_user_is_for_no_other),
        cmocka_unit_test_teardown(I3_a_pool_for_a_control_group_is_for_those_that_are_in_it, remove_groups),
        cmocka_unit_test_teardown(I3_a_unit_is_one_of_the_systems_manager, remove_groups),
    };

    return test_run(tests, NULL, NULL);
}
