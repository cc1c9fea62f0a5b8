/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users take turns by the time that they use: on a clock that goes forward only by what the tasks cost.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "net/fair_queue.h"

#define USEC  1000
#define TASKS 64

struct user {
    struct fair_flow flow;
    uint64_t used; /* ns */
    unsigned ran;
};

struct job {
    struct fair_task task;
    struct user *user;
    uint64_t cost;
    unsigned left; /* so often it comes again */
    bool stays_first;
    bool is_slice; /* no request */
};

static struct fair_queue queue;
static struct user many, few;
static struct job jobs[2 * TASKS];
static unsigned n_jobs;
static uint64_t now;
static uint64_t away;    /* ns in which another process had the processor */
static char order[4096]; /* who ran: m or f */

static uint64_t fake_now(void)
{
    return now;
}

static uint64_t fake_used(void)
{
    return now - away;
}

static const struct fair_clocks clocks = {.now = fake_now, .used = fake_used};

static void job_run(struct fair_task *task)
{
    struct job *job = container_of(task, struct job, task);
    size_t n = strlen(order);

    if (!job->is_slice)
        fair_queue_note_request(&queue);
    now += job->cost;
    job->user->used += job->cost;
    job->user->ran++;
    if (n + 1 < sizeof(order))
        order[n] = job->user == &many ? 'm' : 'f';
    if (!job->left)
        return;
    job->left--;
    fair_queue_add(&queue, &job->user->flow, &job->task);
    if (job->stays_first)
        fair_queue_put_first(&job->user->flow, &job->task);
}

static struct job *job_add(struct user *user, uint64_t cost, unsigned times)
{
    struct job *job = &jobs[n_jobs++];

    *job = (struct job){.user = user, .cost = cost, .left = times - 1};
    fair_task_init(&job->task, job_run);
    fair_queue_add(&queue, &user->flow, &job->task);
    return job;
}

static int setup(void **state)
{
    n_jobs = 0;
    now = 1000000;
    away = 0;
    memset(order, 0, sizeof(order));
    memset(&many, 0, sizeof(many));
    memset(&few, 0, sizeof(few));
    fair_queue_init(&queue, &clocks);
    fair_flow_init(&many.flow);
    fair_flow_init(&few.flow);
    return 0;
}

static void nothing_to_do_takes_no_time(void **state)
{
    assert_false(fair_queue_run(&queue, UINT64_MAX));
    assert_true(fair_queue_is_empty(&queue));
}

/* Two of its own always wait, as of one that has several connections. */
static void I7_two_connections_have_as_much_as_a_thousand(void **state)
{
    for (unsigned i = 0; i < TASKS; i++)
        job_add(&many, 3 * USEC, 100);
    job_add(&few, 3 * USEC, 100);
    job_add(&few, 3 * USEC, 100);
    while (few.ran < 100)
        assert_true(fair_queue_run(&queue, 50 * USEC));
    assert_in_range(many.ran, 90, 110);
}

/* It cannot ask before it has its answer: it waits for one task of the other at most, though these are cheaper. */
static void I7_who_waits_for_each_answer_waits_for_one_task(void **state)
{
    for (unsigned i = 0; i < TASKS; i++)
        job_add(&many, 5 * USEC, 1000);
    job_add(&few, 8 * USEC, 1000);
    while (few.ran < 1000)
        assert_true(fair_queue_run(&queue, 1));
    assert_null(strstr(strchr(order, 'f'), "mm"));
    assert_in_range(many.used, few.used / 2 - 20 * USEC, few.used / 2 + 20 * USEC);
}

/* Work in slices, or accepting who connects: nobody waits for it before the next comes. */
static void only_a_request_costs_half(void **state)
{
    job_add(&many, 2 * USEC, 10000)->is_slice = true;
    job_add(&few, 2 * USEC, 1000);
    while (few.ran < 1000)
        assert_true(fair_queue_run(&queue, 1));
    assert_in_range(many.ran, 480, 520);
}

static struct fair_flow accepting_flow;
static struct fair_task accepting;

/* What `many` connect costs, who do nothing else but that, as much as they can. */
static void accepting_run(struct fair_task *task)
{
    now += 4 * USEC;
    fair_queue_charge(&queue, &many.flow);
    fair_queue_add(&queue, &accepting_flow, task);
}

