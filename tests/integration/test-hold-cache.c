/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process keeps though it was given back: it comes back as it was, or it is gone, and it is gone when anybody
 * needs it, whatever the process does meanwhile, which here is mostly to wait in read().
 */
#include "tests/integration/clients.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "proto/hold_cache.h"

#define TIGHT "[pool tight]\nnodes = 0\ncapacity = 64M\n"
#define ALL   (64 * MIB)
#define SIZE  MIB
#define N     8

struct kept {
    struct memclient_buffer *buf;
    char *p;
};

static struct kept make(struct memclient_context *ctx, uint64_t size, const char *pool)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct kept kept;

    options.pool = pool;
    /* others may have all of it for a moment */
    options.wait_ms = pool ? PATIENCE_MS : 0;
    CHECK_DONE(memclient_alloc(ctx, size, &options, &kept.buf));
    CHECK_DONE(memclient_map(kept.buf, NULL, (void **)&kept.p));
    pattern_write(kept.p, size, memclient_buffer_id(kept.buf));
    return kept;
}

static void give_up(struct memclient_context *ctx, struct kept *kept)
{
    CHECK_DONE(memclient_unmap(ctx, kept->p, 0));
    kept->buf = memclient_buffer_unref(kept->buf);
}

static void check_lost(struct memclient_context *ctx, struct kept *kept, uint64_t size)
{
    CHECK(memclient_cache_is_lost(kept->buf) == 1);
    CHECK_REFUSED(memclient_cache_take(kept->buf), ESTALE);
    CHECK(all_zero(kept->p, size));
    give_up(ctx, kept);
}

static int count_cached(const struct memclient_buffer_info *info, void *data)
{
    unsigned *n = data;

    for (uint32_t i = 0; i < info->n_holders; i++)
        *n += info->holder_cached[i];
    return 0;
}

static unsigned cached_holds(struct memclient_context *ctx)
{
    unsigned n = 0;

    assert_done(memclient_list_buffers(ctx, count_cached, &n));
    return n;
}

static int try_alloc(struct memclient_context *ctx, uint64_t size, uint64_t wait_ms, struct memclient_buffer **buf)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pool = "tight";
    options.wait_ms = wait_ms;
    return memclient_alloc(ctx, size, &options, buf);
}

/* ---- in one process ---------------------------------------------------------------------------------------------- */

