/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I2, I4: whoever may write a publishable buffer can seal it, or forbid that anybody does, and does not tell. The
 * broker says how it is, publishes what can be published, names who may have prevented it, and has the memory back at
 * the end.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { BUFFER_SIZE = 1 << 20, LARGE_SIZE = 8 << 20 };

/* Another user, who was given the buffer. */
struct intruder {
    struct child child;
    const char *socket;
    unsigned rights;
    int seals; /* to add */
    bool pins; /* a page, by a mapping for reading */
    bool maps; /* keeps a mapping for reading */
};

static void intrude(int channel, void *context)
{
    const struct intruder *intruder = context;
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct iovec page = {.iov_base = NULL, .iov_len = 4096};
    int fd, reading, ends[2];

    if (!getuid())
        become(UID_STRANGER);
    CHECK(take_bytes(channel, &token, sizeof(token)));
    ctx = broker_connect_in_child(intruder->socket);
    CHECK_DONE(memclient_open_token(ctx, &token, intruder->rights, &buf));
    CHECK_DONE(memclient_export_fd(buf, intruder->rights, &fd));
    if (intruder->maps || intruder->pins) {
        /* of the other descriptor it would count as one that may write */
        CHECK_DONE(memclient_export_fd(buf, MEMCLIENT_READ, &reading));
        page.iov_base = mmap(NULL, BUFFER_SIZE, PROT_READ, MAP_SHARED, reading, 0);
        close(reading);
        CHECK(page.iov_base != MAP_FAILED);
    }
    if (intruder->seals)
        CHECK(fcntl(fd, F_ADD_SEALS, intruder->seals) == 0);
    if (intruder->pins) {
        CHECK(pipe2(ends, O_CLOEXEC) == 0);
        CHECK(vmsplice(ends[1], &page, 1, 0) == (ssize_t)page.iov_len);
    }
    close(fd);
    tell(channel);
    hear(channel);
}

static void intruder_start(struct intruder *intruder, struct broker_process *broker)
{
    intruder->socket = broker->socket;
    child_start(&intruder->child, intrude, intruder);
}

/* Gives it the buffer; when this returns it has done its worst. */
static void intruder_attack(struct intruder *intruder, struct memclient_buffer *buf)
{
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_token token;

    terms.rights = intruder->rights;
    assert_done(memclient_share(buf, &terms, &token));
    assert_true(pass_bytes(intruder->child.channel, &token, sizeof(token)));
    child_hear(&intruder->child);
}

static void intruder_end(struct intruder *intruder)
{
    child_tell(&intruder->child);
    child_finish(&intruder->child);
}

static struct memclient_buffer *publishable(struct memclient_context *ctx, size_t size)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}

/* By its pid, which is not a number of another session by chance. */
static void assert_names(const struct intruder *intruder)
{
    char pid[24];

    snprintf(pid, sizeof(pid), "(pid %d, ", intruder->child.pid);
    assert_sentence(pid);
}

static int find_listed(const struct memclient_buffer_info *info, void *data)
{
    struct memclient_buffer_info *wanted = data;

    if (info->id == wanted->id)
        *wanted = *info;
    return 0;
}

/* In the listing and in INFO alike. */
static void assert_seals(struct memclient_context *ctx, struct memclient_buffer *buf, uint32_t seals, unsigned flags)
{
    const unsigned all = MEMCLIENT_BUFFER_PUBLISHED | MEMCLIENT_BUFFER_FUTURE_ONLY;
    struct memclient_buffer_info info = broker_info(buf), listed = {.id = info.id};

    assert_done(memclient_list_buffers(ctx, find_listed, &listed));
    /* with F_SEAL_EXEC where the kernel has it */
    assert_int_equal(info.seals & ((1 << 5) - 1), F_SEAL_SHRINK | F_SEAL_GROW | seals);
    assert_int_equal(info.flags & all, flags);
    assert_int_equal(listed.seals, info.seals);
    assert_int_equal(listed.flags & all, flags);
}

/* ---- sealed ------------------------------------------------------------------------------------------------------ */

static void I2_what_a_holder_seals_is_told_and_published(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct intruder intruder = {.rights = MEMCLIENT_READ | MEMCLIENT_WRITE, .seals = F_SEAL_WRITE};
    struct memclient_token token;
    struct memclient_buffer *buf, *again;
    struct memclient_context *ctx;
    int fd;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, BUFFER_SIZE);
    assert_seals(ctx, buf, 0, 0);
    assert_done(memclient_share(buf, NULL, &token));
    intruder_attack(&intruder, buf);
    assert_seals(ctx, buf, F_SEAL_WRITE, MEMCLIENT_BUFFER_PUBLISHED);
    /* those who expected to write it learn it from the broker, not from a page fault */
    assert_refused(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd), EROFS);
    assert_refused(memclient_open_token(ctx, &token, MEMCLIENT_READ | MEMCLIENT_WRITE, &again), EROFS);
    assert_done(memclient_open_token(ctx, &token, 0, &again));
    assert_refused(memclient_discard(buf, 0, 0), EROFS);
    assert_done(memclient_publish(buf, 0));
    assert_seals(ctx, buf, F_SEAL_WRITE | F_SEAL_SEAL, MEMCLIENT_BUFFER_PUBLISHED);
    assert_refused(memclient_publish(buf, 0), EROFS);
    intruder_end(&intruder);
    memclient_buffer_unref(again);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* The broker has a mapping's writer to wait for then, like any other. */
