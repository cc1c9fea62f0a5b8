/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of small allocations. One slab holds many: who has a handle of one of them has what is needed for all the
 * others, on both sides, so no more is asked of the broker. The floor is the cheapest system call that there is, as
 * many times: any call of the broker takes several, and a switch to it and back.
 */
#include <memclient/umf.h>
#include <memclient/umf/ipc.h>
#include <memclient/umf/pools/pool_disjoint.h>
#include <memclient/umf/providers/provider_memoryd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define TIMES      1000
#define HANDLE_MAX 512

static umf_memory_pool_handle_t pool;
static void *ptrs[TIMES];
static umf_ipc_handle_t handles[TIMES];

static void
make_pool(void)
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

/* ---- the process whose memory it is ----------------------------------------------------------------------- */

static void
get_handles(void *arg)
{
    size_t size;

    (void)arg;
    for (int i = 0; i < TIMES; i++)
        bench_must(!umfGetIPCHandle(ptrs[i], &handles[i], &size), "umfGetIPCHandle");
}

static void
put_handles(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        (void)umfPutIPCHandle(handles[i]);
}

/* Sends the handles, each of `size` bytes, and stays until it is told to end. */
static void
produce(int to, int from)
{
    size_t size;
    char end;

    get_handles(NULL);
    bench_must(!umfPoolGetIPCHandleSize(pool, &size) && size <= HANDLE_MAX, "umfPoolGetIPCHandleSize");
    for (int i = 0; i < TIMES; i++)
        bench_must(write(to, handles[i], size) == (ssize_t)size, "write");
    (void)!read(from, &end, 1);
    _exit(0);
}

static void
allocate(void)
{
    for (int i = 0; i < TIMES; i++)
        bench_must((ptrs[i] = umfPoolMalloc(pool, 64)) != NULL, "umfPoolMalloc");
}

/* ---- the process that opens it ---------------------------------------------------------------------------- */

static void
open_handles(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        bench_must(!umfOpenIPCHandle(pool, handles[i], &ptrs[i]), "umfOpenIPCHandle");
}

static void
close_handles(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        bench_must(!umfCloseIPCHandle(ptrs[i]), "umfCloseIPCHandle");
}

/* What another process made; its slab stays open. */
static void
receive(int from)
{
    void *first;
    size_t size;

    bench_must(!umfPoolGetIPCHandleSize(pool, &size) && size <= HANDLE_MAX, "umfPoolGetIPCHandleSize");
    for (int i = 0; i < TIMES; i++) {
        bench_must((handles[i] = calloc(1, size)) != NULL, "calloc");
        for (size_t done = 0; done < size;) {
            ssize_t n = read(from, (char *)handles[i] + done, size - done);

            bench_must(n > 0, "read");
            done += (size_t)n;
        }
    }
    bench_must(!umfOpenIPCHandle(pool, handles[0], &first), "umfOpenIPCHandle");
}

/* ----------------------------------------------------------------------------------------------------------- */

static void
call_kernel(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        (void)syscall(SYS_getppid);
}

enum { GET, OPEN, ROWS };

int
main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [GET] = {.name = "ipc_get_cached", .unit = BENCH_NS, .operations = TIMES, .hold = 1},
        [OPEN] = {.name = "ipc_open_cached", .unit = BENCH_NS, .operations = TIMES, .goal = 100},
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
    int from[2], to[2];

    bench_begin(argc, argv, rows, ROWS);
    bench_must(!pipe(from) && !pipe(to), "pipe");
    if (!fork()) {
        (void)close(to[1]);
        make_pool();
        allocate();
        produce(from[1], to[0]);
    }
    (void)close(to[0]);
    make_pool();
    allocate();
    (void)bench_run(&rows[GET], &getting);
    receive(from[0]);
    (void)bench_run(&rows[OPEN], &opening);
    return bench_end();
}
