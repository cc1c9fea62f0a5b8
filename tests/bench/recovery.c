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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

/* What the kernel takes in one message. */
enum { FDS_A_MESSAGE = 253, SIZES = 3, ROUNDS = 12, MOST = 10000 };

#define GOAL_US 30000
#define GOAL_BUFFERS 10000

struct bed {
    struct memclient *ctx; /* with the session that holds buffers */
    char *program;
    pid_t broker;
    size_t n, names;
    int holder; /* a process that holds n memory files and sends them on demand */
    pid_t holder_pid;
    int *received; /* from it */
    size_t n_received;
    size_t rounds;
};

static void
did(int r)
{
    bench_must(r >= 0, memclient_error());
}

/* ---- ours ------------------------------------------------------------------------------------------------ */

static void
kill_broker(struct bed *bed)
{
    bench_must(!kill(bed->broker, SIGKILL), "kill");
}

/* Until it is the next broker that answers: the old one may do so for a moment. */
static bool
is_the_next(struct bed *bed, struct memclient *ctx)
{
    struct memclient_broker_status status = MEMCLIENT_BROKER_STATUS_INIT;

    did(memclient_status(ctx, &status));
    if (status.broker_pid == bed->broker)
        return false;
    bed->broker = status.broker_pid;
    bench_must(status.buffers == bed->n, "keeping all buffers");
    return true;
}

static void
go_on(void *context)
{
    struct bed *bed = context;

    kill_broker(bed);
    while (!is_the_next(bed, bed->ctx))
        ;
}

static void
come_anew(void *context)
{
    struct bed *bed = context;
    struct memclient *ctx;
    bool next;

    kill_broker(bed);
    do {
        did(memclient_open(NULL, &ctx));
        next = is_the_next(bed, ctx);
        memclient_close(ctx);
    } while (!next);
}

/* Half of the new ones are held, half have a name: "bench/" and a number, from 0. */
static void
make_buffers(struct bed *bed, size_t n)
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
        did(memclient_alloc_many(bed->ctx, part, sizes, NULL, bufs));
    }
    named.name = name;
    for (; bed->n < n; bed->n++) {
        snprintf(name, sizeof(name), "bench/%zu", bed->names++);
        did(memclient_alloc(bed->ctx, 1, &named, &bufs[0]));
        memclient_buffer_unref(bufs[0]);
    }
}

static void
remove_names(struct bed *bed)
{
    char name[32];

    while (bed->names) {
        snprintf(name, sizeof(name), "bench/%zu", --bed->names);
        did(memclient_name_unbind(bed->ctx, name));
    }
}

/* ---- floor ----------------------------------------------------------------------------------------------- */

static void
send_all(int to, const int *fds, size_t n)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_A_MESSAGE * sizeof(int))];
    } control;
    char byte = 0;
    struct msghdr message = {.msg_iov = &(struct iovec){.iov_base = &byte, .iov_len = 1}, .msg_iovlen = 1};

    for (size_t done = 0, part; done < n; done += part) {
        part = n - done < FDS_A_MESSAGE ? n - done : FDS_A_MESSAGE;
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(part * sizeof(int));
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(part * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds + done, part * sizeof(int));
        bench_must(sendmsg(to, &message, 0) == 1, "sendmsg");
    }
}

static _Noreturn void
hold(int line, size_t n)
{
    int *fds = calloc(n, sizeof(int));
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_must(fds != NULL, "calloc");
    for (size_t i = 0; i < n; i++) {
        fds[i] = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        bench_must(fds[i] >= 0 && !ftruncate(fds[i], 4096), "memfd_create");
    }
    while (recv(line, &byte, 1, 0) == 1)
        send_all(line, fds, n);
    _exit(0);
}

static void
start_holder(struct bed *bed)
{
    int pair[2];

    bench_must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
    bed->holder_pid = fork();
    bench_must(bed->holder_pid >= 0, "fork");
    if (!bed->holder_pid) {
        close(pair[0]);
        hold(pair[1], bed->n);
    }
    close(pair[1]);
    bed->holder = pair[0];
}

static void
end_holder(struct bed *bed)
{
    close(bed->holder);
    bench_must(waitpid(bed->holder_pid, NULL, 0) == bed->holder_pid, "waitpid");
}

static void
run_nothing(const struct bed *bed)
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

