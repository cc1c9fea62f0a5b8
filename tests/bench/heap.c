/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps: a block allocated and freed by threads, against malloc() and UMF's disjoint pool; a block filled, given to
 * another process, read and freed there, against the copy that process_vm_readv() makes of malloc()'s memory and, where
 * iceoryx is installed, its chunks; and what a member had that was killed, until all of it is free again.
 */
#include <memclient/heap.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/iceoryx.h"
#include "tests/bench/raw.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum { PAIRS = 20000, THREADS = 4, MANY = 100000 };
enum { PAIR_1, PAIR_2, PAIR_4, PAIR_DISJOINT, GIVE_64K, GIVE_1M, GIVE_64K_ICEORYX, GIVE_1M_ICEORYX, RECOVER, ROWS };

static struct memclient_heap *heap_of(uint64_t block, uint64_t slab)
{
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap;

    options.block_sizes = &block;
    options.n_block_sizes = 1;
    options.slab_size = slab;
    bench_did(memclient_heap_create(NULL, &options, &heap));
    return heap;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

struct pairs {
    struct memclient_heap *heap;
    umf_memory_pool_handle_t disjoint;
    unsigned n_threads;
    pthread_barrier_t together;
};

static double thread_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *pairs_ours(void *context)
{
    struct pairs *pairs = context;
    double begin, *took = malloc(sizeof(*took));
    void *p;

    bench_must(!!took, "malloc");
    pthread_barrier_wait(&pairs->together);
    begin = thread_us();
    for (unsigned i = 0; i < PAIRS; i++) {
        bench_did(memclient_heap_alloc(pairs->heap, 64 * KIB, &p));
        bench_did(memclient_heap_free(pairs->heap, p));
    }
    *took = thread_us() - begin;
    return took;
}

static void *pairs_malloc(void *context)
{
    struct pairs *pairs = context;
    double begin, *took = malloc(sizeof(*took));

    bench_must(!!took, "malloc");
    pthread_barrier_wait(&pairs->together);
    begin = thread_us();
    for (unsigned i = 0; i < PAIRS; i++) {
        void *volatile p = malloc(64 * KIB);

        free(p);
    }
    *took = thread_us() - begin;
    return took;
}

static void *pairs_disjoint(void *context)
{
    struct pairs *pairs = context;
    double begin, *took = malloc(sizeof(*took));

    bench_must(!!took, "malloc");
    pthread_barrier_wait(&pairs->together);
    begin = thread_us();
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = umfPoolMalloc(pairs->disjoint, 64 * KIB);

        bench_must(p && umfPoolFree(pairs->disjoint, p) == UMF_RESULT_SUCCESS, "the disjoint pool");
    }
    *took = thread_us() - begin;
    return took;
}

/* Processor time of the thread that took most. */
static double pairs_run(struct pairs *pairs, void *(*body)(void *pairs))
{
    pthread_t threads[THREADS];
    double most = 0;

    bench_must(!pthread_barrier_init(&pairs->together, NULL, pairs->n_threads), "pthread_barrier_init");
    for (unsigned i = 0; i < pairs->n_threads; i++)
        bench_must(!pthread_create(&threads[i], NULL, body, pairs), "pthread_create");
    for (unsigned i = 0; i < pairs->n_threads; i++) {
        void *took;

        bench_must(!pthread_join(threads[i], &took), "pthread_join");
        most = *(double *)took > most ? *(double *)took : most;
        free(took);
    }
    pthread_barrier_destroy(&pairs->together);
    return most;
}

static double pairs_run_ours(void *context)
{
    return pairs_run(context, pairs_ours);
}

static double pairs_run_malloc(void *context)
{
    return pairs_run(context, pairs_malloc);
}

static double pairs_run_disjoint(void *context)
{
    return pairs_run(context, pairs_disjoint);
}

