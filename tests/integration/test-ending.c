/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I4, free means freed, and not before: while anybody has a buffer open or mapped, by whatever way, its contents stay
 * and its owner pays; when the last has let go, every page is back.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SIZE (4 * MIB)

struct find {
    uint64_t id;
    unsigned state;
    uint32_t charged_uid;
    uint64_t bytes;
};

static int find_buffer(const struct memclient_buffer_info *info, void *data)
{
    struct find *find = data;

    if (info->id != find->id)
        return 0;
    find->state = info->state;
    find->charged_uid = info->charged_uid;
    find->bytes = info->bytes;
    return 1;
}

/* A state, or -1 once it has gone. */
static int state_of(struct memclient_context *ctx, uint64_t id)
{
    struct find find = {.id = id};
    int r = memclient_list_buffers(ctx, find_buffer, &find);

    assert_true(r >= 0);
    return r == 1 ? (int)find.state : -1;
}

static void assert_detached_and_charged(struct memclient_context *ctx, uint64_t id)
{
    struct find find = {.id = id};

    assert_true(WAIT_UNTIL(state_of(ctx, id) == MEMCLIENT_BUFFER_STATE_DETACHED));
    assert_int_equal(memclient_list_buffers(ctx, find_buffer, &find), 1);
    assert_int_equal(find.bytes, SIZE);
    assert_int_equal(find.charged_uid, geteuid());
    assert_int_equal(broker_pool_used(ctx, NULL), SIZE);
    assert_int_equal(broker_status(ctx).buffers_detached, 1);
}

/* A buffer with a pattern in it that is not mapped any more. */
static struct memclient_buffer *filled(struct memclient_context *ctx, uint64_t size)
{
    struct memclient_buffer *buf;
    void *p;

