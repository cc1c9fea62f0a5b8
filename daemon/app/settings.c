/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the configuration and this machine to what each part is given. Numbers that the configuration leaves open
 * are computed here, so that they are in one place.
 */

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/app.h"
#include "base/processors.h"
#include "sys/peer.h"

/* Descriptors of the broker itself: loop, log, workers' work in progress, what is being sent. */
#define NOFILE_RESERVE 256
/* With fewer the broker is of little use. */
#define NOFILE_LOW 4096
/* The last ones are not for buffers: with them clients are told that there are no more, and administrators get in. */
#define NOFILE_NOT_FOR_BUFFERS 64
#define NOFILE_LAST            32
/* Connections beyond the limits, likewise. */
#define CONNECTIONS_CROWDED        16
#define CONNECTIONS_ADMINISTRATORS 16
/* More are never used, so that tables by descriptor stay small. */
#define NOFILE_MAX (4u << 20)
/* Connections of one user that no door takes. */
#define UNENDED_UID_MIN 256
#define UNENDED_UID_MAX 1024

uint64_t settings_raise_nofile(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    limit.rlim_cur = limit.rlim_max < NOFILE_MAX ? limit.rlim_max : NOFILE_MAX;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    return limit.rlim_cur;
}

/*
 * How many descriptors one user's buffers may take. Others can still connect then, and all of them can be in flight at
 * once, from a keeper to the next one, beside those that clients have not received yet: the kernel counts both against
 * the same limit. See settings_net() for the quarter.
 */
static uint64_t buffers_by_nofile(uint64_t nofile)
{
    uint64_t kept = nofile / 4 + NOFILE_RESERVE;

    return nofile > 2 * kept ? nofile - kept : nofile / 2;
}

void settings_accounts(struct app *app, struct account_limits *ret_before)
{
    const struct config *config = app->config;
    struct account_limits *ret = &app->limits;
    uint64_t buffers = buffers_by_nofile(app->nofile);
    uint64_t wanted = config->uid_limits[CONFIG_LIMIT_BUFFERS];

    *ret_before = *ret;
    *ret = (struct account_limits){.n_policies = 0};
    _Static_assert((unsigned)CONFIG_LIMIT_N == (unsigned)ACCOUNT_SLOTS, "[limits] and accounts have the same slots");
#define X(NAME, key)                                                     \
    ret->user[ACCOUNT_##NAME] = config->uid_limits[CONFIG_LIMIT_##NAME]; \
    ret->session[ACCOUNT_##NAME] = config->session_limits[CONFIG_LIMIT_##NAME];
    CONFIG_LIMITS(X)
#undef X
    if (config->uid_bytes_percent && app->pools) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < app->topology.n_nodes; i++) {
            const struct budget *budget = pools_node_budget(app->pools, app->topology.nodes[i].number);

            sum += budget ? budget->capacity : 0;
        }
        ret->user[ACCOUNT_BYTES] = sum / 100 * config->uid_bytes_percent;
    }
    users_set_limits(app, buffers, ret);
    ret->by_descriptors = wanted == CONFIG_NONE;
    if (wanted == CONFIG_NONE)
        ret->user[ACCOUNT_BUFFERS] = buffers;
    if (wanted != CONFIG_NONE && wanted > buffers)
        log_warning(
            "[limits] uid_buffers is %llu, but a buffer takes a descriptor and the limit of open files, %llu, has "
            "room for about %llu; raise it (LimitNOFILE= of the service, ulimit -Hn)",
            (unsigned long long)wanted, (unsigned long long)app->nofile, (unsigned long long)buffers);
    else if (app->nofile < NOFILE_LOW)
        log_warning(
            "the limit of open files is %llu, which has room for about %llu buffers; raise it (LimitNOFILE= of the "
            "service, ulimit -Hn)",
            (unsigned long long)app->nofile, (unsigned long long)buffers);
}

static unsigned at_most(uint64_t v, uint64_t most)
{
    v = v < most ? v : most;
    return v > UINT32_MAX ? UINT32_MAX : (unsigned)v;
}

unsigned settings_buffer_fds(const struct app *app)
{
    return at_most(app->nofile > 2 * NOFILE_RESERVE ? app->nofile - NOFILE_NOT_FOR_BUFFERS : app->nofile, UINT32_MAX);
}

unsigned settings_connections(const struct app *app, uint64_t sessions)
{
    /* a few more than sessions, so that HELLO tells a client that it is one too many */
    return at_most(sessions > UINT32_MAX ? UINT32_MAX : sessions + CONNECTIONS_CROWDED, app->nofile / 2);
}