/* Over memoryd's memory, in slabs that have several such blocks. */
static umf_memory_pool_handle_t disjoint_new(void)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;

    params.SlabMinSize = 32 * MIB;
    params.MaxPoolableSize = MIB;
    bench_must(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider), "umfMemoryProviderCreate");
    bench_must(!umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
               "umfPoolCreate");
    return pool;
}

static void measure_pairs(const struct bench_row *row, unsigned n_threads, double (*other)(void *pairs))
{
    struct pairs pairs = {.n_threads = n_threads};

    if (!bench_wanted(row))
        return;
    pairs.heap = heap_of(64 * KIB, 0);
    if (other == pairs_run_disjoint)
        pairs.disjoint = disjoint_new();
    (void)bench_run(row, &(struct bench){.ours = {.timed = pairs_run_ours},
                                         .other = {.timed = other},
                                         .context = &pairs,
                                         .rounds = 20,
                                         .a_round = 3,
                                         .wall_only = true});
    if (pairs.disjoint)
        umfPoolDestroy(pairs.disjoint);
    memclient_heap_close(pairs.heap);
}

/* ---- handed over ------------------------------------------------------------------------------------------------- */

struct parcel {
    struct memclient_block block;
    const void *bytes; /* in the other process */
    size_t size;
    pid_t from;
};

struct handing {
    size_t size;
    struct memclient_heap *heap;
    struct memclient_token token;
    struct peer ours, other;
};

static void line_send(int line, const struct parcel *parcel)
{
    bench_must(send(line, parcel, sizeof(*parcel), 0) == sizeof(*parcel), "send");
}

static bool line_receive(int line, struct parcel *parcel)
{
    return recv(line, parcel, sizeof(*parcel), 0) == sizeof(*parcel);
}

static void read_all(const void *bytes, size_t size)
{
    const uint64_t *words = bytes;
    uint64_t sum = 0;

    for (size_t i = 0; i < size / sizeof(*words); i++)
        sum += words[i];
    bench_must(sum == size / sizeof(sum) * UINT64_C(0x0101010101010101), "the contents");
}

static void receive_ours(int line, void *context)
{
    const struct handing *handing = context;
    struct memclient_heap *heap;
    struct parcel parcel;
    void *p;

    bench_did(memclient_heap_open_token(NULL, &handing->token, &heap));
    while (line_receive(line, &parcel)) {
        bench_did(memclient_block_take(heap, &parcel.block, &p));
        read_all(p, parcel.size);
        bench_did(memclient_heap_free(heap, p));
        line_tell(line);
    }
}

static void give_ours(void *context)
{
    struct handing *handing = context;
    struct parcel parcel = {.size = handing->size};
    void *p;

    bench_did(memclient_heap_alloc(handing->heap, handing->size, &p));
    memset(p, 1, handing->size);
    bench_did(memclient_block_give(handing->heap, p, 0, &parcel.block));
    line_send(handing->ours.line, &parcel);
    bench_must(line_hear(handing->ours.line), "the process that takes blocks");
}

static void handing_begin(struct handing *handing)
{
    /* what others of these processes would print again when they end */
    fflush(NULL);
    handing->heap = heap_of(handing->size, 0);
    bench_did(memclient_heap_share(handing->heap, NULL, &handing->token));
    peer_start(&handing->ours, receive_ours, handing);
}

static void handing_end(struct handing *handing)
{
    peer_end(&handing->ours);
    memclient_heap_close(handing->heap);
}

static void receive_copy(int line, void *context)
{
    struct parcel parcel;

    (void)context;
    while (line_receive(line, &parcel)) {
        char *p = malloc(parcel.size);
        struct iovec to = {.iov_base = p, .iov_len = parcel.size};
        struct iovec from = {.iov_base = (void *)(uintptr_t)parcel.bytes, .iov_len = parcel.size};

        bench_must(p && process_vm_readv(parcel.from, &to, 1, &from, 1, 0) == (ssize_t)parcel.size, "process_vm_readv");
        read_all(p, parcel.size);
        free(p);
        line_tell(line);
    }
}

