/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that each go to UMF's provider, with many others that live: what is asked of the index of addresses. One
 * of the live ones is freed, here and there, and another is made in its stead, of a page, which is not written. The
 * rival is upstream's library, with the same work in a process of its own.
 *
 * It is processor time that is compared, of all threads: most of the time goes to the kernel, which both ask for the
 * same, and what other programs took of the processors would be most of what is seen otherwise.
 */
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/umf_library.h"

enum { LIVE = 8000, OPERATIONS = 1000, THREADS_MAX = 4, SIZE = 4096 };

enum kind { OS, PROXY, DISJOINT, JEMALLOC, KINDS };

static const char *const kind_names[KINDS] = {"os", "proxy", "disjoint", "jemalloc"};
static const unsigned char threads[] = {1, 2, 4};

enum { THREADS = sizeof(threads), ROWS = KINDS * THREADS };

/* ---- in the child ------------------------------------------------------------------------------------------------ */

static struct umf_library umf;

/* One for each kind, with what lives in it; made when it is first asked for. */
static struct source {
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool; /* NULL: the provider itself */
    void *live[THREADS_MAX][LIVE];
    unsigned threads; /* that have theirs */
} sources[KINDS];

static void *get(struct source *source)
{
    void *ptr = NULL;

    if (source->pool)
        ptr = umf.pool_malloc(source->pool, SIZE);
    else
        bench_must(!umf.provider_alloc(source->provider, SIZE, 0, &ptr), "umfMemoryProviderAlloc");
    bench_must(ptr != NULL, "umfPoolMalloc");
    return ptr;
}

static void put(struct source *source, void *ptr)
{
    if (source->pool)
        bench_must(!umf.pool_free(source->pool, ptr), "umfPoolFree");
    else
        bench_must(!umf.provider_free(source->provider, ptr, SIZE), "umfMemoryProviderFree");
}

static bool make_source(struct source *source, enum kind kind)
{
    umf_os_memory_provider_params_t os = umfOsMemoryProviderParamsDefault();
    umf_disjoint_pool_params_t disjoint = umfDisjointPoolParamsDefault();
    umf_memory_pool_ops_t *(*ops[])(void) = {
        [PROXY] = umf.proxy_ops, [DISJOINT] = umf.disjoint_ops, [JEMALLOC] = umf.jemalloc_ops};

    if (source->provider)
        return true;
    if (kind != OS && !ops[kind])
        return false;
    if (umf.provider_create(umf.os_ops(), &os, &source->provider))
        return false;
    return kind == OS ||
           !umf.pool_create(ops[kind](), source->provider, kind == DISJOINT ? &disjoint : NULL, 0, &source->pool);
}

static void replace_some(struct source *source, unsigned thread)
{
    static _Atomic unsigned seeds;
    unsigned x = ++seeds;

    for (int i = 0; i < OPERATIONS; i++) {
        void **slot = &source->live[thread][(x >> 8) % LIVE];

        x = x * 1664525 + 1013904223;
        put(source, *slot);
        *slot = get(source);
    }
}

/* Threads that live as long as the process. */
static struct crew {
    pthread_barrier_t begin, end;
    struct source *source;
    unsigned n; /* 0: there is none yet */
} crews[THREADS_MAX + 1];

struct place {
    struct crew *crew;
    unsigned thread;
};

static void *member(void *arg)
{
    const struct place *place = arg;

    for (;;) {
        (void)pthread_barrier_wait(&place->crew->begin);
        replace_some(place->crew->source, place->thread);
        (void)pthread_barrier_wait(&place->crew->end);
    }
    return NULL;
}

static void engage(struct crew *crew, unsigned n)
{
    static struct place places[THREADS_MAX + 1][THREADS_MAX];
    pthread_t thread;

    bench_must(!pthread_barrier_init(&crew->begin, NULL, n + 1), "pthread_barrier_init");
    bench_must(!pthread_barrier_init(&crew->end, NULL, n + 1), "pthread_barrier_init");
    for (crew->n = 0; crew->n < n; crew->n++) {
        struct place *place = &places[n][crew->n];

        *place = (struct place){crew, crew->n};
        bench_must(!pthread_create(&thread, NULL, member, place), "pthread_create");
    }
}

static double serve(const struct umf_order *order)
{
    struct source *source = &sources[order->kind];
    struct crew *crew = &crews[order->threads];
    double begin;

    if (!make_source(source, (enum kind)order->kind))
        return -1;
    for (; source->threads < order->threads; source->threads++)
        for (int i = 0; i < LIVE; i++)
            source->live[source->threads][i] = get(source);
    if (!crew->n)
        engage(crew, order->threads);
    crew->source = source;
    begin = bench_processor_us(NULL);
    (void)pthread_barrier_wait(&crew->begin);
    (void)pthread_barrier_wait(&crew->end);
    return bench_processor_us(NULL) - begin;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static struct bench_row rows[ROWS];
static char names[ROWS][32];

static struct umf_order order_of(size_t row)
{
    return (struct umf_order){.kind = (unsigned)(row / THREADS), .threads = threads[row % THREADS]};
}

static void name_rows(void)
{
    for (size_t i = 0; i < ROWS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "umf_live_%s_%u", kind_names[i / THREADS],
                       (unsigned)threads[i % THREADS]);
        rows[i] = (struct bench_row){.name = names[i],
                                     .unit = BENCH_NS,
                                     .rival = true,
                                     .hold = 1,
                                     .operations = OPERATIONS * threads[i % THREADS]};
    }
}

struct contest {
    struct umf_child ours, upstream;
    struct umf_order order;
};

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

/* Of one kind, in children of its own: what lives of another is no part of it. */
static void measure(enum kind kind)
{
    struct contest contest;
    const char *reason = NULL;

    umf_child_start(&contest.ours, false);
    umf_child_start(&contest.upstream, true);
    for (size_t i = kind * (size_t)THREADS; i < (kind + 1) * (size_t)THREADS; i++) {
        if (!bench_wanted(&rows[i]))
            continue;
        contest.order = order_of(i);
        if (!reason && umf_child_tell(&contest.ours, contest.order) < 0)
            reason = "it cannot be made here";
        if (!reason && umf_child_tell(&contest.upstream, contest.order) < 0)
            reason = "the library that BENCH_UMF names has it not, or cannot make it";
        if (reason)
            bench_skip(&rows[i], reason);
        else
            (void)bench_run(&rows[i],
                            &(struct bench){.ours = {.timed = time_ours, .workers = contest.ours.pids},
                                            .other = {.timed = time_upstream, .workers = contest.upstream.pids},
                                            .context = &contest,
                                            .rounds = 8,
                                            .a_round = 2});
    }
    umf_child_end(&contest.ours);
    umf_child_end(&contest.upstream);
}

int main(int argc, char **argv)
{
    const char *reason;

    if (argc == 3 && !strcmp(argv[1], "--serve")) {
        reason = umf_library_load(!strcmp(argv[2], "upstream"), &umf);
        bench_must(!reason, reason);
        return umf_child_serve(serve, 0);
    }
    name_rows();
    bench_begin(argc, argv, rows, ROWS);
    reason = umf_library_load(true, &umf);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        bool any = false;

        for (size_t i = kind * (size_t)THREADS; i < (kind + 1) * (size_t)THREADS; i++) {
            any = any || bench_wanted(&rows[i]);
            if (reason)
                bench_skip(&rows[i], reason);
        }
        if (any && !reason)
            measure(kind);
    }
    return bench_end();
}
