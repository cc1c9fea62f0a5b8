/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of small allocations. One slab holds many: who has a handle of one of them has what is needed for all the
 * others, on both sides, so no more is asked of the broker. The floor is the cheapest system call that there is, as
 * many times: any call of the broker takes several, and a switch to it and back.
 *
 * A batch of them in a slab that is not open yet is imported with one call and one mapping; the floor has a descriptor
 * and a mapping for each.
 */
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define TIMES      1000
#define BATCH      256
#define HANDLE_MAX 512
#define PAGE       4096

static umf_memory_pool_handle_t pool;
static void *ptrs[TIMES];
static umf_ipc_handle_t handles[TIMES];

static void make_pool(void)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t provider;

    params.SlabMinSize = 256 << 10;
    params.MaxPoolableSize = 4 << 20;
    params.Capacity = 4;
    params.MinBucketSize = 16;
    bench_must(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider), "umfMemoryProviderCreate");
    bench_must(!umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
               "umfPoolCreate");
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static void allocate(void)
{
    for (int i = 0; i < TIMES; i++)
        bench_must((ptrs[i] = umfPoolMalloc(pool, 64)) != NULL, "umfPoolMalloc");
}

static void get_handles(void *arg)
{
    size_t size;

    (void)arg;
    for (int i = 0; i < TIMES; i++)
        bench_must(!umfGetIPCHandle(ptrs[i], &handles[i], &size), "umfGetIPCHandle");
}

static void put_handles(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        (void)umfPutIPCHandle(handles[i]);
}

static void open_some(int n)
{
    for (int i = 0; i < n; i++)
        bench_must(!umfOpenIPCHandle(pool, handles[i], &ptrs[i]), "umfOpenIPCHandle");
}

static void close_some(int n)
{
    for (int i = 0; i < n; i++)
        bench_must(!umfCloseIPCHandle(ptrs[i]), "umfCloseIPCHandle");
}

static void call_kernel(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        (void)syscall(SYS_getppid);
}

/* ---- the process whose memory it is ------------------------------------------------------------------------------ */

/* Whenever it is told: handles of a new slab, which lasts until the next time. */
static void produce(int line, void *context)
{
    size_t size;

    (void)context;
    while (line_hear(line)) {
        if (pool)
            (void)umfPoolDestroy(pool);
        make_pool();
        allocate();
        get_handles(NULL);
        bench_must(!umfPoolGetIPCHandleSize(pool, &size) && size <= HANDLE_MAX, "umfPoolGetIPCHandleSize");
        for (int i = 0; i < TIMES; i++)
            bench_must(send(line, handles[i], size, 0) == (ssize_t)size, "send");
        put_handles(NULL);
    }
}

/* Likewise descriptors of memory of its own, always the same. */
static void produce_raw(int line, void *context)
{
    int fds[BATCH];

    (void)context;
    for (int i = 0; i < BATCH; i++)
        fds[i] = raw_memfd(PAGE, 0);
    while (line_hear(line))
        raw_send_fds(line, fds, BATCH);
}

/* ---- the process that opens it ----------------------------------------------------------------------------------- */

static struct peer producer, raw_producer;
static int raw_fds[BATCH];
static char *raw_maps[BATCH];

/* Handles of what is not open here. */
static void receive(void)
{
    static char bytes[TIMES][HANDLE_MAX] __attribute__((aligned(16)));

    line_tell(producer.line);
    for (int i = 0; i < TIMES; i++) {
        bench_must(recv(producer.line, bytes[i], HANDLE_MAX, 0) > 0, "recv");
        handles[i] = (umf_ipc_handle_t)(void *)bytes[i];
    }
}

static void open_handles(void *arg)
{
    (void)arg;
    open_some(TIMES);
}

static void close_handles(void *arg)
{
    (void)arg;
    close_some(TIMES);
}

static double import_batch(void *arg)
{
    double begin;

    (void)arg;
    receive();
    begin = bench_now_us();
    open_some(BATCH);
    return bench_now_us() - begin;
}

static void close_batch(void *arg)
{
    (void)arg;
    close_some(BATCH);
}

static double import_raw(void *arg)
{
    struct pollfd polled = {.fd = raw_producer.line, .events = POLLIN};
    double begin;

    (void)arg;
    line_tell(raw_producer.line);
    /* until they are here, as the handles are */
    bench_must(poll(&polled, 1, -1) == 1, "poll");
    usleep(1000);
    begin = bench_now_us();
    raw_receive_fds(raw_producer.line, raw_fds, BATCH);
    for (int i = 0; i < BATCH; i++)
        raw_maps[i] = raw_map(raw_fds[i], PAGE);
    return bench_now_us() - begin;
}

static void close_raw(void *arg)
{
    (void)arg;
    for (int i = 0; i < BATCH; i++) {
        munmap(raw_maps[i], PAGE);
        close(raw_fds[i]);
    }
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

enum { GET, OPEN, IMPORT, ROWS };

int main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [GET] = {.name = "ipc_get_cached", .unit = BENCH_NS, .operations = TIMES, .hold = 1},
        [OPEN] = {.name = "ipc_open_cached", .unit = BENCH_NS, .operations = TIMES, .goal = 100},
        [IMPORT] = {.name = "import_batch_256", .unit = BENCH_US, .operations = BATCH, .goal = 0.5},
    };
    static const struct bench getting = {
        .ours = {.once = get_handles, .after = put_handles},
        .other = {.once = call_kernel},
        .rounds = 30,
        .a_round = 5,
    };
    static const struct bench opening = {
        .ours = {.once = open_handles, .after = close_handles},
        .other = {.once = call_kernel},
        .rounds = 30,
        .a_round = 5,
    };
    static const struct bench importing = {
        .ours = {.timed = import_batch, .after = close_batch},
        .other = {.timed = import_raw, .after = close_raw},
        .rounds = 10,
        .a_round = 5,
        .wall_only = true,
    };

    bench_begin(argc, argv, rows, ROWS);
    peer_start(&producer, produce, NULL);
    peer_start(&raw_producer, produce_raw, NULL);
    make_pool();
    allocate();
    (void)bench_run(&rows[GET], &getting);
    (void)bench_run(&rows[IMPORT], &importing);
    receive();
    open_some(1);
    (void)bench_run(&rows[OPEN], &opening);
    peer_end(&producer);
    peer_end(&raw_producer);
    return bench_end();
}
