/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one broker's thread serves: eight processes that do nothing but call it, against as many that call a bare echo
 * of the same packets. With a depth of 1 each waits for its answer, through the library; with a depth of 8 each has
 * eight requests on their way, as a program with threads has, and the packets are sent without the library, so that it
 * is the broker that is measured.
 */
#include <memclient/memclient.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"
#include "tests/bench/stream.h"

enum { CLIENTS = 8, CALLS = 500, DEPTH = 8 };

enum { DEPTH_1, DEPTH_8, ROWS };

struct crew {
    struct peer members[CLIENTS];
    int lines[CLIENTS];         /* to the echo */
    pid_t workers[CLIENTS + 3]; /* the members, and whom they call */
    unsigned depth;
    unsigned next;
};

static void call_library(int line, void *context)
{
    struct memclient_context *ctx;

    (void)context;
    bench_did(memclient_context_open(NULL, &ctx));
    for (; line_hear(line); line_tell(line))
        for (int i = 0; i < CALLS; i++)
            bench_did(memclient_broker_ping(ctx));
    memclient_context_close(ctx);
}

static void call_broker(int line, void *context)
{
    const struct crew *crew = context;
    int broker = stream_connect();

    for (; line_hear(line); line_tell(line))
        stream_run(broker, crew->depth, CALLS);
}

static void call_echo(int line, void *context)
{
    const struct crew *crew = context;

    for (; line_hear(line); line_tell(line))
        stream_run(crew->lines[crew->next], crew->depth, CALLS);
}

static void engage(struct crew *crew, void (*body)(int line, void *context))
{
    for (crew->next = 0; crew->next < CLIENTS; crew->next++)
        peer_start(&crew->members[crew->next], body, crew);
    for (int i = 0; i < CLIENTS; i++)
        crew->workers[i] = crew->members[i].pid;
}

static void work(struct crew *crew)
{
    for (int i = 0; i < CLIENTS; i++)
        line_tell(crew->members[i].line);
    for (int i = 0; i < CLIENTS; i++)
        bench_must(line_hear(crew->members[i].line), "a client");
}

struct contest {
    struct crew ours, other;
};

static void work_ours(void *context)
{
    work(&((struct contest *)context)->ours);
}

static void work_other(void *context)
{
    work(&((struct contest *)context)->other);
}

static void dismiss(struct crew *crew)
{
    for (int i = 0; i < CLIENTS; i++)
        peer_kill(&crew->members[i]);
}

static void measure(const struct bench_row *row, unsigned depth)
{
    struct contest contest = {.ours.depth = depth, .other.depth = depth};

    if (!bench_wanted(row))
        return;
    contest.other.workers[CLIENTS] = stream_start_echo(contest.other.lines, CLIENTS);
    contest.ours.workers[CLIENTS] = bench_broker()[0];
    contest.ours.workers[CLIENTS + 1] = bench_broker()[1];
    engage(&contest.ours, depth == 1 ? call_library : call_broker);
    engage(&contest.other, call_echo);
    (void)bench_run(row, &(struct bench){.ours = {.once = work_ours, .workers = contest.ours.workers},
                                         .other = {.once = work_other, .workers = contest.other.workers},
                                         .context = &contest,
                                         .rounds = 8,
                                         .a_round = 2});
    dismiss(&contest.ours);
    dismiss(&contest.other);
    for (int i = 0; i < CLIENTS; i++)
        close(contest.other.lines[i]);
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[ROWS] = {
        [DEPTH_1] = {.name = "rpc_8_clients", .unit = BENCH_PER_S, .operations = CLIENTS * CALLS, .hold = 0.6},
        [DEPTH_8] = {.name = "rpc_8_clients_depth_8",
                     .unit = BENCH_PER_S,
                     .operations = CLIENTS * CALLS,
                     .goal = 150000},
    };

    bench_begin(argc, argv, rows, ROWS);
    measure(&rows[DEPTH_1], 1);
    measure(&rows[DEPTH_8], DEPTH);
    return bench_end();
}
