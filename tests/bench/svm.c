/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory as OpenCL's programs have it: allocated, written, freed, and made again, in sizes that get a
 * buffer of their own. The rival is what a driver on the processor does without us: aligned memory of malloc(), which
 * uses what was freed again.
 */
#include <memclient/svm.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define KIB       ((size_t)1 << 10)
#define PAGE      ((size_t)4096)
#define ALIGNMENT 128 /* of the largest type, long16 */

static struct memclient_svm *svm;

static void svm_did(int result)
{
    bench_must(result >= 0, memclient_svm_error());
}

static void make_ours(void *size)
{
    void *ptr;

    svm_did(memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_WRITE, *(const size_t *)size, 0, &ptr));
    raw_touch(ptr, *(const size_t *)size, PAGE);
    svm_did(memclient_svm_free(svm, ptr));
}

static void make_plain(void *size)
{
    void *ptr = NULL;

    bench_must(!posix_memalign(&ptr, ALIGNMENT, *(const size_t *)size), "posix_memalign");
    raw_touch(ptr, *(const size_t *)size, PAGE);
    free(ptr);
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[] = {
        {.name = "svm_again_256k", .unit = BENCH_US, .rival = true, .hold = 1.5},
        {.name = "svm_again_1m", .unit = BENCH_US, .rival = true, .hold = 1.5},
        {.name = "svm_again_16m", .unit = BENCH_US, .rival = true, .hold = 1.5},
    };
    static size_t sizes[] = {256 * KIB, 1024 * KIB, 16384 * KIB};

    bench_begin(argc, argv, rows, sizeof(rows) / sizeof(*rows));
    svm_did(memclient_svm_create(NULL, &svm));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        (void)bench_run(&rows[i], &(struct bench){.ours = {.once = make_ours},
                                                  .other = {.once = make_plain},
                                                  .context = &sizes[i],
                                                  .rounds = 10,
                                                  .a_round = sizes[i] > 1024 * KIB ? 4 : 20});
    memclient_svm_destroy(svm);
    return bench_end();
}
