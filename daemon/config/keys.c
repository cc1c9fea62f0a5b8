/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of keys, and how each kind of value is read and described. The bounds only refuse what must be a typing
 * error; what fits this machine is found out later.
 */

#include "config/keys.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "config/listen.h"
#include "config/value.h"

#define MAX_BYTES   (UINT64_C(1) << 56)
#define MAX_COUNT   (UINT64_C(1) << 32)
#define MAX_TIME_MS (UINT64_C(7) * 24 * 3600 * 1000)

#define LIMIT_KEY(scope, which, name, kind, min, max)                                                                  \
    {                                                                                                                  \
        "limits", #scope "_" name, kind, offsetof(struct config, scope##_limits[CONFIG_LIMIT_##which]), min, max, LIVE \
    }

#define USER_KEY(which, name, kind, min, max)                                                          \
    {                                                                                                  \
        "user", name, kind, offsetof(struct config_user, limits[CONFIG_LIMIT_##which]), min, max, LIVE \
    }

/* A reload puts it in force. */
#define LIVE true

const struct key config_keys[] = {
    {"topology", "simulate_nodes", KIND_NUMBER, offsetof(struct config, simulate_nodes), 0, MEMORYD_NODES_MAX},
    {"pools", "capacity", KIND_SIZE_OR_PERCENT, offsetof(struct config, capacity), 1 << 20, MAX_BYTES},
    {"pools", "pages", KIND_DEFAULT_PAGES, offsetof(struct config, base_pages), 0, 0, LIVE},
    {"pools", "charge", KIND_CHARGE, offsetof(struct config, charge), 0, 0},
    {"pools", "stock", KIND_SIZE_OR_PERCENT, offsetof(struct config, stock), 0, MAX_BYTES},

    {"pool", "nodes", KIND_NODES, offsetof(struct config_pool, n_nodes), 0, MEMORYD_NODES_MAX - 1},
    {"pool", "placement", KIND_PLACEMENT, offsetof(struct config_pool, placement), 0, 0},
    {"pool", "part_size", KIND_SIZE, offsetof(struct config_pool, part_size), 4096, 1 * TIB},
    {"pool", "weights", KIND_WEIGHTS, offsetof(struct config_pool, n_weights), 1, 1000000},
    {"pool", "page_size", KIND_SIZE, offsetof(struct config_pool, page_size), 4096, 16 * GIB},
    {"pool", "pages", KIND_PAGES, offsetof(struct config_pool, pages), 0, 0},
    {"pool", "commit", KIND_COMMIT, offsetof(struct config_pool, lazy), 0, 0},
    {"pool", "charge", KIND_CHARGE, offsetof(struct config_pool, charge), 0, 0},
    {"pool", "capacity", KIND_SIZE_OR_PERCENT, offsetof(struct config_pool, capacity), 4096, MAX_BYTES},
    {"pool", "stock", KIND_SIZE_OR_PERCENT, offsetof(struct config_pool, stock), 0, MAX_BYTES},
    {"pool", "allow", KIND_ALLOW, offsetof(struct config_pool, allow), 0, 0, LIVE},

    {"arena", "base", KIND_NUMBER, offsetof(struct config, arena_base), 1 << 16, CONFIG_ADDRESS_TOP - 1},
    {"arena", "size", KIND_SIZE, offsetof(struct config, arena_size), 1 * GIB, CONFIG_ADDRESS_TOP / 2},
    {"arena", "half", KIND_HALF, offsetof(struct config, arena_half), 0, 0},

    {"limits", "uid_share", KIND_PERCENT, offsetof(struct config, uid_share), 1, 100, LIVE},
    {"limits", "metadata", KIND_SIZE_OR_PERCENT, offsetof(struct config, metadata), 1 << 20, MAX_BYTES, LIVE},
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
    LIMIT_KEY(uid, METADATA, "metadata", KIND_SIZE_LIMIT, 1 << 16, MAX_BYTES),
    LIMIT_KEY(session, BYTES, "bytes", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    LIMIT_KEY(session, BUFFERS, "buffers", KIND_LIMIT, 1, MAX_COUNT),
    LIMIT_KEY(session, TOKENS, "tokens", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(session, RESERVATIONS, "reservations", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(session, ADDRESSES, "addresses", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    LIMIT_KEY(session, NAMES, "names", KIND_LIMIT, 0, MAX_COUNT),
    LIMIT_KEY(session, QUEUED_BYTES, "queued_bytes", KIND_SIZE_LIMIT, 1 << 17, MAX_BYTES),
    LIMIT_KEY(session, FDS_IN_FLIGHT, "fds_in_flight", KIND_LIMIT, MEMORYD_FDS_MAX, MAX_COUNT),

    LIMIT_KEY(session, METADATA, "metadata", KIND_SIZE_LIMIT, 1 << 16, MAX_BYTES),

    {"user", "share", KIND_PERCENT, offsetof(struct config_user, share), 1, 100, LIVE},
    USER_KEY(BYTES, "bytes", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    USER_KEY(BUFFERS, "buffers", KIND_LIMIT, 1, MAX_COUNT),
    USER_KEY(TOKENS, "tokens", KIND_LIMIT, 0, MAX_COUNT),
    USER_KEY(RESERVATIONS, "reservations", KIND_LIMIT, 0, MAX_COUNT),
    USER_KEY(ADDRESSES, "addresses", KIND_SIZE_LIMIT, 4096, MAX_BYTES),
    USER_KEY(SESSIONS, "sessions", KIND_LIMIT, 1, MAX_COUNT),
    USER_KEY(NAMES, "names", KIND_LIMIT, 0, MAX_COUNT),
    USER_KEY(METADATA, "metadata", KIND_SIZE_LIMIT, 1 << 16, MAX_BYTES),

    {"session", "grace", KIND_TIME, offsetof(struct config, grace_ms), 0, MAX_TIME_MS, LIVE},
    {"session", "handshake_timeout", KIND_TIME, offsetof(struct config, handshake_ms), 100, MAX_TIME_MS, LIVE},
    {"session", "overflow_uid", KIND_SERVE, offsetof(struct config, serve_overflow_uid), 0, 0, LIVE},
    {"session", "stall_timeout", KIND_TIME, offsetof(struct config, stall_ms), 100, MAX_TIME_MS, LIVE},

    {"broker", "worker_threads", KIND_NUMBER, offsetof(struct config, worker_threads), 0, 64},
    {"broker", "idle_exit", KIND_TIME, offsetof(struct config, idle_exit_ms), 0, MAX_TIME_MS, LIVE},
    {"broker", "spin", KIND_SPIN, offsetof(struct config, spin), 0, 0, LIVE},

    {"metrics", "listen", KIND_LISTEN, offsetof(struct config, metrics), 0, 0},
};
const size_t config_n_keys = sizeof(config_keys) / sizeof(*config_keys);

_Static_assert(sizeof(config_keys) / sizeof(*config_keys) <= CONFIG_KEYS_MAX, "raise CONFIG_KEYS_MAX");

/* ---- what each kind takes ---------------------------------------------------------------------------------------- */

static void describe_number(uint64_t v, char *text, size_t size)
{
    (void)snprintf(text, size, "%llu", (unsigned long long)v);
}

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

static void describe_time(uint64_t ms, char *text, size_t size)
{
    const uint64_t hour = 3600 * 1000;
    bool hours = ms && ms % hour == 0;

    (void)snprintf(text, size, "%llu%s", (unsigned long long)(hours ? ms / hour : ms), hours ? "h" : "ms");
}

static void describe_percent(uint64_t v, char *text, size_t size)
{
    (void)snprintf(text, size, "%llu%%", (unsigned long long)v);
}

static bool read_percent(const char *value, uint64_t *ret)
{
    unsigned percent;

    if (!value_percent(value, &percent))
        return false;
    *ret = percent;
    return true;
}

static const char *const half_words[] = {"auto", "lower", "upper", NULL};
static const char *const placement_words[] = {"bind", "preferred", "interleave", "split", "local", NULL};
static const char *const pages_words[] = {"base", "thp", "hugetlb", NULL};
static const char *const commit_words[] = {"eager", "lazy", NULL};
static const char *const charge_words[] = {"broker", "client", NULL};
static const char *const spin_words[] = {"off", "auto", NULL};
static const char *const serve_words[] = {"refuse", "serve", NULL};
static const char *const default_pages_words[] = {"auto", "base", NULL};

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

static const struct form {
    size_t size; /* of what is stored, if that has no holes; else 0 */
    const char *what;
    /* a number between the key's bounds */
    bool (*read)(const char *value, uint64_t *ret);
    void (*describe)(uint64_t bound, char *text, size_t size);
    const char *examples;
    bool or_percent;
    bool or_none;
    /* or a word, which stands for a number */
    const char *const *words;
    unsigned first; /* the number of the first one */
} forms[] = {
    [KIND_NUMBER] = {sizeof(uint64_t), "a number", value_number, describe_number, ""},
    [KIND_SIZE] = {sizeof(uint64_t), "a size", value_size, describe_size, ", like 64K, 8M, 2G or 1T"},
    [KIND_TIME] = {sizeof(uint64_t), "a time", value_time, describe_time, " with its unit: ms, s, min or h"},
    [KIND_LIMIT] = {sizeof(uint64_t), "a number", value_number, describe_number, "", .or_none = true},
    [KIND_SIZE_LIMIT] = {sizeof(uint64_t), "a size", value_size, describe_size, ", like 64K, 8M, 2G or 1T",
                         .or_none = true},
    [KIND_SIZE_OR_PERCENT] = {0, "a size", value_size, describe_size, ", like 8M or 2G", .or_percent = true},
    [KIND_PERCENT] = {sizeof(unsigned), "a part", read_percent, describe_percent, ""},
    [KIND_UID_BYTES] = {0, "a size", value_size, describe_size, ", like 8M or 2G", .or_percent = true, .or_none = true},
    /* lists: the number of elements, and right after it the elements */
    [KIND_NODES] = {sizeof(uint32_t) * (1 + MEMORYD_NODES_MAX),
                    "up to " TEXT(MEMORYD_NODES_MAX) " different node numbers below " TEXT(
                        MEMORYD_NODES_MAX) ", like 0,2 or 0-3"},
    [KIND_WEIGHTS] = {sizeof(uint32_t) * (1 + MEMORYD_NODES_MAX),
                      "one number from 1 to 1000000 for each node, like 3,1"},
    [KIND_ALLOW] = {sizeof(((struct config_pool *)0)->allow),
                    "a list of user:NAME, group:NAME, cgroup:/PATH, unit:NAME.service or unit:NAME.scope"},
    [KIND_LISTEN] = {sizeof(((struct config *)0)->metrics),
                     "off, 127.0.0.1:PORT, [::1]:PORT or the absolute path of a socket"},
    [KIND_HALF] = {sizeof(enum config_half), .words = half_words, .first = CONFIG_HALF_AUTO},
    [KIND_PLACEMENT] = {sizeof(enum config_placement), .words = placement_words, .first = CONFIG_PLACEMENT_BIND},
    [KIND_PAGES] = {sizeof(enum config_pages), .words = pages_words, .first = CONFIG_PAGES_BASE},
    [KIND_COMMIT] = {sizeof(bool), .words = commit_words},
    [KIND_CHARGE] = {sizeof(enum config_charge), .words = charge_words, .first = CONFIG_CHARGE_BROKER},
    [KIND_SPIN] = {sizeof(bool), .words = spin_words},
    [KIND_SERVE] = {sizeof(bool), .words = serve_words},
    [KIND_DEFAULT_PAGES] = {sizeof(bool), .words = default_pages_words},
};

/* "base, thp or hugetlb" */
static const char *takes_words(const char *const *words, char *text, size_t size)
{
    size_t n = 0;

    for (unsigned i = 0; words[i] && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
    return text;
}

const char *key_takes(const struct key *key, char *text, size_t size)
{
    const struct form *form = &forms[key->kind];
    char min[32];
    char max[32];

    if (form->words)
        return takes_words(form->words, text, size);
    if (!form->describe) {
        (void)snprintf(text, size, "%s", form->what);
        return text;
    }
    form->describe(key->min, min, sizeof(min));
    form->describe(key->max, max, sizeof(max));
    (void)snprintf(text, size, "%s from %s to %s%s%s%s", form->what, min, max, form->examples,
                   form->or_percent ? ", or 1% to 100%" : "", form->or_none ? ", or none" : "");
    return text;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool in_range(const struct key *key, uint64_t v)
{
    return v >= key->min && v <= key->max;
}

static bool store_word(const struct form *form, char *member, const char *value)
{
    unsigned n = form->first;

    for (const char *const *word = form->words; *word; word++, n++)
        if (!strcmp(value, *word)) {
            bool flag = n;

            memcpy(member, form->size == sizeof(flag) ? (const void *)&flag : (const void *)&n, form->size);
            return true;
        }
    return false;
}

static bool store_list(const struct key *key, char *member, const char *value)
{
    uint32_t elements[MEMORYD_NODES_MAX];
    uint32_t n;

    if (!value_list(value, elements, &n, MEMORYD_NODES_MAX, (uint32_t)key->max))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!in_range(key, elements[i]))
            return false;
        for (uint32_t j = 0; key->kind == KIND_NODES && j < i; j++)
            if (elements[i] == elements[j])
                return false;
    }
    memcpy(member, &n, sizeof(n));
    memcpy(member + sizeof(n), elements, n * sizeof(*elements));
    return true;
}

static bool store_allow(char *member, size_t size, const char *value)
{
    const char *at = value, *name;
    enum config_allow kind;
    size_t length;

    while (config_allow_next(&at, &kind, &name, &length))
        ;
    if (*at || !*value || strlen(value) >= size)
        return false;
    /* all of it, since it is compared as bytes */
    memset(member, 0, size);
    memcpy(member, value, strlen(value));
    return true;
}

static bool store_listen(char *member, size_t size, const char *value)
{
    union config_address address;
    size_t address_size;
    bool off = !strcmp(value, "off");

    if (!off && (strlen(value) >= size || !config_address(value, &address, &address_size)))
        return false;
    /* all of it, since it is compared as bytes */
    memset(member, 0, size);
    if (!off)
        memcpy(member, value, strlen(value));
    return true;
}

/* A number, a percentage or none; `config` is for the one key with two members. */
static bool store_number(const struct key *key, struct config *config, char *member, const char *value)
{
    const struct form *form = &forms[key->kind];
    struct config_size size = {0};

    if (form->or_none && !strcmp(value, "none"))
        size.bytes = CONFIG_NONE;
    else if (!(form->or_percent && value_percent(value, &size.percent)) &&
             !(form->read(value, &size.bytes) && in_range(key, size.bytes)))
        return false;
    if (key->kind == KIND_UID_BYTES) {
        config->uid_limits[CONFIG_LIMIT_BYTES] = size.percent ? CONFIG_NONE : size.bytes;
        config->uid_bytes_percent = size.percent;
    } else if (form->or_percent) {
        memcpy(member, &size, sizeof(size));
    } else if (key->kind == KIND_PERCENT) {
        unsigned percent = (unsigned)size.bytes;

        memcpy(member, &percent, sizeof(percent));
    } else {
        memcpy(member, &size.bytes, sizeof(size.bytes));
    }
    return true;
}

bool key_store(const struct key *key, struct config *config, void *named, const char *value)
{
    const struct form *form = &forms[key->kind];
    char *member = (named ? (char *)named : (char *)config) + key->offset;

    if (form->words)
        return store_word(form, member, value);
    if (key->kind == KIND_ALLOW)
        return store_allow(member, form->size, value);
    if (key->kind == KIND_LISTEN)
        return store_listen(member, form->size, value);
    return form->read ? store_number(key, config, member, value) : store_list(key, member, value);
}

/* ---- comparing and copying --------------------------------------------------------------------------------------- */

_Static_assert(offsetof(struct config_pool, nodes) == offsetof(struct config_pool, n_nodes) + sizeof(uint32_t) &&
                   offsetof(struct config_pool, weights) == offsetof(struct config_pool, n_weights) + sizeof(uint32_t),
               "lists follow their length");

bool key_is_same(const struct key *key, const void *a, const void *b)
{
    const struct config *config_a = a, *config_b = b;
    struct config_size size_a, size_b;

    if (key->kind == KIND_UID_BYTES)
        return config_a->uid_limits[CONFIG_LIMIT_BYTES] == config_b->uid_limits[CONFIG_LIMIT_BYTES] &&
               config_a->uid_bytes_percent == config_b->uid_bytes_percent;
    if (key->kind != KIND_SIZE_OR_PERCENT)
        return !memcmp((const char *)a + key->offset, (const char *)b + key->offset, forms[key->kind].size);
    memcpy(&size_a, (const char *)a + key->offset, sizeof(size_a));
    memcpy(&size_b, (const char *)b + key->offset, sizeof(size_b));
    return size_a.bytes == size_b.bytes && size_a.percent == size_b.percent;
}

void key_copy(const struct key *key, void *to, const void *from)
{
    size_t size = key->kind == KIND_SIZE_OR_PERCENT ? sizeof(struct config_size) : forms[key->kind].size;

    assert(size);
    memcpy((char *)to + key->offset, (const char *)from + key->offset, size);
}
