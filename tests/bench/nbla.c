/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory of nbla: a block that is made where the program did something else before, against the memory file and
 * the mapping of its granules that one would make by oneself; and growing, whose last steps should take what
 * the first ones take.
 */
#include <memclient/nbla.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define PAGE     ((size_t)4096)
#define PAUSE_US 4000 /* in which nothing of it stays in a processor's cache */

/* Of growing: chunks of one round, and how many of them are first and last ones. */
enum { CHUNKS = 512, AT_AN_END = 64 };

enum { COLD_1K, COLD_2M, GROW, ROWS };

static void nbla_did(int ok)
{
    if (ok)
        return;
    bench_must(false, nbla_error());
}

/* ---- cold -------------------------------------------------------------------------------------------------------- */

struct block {
    size_t bytes;
    nbla_memory *memory;
    size_t granule; /* what it takes */
    int fd;
    char *raw;
};

static void make_block(void *context)
{
    struct block *block = context;
    nbla_physical_memory *chunk = nbla_physical_memory_new(NULL, block->bytes, "");

    nbla_did(chunk && nbla_physical_memory_alloc(chunk));
    block->granule = nbla_physical_memory_bytes(chunk);
    block->memory = nbla_memory_new_virtual(NULL, block->bytes, "", &chunk, 1);
    nbla_did(block->memory && nbla_memory_bind(block->memory) >= 0);
    nbla_physical_memory_unref(chunk);
    raw_touch(nbla_memory_pointer(block->memory), block->bytes, PAGE);
}

static void free_block(void *context)
{
    nbla_did(nbla_memory_destroy(((struct block *)context)->memory) >= 0);
    usleep(PAUSE_US);
}

static void make_raw(void *context)
{
    struct block *block = context;

    block->fd = raw_memfd(block->granule, 0);
    block->raw = raw_map(block->fd, block->granule);
    raw_touch(block->raw, block->bytes, PAGE);
}

static void free_raw(void *context)
{
    struct block *block = context;

    munmap(block->raw, block->granule);
    close(block->fd);
    usleep(PAUSE_US);
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static nbla_physical_memory *make_chunk(void)
{
    nbla_physical_memory *chunk = nbla_physical_memory_new(NULL, PAGE, "");

    nbla_did(chunk && nbla_physical_memory_alloc(chunk));
    return chunk;
}

/* A memory that has one chunk, and then one more at each step, as nnabla's allocator makes it grow. */
static void grow(struct bench_turn *first, struct bench_turn *last)
{
    nbla_physical_memory *chunks[CHUNKS];
    nbla_memory *memory;

    chunks[0] = make_chunk();
    memory = nbla_memory_new_virtual(NULL, PAGE, "", chunks, 1);
    nbla_did(memory && nbla_memory_bind(memory) >= 0);
    for (size_t i = 1; i < CHUNKS; i++) {
        double begin = bench_now_us(), took;

        chunks[i] = make_chunk();
        nbla_did(nbla_memory_grow(memory, &chunks[i], 1) == 1);
        nbla_did(nbla_memory_append_phys(memory, &chunks[i], 1) >= 0);
        took = bench_now_us() - begin;
        if (i <= AT_AN_END)
            samples_add(&first->times, took);
        if (i >= CHUNKS - AT_AN_END)
            samples_add(&last->times, took);
    }
    nbla_did(nbla_memory_destroy(memory) >= 0);
    for (size_t i = 0; i < CHUNKS; i++)
        nbla_physical_memory_unref(chunks[i]);
}

static void measure_growth(const struct bench_row *row)
{
    struct bench_turn first = {.processor_us = -1}, last = {.processor_us = -1};
    struct bench_rounds rounds = {0};

    if (!bench_wanted(row))
        return;
    while (bench_wants_more(row, &rounds, 0)) {
        grow(&first, &last);
        bench_round_ended(row, &rounds, &last, &first);
    }
    bench_report(row, &rounds);
    samples_free(&first.times);
    samples_free(&last.times);
}

static void measure_cold(const struct bench_row *row, size_t bytes)
{
    struct block block = {.bytes = bytes};

    make_block(&block); /* how large its granule is */
    free_block(&block);
    (void)bench_run(row, &(struct bench){.ours = {.once = make_block, .after = free_block},
                                         .other = {.once = make_raw, .after = free_raw},
                                         .context = &block,
                                         .rounds = 8,
                                         .a_round = 10});
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [COLD_1K] = {.name = "nbla_cold_1k", .unit = BENCH_US, .hold = 1.2},
        [COLD_2M] = {.name = "nbla_cold_2m", .unit = BENCH_US, .hold = 1.2},
        [GROW] = {.name = "nbla_grow_flat", .unit = BENCH_US, .hold = 1.2},
    };

    bench_begin(argc, argv, rows, ROWS);
    measure_cold(&rows[COLD_1K], 1024);
    measure_cold(&rows[COLD_2M], (size_t)2 << 20);
    measure_growth(&rows[GROW]);
    return bench_end();
}
