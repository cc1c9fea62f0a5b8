/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that the kernel kills for want of memory in its control group: that is what the history and the event of
 * its death say; and not of one that is killed there by somebody else. As root; the machine of tests/vm/charging.sh has
 * groups of version 2.
 */
#include "tests/integration/clients.h"
#include "tests/support/cgroup.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define LIMIT    (64 * MIB)
#define PIECE    (1 * MIB)
#define ATTEMPTS 8

struct eater {
    const char *socket;
};

/* When it is told to, it takes memory of its own until it is killed. */
static void eat(int channel, void *context)
{
    const struct eater *eater = context;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;

    CHECK(cgroup_put("client", 0));
    ctx = broker_connect_in_child(eater->socket);
    CHECK_DONE(memclient_alloc(ctx, 4096, NULL, &buf));
    tell(channel);
    hear(channel);
    for (uint64_t taken = 0; taken < 4 * LIMIT; taken += PIECE) {
        char *piece = malloc(PIECE);

        CHECK(piece);
        memset(piece, 1, PIECE);
        __asm__ volatile("" : : "r"(piece) : "memory"); /* it is written, though nobody reads it */
    }
    CHECK(false);
}

static void be_in_the_group(int channel, void *context)
{
    CHECK(cgroup_put("client", 0));
    tell(channel);
    hear(channel);
}

/* Else the broker cannot find it either. */
static bool the_group_is_named(void)
{
    struct child child;
    bool named;

    child_start(&child, be_in_the_group, NULL);
    child_hear(&child);
    named = cgroup_is_named("client", child.pid);
    child_tell(&child);
    child_finish(&child);
    return named;
}

struct question {
    int32_t pid;
    struct memclient_history_entry answer;
};

static int find_end(const struct memclient_history_entry *entry, void *data)
{
    struct question *question = data;

    if (entry->kind == MEMCLIENT_HISTORY_ENDED && entry->pid == question->pid)
        question->answer = *entry;
    return 0;
}

static bool has_ended(struct memclient_context *ctx, struct question *question)
{
    question->answer.end = 0;
    assert_done(memclient_list_history(ctx, 0, find_end, question));
    return question->answer.end && question->answer.end != MEMCLIENT_END_DIED;
}

/* How the history says that it ended. It has been reaped. */
static unsigned end_of(struct memclient_context *ctx, pid_t pid)
{
    struct question question = {.pid = pid};

    assert_true(WAIT_UNTIL(has_ended(ctx, &question)));
    assert_int_equal(question.answer.exit_status, SIGKILL);
    return question.answer.end;
}

/* The broker looks at the group a moment after the session has begun; who dies before that died of a signal. */
static void who_runs_out_of_memory_is_told_from_who_is_killed(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct eater eater;
    struct child child;
    unsigned end = 0;
    pid_t pid = 0;

    if (getuid() != 0)
        test_skip("limits of memory need root");
    if (!child_ends_are_told())
        test_skip("this kernel tells nobody how a process ended");
    cgroup_begin_memory_of_any();
    cgroup_make("client");
    if (!cgroup_limit_memory("client", LIMIT))
        test_skip("no limit of memory and swap can be set: %s", strerror(errno));
    if (!the_group_is_named())
        test_skip("only a part of the control groups is mounted here: /proc names others than can be made");
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    eater.socket = broker->socket;
    assert_done(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_DEATH));
    for (int i = 0; i < ATTEMPTS && end != MEMCLIENT_END_OOM; i++) {
        child_start(&child, eat, &eater);
        child_hear(&child);
        (void)poll(NULL, 0, 20 << i);
        child_tell(&child);
        pid = child.pid;
        assert_int_equal(WTERMSIG(child_wait(&child)), SIGKILL);
        end = end_of(ctx, pid);
    }
    assert_int_equal(end, MEMCLIENT_END_OOM);
    do
        assert_true(WAIT_UNTIL(memclient_event_next(ctx, &event) == 0));
    while (event.kind != MEMCLIENT_EVENT_DEATH || event.pid != pid);
    assert_int_equal(event.end, MEMCLIENT_END_OOM);
    assert_int_equal(event.exit_status, SIGKILL);

    child_start(&child, eat, &eater);
    child_hear(&child);
    (void)poll(NULL, 0, 20);
    pid = child.pid;
    child_kill(&child);
    assert_int_equal(end_of(ctx, pid), MEMCLIENT_END_SIGNAL);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker_with_groups(who_runs_out_of_memory_is_told_from_who_is_killed),
    };

    return test_run(tests, NULL, NULL);
}
