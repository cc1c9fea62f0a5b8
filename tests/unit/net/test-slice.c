/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is waited for, and who waits meanwhile: on a clock that goes forward by what tasks cost and how long is waited.
 * Callers ask again some time after each answer. Whoever works always has more to do.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/clock.h"
#include "net/slice.h"

#define CALL_NS  (5 * NSEC_PER_USEC)  /* what a request of a caller costs, */
#define LOOK_NS  NSEC_PER_USEC        /* to look whether there is one, */
#define WORK_NS  (30 * NSEC_PER_USEC) /* and a task of whoever works */
#define TURN_NS  (2 * NSEC_PER_USEC)
#define THINK_NS (8 * NSEC_PER_USEC)

enum { CALLERS = 5, TASKS = 64 };

struct caller {
    struct fair_flow flow;
    struct fair_task task;
    uint64_t cost, think;
    uint64_t asks_at;      /* the next time */
    unsigned served, late; /* requests, and of these, which others were served before */
    unsigned work_before;  /* what had been done when it was answered last */
    bool with_work;        /* what it does is work */
};

static struct fair_queue queue;
static struct caller callers[CALLERS];
static unsigned n_callers;
static struct fair_flow worker;
static struct fair_task tasks[TASKS];
static uint64_t now, worked;  /* ns */
static unsigned work, awaits; /* tasks done, and how often somebody was waited for */
static bool answers;          /* each task is a request, and more of the same connection have come */

static uint64_t fake_now(void)
{
    return now;
}

static bool fake_await(struct fair_task *task, uint64_t ns)
{
    const struct caller *caller = container_of(task, struct caller, task);

    awaits++;
    if (caller->asks_at > now + ns) {
        now += ns;
        return false;
    }
    if (caller->asks_at > now)
        now = caller->asks_at;
    return true;
}

static const struct fair_clocks clocks = {.now = fake_now, .used = fake_now, .await = fake_await};

static void caller_run(struct fair_task *task)
{
    struct caller *caller = container_of(task, struct caller, task);

    if (caller->asks_at > now) {
        now += LOOK_NS; /* nothing is there */
        return;
    }
    caller->served++;
    caller->late += work != caller->work_before;
    now += caller->cost;
    work += caller->with_work;
    caller->work_before = work;
    caller->asks_at = now + caller->think;
    fair_queue_add(&queue, &caller->flow, task);
    fair_flow_answered(&caller->flow, task);
}

static void task_run(struct fair_task *task)
{
    now += WORK_NS;
    worked += WORK_NS;
    work++;
    fair_queue_add(&queue, &worker, task);
    if (!answers)
        return;
    fair_queue_put_first(&worker, task);
    fair_flow_answered(&worker, task);
}

static int setup(void **state)
{
    now = NSEC_PER_SEC;
    worked = work = awaits = n_callers = 0;
    answers = false;
    memset(callers, 0, sizeof(callers));
    memset(tasks, 0, sizeof(tasks));
    fair_queue_init(&queue, &clocks);
    fair_flow_init(&worker);
    return 0;
}

static struct caller *add_caller(uint64_t cost, uint64_t think)
{
    struct caller *caller = &callers[n_callers++];

    caller->cost = cost;
    caller->think = think;
    caller->asks_at = now;
    fair_flow_init(&caller->flow);
    fair_task_init(&caller->task, caller_run);
    caller->task.is_source = true;
    return caller;
}

static void begin_work(void)
{
    for (unsigned i = 0; i < TASKS; i++) {
        fair_task_init(&tasks[i], task_run);
        fair_queue_add(&queue, &worker, &tasks[i]);
    }
}

