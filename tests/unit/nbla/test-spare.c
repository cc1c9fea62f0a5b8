/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare chunks: small ones are asked for together, and those that are not used yet are in nobody's way. What a process
 * keeps goes with it, so most of this is done in children.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/align.h"
#include "tests/support/child.h"
#include "tests/unit/nbla/nbla.h"

#define BYTES      ((size_t)1024)
#define PAGE       page_size()
#define SPARE_MOST 32
/* What the test's user may have. */
#define LIMIT ((size_t)4 << 20)

/* ---- what there is ----------------------------------------------------------------------------------------------- */

struct kept {
    unsigned n;
    uint64_t bytes;
};

static int count_kept(const struct memclient_buffer_info *info, void *data)
{
    struct kept *kept = data;
    bool is_cached = false;

    for (uint32_t i = 0; i < info->n_holders; i++)
        is_cached |= info->holder_cached[i];
    kept->n += is_cached;
    kept->bytes += is_cached ? info->bytes : 0;
    return 0;
}

/* As listings show it. */
static struct kept what_is_kept(void)
{
    struct kept kept = {0};

    CHECK(memclient_list_buffers(NULL, count_kept, &kept) == 0);
    return kept;
}

static nbla_physical_memory *chunk(struct memclient_context *ctx, size_t bytes)
{
    nbla_physical_memory *p = nbla_physical_memory_new(ctx, bytes, "");

    CHECK(p && nbla_physical_memory_alloc(p) >= bytes);
    return p;
}

static nbla_memory *block(nbla_physical_memory *p)
{
    nbla_memory *memory = nbla_memory_new_virtual(NULL, nbla_physical_memory_bytes(p), "", &p, 1);

    CHECK(memory && nbla_memory_bind(memory) == 0);
    nbla_physical_memory_unref(p);
    return memory;
}

static bool is_zeroed(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static uint64_t requests(void)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    CHECK(memclient_broker_query(NULL, &status) == 0);
    return status.requests;
}

enum { MANY = 200 };

/* Blocks that stay are made by few requests, the last as the first: a batch of chunks and one of addresses for 32. */
static void make_many(int channel, void *context)
{
    nbla_memory *memories[MANY];
    uint64_t begin = requests(), last = 0;

    (void)channel;
    (void)context;
    for (int i = 0; i < MANY; i++) {
        memories[i] = block(nbla_physical_memory_new(NULL, BYTES, ""));
        CHECK(is_zeroed(nbla_memory_pointer(memories[i]), PAGE));
        memset(nbla_memory_pointer(memories[i]), i % 100 + 1, PAGE);
        if (i == MANY - 1 - 3 * SPARE_MOST)
            last = requests();
    }
    CHECK(requests() - last <= 1 + 3 + 3 + 1);
    CHECK(requests() - begin <= 2 * (MANY / SPARE_MOST) + 16);
    for (int i = 0; i < MANY; i++) {
        CHECK(*(char *)nbla_memory_pointer(memories[i]) == i % 100 + 1);
        CHECK(i == MANY - 1 || nbla_memory_id(memories[i]) != nbla_memory_id(memories[i + 1]));
        CHECK(nbla_memory_destroy(memories[i]) == 0);
    }
}

static void many_cost_few_requests(void **state)
{
    child_run(make_many, NULL);
}

/* Twice as many each time, up to the bounds; never more than are in use already, and none of large ones. */
static void grow_the_batch(int channel, void *context)
{
    static const unsigned spare[] = {0, 1, 0, 3, 2, 1, 0, 7};
    enum { N = sizeof(spare) / sizeof(*spare) };
    nbla_physical_memory *p[MANY];

    (void)channel;
    (void)context;
    for (int i = 0; i < 200; i++) {
        p[i] = chunk(NULL, BYTES);
        if (i < N)
            CHECK(what_is_kept().n == spare[i]);
    }
    CHECK(what_is_kept().n < SPARE_MOST);
    for (int i = 0; i < 200; i++)
        nbla_physical_memory_unref(p[i]);
    CHECK(what_is_kept().n < SPARE_MOST);
}

static void large_ones_are_not_spare(int channel, void *context)
{
    nbla_physical_memory *p[4];

    (void)channel;
    (void)context;
    for (int i = 0; i < 4; i++) {
        p[i] = chunk(NULL, LIMIT / 4);
        CHECK(what_is_kept().n <= 1);
        CHECK(what_is_kept().bytes <= LIMIT / 4);
        nbla_physical_memory_unref(p[i]);
    }
    for (int i = 0; i < 4; i++) {
        p[i] = chunk(NULL, LIMIT / 8 * 5);
        CHECK(what_is_kept().bytes <= LIMIT / 4);
        nbla_physical_memory_unref(p[i]);
    }
}

