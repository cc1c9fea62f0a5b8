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
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/methods.h"
#include "tests/bench/attacks.h"
#include "tests/bench/bench.h"
#include "tests/bench/raw.h"
#include "tests/bench/stream.h"

enum {
    BLOCK = 1000,
    WARM_UP = 20,
};

struct scene {
    struct bench_row row;
    void (*body)(int line, void *attack);
    struct attack attack;
};

#define PING_VS(words)                                                                  \
    {                                                                                   \
        .name = "ping_vs_" words "_p99", .unit = BENCH_US, .quantile = 0.99, .hold = 2, \
    }
#define CONNECT_VS(words)                                                                   \
    {                                                                                       \
        .name = "connect_vs_" words "_p99", .unit = BENCH_MS, .quantile = 0.99, .goal = 50, \
    }

static const struct scene scenes[] = {
    {PING_VS("500_callers"), attack_call, {.connections = 500, .depth = 8, .method = METHOD_PING}},
    {PING_VS("500_callers_depth_1"), attack_call, {.connections = 500, .depth = 1, .method = METHOD_PING}},
    {PING_VS("4000_callers"), attack_call, {.connections = 4000, .depth = 8, .method = METHOD_PING}},
    {PING_VS("4000_callers_depth_1"), attack_call, {.connections = 4000, .depth = 1, .method = METHOD_PING}},
    {PING_VS("2000_listers"), attack_call, {.connections = 2000, .depth = 8, .method = METHOD_LIST_SESSIONS}},
    {PING_VS("4000_listers"), attack_call, {.connections = 4000, .depth = 8, .method = METHOD_LIST_SESSIONS}},
    {PING_VS("4000_who_ask"), attack_call, {.connections = 4000, .depth = 8, .method = METHOD_INFO}},
    {PING_VS("2000_unread"), attack_unread, {.connections = 2000, .method = METHOD_EXPORT}},
    {PING_VS("batches"), attack_allocate, {0}},
    {PING_VS("destroys"), attack_destroy, {.connections = 500}},
    {PING_VS("watchers"), attack_watch, {.connections = 64}},
    {PING_VS("deaths"), attack_die, {.connections = 200}},
    {PING_VS("storm"), attack_connect, {0}},
    {PING_VS("half_open"), attack_half_open, {.connections = 500}},
    {PING_VS("crowd"), attack_crowd, {.connections = 3000}},
    {PING_VS("garbage"), attack_garbage, {0}},
    {CONNECT_VS("storm"), attack_connect, {0}},
    {CONNECT_VS("half_open"), attack_half_open, {.connections = 500}},
    {CONNECT_VS("crowd"), attack_crowd, {.connections = 3000}},
    {CONNECT_VS("garbage"), attack_garbage, {0}},
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

/* ---- processors -------------------------------------------------------------------------------------------------- */

static int processors[2]; /* the broker's and ours, and the attackers' */
static int n_processors;

/* Once: the first row keeps this process to one of them. */
static void find_processors(void)
{
    cpu_set_t all;

    bench_must(!sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE && n_processors < 2; i++)
        if (CPU_ISSET(i, &all))
            processors[n_processors++] = i;
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

/* One, with its children, that works until it is stopped, and goes on when it is continued. */
struct attacker {
    struct peer peer;
    struct attack attack;
};

static void attacker_start(struct attacker *attacker, void (*body)(int line, void *context))
{
    peer_start(&attacker->peer, body, &attacker->attack);
    bench_must(line_hear(attacker->peer.line), "an attacker");
    kill(-attacker->peer.pid, SIGSTOP);
}

/* ---- the one who calls ------------------------------------------------------------------------------------------- */

static void ping_once(int line)
{
    stream_run(line, 1, 1);
}

/* And GOODBYE: a session ends with its process otherwise. */
static void connect_once(int line)
{
    struct memclient_context *ctx;

    bench_did(memclient_context_open(NULL, &ctx));
    memclient_context_close(ctx);
}

struct both {
    struct attacker attacker, burner;
    void (*once)(int line);
    int line;
};

/* What the attacker has sent is done, and nobody who comes next waits for it. */
static void wait_until_idle(void)
{
    double before;

    do {
        before = bench_processor_us(bench_broker());
        usleep(5000);
    } while (bench_processor_us(bench_broker()) - before > 500);
}

static void measure_beside(const struct both *both, const struct attacker *attacker, struct bench_turn *turn)
{
    kill(-attacker->peer.pid, SIGCONT);
    usleep(20000); /* until all that it has is on its way */
    for (int i = -WARM_UP; i < BLOCK; i++) {
        double begin = bench_now_us();

        both->once(both->line);
        if (i >= 0)
            samples_add(&turn->times, bench_now_us() - begin);
    }
    kill(-attacker->peer.pid, SIGSTOP);
    wait_until_idle();
    turn->processor_us = -1;
}

static void measure(const struct scene *scene, const struct bench_row *row)
{
    struct attack attack = scene->attack;
    struct bench_rounds rounds = {0};
    struct bench_turn ours = {0}, other = {0};
    struct both both;

    if (!bench_wanted(row))
        return;
    if (geteuid() || n_processors < 2) {
        bench_skip(row, "it takes root, to be two users, and two processors");
        return;
    }
    attack.processor = processors[1];
    both = (struct both){
        .attacker.attack = attack, .burner.attack = attack, .once = row->goal > 0 ? connect_once : ping_once};
    for (const pid_t *pid = bench_broker(); *pid; pid++)
        pin_threads(*pid, processors[0]);
    pin(0, processors[0]);
    attacker_start(&both.attacker, scene->body);
    attacker_start(&both.burner, attack_burn);
    both.line = stream_connect();
    while (bench_wants_more(row, &rounds, 0)) {
        measure_beside(&both, &both.burner, &other);
        measure_beside(&both, &both.attacker, &ours);
        bench_round_ended(row, &rounds, &ours, row->goal > 0 ? NULL : &other);
        samples_free(&other.times);
    }
    bench_must(!waitpid(both.attacker.peer.pid, NULL, WNOHANG), "the attacker lives");
    peer_kill(&both.attacker.peer);
    peer_kill(&both.burner.peer);
    close(both.line);
    bench_report(row, &rounds);
}

int main(int argc, char **argv)
{
    struct bench_row rows[SCENES];

    for (size_t i = 0; i < SCENES; i++)
        rows[i] = scenes[i].row;
    bench_begin(argc, argv, rows, SCENES);
    find_processors();
    for (size_t i = 0; i < SCENES; i++)
        measure(&scenes[i], &rows[i]);
    return bench_end();
}
