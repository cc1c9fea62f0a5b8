/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation costs against how much there is already: live buffers, clients that are connected, objects in a
 * pool. Prints a line for each point, which plot.sh draws:
 *
 *     FIGURE SERIES HOW-MANY COST
 *
 * in microseconds, or, in figures that are about something else, in what their names say. Nothing is compared with a
 * floor here: what counts is how a line runs. Flat is right, and a little more for each factor of ten (trees and caches
 * are deeper); a line that goes up with its figure's diagonal is a walk over everything.
 *
 * SCALE_BUFFERS, SCALE_CLIENTS and SCALE_OBJECTS are the most of each.
 */
#include <memclient/memclient.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

enum { SAMPLES = 400, PAIRS = 2000 };

static struct memclient_context *ctx, *other;
static struct memclient_buffer *held;
static struct memclient_token token;

static void did(int r)
{
    bench_must(r >= 0, memclient_error());
}

static size_t most(const char *name, size_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtoul(value, NULL, 10) : otherwise;
}

static void point(const char *figure, const char *series, size_t n, double value)
{
    printf("%s %s %zu %.4g\n", figure, series, n, value);
    (void)fflush(stdout);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void null_call(void)
{
    did(memclient_broker_ping(ctx));
}

/* What is freed is waited for: else the next one pays for it. */
static void alloc_and_free(void)
{
    struct memclient_buffer *buf;

    did(memclient_alloc(ctx, 4096, NULL, &buf));
    memclient_buffer_unref(buf);
    did(memclient_broker_ping(ctx));
}

static void share(void)
{
    struct memclient_token made;

    did(memclient_share(held, NULL, &made));
    did(memclient_revoke_token(ctx, &made));
}

static void open_by_token(void)
{
    struct memclient_buffer *buf;

    did(memclient_open_token(other, &token, 0, &buf));
    memclient_buffer_unref(buf);
    did(memclient_broker_ping(other));
}

static void open_by_name(void)
{
    struct memclient_buffer *buf;

    did(memclient_open_name(other, "scale/held", 0, &buf));
    memclient_buffer_unref(buf);
    did(memclient_broker_ping(other));
}

static int first_only(const struct memclient_buffer_info *info, void *data)
{
    (void)info;
    (void)data;
    return 1;
}

static void list_a_page(void)
{
    (void)memclient_list_buffers(ctx, first_only, NULL);
}

static void connect_and_leave(void)
{
    struct memclient_context *fresh;

    did(memclient_context_open(NULL, &fresh));
    memclient_context_close(fresh);
}

static const struct {
    const char *name;
    void (*once)(void);
} operations[] = {
    {"null", null_call},
    {"alloc+free", alloc_and_free},
    {"share+revoke", share},
    {"open-token", open_by_token},
    {"open-name", open_by_name},
    {"list-page", list_a_page},
    {"connect", connect_and_leave},
};

static void measure(const char *figure, size_t n)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        struct samples samples = {0};

        operations[i].once();
        for (int k = 0; k < SAMPLES; k++) {
            double begun = bench_now_us();

            operations[i].once();
            samples_add(&samples, bench_now_us() - begun);
        }
        point(figure, operations[i].name, n, samples_quantile(&samples, 0.5));
        samples_free(&samples);
    }
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static void by_clients(size_t last)
{
    struct memclient_context **clients = calloc(last, sizeof(struct memclient_context *));
    size_t n = 2; /* ours */

    bench_must(clients != NULL, "calloc");
    for (size_t x = 1; x <= last; x *= 10) {
        for (; n < x; n++)
            did(memclient_context_open(NULL, &clients[n]));
        measure("clients", x);
    }
    while (n-- > 2)
        memclient_context_close(clients[n]);
    free(clients);
}

static void by_buffers(size_t last)
{
    struct memclient_buffer **bufs = calloc(last, sizeof(struct memclient_buffer *));
    uint64_t sizes[MEMCLIENT_BATCH_MAX];
    size_t n = 0;

    bench_must(bufs != NULL, "calloc");
    for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        sizes[i] = 1;
    for (size_t x = 100; x <= last; x *= 10) {
        for (size_t part; n < x; n += part) {
            part = x - n < MEMCLIENT_BATCH_MAX ? x - n : MEMCLIENT_BATCH_MAX;
            did(memclient_alloc_many(ctx, part, sizes, NULL, bufs + n));
        }
        measure("buffers", x);
    }
    while (n)
        memclient_buffer_unref(bufs[--n]);
    free(bufs);
}

static size_t mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    size_t n = 0;

    bench_must(f != NULL, "/proc/self/maps");
    for (int c; (c = getc(f)) != EOF;)
        n += c == '\n';
    (void)fclose(f);
    return n;
}

static void by_objects(size_t last)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;
    void **ptrs = calloc(last, sizeof(void *));
    size_t n = 0;

    bench_must(ptrs != NULL, "calloc");
    params.MinBucketSize = 64;
    params.MaxPoolableSize = 4096;
    params.SlabMinSize = 2 << 20;
    params.Capacity = 64;
    bench_must(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider), "umfMemoryProviderCreate");
    bench_must(!umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
               "umfPoolCreate");
    for (size_t x = 100; x <= last; x *= 10) {
        struct samples samples = {0};

        for (; n < x; n++)
            bench_must((ptrs[n] = umfPoolMalloc(pool, 64)) != NULL, "umfPoolMalloc");
        for (int k = 0; k < SAMPLES; k++) {
            double begun = bench_now_us();

            for (int i = 0; i < PAIRS; i++)
                (void)umfPoolFree(pool, umfPoolMalloc(pool, 64));
            samples_add(&samples, (bench_now_us() - begun) / PAIRS);
        }
        point("objects", "malloc+free", x, samples_quantile(&samples, 0.5));
        samples_free(&samples);
        did(memclient_broker_query(ctx, &status));
        point("objects-take", "buffers", x, (double)status.buffers);
        point("objects-take", "mappings", x, (double)mappings());
    }
    while (n)
        (void)umfPoolFree(pool, ptrs[--n]);
    umfPoolDestroy(pool);
    free(ptrs);
}

int main(void)
{
    struct memclient_alloc_options named = MEMCLIENT_ALLOC_OPTIONS_INIT;

    named.name = "scale/held";
    did(memclient_context_open(NULL, &ctx));
    did(memclient_context_open(NULL, &other));
    did(memclient_alloc(ctx, 4096, &named, &held));
    did(memclient_share(held, NULL, &token));
    by_clients(most("SCALE_CLIENTS", 1000));
    by_buffers(most("SCALE_BUFFERS", 10000));
    by_objects(most("SCALE_OBJECTS", 1000000));
    did(memclient_unbind_name(ctx, "scale/held"));
    memclient_buffer_unref(held);
    memclient_context_close(other);
    memclient_context_close(ctx);
    return fflush(stdout) ? 1 : 0;
}
