/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large memory where there are no huge pages: 256 MiB allocated, mapped and written for the first time, together,
 * against malloc() and written; and what another process takes to map a very large buffer, none of whose pages may be
 * entered for it, against mmap() of a file as large.
 */
#include <memclient/memclient.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define MIB  ((size_t)1 << 20)
#define GIB  ((size_t)1 << 30)
#define SIZE (256 * MIB)

/* in memoryd.conf: of small pages, and none ahead */
#define POOL "one-gib"

/* How long what was freed may take to be given back. */
#define PATIENCE_US 3e6

enum { LARGEST = 64, SHARE = 8, SMALLEST = 1 }; /* GiB of the mapped one; that part of what is available at most */

enum { WRITE, MAP, ROWS };

struct work {
    struct memclient_alloc_options options;
    struct memclient_buffer *buf;
    char *bytes;
};

/* ---- written ----------------------------------------------------------------------------------------------------- */

static int look_at(const struct memclient_pool_info *pool, void *data)
{
    if (strcmp(pool->name, POOL))
        return 0;
    *(uint64_t *)data = pool->capacity - pool->used;
    return 1;
}

static uint64_t room(void)
{
    uint64_t bytes = 0;

    bench_did(memclient_list_pools(NULL, look_at, &bytes));
    return bytes;
}

static void write_ours(void *context)
{
    struct work *work = context;
    void *bytes;

    bench_did(memclient_alloc(NULL, SIZE, &work->options, &work->buf));
    bench_did(memclient_map(work->buf, NULL, &bytes));
    work->bytes = memset(bytes, 1, SIZE);
}

static void free_ours(void *context)
{
    struct work *work = context;
    double end = bench_now_us() + PATIENCE_US;

    bench_did(memclient_unmap(NULL, work->bytes, 0));
    memclient_buffer_unref(work->buf);
    while (room() < GIB && bench_now_us() < end)
        usleep(2000);
}

static void write_malloc(void *context)
{
    struct work *work = context;

    work->bytes = malloc(SIZE);
    bench_must(!!work->bytes, "malloc");
    memset(work->bytes, 1, SIZE);
}

static void free_malloc(void *context)
{
    free(((struct work *)context)->bytes);
}

/* ---- mapped by another process ----------------------------------------------------------------------------------- */

struct other {
    struct memclient_token token;
    size_t size;
    struct memclient_buffer *buf; /* in the process that maps it, which this is told of by fork() */
    void *bytes;
    int fd;
};

static void map_ours(void *context)
{
    struct other *other = context;

    bench_did(memclient_map(other->buf, NULL, &other->bytes));
}

static void unmap_ours(void *context)
{
    bench_did(memclient_unmap(NULL, ((struct other *)context)->bytes, 0));
}

static void map_raw(void *context)
{
    struct other *other = context;

    other->bytes = raw_map(other->fd, other->size);
}

static void unmap_raw(void *context)
{
    struct other *other = context;

    munmap(other->bytes, other->size);
}

/* Its maker, which has it until its line ends. */
static void hold(int line, void *context)
{
    struct other *other = context;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pages = MEMCLIENT_PAGES_BASE;
    bench_did(memclient_alloc(NULL, other->size, &options, &other->buf));
    bench_did(memclient_share(other->buf, NULL, &other->token));
    bench_must(send(line, &other->token, sizeof(other->token), 0) == sizeof(other->token), "send");
    (void)line_hear(line);
}

/* As many GiB as a part of what is available is, of powers of 2. */
static size_t large_size(void)
{
    size_t kib = 0, size = LARGEST * GIB;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");

    bench_must(!!file, "/proc/meminfo");
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, "MemAvailable:", 13))
            kib = strtoul(line + 13, NULL, 10);
    (void)fclose(file);
    while (size > kib / SHARE << 10)
        size /= 2;
    return size;
}

static void measure_map(const struct bench_row *row)
{
    struct other other = {.size = large_size()};
    struct peer maker;

    if (!bench_wanted(row))
        return;
    if (other.size < SMALLEST * GIB) {
        bench_skip(row, "there is less than 8 GiB of memory available");
        return;
    }
    fprintf(stderr, "small: %s: of %zu GiB\n", row->name, other.size / GIB);
    peer_start(&maker, hold, &other);
    bench_must(recv(maker.line, &other.token, sizeof(other.token), 0) == sizeof(other.token), "recv");
    bench_did(memclient_open_token(NULL, &other.token, 0, &other.buf));
    other.fd = memfd_create("bench", MFD_CLOEXEC);
    bench_must(other.fd >= 0 && !ftruncate(other.fd, (off_t)other.size), "memfd_create");
    (void)bench_run(row, &(struct bench){.ours = {.once = map_ours, .after = unmap_ours},
                                         .other = {.once = map_raw, .after = unmap_raw},
                                         .context = &other,
                                         .rounds = 20,
                                         .a_round = 20});
    memclient_buffer_unref(other.buf);
    close(other.fd);
    peer_end(&maker);
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [WRITE] = {.name = "write_256m_small_vs_malloc", .unit = BENCH_MS, .rival = true, .hold = 1.05},
        [MAP] = {.name = "map_64g", .unit = BENCH_US, .hold = 3},
    };
    struct work work = {.options = MEMCLIENT_ALLOC_OPTIONS_INIT};

    bench_begin(argc, argv, rows, ROWS);
    bench_must(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "prctl");
    work.options.pages = MEMCLIENT_PAGES_BASE;
    work.options.pool = POOL;
    if (room() < GIB)
        bench_skip(&rows[WRITE], "the broker has no pool " POOL " with room for 1 GiB, as make bench gives it");
    else
        (void)bench_run(&rows[WRITE], &(struct bench){.ours = {.once = write_ours, .after = free_ours},
                                                      .other = {.once = write_malloc, .after = free_malloc},
                                                      .context = &work,
                                                      .rounds = 6,
                                                      .a_round = 1});
    measure_map(&rows[MAP]);
    return bench_end();
}
