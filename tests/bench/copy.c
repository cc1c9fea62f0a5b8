/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_memory_copy() and hsa_amd_memory_fill() of HSA memory, against memcpy() and wmemset() of the same. Below the
 * sizes from which they use several threads the ratio is 1; where it is below 1 above them, they are chosen well.
 */
#include <memclient/hsa/hsa.h>
#include <memclient/hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "tests/bench/bench.h"

#define MIB ((size_t)1 << 20)
#define MAX (256 * MIB)

static char *from, *to;

static void
copy_ours(void *size)
{
    bench_must(!hsa_memory_copy(to, from, *(size_t *)size), "hsa_memory_copy");
}

static void
copy_floor(void *size)
{
    memcpy(to, from, *(size_t *)size);
}

static void
fill_ours(void *size)
{
    bench_must(!hsa_amd_memory_fill(to, 0x01020304, *(size_t *)size / 4), "hsa_amd_memory_fill");
}

static void
fill_floor(void *size)
{
    wmemset((wchar_t *)(void *)to, 0x01020304, *(size_t *)size / 4);
}

static hsa_status_t
first_agent(hsa_agent_t agent, void *found)
{
    *(hsa_agent_t *)found = agent;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t
first_pool(hsa_amd_memory_pool_t pool, void *found)
{
    *(hsa_amd_memory_pool_t *)found = pool;
    return HSA_STATUS_INFO_BREAK;
}

static void
allocate(void)
{
    hsa_amd_memory_pool_t pool;
    hsa_agent_t agent;

    bench_must(!hsa_init() && hsa_iterate_agents(first_agent, &agent) == HSA_STATUS_INFO_BREAK &&
                   hsa_amd_agent_iterate_memory_pools(agent, first_pool, &pool) == HSA_STATUS_INFO_BREAK &&
                   !hsa_amd_memory_pool_allocate(pool, MAX, 0, (void **)&from) &&
                   !hsa_amd_memory_pool_allocate(pool, MAX, 0, (void **)&to),
               "hsa_init");
    memset(from, 1, MAX);
    memset(to, 2, MAX);
}

int
main(int argc, char **argv)
{
    size_t sizes[] = {1 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB, MAX};
    bool json;

    if (!bench_options(argc, argv, &json))
        return 2;
    allocate();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t size = sizes[i];
        struct bench bench = {.context = &size, .rounds = size == MAX ? 5 : 15, .a_round = 3, .hold = 1.1};
        char name[64];

        bench.name = name;
        snprintf(name, sizeof(name), "copy %zu MiB", size / MIB);
        bench.ours = (struct bench_side){"hsa_memory_copy", copy_ours, NULL};
        bench.floor = (struct bench_side){"memcpy", copy_floor, NULL};
        (void)bench_run(&bench, json);
        snprintf(name, sizeof(name), "fill %zu MiB", size / MIB);
        bench.ours = (struct bench_side){"hsa_amd_memory_fill", fill_ours, NULL};
        bench.floor = (struct bench_side){"wmemset", fill_floor, NULL};
        (void)bench_run(&bench, json);
    }
    bench_must(!hsa_shut_down(), "hsa_shut_down");
    return fflush(stdout) ? 1 : 0;
}
