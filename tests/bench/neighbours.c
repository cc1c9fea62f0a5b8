/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one client notices of another: how long its calls take, the 99th of a hundred, while a neighbour allocates,
 * populates and frees 1 GiB again and again, and while one calls as fast as it can; against its quiet time in the same
 * run. Beside each is the same of a bare echo, which takes no part in what the neighbour does but for the machine's
 * processors; only where calls are flooded, so is the echo. And how long an allocation takes that needs a worker, while
 * another user keeps the kernel waiting that seals his buffers.
 */
#include <fcntl.h>
#include <libgen.h>
#include <memclient/memclient.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"
#include "tests/bench/stream.h"

#define GIB ((uint64_t)1 << 30)

enum { BLOCK = 50, QUIET_BLOCKS = 60, FLOOD_BLOCKS = 20, DEPTH = 8, BURST = 100 };
enum { SEALING_THREADS = 16, STRANGER = 61002, ALLOCATIONS = 8 };

enum { BUSY, BUSY_ECHO, FLOOD, FLOOD_ECHO, SEALING, ROWS };

static const struct bench_row rows[ROWS] = {
    [BUSY] = {.name = "quiet_vs_busy_p99", .unit = BENCH_US, .quantile = 0.99, .hold = 2},
    [BUSY_ECHO] = {.name = "echo_quiet_vs_busy_p99", .unit = BENCH_US, .quantile = 0.99},
    [FLOOD] = {.name = "small_vs_flood_p99", .unit = BENCH_US, .quantile = 0.99, .hold = 1.1},
    [FLOOD_ECHO] = {.name = "echo_small_vs_flood_p99", .unit = BENCH_US, .quantile = 0.99},
    [SEALING] = {.name = "alloc_32m_vs_sealing", .unit = BENCH_MS, .hold = 1.5},
};

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

/* Shared with a neighbour, which works while `go`. */
struct order {
    _Atomic bool go;
    _Atomic unsigned done; /* of what it repeats */
};

struct neighbour {
    struct peer peer;
    struct order *order;
    int echo; /* to flood instead of the broker, or -1 */
};

static void move_gigabytes(int line, void *context)
{
    const struct neighbour *self = context;
    struct memclient_context *ctx;

    bench_did(memclient_context_open(NULL, &ctx));
    for (; line_hear(line); line_tell(line))
        for (; self->order->go; self->order->done++) {
            struct memclient_buffer *buf;
            void *bytes;

            bench_did(memclient_alloc(ctx, GIB, NULL, &buf));
            bench_did(memclient_map(buf, NULL, &bytes));
            raw_touch(bytes, GIB, 4096);
            bench_did(memclient_unmap(ctx, bytes, 0));
            memclient_buffer_unref(buf);
        }
    memclient_context_close(ctx);
}

static void flood(int line, void *context)
{
    const struct neighbour *self = context;
    int to = self->echo >= 0 ? self->echo : stream_connect();

    for (; line_hear(line); line_tell(line))
        for (; self->order->go; self->order->done++)
            stream_run(to, DEPTH, BURST);
}

/* The kernel waits for a page that is in a pipe, and then refuses. */
static void *seal(void *argument)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct order *order = argument;
    struct iovec page = {.iov_len = (size_t)sysconf(_SC_PAGESIZE)};
    struct memclient_buffer *buf;
    int ends[2];

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    bench_did(memclient_alloc(NULL, page.iov_len, &options, &buf));
    bench_did(memclient_map(buf, NULL, &page.iov_base));
    *(volatile char *)page.iov_base = 1;
    bench_must(!pipe2(ends, O_CLOEXEC) && vmsplice(ends[1], &page, 1, 0) > 0, "vmsplice");
    bench_did(memclient_unmap(NULL, page.iov_base, 0));
    for (;; order->done++) {
        while (!order->go)
            usleep(1000);
        (void)memclient_publish(buf, 0);
    }
    return NULL;
}

/* As another user, which shares no lane with who is measured. It works as long as it is told to, and is killed. */
static void seal_pinned_pages(int line, void *context)
{
    const struct neighbour *self = context;
    pthread_t thread;

    bench_must(!setgid(STRANGER) && !setuid(STRANGER), "setuid");
    for (int i = 0; i < SEALING_THREADS; i++)
        bench_must(!pthread_create(&thread, NULL, seal, self->order), "a thread");
    while (line_hear(line))
        line_tell(line);
    _exit(0);
}