static void I7_who_causes_a_task_of_another_flow_pays_for_it(void **state)
{
    fair_flow_init(&accepting_flow);
    fair_task_init(&accepting, accepting_run);
    fair_queue_add(&queue, &accepting_flow, &accepting);
    for (unsigned i = 0; i < 2; i++) {
        job_add(&many, 4 * USEC, 10000);
        job_add(&few, 4 * USEC, 1000);
    }
    while (few.ran < 1000)
        assert_true(fair_queue_run(&queue, 1));
    assert_in_range(many.ran, 480, 520);
    fair_flow_remove(&queue, &accepting_flow);
}

static void I7_dear_tasks_of_one_are_paid_by_cheap_ones_of_another(void **state)
{
    for (unsigned i = 0; i < TASKS; i++)
        job_add(&many, 100 * USEC, 100);
    job_add(&few, 2 * USEC, 1000);
    while (few.ran < 1000)
        assert_true(fair_queue_run(&queue, 50 * USEC));
    /* a half, since one task at a time costs that */
    assert_in_range(many.used, few.used * 9 / 20, few.used / 2 + 200 * USEC);
}

/* One who always has something to do. */
static void keep_busy(void)
{
    job_add(&many, 2 * USEC, 100000);
    assert_true(fair_queue_run(&queue, 100 * USEC));
    memset(order, 0, sizeof(order));
}

/* The first dear task of a busy period has nothing to be compared with, and counts as a cheap one. */
static void look(void)
{
    job_add(&few, 10 * USEC, 1);
    while (!few.ran)
        assert_true(fair_queue_run(&queue, 1));
    few.ran = 0;
    memset(order, 0, sizeof(order));
}

static void a_debt_is_limited(void **state)
{
    keep_busy();
    look();
    job_add(&few, 1000000 * USEC, 2);
    while (!few.ran)
        assert_true(fair_queue_run(&queue, 1));
    many.used = 0;
    while (few.ran < 2)
        assert_true(fair_queue_run(&queue, 1));
    /* both have one task at a time, which costs a half */
    assert_in_range(many.used, 2 * (FAIR_BEHIND_NS - 2 * FAIR_AHEAD_NS), 2 * (FAIR_BEHIND_NS + 2 * FAIR_AHEAD_NS));
}

static struct fair_task preempted;

/* The client whose reply it sent has the processor before the task ends. */
static void preempted_run(struct fair_task *task)
{
    fair_queue_note_request(&queue);
    now += 500 * USEC;
    away += 498 * USEC;
    few.ran++;
    fair_queue_add(&queue, &few.flow, task);
}

static void time_that_another_process_had_is_not_paid(void **state)
{
    keep_busy();
    look();
    many.ran = 0;
    fair_task_init(&preempted, preempted_run);
    fair_queue_add(&queue, &few.flow, &preempted);
    while (few.ran < 10)
        assert_true(fair_queue_run(&queue, 1));
    assert_in_range(many.ran, 0, 25);
}

static void a_debt_ends_when_nobody_has_anything_to_do(void **state)
{
    job_add(&many, 2 * USEC, 1);
    job_add(&few, 150 * USEC, 2);
    assert_false(fair_queue_run(&queue, UINT64_MAX));
    memset(order, 0, sizeof(order));
    job_add(&few, 2 * USEC, 100);
    job_add(&many, 2 * USEC, 100);
    for (unsigned i = 0; i <= FAIR_AHEAD_NS / USEC + 1; i++) /* where both are equal, either may be first */
        assert_true(fair_queue_run(&queue, 1));
    assert_non_null(strchr(order, 'f'));
}

/* Whoever has always just one task, and comes back at once, saves nothing up and loses its debt no sooner. */
static void a_debt_stays_while_others_are_served(void **state)
{
    keep_busy();
    look();
    job_add(&few, 100 * USEC, 1);
    while (few.ran < 1)
        assert_true(fair_queue_run(&queue, 1));
    many.used = 0;
    job_add(&few, 100 * USEC, 1);
    while (few.ran < 2)
        assert_true(fair_queue_run(&queue, 1));
    assert_in_range(many.used, 100 * USEC - 2 * FAIR_AHEAD_NS, 110 * USEC);
}

/* Who asks for little, and then is away until it has its answer, waits for nobody, but keeps nobody from his part. */
static void who_was_away_is_first(void **state)
{
    keep_busy();
    for (unsigned i = 0; i < TASKS; i++) {
        unsigned before = many.ran;

        job_add(&few, 2 * USEC, 1);
        assert_true(fair_queue_run(&queue, 1));
        assert_int_equal(few.ran, i + 1);
        assert_true(fair_queue_run(&queue, 1));
        assert_int_equal(many.ran, before + 1);
    }
}

