/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of allocations that are in no slab: each is memory of its own, shared by UMF's OS provider. Opened and closed
 * again and again, as by who looks at what comes for a moment, and got for the first time. The rival is upstream's
 * library, both processes of it; the floor of opening is what upstream's asks the kernel for: the descriptor of the
 * other process, a mapping, and both away.
 */
#include <memclient/umf/umf/providers/provider_os_memory.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"
#include "tests/bench/umf_library.h"

enum { TIMES = 50, HANDLE_MAX = 512 };

#define SIZE ((size_t)64 << 10)

/* What the child is told to do. */
enum work { OPEN, GET };

/* ---- in the child ------------------------------------------------------------------------------------------------ */

static struct umf_library umf;
static umf_memory_pool_handle_t pool;
static char handle[HANDLE_MAX] __attribute__((aligned(16))); /* the other process's */

static bool make_pool(void)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;

    params.visibility = UMF_MEM_MAP_SHARED;
    return !umf.provider_create(umf.os_ops(), &params, &provider) &&
           !umf.pool_create(umf.proxy_ops(), provider, NULL, 0, &pool);
}

/* The other process: has an allocation, sends its handle, and goes with its line. Nothing is sent if it cannot. */
static void produce(int line, void *context)
{
    umf_ipc_handle_t made;
    size_t size;
    void *ptr;

    (void)context;
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    ptr = make_pool() ? umf.pool_malloc(pool, SIZE) : NULL;
    if (!ptr || umf.get_handle(ptr, &made, &size) || size > HANDLE_MAX)
        return;
    raw_touch(ptr, SIZE, SIZE);
    bench_must(send(line, made, size, 0) == (ssize_t)size, "send");
    (void)line_hear(line);
}

static double open_and_close(void)
{
    double begin = bench_now_us();

    for (int i = 0; i < TIMES; i++) {
        void *ptr;

        if (umf.open_handle(pool, (umf_ipc_handle_t)(void *)handle, &ptr))
            return -1;
        raw_touch(ptr, SIZE, SIZE);
        if (umf.close_handle(ptr))
            return -1;
    }
    return bench_now_us() - begin;
}

static double get_first(void)
{
    umf_ipc_handle_t made[TIMES];
    void *ptrs[TIMES];
    double begin, took;
    size_t size;

    for (int i = 0; i < TIMES; i++)
        bench_must((ptrs[i] = umf.pool_malloc(pool, SIZE)) != NULL, "umfPoolMalloc");
    begin = bench_now_us();
    for (int i = 0; i < TIMES; i++)
        if (umf.get_handle(ptrs[i], &made[i], &size))
            return -1;
    took = bench_now_us() - begin;
    for (int i = 0; i < TIMES; i++) {
        (void)umf.put_handle(made[i]);
        (void)umf.pool_free(pool, ptrs[i]);
    }
    return took;
}

static double serve(const struct umf_order *order)
{
    return order->work == OPEN ? open_and_close() : get_first();
}

static int be_child(bool upstream)
{
    const char *reason = umf_library_load(upstream, &umf);
    struct peer producer;

    bench_must(!reason, reason);
    peer_start(&producer, produce, NULL);
    bench_must(make_pool(), "a pool over shared memory");
    bench_must(recv(producer.line, handle, sizeof(handle), 0) > 0, "a handle");
    return umf_child_serve(serve, producer.pid);
}

/* ---- the kernel's ------------------------------------------------------------------------------------------------ */

struct contest {
    struct umf_child ours, upstream;
    struct umf_order order;
    pid_t holder;
    int fd; /* its */
};

static void hold(int line, void *context)
{
    int fd = raw_memfd(SIZE, 0);

    (void)context;
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    bench_must(send(line, &fd, sizeof(fd), 0) == sizeof(fd), "send");
    (void)line_hear(line);
}