void settings_net(const struct app *app, struct net_limits *ret)
{
    const struct config *config = app->config;
    const uint64_t *uid = config->uid_limits;
    const uint64_t *session = config->session_limits;
    /* I7: at most a quarter of what we may have open is in flight to clients, half of that for one user */
    uint64_t in_flight = app->nofile / 4 > MEMORYD_FDS_MAX ? app->nofile / 4 : MEMORYD_FDS_MAX;
    unsigned unended =
        at_most(app->nofile / 32 > UNENDED_UID_MIN ? app->nofile / 32 : UNENDED_UID_MIN, UNENDED_UID_MAX);

    *ret = (struct net_limits){
        .connections = at_most(config->connections, app->nofile / 2),
        .connections_uid = settings_connections(app, uid[CONFIG_LIMIT_SESSIONS]),
        .crowded = CONNECTIONS_CROWDED,
        .administrators = CONNECTIONS_ADMINISTRATORS,
        .administrator = geteuid(),
        .queued_bytes = (size_t)session[CONFIG_LIMIT_QUEUED_BYTES],
        .queued_bytes_uid = (size_t)uid[CONFIG_LIMIT_QUEUED_BYTES],
        .fds_in_flight = at_most(session[CONFIG_LIMIT_FDS_IN_FLIGHT], in_flight),
        .fds_in_flight_uid = at_most(uid[CONFIG_LIMIT_FDS_IN_FLIGHT], in_flight / 2),
        .fds_in_flight_all = at_most(in_flight, UINT32_MAX),
        .unended_uid = unended,
        .unended_all = at_most(app->nofile / 8 > 2 * unended ? app->nofile / 8 : 2 * unended, UINT32_MAX),
        .descriptors = at_most(app->nofile, UINT32_MAX),
        .last_descriptors = app->nofile > 2 * NOFILE_RESERVE ? NOFILE_LAST : 0,
        .handshake_ms = config->handshake_ms,
        .stall_ms = config->stall_ms,
    };
}

bool settings_refuse_overflow_uid(const struct app *app)
{
    return !app->config->serve_overflow_uid && !(app->private && peer_is_overflow_uid(geteuid()));
}

static struct pool_capacity capacity_of(const struct config_size *size)
{
    return (struct pool_capacity){.bytes = size->bytes, .percent = size->percent};
}

/* Memory in stock is missing elsewhere, unless it was reserved for huge pages anyway. */
static struct pool_capacity stock_of(const struct config_size *size, bool huge)
{
    if (size->bytes == CONFIG_NONE)
        return (struct pool_capacity){.percent = huge ? 50 : 5};
    return capacity_of(size);
}

static enum committer committer_of(const struct config *config, const struct config_pool *pool)
{
    enum config_charge charge = pool->charge == CONFIG_CHARGE_DEFAULT ? config->charge : pool->charge;

    if (pool->lazy)
        return COMMITTER_NONE;
    return charge == CONFIG_CHARGE_CLIENT && pool->pages != CONFIG_PAGES_HUGETLB ? COMMITTER_CLIENT : COMMITTER_BROKER;
}

int settings_pools(const struct config *config, struct pools_config *ret, struct pool_config **ret_pools)
{
    struct pool_config *pools = calloc(config->n_pools ? config->n_pools : 1, sizeof(*pools));

    if (!pools)
        return -ENOMEM;
    for (size_t i = 0; i < config->n_pools; i++) {
        const struct config_pool *from = &config->pools[i];
        struct pool_config *to = &pools[i];

        _Static_assert(sizeof(to->name) == sizeof(from->name), "names are equally long");
        memcpy(to->name, from->name, sizeof(to->name));
        to->capacity = capacity_of(&from->capacity);
        to->stock = stock_of(from->stock.bytes == CONFIG_NONE ? &config->stock : &from->stock,
                             from->pages == CONFIG_PAGES_HUGETLB);
        to->n_nodes = from->n_nodes;
        memcpy(to->nodes, from->nodes, sizeof(to->nodes));
        to->pages = (enum pages)from->pages;
        to->page_size = from->page_size;
        to->placement = (enum placement)from->placement;
        to->part_size = from->part_size;
        to->n_weights = from->n_weights;
        memcpy(to->weights, from->weights, sizeof(to->weights));
        to->committer = committer_of(config, from);
        settings_pool_allow(from, &to->allow);
    }
    *ret = (struct pools_config){
        .base_pages = config->base_pages,
        .capacity = capacity_of(&config->capacity),
        .committer = config->charge == CONFIG_CHARGE_CLIENT ? COMMITTER_CLIENT : COMMITTER_BROKER,
        .stock = stock_of(&config->stock, false),
        .huge_stock = stock_of(&config->stock, true),
        .pools = pools,
        .n_pools = config->n_pools,
    };
    *ret_pools = pools;
    return 0;
}

/* Two brokers on one machine must not give out the same addresses: each has one half. */
void settings_arena(const struct app *app, uint64_t *base, uint64_t *size)
{
    const struct config *config = app->config;
    bool upper = config->arena_half == CONFIG_HALF_UPPER || (config->arena_half == CONFIG_HALF_AUTO && app->private);

    *size = config->arena_size / 2;
    *base = config->arena_base + (upper ? *size : 0);
}

unsigned settings_threads(const struct config *config)
{
    unsigned processors = processors_usable();

    if (config->worker_threads)
        return (unsigned)config->worker_threads;
    return processors < 2 ? 1 : processors > 8 ? 4 : processors / 2;
}

/* As many as there are workers, but one processor is left to the loop. */
unsigned settings_commit_threads(const struct config *config)
{
    unsigned threads = settings_threads(config), processors = processors_usable();

    return threads < processors ? threads : processors < 2 ? 1 : processors - 1;
}

char *settings_config_path(const struct app_options *options, bool private)
{
    const char *home = secure_getenv("XDG_CONFIG_HOME");
    char *path = NULL;
    int r;

    if (!private)
        r = asprintf(&path, "%s/memoryd/memoryd.conf", options->sysconfdir);
    else if (home && *home == '/')
        r = asprintf(&path, "%s/memoryd/memoryd.conf", home);
    else if ((home = secure_getenv("HOME")) && *home == '/')
        r = asprintf(&path, "%s/.config/memoryd/memoryd.conf", home);
    else
        return NULL;
    if (r < 0)
        return NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        free(path);
        return NULL;
    }
    return path;
}
