/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker is killed: how long until the next one has answered a call? By a client that has a session and goes on
 * calling, and by one that comes anew, with 100, 1000 and 10 000 buffers (RECOVERY_BUFFERS=N: N is the most;
 * RECOVERY_ROUNDS=N: so many kills).
 *
 * The floor is what cannot be spared: a process is started, of the same program and libraries, that does nothing and
 * ends; and as many memory files are received over a socket, and looked at. Half the buffers have a name, half are held
 * by this program's session. Nothing may be lost meanwhile, or this ends with an error.
 */
#include <fcntl.h>
#include <memclient/memclient.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

enum { SIZES = 3, ROUNDS = 12, MOST = 10000, GOAL_BUFFERS = 10000, GOAL_MS = 30, REST_US = 100000 };

struct bed {
    struct memclient_context *ctx; /* with the session that holds buffers */
    char *program;
    pid_t broker;
    size_t n, names;
    struct peer holder; /* holds n memory files and sends them on demand */
    int *received;      /* from it */
    size_t rounds;
};

/* ---- ours -------------------------------------------------------------------------------------------------------- */

static void kill_broker(struct bed *bed)
{
    bench_must(!kill(bed->broker, SIGKILL), "kill");
}

/* Until it is the next broker that answers: the old one may do so for a moment. */
static bool is_the_next(struct bed *bed, struct memclient_context *ctx)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    bench_did(memclient_broker_query(ctx, &status));
    if (status.broker_pid == bed->broker)
        return false;
    bed->broker = status.broker_pid;
    bench_must(status.buffers == bed->n, "keeping all buffers");
    return true;
}

/* What the kernel and the keeper still do after the last broker is no part of the floor. */
static void rest(void *context)
{
    (void)context;
    usleep(REST_US);
}

static void go_on(void *context)
{
    struct bed *bed = context;

    kill_broker(bed);
    while (!is_the_next(bed, bed->ctx))
        ;
}

static void come_anew(void *context)
{
    struct bed *bed = context;
    struct memclient_context *ctx;
    bool next;

    kill_broker(bed);
    do {
        bench_did(memclient_context_open(NULL, &ctx));
        next = is_the_next(bed, ctx);
        memclient_context_close(ctx);
    } while (!next);
}

/* Half of the new ones are held, half have a name: "bench/" and a number, from 0. */
static void make_buffers(struct bed *bed, size_t n)
{
    struct memclient_alloc_options named = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[MEMCLIENT_BATCH_MAX];
    uint64_t sizes[MEMCLIENT_BATCH_MAX];
    size_t held = (n - bed->n) / 2;
    char name[32];

    for (size_t i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        sizes[i] = 1;
    for (size_t part; held; held -= part, bed->n += part) {
        part = held < MEMCLIENT_BATCH_MAX ? held : MEMCLIENT_BATCH_MAX;
        bench_did(memclient_alloc_many(bed->ctx, part, sizes, NULL, bufs));
    }
    named.name = name;
    for (; bed->n < n; bed->n++) {
        snprintf(name, sizeof(name), "bench/%zu", bed->names++);
        bench_did(memclient_alloc(bed->ctx, 1, &named, &bufs[0]));
        memclient_buffer_unref(bufs[0]);
    }
}

static void remove_names(struct bed *bed)
{
    char name[32];

    while (bed->names) {
        snprintf(name, sizeof(name), "bench/%zu", --bed->names);
        bench_did(memclient_unbind_name(bed->ctx, name));
    }
}

/* ---- floor ------------------------------------------------------------------------------------------------------- */

static void hold(int line, void *context)
{
    const struct bed *bed = context;
    int *fds = calloc(bed->n, sizeof(int));

    bench_must(fds != NULL, "calloc");
    for (size_t i = 0; i < bed->n; i++) {
        fds[i] = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        bench_must(fds[i] >= 0 && !ftruncate(fds[i], 4096), "memfd_create");
    }
    while (line_hear(line))
        raw_send_fds(line, fds, bed->n);
}

static void run_nothing(const struct bed *bed)
{
    int status;
    pid_t pid = fork();

    bench_must(pid >= 0, "fork");
    if (!pid) {
        bench_must(dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO) >= 0, "/dev/null");
        execl(bed->program, bed->program, "--version", (char *)NULL);
        _exit(127);
    }
    bench_must(waitpid(pid, &status, 0) == pid && !status, bed->program);
}

static void receive_all(struct bed *bed)
{
    struct stat st;

    line_tell(bed->holder.line);
    raw_receive_fds(bed->holder.line, bed->received, bed->n);
    for (size_t i = 0; i < bed->n; i++)
        bench_must(!fstat(bed->received[i], &st), "fstat");
}

