/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large memory of pages of 2 MiB that the broker has ready: 256 MiB allocated, mapped and written, against what
 * malloc() gives, and against writing the same memory again; and 1 GiB until it can be written without a page being
 * cleared, against a memory file of such pages.
 * Both sides have the time in between that the broker takes to have as much ready again.
 */
#include <memclient/memclient.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define MIB   ((size_t)1 << 20)
#define GIB   ((size_t)1 << 30)
#define HUGE  (2 * MIB)
#define SMALL (256 * MIB)

/* How long the broker may take to have memory ready again, after what was freed has been given back. */
#define PATIENCE_US 3e6
#define LULL_US     20000
#define WARMING     8

enum { WRITE, REWRITE, READY, ROWS };

static const struct bench_row rows[ROWS] = {
    [WRITE] = {.name = "write_256m_vs_malloc", .unit = BENCH_GB_PER_S, .operations = SMALL, .rival = true, .hold = 10},
    [REWRITE] =
        {.name = "write_256m_vs_rewrite", .unit = BENCH_GB_PER_S, .operations = SMALL, .rival = true, .hold = 0.85},
    [READY] = {.name = "stock_1g_ready", .unit = BENCH_MS, .goal = 1},
};

struct work {
    struct memclient_alloc_options options;
    struct memclient_buffer *buf;
    char *bytes;
    int fd;
    size_t size;
};

/* ---- pools ------------------------------------------------------------------------------------------------------- */

struct search {
    uint64_t capacity, used, ready;
};

/* The first of such pages. */
static int look_at(const struct memclient_pool_info *pool, void *data)
{
    struct search *search = data;

    if (pool->granule != HUGE)
        return 0;
    search->capacity = pool->capacity;
    search->used = pool->used;
    search->ready = pool->stock_ready;
    return 1;
}

static struct search find_pool(void)
{
    struct search search = {0};

    bench_did(memclient_list_pools(NULL, look_at, &search));
    return search;
}

/* What was freed has been given back, and as much is there again, if the broker keeps any. */
static void wait_until_calm(size_t size)
{
    double end = bench_now_us() + PATIENCE_US;

    for (struct search pool = find_pool(); (pool.used || pool.ready < size) && bench_now_us() < end; pool = find_pool())
        usleep(2000);
    usleep(LULL_US);
}

static void give_back(struct work *work)
{
    if (work->bytes)
        bench_did(memclient_unmap(NULL, work->bytes, 0));
    work->bytes = NULL;
    memclient_buffer_unref(work->buf);
}

static void free_ours(void *context)
{
    struct work *work = context;

    give_back(work);
    wait_until_calm(work->size);
}

static void free_raw(void *context)
{
    struct work *work = context;

    if (work->bytes)
        munmap(work->bytes, work->size);
    work->bytes = NULL;
    close(work->fd);
}

/* ---- written, and ready to be ------------------------------------------------------------------------------------ */

static void make(struct work *work)
{
    void *bytes;

    bench_did(memclient_alloc(NULL, work->size, &work->options, &work->buf));
    bench_did(memclient_map(work->buf, NULL, &bytes));
    work->bytes = bytes;
}

static void write_ours(void *context)
{
    struct work *work = context;

    make(work);
    memset(work->bytes, 1, work->size);
}

static void write_malloc(void *context)
{
    struct work *work = context;

    work->bytes = malloc(work->size);
    bench_must(!!work->bytes, "malloc");
    memset(work->bytes, 1, work->size);
}

static void free_malloc(void *context)
{
    struct work *work = context;

    free(work->bytes);
    work->bytes = NULL;
}

/* What was made and written in the round before. */
static void write_again(void *context)
{
    struct work *work = context;

    memset(work->bytes, 2, work->size);
}

/* Its ends. */
static void touch(struct work *work)
{
    raw_touch(work->bytes, work->size, work->size - 1);
}

static void get_ready(void *context)
{
    make(context);
    touch(context);
}

static void get_ready_raw(void *context)
{
    struct work *work = context;

    work->fd = raw_memfd(work->size, MFD_HUGETLB | (21u << MAP_HUGE_SHIFT));
    work->bytes = raw_map(work->fd, work->size);
    touch(work);
}

/* A kind of memory is made ahead when it was asked for again. */
static void warm_up(struct work *work)
{
    make(work);
    give_back(work);
    for (int i = 1; i < WARMING && find_pool().ready < work->size; i++) {
        make(work);
        free_ours(work);
    }
}

static void measure(const struct bench_row *row, struct work *work, const struct bench *bench)
{
    if (!bench_wanted(row))
        return;
    warm_up(work);
    (void)bench_run(row, bench);
}

/* Each round writes again what the one before has left, and then makes anew. */
static void measure_rewriting(const struct bench_row *row, struct work *work)
{
    if (!bench_wanted(row))
        return;
    warm_up(work);
    write_ours(work);
    (void)bench_run(row, &(struct bench){.ours = {.once = write_ours},
                                         .other = {.once = write_again, .after = free_ours},
                                         .context = work,
                                         .rounds = 6,
                                         .a_round = 1});
    free_ours(work);
}

static void measure_huge(void)
{
    uint64_t capacity = find_pool().capacity;
    struct work work = {.options = MEMCLIENT_ALLOC_OPTIONS_INIT};
    static const char reason[] = "too few huge pages of 2 MiB are set aside, and this user may not do it";

    work.options.pages = MEMCLIENT_PAGES_HUGETLB;
    work.options.page_size = HUGE;
    work.size = SMALL;
    if (capacity >= 2 * SMALL)
        measure(&rows[WRITE], &work,
                &(struct bench){.ours = {.once = write_ours, .after = free_ours},
                                .other = {.once = write_malloc, .after = free_malloc},
                                .context = &work,
                                .rounds = 6,
                                .a_round = 1});
    else
        bench_skip(&rows[WRITE], reason);
    if (capacity >= 2 * SMALL)
        measure_rewriting(&rows[REWRITE], &work);
    else
        bench_skip(&rows[REWRITE], reason);
    work.size = GIB;
    if (capacity >= 3 * GIB)
        measure(&rows[READY], &work,
                &(struct bench){.ours = {.once = get_ready, .after = free_ours},
                                .other = {.once = get_ready_raw, .after = free_raw},
                                .context = &work,
                                .rounds = 6,
                                .a_round = 1});
    else
        bench_skip(&rows[READY], reason);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv, rows, ROWS);
    measure_huge();
    return bench_end();
}
