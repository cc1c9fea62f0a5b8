/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker dies at every system call that it makes for a request, for every method of the protocol: before the call
 * and after it. Each time the client's call succeeds by itself, its effect is there once, the sums agree, and no
 * record, descriptor or byte is left.
 *
 * A row of the table that it prints counts only if the broker really died. KILL_MATRIX_STEP=n tries every n-th place,
 * KILL_MATRIX_ROW=name only that row.
 *
 * Brokers spend most of the time in dying, so two programs share the rows: KILL_MATRIX_ODD is 1 for the one of the odd.
 */
#include "tests/torture/scenarios.h"
#include "tests/torture/tracer.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* More than this many stops for one request are no request. */
#define STOPS_MAX 600
/* what /proc says of a buffer's descriptor; the ledger's is another */
#define BUFFER_FILE "/memfd:memoryd-"

static const struct {
    uint16_t method;
    const char *name;
} methods[] = {
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants) {METHOD_##NAME, #NAME},
    MEMORYD_METHODS(X)
#undef X
};
#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

/* ---- the client -------------------------------------------------------------------------------------------------- */

struct figures {
    struct memclient_broker_info status;
    uint64_t records;
    uint64_t used;
    unsigned fds; /* of the client */
};

static int add_used(const struct memclient_pool_info *pool, void *data)
{
    *(uint64_t *)data += pool->used;
    return 0;
}

static struct figures figures_of(struct actor *a)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    struct figures figures = {.status = MEMCLIENT_BROKER_INFO_INIT};

    CHECK_DONE(memclient_broker_check(a->ctx, &result));
    for (uint32_t i = 0; i < result.n_sentences; i++)
        fprintf(stderr, "check: %s\n", result.sentences[i]);
    CHECK(result.faults == 0);
    figures.records = result.records;
    CHECK_DONE(memclient_list_pools(a->ctx, add_used, &figures.used));
    CHECK_DONE(memclient_broker_ping(a->other));
    CHECK_DONE(memclient_broker_query(a->ctx, &figures.status));
    figures.fds = fd_count();
    return figures;
}

/* Each of the two contexts keeps a socket to the door, once it has needed one. */
#define DOOR_SOCKETS 2

static bool are_equal(const struct figures *now, const struct figures *then)
{
    const struct memclient_broker_info *a = &now->status, *b = &then->status;

    return now->records == then->records && now->used == then->used && now->fds >= then->fds &&
           now->fds <= then->fds + DOOR_SOCKETS && a->sessions == b->sessions && a->buffers == b->buffers &&
           a->buffers_detached == b->buffers_detached && a->bytes == b->bytes && a->names == b->names &&
           a->tokens == b->tokens && a->reservations == b->reservations;
}

static void must_be_as_before(struct actor *a, const struct figures *before)
{
    struct figures now;

    if (WAIT_UNTIL((now = figures_of(a), are_equal(&now, before))))
        return;
#define SHOW(member) \
    fprintf(stderr, #member ": %" PRIu64 ", before %" PRIu64 "\n", (uint64_t)now.member, (uint64_t)before->member)
    SHOW(records);
    SHOW(used);
    SHOW(fds);
    SHOW(status.sessions);
    SHOW(status.buffers);
    SHOW(status.buffers_detached);
    SHOW(status.bytes);
    SHOW(status.names);
    SHOW(status.tokens);
    SHOW(status.reservations);
#undef SHOW
    CHECK(!"something is left");
}

struct part {
    const char *socket;
    const struct scenario *scenario;
};

/* Prepares, tells, hears, acts, tells, hears, verifies; until the channel ends. */
static void play(int channel, void *context)
{
    const struct part *part = context;
    struct actor a = {.socket = part->socket};
    struct figures before;

    a.ctx = broker_connect_in_child(part->socket);
    a.other = broker_connect_in_child(part->socket);
    before = figures_of(&a);
    for (;;) {
        CHECK_DONE(memclient_broker_query(
            a.ctx, (a.before = (struct memclient_broker_info)MEMCLIENT_BROKER_INFO_INIT, &a.before)));
        part->scenario->prepare(&a);
        tell(channel);
        hear(channel);
        part->scenario->act(&a);
        tell(channel);
        hear(channel);
        part->scenario->verify(&a);
        must_be_as_before(&a, &before);
        tell(channel);
        hear(channel);
    }
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

static unsigned step(void)
{
    const char *text = getenv("KILL_MATRIX_STEP");

    return text && *text ? (unsigned)strtoul(text, NULL, 10) : 1;
}

struct kept {
    unsigned all;
    unsigned of_clients; /* processes and buffers */
};

static struct kept kept_by(pid_t pid)
{
    struct kept kept = {0};
    struct dirent *entry;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char target[64] = "";

        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) < 0)
            continue;
        kept.all++;
        kept.of_clients += strstr(target, "pidfd") || strncmp(target, BUFFER_FILE, strlen(BUFFER_FILE)) == 0;
    }
    closedir(dir);
    /* one process is no client: the cleaner of the broker that runs */
    kept.of_clients -= kept.of_clients > 0;
    return kept;
}