static void I2_what_a_holder_seals_for_future_writers_can_be_published(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct intruder intruder = {.rights = MEMCLIENT_READ | MEMCLIENT_WRITE, .seals = F_SEAL_FUTURE_WRITE};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    void *p;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, BUFFER_SIZE);
    assert_done(memclient_map(buf, NULL, &p));
    pattern_write(p, BUFFER_SIZE, 3);
    intruder_attack(&intruder, buf);
    assert_seals(ctx, buf, F_SEAL_FUTURE_WRITE, MEMCLIENT_BUFFER_PUBLISHED | MEMCLIENT_BUFFER_FUTURE_ONLY);
    assert_done(memclient_publish(buf, 0));
    assert_seals(ctx, buf, F_SEAL_FUTURE_WRITE | F_SEAL_WRITE | F_SEAL_SEAL, MEMCLIENT_BUFFER_PUBLISHED);
    assert_true(pattern_holds(p, BUFFER_SIZE, 3));
    intruder_end(&intruder);
    assert_done(memclient_unmap(ctx, p, 0));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* The next broker knows no more of it than this one, and no less. */
static void I2_a_holders_seal_outlives_the_broker(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct intruder intruder = {.rights = MEMCLIENT_READ | MEMCLIENT_WRITE, .seals = F_SEAL_WRITE | F_SEAL_SEAL};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, BUFFER_SIZE);
    intruder_attack(&intruder, buf);
    broker_kill_child(broker);
    assert_seals(ctx, buf, F_SEAL_WRITE | F_SEAL_SEAL, MEMCLIENT_BUFFER_PUBLISHED);
    assert_done(memclient_publish(buf, 0));
    intruder_end(&intruder);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What is sealed cannot be emptied: it goes with its inode, and nobody waits for it meanwhile. */
static void sealed_memory_comes_back(size_t size, int seals)
{
    struct broker_process *broker = broker_for_test("[pools]\ncapacity = 16M\nstock = 0\n");
    struct intruder intruder = {.rights = MEMCLIENT_READ | MEMCLIENT_WRITE, .seals = seals, .maps = true};
    struct memclient_buffer *buf, *whole;
    struct memclient_context *ctx;
    uint64_t id;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, size);
    id = memclient_buffer_id(buf);
    intruder_attack(&intruder, buf);
    if (!getuid())
        assert_refused(memclient_destroy_id(ctx, id, MEMCLIENT_DESTROY_FORCE), EROFS);
    memclient_buffer_unref(buf);
    assert_refused(memclient_alloc(ctx, 16 << 20, NULL, &whole), ENOMEM);
    intruder_end(&intruder);
    broker_wait_until_empty(broker);
    assert_done(memclient_alloc(ctx, 16 << 20, NULL, &whole));
    memclient_buffer_unref(whole);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I4_sealed_memory_comes_back(void **state)
{
    sealed_memory_comes_back(BUFFER_SIZE, F_SEAL_WRITE);
    sealed_memory_comes_back(LARGE_SIZE, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

static void a_sealed_buffer_can_be_moved(void **state)
{
    struct broker_process *broker = broker_for_test("[topology]\nsimulate_nodes = 2\n");
    struct intruder intruder = {.rights = MEMCLIENT_READ | MEMCLIENT_WRITE, .seals = F_SEAL_WRITE};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, BUFFER_SIZE);
    intruder_attack(&intruder, buf);
    assert_done(memclient_move(buf, 1));
    assert_done(memclient_move(buf, 0));
    intruder_end(&intruder);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- prevented --------------------------------------------------------------------------------------------------- */

static void I2_a_holder_that_forbids_sealing_is_named(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct intruder intruder = {.rights = MEMCLIENT_READ | MEMCLIENT_WRITE, .seals = F_SEAL_SEAL};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    int fd;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, BUFFER_SIZE);
    intruder_attack(&intruder, buf);
    assert_seals(ctx, buf, F_SEAL_SEAL, 0);
    assert_refused(memclient_publish(buf, 0), EOPNOTSUPP);
    assert_sentence("F_SEAL_SEAL");
    assert_names(&intruder);
    assert_refused(memclient_publish(buf, MEMCLIENT_PUBLISH_FUTURE_ONLY), EOPNOTSUPP);
    /* it is none the worse otherwise */
    assert_done(memclient_discard(buf, 0, 0));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
    close(fd);
    intruder_end(&intruder);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I2_a_reader_that_pins_a_page_is_named(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct intruder intruder = {.rights = MEMCLIENT_READ, .pins = true};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    intruder_start(&intruder, broker);
    ctx = broker_connect(broker);
    buf = publishable(ctx, BUFFER_SIZE);
    intruder_attack(&intruder, buf);
    assert_refused(memclient_publish(buf, 0), EBUSY);
    assert_names(&intruder);
    assert_seals(ctx, buf, 0, 0);
    intruder_end(&intruder);
    assert_done(memclient_publish(buf, 0));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I2_what_a_holder_seals_is_told_and_published),
        at_broker(I2_what_a_holder_seals_for_future_writers_can_be_published),
        at_broker(I2_a_holders_seal_outlives_the_broker),
        at_broker(I4_sealed_memory_comes_back),
        at_broker(a_sealed_buffer_can_be_moved),
        at_broker(I2_a_holder_that_forbids_sealing_is_named),
        at_broker(I2_a_reader_that_pins_a_page_is_named),
    };

    return test_run(tests, NULL, NULL);
}