static void open_raw(void *context)
{
    const struct contest *contest = context;

    for (int i = 0; i < TIMES; i++) {
        int process = (int)syscall(SYS_pidfd_open, contest->holder, 0);
        int fd = (int)syscall(SYS_pidfd_getfd, process, contest->fd, 0);
        char *bytes = raw_map(fd, SIZE);

        raw_touch(bytes, SIZE, SIZE);
        munmap(bytes, SIZE);
        close(fd);
        close(process);
    }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

enum { OPEN_FLOOR, OPEN_UPSTREAM, GET_UPSTREAM, ROWS };

static double time_ours(void *context)
{
    struct contest *contest = context;
    double us = umf_child_tell(&contest->ours, contest->order);

    bench_must(us >= 0, "a round of ours");
    return us;
}

static double time_upstream(void *context)
{
    struct contest *contest = context;
    double us = umf_child_tell(&contest->upstream, contest->order);

    bench_must(us >= 0, "a round of upstream's");
    return us;
}

static void measure_floor(const struct bench_row *row, struct contest *contest, const pid_t *workers)
{
    struct peer holder;

    peer_start(&holder, hold, NULL);
    contest->holder = holder.pid;
    bench_must(recv(holder.line, &contest->fd, sizeof(contest->fd), 0) == sizeof(contest->fd), "recv");
    (void)bench_run(row, &(struct bench){.ours = {.timed = time_ours, .workers = workers},
                                         .other = {.once = open_raw},
                                         .context = contest,
                                         .rounds = 10,
                                         .a_round = 5});
    peer_end(&holder);
}

static void measure_rival(const struct bench_row *row, struct contest *contest, const pid_t *workers)
{
    if (!bench_wanted(row))
        return;
    if (umf_child_tell(&contest->upstream, contest->order) < 0)
        bench_skip(row, "the library that BENCH_UMF names cannot do that here");
    else
        (void)bench_run(row, &(struct bench){.ours = {.timed = time_ours, .workers = workers},
                                             .other = {.timed = time_upstream, .workers = contest->upstream.pids},
                                             .context = contest,
                                             .rounds = 10,
                                             .a_round = 5});
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [OPEN_FLOOR] = {.name = "ipc_open_unpooled", .unit = BENCH_US, .operations = TIMES},
        [OPEN_UPSTREAM] =
            {.name = "ipc_open_unpooled_vs_upstream", .unit = BENCH_US, .operations = TIMES, .rival = true, .hold = 1},
        [GET_UPSTREAM] =
            {.name = "ipc_get_unpooled_vs_upstream", .unit = BENCH_US, .operations = TIMES, .rival = true, .hold = 1},
    };
    struct contest contest = {.order = {.work = OPEN}};
    pid_t workers[5] = {0};
    const char *reason;

    if (argc == 3 && !strcmp(argv[1], "--serve"))
        return be_child(!strcmp(argv[2], "upstream"));
    bench_begin(argc, argv, rows, ROWS);
    umf_child_start(&contest.ours, false);
    bench_must(umf_child_tell(&contest.ours, contest.order) >= 0, "opening a handle of ours");
    memcpy(workers, contest.ours.pids, 2 * sizeof(pid_t));
    memcpy(workers + 2, bench_broker(), 2 * sizeof(pid_t));
    if (bench_wanted(&rows[OPEN_FLOOR]))
        measure_floor(&rows[OPEN_FLOOR], &contest, workers);
    reason = umf_library_load(true, &umf);
    if (reason) {
        bench_skip(&rows[OPEN_UPSTREAM], reason);
        bench_skip(&rows[GET_UPSTREAM], reason);
    } else {
        umf_child_start(&contest.upstream, true);
        measure_rival(&rows[OPEN_UPSTREAM], &contest, workers);
        contest.order.work = GET;
        measure_rival(&rows[GET_UPSTREAM], &contest, workers);
        umf_child_end(&contest.upstream);
    }
    umf_child_end(&contest.ours);
    return bench_end();
}