/* Of clients it has nothing but what is in stock, which is nobody's. */
static bool has_only_stock(struct broker_process *broker, struct kept *ret)
{
    struct memclient_context *ctx = broker_connect(broker);
    uint64_t stock = broker_stock(ctx);

    memclient_context_close(ctx);
    *ret = kept_by(broker->pid);
    return ret->of_clients == stock;
}

/* It has all that the broker began with: a client, who came later, it has as well. */
static void wait_for_keeper(struct broker_process *broker)
{
    struct memclient_context *ctx = broker_connect(broker);

    assert_true(WAIT_UNTIL(kept_by(broker->pid).of_clients > broker_stock(ctx)));
    memclient_context_close(ctx);
}

struct row {
    unsigned deaths;
    unsigned stops;
};

enum outcome {
    DIED,
    OVER,  /* the request was done before, and the broker has come to rest */
    AGAIN, /* it ended by itself before it got the request: of an upgrade that it was asked for earlier */
};

static enum outcome die_at(struct broker_process *broker, struct child *client, uint16_t method, unsigned n,
                           struct row *row)
{
    pid_t pid = broker_child(broker);
    enum outcome outcome = OVER;
    struct tracer tracer;
    int r;

    r = tracer_seize(&tracer, pid, method);
    if (r == -EPERM)
        test_skip("this user may not trace the broker");
    assert_true(r == 0 || (r == -ESRCH && method == METHOD_UPGRADE));
    child_tell(client);
    if (r == -ESRCH) {
        outcome = AGAIN;
    } else if (tracer_kill_at(&tracer, n, client->channel)) {
        outcome = DIED;
        row->deaths++;
        assert_true(WAIT_UNTIL(broker_child(broker) != pid));
    } else {
        assert_true(tracer.pid || method == METHOD_UPGRADE);
        /* the library has really asked for this */
        if (tracer.pid && !tracer.received)
            fail_msg("the broker received no such request, and the client %s",
                     wait_for_events(client->channel, POLLIN, 0) ? "has gone on" : "waits");
        if (!tracer.received)
            outcome = AGAIN;
        row->stops = tracer.calls;
        tracer_let_go(&tracer);
    }
    child_hear(client);
    return outcome;
}

static struct row play_all(struct broker_process *broker, const struct scenario *scenario)
{
    struct part part = {.socket = broker->socket, .scenario = scenario};
    enum outcome outcome = DIED;
    struct child client;
    struct row row = {0};
    struct kept kept;
    unsigned before;

    assert_true(WAIT_UNTIL(has_only_stock(broker, &kept)));
    before = kept.all - kept.of_clients;
    child_start(&client, play, &part);
    for (unsigned n = 1; outcome != OVER; n += outcome == DIED ? step() : 0) {
        assert_true(n < STOPS_MAX);
        child_hear(&client);
        outcome = die_at(broker, &client, scenario->method, n, &row);
        child_tell(&client);
        child_hear(&client);
        /* the last time it has cleaned up, and shall not begin anew */
        if (outcome != OVER)
            child_tell(&client);
    }
    child_kill(&client);
    /* nothing of the client is with the keeper any more; after an upgrade it has the former program as well */
    before += scenario->method == METHOD_UPGRADE;
    if (!WAIT_UNTIL(has_only_stock(broker, &kept) && kept.all - kept.of_clients == before))
        fail_msg("the keeper has %u descriptors, %u of them of clients or in stock; it had %u others", kept.all,
                 kept.of_clients, before);
    return row;
}

