/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which metrics there are. memoryd(8) has a chapter about them, in the same order.
 */
#include <event2/buffer.h>
#include <stddef.h>

#include "history/counters.h"
#include "mem/pool.h"
#include "observe/exposition.h"
#include "proto/methods.h"
#include "proto/schema.h"
#include "proto/status.h"
#include "sys/numa.h"

static unsigned long long ull(uint64_t v)
{
    return v;
}

/* ---- the broker as a whole --------------------------------------------------------------------------------------- */

static void row_build(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                      uint64_t *cursor)
{
    if ((*cursor)++)
        *cursor = 0;
    else
        (void)evbuffer_add_printf(out, "%s_info{version=\"" PACKAGE_VERSION "\"} 1\n", family->name);
}

/* Those of one number: where it is. */
static void row_single(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                       uint64_t *cursor, uint64_t value)
{
    if ((*cursor)++)
        *cursor = 0;
    else
        (void)evbuffer_add_printf(out, "%s%s %llu\n", family->name, family->type == FAMILY_COUNTER ? "_total" : "",
                                  ull(value));
}

/* X(row function, value) */
#define SINGLES(X)                                         \
    X(row_buffers, exposition->figures.holdings.buffers)   \
    X(row_detached, exposition->figures.holdings.detached) \
    X(row_bytes, exposition->figures.holdings.bytes)       \
    X(row_names, exposition->figures.holdings.names)       \
    X(row_sessions, exposition->figures.holdings.sessions) \
    X(row_tokens, exposition->figures.tokens)              \
    X(row_reservations, exposition->figures.reservations)  \
    X(row_quarantined, exposition->figures.quarantined)    \
    X(row_fds, exposition->figures.fds)                    \
    X(row_fds_limit, exposition->figures.fds_limit)        \
    X(row_waits, exposition->figures.counters->waits)

#define X(name, value)                                                                                       \
    static void name(const struct exposition *exposition, const struct family *family, struct evbuffer *out, \
                     uint64_t *cursor)                                                                       \
    {                                                                                                        \
        row_single(exposition, family, out, cursor, value);                                                  \
    }
SINGLES(X)
#undef X

static void row_wait_seconds(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                             uint64_t *cursor)
{
    uint64_t ms = exposition->figures.counters->waits_ms;

    if ((*cursor)++)
        *cursor = 0;
    else
        (void)evbuffer_add_printf(out, "%s_total %llu.%03u\n", family->name, ull(ms / 1000), (unsigned)(ms % 1000));
}

/* ---- pools and nodes --------------------------------------------------------------------------------------------- */

static uint64_t pool_used_bytes(const struct pool *pool)
{
    return tally_used(&pool->bytes);
}

static uint64_t pool_warm_bytes(const struct pool *pool)
{
    return pool->bytes.in[TALLY_STOCK];
}

/* The names of pools are of plain characters (daemon/config/config.c). */
static void row_pool(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                     uint64_t *cursor, uint64_t (*figure)(const struct pool *pool))
{
    static const char *const pages[] = {"any", "base", "thp", "hugetlb"};
    const struct pool *pool = pools_get(exposition->figures.pools, (uint32_t)*cursor);

    if (!pool) {
        *cursor = 0;
        return;
    }
    ++*cursor;
    (void)evbuffer_add_printf(out, "%s{pool=\"%s\",pages=\"%s\"} %llu\n", family->name, pool->name, pages[pool->pages],
                              ull(figure(pool)));
}

static void row_node(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                     uint64_t *cursor, uint64_t (*figure)(const struct budget *budget))
{
    const struct topology *topology = exposition->figures.topology;
    const struct budget *budget = NULL;
    uint32_t number = 0;

    while (!budget && *cursor < topology->n_nodes) {
        number = topology->nodes[(*cursor)++].number;
        budget = pools_node_budget(exposition->figures.pools, number);
    }
    if (budget)
        (void)evbuffer_add_printf(out, "%s{node=\"%u\"} %llu\n", family->name, number, ull(figure(budget)));
    else
        *cursor = 0;
}

static uint64_t node_capacity(const struct budget *budget)
{
    return budget->capacity;
}

static uint64_t node_used(const struct budget *budget)
{
    return tally_used(&budget->bytes);
}