static void give_copy(void *context)
{
    struct handing *handing = context;
    struct parcel parcel = {.size = handing->size, .from = getpid()};
    char *p = malloc(handing->size);

    bench_must(!!p, "malloc");
    memset(p, 1, handing->size);
    parcel.bytes = p;
    line_send(handing->other.line, &parcel);
    bench_must(line_hear(handing->other.line), "the process that copies");
    free(p);
}

static void measure_giving(const struct bench_row *row, size_t size)
{
    struct handing handing = {.size = size};

    if (!bench_wanted(row))
        return;
    handing_begin(&handing);
    peer_start(&handing.other, receive_copy, &handing);
    (void)bench_run(row, &(struct bench){.ours = {.once = give_ours},
                                         .other = {.once = give_copy},
                                         .context = &handing,
                                         .rounds = 20,
                                         .a_round = 50});
    peer_end(&handing.other);
    handing_end(&handing);
}

/* ---- ... by iceoryx ---------------------------------------------------------------------------------------------- */

static void receive_chunk(int line, void *context)
{
    struct parcel parcel;
    const void *p;

    (void)context;
    iceoryx_begin(false);
    while (line_receive(line, &parcel)) {
        p = iceoryx_take();
        read_all(p, parcel.size);
        iceoryx_release(p);
        line_tell(line);
    }
    exit(0);
}

static void give_chunk(struct handing *handing)
{
    struct parcel parcel = {.size = handing->size};
    void *p = iceoryx_loan(handing->size);

    memset(p, 1, handing->size);
    iceoryx_publish(p);
    line_send(handing->other.line, &parcel);
    bench_must(line_hear(handing->other.line), "the process that takes chunks");
}

/* A process of its own, with which iceoryx ends. */
static void give_chunks(int line, void *context)
{
    struct handing *handing = context;

    peer_start(&handing->other, receive_chunk, handing);
    iceoryx_begin(true);
    while (line_hear(line)) {
        double took = bench_now_us();

        give_chunk(handing);
        took = bench_now_us() - took;
        bench_must(send(line, &took, sizeof(took), 0) == sizeof(took), "send");
    }
    peer_end(&handing->other);
    exit(0);
}

static double time_chunk(void *context)
{
    struct handing *handing = context;
    double took;

    line_tell(handing->other.line);
    bench_must(recv(handing->other.line, &took, sizeof(took), 0) == sizeof(took), "the process that gives chunks");
    return took;
}

static void measure_against_iceoryx(const struct bench_row *row, size_t size)
{
    struct handing handing = {.size = size};

    if (!bench_wanted(row))
        return;
    if (!iceoryx_is_here()) {
        bench_skip(row, "iceoryx is not installed: Debian's packages are iceoryx and libiceoryx-binding-c2");
        return;
    }
    handing_begin(&handing);
    peer_start(&handing.other, give_chunks, &handing);
    (void)bench_run(row, &(struct bench){.ours = {.once = give_ours},
                                         .other = {.timed = time_chunk},
                                         .context = &handing,
                                         .rounds = 20,
                                         .a_round = 50,
                                         .wall_only = true});
    peer_end(&handing.other);
    handing_end(&handing);
}

/* ---- after a death ----------------------------------------------------------------------------------------------- */

struct loss {
    struct memclient_heap *heap;
    struct memclient_token token;
    uint64_t *words;
};

static void hold_many(int line, void *context)
{
    const struct loss *loss = context;
    struct memclient_heap *heap;
    void *p;

    bench_did(memclient_heap_open_token(NULL, &loss->token, &heap));
    for (unsigned i = 0; i < MANY; i++)
        bench_did(memclient_heap_alloc(heap, 256, &p));
    line_tell(line);
    (void)line_hear(line);
}

static uint64_t taken_of(struct memclient_heap *heap)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;

    bench_did(memclient_heap_query(heap, &info));
    return info.blocks - info.blocks_free;
}

