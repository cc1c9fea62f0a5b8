/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user notices of another one who does all it can to keep the broker busy: 99 of a hundred of its calls, and of
 * its connections with HELLO, take no longer than this. The attackers have a processor of their own, and the broker and
 * the one who calls share another. The other side of each row is the same while a process burns the attackers'
 * processor and says nothing to the broker.
 */
#include <memclient/memclient.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/methods.h"
#include "tests/bench/bench.h"
#include "tests/bench/raw.h"
#include "tests/bench/stream.h"

/* Far from the users of other tests. */
#define UID_HOSTILE 61004

enum { CALLERS = 500, LISTERS = 2000, DEPTH = 8, EVENTS = 64, BLOCK = 1000, WARM_UP = 20 };

enum { CALLS, LISTS, STORM, ROWS };

static const struct bench_row rows[ROWS] = {
    [CALLS] = {.name = "ping_vs_500_callers_p99", .unit = BENCH_US, .quantile = 0.99, .hold = 2},
    [LISTS] = {.name = "ping_vs_2000_listers_p99", .unit = BENCH_US, .quantile = 0.99, .hold = 2},
    [STORM] = {.name = "connect_vs_storm_p99", .unit = BENCH_MS, .quantile = 0.99, .goal = 50},
};

/* ---- processors -------------------------------------------------------------------------------------------------- */

static int processors[2]; /* the broker's and ours, and the attackers' */

static bool find_processors(void)
{
    cpu_set_t all;
    int n = 0;

    bench_must(!sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &all))
            processors[n++] = i;
    return n == 2;
}

static void pin(pid_t thread, int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    bench_must(!sched_setaffinity(thread, sizeof(set), &set) || errno == ESRCH, "sched_setaffinity");
}

static void pin_threads(pid_t process, int processor)
{
    char path[40];
    struct dirent *entry;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    folder = opendir(path);
    bench_must(folder != NULL, path);
    while ((entry = readdir(folder))) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

        if (thread > 0)
            pin(thread, processor);
    }
    closedir(folder);
}

/* ---- attackers --------------------------------------------------------------------------------------------------- */

/* One that works until it is stopped, and goes on when it is continued. */
struct attacker {
    struct peer peer;
    unsigned connections;
    uint16_t method;
};

static void become_hostile(void)
{
    struct rlimit most;

    bench_must(!getrlimit(RLIMIT_NOFILE, &most), "getrlimit");
    most.rlim_cur = most.rlim_max;
    bench_must(!setrlimit(RLIMIT_NOFILE, &most), "setrlimit");
    bench_must(!setgroups(0, NULL) && !setresgid(UID_HOSTILE, UID_HOSTILE, UID_HOSTILE) &&
                   !setresuid(UID_HOSTILE, UID_HOSTILE, UID_HOSTILE),
               "another user");
    /* which the kernel has forgotten with the uid */
    bench_must(!prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
    pin(0, processors[1]);
}

static void burn(int line, void *context)
{
    volatile unsigned n = 0;

    pin(0, processors[1]);
    line_tell(line);
    for (;;)
        n++;
}

static void ask(int line, uint16_t method)
{
    static uint64_t sequence = 1;
    const struct frame_header header = {.method = method, .sequence = ++sequence};
    uint8_t packet[MEMORYD_HEADER_SIZE];

    frame_encode(packet, FRAME_FROM_CLIENT, &header);
    bench_must(send(line, packet, sizeof(packet), MSG_NOSIGNAL) == sizeof(packet), "an attacker's request");
}

/* Each connection always has several requests on their way. */
static void call(int line, void *context)
{
    static uint8_t reply[MEMORYD_FRAME_MAX];
    const struct attacker *self = context;
    struct epoll_event events[EVENTS];
    int set = epoll_create1(EPOLL_CLOEXEC);

    become_hostile();
    for (unsigned i = 0; i < self->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = stream_connect()};

        bench_must(!epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event), "epoll_ctl");
        for (unsigned n = 0; n < DEPTH; n++)
            ask(event.data.fd, self->method);
    }
    line_tell(line);
    for (;;) {
        int n = epoll_wait(set, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            bench_must(recv(events[i].data.fd, reply, sizeof(reply), 0) > 0, "an attacker's reply");
            ask(events[i].data.fd, self->method);
        }
    }
}

static void storm(int line, void *context)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *place = getenv("MEMORYD_SOCKET");

    bench_must(place && strlen(place) < sizeof(address.sun_path), "MEMORYD_SOCKET");
    memcpy(address.sun_path, place, strlen(place) + 1);
    become_hostile();
    line_tell(line);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void)connect(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
    }
}

static void attacker_start(struct attacker *attacker, void (*body)(int line, void *context))
{
    peer_start(&attacker->peer, body, attacker);
    bench_must(line_hear(attacker->peer.line), "an attacker");
    kill(attacker->peer.pid, SIGSTOP);
}

/* ---- the one who calls ------------------------------------------------------------------------------------------- */

static void ping_once(int line)
{
    stream_run(line, 1, 1);
}

/* And GOODBYE: a session ends with its process otherwise. */
static void connect_once(int line)
{
    struct memclient *ctx;

    bench_did(memclient_open(NULL, &ctx));
    memclient_close(ctx);
}

struct both {
    struct attacker attacker, burner;
    void (*once)(int line);
    int line;
};

static void measure_beside(const struct both *both, const struct attacker *attacker, struct bench_turn *turn)
{
    kill(attacker->peer.pid, SIGCONT);
    usleep(20000); /* until all that it has is on its way */
    for (int i = -WARM_UP; i < BLOCK; i++) {
        double begin = bench_now_us();

        both->once(both->line);
        if (i >= 0)
            samples_add(&turn->times, bench_now_us() - begin);
    }
    kill(attacker->peer.pid, SIGSTOP);
    /* until what it sent is done */
    ping_once(both->line);
    usleep(5000);
    turn->processor_us = -1;
}

static void measure(const struct bench_row *row, struct both *both, void (*body)(int line, void *context))
{
    struct bench_rounds rounds = {0};
    struct bench_turn ours = {0}, other = {0};

    if (!bench_wanted(row))
        return;
    if (geteuid() || !find_processors()) {
        bench_skip(row, "it takes root, to be two users, and two processors");
        return;
    }
    for (const pid_t *pid = bench_broker(); *pid; pid++)
        pin_threads(*pid, processors[0]);
    pin(0, processors[0]);
    attacker_start(&both->attacker, body);
    attacker_start(&both->burner, burn);
    both->line = stream_connect();
    while (bench_wants_more(row, &rounds, 0)) {
        measure_beside(both, &both->burner, &other);
        measure_beside(both, &both->attacker, &ours);
        bench_round_ended(row, &rounds, &ours, row->goal > 0 ? NULL : &other);
        samples_free(&other.times);
    }
    bench_must(!waitpid(both->attacker.peer.pid, NULL, WNOHANG), "the attacker lives");
    peer_kill(&both->attacker.peer);
    peer_kill(&both->burner.peer);
    close(both->line);
    bench_report(row, &rounds);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv, rows, ROWS);
    measure(&rows[CALLS],
            &(struct both){.attacker = {.connections = CALLERS, .method = METHOD_PING}, .once = ping_once}, call);
    measure(&rows[LISTS],
            &(struct both){.attacker = {.connections = LISTERS, .method = METHOD_LIST_SESSIONS}, .once = ping_once},
            call);
    measure(&rows[STORM], &(struct both){.once = connect_once}, storm);
    return bench_end();
}