/* X(row function, kind of row, figure) */
#define PLACES(X)                                 \
    X(row_pool_capacity, row_pool, pool_capacity) \
    X(row_pool_used, row_pool, pool_used_bytes)   \
    X(row_pool_warm, row_pool, pool_warm_bytes)   \
    X(row_pool_free, row_pool, pool_available)    \
    X(row_node_capacity, row_node, node_capacity) \
    X(row_node_used, row_node, node_used)

#define X(name, kind, figure)                                                                                \
    static void name(const struct exposition *exposition, const struct family *family, struct evbuffer *out, \
                     uint64_t *cursor)                                                                       \
    {                                                                                                        \
        kind(exposition, family, out, cursor, figure);                                                       \
    }
PLACES(X)
#undef X

/* ---- users ------------------------------------------------------------------------------------------------------- */

static void row_user(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                     uint64_t *cursor, enum account_slot slot)
{
    const struct account *account =
        *cursor > UINT32_MAX ? NULL : account_next(exposition->figures.accounts, (uid_t)*cursor);

    *cursor = account ? (uint64_t)account->uid + 1 : 0;
    if (account)
        (void)evbuffer_add_printf(out, "%s{uid=\"%u\"} %llu\n", family->name, (unsigned)account->uid,
                                  ull(account_used(account, slot)));
}

#define X(name, slot)                                                                                        \
    static void name(const struct exposition *exposition, const struct family *family, struct evbuffer *out, \
                     uint64_t *cursor)                                                                       \
    {                                                                                                        \
        row_user(exposition, family, out, cursor, slot);                                                     \
    }
X(row_user_bytes, ACCOUNT_BYTES)
X(row_user_buffers, ACCOUNT_BUFFERS)
X(row_user_sessions, ACCOUNT_SESSIONS)
#undef X

/* ---- what is counted --------------------------------------------------------------------------------------------- */

static void write_histogram(const struct family *family, struct evbuffer *out, const char *method,
                            const struct counters_replies *replies)
{
    static const char *const bounds[COUNTERS_BUCKETS] = {
#define X(ns, text) text,
        COUNTERS_BOUNDS(X)
#undef X
    };
    uint64_t n = 0;

    for (unsigned i = 0; i < COUNTERS_BUCKETS; i++) {
        n += replies->buckets[i];
        (void)evbuffer_add_printf(out, "%s_bucket{method=\"%s\",le=\"%s\"} %llu\n", family->name, method, bounds[i],
                                  ull(n));
    }
    (void)evbuffer_add_printf(out, "%s_count{method=\"%s\"} %llu\n%s_sum{method=\"%s\"} %llu.%09llu\n", family->name,
                              method, ull(n), family->name, method, ull(replies->ns / 1000000000),
                              ull(replies->ns % 1000000000));
}

/* Those that nobody has called are left out. */
static void row_method(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                       uint64_t *cursor)
{
    size_t n;
    const struct schema_method *methods = schema_methods(&n);

    while (*cursor < n) {
        const struct schema_method *method = &methods[(*cursor)++];
        const struct counters_replies *replies = &exposition->figures.counters->replies[method->id];

        if (!replies->ns)
            continue;
        write_histogram(family, out, method->name, replies);
        return;
    }
    *cursor = 0;
}

static void row_refusal(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                        uint64_t *cursor)
{
    static const unsigned statuses[] = {
#define X(name, number, err, text) number,
        MEMORYD_STATUSES(X)
#undef X
    };
    unsigned status;

    *cursor += !*cursor; /* OK is none */
    if (*cursor >= sizeof(statuses) / sizeof(*statuses)) {
        *cursor = 0;
        return;
    }
    status = statuses[(*cursor)++];
    (void)evbuffer_add_printf(out, "%s_total{status=\"%s\"} %llu\n", family->name, status_name(status),
                              ull(exposition->figures.counters->refusals[status]));
}

/* A counter of those in a block, and the value of the label that is its row's. */
struct counted {
    unsigned index;
    const char *word;
};

static void row_counted(const struct family *family, struct evbuffer *out, uint64_t *cursor, const char *label,
                        const struct counted *rows, size_t n, const uint64_t *counts)
{
    const struct counted *row = &rows[*cursor];

    if (*cursor == n) {
        *cursor = 0;
        return;
    }
    ++*cursor;
    (void)evbuffer_add_printf(out, "%s_total{%s=\"%s\"} %llu\n", family->name, label, row->word,
                              ull(counts[row->index]));
}