/* What the loop does: it looks who has asked, and serves for a turn. */
static void run_for(uint64_t ns)
{
    const uint64_t end = now + ns;

    while (now < end) {
        uint64_t next = UINT64_MAX;

        for (unsigned i = 0; i < n_callers; i++) {
            if (callers[i].asks_at <= now)
                fair_queue_add(&queue, &callers[i].flow, &callers[i].task);
            if (callers[i].asks_at < next)
                next = callers[i].asks_at;
        }
        if (fair_queue_is_empty(&queue))
            now = next;
        else
            (void)fair_queue_run(&queue, TURN_NS);
    }
}

static void I7_fewer_than_one_in_a_hundred_calls_waits_for_work(void **state)
{
    struct caller *caller = add_caller(CALL_NS, THINK_NS);

    begin_work();
    run_for(1000 * NSEC_PER_MSEC);
    print_message("%u calls, of which %u waited; %u tasks\n", caller->served, caller->late, work);
    assert_in_range(caller->served, 30000, 50000);
    assert_in_range(caller->late, 1, caller->served / 100);
    /* who works has its half */
    assert_in_range(worked, 450 * NSEC_PER_MSEC, 550 * NSEC_PER_MSEC);
}

static void I7_work_does_not_wait_for_longer_than_a_slice(void **state)
{
    struct caller *caller = add_caller(CALL_NS, THINK_NS);

    begin_work();
    run_for(10 * NSEC_PER_MSEC);
    for (unsigned i = 0; i < 100; i++) {
        unsigned before = caller->served, done = work;
        uint64_t begin = now;

        while (work == done)
            run_for(1);
        assert_in_range(caller->served - before, 0, SLICE_TASKS + 1);
        assert_in_range(now - begin, 0, SLICE_MOST_NS + 2 * SLICE_TURN_NS);
    }
}

/* Callers in several processes, of whom none has more to do than its calls, are served as they come. */
static void nobody_is_waited_for_where_nobody_works(void **state)
{
    for (unsigned i = 0; i < CALLERS; i++)
        (void)add_caller(CALL_NS, THINK_NS);
    run_for(100 * NSEC_PER_MSEC);
    assert_int_equal(awaits, 0);
}

static void who_does_not_ask_again_is_waited_for_less_and_less(void **state)
{
    struct caller *caller = add_caller(CALL_NS, NSEC_PER_MSEC);

    begin_work();
    run_for(2000 * NSEC_PER_MSEC);
    assert_in_range(caller->served, 1800, 2000);
    assert_in_range(awaits, 1, 2000 / (1 << SLICE_DOUBLES) + SLICE_DOUBLES + 1);
}

/* However few of its connections are served in a moment, each of them with several requests. */
static void I7_work_is_not_a_caller_because_it_is_answered(void **state)
{
    struct caller *caller = add_caller(CALL_NS, THINK_NS);

    answers = true;
    begin_work();
    run_for(1000 * NSEC_PER_MSEC);
    assert_in_range(caller->late, 1, caller->served / 100);
}

/* It costs one wait, and then the others' turn comes. */
static void who_asks_again_most_times_is_waited_for(void **state)
{
    struct caller *caller = add_caller(CALL_NS, THINK_NS);

    begin_work();
    for (unsigned i = 0; i < 100; i++) {
        run_for(3 * NSEC_PER_MSEC);
        caller->asks_at = now + 100 * NSEC_PER_USEC;
    }
    print_message("%u calls, of which %u waited\n", caller->served, caller->late);
    assert_in_range(caller->served, 5000, 15000);
    assert_in_range(caller->late, 50, 300);
}

/* One in a hundred would wait then, and for longer than before. */
static void who_asks_too_slowly_for_a_slice_gets_none(void **state)
{
    struct caller *caller = add_caller(20 * NSEC_PER_USEC, 25 * NSEC_PER_USEC);

    begin_work();
    run_for(1000 * NSEC_PER_MSEC);
    assert_in_range(caller->late, caller->served / 2, caller->served);
}

