/* SPDX-License-Identifier: Apache-2.0 */
/* How far a process is that was killed, as files in the form of the kernel's /proc tell it. */
#include "tests/support/files.h"
#include "tests/support/test.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "sys/death.h"
#include "sys/sys.h"

#define PID     70
#define KILLED  "0000000000000100"
#define NOTHING "0000000000000000"
#define EXITING 0x4

static struct sys_calls calls;

static int set_up(void **state)
{
    calls = sys_kernel;
    calls.proc = files_root;
    sys = &calls;
    return files_set_up(state);
}

static int clean_up(void **state)
{
    sys = &sys_kernel;
    return files_clean_up(state);
}

/* `call` < 0: it is not shown. */
static void put_thread(int thread, char state, unsigned flags, const char *own, const char *shared, long call)
{
    char path[64];
    char text[256];

    (void)snprintf(path, sizeof(path), "%d/task/%d/stat", PID, thread);
    /* a name that was made to confuse */
    (void)snprintf(text, sizeof(text), "%d (a) Z 1 1 (b) %c 1 70 70 0 -1 %u 0 0\n", thread, state, flags);
    files_put(path, text);
    (void)snprintf(path, sizeof(path), "%d/task/%d/status", PID, thread);
    (void)snprintf(text, sizeof(text), "Name:\tx\nState:\t%c\nSigPnd:\t%s\nShdPnd:\t%s\nSigBlk:\t" KILLED "\n", state,
                   own, shared);
    files_put(path, text);
    (void)snprintf(path, sizeof(path), "%d/task/%d/syscall", PID, thread);
    (void)snprintf(text, sizeof(text), "%ld 0x5 0x0 0x7ffc\n", call);
    files_put(path, call < 0 ? "running\n" : text);
}

static enum death ask(void)
{
    struct death_cause cause;

    return process_death(PID, &cause);
}

static void what_is_not_there_is_done(void **state)
{
    (void)state;
    assert_int_equal(ask(), DEATH_DONE);
    put_thread(70, 'Z', EXITING, NOTHING, NOTHING, -1);
    put_thread(71, 'X', EXITING, NOTHING, NOTHING, -1);
    assert_int_equal(ask(), DEATH_DONE);
}

static void who_may_run_on_is_not_dead(void **state)
{
    (void)state;
    put_thread(70, 'Z', EXITING, NOTHING, NOTHING, -1);
    /* whatever it waits for */
    put_thread(71, 'D', 0, NOTHING, NOTHING, SYS_close);
    assert_int_equal(ask(), DEATH_NONE);
    put_thread(71, 'S', 0, NOTHING, NOTHING, SYS_poll);
    assert_int_equal(ask(), DEATH_NONE);
    /* that is only blocked: */
    put_thread(71, 'R', 0, "0000000000004000", "0000000000004000", -1);
    assert_int_equal(ask(), DEATH_NONE);
    /* one is enough */
    put_thread(72, 'D', 0, KILLED, NOTHING, SYS_close);
    assert_int_equal(ask(), DEATH_NONE);
}

static void one_under_sigkill_that_waits_hangs(void **state)
{
    struct death_cause cause;

    (void)state;
    put_thread(70, 'Z', EXITING, NOTHING, KILLED, -1);
    put_thread(71, 'D', 0, NOTHING, KILLED, SYS_close);
    assert_int_equal(process_death(PID, &cause), DEATH_HANGS);
    assert_int_equal(cause.thread, 71);
    assert_int_equal(cause.call, SYS_close);
    put_thread(71, 'D', 0, KILLED, NOTHING, SYS_recvmsg);
    assert_int_equal(ask(), DEATH_HANGS);
    /* the last one to end closes everything, and has taken the signal */
    put_thread(71, 'D', EXITING, NOTHING, NOTHING, SYS_futex);
    assert_int_equal(ask(), DEATH_HANGS);
}

static void one_in_a_call_about_memory_works(void **state)
{
    static const long memory[] = {SYS_fallocate, SYS_fcntl, SYS_madvise, SYS_mbind, SYS_munmap, SYS_ftruncate};
    struct death_cause cause;

    (void)state;
    put_thread(70, 'D', 0, KILLED, NOTHING, SYS_close);
    for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++) {
        put_thread(71, 'D', 0, KILLED, NOTHING, memory[i]);
        assert_int_equal(process_death(PID, &cause), DEATH_WORKS);
        assert_int_equal(cause.thread, 71);
        assert_int_equal(cause.call, memory[i]);
    }
    /* what it does is not shown, or it runs: on its way to its end */
    put_thread(71, 'D', 0, KILLED, NOTHING, -1);
    assert_int_equal(ask(), DEATH_WORKS);
    put_thread(71, 'R', EXITING, NOTHING, NOTHING, -1);
    assert_int_equal(ask(), DEATH_WORKS);
    put_thread(71, 'S', 0, KILLED, NOTHING, SYS_close);
    assert_int_equal(ask(), DEATH_WORKS);
}

static void what_cannot_be_read_is_not_dead(void **state)
{
    (void)state;
    files_put("70/task/70/stat", "70 no brackets");
    assert_int_equal(ask(), DEATH_NONE);
    files_put("70/task/70/stat", "70 (x) D");
    assert_int_equal(ask(), DEATH_NONE);
    put_thread(71, 'Z', EXITING, NOTHING, NOTHING, -1);
    assert_int_equal(ask(), DEATH_NONE);
}

/* More than one listing has room for. */
static void the_last_of_many_counts(void **state)
{
    (void)state;
    for (int thread = 70; thread < 270; thread++)
        put_thread(thread, 'D', 0, KILLED, NOTHING, SYS_close);
    assert_int_equal(ask(), DEATH_HANGS);
    for (int thread = 70; thread < 270; thread += 33) {
        put_thread(thread, 'R', 0, NOTHING, NOTHING, -1);
        assert_int_equal(ask(), DEATH_NONE);
        put_thread(thread, 'Z', 0, NOTHING, NOTHING, -1);
    }
}

/* This very process. */
static void the_kernel_writes_it_so(void **state)
{
    struct death_cause cause;

    (void)state;
    sys = &sys_kernel;
    assert_int_equal(process_death(getpid(), &cause), DEATH_NONE);
    assert_int_equal(cause.thread, getpid());
}

#define with_files(test) cmocka_unit_test_setup_teardown(test, set_up, clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_files(what_is_not_there_is_done),
        with_files(who_may_run_on_is_not_dead),
        with_files(one_under_sigkill_that_waits_hangs),
        with_files(one_in_a_call_about_memory_works),
        with_files(what_cannot_be_read_is_not_dead),
        with_files(the_last_of_many_counts),
        with_files(the_kernel_writes_it_so),
    };

    return test_run(tests, NULL, NULL);
}
