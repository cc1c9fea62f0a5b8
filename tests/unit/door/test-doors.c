/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's side of the doors, with a spawner and doors as they are. What a hostile user can do to them is in
 * tests/integration/hostile/test-alien-descriptor.c.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door/doors.h"
#include "door/spawner.h"
#include "log/log.h"
#include "proto/door.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/door/later.h"

#define SESSION 7
#define UID     1000
/* Processes of users who are no administrators. */
#define PROCESSES_MAX 128

static struct spawner spawner;
static struct doors *doors;
/* What a test could not end: a compiler must not take it for unused, nor a leak checker for lost. */
static struct doors *volatile left;

static int setup(void **state)
{
    const struct doors_options options = {.spawner = &spawner, .administrator = UID + 1};

    later = 0;
    assert_int_equal(spawner_start(&spawner, -1), 0);
    assert_int_equal(doors_new(&doors, &options), 0);
    return 0;
}

/* Everything is over after some time. */
static bool nothing_is_left(void)
{
    for (unsigned n = 0; n < 10000; n++) {
        later += 100;
        if (!doors_tick(doors))
            return true;
        wait_a_moment();
    }
    return false;
}

static int teardown(void **state)
{
    /* what is to be closed stays if no door can be started */
    assert_true(spawner.link < 0 || nothing_is_left());
    if (spawner.link < 0)
        left = doors;
    else
        free(doors);
    spawner_stop(&spawner);
    return 0;
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

/* Children of this process that are called so, dead or alive; the last one's pid. */
static unsigned count_processes(const char *name, pid_t *last)
{
    char path[64];
    unsigned n = 0;
    FILE *list;
    int pid;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    list = fopen(path, "re");
    if (!list)
        test_skip("this kernel does not list children");
    while (fscanf(list, "%d", &pid) == 1) {
        char comm[32] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        f = fopen(path, "re");
        if (f && fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name)) && (n++, last))
            *last = pid;
        if (f)
            fclose(f);
    }
    fclose(list);
    return n;
}

static unsigned count_doors(void)
{
    return count_processes("memoryd-door", NULL);
}

static int ask(uid_t uid, int *status)
{
    struct problem problem = PROBLEM_NULL;
    int fd = -1;

    *status = doors_serve(doors, uid, SESSION, &fd, &problem);
    assert_true(!*status == (fd >= 0));
    assert_true(!*status || strlen(problem.sentence) > 10);
    return fd;
}

static void show(int socket, enum door_kind kind, int fd)
{
    uint8_t packet[MEMORYD_DOOR_REQUEST];

    door_request_encode(packet, kind);
    assert_int_equal(fd_send(socket, packet, sizeof(packet), &fd, 1, 0), sizeof(packet));
}

static struct door_answer hear(int socket)
{
    uint8_t packet[DOOR_ANSWER_MAX];
    struct door_answer answer = {.status = STATUS_PROTOCOL};
    ssize_t n;

    assert_true(wait_readable(socket));
    n = recv(socket, packet, sizeof(packet), 0);
    assert_true(n <= 0 || door_answer_decode(packet, (size_t)n, &answer));
    return answer;
}

static int memory_new(size_t size)
{
    int fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_ok(fd);
    assert_ok(ftruncate(fd, (off_t)size));
    return fd;
}

static struct door_answer show_memory_once(uid_t uid, enum door_kind kind, int memory)
{
    int status;
    FD_AUTO int socket = ask(uid, &status);

    assert_int_equal(status, STATUS_OK);
    show(socket, kind, memory);
    return hear(socket);
}

/*
 * Shows memory at the door of this user. Its ticket. A door that dies as soon as it was started may still seem to be
 * there, while its spawner has not closed the other end: who was sent to it hears nothing, and asks again, as clients
 * do.
 */
static uint64_t show_memory(uid_t uid, enum door_kind kind, int memory)
{
    struct door_answer answer;

    (void)WAIT_UNTIL((answer = show_memory_once(uid, kind, memory)).status != STATUS_PROTOCOL);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_not_equal(answer.ticket, 0);
    return answer.ticket;
}