/* However many of those there are, and however often they come. */
static void who_is_always_there_has_its_part(void **state)
{
    static struct user others[TASKS];
    unsigned turns = 50 * TASKS;

    keep_busy();
    for (unsigned i = 0; i < TASKS; i++) {
        memset(&others[i], 0, sizeof(others[i]));
        fair_flow_init(&others[i].flow);
        job_add(&others[i], 2 * USEC, UINT32_MAX);
    }
    many.ran = 0;
    for (unsigned i = 0; i < turns; i++)
        assert_true(fair_queue_run(&queue, 1));
    /* the others begin with what FAIR_AHEAD_NS allows, at half the price */
    assert_in_range(many.ran, turns / (TASKS + 1) - FAIR_AHEAD_NS / USEC - 3, turns / (TASKS + 1) + 3);
}

static void a_turn_ends_with_its_time(void **state)
{
    uint64_t begin = now;

    for (unsigned i = 0; i < TASKS; i++)
        job_add(&many, 3 * USEC, 100);
    assert_true(fair_queue_run(&queue, 50 * USEC));
    assert_in_range(now - begin, 50 * USEC, 53 * USEC);
    /* and there is one task in each, whatever it takes */
    assert_true(fair_queue_run(&queue, 1));
    assert_int_equal(many.ran, 18);
}

static void tasks_of_a_user_take_turns_unless_they_stay_first(void **state)
{
    struct job *a = job_add(&many, USEC, 3);
    struct job *b = job_add(&many, USEC, 3);

    while (many.ran < 4)
        assert_true(fair_queue_run(&queue, 1));
    assert_int_equal(a->left, b->left);
    setup(state);
    a = job_add(&many, USEC, 3);
    b = job_add(&many, USEC, 3);
    a->stays_first = true;
    while (many.ran < 3)
        assert_true(fair_queue_run(&queue, 1));
    assert_int_equal(a->left, 0);
    assert_int_equal(b->left, 2);
}

static void a_task_is_in_the_queue_once_and_may_be_taken_out(void **state)
{
    struct job *job = job_add(&many, USEC, 1);

    fair_queue_add(&queue, &many.flow, &job->task);
    fair_queue_remove(&queue, &many.flow, &job->task);
    fair_queue_remove(&queue, &many.flow, &job->task);
    assert_true(fair_queue_is_empty(&queue));
    assert_false(fair_queue_run(&queue, UINT64_MAX));
    assert_int_equal(many.ran, 0);
}

struct last_job {
    struct fair_task task;
    struct fair_flow *flow;
};

static void last_run(struct fair_task *task)
{
    struct last_job *job = container_of(task, struct last_job, task);

    fair_flow_remove(&queue, job->flow);
    free(job->flow);
    free(job);
}

static void a_user_may_be_gone_with_its_last_task(void **state)
{
    struct last_job *job = malloc(sizeof(*job));

    assert_non_null(job);
    job->flow = malloc(sizeof(*job->flow));
    assert_non_null(job->flow);
    fair_flow_init(job->flow);
    fair_task_init(&job->task, last_run);
    fair_queue_add(&queue, job->flow, &job->task);
    job_add(&few, USEC, 1);
    assert_false(fair_queue_run(&queue, UINT64_MAX));
    assert_int_equal(few.ran, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_to_do_takes_no_time, setup),
        cmocka_unit_test_setup(I7_two_connections_have_as_much_as_a_thousand, setup),
        cmocka_unit_test_setup(I7_who_waits_for_each_answer_waits_for_one_task, setup),
        cmocka_unit_test_setup(I7_dear_tasks_of_one_are_paid_by_cheap_ones_of_another, setup),
        cmocka_unit_test_setup(a_debt_is_limited, setup),
        cmocka_unit_test_setup(time_that_another_process_had_is_not_paid, setup),
        cmocka_unit_test_setup(a_debt_ends_when_nobody_has_anything_to_do, setup),
        cmocka_unit_test_setup(a_debt_stays_while_others_are_served, setup),
        cmocka_unit_test_setup(who_was_away_is_first, setup),
        cmocka_unit_test_setup(who_is_always_there_has_its_part, setup),
        cmocka_unit_test_setup(only_a_request_costs_half, setup),
        cmocka_unit_test_setup(I7_who_causes_a_task_of_another_flow_pays_for_it, setup),
        cmocka_unit_test_setup(a_turn_ends_with_its_time, setup),
        cmocka_unit_test_setup(tasks_of_a_user_take_turns_unless_they_stay_first, setup),
        cmocka_unit_test_setup(a_task_is_in_the_queue_once_and_may_be_taken_out, setup),
        cmocka_unit_test_setup(a_user_may_be_gone_with_its_last_task, setup),
    };

    return test_run(tests, NULL, NULL);
}
