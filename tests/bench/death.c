/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1 GiB of 4 KiB pages, which there is once only: from SIGKILL of the process that has it mapped and written until
 * another has a committed GiB in its stead. Its pages have to be given back and others cleared, which the floor does by
 * itself: the process is gone, and with it its memory file, and another one is committed.
 */
#include <memclient/memclient.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define GIB  ((size_t)1 << 30)
#define PAGE ((size_t)4096)

/* in memoryd.conf */
#define POOL "one-gib"

struct work {
    struct memclient_alloc_options options;
    struct memclient_buffer *buf;
    int fd;
};

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

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

/* ---- who has it -------------------------------------------------------------------------------------------------- */

static void hold_ours(int line, void *context)
{
    const struct work *work = context;
    struct memclient_buffer *buf;
    void *bytes;

    bench_did(memclient_alloc(NULL, GIB, &work->options, &buf));
    bench_did(memclient_map(buf, NULL, &bytes));
    raw_touch(bytes, GIB, PAGE);
    line_tell(line);
    (void)line_hear(line);
}

static void hold_raw(int line, void *context)
{
    (void)context;
    raw_touch(raw_map(raw_memfd(GIB, 0), GIB), GIB, PAGE);
    line_tell(line);
    (void)line_hear(line);
}

static void start_holder(struct peer *peer, void (*body)(int line, void *context), struct work *work)
{
    peer_start(peer, body, work);
    bench_must(line_hear(peer->line), "the process that holds memory");
}

/* ---- who gets it ------------------------------------------------------------------------------------------------- */

static double succeed_ours(void *context)
{
    struct work *work = context;
    struct peer peer;
    double begin, took;

    start_holder(&peer, hold_ours, work);
    begin = bench_now_us();
    bench_must(!kill(peer.pid, SIGKILL), "kill");
    bench_did(memclient_alloc(NULL, GIB, &work->options, &work->buf));
    took = bench_now_us() - begin;
    peer_kill(&peer);
    return took;
}

static void free_ours(void *context)
{
    memclient_buffer_unref(((struct work *)context)->buf);
    while (room() < GIB)
        usleep(2000);
}

static double succeed_raw(void *context)
{
    struct work *work = context;
    struct peer peer;
    double begin;

    start_holder(&peer, hold_raw, work);
    begin = bench_now_us();
    peer_kill(&peer);
    work->fd = raw_memfd(GIB, 0);
    return bench_now_us() - begin;
}

static void free_raw(void *context)
{
    close(((struct work *)context)->fd);
}

int main(int argc, char **argv)
{
    static const struct bench_row row = {.name = "death_reclaim_1g", .unit = BENCH_MS, .hold = 1.3};
    struct work work = {.options = MEMCLIENT_ALLOC_OPTIONS_INIT};

    bench_begin(argc, argv, &row, 1);
    work.options.pool = POOL;
    work.options.wait_ms = 60000;
    if (room() < GIB)
        bench_skip(&row, "the broker has no pool " POOL " with room for 1 GiB, as make bench gives it");
    else
        (void)bench_run(&row, &(struct bench){.ours = {.timed = succeed_ours, .after = free_ours},
                                              .other = {.timed = succeed_raw, .after = free_raw},
                                              .context = &work,
                                              .rounds = 3,
                                              .a_round = 1});
    return bench_end();
}
