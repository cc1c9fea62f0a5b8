/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: what is submitted is run once and reported once, on the right thread, whatever is in the way. */
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/support/fd.h"
#include "work/work.h"

struct counted {
    struct work_job job;
    pthread_t loop;
    unsigned n_run; /* by a worker, read by the loop after done() */
    unsigned n_done;
    bool on_worker;
    bool on_loop;
    bool blocked; /* all signals, on the worker */
    unsigned again;
    struct work *work;
};

static void counted_run(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    sigset_t set;

    c->n_run++;
    c->on_worker = !pthread_equal(c->loop, pthread_self());
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    c->blocked = sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGCHLD) == 1;
}

static void counted_done(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);

    c->n_done++;
    c->on_loop = pthread_equal(c->loop, pthread_self());
    if (c->again) {
        c->again--;
        work_submit(c->work, WORK_SHORT, job);
    }
}

static void counted_init(struct counted *c, struct work *work)
{
    *c =
        (struct counted){.job = WORK_JOB_INIT(c->job, counted_run, counted_done), .loop = pthread_self(), .work = work};
}

static void drain(struct work *work)
{
    while (work_pending(work)) {
        assert_true(wait_readable(work_fd(work)));
        assert_int_equal(work_dispatch(work), 0);
    }
}

static void each_job_runs_once(void **state)
{
    enum { N = 2000 };
    static struct counted jobs[N];
    _cleanup_(work_freep) struct work *work = NULL;

    assert_int_equal(work_new(&work, 2), 0);
    for (unsigned i = 0; i < N; i++) {
        counted_init(&jobs[i], work);
        jobs[i].again = i % 3;
        work_submit(work, (enum work_class)(i % WORK_CLASSES), &jobs[i].job);
    }
    drain(work);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(jobs[i].n_run, 1 + i % 3);
        assert_int_equal(jobs[i].n_done, 1 + i % 3);
        assert_true(jobs[i].on_worker && jobs[i].on_loop && jobs[i].blocked);
    }
    /* the last ones may have been taken before they rang */
    assert_int_equal(work_dispatch(work), 0);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(jobs[i].n_done, 1 + i % 3);
}

struct waiting {
    struct counted counted;
    sem_t gate;
};

static void waiting_run(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    struct waiting *w = container_of(c, struct waiting, counted);

    while (sem_wait(&w->gate) < 0)
        ;
    counted_run(job);
}

static void a_short_job_passes_the_long_ones(void **state)
{
    enum { N = 8 };
    struct waiting slow[N];
    struct counted quick;
    _cleanup_(work_freep) struct work *work = NULL;

    assert_int_equal(work_new(&work, 1), 0);
    for (unsigned i = 0; i < N; i++) {
        counted_init(&slow[i].counted, work);
        slow[i].counted.job.run = waiting_run;
        sem_init(&slow[i].gate, 0, 0);
        work_submit(work, i % 2 ? WORK_LONG : WORK_RELEASE, &slow[i].counted.job);
    }
    counted_init(&quick, work);
    work_submit(work, WORK_SHORT, &quick.job);
    assert_true(wait_readable(work_fd(work)));
    assert_int_equal(work_dispatch(work), 0);
    assert_int_equal(quick.n_done, 1);
    assert_int_equal(work_pending(work), N);
    for (unsigned i = 0; i < N; i++)
        sem_post(&slow[i].gate);
    drain(work);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(slow[i].counted.n_done, 1);
        sem_destroy(&slow[i].gate);
    }
}

/* On the loop, and only of as many at once as have a worker. */
static unsigned n_begun;

static void counted_begins(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);

    assert_true(pthread_equal(c->loop, pthread_self()));
    assert_int_equal(c->n_run, 0);
    n_begun++;
}

static void a_job_begins_when_a_worker_is_free(void **state)
{
    enum { N = 6, THREADS = 2 };
    struct waiting slow[N];
    _cleanup_(work_freep) struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, THREADS), 0);
    for (unsigned i = 0; i < N; i++) {
        counted_init(&slow[i].counted, work);
        slow[i].counted.job.run = waiting_run;
        slow[i].counted.job.begins = counted_begins;
        sem_init(&slow[i].gate, 0, 0);
        work_submit(work, WORK_LONG, &slow[i].counted.job);
    }
    for (unsigned i = 0; i < N; i++) {
        unsigned begun = i + THREADS < N ? i + THREADS : N;

        assert_int_equal(n_begun, begun);
        sem_post(&slow[i].gate);
        assert_true(wait_readable(work_fd(work)));
        assert_int_equal(work_dispatch(work), 0);
        assert_int_equal(slow[i].counted.n_done, 1);
    }
    assert_int_equal(n_begun, N);
    for (unsigned i = 0; i < N; i++)
        sem_destroy(&slow[i].gate);
}

static void stopping_finishes_everything(void **state)
{
    enum { N = 300 };
    static struct counted jobs[N];
    unsigned fds = fd_count();
    struct work *work = NULL;

    assert_int_equal(work_new(&work, 2), 0);
    for (unsigned i = 0; i < N; i++) {
        counted_init(&jobs[i], work);
        jobs[i].again = i % 2;
        work_submit(work, WORK_RELEASE, &jobs[i].job);
    }
    assert_null(work_free(work));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(jobs[i].n_run, 1 + i % 2);
        assert_int_equal(jobs[i].n_done, 1 + i % 2);
    }
    assert_int_equal(fd_count(), fds);
    assert_null(work_free(NULL));
}

static void senseless_sizes_are_refused(void **state)
{
    struct work *work = NULL;

    assert_true(work_new(&work, 0) < 0);
    assert_true(work_new(&work, 100000) < 0);
    assert_null(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_runs_once),
        cmocka_unit_test(a_short_job_passes_the_long_ones),
        cmocka_unit_test(a_job_begins_when_a_worker_is_free),
        cmocka_unit_test(stopping_finishes_everything),
        cmocka_unit_test(senseless_sizes_are_refused),
    };

    return test_run(tests, NULL, NULL);
}