static void
receive_all(struct bed *bed)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_A_MESSAGE * sizeof(int))];
    } control;
    struct stat st;
    char byte;

    bench_must(send(bed->holder, "", 1, 0) == 1, "send");
    while (bed->n_received < bed->n) {
        struct msghdr message = {.msg_iov = &(struct iovec){.iov_base = &byte, .iov_len = 1},
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control)};
        size_t n;

        bench_must(recvmsg(bed->holder, &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen, "recvmsg");
        n = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(bed->received + bed->n_received, CMSG_DATA(&control.header), n * sizeof(int));
        bed->n_received += n;
    }
    for (size_t i = 0; i < bed->n; i++)
        bench_must(!fstat(bed->received[i], &st), "fstat");
}

static void
start_and_adopt(void *context)
{
    run_nothing(context);
    receive_all(context);
}

static void
close_received(void *context)
{
    struct bed *bed = context;

    while (bed->n_received)
        close(bed->received[--bed->n_received]);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* Medians of going on, and of its floor. */
static struct bench_result
measure(struct bed *bed, bool json)
{
    char name[64];
    struct bench bench = {
        .name = name,
        .ours = {"kill -9 to first answer", go_on, NULL},
        .floor = {"an empty process, raw descriptors", start_and_adopt, close_received},
        .context = bed,
        .rounds = bed->rounds,
        .a_round = 1,
    };
    struct bench_result result;

    start_holder(bed);
    snprintf(name, sizeof(name), "kill -9, %zu buffers, goes on", bed->n);
    result = bench_run(&bench, json);
    snprintf(name, sizeof(name), "kill -9, %zu buffers, comes anew", bed->n);
    bench.ours.once = come_anew;
    (void)bench_run(&bench, json);
    end_holder(bed);
    return result;
}

static void
tell_growth(const size_t *sizes, const struct bench_result *results)
{
    double buffers = (double)(sizes[SIZES - 1] - sizes[0]);

    printf("  each buffer more takes %.2f us, and of the floor %.2f us;",
           (results[SIZES - 1].ours_us - results[0].ours_us) / buffers,
           (results[SIZES - 1].floor_us - results[0].floor_us) / buffers);
    printf(" by steps:");
    for (size_t i = 1; i < SIZES; i++)
        printf(" %.2f", (results[i].ours_us - results[i - 1].ours_us) / (double)(sizes[i] - sizes[i - 1]));
    printf("\n");
    for (size_t i = 0; i < SIZES; i++)
        if (sizes[i] == GOAL_BUFFERS)
            printf("  the goal with %d buffers is %d ms: %.1f ms\n", GOAL_BUFFERS, GOAL_US / 1000,
                   results[i].ours_us / 1000);
}

int
main(int argc, char **argv)
{
    const char *most = getenv("RECOVERY_BUFFERS"), *rounds = getenv("RECOVERY_ROUNDS");
    const char *builddir = getenv("builddir");
    struct memclient_check_result check = MEMCLIENT_CHECK_RESULT_INIT;
    struct memclient_broker_status status = MEMCLIENT_BROKER_STATUS_INIT;
    struct bench_result results[SIZES];
    struct bed bed = {0};
    size_t sizes[SIZES];
    bool json;

    if (!bench_options(argc, argv, &json))
        return 2;
    bed.rounds = rounds ? strtoul(rounds, NULL, 10) : ROUNDS;
    sizes[SIZES - 1] = most ? strtoul(most, NULL, 10) : MOST;
    for (size_t i = SIZES - 1; i > 0; i--)
        sizes[i - 1] = sizes[i] / 10;
    bed.received = calloc(sizes[SIZES - 1], sizeof(int));
    bench_must(bed.received && asprintf(&bed.program, "%s/daemon/memoryd", builddir ? builddir : ".") > 0, "calloc");

    did(memclient_open(NULL, &bed.ctx));
    did(memclient_status(bed.ctx, &status));
    bench_must(!status.buffers, "an empty broker");
    bed.broker = status.broker_pid;
    for (size_t i = 0; i < SIZES; i++) {
        make_buffers(&bed, sizes[i]);
        results[i] = measure(&bed, json);
    }
    did(memclient_check(bed.ctx, &check));
    bench_must(!check.faults, "the check of the books");
    if (!json)
        tell_growth(sizes, results);
    remove_names(&bed);
    memclient_close(bed.ctx);
    free(bed.received);
    free(bed.program);
    return fflush(stdout) ? 1 : 0;
}