static void batches_grow_up_to_the_bounds(void **state)
{
    child_run(grow_the_batch, NULL);
    child_run(large_ones_are_not_spare, NULL);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* All that the limit allows is had, to the last page: spare chunks go before anything is refused. */
static void use_all(int channel, void *context)
{
    enum { ALL = LIMIT / 4096 };
    static nbla_physical_memory *p[ALL + 1];
    int n;

    (void)channel;
    (void)context;
    for (n = 0; n <= ALL; n++) {
        p[n] = nbla_physical_memory_new(NULL, BYTES, "");
        if (!nbla_physical_memory_alloc(p[n]))
            break;
    }
    CHECK((size_t)n == LIMIT / PAGE);
    CHECK(nbla_error_code() == NBLA_ERROR_MEMORY);
    for (int i = 0; i <= n; i++)
        nbla_physical_memory_unref(p[i]);
}

/* A block that is not virtual gets their room as well. */
static void use_all_at_once(int channel, void *context)
{
    nbla_physical_memory *p[20];
    nbla_memory *memory;

    (void)channel;
    (void)context;
    for (int i = 0; i < 20; i++)
        p[i] = chunk(NULL, BYTES);
    CHECK(what_is_kept().n > 0);
    memory = nbla_memory_new(NULL, LIMIT - 20 * PAGE, "");
    CHECK(nbla_memory_alloc(memory) == 0);
    CHECK(nbla_memory_destroy(memory) == 0);
    for (int i = 0; i < 20; i++)
        nbla_physical_memory_unref(p[i]);
}

static void I7_spare_ones_go_before_a_refusal(void **state)
{
    child_run(use_all, NULL);
    child_run(use_all_at_once, NULL);
}

static void keep_spare_ones(int channel, void *context)
{
    nbla_physical_memory *p[9];

    (void)context;
    for (int i = 0; i < 9; i++)
        p[i] = chunk(NULL, 64 << 10);
    CHECK(what_is_kept().n == 6);
    tell(channel);
    hear(channel);
    /* what was taken is not used, and there is more */
    CHECK(what_is_kept().n == 0);
    for (int i = 0; i < 9; i++) {
        nbla_physical_memory *next = chunk(NULL, 64 << 10);
        nbla_memory *memory = block(nbla_physical_memory_ref(next));
        struct memclient_token token;
        uint64_t offset, length;

        CHECK(nbla_physical_memory_token(next, &token, &offset, &length) == 0);
        nbla_physical_memory_unref(next);
        CHECK(is_zeroed(nbla_memory_pointer(memory), 64 << 10));
        CHECK(nbla_memory_destroy(memory) == 0);
        nbla_physical_memory_unref(p[i]);
    }
}

/* Another process gets what an idle one has spare, but for the granule that each of its descriptors keeps. */
static void I4_others_get_what_is_spare(void **state)
{
    struct memclient_buffer *all;
    struct child child;

    child_start(&child, keep_spare_ones, NULL);
    child_hear(&child);
    assert_int_equal(memclient_alloc(NULL, LIMIT - 9 * (64 << 10) - 6 * PAGE, NULL, &all), 0);
    memclient_buffer_unref(all);
    assert_int_equal(memclient_broker_ping(NULL), 0);
    child_tell(&child);
    child_finish(&child);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static unsigned memory_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    unsigned n = 0;

    CHECK(folder);
    while ((entry = readdir(folder))) {
        char path[300], to[300] = "";

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        n += readlink(path, to, sizeof(to) - 1) > 0 && strstr(to, "memfd:");
    }
    (void)closedir(folder);
    return n;
}

static void use_own(int channel, void *context)
{
    const unsigned *before = context;

    (void)channel;
    CHECK(memory_files() + 7 <= *before);
    for (int i = 0; i < 8; i++) {
        nbla_memory *memory = block(nbla_physical_memory_new(NULL, BYTES, ""));

        memset(nbla_memory_pointer(memory), 'c', PAGE);
        CHECK(nbla_memory_destroy(memory) == 0);
    }
}

/* A child has no descriptor of its parent's spare chunks, and gets others; the parent goes on with them. */
static void fork_with_spare_ones(int channel, void *context)
{
    nbla_physical_memory *p[8];
    struct child child;
    unsigned before;

    (void)channel;
    (void)context;
    for (int i = 0; i < 8; i++)
        p[i] = chunk(NULL, BYTES);
    CHECK(what_is_kept().n == 7);
    before = memory_files();
    child_start(&child, use_own, &before);
    CHECK(child_wait(&child) == 0);
    CHECK(WAIT_UNTIL(what_is_kept().n == 7)); /* the broker may see the end of the child later than we do */
    for (int i = 0; i < 7; i++) {
        nbla_memory *memory = block(chunk(NULL, BYTES));

        CHECK(is_zeroed(nbla_memory_pointer(memory), PAGE));
        CHECK(nbla_memory_destroy(memory) == 0);
    }
    CHECK(what_is_kept().n == 0);
    for (int i = 0; i < 8; i++)
        nbla_physical_memory_unref(p[i]);
}

static void forked(void **state)
{
    child_run(fork_with_spare_ones, NULL);
}

/* ---- who has them ------------------------------------------------------------------------------------------------ */

/* What was spare is shared like any other; a part of addresses that has somebody's home is not used for others. */
static void share_spare_ones(int channel, void *context)
{
    void *at[3];

    (void)channel;
    (void)context;
    for (int i = 0; i < 3; i++) {
        nbla_physical_memory *p = chunk(NULL, BYTES), *opened;
        nbla_memory *memory = block(nbla_physical_memory_ref(p)), *other;
        struct memclient_token token;
        uint64_t offset, length;

        at[i] = nbla_memory_pointer(memory);
        CHECK(nbla_physical_memory_token(p, &token, &offset, &length) == 0);
        CHECK(nbla_physical_memory_open_token(NULL, &token, offset, length, NULL, &opened) == 0);
        memset(at[i], 'a' + i, PAGE);
        CHECK(nbla_memory_destroy(memory) == 0);
        other = block(opened);
        CHECK(*(char *)nbla_memory_pointer(other) == 'a' + i);
        CHECK(nbla_memory_destroy(other) == 0);
        nbla_physical_memory_unref(p);
    }
    CHECK(at[0] != at[1] && at[1] != at[2] && at[0] != at[2]);
}

static void shared(void **state)
{
    child_run(share_spare_ones, NULL);
}

/* Of a context that is closed nothing is used any more, and of another nothing is taken. */
static void close_with_spare_ones(int channel, void *context)
{
    (void)channel;
    (void)context;
    for (int round = 0; round < 20; round++) {
        nbla_physical_memory *p[4];
        struct memclient_context *ctx;

        CHECK(memclient_context_open(NULL, &ctx) == 0);
        for (int i = 0; i < 4; i++) {
            nbla_memory *memory;

            p[i] = chunk(ctx, BYTES);
            memory = nbla_memory_new_virtual(ctx, BYTES, "", &p[i], 1);
            CHECK(nbla_memory_bind(memory) == 0);
            CHECK(nbla_memory_destroy(memory) == 0);
            nbla_physical_memory_unref(p[i]);
        }
        CHECK(nbla_memory_destroy(block(chunk(NULL, BYTES))) == 0);
        memclient_context_close(ctx);
    }
    CHECK(what_is_kept().n < SPARE_MOST);
}

static void contexts(void **state)
{
    child_run(close_with_spare_ones, NULL);
}

/* ---- threads, and brokers that die ------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 150 };

static void *make_and_free(void *context)
{
    unsigned seed = *(unsigned *)context;

    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes = (size_t)(1 + rand_r(&seed) % 3) << (rand_r(&seed) % 2 ? 10 : 14);
        nbla_memory *memory = block(chunk(NULL, bytes));

        CHECK(is_zeroed(nbla_memory_pointer(memory), bytes));
        memset(nbla_memory_pointer(memory), 1, bytes);
        CHECK(nbla_memory_destroy(memory) == 0);
    }
    return NULL;
}

static void run_threads(int channel, void *context)
{
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];

    (void)context;
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i;
        CHECK(pthread_create(&threads[i], NULL, make_and_free, &seeds[i]) == 0);
    }
    if (context)
        tell(channel);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void several_threads(void **state)
{
    child_run(run_threads, NULL);
}

/* The broker is killed again and again while they work: nothing is lost, shown twice or refused. */
static void I5_brokers_die_meanwhile(void **state)
{
    struct child child;

    child_start(&child, run_threads, &child);
    child_hear(&child);
    for (int i = 0; i < 6; i++) {
        broker_kill_child(&observed);
        usleep(20000);
    }
    child_finish(&child);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_cost_few_requests),
        TEST(batches_grow_up_to_the_bounds),
        TEST(I7_spare_ones_go_before_a_refusal),
        TEST(I4_others_get_what_is_spare),
        TEST(forked),
        TEST(shared),
        TEST(contexts),
        TEST(several_threads),
        TEST(I5_brokers_die_meanwhile),
    };

    setenv("MEMORYD_CACHE", "64", 1);
    nbla_config = "[limits]\nuid_bytes = 4M\nuid_addresses = 60G\nsession_addresses = 60G\n";
    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
