/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history tells each user what happened to it, and nobody else; another user can neither wash that out nor learn
 * from it, and processes that nobody reaps cost the broker no more than a few descriptors. All of it holds when the
 * broker was killed.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define UID_VICTIM 61003

/* More than there are records. */
#define REFUSALS 3000
#define ZOMBIES  80

/* What a user finds of one. */
struct seen {
    unsigned others; /* entries of other users, the broker's own not counted */
    unsigned n;      /* entries of the user that is looked for */
    unsigned refused, died, exited, unknown;
    struct memclient_history_entry last; /* refusal of it; its texts are gone */
    int signal;
};

struct look {
    uid_t uid;
    struct seen *seen;
};

static int look_at(const struct memclient_history_entry *entry, void *data)
{
    const struct look *look = data;
    struct seen *seen = look->seen;

    if (entry->kind == MEMCLIENT_HISTORY_STARTED)
        return 0;
    if (entry->uid != look->uid) {
        seen->others++;
        return 0;
    }
    seen->n++;
    if (entry->kind == MEMCLIENT_HISTORY_REFUSED) {
        seen->refused++;
        seen->last = *entry;
    }
    if (entry->kind != MEMCLIENT_HISTORY_ENDED)
        return 0;
    seen->died += entry->end == MEMCLIENT_END_DIED;
    seen->exited += entry->end == MEMCLIENT_END_EXITED;
    seen->unknown += entry->end == MEMCLIENT_END_UNKNOWN;
    if (entry->end == MEMCLIENT_END_SIGNAL)
        seen->signal = entry->exit_status;
    return 0;
}

/* The process was killed, and the history says so, where anybody can know it. */
static bool is_killed(const struct seen *seen)
{
    return child_ends_are_told() ? seen->signal == SIGKILL : seen->unknown == 1;
}

static struct seen look_for(struct memclient_context *ctx, uid_t uid)
{
    struct seen seen = {.n = 0};
    struct look look = {uid, &seen};

    if (memclient_list_history(ctx, 0, look_at, &look) < 0)
        seen.n = UINT32_MAX;
    return seen;
}

static bool victim_is_killed(struct memclient_context *ctx)
{
    struct seen seen = look_for(ctx, UID_VICTIM);

    return is_killed(&seen);
}

/* ---- the victim -------------------------------------------------------------------------------------------------- */

/* Has most of the pool, is refused something once, and dies; later it asks what that was. */
static void die(int channel, void *context)
{
    struct memclient_context *ctx;
    struct memclient_buffer *buf, *none;

    become(UID_VICTIM);
    ctx = broker_connect_in_child(context);
    CHECK_DONE(memclient_alloc(ctx, UINT64_C(8) << 20, NULL, &buf));
    CHECK_REFUSED(memclient_alloc(ctx, UINT64_C(12) << 20, NULL, &none), ENOMEM);
    tell(channel);
    hear(channel);
    CHECK(raise(SIGKILL) == 0);
}

static void ask(int channel, void *context)
{
    struct memclient_context *ctx;
    struct seen seen;

    (void)channel;
    become(UID_VICTIM);
    ctx = broker_connect_in_child(context);
    seen = look_for(ctx, UID_VICTIM);
    CHECK(seen.others == 0 && seen.refused == 1 && is_killed(&seen));
    CHECK(seen.last.mine == seen.last.most && seen.last.most_uid == UID_VICTIM);
    memclient_context_close(ctx);
}

/* ---- the attacker ------------------------------------------------------------------------------------------------ */

/* Ten refusals, none like another, so that none is counted with the one before. */
static void be_refused(struct memclient_context *ctx, uint64_t foreign)
{
    struct memclient_alloc_options no_pool = MEMCLIENT_ALLOC_OPTIONS_INIT, no_node = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    struct memclient_reload_result reloaded = MEMCLIENT_RELOAD_RESULT_INIT;
    const uint32_t node = 63;
    struct memclient_reservation *range;
    struct memclient_buffer *none;

    no_pool.pool = "nowhere";
    no_node.nodes = &node;
    no_node.n_nodes = 1;
    CHECK(memclient_alloc(ctx, UINT64_C(1) << 50, NULL, &none) < 0);
    CHECK(memclient_alloc(ctx, UINT64_C(12) << 20, NULL, &none) < 0);
    CHECK(memclient_alloc(ctx, 4096, &no_pool, &none) < 0);
    CHECK(memclient_alloc(ctx, 4096, &no_node, &none) < 0);
    CHECK(memclient_broker_check(ctx, &result) < 0);
    CHECK(memclient_broker_reload(ctx, &reloaded) < 0);
    CHECK(memclient_broker_upgrade(ctx) < 0);
    CHECK(memclient_reserve(ctx, UINT64_C(1) << 60, NULL, &range) < 0);
    CHECK(memclient_open_id(ctx, foreign, 0, &none) < 0);
    CHECK(memclient_destroy_id(ctx, foreign, 0) < 0);
}