static void who_asks_now_and_then_waits_for_nobodys_slice(void **state)
{
    struct caller *caller = add_caller(CALL_NS, THINK_NS);
    struct caller *rare = add_caller(CALL_NS, 500 * NSEC_PER_USEC);

    begin_work();
    run_for(20 * NSEC_PER_MSEC);
    for (unsigned i = 0; i < 200; i++) {
        unsigned served = rare->served;
        uint64_t asked_at = rare->asks_at;

        while (rare->served == served)
            run_for(1);
        assert_in_range(now - asked_at, 0, SLICE_TURN_NS + SLICE_WAIT_NS + 3 * WORK_NS);
    }
    assert_in_range(caller->late, 1, caller->served / 50);
}

static void I7_callers_and_who_works_have_equal_parts(void **state)
{
    unsigned least = UINT32_MAX, most = 0;

    for (unsigned i = 0; i < 3; i++)
        (void)add_caller(CALL_NS, THINK_NS);
    begin_work();
    run_for(400 * NSEC_PER_MSEC);
    for (unsigned i = 0; i < n_callers; i++) {
        least = callers[i].served < least ? callers[i].served : least;
        most = callers[i].served > most ? callers[i].served : most;
        assert_in_range(callers[i].late, 1, callers[i].served / 50);
    }
    assert_in_range(least, most * 3 / 4, most);
    assert_in_range(worked, 80 * NSEC_PER_MSEC, 130 * NSEC_PER_MSEC);
}

/*
 * Those who connect come one at a time, and nobody has more to do then; but they come all the time. A user who calls as
 * often is served as it comes.
 */
static void run_beside_who_comes_often(bool shared, struct caller **ret_caller)
{
    struct caller *often;

    *ret_caller = add_caller(CALL_NS, THINK_NS);
    often = add_caller(7 * NSEC_PER_USEC, 35 * NSEC_PER_USEC);
    often->with_work = true;
    often->flow.shared = shared;
    run_for(500 * NSEC_PER_MSEC);
}

static void I7_those_who_connect_all_the_time_wait_for_slices(void **state)
{
    struct caller *caller;

    run_beside_who_comes_often(true, &caller);
    assert_in_range(caller->late, 1, caller->served / 50);
    setup(state);
    run_beside_who_comes_often(false, &caller);
    assert_in_range(caller->late, caller->served / 10, caller->served);
    assert_int_equal(awaits, 0);
}

static void a_user_may_leave_in_its_slice(void **state)
{
    struct caller *caller = add_caller(CALL_NS, THINK_NS);

    begin_work();
    while (queue.slice.holder != &caller->flow)
        run_for(1);
    n_callers = 0;
    fair_queue_remove(&queue, &caller->flow, &caller->task);
    fair_flow_remove(&queue, &caller->flow);
    assert_null(queue.slice.holder);
    run_for(10 * NSEC_PER_MSEC);
    assert_in_range(worked, 9 * NSEC_PER_MSEC, 20 * NSEC_PER_MSEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(I7_fewer_than_one_in_a_hundred_calls_waits_for_work, setup),
        cmocka_unit_test_setup(I7_work_does_not_wait_for_longer_than_a_slice, setup),
        cmocka_unit_test_setup(I7_work_is_not_a_caller_because_it_is_answered, setup),
        cmocka_unit_test_setup(nobody_is_waited_for_where_nobody_works, setup),
        cmocka_unit_test_setup(who_does_not_ask_again_is_waited_for_less_and_less, setup),
        cmocka_unit_test_setup(who_asks_again_most_times_is_waited_for, setup),
        cmocka_unit_test_setup(who_asks_too_slowly_for_a_slice_gets_none, setup),
        cmocka_unit_test_setup(who_asks_now_and_then_waits_for_nobodys_slice, setup),
        cmocka_unit_test_setup(I7_callers_and_who_works_have_equal_parts, setup),
        cmocka_unit_test_setup(I7_those_who_connect_all_the_time_wait_for_slices, setup),
        cmocka_unit_test_setup(a_user_may_leave_in_its_slice, setup),
    };

    return test_run(tests, NULL, NULL);
}
