/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a snapshot: what the broker says in its status and listings, and of the buffers only the first in the order
 * that is shown, which the broker chooses. A session's rate is made of two snapshots.
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "memctl/openers.h"
#include "memctl/output.h"
#include "memctl/rows.h"
#include "memctl/top.h"

#define INT(value) ((json_int_t)(value))

const char *top_sort_key(enum top_sort sort)
{
    static const char *const keys[TOP_SORTS] = {
        "bytes", "holds", "created_ms", "created_ms", "rate", "request_rate", "waiting",
    };

    return keys[sort];
}

const json_t *top_find(const struct top *top, const char *listing, const char *key, uint64_t number)
{
    size_t index;
    json_t *row;

    json_array_foreach(json_object_get(top->snapshot, listing), index, row)
        if ((uint64_t)top_number(row, key) == number)
            return row;
    return NULL;
}

json_t *top_pack_sums(const struct memclient_buffer_sums *sums)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "buffers", INT(sums->buffers), "bytes", INT(sums->bytes),
                     "huge_bytes", INT(sums->huge_bytes), "detached", INT(sums->detached), "detached_bytes",
                     INT(sums->detached_bytes), "holds", INT(sums->holds));
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

struct top_key {
    json_t *row;
    json_int_t number;
    size_t index; /* rows of the same number keep their order */
};

static int compare_keys(const void *a, const void *b)
{
    const struct top_key *one = a, *other = b;

    if (one->number != other->number)
        return one->number > other->number ? -1 : 1;
    return one->index < other->index ? -1 : one->index > other->index;
}

void top_sort_rows(json_t *rows, const char *key, bool smallest_first)
{
    size_t n = json_array_size(rows);
    struct top_key *keys = n ? calloc(n, sizeof(*keys)) : NULL;

    for (size_t i = 0; keys && i < n; i++) {
        json_t *row = json_array_get(rows, i);
        json_int_t number = top_number(row, key);

        keys[i] = (struct top_key){json_incref(row), smallest_first ? -number : number, i};
    }
    if (!keys)
        return;
    qsort(keys, n, sizeof(*keys), compare_keys);
    for (size_t i = 0; i < n; i++)
        (void)json_array_set_new(rows, i, keys[i].row);
    free(keys);
}

/* ---- listings ---------------------------------------------------------------------------------------------------- */

#define ADD_ROW(singular, type)                                    \
    static int add_##singular(const struct type *item, void *data) \
    {                                                              \
        return output_item(data, item);                            \
    }
ADD_ROW(pool, memclient_pool_info)
ADD_ROW(session, memclient_session_info)
ADD_ROW(buffer, memclient_buffer_info)

static int add_user(const struct memclient_limit_info *limit, void *data)
{
    struct output *output = data;
    const struct passwd *user;

    if (strcmp(limit->resource, "bytes") != 0 || *limit->pool)
        return 0;
    user = getpwuid(limit->uid);
    return output_row(
        output,
        json_pack("{s:I, s:o, s:I, s:o, s:o}", "uid", INT(limit->uid), "user", json_text(user ? user->pw_name : ""),
                  "bytes", INT(limit->used), "limit",
                  limit->limit == MEMCLIENT_NO_LIMIT ? json_null() : json_integer(INT(limit->limit)), "available",
                  limit->available == MEMCLIENT_NO_LIMIT ? json_null() : json_integer(INT(limit->available))));
}

static int collect_buffers(const struct top *top, struct memclient_context *ctx, struct output *output, json_t **ret)
{
    static const unsigned orders[TOP_SORTS] = {
        [TOP_BY_HOLDS] = MEMCLIENT_ORDER_HOLDS,
        [TOP_BY_OLDEST] = MEMCLIENT_ORDER_OLDEST,
        [TOP_BY_NEWEST] = MEMCLIENT_ORDER_NEWEST,
    };
    struct memclient_select_options options = MEMCLIENT_SELECT_OPTIONS_INIT;
    struct memclient_buffer_sums sums = MEMCLIENT_BUFFER_SUMS_INIT;
    int r;

    options.order = orders[top->sort];
    options.most = top->most > UINT32_MAX ? UINT32_MAX : (uint32_t)top->most;
    if (top->filter.uid >= 0) {
        options.flags = MEMCLIENT_SELECT_UID;
        options.uid = (uid_t)top->filter.uid;
    }
    options.pid = (pid_t)(top->filter.pid > 0 ? top->filter.pid : 0);
    options.session = top->filter.session;
    options.pool = *top->filter.pool ? top->filter.pool : NULL;
    r = memclient_select_buffers(ctx, &options, &sums, add_buffer, output);
    if (r)
        return r;
    *ret = top_pack_sums(&sums);
    return *ret ? 0 : -ENOMEM;
}

