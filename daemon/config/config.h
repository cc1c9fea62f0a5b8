/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memoryd.conf as a plain struct.
 *
 * Reading a configuration changes nothing and does not depend on the machine: whoever builds the pools finds out
 * whether a node or a page size exists. So `memoryd --check-config` gives the same answer everywhere, and a reload can
 * be refused as a whole while the old settings stay in force.
 *
 * Every mistake is reported, not only the first, each with file, line, key, what is wrong and what is allowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "proto/limits.h"

/* "no limit", and "not given" where a default is computed from the machine */
#define CONFIG_NONE UINT64_MAX
/* not given where "no limit" may be given */
#define CONFIG_UNSET (UINT64_MAX - 1)
/* as long as the kernel and useradd allow */
#define CONFIG_USER_NAME_MAX 32

/* Bytes, or a part of something that only the machine knows; neither if not given. */
struct config_size {
    uint64_t bytes;
    unsigned percent; /* used when it is not 0 */
};

/* Numbers as in memoryd.proto. */
enum config_pages { CONFIG_PAGES_BASE = 1, CONFIG_PAGES_THP, CONFIG_PAGES_HUGETLB };
enum config_placement {
    CONFIG_PLACEMENT_DEFAULT, /* bind with one node, local with several */
    CONFIG_PLACEMENT_BIND,
    CONFIG_PLACEMENT_PREFERRED,
    CONFIG_PLACEMENT_INTERLEAVE,
    CONFIG_PLACEMENT_SPLIT,
    CONFIG_PLACEMENT_LOCAL
};

enum config_charge { CONFIG_CHARGE_DEFAULT, CONFIG_CHARGE_BROKER, CONFIG_CHARGE_CLIENT };

struct config_pool {
    char name[MEMORYD_POOL_NAME_MAX + 1];
    unsigned line; /* of its section, for mistakes that show only on this machine */
    uint32_t n_nodes;
    uint32_t nodes[MEMORYD_NODES_MAX];
    enum config_pages pages;
    uint64_t page_size; /* of huge pages; 0 = the system's default */
    enum config_placement placement;
    uint64_t part_size; /* 0 = the granule */
    uint32_t n_weights;
    uint32_t weights[MEMORYD_NODES_MAX];
    bool lazy;
    enum config_charge charge; /* DEFAULT: that of [pools] */
    struct config_size capacity;
    struct config_size stock;               /* CONFIG_NONE bytes: that of [pools] */
    char allow[MEMORYD_POOL_ALLOW_MAX + 1]; /* config_allow_next() has its entries; "" = everybody */
};

/* An entry of `allow`. */
enum config_allow { CONFIG_ALLOW_USER, CONFIG_ALLOW_GROUP, CONFIG_ALLOW_CGROUP, CONFIG_ALLOW_UNIT };

/* The entry at *text, and moves on behind it: its name or number begins at *ret and has *ret_length bytes. False at the
 * end, or at what is none: then *text is not at the end. */
bool config_allow_next(const char **text, enum config_allow *kind, const char **ret, size_t *ret_length);

/* What a user or a session may have. X(NAME, key) */
#define CONFIG_LIMITS(X)            \
    X(BYTES, bytes)                 \
    X(BUFFERS, buffers)             \
    X(TOKENS, tokens)               \
    X(RESERVATIONS, reservations)   \
    X(ADDRESSES, addresses)         \
    X(SESSIONS, sessions)           \
    X(NAMES, names)                 \
    X(QUEUED_BYTES, queued_bytes)   \
    X(FDS_IN_FLIGHT, fds_in_flight) \
    X(METADATA, metadata)

enum config_limit {
#define X(NAME, key) CONFIG_LIMIT_##NAME,
    CONFIG_LIMITS(X)
#undef X
        CONFIG_LIMIT_N
};

/* [user NAME] or [group NAME]. Whether there is one of that name is found out later, as with nodes. */
struct config_user {
    char name[CONFIG_USER_NAME_MAX + 1]; /* or number */
    bool is_group;
    unsigned line;                   /* of its section */
    unsigned share;                  /* in percent; 0 = that of [limits] */
    uint64_t limits[CONFIG_LIMIT_N]; /* CONFIG_UNSET = those of [limits] */
};

#define CONFIG_LISTEN_MAX 128

enum config_half { CONFIG_HALF_AUTO, CONFIG_HALF_LOWER, CONFIG_HALF_UPPER };

struct config {
    char *path; /* NULL = defaults only */
    char *text; /* the contents of that file */
    size_t text_size;

    uint64_t simulate_nodes; /* 0 = the real ones */
    struct config_size capacity;
    bool base_pages;           /* for requests that name no pages; otherwise the size decides */
    enum config_charge charge; /* not of huge pages */
    struct config_size stock;  /* of each pool; 0 = none; CONFIG_NONE bytes: its pages decide */
    struct config_pool *pools;
    size_t n_pools;
    struct config_user *users; /* groups, too */
    size_t n_users;

    uint64_t arena_base;
    uint64_t arena_size;
    enum config_half arena_half;

    uint64_t connections;                    /* of everybody */
    struct config_size metadata;             /* of everybody; CONFIG_NONE bytes: computed */
    unsigned uid_share;                      /* in percent; 0 = by the kind of broker */
    uint64_t uid_limits[CONFIG_LIMIT_N];     /* CONFIG_NONE = no limit, or a computed one */
    unsigned uid_bytes_percent;              /* of all capacity; used when uid_limits[BYTES] is none */
    uint64_t session_limits[CONFIG_LIMIT_N]; /* [SESSIONS] is not used */

    uint64_t grace_ms;
    uint64_t handshake_ms;
    uint64_t stall_ms;
    bool serve_overflow_uid; /* users that cannot be told apart, as one user */

    uint64_t worker_threads; /* 0 = by the number of processors */
    uint64_t idle_exit_ms;   /* of a private broker */
    bool spin;               /* spin for a moment before sleeping, where it pays */

    char metrics[CONFIG_LISTEN_MAX]; /* where they are served, for config_address() in listen.h; "" = nowhere */
};

typedef void config_complain(void *userdata, const char *sentence);

enum {
    _CONFIG_E_SUCCESS,
    CONFIG_E_UNREADABLE, /* there is no such file, or it cannot be read */
    CONFIG_E_MISTAKES
};

/*
 * Reads `path` (NULL = all defaults). complain() gets each mistake as one line that begins with "PATH:LINE: ". 0 and a
 * configuration; or a positive outcome, after at least one complaint; or -ENOMEM.
 */
int config_load(struct config **ret, const char *path, config_complain *complain, void *userdata);
/* The same from a text that the file once had; NULL: from the file. */
int config_parse(struct config **ret, const char *path, const char *text, size_t size, config_complain *complain,
                 void *userdata);
struct config *config_free(struct config *config);

/* Calls differs() for each key with another value, like "[limits] uid_bytes" or "[pool fast] capacity", and for each
 * pool, user or group that only one of them has. `live`: a reload can put it in force, not only the start of a
 * broker. */
typedef void config_differs(void *userdata, const char *key, bool live);
void config_compare(const struct config *before, const struct config *now, config_differs *differs, void *userdata);
/* Sets all that only a start can change to its value in `in_force`. 0 or -ENOMEM. */
int config_keep_started(struct config *config, const struct config *in_force);

/* The index-th key and its section; false after the last one. */
bool config_key(size_t index, const char **section, const char **key);

DEFINE_CLEANUP(struct config *, config_free);
