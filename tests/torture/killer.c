/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The killer of make torture: ends the broker, clients and children of clients at any moment, and stops clients.
 *
 * One rule: nobody is at one and the same request when two brokers that serve die, for such a request is refused by
 * design. So after a death all calls that were under way have to come to their end before the next. A broker that has
 * not begun to serve may be killed any number of times: nobody has a connection of it yet, which the kernel knows.
 */
#include "tests/torture/torture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#define BROKER_EVERY_MS 200
#define OTHERS_EVERY_MS 150
#define STOPPED_MOST_MS 1500

struct killer {
    const struct start *start;
    struct random random;
    uint64_t seen[MEMBERS]; /* the call that a death met; even: none */
    uint32_t incarnations[MEMBERS];
    int64_t stopped_until[CLIENTS];
    int64_t next_broker;
    int64_t next_other;
};

/* ---- the broker -------------------------------------------------------------------------------------------------- */

static bool has_moved_on(const struct killer *killer, unsigned i)
{
    const struct member *member = &shared->members[i];

    return killer->seen[i] % 2 == 0 || atomic_load(&member->call) != killer->seen[i] ||
           is_doomed(i, killer->incarnations[i]) || atomic_load(&member->pid) == 0;
}

static bool all_have_moved_on(const struct killer *killer)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!has_moved_on(killer, i))
            return false;
    return true;
}

static void remember_calls(struct killer *killer)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        killer->incarnations[i] = atomic_load(&shared->members[i].incarnation);
        killer->seen[i] = atomic_load(&shared->members[i].call);
    }
}

/* Has a broker accepted a connection? The kernel lists each end under the socket's path once it was taken. */
static bool serves_somebody(const char *socket)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512];
    bool yes = f == NULL;

    /* address, references, protocol, flags, type, state (3 = connected), inode (0 = not accepted yet), path */
    while (!yes && fgets(line, sizeof(line), f)) {
        char *rest = strchr(line, ':'), *fields[6];
        size_t n = 0;

        if (strstr(line, socket) == NULL || rest == NULL)
            continue;
        for (char *word = strtok_r(rest + 1, " ", &rest); word && n < 6; word = strtok_r(NULL, " ", &rest))
            fields[n++] = word;
        yes = n == 6 && strtol(fields[4], NULL, 16) == 3 && strtol(fields[5], NULL, 10) != 0;
    }
    if (f)
        fclose(f);
    return yes;
}

static bool is_stopped(pid_t pid)
{
    char path[64], text[512], *state;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return true;
    text[n] = '\0';
    state = strrchr(text, ')');
    return state == NULL || state[2] == 'T' || state[2] == 'Z';
}

static void sleep_us(uint64_t us)
{
    struct timespec a_while = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};

    nanosleep(&a_while, NULL);
}

/* False: it has begun to serve before we came. */
static bool kill_at_start(struct killer *killer, pid_t former)
{
    pid_t pid = 0;

    if (!WAIT_UNTIL((pid = youngest_child_of(killer->start->keeper)) > 0 && pid != former))
        return false;
    sleep_us(random_below(&killer->random, 6000));
    if (kill(pid, SIGSTOP) < 0)
        return false;
    (void)WAIT_UNTIL(is_stopped(pid));
    if (serves_somebody(killer->start->socket)) {
        kill(pid, SIGCONT);
        return false;
    }
    kill(pid, SIGKILL);
    atomic_fetch_add(&shared->figures.broker_kills, 1);
    atomic_fetch_add(&shared->figures.broker_kills_at_start, 1);
    return true;
}

static void kill_broker(struct killer *killer)
{
    pid_t pid = youngest_child_of(killer->start->keeper);
    unsigned again = one_in(&killer->random, 4) ? 1 + (unsigned)random_below(&killer->random, 3) : 0;

    if (pid <= 0 || !all_have_moved_on(killer))
        return;
    /* calls that begin after this look may be met as well */
    kill(pid, SIGSTOP);
    if (!WAIT_UNTIL(is_stopped(pid)))
        return;
    remember_calls(killer);
    kill(pid, SIGKILL);
    atomic_fetch_add(&shared->figures.broker_kills, 1);
    while (again-- > 0 && kill_at_start(killer, pid))
        pid = youngest_child_of(killer->start->keeper);
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static void kill_member(unsigned i, _Atomic uint64_t *count)
{
    struct member *member = &shared->members[i];
    pid_t pid = atomic_load(&member->pid);

    if (pid <= 0 || (i >= CLIENTS && pid == atomic_load(&shared->members[i - CLIENTS].pid)) ||
        atomic_exchange(&member->doomed, true))
        return;
    kill(pid, SIGKILL);
    atomic_fetch_add(count, 1);
}

static void stop_or_go_on(struct killer *killer, bool all)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (killer->stopped_until[i] == 0 || (!all && wait_now_ms() < killer->stopped_until[i]))
            continue;
        killer->stopped_until[i] = 0;
        atomic_store(&shared->members[i].stopped, false);
        if (atomic_load(&shared->members[i].pid) > 0)
            kill(atomic_load(&shared->members[i].pid), SIGCONT);
    }
}

static void stop_client(struct killer *killer, unsigned i)
{
    struct member *member = &shared->members[i];
    pid_t pid = atomic_load(&member->pid);

    if (pid <= 0 || killer->stopped_until[i])
        return;
    atomic_store(&member->stopped, true);
    killer->stopped_until[i] = wait_now_ms() + 1 + (int64_t)random_below(&killer->random, STOPPED_MOST_MS);
    kill(pid, SIGSTOP);
    atomic_fetch_add(&shared->figures.stops, 1);
}

static void harm_a_client(struct killer *killer)
{
    unsigned i = (unsigned)random_below(&killer->random, CLIENTS);

    switch (random_below(&killer->random, 4)) {
    case 0:
        kill_member(i, &shared->figures.client_kills);
        break;
    case 1:
        stop_client(killer, i);
        break;
    default:
        /* during fork(), if there is any */
        for (unsigned child = CLIENTS; child < MEMBERS; child++)
            if (atomic_load(&shared->members[child].pid) > 0) {
                kill_member(child, &shared->figures.child_kills);
                return;
            }
        break;
    }
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* The times between them are distributed geometrically: at every moment the next is as near. */
static int64_t some_time(struct killer *killer, unsigned mean_ms)
{
    int64_t time = wait_now_ms();

    while (!one_in(&killer->random, mean_ms))
        time++;
    return time;
}

static void work(struct killer *killer)
{
    if (atomic_load(&shared->figures.broker_kills) < killer->start->kills && wait_now_ms() >= killer->next_broker) {
        kill_broker(killer);
        killer->next_broker = some_time(killer, BROKER_EVERY_MS);
    }
    if (killer->start->kills && wait_now_ms() >= killer->next_other) {
        harm_a_client(killer);
        killer->next_other = some_time(killer, OTHERS_EVERY_MS);
    }
    stop_or_go_on(killer, false);
    sleep_us(1000);
}

void torture_killer(int channel, void *context)
{
    struct killer killer = {.start = context};

    (void)channel;
    killer.random.state = killer.start->seed | 1;
    while (atomic_load(&shared->phase) != PHASE_END) {
        if (atomic_load(&shared->phase) == PHASE_WORK) {
            work(&killer);
            continue;
        }
        stop_or_go_on(&killer, true);
        atomic_store(&shared->killer_rests, atomic_load(&shared->round));
        sleep_us(1000);
    }
}