static double recover_ours(void *context)
{
    struct loss *loss = context;
    struct peer peer;
    double begin;

    peer_start(&peer, hold_many, loss);
    bench_must(line_hear(peer.line), "the process that has blocks");
    bench_must(taken_of(loss->heap) == MANY, "as many blocks");
    peer_kill(&peer);
    begin = bench_now_us();
    bench_did(memclient_heap_sweep(loss->heap));
    begin = bench_now_us() - begin;
    bench_must(taken_of(loss->heap) == 0, "all blocks free again");
    return begin;
}

/* Each word looked at and written once. */
static void recover_floor(void *context)
{
    struct loss *loss = context;

    for (unsigned i = 0; i < MANY; i++) {
        uint64_t seen = __atomic_load_n(&loss->words[i], __ATOMIC_ACQUIRE);

        (void)__atomic_compare_exchange_n(&loss->words[i], &seen, seen + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}

static void measure_recovery(const struct bench_row *row)
{
    struct loss loss = {.heap = NULL};
    void *p;

    if (!bench_wanted(row))
        return;
    loss.heap = heap_of(256, 0);
    loss.words = calloc(MANY, sizeof(*loss.words));
    bench_must(!!loss.words, "calloc");
    bench_did(memclient_heap_alloc(loss.heap, 1, &p));
    bench_did(memclient_heap_free(loss.heap, p));
    bench_did(memclient_heap_share(loss.heap, NULL, &loss.token));
    (void)bench_run(row, &(struct bench){.ours = {.timed = recover_ours},
                                         .other = {.once = recover_floor},
                                         .context = &loss,
                                         .rounds = 10,
                                         .a_round = 1,
                                         .wall_only = true});
    free(loss.words);
    memclient_heap_close(loss.heap);
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [PAIR_1] = {.name = "pool_pair_1", .unit = BENCH_NS, .operations = PAIRS, .rival = true, .goal = 100},
        [PAIR_2] = {.name = "pool_pair_2", .unit = BENCH_NS, .operations = PAIRS, .rival = true, .goal = 100},
        [PAIR_4] = {.name = "pool_pair_4", .unit = BENCH_NS, .operations = PAIRS, .rival = true, .goal = 100},
        [PAIR_DISJOINT] = {.name = "pool_pair_vs_disjoint", .unit = BENCH_NS, .operations = PAIRS, .rival = true},
        [GIVE_64K] = {.name = "pool_hand_over_64k", .unit = BENCH_US, .rival = true, .hold = 1},
        [GIVE_1M] = {.name = "pool_hand_over_1m", .unit = BENCH_US, .rival = true, .hold = 0.5},
        [GIVE_64K_ICEORYX] = {.name = "pool_hand_over_64k_vs_iceoryx", .unit = BENCH_US, .rival = true, .hold = 1},
        [GIVE_1M_ICEORYX] = {.name = "pool_hand_over_1m_vs_iceoryx", .unit = BENCH_US, .rival = true, .hold = 1},
        [RECOVER] = {.name = "pool_recover", .unit = BENCH_MS, .goal = 10},
    };

    bench_begin(argc, argv, rows, ROWS);
    measure_pairs(&rows[PAIR_1], 1, pairs_run_malloc);
    measure_pairs(&rows[PAIR_2], 2, pairs_run_malloc);
    measure_pairs(&rows[PAIR_4], 4, pairs_run_malloc);
    measure_pairs(&rows[PAIR_DISJOINT], 1, pairs_run_disjoint);
    measure_giving(&rows[GIVE_64K], 64 * KIB);
    measure_giving(&rows[GIVE_1M], MIB);
    measure_against_iceoryx(&rows[GIVE_64K_ICEORYX], 64 * KIB);
    measure_against_iceoryx(&rows[GIVE_1M_ICEORYX], MIB);
    measure_recovery(&rows[RECOVER]);
    return bench_end();
}