static int redeem(uid_t uid, uint64_t ticket, bool memory, struct handle_shown *ret)
{
    struct problem problem = PROBLEM_NULL;

    return doors_redeem(doors, uid, SESSION, ticket, memory, ret, &problem);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void what_is_shown_is_known_by_its_ticket(void **state)
{
    FD_AUTO int memory = memory_new(4096);
    struct handle_shown shown;
    struct handle_identity identity;
    uint64_t ticket = show_memory(UID, DOOR_IMPORT, memory);

    assert_int_equal(handle_identity(memory, &identity), 0);
    assert_int_equal(redeem(UID + 5, ticket, false, &shown), STATUS_TICKET_STALE);
    assert_int_equal(redeem(UID, ticket, true, &shown), STATUS_TICKET_STALE);
    assert_int_equal(redeem(UID, ticket, false, &shown), 0);
    assert_true(shown.identity.ino == identity.ino && shown.identity.dev == identity.dev);
    assert_int_equal(shown.identity.size, 4096);
    assert_true(shown.writable);
    assert_int_equal(shown.fd, -1);
    assert_int_equal(redeem(UID, ticket, false, &shown), STATUS_TICKET_STALE);
    assert_int_equal(count_doors(), 1);
}

/* No more is known than the descriptor allows. */
static void I2_a_reader_is_no_writer(void **state)
{
    FD_AUTO int memory = memory_new(4096);
    FD_AUTO int reader = fd_reopen(memory, O_RDONLY | O_CLOEXEC);
    FD_AUTO int writer = fd_reopen(memory, O_WRONLY | O_CLOEXEC);
    FD_AUTO int by_path = fd_reopen(memory, O_PATH | O_CLOEXEC);
    struct handle_shown shown;
    int status;
    FD_AUTO int socket = ask(UID, &status);

    assert_int_equal(redeem(UID, show_memory(UID, DOOR_IMPORT, reader), false, &shown), 0);
    assert_false(shown.writable);
    show(socket, DOOR_IMPORT, by_path);
    assert_int_equal(hear(socket).status, STATUS_FD_FOREIGN);
    show(socket, DOOR_IMPORT, writer);
    assert_int_equal(hear(socket).status, STATUS_FD_FOREIGN);
}

static bool has_no_other(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return false;
    assert_ok(fcntl(fd, F_SETLEASE, F_UNLCK));
    return true;
}

/* It is the door that closes memory which nobody else has any more, since that takes long. */
static void I7_what_nobody_asks_for_ends_in_the_door(void **state)
{
    int made = memory_new(4096);
    FD_AUTO int memory = fd_reopen(made, O_RDWR | O_CLOEXEC); /* the kernel does not count the one that made it */
    int other = fd_reopen(made, O_RDWR | O_CLOEXEC);
    struct door_answer answer;
    struct handle_shown shown;
    pid_t door;
    int status;
    FD_AUTO int socket = ask(UID, &status);

    close(made);
    show(socket, DOOR_ADOPT, other);
    answer = hear(socket);
    close(other);
    assert_int_equal(redeem(UID, answer.ticket + 1, true, &shown), STATUS_TICKET_STALE);
    /* it has closed its own, and would not be taken for one that hangs */
    assert_true(WAIT_UNTIL(!atomic_load(&spawner_state(&spawner, 0)->busy_since)));
    assert_int_equal(count_processes("memoryd-door", &door), 1);
    assert_ok(kill(door, SIGSTOP));
    assert_int_equal(waitid(P_PID, (id_t)door, &(siginfo_t){0}, WSTOPPED), 0);
    later = 11;
    assert_true(doors_tick(doors));
    assert_int_equal(redeem(UID, answer.ticket, true, &shown), STATUS_TICKET_STALE);
    assert_false(has_no_other(memory));
    assert_ok(kill(door, SIGCONT));
    assert_true(WAIT_UNTIL(has_no_other(memory)));
}

static void what_is_to_be_closed_ends_in_the_door(void **state)
{
    int ends[2];
    unsigned all;

    assert_ok(pipe(ends));
    doors_end(doors, UID, ends[1]);
    assert_true(wait_readable(ends[0]));
    assert_int_equal(read(ends[0], &(char){0}, 1), 0);
    assert_int_equal(doors_unended(doors, UID, &all), 0);
    close(ends[0]);
}

static void a_door_that_nobody_uses_ends(void **state)
{
    FD_AUTO int memory = memory_new(4096);

    (void)show_memory(UID, DOOR_IMPORT, memory);
    later = 50;
    assert_true(doors_tick(doors));
    (void)show_memory(UID, DOOR_IMPORT, memory);
    later = 100;
    assert_true(doors_tick(doors));
    assert_int_equal(count_doors(), 1);
    later = 111;
    assert_true(nothing_is_left());
    assert_int_equal(count_doors(), 0);
    (void)show_memory(UID, DOOR_IMPORT, memory);
}

static void a_door_that_was_killed_is_replaced(void **state)
{
    FD_AUTO int memory = memory_new(4096);
    struct handle_shown shown;
    uint64_t ticket = show_memory(UID, DOOR_IMPORT, memory);
    pid_t pid;

    assert_int_equal(count_processes("memoryd-door", &pid), 1);
    assert_ok(kill(pid, SIGKILL));
    /* what it said counts, whether its end has been noticed or not */
    assert_int_equal(redeem(UID, ticket, false, &shown), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    for (int n = 0; n < 3; n++) {
        ticket = show_memory(UID, DOOR_IMPORT, memory);
        assert_int_equal(count_processes("memoryd-door", &pid), 1);
        assert_ok(kill(pid, SIGKILL));
        assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    }
    assert_int_equal(redeem(UID, ticket, false, &shown), 0);
}

/* The broker does not wait for it, and does not give it up. */
static void I7_a_slow_spawner_delays_who_needs_it_only(void **state)
{
    FD_AUTO int memory = memory_new(4096);
    int status;

    assert_ok(kill(spawner.pid, SIGSTOP));
    {
        FD_AUTO int socket = ask(UID, &status);
        FD_AUTO int second = ask(UID, &status);

        assert_int_equal(status, STATUS_OK);
        show(socket, DOOR_IMPORT, memory);
        later = 5;
        assert_true(doors_tick(doors));
        assert_int_equal(count_doors(), 0);
        assert_ok(kill(spawner.pid, SIGCONT));
        assert_int_equal(hear(socket).status, STATUS_OK);
        show(second, DOOR_IMPORT, memory);
        assert_int_equal(hear(second).status, STATUS_OK);
    }
    assert_int_equal(count_doors(), 1);
}

static void without_a_spawner_all_is_refused(void **state)
{
    unsigned all;
    int ends[2];
    int status;

    assert_ok(kill(spawner.pid, SIGSTOP));
    close(ask(UID, &status));
    assert_int_equal(status, STATUS_OK);
    assert_ok(kill(spawner.pid, SIGKILL));
    assert_int_equal(waitid(P_PID, (id_t)spawner.pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    for (int n = 0; n < 3; n++) {
        (void)ask(UID, &status);
        assert_int_equal(status, STATUS_NO_MEMORY);
    }
    assert_ok(pipe(ends));
    doors_end(doors, UID, ends[1]);
    assert_int_equal(doors_unended(doors, UID, &all), 1);
    assert_int_equal(doors_unended(doors, UID + 1, &all), 0);
    assert_int_equal(all, 1);
    close(ends[0]);
    close(ends[1]);
}

/* Whoever comes has a door; the one that was not used for longest makes room, when it has ended. */
static void I7_there_are_a_bounded_number(void **state)
{
    FD_AUTO int memory = memory_new(4096);
    int status;

    for (unsigned n = 0; n < 2 * PROCESSES_MAX; n++) {
        assert_true(WAIT_UNTIL((fd_close(ask(UID + 100 + n, &status)), status != STATUS_LIMIT)));
        (void)show_memory(UID + 100 + n, DOOR_IMPORT, memory);
        assert_true(count_doors() <= PROCESSES_MAX);
    }
    (void)show_memory(0, DOOR_IMPORT, memory);
    (void)show_memory(UID + 1, DOOR_IMPORT, memory);
}

/* A client that asks for very much takes nothing from others, and is told. */
static void I7_what_a_door_has_not_taken_is_bounded(void **state)
{
    FD_AUTO int memory = memory_new(4096);
    unsigned n = 0;
    int status;

    assert_ok(kill(spawner.pid, SIGSTOP));
    do {
        assert_true(n++ < 10000);
        fd_close(ask(UID, &status));
    } while (status == STATUS_OK);
    assert_int_equal(status, STATUS_LIMIT);
    assert_ok(kill(spawner.pid, SIGCONT));
    (void)show_memory(UID + 2, DOOR_IMPORT, memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_shown_is_known_by_its_ticket),
        TEST(I2_a_reader_is_no_writer),
        TEST(I7_what_nobody_asks_for_ends_in_the_door),
        TEST(what_is_to_be_closed_ends_in_the_door),
        TEST(a_door_that_nobody_uses_ends),
        TEST(a_door_that_was_killed_is_replaced),
        TEST(I7_a_slow_spawner_delays_who_needs_it_only),
        TEST(without_a_spawner_all_is_refused),
        TEST(I7_there_are_a_bounded_number),
        TEST(I7_what_a_door_has_not_taken_is_bounded),
    };

    log_init();
    return test_run(tests, NULL, NULL);
}
