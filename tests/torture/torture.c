/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make torture: clients do random things with the library while the broker, and they themselves, are killed, and a
 * judge counts what is lost. It may be nothing: no byte, no call of a client that lives, no descriptor, no record.
 *
 * The run has rounds; at the end of each all clients rest and what is there is compared with what has to be there.
 * TORTURE_SECONDS says how long it takes (60), or TORTURE_KILLS how many brokers have to die (0: nobody is killed).
 * TORTURE_SEED repeats a run, as far as processes that race can be repeated.
 */
#include "tests/torture/torture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ROUND_SECONDS      8
#define HANGS_AFTER_MS     120000
#define CALLS_WANTED       100000
#define TOO_MANY_SENTENCES 4

static const char configuration[] = "[pool tight]\nnodes = 0\ncapacity = 8M\n";

struct run {
    struct broker_process broker;
    struct random random;
    struct start starts[CLIENTS + 1];
    struct child children[CLIENTS + 1]; /* the last one is the killer */
    int inboxes[CLIENTS][2];
    uint64_t kills;
    int64_t end;
    bool stuck;
    uint64_t done[CLIENTS];
    int64_t done_at[CLIENTS];
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static uint64_t given(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void make_shared(void)
{
    pthread_mutexattr_t attributes;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped((void *)shared);
    assert_int_equal(pthread_mutexattr_init(&attributes), 0);
    assert_int_equal(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
    for (unsigned i = 0; i < PLACES; i++)
        assert_int_equal(pthread_mutex_init(&shared->places[i].lock, &attributes), 0);
}

static void start_client(struct run *run, unsigned i)
{
    run->starts[i].seed = random_below(&run->random, UINT64_MAX);
    run->done_at[i] = wait_now_ms();
    child_start(&run->children[i], torture_client, &run->starts[i]);
    atomic_store(&shared->members[i].pid, run->children[i].pid);
}

static void start_all(struct run *run)
{
    for (unsigned i = 0; i <= CLIENTS; i++)
        run->starts[i] = (struct start){.socket = run->broker.socket,
                                        .keeper = run->broker.pid,
                                        .number = i,
                                        .kills = run->kills,
                                        .inboxes = run->inboxes};
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, run->inboxes[i]));
        start_client(run, i);
    }
    run->starts[CLIENTS].seed = random_below(&run->random, UINT64_MAX);
    child_start(&run->children[CLIENTS], torture_killer, &run->starts[CLIENTS]);
}

/* ---- watching ---------------------------------------------------------------------------------------------------- */

static void has_ended(struct run *run, pid_t pid, int status)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct member *member = &shared->members[i];

        if (run->children[i].pid != pid)
            continue;
        close(run->children[i].channel);
        run->children[i].pid = 0;
        if (WIFSIGNALED(status) && !(WTERMSIG(status) == SIGKILL && atomic_load(&member->doomed)))
            complain("client %u died of signal %d in %s", i, WTERMSIG(status), atomic_load(&member->doing));
        atomic_store(&member->pid, 0);
        atomic_fetch_add(&member->incarnation, 1);
        atomic_store(&member->doomed, false);
        atomic_store(&member->stopped, false);
        if (atomic_load(&shared->phase) != PHASE_END)
            start_client(run, i);
    }
    for (unsigned i = CLIENTS; i < MEMBERS; i++) {
        pid_t child = atomic_load(&shared->members[i].pid);

        /* or its parent saw its end, and died before it could say so */
        if (child == pid || (child > 0 && kill(child, 0) < 0))
            atomic_compare_exchange_strong(&shared->members[i].pid, &child, 0);
    }
}

static void watch(struct run *run)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == run->broker.pid) {
            complain("the keeper has ended: status %#x", (unsigned)status);
            run->broker.pid = 0;
        }
        if (pid == run->children[CLIENTS].pid && atomic_load(&shared->phase) != PHASE_END)
            complain("the killer has ended: status %#x", (unsigned)status);
        has_ended(run, pid, status);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        const struct member *member = &shared->members[i];
        uint64_t done = atomic_load(&member->done);

        if (done != run->done[i] || atomic_load(&member->stopped) || atomic_load(&shared->phase) != PHASE_WORK) {
            run->done[i] = done;
            run->done_at[i] = wait_now_ms();
        } else if (run->children[i].pid > 0 && wait_now_ms() - run->done_at[i] > HANGS_AFTER_MS) {
            complain("client %u (pid %d) hangs in %s", i, (int)atomic_load(&member->pid), atomic_load(&member->doing));
            run->done_at[i] = INT64_MAX;
        }
    }
    wait_a_moment();
}

static bool has_failed(const struct run *run)
{
    return atomic_load(&shared->n_sentences) >= TOO_MANY_SENTENCES || run->broker.pid <= 0 || run->stuck;
}

static bool is_over(const struct run *run)
{
    if (has_failed(run))
        return true;
    return run->end ? wait_now_ms() >= run->end : atomic_load(&shared->figures.broker_kills) >= run->kills;
}

static bool has_come(unsigned i)
{
    const struct member *member = &shared->members[i];
    uint32_t round = atomic_load(&shared->round);

    if (i >= CLIENTS)
        return atomic_load(&member->pid) == 0;
    return atomic_load(atomic_load(&shared->phase) == PHASE_REST ? &member->resting : &member->counted) == round;
}

static bool all_have_come(void)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!has_come(i))
            return false;
    return atomic_load(&shared->killer_rests) == atomic_load(&shared->round);
}

static void say_who_has_not(void)
{
    complain("not everybody comes to rest%s",
             atomic_load(&shared->killer_rests) == atomic_load(&shared->round) ? "" : ", not even the killer");
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!has_come(i))
            complain("client %u (pid %d) does not, it is in %s", i, (int)atomic_load(&shared->members[i].pid),
                     atomic_load(&shared->members[i].doing));
}

