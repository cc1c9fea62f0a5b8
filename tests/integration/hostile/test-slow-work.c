/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user makes the kernel keep the broker's threads waiting, or queues much work. Another user's commits, and the
 * memory that they give back, must not wait for that.
 */
#include "tests/integration/clients.h"
#include "tests/integration/hostile/stall.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define TWO_WORKERS "[broker]\nworker_threads = 2\n[pool victim]\nnodes = 0\ncapacity = 64M\n"
/* Workers for large memory commit it. */
#define LARGE (20 * MIB)

/* What the attacker's processes tell the test. */
struct count {
    atomic_uint asked;
    atomic_uint answered;
};

struct attack {
    const char *socket;
    struct count *count;
};

static struct attack attack_on(struct broker_process *broker)
{
    struct attack attack = {.socket = broker->socket};

    attack.count = mmap(NULL, sizeof(*attack.count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped(attack.count);
    return attack;
}

static void attack_is_over(struct attack *attack)
{
    assert_ok(munmap(attack->count, sizeof(*attack->count)));
}

/* Commits, and gives back, as much as needs workers, some times; and seals. */
static void serve_a_victim(struct broker_process *broker)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;

    options.pool = "victim";
    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    for (unsigned i = 0; i < 3; i++) {
        assert_done(memclient_alloc(ctx, LARGE, &options, &buf));
        memclient_buffer_unref(buf);
        assert_true(WAIT_UNTIL(broker_pool_used(ctx, "victim") == 0));
        assert_done(memclient_alloc(ctx, LARGE / 2, &options, &buf));
        assert_done(memclient_publish(buf, 0));
        memclient_buffer_unref(buf);
    }
    memclient_context_close(ctx);
}

/* ---- sealing that waits ------------------------------------------------------------------------------------------ */

/* More than there are threads of any kind. */
#define HANGING 6

struct sealing {
    struct memclient_buffer *buf;
    struct count *count;
    pthread_t thread;
};

static void *seal(void *argument)
{
    struct sealing *sealing = argument;

    atomic_fetch_add(&sealing->count->asked, 1);
    (void)memclient_publish(sealing->buf, 0);
    atomic_fetch_add(&sealing->count->answered, 1);
    return NULL;
}

static void seal_what_is_written_to(int channel, void *context)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct attack *attack = context;
    struct sealing sealings[HANGING];
    struct stall stalls[HANGING];
    struct memclient_context *ctx;