static void wash(int channel, void *context)
{
    struct memclient_context *ctx;
    struct seen seen;
    uint64_t foreign;

    become(UID_STRANGER);
    ctx = broker_connect_in_child(context);
    CHECK(take_bytes(channel, &foreign, sizeof(foreign)));
    for (unsigned i = 0; i < REFUSALS; i += 10)
        be_refused(ctx, foreign);
    /* it learns what it was told, and how much others have altogether */
    seen = look_for(ctx, UID_STRANGER);
    CHECK(seen.others == 0 && seen.refused > REFUSALS / 3);
    CHECK(look_for(ctx, UID_VICTIM).n == 0);
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

/* Nobody tells it who they are. */
static int never_say_who(const struct memclient_history_entry *entry, void *data)
{
    ++*(unsigned *)data;
    CHECK(entry->kind == MEMCLIENT_HISTORY_STARTED || entry->uid == UID_STRANGER);
    CHECK(entry->most_uid == (uid_t)-1 || entry->most_uid == UID_STRANGER);
    CHECK(entry->most_uid == UID_STRANGER || entry->most == 0);
    CHECK(!strstr(entry->sentence, "61003"));
    return 0;
}

static void snoop(int channel, void *context)
{
    struct memclient_context *ctx;
    struct memclient_buffer *none;
    unsigned n = 0;

    (void)channel;
    become(UID_STRANGER);
    ctx = broker_connect_in_child(context);
    CHECK(memclient_alloc(ctx, UINT64_C(12) << 20, NULL, &none) < 0);
    CHECK_DONE(memclient_list_history(ctx, 0, never_say_who, &n));
    CHECK(n > 0);
    memclient_context_close(ctx);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static const char small_pool[] = "[pools]\ncapacity = 16M\n";

static struct memclient_context *victim_and_attacker(struct broker_process *broker, struct child *attacker)
{
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *foreign;
    struct child victim;
    uint64_t id;
    struct seen seen;

    child_start(&victim, die, broker->socket);
    child_hear(&victim);
    child_run(snoop, broker->socket);
    child_tell(&victim);
    assert_true(WIFSIGNALED(child_wait(&victim)));
    assert_true(WAIT_UNTIL(victim_is_killed(ctx)));
    seen = look_for(ctx, UID_VICTIM);
    assert_int_equal(seen.last.most_uid, UID_VICTIM);
    assert_int_equal(seen.last.most, UINT64_C(8) << 20);
    assert_done(memclient_alloc(ctx, 4096, NULL, &foreign));
    id = memclient_buffer_id(foreign);
    child_start(attacker, wash, broker->socket);
    assert_true(pass_bytes(attacker->channel, &id, sizeof(id)));
    child_hear(attacker);
    memclient_buffer_unref(foreign);
    return ctx;
}

static void I7_nobody_washes_out_what_happened_to_others(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child attacker;
    struct seen before, after;

    test_needs_root();
    broker = broker_for_test(small_pool);
    ctx = victim_and_attacker(broker, &attacker);
    child_run(ask, broker->socket);
    before = look_for(ctx, UID_STRANGER);
    broker_kill_child(broker);
    child_run(ask, broker->socket);
    after = look_for(ctx, UID_STRANGER);
    /* less than what came since: the start of a broker, ends of sessions */
    assert_true(after.refused <= before.refused && after.refused + 8 >= before.refused);
    assert_int_equal(after.last.serial, before.last.serial);
    child_tell(&attacker);
    child_finish(&attacker);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Of so many processes that nobody reaps. They end with this one, by init. */
static void leave_zombies(int channel, void *context)
{
    const char *socket = context;

    become(UID_STRANGER);
    for (unsigned i = 0; i < ZOMBIES; i++) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (!pid) {
            CHECK(broker_connect_in_child(socket));
            _exit(3);
        }
    }
    tell(channel);
    hear(channel);
}

static void I7_who_reaps_nobody_costs_little(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child attacker, victim;
    uint64_t fds;

    test_needs_root();
    broker = broker_for_test(small_pool);
    ctx = broker_connect(broker);
    fds = broker_status(ctx).fds;
    child_start(&attacker, leave_zombies, broker->socket);
    child_hear(&attacker);
    assert_true(WAIT_UNTIL(look_for(ctx, UID_STRANGER).n == ZOMBIES));
    assert_true(WAIT_UNTIL(broker_status(ctx).sessions == 1));
    assert_int_equal(look_for(ctx, UID_STRANGER).exited, 0);
    assert_true(look_for(ctx, UID_STRANGER).unknown >= ZOMBIES / 2);
    assert_true(WAIT_UNTIL(broker_status(ctx).fds < fds + ZOMBIES / 2));
    /* and another user is told how its process died all the same */
    child_start(&victim, die, broker->socket);
    child_hear(&victim);
    child_tell(&victim);
    assert_true(WIFSIGNALED(child_wait(&victim)));
    assert_true(WAIT_UNTIL(victim_is_killed(ctx)));
    child_tell(&attacker);
    child_finish(&attacker);
    assert_true(WAIT_UNTIL(look_for(ctx, UID_STRANGER).died == 0));
    assert_true(WAIT_UNTIL(broker_status(ctx).fds <= fds));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A process that is reaped only when another broker serves, and one that dies and is reaped while none does. */
static void a_cause_is_told_by_the_next_broker(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child unreaped;
    int status;

    test_needs_root();
    if (!child_ends_are_told())
        test_skip("this kernel tells nobody how a process ended");
    broker = broker_for_test(small_pool);
    ctx = broker_connect(broker);
    child_start(&unreaped, die, broker->socket);
    child_hear(&unreaped);
    child_kill_unreaped(&unreaped);
    assert_true(WAIT_UNTIL(look_for(ctx, UID_VICTIM).died == 1));
    broker_kill_child(broker);
    assert_int_equal(look_for(ctx, UID_VICTIM).died, 1);
    assert_int_equal(waitpid(unreaped.pid, &status, 0), unreaped.pid);
    assert_true(WAIT_UNTIL(look_for(ctx, UID_VICTIM).signal == SIGKILL));
    assert_int_equal(look_for(ctx, UID_VICTIM).died, 0);
    close(unreaped.channel);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I7_nobody_washes_out_what_happened_to_others),
        at_broker(I7_who_reaps_nobody_costs_little),
        at_broker(a_cause_is_told_by_the_next_broker),
    };

    return test_run(tests, NULL, NULL);
}