static json_t *collect_broker(struct memclient_context *ctx, int *r)
{
    struct memclient_broker_info info = MEMCLIENT_BROKER_INFO_INIT;

    *r = memclient_broker_query(ctx, &info);
    if (*r)
        return NULL;
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "version", info.version,
                     "broker_pid", INT(info.broker_pid), "keeper_pid", INT(info.keeper_pid), "uptime_ms",
                     INT(info.uptime_ms), "restarts", INT(info.restarts), "pools", INT(info.pools), "capacity",
                     INT(info.capacity), "used", INT(info.used), "buffers", INT(info.buffers), "detached",
                     INT(info.buffers_detached), "sessions", INT(info.sessions), "requests", INT(info.requests),
                     "refused", INT(info.refused));
}

/* ---- what follows from them -------------------------------------------------------------------------------------- */

static json_t *rate_of(const json_t *row, const json_t *before, const char *key, double seconds)
{
    return json_integer(INT((double)(top_number(row, key) - top_number(before, key)) / seconds));
}

/* Bytes and requests per second since the snapshot before, to each process; null if that did not have it, or what is
 * counted for its connection began anew, or nothing is counted: a connection has made a request, but an older broker
 * does not say so. */
static void add_rates(const struct top *top, json_t *sessions, uint64_t at_ms)
{
    uint64_t before_ms = (uint64_t)json_integer_value(json_object_get(top->snapshot, "at_ms"));
    double seconds = (double)(at_ms - before_ms) / 1000;
    size_t index;
    json_t *row;

    json_array_foreach(sessions, index, row) {
        const json_t *before = top_find(top, "processes", "id", (uint64_t)top_number(row, "id"));
        bool known = before && at_ms > before_ms;
        bool counts =
            known && top_number(row, "requests") > 0 && top_number(row, "requests") >= top_number(before, "requests");

        (void)json_object_set_new(row, "rate", known ? rate_of(row, before, "bytes", seconds) : json_null());
        (void)json_object_set_new(row, "request_rate",
                                  counts ? rate_of(row, before, "requests", seconds) : json_null());
    }
}

/* How many sessions, holds and waiting requests each user has. */
static void add_up_users(json_t *users, const json_t *sessions)
{
    size_t index, at;
    json_t *user, *session;

    json_array_foreach(users, index, user) {
        json_int_t n = 0, holds = 0, waiting = 0;

        json_array_foreach(sessions, at, session) {
            if (!json_equal(json_object_get(session, "uid"), json_object_get(user, "uid")))
                continue;
            n++;
            holds += top_number(session, "holds");
            waiting += top_number(session, "waiting");
        }
        (void)json_object_set_new(user, "processes", json_integer(n));
        (void)json_object_set_new(user, "holds", json_integer(holds));
        (void)json_object_set_new(user, "waiting", json_integer(waiting));
    }
}

int top_collect(struct top *top, struct memclient_context *ctx)
{
    struct output pools, sessions, users, buffers;
    json_t *sums = NULL, *broker, *snapshot = NULL;
    uint64_t at_ms;
    int r;

    output_init(&pools, true, pool_columns);
    output_init(&sessions, true, session_columns);
    output_init(&users, true, NULL);
    output_init(&buffers, true, buffer_columns);
    broker = collect_broker(ctx, &r);
    if (!r)
        r = memclient_list_pools(ctx, add_pool, &pools);
    if (!r)
        r = memclient_list_sessions(ctx, add_session, &sessions);
    if (!r)
        r = memclient_list_limits(ctx, add_user, &users);
    if (!r)
        r = collect_buffers(top, ctx, &buffers, &sums);
    if (!r) {
        at_ms = clock_wall_ms();
        add_rates(top, sessions.rows, at_ms);
        add_up_users(users.rows, sessions.rows);
        snapshot =
            json_pack("{s:I, s:O?, s:O?, s:O, s:O, s:O, s:O}", "at_ms", INT(at_ms), "broker", broker, "sums", sums,
                      "pools", pools.rows, "users", users.rows, "processes", sessions.rows, "buffers", buffers.rows);
        r = snapshot ? 0 : -ENOMEM;
    }
    json_decref(broker);
    json_decref(sums);
    json_decref(pools.rows);
    json_decref(sessions.rows);
    json_decref(users.rows);
    json_decref(buffers.rows);
    if (r)
        return r;
    json_decref(top->snapshot);
    top->snapshot = snapshot;
    return 0;
}

int top_find_openers(struct top *top)
{
    const json_t *row = top_find(top, "buffers", "id", top->detail);
    const json_t *broker = json_object_get(top->snapshot, "broker");
    json_t *rows;
    int r;

    json_decref(top->open_in);
    top->open_in = NULL;
    /* of a recorded buffer the processes are those of another time or machine */
    if (!row || top->recorded)
        return 0;
    rows = json_pack("[{s:O}]", "inode", json_object_get(row, "inode"));
    if (!rows)
        return -ENOMEM;
    r = openers_add(rows, "open_in", (pid_t)top_number(broker, "broker_pid"), (pid_t)top_number(broker, "keeper_pid"));
    if (!r)
        top->open_in = json_incref(json_object_get(json_array_get(rows, 0), "open_in"));
    json_decref(rows);
    return r;
}
