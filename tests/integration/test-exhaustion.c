/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs out before memory does: descriptors, of the broker and of a client, and mappings. Each end is told by a
 * sentence that says what to do, comes before the kernel's own where that would hurt, and goes once something is given
 * back. Small objects take neither: a pool has one buffer, and one mapping, for a whole slab.
 */
#include "tests/integration/clients.h"

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/support/memory.h"

#define NOFILE 600
/* Of a client; some are the test's own. */
#define TABLE           100
#define MORE_THAN_TABLE (3 * TABLE)
/* So many mappings are made in a moment; where more are allowed it is not tried. */
#define MAPPINGS_TRIED 100000
#define OBJECTS        100000
#define OBJECT         64
#define SLAB           (2 * MIB)

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static void a_broker_says_how_to_get_more_descriptors_before_it_has_none(void **state)
{
    struct broker_process *broker = broker_for_test_with_nofile(NOFILE, NULL);
    struct memclient_context *ctx = broker_connect(broker), *other;
    struct memclient_buffer *bufs[NOFILE], *buf;
    size_t n = 0;
    int r;

    while (n < NOFILE && (r = memclient_alloc(ctx, 1, NULL, &bufs[n])) == 0)
        n++;
    assert_in_range(n, 1, NOFILE - 1);
    assert_int_equal(r, -EDQUOT);
    assert_non_null(strstr(memclient_error(), "LimitNOFILE"));
    assert_non_null(strstr(memclient_error(), "slab"));
    /* there are some left for whoever comes */
    other = broker_connect(broker);
    assert_done(memclient_open_id(other, memclient_buffer_id(bufs[0]), 0, &buf));
    memclient_buffer_unref(buf);
    memclient_context_close(other);
    memclient_buffer_unref(bufs[--n]);
    assert_true(WAIT_UNTIL(memclient_alloc(ctx, 1, NULL, &bufs[n]) == 0));
    n++;
    while (n)
        memclient_buffer_unref(bufs[--n]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void live_with_few_descriptors(int channel, void *context)
{
    struct rlimit limit = {TABLE, TABLE};
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf;
    int fds[TABLE], n = 0, r = 0;
    void *at;

    (void)channel;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < MORE_THAN_TABLE; i++) {
        CHECK_DONE(memclient_alloc(ctx, 1, NULL, &buf));
        CHECK_DONE(memclient_map(buf, NULL, &at));
        *(volatile char *)at = 1;
    }
    while (n < TABLE && (r = memclient_export_fd(buf, 0, &fds[n])) == 0)
        n++;
    CHECK(r == -EMFILE);
    CHECK(strstr(memclient_error(), "ulimit -n"));
    while (n)
        close(fds[--n]);
    CHECK_DONE(memclient_export_fd(buf, 0, &fds[0]));
    close(fds[0]);
    /* what it has goes with it */
    memclient_context_close(ctx);
}

static void a_client_may_have_more_buffers_than_descriptors(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct child child;

    child_start(&child, live_with_few_descriptors, broker->socket);
    child_finish(&child);
    broker_finish(broker);
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

static long mappings_allowed(void)
{
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    long n = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &n), 1);
    (void)fclose(f);
    return n;
}

static void mappings_end_before_the_process_has_none(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct broker_process *broker;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    void **at, *others;
    long n = 0;
    int r;

    if (TEST_TSAN)
        test_skip("the sanitizer remembers each mapping that ever was, and takes minutes");
    if (mappings_allowed() > MAPPINGS_TRIED)
        test_skip("vm.max_map_count is %ld: that many would take long", mappings_allowed());
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    at = calloc((size_t)mappings_allowed(), sizeof(void *));
    assert_non_null(at);
    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    while (n < mappings_allowed() && (r = memclient_map(buf, &options, &at[n])) == 0)
        n++;
    assert_in_range(n, mappings_allowed() / 2, mappings_allowed() - 1);
    assert_int_equal(r, -ENOMEM);
    assert_non_null(strstr(memclient_error(), "vm.max_map_count"));
    assert_non_null(strstr(memclient_error(), "slab"));
    /* the rest of the program does not notice */
    others = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(others != MAP_FAILED);
    assert_ok(munmap(others, MIB));
    assert_done(memclient_unmap(ctx, at[--n], memclient_buffer_bytes(buf)));
    assert_done(memclient_map(buf, &options, &at[n]));
    n++;
    while (n)
        assert_done(memclient_unmap(ctx, at[--n], memclient_buffer_bytes(buf)));
    free(at);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- slabs ------------------------------------------------------------------------------------------------------- */

/* Of memory files, that is, of buffers. */
static size_t buffers_mapped(void)
{
    return maps_named("/memfd:memoryd-");
}

static void make_objects(int channel, void *context)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;
    size_t before = buffers_mapped(), mapped;
    struct memclient_context *ctx;
    void **ptrs = calloc(OBJECTS, sizeof(void *));

    (void)channel;
    CHECK(ptrs && setenv("MEMORYD_SOCKET", context, 1) == 0);
    params.SlabMinSize = SLAB;
    params.MinBucketSize = OBJECT;
    params.MaxPoolableSize = 64 * OBJECT;
    CHECK(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider) == UMF_RESULT_SUCCESS);
    CHECK(umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool) ==
          UMF_RESULT_SUCCESS);
    for (size_t i = 0; i < OBJECTS; i++) {
        ptrs[i] = umfPoolMalloc(pool, OBJECT);
        CHECK_DONE(ptrs[i] ? 0 : -1);
    }
    CHECK_DONE(memclient_context_default(&ctx));
    CHECK_DONE(memclient_broker_query(ctx, &status));
    CHECK(status.buffers >= OBJECTS * OBJECT / SLAB && status.buffers <= 2 * OBJECTS * OBJECT / SLAB + 1);
    mapped = buffers_mapped() - before;
    CHECK(mapped >= 1 && mapped <= status.buffers);
    for (size_t i = 0; i < OBJECTS; i++)
        CHECK(umfPoolFree(pool, ptrs[i]) == UMF_RESULT_SUCCESS);
    umfPoolDestroy(pool);
    free(ptrs);
}

static void a_slab_is_one_buffer_and_one_mapping(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct child child;

    child_start(&child, make_objects, broker->socket);
    child_finish(&child);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_broker_says_how_to_get_more_descriptors_before_it_has_none),
        at_broker(a_client_may_have_more_buffers_than_descriptors),
        at_broker(mappings_end_before_the_process_has_none),
        at_broker(a_slab_is_one_buffer_and_one_mapping),
    };

    return test_run(tests, NULL, NULL);
}