static void a_cached_buffer_comes_back_as_it_was(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct kept kept = make(ctx, SIZE, NULL);
    uint64_t id = memclient_buffer_id(kept.buf), requests = broker_status(other).requests;

    for (unsigned i = 0; i < 1000; i++) {
        assert_done(memclient_cache_put(kept.buf));
        assert_int_equal(memclient_cache_is_lost(kept.buf), 0);
        assert_done(memclient_cache_take(kept.buf));
    }
    assert_int_equal(broker_status(other).requests, requests + 1);
    assert_true(pattern_holds(kept.p, SIZE, id));

    assert_done(memclient_cache_put(kept.buf));
    assert_refused(memclient_cache_put(kept.buf), EALREADY);
    assert_int_equal(cached_holds(other), 1);
    broker_kill_child(broker);
    assert_int_equal(cached_holds(other), 1);
    assert_done(memclient_cache_take(kept.buf));
    assert_int_equal(cached_holds(other), 0);
    assert_true(pattern_holds(kept.p, SIZE, id));
    give_up(ctx, &kept);

    /* given up while it is kept */
    kept = make(ctx, SIZE, NULL);
    assert_done(memclient_cache_put(kept.buf));
    give_up(ctx, &kept);
    broker_wait_until_empty(broker);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void buffers_that_others_may_have_are_not_cached(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_name_options forever = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf, *again;
    struct memclient_token token;
    struct kept kept;
    void *p;
    int fd;

    kept = make(ctx, SIZE, NULL);
    assert_done(memclient_share(kept.buf, NULL, &token));
    assert_refused(memclient_cache_put(kept.buf), EBUSY);
    give_up(ctx, &kept);

    kept = make(ctx, SIZE, NULL);
    assert_done(memclient_export_fd(kept.buf, 0, &fd));
    assert_ok(close(fd));
    assert_refused(memclient_cache_put(kept.buf), EBUSY);
    give_up(ctx, &kept);

    kept = make(ctx, SIZE, NULL);
    assert_done(memclient_bind_name(kept.buf, "kept", &forever));
    assert_done(memclient_unbind_name(ctx, "kept"));
    assert_refused(memclient_cache_put(kept.buf), EBUSY);
    again = memclient_buffer_ref(kept.buf);
    memclient_buffer_unref(again);
    give_up(ctx, &kept);

    kept = make(ctx, SIZE, NULL);
    again = memclient_buffer_ref(kept.buf);
    assert_refused(memclient_cache_put(kept.buf), EBUSY);
    memclient_buffer_unref(again);
    assert_done(memclient_map(
        kept.buf,
        &(struct memclient_map_options){.size = sizeof(struct memclient_map_options), .flags = MEMCLIENT_MAP_NOT_HOME},
        &p));
    assert_refused(memclient_cache_put(kept.buf), EBUSY);
    assert_done(memclient_unmap(ctx, p, 0));
    assert_done(memclient_cache_put(kept.buf));
    assert_done(memclient_cache_take(kept.buf));
    give_up(ctx, &kept);

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    assert_refused(memclient_cache_put(buf), EBUSY);
    memclient_buffer_unref(buf);

    /* a name for as long as the session: who opens it by that ends it */
    options = (struct memclient_alloc_options)MEMCLIENT_ALLOC_OPTIONS_INIT;
    options.name = "mine";
    options.name_options = &forever;
    forever.policy = MEMCLIENT_NAME_FREE;
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    assert_done(memclient_cache_put(buf));
    assert_refused(memclient_open_name(other, "mine", 0, &again), ENOENT);
    assert_refused(memclient_cache_take(buf), ESTALE);
    memclient_buffer_unref(buf);
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    assert_done(memclient_open_name(other, "mine", 0, &again));
    assert_refused(memclient_cache_put(buf), EAGAIN);
    memclient_buffer_unref(again);
    memclient_buffer_unref(buf);

    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Another part of the process opens what one part keeps. */
static void who_opens_it_besides_has_it(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct kept kept = make(ctx, SIZE, NULL);
    uint64_t id = memclient_buffer_id(kept.buf);
    struct memclient_buffer *buf;

    assert_done(memclient_cache_put(kept.buf));
    assert_done(memclient_open_id(ctx, id, 0, &buf));
    assert_refused(memclient_cache_take(kept.buf), ESTALE);
    give_up(ctx, &kept);
    assert_done(memclient_map(buf, NULL, (void **)&kept.p));
    assert_true(pattern_holds(kept.p, SIZE, id));
    assert_done(memclient_unmap(ctx, kept.p, 0));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void no_more_is_kept_than_that(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct kept all[HOLD_CACHE_SLOTS + 1], large[3];

    for (unsigned i = 0; i < HOLD_CACHE_SLOTS + 1; i++) {
        all[i] = make(ctx, 4096, NULL);
        if (i < HOLD_CACHE_SLOTS)
            assert_done(memclient_cache_put(all[i].buf));
        else
            assert_refused(memclient_cache_put(all[i].buf), ENOSPC);
    }
    for (unsigned i = 0; i < HOLD_CACHE_SLOTS + 1; i++)
        give_up(ctx, &all[i]);
    for (unsigned i = 0; i < 3; i++)
        large[i] = make(ctx, 32 * MIB, NULL);
    assert_done(memclient_cache_put(large[0].buf));
    assert_done(memclient_cache_put(large[1].buf));
    assert_refused(memclient_cache_put(large[2].buf), ENOSPC);
    assert_done(memclient_cache_take(large[0].buf));
    assert_done(memclient_cache_put(large[2].buf));
    for (unsigned i = 0; i < 3; i++)
        give_up(ctx, &large[i]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- of one that is idle ----------------------------------------------------------------------------------------- */

static void keep_many(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct kept kept[N];

    for (unsigned i = 0; i < N; i++)
        kept[i] = make(ctx, ALL / N, "tight");
    for (unsigned i = 0; i < N; i++)
        CHECK_DONE(memclient_cache_put(kept[i].buf));
    tell(channel);
    hear(channel);
    for (unsigned i = 0; i < N; i++)
        check_lost(ctx, &kept[i], ALL / N);
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

static void kept_goes_to_who_needs_it(const char *config, uint64_t wait_ms, bool broker_dies)
{
    struct broker_process *broker = broker_for_test(config);
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    struct child child;

    child_start(&child, keep_many, broker->socket);
    child_hear(&child);
    ctx = broker_connect(broker);
    assert_int_equal(cached_holds(ctx), N);
    assert_true(broker_pool_used(ctx, "tight") >= ALL);
    if (broker_dies)
        broker_kill_child(broker);
    /* what the process has mapped stands for a page each, as long as it does not look */
    assert_done(try_alloc(ctx, ALL - MIB, wait_ms, &buf));
    assert_int_equal(cached_holds(ctx), 0);
    broker_check(broker);
    if (broker_dies) {
        broker_kill_child(broker);
        broker_check(broker);
    }
    memclient_buffer_unref(buf);
    child_tell(&child);
    child_hear(&child);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    assert_int_equal(broker_pool_used(ctx, "tight"), 0);
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I4_an_idle_cache_gives_way_to_who_finds_no_room(void **state)
{
    kept_goes_to_who_needs_it(TIGHT, 0, false);
}

static void I4_an_idle_cache_gives_way_to_who_waits(void **state)
{
    kept_goes_to_who_needs_it(TIGHT, PATIENCE_MS, false);
}

static void I4_an_idle_cache_gives_way_over_the_brokers_death(void **state)
{
    kept_goes_to_who_needs_it(TIGHT, 0, true);
}

static void I7_an_idle_cache_is_no_limit_to_its_user(void **state)
{
    kept_goes_to_who_needs_it("[limits]\nuid_bytes = 64M\n[pool tight]\nnodes = 0\ncapacity = 256M\n", 0, false);
}

/* ---- of what others made ----------------------------------------------------------------------------------------- */

struct opener {
    const char *socket;
    bool early; /* it keeps it before the maker lets go, else afterwards */
};

static void open_and_keep(int channel, void *context)
{
    const struct opener *opener = context;
    struct memclient_context *ctx = broker_connect_in_child(opener->socket);
    struct memclient_token token;
    struct kept kept;

    tell(channel);
    CHECK(take_bytes(channel, &token, sizeof(token)));
    CHECK_DONE(memclient_open_token(ctx, &token, 0, &kept.buf));
    CHECK_DONE(memclient_map(kept.buf, NULL, (void **)&kept.p));
    CHECK(pattern_holds(kept.p, SIZE, memclient_buffer_id(kept.buf)));
    if (opener->early)
        CHECK_DONE(memclient_cache_put(kept.buf));
    tell(channel);
    hear(channel);
    if (opener->early) {
        check_lost(ctx, &kept, SIZE);
    } else {
        CHECK_REFUSED(memclient_cache_put(kept.buf), EAGAIN);
        CHECK(pattern_holds(kept.p, SIZE, memclient_buffer_id(kept.buf)));
        give_up(ctx, &kept);
    }
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

enum end { RELEASED, CLOSED };

static void maker_lets_go(bool early, bool broker_dies, enum end how)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct opener opener = {.socket = broker->socket, .early = early};
    struct memclient_context *ctx, *maker;
    struct memclient_token token;
    struct child child;
    struct kept kept;

    child_start(&child, open_and_keep, &opener);
    child_hear(&child);
    ctx = broker_connect(broker);
    maker = broker_connect(broker);
    kept = make(maker, SIZE, "tight");
    assert_done(memclient_share(kept.buf, NULL, &token));
    assert_true(pass_bytes(child.channel, &token, sizeof(token)));
    child_hear(&child);
    assert_int_equal(cached_holds(ctx), early);
    if (broker_dies)
        broker_kill_child(broker);
    switch (how) {
    case RELEASED:
        give_up(maker, &kept);
        assert_done(memclient_broker_ping(maker));
        break;
    case CLOSED:
        memclient_buffer_unref(kept.buf);
        memclient_context_close(maker);
        break;
    }
    if (early)
        assert_true(WAIT_UNTIL(broker_pool_used(ctx, "tight") <= (uint64_t)page_size()));
    else
        assert_true(WAIT_UNTIL(broker_pool_used(ctx, "tight") == SIZE));
    broker_check(broker);
    child_tell(&child);
    child_hear(&child);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    child_tell(&child);
    child_finish(&child);
    if (how != CLOSED)
        memclient_context_close(maker);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I4_what_its_maker_freed_lives_in_no_cache(void **state)
{
    maker_lets_go(true, false, RELEASED);
    maker_lets_go(true, false, CLOSED);
}

static void I4_what_its_maker_freed_is_not_put_in_a_cache(void **state)
{
    maker_lets_go(false, false, RELEASED);
    maker_lets_go(false, false, CLOSED);
}

static void I4_what_its_maker_freed_lives_in_no_cache_over_the_brokers_death(void **state)
{
    maker_lets_go(true, true, RELEASED);
    maker_lets_go(false, true, RELEASED);
}

/* A descriptor that the program has is somebody: nothing is taken from who has it. */
static void I4_who_has_a_descriptor_keeps_the_contents(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct opener opener = {.socket = broker->socket, .early = true};
    struct memclient_context *ctx;
    struct memclient_token token;
    struct child child;
    struct kept kept;
    uint64_t id;
    char *p;
    int fd;

    child_start(&child, open_and_keep, &opener);
    child_hear(&child);
    ctx = broker_connect(broker);
    kept = make(ctx, SIZE, "tight");
    id = memclient_buffer_id(kept.buf);
    assert_done(memclient_share(kept.buf, NULL, &token));
    assert_done(memclient_export_fd(kept.buf, 0, &fd));
    assert_true(pass_bytes(child.channel, &token, sizeof(token)));
    child_hear(&child);
    give_up(ctx, &kept);
    assert_int_equal(cached_holds(ctx), 0);
    assert_int_equal(broker_pool_used(ctx, "tight"), SIZE);
    p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    assert_true(pattern_holds(p, SIZE, id));
    assert_ok(munmap(p, SIZE));
    assert_ok(close(fd));
    child_kill(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* It is destroyed while one has it cached, and another uses it: that one goes on. */
static void I4_who_uses_what_is_destroyed_keeps_the_contents(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct opener opener = {.socket = broker->socket, .early = true};
    struct memclient_context *ctx;
    struct memclient_token token;
    struct child child;
    struct kept kept;
    uint64_t id;

    child_start(&child, open_and_keep, &opener);
    child_hear(&child);
    ctx = broker_connect(broker);
    kept = make(ctx, SIZE, "tight");
    id = memclient_buffer_id(kept.buf);
    assert_done(memclient_share(kept.buf, NULL, &token));
    assert_true(pass_bytes(child.channel, &token, sizeof(token)));
    child_hear(&child);
    assert_done(memclient_destroy_id(ctx, id, 0));
    assert_int_equal(broker_status(ctx).buffers_detached, 1);
    assert_true(pattern_holds(kept.p, SIZE, id));
    assert_int_equal(broker_pool_used(ctx, "tight"), SIZE);
    broker_check(broker);
    child_kill(&child);
    assert_true(pattern_holds(kept.p, SIZE, id));
    give_up(ctx, &kept);
    broker_wait_until_empty(broker);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

static bool is_mapped(const void *p)
{
    unsigned char there;

    return !mincore((void *)(uintptr_t)p, page_size(), &there);
}

static void see_nothing_of_it(int channel, void *context)
{
    (void)channel;
    CHECK(!is_mapped(context));
}

static void see_it(int channel, void *context)
{
    const struct kept *kept = context;

    (void)channel;
    CHECK(pattern_holds(kept->p, SIZE, memclient_buffer_id(kept->buf)));
}

static void a_child_has_nothing_of_a_cache(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct kept kept = make(ctx, SIZE, NULL);

    assert_done(memclient_cache_put(kept.buf));
    child_run(see_nothing_of_it, kept.p);
    assert_done(memclient_cache_take(kept.buf));
    child_run(see_it, &kept);
    /* a child may have it still */
    assert_refused(memclient_cache_put(kept.buf), EBUSY);
    give_up(ctx, &kept);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Another part of the process has the same pages mapped, and keeps them: the child has what it would have without. */
static void a_child_has_what_is_mapped_besides(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct kept kept = make(ctx, SIZE, NULL), again;
    struct memclient_token token;

    assert_done(memclient_share(kept.buf, NULL, &token));
    assert_done(memclient_open_token(other, &token, 0, &again.buf));
    assert_done(memclient_map(again.buf, NULL, (void **)&again.p));
    assert_ptr_equal(again.p, kept.p);
    assert_done(memclient_cache_put(again.buf));
    child_run(see_it, &kept);
    assert_done(memclient_cache_take(again.buf));
    child_run(see_it, &again);
    give_up(other, &again);
    give_up(ctx, &kept);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- at once ----------------------------------------------------------------------------------------------------- */

struct worker {
    struct memclient_context *ctx;
    atomic_bool *stop;
    uint64_t kept;
    uint64_t lost;
};

static void *put_and_take(void *data)
{
    struct worker *worker = data;
    struct kept kept = {.buf = NULL};

    while (!*worker->stop) {
        if (!kept.buf)
            kept = make(worker->ctx, 16 * 4096, "tight");
        if (memclient_cache_put(kept.buf)) {
            give_up(worker->ctx, &kept);
            continue;
        }
        if (worker->kept % 3 == 0)
            sched_yield();
        if (memclient_cache_take(kept.buf)) {
            worker->lost++;
            give_up(worker->ctx, &kept);
            continue;
        }
        worker->kept++;
        CHECK(pattern_holds(kept.p, 16 * 4096, memclient_buffer_id(kept.buf)));
    }
    if (kept.buf)
        give_up(worker->ctx, &kept);
    return NULL;
}

/* One asks for more than there is, again and again, so that all is taken from caches that are in use. */
static void what_is_taken_back_was_never_the_brokers(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct worker workers[3];
    struct memclient_buffer *buf;
    atomic_bool stop = false;
    pthread_t threads[3];
    uint64_t lost = 0, kept = 0;

    for (unsigned i = 0; i < 3; i++) {
        workers[i] = (struct worker){.ctx = ctx, .stop = &stop};
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_take, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 30; i++) {
        if (!try_alloc(other, ALL, 0, &buf))
            memclient_buffer_unref(buf);
        /* until clients may keep something again */
        poll(NULL, 0, 150);
        if (i == 20)
            broker_kill_child(broker);
    }
    stop = true;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        lost += workers[i].lost;
        kept += workers[i].kept;
    }
    assert_true(kept > 0);
    print_message("%llu taken back, %llu lost\n", (unsigned long long)kept, (unsigned long long)lost);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- lies -------------------------------------------------------------------------------------------------------- */

/* Where the library has it. */
static struct hold_cache *find_cache(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    struct session_memory *memory = NULL;

    CHECK(maps);
    while (!memory && fgets(line, sizeof(line), maps))
        if (strstr(line, "memfd:memoryd:releases"))
            memory = (struct session_memory *)strtoul(line, NULL, 16);
    fclose(maps);
    CHECK(memory);
    return &memory->cache;
}

/* It has opened the buffer twice, and given back one of that: it goes once, and the other stays. */
static void give_back_one_of_two(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct hold_cache *cache = find_cache();
    struct memclient_buffer *again;
    struct memclient_token token;
    struct kept kept;

    tell(channel);
    CHECK(take_bytes(channel, &token, sizeof(token)));
    CHECK_DONE(memclient_open_token(ctx, &token, 0, &kept.buf));
    CHECK_DONE(memclient_open_token(ctx, &token, 0, &again));
    CHECK_DONE(memclient_map(kept.buf, NULL, (void **)&kept.p));
    cache->slots[9].buffer = memclient_buffer_id(kept.buf);
    cache->slots[9].claims = 1;
    __atomic_store_n(&cache->slots[9].state, HOLD_CACHED, __ATOMIC_SEQ_CST);
    tell(channel);
    hear(channel);
    CHECK(__atomic_load_n(&cache->slots[9].state, __ATOMIC_SEQ_CST) == (HOLD_CACHED | HOLD_TAKEN | HOLD_DONE));
    CHECK(broker_info(kept.buf).holds == 1);
    CHECK(pattern_holds(kept.p, SIZE, memclient_buffer_id(kept.buf)));
    memclient_buffer_unref(again);
    give_up(ctx, &kept);
    memclient_context_close(ctx);
}

static void a_buffer_that_is_open_elsewhere_stays(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_token token;
    struct memclient_context *ctx;
    struct child child;
    struct kept kept;

    child_start(&child, give_back_one_of_two, broker->socket);
    child_hear(&child);
    ctx = broker_connect(broker);
    kept = make(ctx, SIZE, "tight");
    assert_done(memclient_share(kept.buf, NULL, &token));
    assert_true(pass_bytes(child.channel, &token, sizeof(token)));
    child_hear(&child);
    give_up(ctx, &kept);
    assert_done(memclient_broker_ping(ctx));
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void write_nonsense(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct hold_cache *cache = find_cache();
    struct kept kept[N];
    uint64_t ids[N], random = 88172645463325252u;

    for (unsigned i = 0; i < N; i++) {
        kept[i] = make(ctx, SIZE, "tight");
        ids[i] = memclient_buffer_id(kept[i].buf);
    }
    tell(channel);
    for (unsigned n = 0;; n++) {
        uint32_t *words = (uint32_t *)cache;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (n % 4 == 0) {
            struct hold_cache_slot *slot = &cache->slots[random % HOLD_CACHE_SLOTS];

            slot->buffer = ids[random / 64 % N] + (random >> 60 == 0);
            slot->claims = (uint32_t)(random >> 40);
            slot->state = random >> 32 & 3 ? HOLD_CACHED : (uint32_t)(random >> 32);
        } else if (n % 64 == 63) {
            /* the pages are gone for a moment */
            (void)madvise((void *)((uintptr_t)cache - sizeof(struct release_log)), SESSION_MEMORY_SIZE, MADV_REMOVE);
        } else {
            words[random % (sizeof(*cache) / 4)] = (uint32_t)(random >> 32);
        }
    }
}

static void I8_nonsense_in_a_cache_hurts_nobody_else(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    struct child child;
    struct kept kept;
    pid_t serving;

    child_start(&child, write_nonsense, broker->socket);
    child_hear(&child);
    ctx = broker_connect(broker);
    kept = make(ctx, SIZE, "tight");
    serving = broker_child(broker);
    for (unsigned i = 0; i < 200; i++) {
        if (!try_alloc(ctx, ALL - SIZE, 0, &buf))
            memclient_buffer_unref(buf);
        (void)cached_holds(ctx);
        if (!memclient_cache_put(kept.buf) && memclient_cache_take(kept.buf)) {
            give_up(ctx, &kept);
            kept = make(ctx, SIZE, "tight");
        }
        assert_true(pattern_holds(kept.p, SIZE, memclient_buffer_id(kept.buf)));
    }
    broker_check(broker);
    assert_int_equal(broker_child(broker), serving);
    /* nor the broker that finds it */
    broker_kill_child(broker);
    broker_check(broker);
    child_kill(&child);
    give_up(ctx, &kept);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_cached_buffer_comes_back_as_it_was),
        at_broker(buffers_that_others_may_have_are_not_cached),
        at_broker(who_opens_it_besides_has_it),
        at_broker(no_more_is_kept_than_that),
        at_broker(I4_an_idle_cache_gives_way_to_who_finds_no_room),
        at_broker(I4_an_idle_cache_gives_way_to_who_waits),
        at_broker(I4_an_idle_cache_gives_way_over_the_brokers_death),
        at_broker(I7_an_idle_cache_is_no_limit_to_its_user),
        at_broker(I4_what_its_maker_freed_lives_in_no_cache),
        at_broker(I4_what_its_maker_freed_is_not_put_in_a_cache),
        at_broker(I4_what_its_maker_freed_lives_in_no_cache_over_the_brokers_death),
        at_broker(I4_who_has_a_descriptor_keeps_the_contents),
        at_broker(I4_who_uses_what_is_destroyed_keeps_the_contents),
        at_broker(a_child_has_nothing_of_a_cache),
        at_broker(a_child_has_what_is_mapped_besides),
        at_broker(what_is_taken_back_was_never_the_brokers),
        at_broker(a_buffer_that_is_open_elsewhere_stays),
        at_broker(I8_nonsense_in_a_cache_hurts_nobody_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
