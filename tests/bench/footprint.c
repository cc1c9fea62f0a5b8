/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a buffer more takes of the broker's memory, each with a hold and a home: how much it has written, private or
 * shared with its keeper, at 1000 buffers and at 11 000. The kernel's own, an inode and its pages, are not in it.
 */
#include <memclient/memclient.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

enum { BEFORE = 1000, MORE = 10000 };

/* Of the broker, in bytes; negative: one may not look. */
static double dirty_bytes(int pid)
{
    char path[64], line[256];
    double kib = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
    file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, "Private_Dirty:", 14) || !strncmp(line, "Shared_Dirty:", 13))
            kib += strtod(strchr(line, ':') + 1, NULL);
    fclose(file);
    return kib * 1024;
}

static void make_buffers(size_t n)
{
    struct memclient_buffer *bufs[MEMCLIENT_BATCH_MAX];
    uint64_t sizes[MEMCLIENT_BATCH_MAX];

    for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        sizes[i] = 1;
    for (size_t part; n; n -= part) {
        part = n < MEMCLIENT_BATCH_MAX ? n : MEMCLIENT_BATCH_MAX;
        bench_did(memclient_alloc_many(NULL, part, sizes, NULL, bufs));
    }
}

int main(int argc, char **argv)
{
    static const struct bench_row row = {
        .name = "bytes_per_buffer", .unit = BENCH_BYTES, .operations = MORE, .goal = 512, .exact = true};
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct bench_turn turn = {.processor_us = -1};
    struct bench_rounds rounds = {0};
    double before, after;

    bench_begin(argc, argv, &row, 1);
    bench_did(memclient_broker_query(NULL, &status));
    if (!bench_has_descriptors(BEFORE + MORE)) {
        bench_skip(&row, "the limit of open files (ulimit -Hn) is too low for 11 000 buffers");
    } else if (make_buffers(BEFORE), (before = dirty_bytes(status.broker_pid)) < 0) {
        bench_skip(&row, "the broker's /proc/PID/smaps_rollup cannot be read");
    } else {
        make_buffers(MORE);
        after = dirty_bytes(status.broker_pid);
        samples_add(&turn.times, after - before);
        bench_round_ended(&row, &rounds, &turn, NULL);
        bench_report(&row, &rounds);
        samples_free(&turn.times);
    }
    return bench_end();
}
