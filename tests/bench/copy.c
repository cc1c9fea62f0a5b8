/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_memory_copy() and hsa_amd_memory_fill() of HSA memory, against memcpy() and wmemset() of the same. Below the
 * sizes from which they use several threads the ratio is 1; where it is below 1 above them, they are chosen well.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "tests/bench/bench.h"

#define MIB ((size_t)1 << 20)
#define MAX (256 * MIB)

static size_t sizes[] = {1 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB, MAX};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static char *from, *to;

static void copy_ours(void *size)
{
    bench_must(!hsa_memory_copy(to, from, *(size_t *)size), "hsa_memory_copy");
}

static void copy_floor(void *size)
{
    memcpy(to, from, *(size_t *)size);
}

static void fill_ours(void *size)
{
    bench_must(!hsa_amd_memory_fill(to, 0x01020304, *(size_t *)size / 4), "hsa_amd_memory_fill");
}

static void fill_floor(void *size)
{
    wmemset((wchar_t *)(void *)to, 0x01020304, *(size_t *)size / 4);
}

static hsa_status_t first_agent(hsa_agent_t agent, void *found)
{
    *(hsa_agent_t *)found = agent;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t first_pool(hsa_amd_memory_pool_t pool, void *found)
{
    *(hsa_amd_memory_pool_t *)found = pool;
    return HSA_STATUS_INFO_BREAK;
}

static void allocate(void)
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

int main(int argc, char **argv)
{
    static struct bench_row rows[SIZES][2];
    static char names[SIZES][2][32];

    for (size_t i = 0; i < SIZES; i++)
        for (int fill = 0; fill < 2; fill++) {
            (void)snprintf(names[i][fill], sizeof(names[i][fill]), "%s_%zum", fill ? "fill" : "copy", sizes[i] / MIB);
            rows[i][fill] = (struct bench_row){.name = names[i][fill], .unit = BENCH_US, .rival = true, .hold = 1.1};
        }
    bench_begin(argc, argv, rows[0], 2 * SIZES);
    allocate();
    for (size_t i = 0; i < SIZES; i++) {
        struct bench bench = {
            .ours = {.once = copy_ours},
            .other = {.once = copy_floor},
            .context = &sizes[i],
            .rounds = sizes[i] == MAX ? 5 : 15,
            .a_round = sizes[i] < 64 * MIB ? 3 : 1,
        };

        (void)bench_run(&rows[i][0], &bench);
        bench.ours.once = fill_ours;
        bench.other.once = fill_floor;
        (void)bench_run(&rows[i][1], &bench);
    }
    bench_must(!hsa_shut_down(), "hsa_shut_down");
    return bench_end();
}
