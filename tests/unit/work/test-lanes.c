/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: ten thousand jobs wait, of one user or of a hundred. Whoever has none at work is next, each user's jobs run in
 * the order of submission, and each once.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "work/lanes.h"

#define JOBS    10000
#define USERS   100
#define WORKERS 4

struct numbered {
    struct work_job job;
    unsigned user;
    unsigned number; /* of the user's */
    bool pauses;     /* once */
};

static struct numbered jobs[JOBS];

struct state {
    struct lanes lanes;
    unsigned submitted[USERS], begun[USERS], running[USERS];
    struct numbered *at_work[WORKERS];
    struct numbered *paused[USERS]; /* goes on before what else waits */
    unsigned ended;
};

static void none(struct work_job *job)
{
    (void)job;
}

static void submit(struct state *s, struct numbered *job, unsigned user)
{
    *job = (struct numbered){.job = WORK_JOB_INIT(job->job, none, none), .user = user};
    job->number = s->submitted[user]++;
    job->pauses = job->number % 3 == 1;
    lanes_add(&s->lanes, user, &job->job);
}

static bool waits(const struct state *s, unsigned user)
{
    return s->paused[user] || s->begun[user] < s->submitted[user];
}

/* Takes the next job for this worker, and looks whether it may be that one. */
static void begin(struct state *s, unsigned worker)
{
    struct work_job *next = lanes_next(&s->lanes);
    struct numbered *job;

    assert_non_null(next);
    job = container_of(next, struct numbered, job);
    for (unsigned user = 0; s->running[job->user] && user < USERS; user++)
        assert_false(!s->running[user] && waits(s, user));
    if (s->paused[job->user]) {
        assert_ptr_equal(job, s->paused[job->user]);
        s->paused[job->user] = NULL;
    } else {
        assert_int_equal(job->number, s->begun[job->user]++);
    }
    s->running[job->user]++;
    s->at_work[worker] = job;
}

static void end(struct state *s, unsigned worker)
{
    struct numbered *job = s->at_work[worker];

    s->running[job->user]--;
    /* the lane has one that paused at its front; of several the last */
    if (job->pauses && !s->paused[job->user]) {
        job->pauses = false;
        s->paused[job->user] = job;
        lanes_paused(&s->lanes, &job->job);
    } else {
        s->ended++;
        lanes_ended(&s->lanes, &job->job);
    }
    s->at_work[worker] = NULL;
}

/* Until n have ended; workers end in an order of their own. */
static void work(struct state *s, unsigned n)
{
    for (unsigned turn = 0; s->ended < n; turn++) {
        unsigned worker = turn * 7 % WORKERS;

        if (s->at_work[worker])
            end(s, worker);
        if (lanes_have(&s->lanes))
            begin(s, worker);
    }
}

static void finish(struct state *s, unsigned n)
{
    work(s, n);
    for (unsigned user = 0; user < USERS; user++)
        assert_int_equal(s->begun[user], s->submitted[user]);
    assert_false(lanes_have(&s->lanes));
    assert_null(lanes_next(&s->lanes));
    lanes_deinit(&s->lanes);
}

static void I7_one_of_another_user_is_next(void **state)
{
    struct state s = {.ended = 0};

    lanes_init(&s.lanes, WORKERS);
    for (unsigned i = 0; i < JOBS - 1; i++)
        submit(&s, &jobs[i], 1);
    work(&s, JOBS / 2);
    submit(&s, &jobs[JOBS - 1], 2);
    /* whichever worker is free next */
    end(&s, 0);
    begin(&s, 0);
    assert_ptr_equal(s.at_work[0], &jobs[JOBS - 1]);
    finish(&s, JOBS);
}

static void I7_a_hundred_users_take_turns(void **state)
{
    struct state s = {.ended = 0};

    lanes_init(&s.lanes, WORKERS);
    for (unsigned i = 0; i < JOBS; i++)
        submit(&s, &jobs[i], i * i % USERS);
    finish(&s, JOBS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_one_of_another_user_is_next),
        cmocka_unit_test(I7_a_hundred_users_take_turns),
    };

    return test_run(tests, NULL, NULL);
}
