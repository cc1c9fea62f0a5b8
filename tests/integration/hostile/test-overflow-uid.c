/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users that cannot be told apart. To a broker in a user namespace, everybody who is not mapped there has the overflow
 * uid: several users who are one user to it. What one of them names, the others open. The same is true of groups.
 *
 * A client in a user namespace of its own is no such user: the kernel tells a broker outside who it really is.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define UID_ATTACKER UID_STRANGER
#define UID_FIRST    60001

static const char secret[] = "what the victim computed";

/* From now on a test's broker is started in a user namespace of its own, made with these options of unshare(1). */
static void broker_in_user_namespace(const char *options)
{
    static char path[220];
    const char *folder = getenv("TMPDIR");
    const char *builddir = getenv("builddir");
    FILE *f;

    snprintf(path, sizeof(path), "%s/%d.unshare", folder ? folder : "/tmp", getpid());
    f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nexec unshare --user %s %s/daemon/memoryd \"$@\"\n", options, builddir ? builddir : ".");
    assert_int_equal(fclose(f), 0);
    assert_ok(chmod(path, 0755));
    assert_ok(setenv("MEMORYD", path, 1));
}

static int broker_outside_again(void **state)
{
    if (getenv("MEMORYD"))
        (void)unlink(getenv("MEMORYD"));
    (void)unsetenv("MEMORYD");
    return broker_cleanup(state);
}

static void try_user_namespace(int channel, void *context)
{
    if (unshare(CLONE_NEWUSER) < 0)
        _exit(TEST_SKIPPED);
}

static void need_user_namespaces(void)
{
    test_needs_root();
    if (access("/usr/bin/unshare", X_OK) < 0)
        test_skip("there is no unshare(1)");
    child_run(try_user_namespace, NULL);
}

/* ---- a broker in a user namespace -------------------------------------------------------------------------------- */

struct user {
    const char *socket;
    uid_t uid;
    unsigned bind_flags;
};

/* Names a buffer, and keeps it until it is told to go. */
static void be_victim(int channel, void *context)
{
    const struct user *user = context;
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_buffer *buf = NULL;
    struct memclient_context *ctx;
    void *p;
    int r;

    become(user->uid);
    options.socket = user->socket;
    r = memclient_context_open(&options, &ctx);
    if (!r) {
        CHECK_DONE(memclient_alloc(ctx, 4096, NULL, &buf));
        CHECK_DONE(memclient_map(buf, NULL, &p));
        memcpy(p, secret, sizeof(secret));
        CHECK_DONE(memclient_bind_name(buf, "result", NULL));
    }
    CHECK(pass_bytes(channel, &r, sizeof(r)));
    hear(channel);
}

/* Reads what it can find under the victim's name. -errno of what was refused, 0 if it has it. */
static void be_attacker(int channel, void *context)
{
    const struct user *user = context;
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    void *p;
    int r;

    become(user->uid);
    options.socket = user->socket;
    r = memclient_context_open(&options, &ctx);
    if (r)
        CHECK(strstr(memclient_error(), "overflow"));
    if (!r)
        r = memclient_open_name(ctx, "result", MEMCLIENT_READ, &buf);
    if (!r) {
        CHECK_DONE(memclient_map(buf, NULL, &p));
        r = memcmp(p, secret, sizeof(secret)) ? -EBADMSG : 0;
    }
    CHECK(pass_bytes(channel, &r, sizeof(r)));
}

/* What the victim's attempt to be served came to, and the attacker's to read what it made. */
static void attack(struct broker_process *broker, int *ret_victim, int *ret_attacker)
{
    struct user user = {.socket = broker->socket, .uid = UID_VICTIM};
    struct child victim, attacker;

    child_start(&victim, be_victim, &user);
    assert_true(take_bytes(victim.channel, ret_victim, sizeof(*ret_victim)));
    user.uid = UID_ATTACKER;
    child_start(&attacker, be_attacker, &user);
    assert_true(take_bytes(attacker.channel, ret_attacker, sizeof(*ret_attacker)));
    child_finish(&attacker);
    child_tell(&victim);
    child_finish(&victim);
}

static void I3_who_is_not_in_the_brokers_user_namespace_is_refused(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    int victim, attacker;

    need_user_namespaces();
    broker_in_user_namespace("--map-root-user");
    broker = broker_for_test(NULL);
    attack(broker, &victim, &attacker);
    assert_int_equal(victim, -EACCES);
    assert_int_equal(attacker, -EACCES);
    /* who is mapped is served */
    ctx = broker_connect(broker);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Who configures it has said that they are one user, and they are. */
static void they_are_one_user_if_the_configuration_says_so(void **state)
{
    struct broker_process *broker;
    int victim, attacker;

    need_user_namespaces();
    broker_in_user_namespace("--map-root-user");
    broker = broker_for_test("[session]\noverflow_uid = serve\n");
    attack(broker, &victim, &attacker);
    assert_int_equal(victim, 0);
    assert_int_equal(attacker, 0);
    broker_kill(broker);
}

/* ---- a private broker -------------------------------------------------------------------------------------------- */

/* A user who is mapped nowhere, as in a container without a map: broker and client have the overflow uid themselves. */
static void be_unmapped(int channel, void *context)
{
    struct broker_process broker = {0};
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    become(UID_FIRST);
    CHECK(setenv("TMPDIR", context, 1) == 0);
    CHECK(unshare(CLONE_NEWUSER) == 0);
    CHECK(geteuid() != UID_FIRST);
    broker_start(&broker, NULL, 0);
    options.socket = broker.socket;
    CHECK_DONE(memclient_context_open(&options, &ctx));
    CHECK_DONE(memclient_alloc(ctx, 4096, NULL, &buf));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_stop(&broker);
}

static void a_private_broker_serves_its_own_user_whoever_that_is(void **state)
{
    char folder[220];
    const char *tmp = getenv("TMPDIR");

    need_user_namespaces();
    snprintf(folder, sizeof(folder), "%s/unmapped", tmp ? tmp : "/tmp");
    assert_ok(mkdir(folder, 0700));
    assert_ok(chown(folder, UID_FIRST, UID_FIRST));
    child_run(be_unmapped, folder);
    (void)rmdir(folder);
}

/* ---- a client in a user namespace -------------------------------------------------------------------------------- */

static int note_own_uid(const struct memclient_session_info *session, void *data)
{
    if (session->pid == getpid())
        *(uid_t *)data = (uid_t)session->uid;
    return 0;
}

static void be_in_a_namespace(int channel, void *context)
{
    uid_t seen = 0;
    struct memclient_context *ctx;

    become(UID_FIRST);
    CHECK(unshare(CLONE_NEWUSER) == 0);
    CHECK(geteuid() != UID_FIRST); /* to itself it has the overflow uid */
    ctx = broker_connect_in_child(context);
    CHECK_DONE(memclient_list_sessions(ctx, note_own_uid, &seen));
    CHECK(seen == UID_FIRST);
    memclient_context_close(ctx);
}

static void I3_a_client_in_a_user_namespace_is_who_it_is_outside(void **state)
{
    struct broker_process *broker;

    need_user_namespaces();
    broker = broker_for_test(NULL);
    child_run(be_in_a_namespace, broker->socket);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(I3_who_is_not_in_the_brokers_user_namespace_is_refused, broker_outside_again),
        cmocka_unit_test_teardown(they_are_one_user_if_the_configuration_says_so, broker_outside_again),
        at_broker(a_private_broker_serves_its_own_user_whoever_that_is),
        at_broker(I3_a_client_in_a_user_namespace_is_who_it_is_outside),
    };

    return test_run(tests, NULL, NULL);
}
