/* SPDX-License-Identifier: Apache-2.0 */
/* Many buffers mapped by few requests, all or none; and buffers that no descriptor comes with until one is needed. */
#include "tests/integration/clients.h"

#include "core/context.h"

#define SIZE (16 * page_size())
enum { N = MEMCLIENT_BATCH_MAX };

static uint64_t requests(struct memclient_context *ctx)
{
    return broker_status(ctx).requests;
}

/* What asking costs is one request itself. */
#define assert_calls(ctx, before, wanted) assert_int_equal(requests(ctx), (before) + (wanted) + 1)

static void make(struct memclient_context *ctx, size_t n, unsigned flags, struct memclient_buffer **bufs)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    uint64_t sizes[N];

    for (size_t i = 0; i < n; i++)
        sizes[i] = SIZE;
    options.flags = flags;
    assert_done(memclient_alloc_many(ctx, n, sizes, &options, bufs));
}

/* ---- many at once ------------------------------------------------------------------------------------------------ */

/* Three batches: of the first two no descriptor is kept, and they are mapped by one request each; the last by none. */
static void many_are_mapped_by_one_request(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[3 * N];
    void *at[3 * N];
    uint64_t before;

    for (int i = 0; i < 3; i++)
        make(ctx, N, 0, bufs + i * N);
    before = requests(ctx);
    assert_done(memclient_map_many(N, bufs + 2 * N, NULL, at + 2 * N));
    assert_calls(ctx, before, 0);
    before = requests(ctx);
    assert_done(memclient_map_many(N, bufs, NULL, at));
    assert_done(memclient_map_many(N, bufs + N, NULL, at + N));
    assert_calls(ctx, before, 2);
    for (int i = 0; i < 3 * N; i++) {
        assert_ptr_equal(at[i], memclient_buffer_home(bufs[i]));
        pattern_write(at[i], SIZE, (uint64_t)i);
    }
    for (int i = 0; i < 3 * N; i++)
        assert_true(pattern_holds(at[i], SIZE, (uint64_t)i));
    memclient_buffer_unref_many(3 * N, bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Each as it is wanted: parts of one buffer side by side, another one anywhere, with other access. */
static void each_is_mapped_as_it_is_wanted(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_map_options options[3] = {MEMCLIENT_MAP_OPTIONS_INIT, MEMCLIENT_MAP_OPTIONS_INIT,
                                               MEMCLIENT_MAP_OPTIONS_INIT};
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_buffer *bufs[3];
    struct memclient_reservation *res;
    char *at[3];

    make(ctx, 2, MEMCLIENT_ALLOC_NO_HOME | MEMCLIENT_ALLOC_NO_DESCRIPTOR, bufs);
    bufs[2] = bufs[0];
    assert_done(memclient_reserve(ctx, SIZE, NULL, &res));
    options[0].length = SIZE / 2;
    options[0].address = (char *)memclient_reservation_address(res) + SIZE / 2;
    options[0].flags = MEMCLIENT_MAP_NOT_HOME;
    options[1].flags = MEMCLIENT_MAP_ANYWHERE;
    options[1].access = MEMCLIENT_READ;
    options[2].offset = SIZE / 2;
    options[2].address = memclient_reservation_address(res);
    options[2].flags = MEMCLIENT_MAP_NOT_HOME;
    assert_done(memclient_map_many(3, bufs, options, (void **)at));
    assert_ptr_equal(at[0], options[0].address);
    assert_ptr_equal(at[2], options[2].address);
    at[0][0] = 1;
    at[2][0] = 2;
    assert_done(memclient_address_query(at[1], &info));
    assert_ptr_equal(info.buffer, bufs[1]);
    assert_int_equal(info.access, MEMCLIENT_READ);
    assert_int_equal(at[0][0], 1);
    assert_done(memclient_unmap(ctx, at[2], SIZE));
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref_many(2, bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* One that cannot be mapped, of whatever reason, and none is; nor is anything written. */
static void all_are_mapped_or_none(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_map_options options[N];
    struct memclient_buffer *bufs[N];
    void *at[N] = {NULL}, *other;

    make(ctx, N, MEMCLIENT_ALLOC_NO_DESCRIPTOR, bufs);
    for (int i = 0; i < N; i++)
        options[i] = (struct memclient_map_options)MEMCLIENT_MAP_OPTIONS_INIT;
    assert_done(memclient_map(bufs[N - 2], NULL, &other));
    options[N - 2].flags = MEMCLIENT_MAP_ALONE;
    assert_refused(memclient_map_many(N, bufs, options, at), EADDRINUSE);
    assert_sentence("something is mapped there already");
    options[N - 2].length = 2 * SIZE;
    assert_refused(memclient_map_many(N, bufs, options, at), EOVERFLOW);
    options[N - 2].length = 0;
    options[N - 2].flags = 64;
    assert_refused(memclient_map_many(N, bufs, options, at), EINVAL);
    options[N - 2].flags = 0;
    options[N - 2].size = 0;
    assert_refused(memclient_map_many(N, bufs, options, at), EINVAL);
    assert_refused(memclient_map_many(N + 1, bufs, NULL, at), EINVAL);
    assert_refused(memclient_map_many(0, bufs, NULL, at), EINVAL);
    for (int i = 0; i < N; i++) {
        assert_null(at[i]);
        if (i != N - 2)
            assert_refused(memclient_address_query(memclient_buffer_home(bufs[i]), &info), EFAULT);
    }
    assert_done(memclient_unmap(ctx, other, SIZE));
    assert_done(memclient_map_many(N, bufs, NULL, at));
    memclient_buffer_unref_many(N, bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A handle that may only read, one of what was published meanwhile, and one of another context are mapped as well. */
static void all_kinds_of_handles_are_mapped(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *bufs[4], *made[3];
    struct memclient_token token;
    void *at[4];

    make(other, 1, 0, &made[0]);
    make(other, 1, MEMCLIENT_ALLOC_PUBLISHABLE, &made[1]);
    make(other, 1, 0, &made[2]);
    make(ctx, 1, MEMCLIENT_ALLOC_NO_DESCRIPTOR, &bufs[0]);
    for (int i = 1; i < 3; i++) {
        assert_done(memclient_share(made[i - 1], NULL, &token));
        assert_done(memclient_open_token(ctx, &token, i == 1 ? MEMCLIENT_READ : 0, &bufs[i]));
    }
    bufs[3] = made[2];
    assert_done(memclient_publish(made[1], 0));
    /* so that all descriptors of these are gone */
    for (int i = 0; i < 2; i++) {
        struct memclient_buffer *many[N];

        make(i ? other : ctx, N, 0, many);
        memclient_buffer_unref_many(N, many);
    }
    assert_done(memclient_map_many(4, bufs, NULL, at));
    *(char *)at[0] = 1;
    assert_int_equal(*(char *)at[1] + *(char *)at[2], 0);
    *(char *)at[3] = 1;
    assert_true(memclient_buffer_flags(bufs[2]) & MEMCLIENT_BUFFER_PUBLISHED);
    memclient_buffer_unref_many(4, bufs);
    memclient_buffer_unref_many(2, made);
    memclient_context_close(ctx);
    memclient_context_close(other);
    broker_finish(broker);
}

/* ---- without a descriptor ---------------------------------------------------------------------------------------- */

/* No descriptor is there, neither here nor with anybody else, until the buffer is mapped or exported. */
static void none_comes_until_it_is_needed(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[3];
    struct memclient_token token;
    int fds = fd_count(), fd;
    uint64_t before = requests(ctx);
    char *p;

    make(ctx, 3, MEMCLIENT_ALLOC_NO_DESCRIPTOR, bufs);
    assert_calls(ctx, before, 1);
    assert_int_equal(fd_count(), fds);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(memclient_buffer_flags(bufs[i]) & MEMCLIENT_ALLOC_NO_DESCRIPTOR, 0);
        assert_int_equal(broker_info(bufs[i]).flags & (MEMCLIENT_ALLOC_NO_DESCRIPTOR | MEMCLIENT_BUFFER_EXPORTED), 0);
    }
    assert_done(memclient_share(bufs[0], NULL, &token));
    assert_int_equal(fd_count(), fds);
    assert_int_equal(broker_info(bufs[0]).flags & MEMCLIENT_BUFFER_EXPORTED, 0);

    before = requests(ctx);
    assert_done(memclient_map(bufs[1], NULL, (void **)&p));
    assert_calls(ctx, before, 1);
    *p = 1;
    assert_done(memclient_export_fd(bufs[2], 0, &fd));
    close(fd);
    for (int i = 1; i < 3; i++)
        assert_true(broker_info(bufs[i]).flags & MEMCLIENT_BUFFER_EXPORTED);
    memclient_buffer_unref_many(3, bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What is imported is mapped by what it was imported by, with that one's access, and the caller's own is not needed. */
static void imports_bring_theirs(void **state)
{
    static const unsigned rights[] = {MEMCLIENT_READ, MEMCLIENT_READ | MEMCLIENT_WRITE};
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf, *imported;
    char *p, *q;

    make(ctx, 1, 0, &buf);
    assert_done(memclient_map(buf, NULL, (void **)&p));
    for (int i = 0; i < 2; i++) {
        struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
        struct memclient_context *other = broker_connect(broker);
        int fds = fd_count(), fd;
        uint64_t before;

        assert_done(memclient_export_fd(buf, rights[i], &fd));
        before = requests(ctx);
        assert_done(memclient_import_fd(other, fd, &imported));
        close(fd);
        options.flags = MEMCLIENT_MAP_NOT_HOME;
        assert_done(memclient_map(imported, &options, (void **)&q));
        /* a socket to the door, which the context keeps, and the import */
        assert_calls(ctx, before, 2);
        *p = (char)i;
        assert_int_equal(*q, i);
        options.access = MEMCLIENT_WRITE;
        if (rights[i] & MEMCLIENT_WRITE)
            assert_done(memclient_map(imported, &options, (void **)&q));
        else
            assert_refused(memclient_map(imported, &options, (void **)&q), EACCES);
        memclient_context_close(other);
        assert_int_equal(fd_count(), fds - 1);
        memclient_buffer_unref(imported);
    }
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void claim_in_child(int channel, void *context)
{
    struct memclient_buffer **bufs = context;
    void *p;

    (void)channel;
    CHECK_REFUSED(memclient_map(bufs[0], NULL, &p), ESTALE);
    CHECK_REFUSED(memclient_map_many(2, bufs, NULL, &p), ESTALE);
    CHECK_DONE(memclient_map(bufs[1], NULL, &p));
}

/* What a child claims a buffer anew by is its descriptor. */
static void children_claim_by_descriptors(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[2];

    make(ctx, 1, MEMCLIENT_ALLOC_NO_DESCRIPTOR, &bufs[0]);
    make(ctx, 1, 0, &bufs[1]);
    child_run(claim_in_child, bufs);
    memclient_buffer_unref_many(2, bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(many_are_mapped_by_one_request), at_broker(each_is_mapped_as_it_is_wanted),
        at_broker(all_are_mapped_or_none),         at_broker(all_kinds_of_handles_are_mapped),
        at_broker(none_comes_until_it_is_needed),  at_broker(imports_bring_theirs),
        at_broker(children_claim_by_descriptors),
    };

    return test_run(tests, NULL, NULL);
}
