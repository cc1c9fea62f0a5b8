/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of make torture: random operations until it is told to rest, or is killed.
 *
 * It is refused nothing, ever. When it is, it says so and ends, and the run has failed.
 */
#include "tests/torture/client.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

void call_begins(struct client *c, const char *what)
{
    atomic_store(&c->me->doing, what);
    atomic_fetch_add(&c->me->call, 1);
}

_Noreturn void give_up(struct client *c, const char *what, int line)
{
    complain("client %u.%u, line %d: %s", c->number, c->incarnation, line, what);
    atomic_store(&c->me->doomed, true);
    _exit(EXIT_FAILURE);
}

void call_ended(struct client *c, int result, int wanted, const char *what, int line)
{
    atomic_fetch_add(&c->me->call, 1);
    atomic_fetch_add(&shared->figures.calls, 1);
    if (wanted ? result == -wanted : result >= 0)
        return;
    atomic_fetch_add(&shared->figures.failed_calls, 1);
    complain("client %u.%u, line %d: %s: %s (\"%s\")", c->number, c->incarnation, line, what,
             result < 0 ? strerror(-result) : "was not refused", result < 0 ? memclient_error() : "");
    atomic_store(&c->me->doomed, true);
    _exit(EXIT_FAILURE);
}

uint64_t some_size(struct client *c)
{
    static const uint64_t most[] = {1, 4, 16, 16, 64, 256};

    return (1 + below(c, most[below(c, 6)])) * page_size();
}

void verify(struct client *c, const void *address, uint64_t size, const uint64_t *keys, unsigned n_keys)
{
    uint64_t wrong = bytes_wrong(address, size, keys, n_keys);

    if (wrong) {
        complain("client %u.%u: %llu of %llu bytes at %p are wrong, the first word is %llx", c->number, c->incarnation,
                 (unsigned long long)wrong, (unsigned long long)size, address, *(const unsigned long long *)address);
        atomic_store(&c->me->doomed, true);
        _exit(EXIT_FAILURE);
    }
}

/* Whoever had this number before may have died in a call. */
static void begin_outside_of_calls(struct client *c)
{
    if (atomic_load(&c->me->call) % 2)
        atomic_fetch_add(&c->me->call, 1);
}

static void connect_it(struct client *c)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;

    options.socket = c->start->socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    options.deadline_ms = MEMCLIENT_FOREVER;
    options.program = "torture";
    DO(memclient_context_open(&options, &c->ctx));
}

static void leave(struct client *c)
{
    places_leave(c);
    own_forget_all(c);
    call_begins(c, "memclient_context_close");
    memclient_context_close(c->ctx);
    call_ended(c, 0, 0, "", 0);
    c->ctx = NULL;
}

/* ---- fork() ------------------------------------------------------------------------------------------------------ */

/* What was mapped is there, and a session of its own works as any. */
static void live_as_a_child(struct client *c)
{
    begin_outside_of_calls(c);
    places_verify_all(c);
    own_verify_all(c);
    memset(c->held, 0, sizeof(c->held));
    memset(c->own, 0, sizeof(c->own));
    memset(c->reservations, 0, sizeof(c->reservations));
    for (uint64_t n = below(c, 20); n > 0; n--) {
        if (one_in(&c->random, 2))
            own_operation(c);
        else
            place_operation(c);
        atomic_fetch_add(&c->me->done, 1);
    }
    if (one_in(&c->random, 2))
        leave(c);
    else
        atomic_store(&c->me->doomed, true); /* as if it were killed */
    _exit(EXIT_SUCCESS);
}

static void have_a_child(struct client *c)
{
    struct member *member = &shared->members[c->number + CLIENTS];
    pid_t nobody = 0;
    int status = 0;
    pid_t pid;

    /* the child of a former incarnation may still be there */
    if (!atomic_compare_exchange_strong(&member->pid, &nobody, getpid()))
        return;
    atomic_fetch_add(&member->incarnation, 1);
    atomic_store(&member->doomed, false);
    pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        atomic_store(&member->pid, getpid());
        c->number += CLIENTS;
        c->me = member;
        c->incarnation = atomic_load(&member->incarnation);
        c->random.state ^= (uint64_t)getpid() << 20;
        live_as_a_child(c);
    }
    MUST(waitpid(pid, &status, 0) == pid);
    atomic_fetch_add(&shared->figures.forks, 1);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && atomic_load(&member->doomed))
        status = 0;
    /* whatever was wrong has been said by it */
    if (status && WIFSIGNALED(status))
        complain("a child made by fork() died of signal %d", WTERMSIG(status));
    atomic_store(&member->pid, 0);
}

/* ---- work and rest ----------------------------------------------------------------------------------------------- */

static void something(struct client *c)
{
    uint64_t which = below(c, 1000);

    if (which < 560)
        place_operation(c);
    else if (which < 640)
        place_receive(c);
    else if (which < 860)
        own_operation(c);
    else if (which < 985)
        ask_something(c);
    else if (which < 998)
        have_a_child(c);
    else {
        leave(c);
        connect_it(c);
    }
}

static void count(struct client *c)
{
    places_drop_stale(c);
    DO(memclient_broker_ping(c->ctx)); /* what was given up has arrived */
    c->me->handles = c->me->buffers = c->me->reservations = 0;
    c->me->bytes = 0;
    for (unsigned i = 0; i < PLACES; i++)
        c->me->handles += c->held[i].buf != NULL;
    for (unsigned i = 0; i < OWN_BUFFERS; i++) {
        c->me->ids[i] = c->own[i].buf ? memclient_buffer_id(c->own[i].buf) : 0;
        if (c->own[i].buf) {
            c->me->handles++;
            c->me->buffers++;
            c->me->bytes += c->own[i].size;
        }
    }
    for (unsigned i = 0; i < OWN_RESERVATIONS; i++)
        c->me->reservations += c->reservations[i] != NULL;
}

static void rest(struct client *c)
{
    uint32_t round = atomic_load(&shared->round);

    atomic_store(&c->me->resting, round);
    while (atomic_load(&shared->phase) == PHASE_REST)
        wait_a_moment();
    if (atomic_load(&shared->phase) != PHASE_COUNT)
        return;
    count(c);
    atomic_store(&c->me->counted, round);
    while (atomic_load(&shared->phase) == PHASE_COUNT)
        wait_a_moment();
}

void torture_client(int channel, void *context)
{
    struct client *c = calloc(1, sizeof(*c));

    (void)channel;
    CHECK(c != NULL);
    c->start = context;
    c->number = c->start->number;
    c->me = &shared->members[c->number];
    c->incarnation = atomic_load(&c->me->incarnation);
    c->random.state = c->start->seed | 1;
    begin_outside_of_calls(c);
    connect_it(c);
    for (;;) {
        int phase = atomic_load(&shared->phase);

        if (phase == PHASE_END)
            break;
        if (phase == PHASE_REST) {
            rest(c);
            continue;
        }
        something(c);
        atomic_fetch_add(&c->me->done, 1);
    }
    leave(c);
    free(c);
}