    for (unsigned i = 0; i < HANGING; i++)
        stall_prepare(&stalls[i]);
    become(UID_STRANGER);
    ctx = broker_connect_in_child(attack->socket);
    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    for (unsigned i = 0; i < HANGING; i++) {
        int fd;

        CHECK_DONE(memclient_alloc(ctx, page_size(), &options, &sealings[i].buf));
        CHECK_DONE(memclient_export_fd(sealings[i].buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
        stall_begin(&stalls[i], fd, 0);
        sealings[i].count = attack->count;
        CHECK(pthread_create(&sealings[i].thread, NULL, seal, &sealings[i]) == 0);
    }
    CHECK(WAIT_UNTIL(atomic_load(&attack->count->asked) == HANGING));
    CHECK_DONE(memclient_broker_ping(ctx));
    tell(channel);
    hear(channel);
    CHECK(atomic_load(&attack->count->answered) == 0);
    for (unsigned i = 0; i < HANGING; i++)
        stall_end(&stalls[i]);
    for (unsigned i = 0; i < HANGING; i++) {
        CHECK(pthread_join(sealings[i].thread, NULL) == 0);
        memclient_buffer_unref(sealings[i].buf);
    }
    memclient_context_close(ctx);
}

static void sealing_that_hangs_stops_nobody(void **state)
{
    struct broker_process *broker;
    struct attack attack;
    struct child child;

    test_needs_root();
    broker = broker_for_test(TWO_WORKERS);
    attack = attack_on(broker);
    child_start(&child, seal_what_is_written_to, &attack);
    child_hear(&child);
    serve_a_victim(broker);
    assert_int_equal(atomic_load(&attack.count->answered), 0);
    child_tell(&child);
    child_finish(&child);
    attack_is_over(&attack);
    broker_finish(broker);
}

/* Killed while the kernel keeps the broker waiting, it leaves nothing behind once that is over. */
static void who_dies_meanwhile_leaves_nothing(void **state)
{
    struct broker_process *broker;
    struct attack attack;
    struct child child;
    struct memclient_context *ctx;

    test_needs_root();
    broker = broker_for_test(TWO_WORKERS);
    attack = attack_on(broker);
    child_start(&child, seal_what_is_written_to, &attack);
    child_hear(&child);
    child_kill(&child);
    ctx = broker_connect(broker);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    memclient_context_close(ctx);
    attack_is_over(&attack);
    broker_finish(broker);
}

/* ---- pinned pages ------------------------------------------------------------------------------------------------ */

/* The kernel waits 0.2 s for each, and gives up. make check-long has more of them (PINNED=800). */
#define PINNED     48
#define PINNED_MAX 800
#define CONTEXTS   4

static unsigned pinned(void)
{
    const char *text = getenv("PINNED");
    unsigned long n = text ? strtoul(text, NULL, 10) : PINNED;

    return n < PINNED_MAX ? (unsigned)n : PINNED_MAX;
}

/* A page in a pipe is pinned, though nobody has it open or mapped. */
static struct memclient_buffer *make_pinned(struct memclient_context *ctx)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options how = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf;
    struct iovec page = {.iov_len = page_size()};
    int ends[2];

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    CHECK_DONE(memclient_alloc(ctx, page_size(), &options, &buf));
    CHECK_DONE(memclient_map(buf, &how, &page.iov_base));
    *(volatile char *)page.iov_base = 1;
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    CHECK(vmsplice(ends[1], &page, 1, 0) == (ssize_t)page_size());
    CHECK_DONE(memclient_unmap(ctx, page.iov_base, 0));
    return buf;
}

static void seal_pinned_pages(int channel, void *context)
{
    static struct sealing sealings[PINNED_MAX];
    struct attack *attack = context;
    struct memclient_context *ctx[CONTEXTS];

    become(UID_STRANGER);
    for (unsigned i = 0; i < CONTEXTS; i++)
        ctx[i] = broker_connect_in_child(attack->socket);
    for (unsigned i = 0; i < pinned(); i++)
        sealings[i] = (struct sealing){.buf = make_pinned(ctx[i % CONTEXTS]), .count = attack->count};
    for (unsigned i = 0; i < pinned(); i++)
        CHECK(pthread_create(&sealings[i].thread, NULL, seal, &sealings[i]) == 0);
    CHECK(WAIT_UNTIL(atomic_load(&attack->count->asked) == pinned()));
    for (unsigned i = 0; i < CONTEXTS; i++)
        CHECK_DONE(memclient_broker_ping(ctx[i]));
    tell(channel);
    hear(channel); /* it is killed */
}

static void sealing_pinned_pages_stops_nobody(void **state)
{
    struct broker_process *broker;
    struct attack attack;
    struct child child;

    test_needs_root();
    broker = broker_for_test(TWO_WORKERS);
    attack = attack_on(broker);
    child_start(&child, seal_pinned_pages, &attack);
    child_hear(&child);
    serve_a_victim(broker);
    assert_true(atomic_load(&attack.count->answered) < pinned());
    child_kill(&child);
    attack_is_over(&attack);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(sealing_that_hangs_stops_nobody),
        at_broker(who_dies_meanwhile_leaves_nothing),
        at_broker(sealing_pinned_pages_stops_nobody),
    };

    return test_run(tests, NULL, NULL);
}