static void start_and_adopt(void *context)
{
    run_nothing(context);
    receive_all(context);
}

static void close_received(void *context)
{
    struct bed *bed = context;

    for (size_t i = 0; i < bed->n; i++)
        close(bed->received[i]);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

enum { GOES_ON, COMES_ANEW, WAYS };

static struct bench_row rows[SIZES][WAYS];
static char names[SIZES][WAYS][32];

static void name_rows(const size_t *sizes)
{
    for (size_t i = 0; i < SIZES; i++)
        for (size_t way = 0; way < WAYS; way++) {
            bool thousands = sizes[i] % 1000 == 0;

            (void)snprintf(names[i][way], sizeof(names[i][way]), "recovery_%zu%s%s",
                           thousands ? sizes[i] / 1000 : sizes[i], thousands ? "k" : "",
                           way == COMES_ANEW ? "_anew" : "");
            rows[i][way] = (struct bench_row){
                .name = names[i][way], .unit = BENCH_MS, .goal = sizes[i] == GOAL_BUFFERS ? GOAL_MS : 0};
        }
}

/* Medians of going on, and of its floor. */
static struct bench_result measure(struct bed *bed, const struct bench_row *row)
{
    struct bench bench = {
        .ours = {.once = go_on, .after = rest},
        .other = {.once = start_and_adopt, .after = close_received},
        .context = bed,
        .rounds = bed->rounds,
        .a_round = 1,
    };
    struct bench_result result;

    peer_start(&bed->holder, hold, bed);
    result = bench_run(&row[GOES_ON], &bench);
    bench.ours.once = come_anew;
    (void)bench_run(&row[COMES_ANEW], &bench);
    peer_end(&bed->holder);
    return result;
}

static void tell_growth(const size_t *sizes, const struct bench_result *results)
{
    double buffers = (double)(sizes[SIZES - 1] - sizes[0]);

    fprintf(stderr, "recovery: each buffer more takes %.2f us, and of the floor %.2f us; by steps:",
            (results[SIZES - 1].ours - results[0].ours) / buffers,
            (results[SIZES - 1].other - results[0].other) / buffers);
    for (size_t i = 1; i < SIZES; i++)
        fprintf(stderr, " %.2f", (results[i].ours - results[i - 1].ours) / (double)(sizes[i] - sizes[i - 1]));
    fprintf(stderr, "\n");
}

int main(int argc, char **argv)
{
    const char *most = getenv("RECOVERY_BUFFERS"), *rounds = getenv("RECOVERY_ROUNDS");
    const char *builddir = getenv("builddir");
    struct memclient_check_result check = MEMCLIENT_CHECK_RESULT_INIT;
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct bench_result results[SIZES];
    struct bed bed = {0};
    size_t sizes[SIZES];
    bool all = true;

    bed.rounds = rounds ? strtoul(rounds, NULL, 10) : ROUNDS;
    sizes[SIZES - 1] = most ? strtoul(most, NULL, 10) : MOST;
    for (size_t i = SIZES - 1; i > 0; i--)
        sizes[i - 1] = sizes[i] / 10;
    name_rows(sizes);
    bench_begin(argc, argv, rows[0], SIZES * WAYS);
    bed.received = calloc(sizes[SIZES - 1], sizeof(int));
    bench_must(bed.received && asprintf(&bed.program, "%s/daemon/memoryd", builddir ? builddir : ".") > 0, "calloc");

    bench_did(memclient_context_open(NULL, &bed.ctx));
    bench_did(memclient_broker_query(bed.ctx, &status));
    bench_must(!status.buffers, "an empty broker");
    bed.broker = status.broker_pid;
    for (size_t i = 0; i < SIZES; i++) {
        bool may = bench_has_descriptors(sizes[i]);

        for (size_t way = 0; way < WAYS && !may; way++)
            bench_skip(&rows[i][way], "the limit of open files (ulimit -Hn) is too low for so many buffers");
        if (may) {
            make_buffers(&bed, sizes[i]);
            results[i] = measure(&bed, rows[i]);
        }
        all = all && may && bench_wanted(&rows[i][GOES_ON]);
    }
    bench_did(memclient_broker_check(bed.ctx, &check));
    bench_must(!check.faults, "the check of the books");
    if (all)
        tell_growth(sizes, results);
    remove_names(&bed);
    memclient_context_close(bed.ctx);
    free(bed.received);
    free(bed.program);
    return bench_end();
}