static void wait_for_all(struct run *run, enum phase phase)
{
    int64_t patience = wait_now_ms() + HANGS_AFTER_MS;

    atomic_store(&shared->phase, phase);
    while (!all_have_come() && !has_failed(run)) {
        watch(run);
        if (wait_now_ms() > patience) {
            say_who_has_not();
            run->stuck = true;
        }
    }
}

/* What was sent and not received keeps its buffer. */
static void empty_inboxes(struct run *run)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        for (;;) {
            struct passed passed;
            struct fd_received received = fd_receive(run->inboxes[i][0], &passed, sizeof(passed), 1, MSG_DONTWAIT);

            if (received.size < 0)
                break;
            fd_received_close(&received);
        }
}

static void one_round(struct run *run)
{
    int64_t end = wait_now_ms() + ROUND_SECONDS * 1000;

    while (wait_now_ms() < end && !is_over(run))
        watch(run);
    atomic_fetch_add(&shared->round, 1);
    wait_for_all(run, PHASE_REST);
    wait_for_all(run, PHASE_COUNT);
    if (has_failed(run))
        return;
    empty_inboxes(run);
    judge_round(run->broker.socket, run->broker.pid);
    atomic_store(&shared->phase, PHASE_WORK);
}

static bool all_have_left(const struct run *run)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (atomic_load(&shared->members[i].pid) > 0)
            return false;
    return kill(run->children[CLIENTS].pid, 0) < 0;
}

static void end_all(struct run *run)
{
    int64_t patience = wait_now_ms() + HANGS_AFTER_MS;

    atomic_store(&shared->phase, PHASE_END);
    while (!all_have_left(run) && !has_failed(run) && wait_now_ms() < patience)
        watch(run);
    if (!all_have_left(run)) {
        if (!has_failed(run))
            complain("not everybody has left");
        for (unsigned i = 0; i <= CLIENTS; i++)
            if (run->children[i].pid > 0)
                kill(run->children[i].pid, SIGKILL);
    }
    empty_inboxes(run);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void row(const char *what, uint64_t n)
{
    print_message("%-58s %14" PRIu64 "\n", what, n);
}

static void print_table(uint64_t seed, const struct inventory *before, const struct inventory *after)
{
    const struct figures *f = &shared->figures;
    uint32_t sentences = atomic_load(&shared->n_sentences);

    row("calls attempted", f->calls);
    row("calls failed in clients that live", f->failed_calls);
    row("calls that had to be refused, and were", f->refusals);
    row("calls for a buffer whose only holder was just killed", f->over_with_its_maker);
    row("bytes written", f->bytes_written);
    row("bytes verified", f->bytes_verified);
    row("bytes lost or changed", f->bytes_wrong);
    row("descriptors passed between clients", f->passed);
    row("children by fork()", f->forks);
    row("brokers killed", f->broker_kills);
    row("    of these, before they served", f->broker_kills_at_start);
    row("clients killed", f->client_kills);
    row("children killed", f->child_kills);
    row("clients stopped and continued", f->stops);
    row("rounds in which all was compared", atomic_load(&shared->round));
    print_message("%-58s %14s\n", "descriptors of keeper and broker, after as before",
                  strcmp(before->text, after->text) == 0 ? "yes" : "NO");
    row("memory files left", after->memory_files);
    row("bytes in memory files before (the ledger's)", before->memory_bytes);
    row("bytes in memory files after", after->memory_bytes);
    row("records before", before->records);
    row("records after", after->records);
    row("things that are wrong", sentences);
    for (uint32_t i = 0; i < sentences && i < SENTENCES; i++)
        print_message("    %s\n", shared->sentences[i]);
    print_message("TORTURE_SEED=%#" PRIx64 "\n", seed);
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static void nothing_is_lost(void **state)
{
    uint64_t now = (uint64_t)wait_now_ms() * 1000003 ^ (uint64_t)getpid();
    uint64_t seed = given("TORTURE_SEED", now);
    static struct inventory before, after;
    static struct run run;
    pid_t first;

    run.random.state = seed | 1;
    run.kills = given("TORTURE_KILLS", UINT64_MAX);
    run.end = run.kills == UINT64_MAX || run.kills == 0 ? 1 : 0;
    make_shared();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    broker_start(&run.broker, configuration, 0);
    /* a second broker, so that what is compared at the end has been through the same */
    first = youngest_child_of(run.broker.pid);
    if (run.kills) {
        judge_inventory(run.broker.socket, run.broker.pid, &before);
        assert_ok(kill(first, SIGKILL));
        assert_true(WAIT_UNTIL(youngest_child_of(run.broker.pid) > 0 && youngest_child_of(run.broker.pid) != first));
    }
    judge_inventory(run.broker.socket, run.broker.pid, &before);
    if (run.end)
        run.end = wait_now_ms() + (int64_t)given("TORTURE_SECONDS", 60) * 1000;
    start_all(&run);
    while (!is_over(&run))
        one_round(&run);
    end_all(&run);
    if (!has_failed(&run))
        judge_end(run.broker.socket, run.broker.pid, &before, &after);
    print_table(seed, &before, &after);
    if (run.end && getenv("TORTURE_SECONDS") == NULL && shared->figures.calls < CALLS_WANTED)
        print_message("fewer than %d calls: this machine is slow\n", CALLS_WANTED);
    if (atomic_load(&shared->n_sentences)) {
        broker_kill(&run.broker);
        fail_msg("%u things are wrong", atomic_load(&shared->n_sentences));
    }
    broker_stop(&run.broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
    };

    /* it knows by itself when something hangs */
    alarm(0);
    return test_run(tests, NULL, NULL);
}