    assert_done(memclient_alloc(ctx, size, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    pattern_write(p, size, 4);
    assert_done(memclient_unmap(ctx, p, 0));
    return buf;
}

static void I4_an_exported_descriptor_keeps_contents_and_charge(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = filled(ctx, SIZE), *again;
    uint64_t id = memclient_buffer_id(buf);
    void *p;
    int fd;

    assert_done(memclient_export_fd(buf, 0, &fd));
    memclient_buffer_unref(buf);
    assert_detached_and_charged(ctx, id);
    p = map_shared(fd, SIZE, PROT_READ);
    assert_mapped(p);
    assert_true(pattern_holds(p, SIZE, 4));
    assert_ok(munmap(p, SIZE));
    assert_detached_and_charged(ctx, id);
    /* importing brings it back to life, the same buffer */
    assert_done(memclient_import_fd(ctx, fd, &again));
    close(fd);
    assert_int_equal(memclient_buffer_id(again), id);
    assert_int_equal(state_of(ctx, id), MEMCLIENT_BUFFER_STATE_LIVE);
    assert_done(memclient_map(again, NULL, &p));
    assert_true(pattern_holds(p, SIZE, 4));
    broker_check(broker);
    memclient_buffer_unref(again);
    assert_int_equal(state_of(ctx, id), MEMCLIENT_BUFFER_STATE_LIVE); /* the mapping is a reference */
    assert_done(memclient_unmap(ctx, p, 0));
    assert_true(WAIT_UNTIL(state_of(ctx, id) == -1));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I4_a_mapping_without_a_descriptor_keeps_contents_and_charge(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = filled(ctx, SIZE);
    uint64_t id = memclient_buffer_id(buf);
    void *p;
    int fd;

    assert_done(memclient_export_fd(buf, 0, &fd));
    p = map_shared(fd, SIZE, PROT_READ);
    assert_mapped(p);
    close(fd);
    memclient_buffer_unref(buf);
    assert_detached_and_charged(ctx, id);
    assert_true(pattern_holds(p, SIZE, 4));
    assert_ok(munmap(p, SIZE));
    assert_true(WAIT_UNTIL(state_of(ctx, id) == -1));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I4_a_descriptor_in_flight_keeps_contents(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = filled(ctx, SIZE), *again;
    uint64_t id = memclient_buffer_id(buf);
    int fd, ends[2];
    void *p;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_int_equal(fd_send_one(ends[0], fd), 1);
    close(fd);
    memclient_buffer_unref(buf);
    assert_detached_and_charged(ctx, id); /* nobody has it open: it is only on its way */
    fd = fd_receive_one(ends[1]);
    assert_done(memclient_import_fd(ctx, fd, &again));
    assert_done(memclient_map(again, NULL, &p));
    assert_true(pattern_holds(p, SIZE, 4));
    assert_done(memclient_unmap(ctx, p, 0));
    /* and now one that never arrives */
    assert_int_equal(fd_send_one(ends[0], fd), 1);
    close(fd);
    memclient_buffer_unref(again);
    assert_detached_and_charged(ctx, id);
    close(ends[0]);
    close(ends[1]);
    assert_true(WAIT_UNTIL(state_of(ctx, id) == -1));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

struct inherited {
    const void *address;
};

static void read_what_was_inherited(int channel, void *context)
{
    const struct inherited *inherited = context;

    tell(channel);
    hear(channel);
    CHECK(pattern_holds(inherited->address, SIZE, 4));
}

static void I4_a_forked_childs_mapping_keeps_contents_and_charge(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *maker = broker_connect(broker);
    struct memclient_buffer *buf;
    struct inherited inherited;
    struct child child;
    uint64_t id;
    void *p;

    assert_done(memclient_alloc(maker, SIZE, NULL, &buf));
    id = memclient_buffer_id(buf);
    assert_done(memclient_map(buf, NULL, &p));
    pattern_write(p, SIZE, 4);
    inherited.address = p;
    child_start(&child, read_what_was_inherited, &inherited);
    child_hear(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(maker);
    assert_detached_and_charged(ctx, id);
    child_tell(&child);
    child_finish(&child);
    assert_true(WAIT_UNTIL(state_of(ctx, id) == -1));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void touch_what_was_not_inherited(int channel, void *context)
{
    const struct inherited *inherited = context;

    (void)channel;
    CHECK(pattern_holds(inherited->address, SIZE, 4));
}

static void what_children_shall_not_copy_they_do_not_get(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct inherited inherited;
    struct memclient_buffer *buf;
    void *p;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    pattern_write(p, SIZE, 4);
    inherited.address = p;
    assert_int_equal(child_signal(touch_what_was_not_inherited, &inherited), 0);
    assert_done(memclient_dont_fork(ctx, p, 0));
    assert_int_equal(child_signal(touch_what_was_not_inherited, &inherited), SIGSEGV);
    assert_true(pattern_holds(p, SIZE, 4));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void make_hand_over_and_wait(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf;
    void *p;
    int fd;

    CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    pattern_write(p, SIZE, 4);
    CHECK_DONE(memclient_export_fd(buf, 0, &fd));
    CHECK(fd_send_one(channel, fd) == 1);
    hear(channel);
}

static void I4_a_handle_outlives_its_maker(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct child child;
    void *p;
    int fd;

    child_start(&child, make_hand_over_and_wait, broker->socket);
    fd = fd_receive_one(child.channel);
    assert_true(fd >= 0);
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_status(ctx).buffers_detached == 1));
    assert_done(memclient_import_fd(ctx, fd, &buf));
    close(fd);
    assert_done(memclient_map(buf, NULL, &p));
    assert_true(pattern_holds(p, SIZE, 4));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- many, and much ---------------------------------------------------------------------------------------------- */

#define ROUNDS 100

/* The kernel tells of a close a moment before it is true: whoever asks too early must ask again. */
static void I4_no_buffer_stays_detached_for_ever(void **state)
{
    static struct memclient_buffer *bufs[MEMCLIENT_BATCH_MAX];
    static uint64_t sizes[MEMCLIENT_BATCH_MAX];
    static int fds[MEMCLIENT_BATCH_MAX];
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);

    for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        sizes[i] = 1;
    for (size_t round = 0; round < ROUNDS; round++) {
        assert_done(memclient_alloc_many(ctx, MEMCLIENT_BATCH_MAX, sizes, NULL, bufs));
        for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++) {
            assert_done(memclient_export_fd(bufs[i], 0, &fds[i]));
            memclient_buffer_unref(bufs[i]);
        }
        for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++)
            close(fds[i]);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I4_all_memory_is_back_in_the_end(void **state)
{
    struct broker_process *broker = broker_for_test("[pool wide]\nnodes = 0\ncapacity = 256M\n");
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect(broker);
    long before = meminfo_kib("Shmem");
    struct memclient_buffer *buf;
    bool back = false;
    void *p;
    int fd;

    options.pool = "wide";
    /* several times as much as the machine would bear if each round left its memory behind */
    for (size_t round = 0; round < 4; round++) {
        options.wait_ms = round > 0 ? PATIENCE_MS : 0;
        assert_done(memclient_alloc(ctx, 256 * MIB, &options, &buf));
        assert_done(memclient_export_fd(buf, 0, &fd));
        assert_int_equal(memfd_allocated(fd), 256 * MIB);
        close(fd);
        assert_done(memclient_map(buf, NULL, &p));
        assert_true(all_zero(p, MIB));
        memset(p, 1, MIB);
        memclient_buffer_unref(buf);
        assert_done(memclient_unmap(ctx, p, 0));
    }
    memclient_context_close(ctx);
    broker_wait_until_empty(broker);
    /* the rest of the machine uses memory as well, so not to the byte, and other tests for a while */
    for (unsigned i = 0; i < 4 && !back; i++)
        back = WAIT_UNTIL(meminfo_kib("Shmem") < before + 128 * 1024);
    assert_true(back);
    broker_finish(broker);
}

/* ---- an end by order --------------------------------------------------------------------------------------------- */

static void a_destroyed_buffer_is_over_for_all_and_stays_where_it_is_mapped(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf = filled(ctx, SIZE), *theirs, *none;
    uint64_t id = memclient_buffer_id(buf);
    struct memclient_token token;
    void *p;

    assert_done(memclient_bind_name(buf, "to/be/destroyed", NULL));
    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_open_token(other, &token, 0, &theirs));
    assert_done(memclient_map(theirs, NULL, &p));
    assert_done(memclient_destroy_id(ctx, id, 0));
    assert_true(pattern_holds(p, SIZE, 4));
    assert_int_equal(state_of(ctx, id), MEMCLIENT_BUFFER_STATE_DETACHED);
    assert_refused(memclient_open_name(ctx, "to/be/destroyed", 0, &none), ENOENT);
    assert_refused(memclient_open_token(ctx, &token, 0, &none), ESTALE);
    assert_refused(memclient_open_id(ctx, id + 1000, 0, &none), ENOENT);
    /* by force: the contents go, the addresses stay valid */
    assert_done(memclient_destroy_id(ctx, id, MEMCLIENT_DESTROY_FORCE));
    assert_true(all_zero(p, SIZE));
    memclient_buffer_unref(theirs);
    assert_done(memclient_unmap(other, p, 0));
    memclient_buffer_unref(buf);
    assert_true(WAIT_UNTIL(state_of(ctx, id) == -1));
    assert_refused(memclient_open_id(ctx, id, 0, &none), ESTALE);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I4_an_exported_descriptor_keeps_contents_and_charge),
        at_broker(I4_a_mapping_without_a_descriptor_keeps_contents_and_charge),
        at_broker(I4_a_descriptor_in_flight_keeps_contents),
        at_broker(I4_a_forked_childs_mapping_keeps_contents_and_charge),
        at_broker(what_children_shall_not_copy_they_do_not_get),
        at_broker(I4_a_handle_outlives_its_maker),
        at_broker(I4_no_buffer_stays_detached_for_ever),
        at_broker(I4_all_memory_is_back_in_the_end),
        at_broker(a_destroyed_buffer_is_over_for_all_and_stays_where_it_is_mapped),
    };

    return test_run(tests, NULL, NULL);
}