static const char *method_name(uint16_t method)
{
    for (size_t i = 0; i < N_METHODS; i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "?";
}

static void every_method_has_a_scenario(void **state)
{
    for (size_t i = 0; i < N_METHODS; i++) {
        bool found = false;

        for (size_t k = 0; k < n_scenarios; k++)
            found = found || scenarios[k].method == methods[i].method;
        if (!found)
            fail_msg("no scenario for %s", methods[i].name);
    }
}

static void each_request_is_done_once_wherever_the_broker_dies(void **state)
{
    struct broker_process *broker = broker_for_test("[topology]\nsimulate_nodes = 2\n");
    const char *only = getenv("KILL_MATRIX_ROW");

    wait_for_keeper(broker);
    print_message("%-34s %8s %8s\n", "the broker died for", "times", "of stops");
    for (size_t i = 0; i < n_scenarios; i++) {
        const struct scenario *s = &scenarios[i];
        char name[64];
        struct row row;

        snprintf(name, sizeof(name), "%s%s%s", method_name(s->method), s->name ? " " : "", s->name ? s->name : "");
        if (only ? strcmp(only, name) != 0 : i % 2 != KILL_MATRIX_ODD)
            continue;
        print_message("%-34s ", name);
        row = play_all(broker, s);
        print_message("%8u %8u\n", row.deaths, row.stops);
        assert_true(row.deaths > 0);
    }
    broker_finish(broker);
}

/* ---- while pages are being allocated ----------------------------------------------------------------------------- */

struct populate {
    const char *socket;
    uint64_t size;
};

static void make_a_large_one(int channel, void *context)
{
    const struct populate *populate = context;
    struct memclient_context *ctx = broker_connect_in_child(populate->socket);
    struct memclient_buffer *buf;
    void *p;

    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_alloc(ctx, populate->size, NULL, &buf));
    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_map(buf, NULL, &p));
    for (uint64_t at = 0; at < populate->size; at += page_size())
        CHECK(all_zero((char *)p + at, sizeof(uint64_t)));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

/* A buffer's file of the broker has a good part of its pages and not all: their size, else 0. */
static uint64_t partly_allocated(pid_t pid, uint64_t whole)
{
    for (int fd = 0; fd < 256; fd++) {
        char path[64], target[64] = "";
        struct stat st;

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
        if (readlink(path, target, sizeof(target) - 1) < 0 || strncmp(target, BUFFER_FILE, strlen(BUFFER_FILE)) != 0 ||
            stat(path, &st) < 0)
            continue;
        if ((uint64_t)st.st_blocks * 512 > whole / 8 && (uint64_t)st.st_blocks * 512 < whole)
            return (uint64_t)st.st_blocks * 512;
    }
    return 0;
}

static void a_broker_that_dies_while_it_allocates_pages_loses_nothing(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct populate populate = {.socket = broker->socket, .size = GIB};
    struct memclient_context *ctx = broker_connect(broker);
    struct child client;
    uint64_t there = 0;
    pid_t pid;

    while (populate.size > 16 * MIB && populate.size > (uint64_t)meminfo_kib("MemAvailable") * KIB / 4)
        populate.size /= 2;
    for (int i = 0; i < 3; i++) {
        child_start(&client, make_a_large_one, &populate);
        child_hear(&client);
        pid = broker_child(broker);
        child_tell(&client);
        if (!WAIT_UNTIL((there = partly_allocated(pid, populate.size)) > 0))
            fail_msg("it was never seen at work");
        assert_ok(kill(pid, SIGKILL));
        child_hear(&client);
        assert_int_not_equal(broker_child(broker), pid);
        assert_int_equal(broker_status(ctx).bytes, populate.size);
        assert_int_equal(broker_status(ctx).buffers, 1);
        child_tell(&client);
        child_finish(&client);
        print_message("died with %" PRIu64 " of %" PRIu64 " MiB allocated\n", there / MIB, populate.size / MIB);
        broker_wait_until_empty(broker);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_has_a_scenario),
        at_broker(each_request_is_done_once_wherever_the_broker_dies),
        at_broker(a_broker_that_dies_while_it_allocates_pages_loses_nothing),
    };

    return test_run(tests, NULL, NULL);
}
