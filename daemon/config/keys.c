/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table, and one way to read and to describe each kind of value. Bounds are there to refuse what can only be a slip
 * of the pen; what fits this machine is found out later.
 */

#include "config/keys.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "config/value.h"

#define MAX_BYTES   (UINT64_C(1) << 56)
#define MAX_COUNT   (UINT64_C(1) << 32)
#define MAX_TIME_MS (UINT64_C(7) * 24 * 3600 * 1000)

#define LIMIT_KEY(scope, which, name, kind, min, max)                                                        \
    {"limits", #scope "_" name, kind, offsetof(struct config, scope##_limits[CONFIG_LIMIT_##which]), min, max, \
     LIVE}

/* Is it in force when the configuration was read again? */
#define LIVE true

const struct key config_keys[] = {
    {"topology", "simulate_nodes", KIND_NUMBER, offsetof(struct config, simulate_nodes), 0,
     MEMORYD_NODES_MAX},
    {"pools", "capacity", KIND_SIZE_OR_PERCENT, offsetof(struct config, capacity), 1 << 20, MAX_BYTES},
    {"pools", "pages", KIND_UNASKED, offsetof(struct config, base_pages), 0, 0, LIVE},
    {"pools", "stock", KIND_SIZE_OR_PERCENT, offsetof(struct config, stock), 0, MAX_BYTES},

    {"pool", "nodes", KIND_NODES, offsetof(struct config_pool, n_nodes), 0, 0},
    {"pool", "placement", KIND_PLACEMENT, offsetof(struct config_pool, placement), 0, 0},
    {"pool", "part_size", KIND_SIZE, offsetof(struct config_pool, part_size), 4096, 1 * TIB},
    {"pool", "weights", KIND_WEIGHTS, offsetof(struct config_pool, n_weights), 0, 0},
    {"pool", "page_size", KIND_SIZE, offsetof(struct config_pool, page_size), 4096, 16 * GIB},
    {"pool", "pages", KIND_PAGES, offsetof(struct config_pool, pages), 0, 0},
    {"pool", "commit", KIND_COMMIT, offsetof(struct config_pool, lazy), 0, 0},
    {"pool", "capacity", KIND_SIZE_OR_PERCENT, offsetof(struct config_pool, capacity), 4096, MAX_BYTES},
    {"pool", "stock", KIND_SIZE_OR_PERCENT, offsetof(struct config_pool, stock), 0, MAX_BYTES},

    {"arena", "base", KIND_NUMBER, offsetof(struct config, arena_base), 1 << 16, CONFIG_ADDRESS_TOP - 1},
    {"arena", "size", KIND_SIZE, offsetof(struct config, arena_size), 1 * GIB, CONFIG_ADDRESS_TOP / 2},
    {"arena", "half", KIND_HALF, offsetof(struct config, arena_half), 0, 0},

    {"limits", "connections", KIND_NUMBER, offsetof(struct config, connections), 1, 1 << 20, LIVE},
    {"limits", "uid_bytes", KIND_UID_BYTES, 0, 4096, MAX_BYTES, LIVE},
    LIMIT_KEY(uid, BUFFERS, "buffers", KIND_LIMIT, 1, MAX_COUNT),
    LIMIT_KEY(uid, TOKENS, "tokens", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(uid, RESERVATIONS, "reservations", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(uid, ADDRESSES, "addresses", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    LIMIT_KEY(uid, SESSIONS, "sessions", KIND_LIMIT, 1, MAX_COUNT),
    LIMIT_KEY(uid, NAMES, "names", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(uid, QUEUED_BYTES, "queued_bytes", KIND_SIZE_LIMIT, 1 << 17, MAX_BYTES),
    LIMIT_KEY(uid, FDS_IN_FLIGHT, "fds_in_flight", KIND_LIMIT, MEMORYD_FDS_MAX, MAX_COUNT),
    LIMIT_KEY(session, BYTES, "bytes", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    LIMIT_KEY(session, BUFFERS, "buffers", KIND_LIMIT, 1, MAX_COUNT),
    LIMIT_KEY(session, TOKENS, "tokens", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(session, RESERVATIONS, "reservations", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(session, ADDRESSES, "addresses", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    LIMIT_KEY(session, NAMES, "names", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(session, QUEUED_BYTES, "queued_bytes", KIND_SIZE_LIMIT, 1 << 17, MAX_BYTES),
    LIMIT_KEY(session, FDS_IN_FLIGHT, "fds_in_flight", KIND_LIMIT, MEMORYD_FDS_MAX, MAX_COUNT),

    {"session", "grace", KIND_TIME, offsetof(struct config, grace_ms), 0, MAX_TIME_MS, LIVE},
    {"session", "handshake_timeout", KIND_TIME, offsetof(struct config, handshake_ms), 100, MAX_TIME_MS, LIVE},
    {"session", "stall_timeout", KIND_TIME, offsetof(struct config, stall_ms), 100, MAX_TIME_MS, LIVE},

    {"broker", "worker_threads", KIND_NUMBER, offsetof(struct config, worker_threads), 0, 64},
    {"broker", "idle_exit", KIND_TIME, offsetof(struct config, idle_exit_ms), 0, MAX_TIME_MS, LIVE},
    {"broker", "spin", KIND_SPIN, offsetof(struct config, spin), 0, 0, LIVE},
};
const size_t config_n_keys = sizeof(config_keys) / sizeof(*config_keys);

_Static_assert(sizeof(config_keys) / sizeof(*config_keys) <= CONFIG_KEYS_MAX, "raise CONFIG_KEYS_MAX");

static void describe_size(uint64_t v, char *text, size_t size)
{
    static const char units[] = " KMGTPE";
    unsigned unit = 0;

    while (v && !(v & 1023) && unit < 6) {
        v >>= 10;
        unit++;
    }
    (void)snprintf(text, size, unit ? "%llu%c" : "%llu", (unsigned long long)v, units[unit]);
}

/* What the key takes, for the end of a sentence. */
const char *key_takes(const struct key *key, char *text, size_t size)
{
    char min[32];
    char max[32];

    describe_size(key->min, min, sizeof(min));
    describe_size(key->max, max, sizeof(max));
    switch (key->kind) {
    case KIND_NUMBER:
        (void)snprintf(text, size, "a number from %llu to %llu", (unsigned long long)key->min,
                       (unsigned long long)key->max);
        break;
    case KIND_LIMIT:
        (void)snprintf(text, size, "a number from %llu to %llu, or none", (unsigned long long)key->min,
                       (unsigned long long)key->max);
        break;
    case KIND_SIZE:
        (void)snprintf(text, size, "a size from %s to %s, like 64K, 8M, 2G or 1T", min, max);
        break;
    case KIND_SIZE_LIMIT:
        (void)snprintf(text, size, "a size from %s to %s, like 64K, 8M, 2G or 1T, or none", min, max);
        break;
    case KIND_SIZE_OR_PERCENT:
        (void)snprintf(text, size, "a size from %s to %s, like 8M or 2G, or 1%% to 100%%", min, max);
        break;
    case KIND_UID_BYTES:
        (void)snprintf(text, size, "a size from %s to %s, like 8M or 2G, or 1%% to 100%%, or none", min, max);
        break;
    case KIND_TIME:
        (void)snprintf(text, size, "a time from %llums to 168h with its unit: ms, s, min or h",
                       (unsigned long long)key->min);
        break;
    case KIND_HALF:
        (void)snprintf(text, size, "lower, upper or auto");
        break;
    case KIND_NODES:
        (void)snprintf(text, size, "up to %d different node numbers below %d, like 0,2 or 0-3",
                       MEMORYD_NODES_MAX, MEMORYD_NODES_MAX);
        break;
    case KIND_WEIGHTS:
        (void)snprintf(text, size, "one number from 1 to 1000000 for each node, like 3,1");
        break;
    case KIND_PLACEMENT:
        (void)snprintf(text, size, "bind, preferred, interleave, split or local");
        break;
    case KIND_PAGES:
        (void)snprintf(text, size, "base, thp or hugetlb");
        break;
    case KIND_COMMIT:
        (void)snprintf(text, size, "eager or lazy");
        break;
    case KIND_SPIN:
        (void)snprintf(text, size, "off or auto");
        break;
    case KIND_UNASKED:
        (void)snprintf(text, size, "auto or base");
        break;
    }
    return text;
}

static bool one_of(const char *value, const char *const *words, unsigned n, unsigned *index)
{
    for (unsigned i = 0; i < n; i++) {
        if (!strcmp(value, words[i])) {
            *index = i;
            return true;
        }
    }
    return false;
}

static bool in_range(const struct key *key, uint64_t v)
{
    return v >= key->min && v <= key->max;
}

static bool store_number(const struct key *key, void *base, uint64_t v)
{
    if (!in_range(key, v))
        return false;
    memcpy((char *)base + key->offset, &v, sizeof(v));
    return true;
}

static bool store_none(const struct key *key, void *base)
{
    uint64_t none = CONFIG_NONE;

    memcpy((char *)base + key->offset, &none, sizeof(none));
    return true;
}

static bool store_nodes(struct config_pool *pool, const char *value)
{
    uint32_t nodes[MEMORYD_NODES_MAX];
    uint32_t n;

    if (!value_list(value, nodes, &n, MEMORYD_NODES_MAX, MEMORYD_NODES_MAX - 1))
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (nodes[i] == nodes[j])
                return false;
    memcpy(pool->nodes, nodes, n * sizeof(*nodes));
    pool->n_nodes = n;
    return true;
}

static bool store_weights(struct config_pool *pool, const char *value)
{
    uint32_t weights[MEMORYD_NODES_MAX];
    uint32_t n;

    if (!value_list(value, weights, &n, MEMORYD_NODES_MAX, 1000000))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!weights[i])
            return false;
    memcpy(pool->weights, weights, n * sizeof(*weights));
    pool->n_weights = n;
    return true;
}

bool key_store(const struct key *key, struct config *config, struct config_pool *pool, const char *value)
{
    static const char *const halves[] = {"auto", "lower", "upper"};
    static const char *const placements[] = {"bind", "preferred", "interleave", "split", "local"};
    static const char *const pages[] = {"base", "thp", "hugetlb"};
    static const char *const commits[] = {"eager", "lazy"};
    static const char *const spins[] = {"off", "auto"};
    static const char *const unasked[] = {"auto", "base"};
    void *base = pool ? (void *)pool : (void *)config;
    struct config_size size = {0};
    unsigned percent;
    unsigned index;
    uint64_t v;

    switch (key->kind) {
    case KIND_NUMBER:
        return value_number(value, &v) && store_number(key, base, v);
    case KIND_SIZE:
        return value_size(value, &v) && store_number(key, base, v);
    case KIND_TIME:
        return value_time(value, &v) && store_number(key, base, v);
    case KIND_LIMIT:
        return !strcmp(value, "none") ? store_none(key, base)
                                      : value_number(value, &v) && store_number(key, base, v);
    case KIND_SIZE_LIMIT:
        return !strcmp(value, "none") ? store_none(key, base)
                                      : value_size(value, &v) && store_number(key, base, v);
    case KIND_UID_BYTES:
        percent = 0;
        v = CONFIG_NONE;
        if (strcmp(value, "none") != 0 && !value_percent(value, &percent) &&
            !(value_size(value, &v) && in_range(key, v)))
            return false;
        config->uid_limits[CONFIG_LIMIT_BYTES] = v;
        config->uid_bytes_percent = percent;
        return true;
    case KIND_SIZE_OR_PERCENT:
        if (!value_percent(value, &size.percent) && !(value_size(value, &size.bytes) && in_range(key, size.bytes)))
            return false;
        memcpy((char *)base + key->offset, &size, sizeof(size));
        return true;
    case KIND_HALF:
        if (!one_of(value, halves, 3, &index))
            return false;
        config->arena_half = (enum config_half)index;
        return true;
    case KIND_NODES:
        return store_nodes(pool, value);
    case KIND_WEIGHTS:
        return store_weights(pool, value);
    case KIND_PLACEMENT:
        if (!one_of(value, placements, 5, &index))
            return false;
        pool->placement = (enum config_placement)(index + 1);
        return true;
    case KIND_PAGES:
        if (!one_of(value, pages, 3, &index))
            return false;
        pool->pages = (enum config_pages)(index + 1);
        return true;
    case KIND_COMMIT:
        if (!one_of(value, commits, 2, &index))
            return false;
        pool->lazy = index == 1;
        return true;
    case KIND_SPIN:
        if (!one_of(value, spins, 2, &index))
            return false;
        config->spin = index == 1;
        return true;
    case KIND_UNASKED:
        if (!one_of(value, unasked, 2, &index))
            return false;
        config->base_pages = index == 1;
        return true;
    }
    return false;
}

/* ---- two of them --------------------------------------------------------------------------------------------- */

/* Of a value that is stored in one piece, without holes; else 0. */
static size_t stored_size(const struct key *key)
{
    switch (key->kind) {
    case KIND_NUMBER:
    case KIND_SIZE:
    case KIND_TIME:
    case KIND_LIMIT:
    case KIND_SIZE_LIMIT:
        return sizeof(uint64_t);
    case KIND_HALF:
        return sizeof(enum config_half);
    case KIND_PLACEMENT:
        return sizeof(enum config_placement);
    case KIND_PAGES:
        return sizeof(enum config_pages);
    case KIND_COMMIT:
    case KIND_SPIN:
    case KIND_UNASKED:
        return sizeof(bool);
    case KIND_NODES: /* the number of them, and right behind it they */
    case KIND_WEIGHTS:
        return sizeof(uint32_t) * (1 + MEMORYD_NODES_MAX);
    case KIND_SIZE_OR_PERCENT:
    case KIND_UID_BYTES:
        break;
    }
    return 0;
}

_Static_assert(offsetof(struct config_pool, nodes) == offsetof(struct config_pool, n_nodes) + sizeof(uint32_t) &&
                   offsetof(struct config_pool, weights) == offsetof(struct config_pool, n_weights) + sizeof(uint32_t),
               "lists lie right behind their length");

bool key_is_same(const struct key *key, const void *a, const void *b)
{
    const struct config *config_a = a, *config_b = b;
    struct config_size size_a, size_b;

    if (key->kind == KIND_UID_BYTES)
        return config_a->uid_limits[CONFIG_LIMIT_BYTES] == config_b->uid_limits[CONFIG_LIMIT_BYTES] &&
               config_a->uid_bytes_percent == config_b->uid_bytes_percent;
    if (key->kind != KIND_SIZE_OR_PERCENT)
        return !memcmp((const char *)a + key->offset, (const char *)b + key->offset, stored_size(key));
    memcpy(&size_a, (const char *)a + key->offset, sizeof(size_a));
    memcpy(&size_b, (const char *)b + key->offset, sizeof(size_b));
    return size_a.bytes == size_b.bytes && size_a.percent == size_b.percent;
}

void key_copy(const struct key *key, void *to, const void *from)
{
    size_t size = key->kind == KIND_SIZE_OR_PERCENT ? sizeof(struct config_size) : stored_size(key);

    assert(size);
    memcpy((char *)to + key->offset, (const char *)from + key->offset, size);
}