static void row_end(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                    uint64_t *cursor)
{
    static const struct counted causes[] = {
        {HISTORY_END_GOODBYE, "goodbye"}, {HISTORY_END_EXITED, "exited"}, {HISTORY_END_SIGNAL, "signal"},
        {HISTORY_END_UNKNOWN, "unknown"}, {HISTORY_END_SILENT, "silent"}, {HISTORY_END_OOM, "oom"},
    };

    row_counted(family, out, cursor, "cause", causes, sizeof(causes) / sizeof(*causes),
                exposition->figures.counters->ends);
}

static void row_recovery(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                         uint64_t *cursor)
{
    static const struct counted ends[] = {{0, "exit"}, {1, "death"}};

    row_counted(family, out, cursor, "after", ends, sizeof(ends) / sizeof(*ends),
                exposition->figures.counters->recoveries);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

const struct family families[] = {
    {"memoryd_build", FAMILY_INFO, NULL, "The version that serves.", .row = row_build},
    {"memoryd_pool_capacity_bytes", FAMILY_GAUGE, "bytes", "The most that the pool may give out.",
     .row = row_pool_capacity},
    {"memoryd_pool_used_bytes", FAMILY_GAUGE, "bytes", "What buffers have of the pool.", .row = row_pool_used},
    {"memoryd_pool_warm_bytes", FAMILY_GAUGE, "bytes", "Committed ahead, and given back where it is needed.",
     .row = row_pool_warm},
    {"memoryd_pool_free_bytes", FAMILY_GAUGE, "bytes", "What the pool could give out now, its warm stock included.",
     .row = row_pool_free},
    {"memoryd_node_capacity_bytes", FAMILY_GAUGE, "bytes", "The most of the node's ordinary memory that pools share.",
     .row = row_node_capacity},
    {"memoryd_node_used_bytes", FAMILY_GAUGE, "bytes", "What buffers have of that.", .row = row_node_used},
    {"memoryd_buffers", FAMILY_GAUGE, NULL, "Buffers, the warm stock not included.", .row = row_buffers},
    {"memoryd_detached_buffers", FAMILY_GAUGE, NULL, "Buffers that only have somebody who mapped or opened them.",
     .row = row_detached},
    {"memoryd_buffers_bytes", FAMILY_GAUGE, "bytes", "What these buffers take.", .row = row_bytes},
    {"memoryd_sessions", FAMILY_GAUGE, NULL, "Sessions of clients.", .row = row_sessions},
    {"memoryd_names", FAMILY_GAUGE, NULL, "Names that are bound.", .row = row_names},
    {"memoryd_tokens", FAMILY_GAUGE, NULL, "Tokens that are valid.", .row = row_tokens},
    {"memoryd_reservations", FAMILY_GAUGE, NULL, "Reserved ranges of addresses.", .row = row_reservations},
    {"memoryd_open_fds", FAMILY_GAUGE, NULL, "Descriptors that the broker has open.", .row = row_fds},
    {"memoryd_max_fds", FAMILY_GAUGE, NULL, "Descriptors that it may have open.", .row = row_fds_limit},
    {"memoryd_quarantined_records", FAMILY_GAUGE, NULL, "Damaged records of the ledger, which are left alone.",
     .row = row_quarantined},
    {"memoryd_user_bytes", FAMILY_GAUGE, "bytes", "What is charged to the user.", .of_users = true,
     .row = row_user_bytes},
    {"memoryd_user_buffers", FAMILY_GAUGE, NULL, "Buffers that are charged to the user.", .of_users = true,
     .row = row_user_buffers},
    {"memoryd_user_sessions", FAMILY_GAUGE, NULL, "Sessions of the user.", .of_users = true, .row = row_user_sessions},
    {"memoryd_request_duration_seconds", FAMILY_HISTOGRAM, "seconds",
     "From when a request was received until its reply was ready.", .row = row_method},
    {"memoryd_refusals", FAMILY_COUNTER, NULL, "Requests, or batches with items, that were refused.",
     .row = row_refusal},
    {"memoryd_waits", FAMILY_COUNTER, NULL, "Allocations that were made after waiting for room.", .row = row_waits},
    {"memoryd_wait_seconds", FAMILY_COUNTER, "seconds", "How long these waited together.", .row = row_wait_seconds},
    {"memoryd_sessions_ended", FAMILY_COUNTER, NULL, "Sessions that ended, by what is known of their process.",
     .row = row_end},
    {"memoryd_recoveries", FAMILY_COUNTER, NULL, "Brokers that took over from one that had ended in order or died.",
     .row = row_recovery},
};
const unsigned n_families = sizeof(families) / sizeof(*families);