static void move_in(struct neighbour *neighbour, void (*body)(int line, void *context), int echo)
{
    neighbour->echo = echo;
    neighbour->order = mmap(NULL, sizeof(*neighbour->order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench_must(neighbour->order != MAP_FAILED, "mmap");
    peer_start(&neighbour->peer, body, neighbour);
}

static void begin_work(struct neighbour *neighbour)
{
    neighbour->order->done = 0;
    neighbour->order->go = true;
    line_tell(neighbour->peer.line);
}

static void end_work(struct neighbour *neighbour)
{
    neighbour->order->go = false;
    bench_must(line_hear(neighbour->peer.line), "a neighbour");
}

static void move_out(struct neighbour *neighbour)
{
    peer_end(&neighbour->peer);
    munmap(neighbour->order, sizeof(*neighbour->order));
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void call_broker(struct samples *samples)
{
    for (int i = 0; i < BLOCK; i++) {
        double begin = bench_now_us();

        bench_did(memclient_broker_ping(NULL));
        samples_add(samples, bench_now_us() - begin);
    }
}

static void call_echo(int line, struct samples *samples)
{
    for (int i = 0; i < BLOCK; i++) {
        double begin = bench_now_us();

        stream_run(line, 1, 1);
        samples_add(samples, bench_now_us() - begin);
    }
}

/* A phase is a round: its calls while it is quiet, and while the neighbour works. */
struct both {
    struct bench_turn quiet, loud;
    struct bench_rounds rounds;
};

/* As long as one of the two rows that are measured together does. */
static bool want_more(size_t row, struct both *calls, struct both *echoes)
{
    bool more = bench_wanted(&rows[row]) && bench_wants_more(&rows[row], &calls->rounds, 0);

    return (bench_wanted(&rows[row + 1]) && bench_wants_more(&rows[row + 1], &echoes->rounds, 0)) || more;
}

static void phase_ended(const struct bench_row *row, struct both *both)
{
    both->quiet.processor_us = both->loud.processor_us = -1;
    bench_round_ended(row, &both->rounds, &both->loud, &both->quiet);
}

static void report(const struct bench_row *row, struct both *both)
{
    if (bench_wanted(row))
        bench_report(row, &both->rounds);
    samples_free(&both->loud.times);
    samples_free(&both->quiet.times);
}

/* In each phase the neighbour goes through all that it does, and begins anew while what it freed is given back. */
static void measure_busy(void)
{
    struct both calls = {0}, echoes = {0};
    struct neighbour neighbour;
    int line;

    (void)stream_start_echo(&line, 1);
    move_in(&neighbour, move_gigabytes, -1);
    while (want_more(BUSY, &calls, &echoes)) {
        for (int i = 0; i < QUIET_BLOCKS; i++) {
            call_broker(&calls.quiet.times);
            call_echo(line, &echoes.quiet.times);
        }
        begin_work(&neighbour);
        while (neighbour.order->done < 2) {
            call_broker(&calls.loud.times);
            call_echo(line, &echoes.loud.times);
        }
        end_work(&neighbour);
        phase_ended(&rows[BUSY], &calls);
        phase_ended(&rows[BUSY_ECHO], &echoes);
        /* until what it freed has been given back */
        usleep(500000);
    }
    move_out(&neighbour);
    close(line);
    report(&rows[BUSY], &calls);
    report(&rows[BUSY_ECHO], &echoes);
}

static void measure_flood(void)
{
    struct both calls = {0}, echoes = {0};
    struct neighbour of_broker, of_echo;
    int lines[2];

    (void)stream_start_echo(lines, 2);
    move_in(&of_broker, flood, -1);
    move_in(&of_echo, flood, lines[1]);
    while (want_more(FLOOD, &calls, &echoes)) {
        for (int i = 0; i < FLOOD_BLOCKS; i++) {
            call_broker(&calls.quiet.times);
            call_echo(lines[0], &echoes.quiet.times);
        }
        begin_work(&of_broker);
        for (int i = 0; i < FLOOD_BLOCKS; i++)
            call_broker(&calls.loud.times);
        end_work(&of_broker);
        begin_work(&of_echo);
        for (int i = 0; i < FLOOD_BLOCKS; i++)
            call_echo(lines[0], &echoes.loud.times);
        end_work(&of_echo);
        phase_ended(&rows[FLOOD], &calls);
        phase_ended(&rows[FLOOD_ECHO], &echoes);
    }
    move_out(&of_broker);
    move_out(&of_echo);
    close(lines[0]);
    close(lines[1]);
    report(&rows[FLOOD], &calls);
    report(&rows[FLOOD_ECHO], &echoes);
}

static void allocate(struct samples *samples)
{
    for (int i = 0; i < ALLOCATIONS; i++) {
        double begin = bench_now_us();
        struct memclient_buffer *buf;

        bench_did(memclient_alloc(NULL, GIB / 32, NULL, &buf));
        samples_add(samples, bench_now_us() - begin);
        memclient_buffer_unref(buf);
    }
}

static void measure_sealing(void)
{
    const char *socket = getenv("MEMORYD_SOCKET");
    struct both allocations = {0};
    struct neighbour neighbour;
    char *path;

    if (geteuid() || !socket) {
        bench_skip(&rows[SEALING], "only root can be two users");
        return;
    }
    /* the other user has to get to the socket */
    path = strdup(socket);
    bench_must(path && !chmod(dirname(path), 0711), "chmod");
    free(path);
    move_in(&neighbour, seal_pinned_pages, -1);
    while (bench_wants_more(&rows[SEALING], &allocations.rounds, 0)) {
        allocate(&allocations.quiet.times);
        neighbour.order->done = 0;
        neighbour.order->go = true;
        /* all of them have asked by then */
        while (!neighbour.order->done)
            usleep(1000);
        allocate(&allocations.loud.times);
        neighbour.order->go = false;
        phase_ended(&rows[SEALING], &allocations);
    }
    peer_kill(&neighbour.peer);
    munmap(neighbour.order, sizeof(*neighbour.order));
    report(&rows[SEALING], &allocations);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv, rows, ROWS);
    if (bench_wanted(&rows[BUSY]) || bench_wanted(&rows[BUSY_ECHO]))
        measure_busy();
    if (bench_wanted(&rows[FLOOD]) || bench_wanted(&rows[FLOOD_ECHO]))
        measure_flood();
    if (bench_wanted(&rows[SEALING]))
        measure_sealing();
    return bench_end();
}
