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
        work_submit(c->work, WORK_SHORT, 1, job);
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
        work_submit(work, (enum work_class)(i % WORK_CLASSES), i % 5, &jobs[i].job);
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

static void collect(void *userdata, struct work_job *job)
{
    list_append(userdata, &job->link);
}

/* Its user's turn may come later. */
static void who_is_told_of_the_end_of_a_job_ends_it(void **state)
{
    enum { N = 20 };
    static struct counted jobs[N];
    struct list ended = LIST_INIT(ended);
    _cleanup_(work_freep) struct work *work = NULL;
    unsigned n = 0;

    assert_int_equal(work_new(&work, 2), 0);
    work_set_ended(work, collect, &ended);
    for (unsigned i = 0; i < N; i++) {
        counted_init(&jobs[i], work);
        work_submit(work, WORK_SHORT, i % 5, &jobs[i].job);
    }
    while (n < N) {
        assert_true(wait_readable(work_fd(work)));
        assert_int_equal(work_dispatch(work), 0);
        n = 0;
        list_for_each_entry(job, &ended, struct work_job, link)
            n++;
    }
    assert_int_equal(work_pending(work), N);
    for (unsigned i = 0; i < N; i++) {
        struct work_job *job = container_of(list_pop(&ended), struct work_job, link);

        assert_int_equal(container_of(job, struct counted, job)->n_done, 0);
        assert_int_equal(job->uid, (unsigned)(container_of(job, struct counted, job) - jobs) % 5);
        work_job_end(work, job);
        assert_int_equal(container_of(job, struct counted, job)->n_done, 1);
    }
    assert_int_equal(work_pending(work), 0);
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
        work_submit(work, i % 2 ? WORK_LONG : WORK_RELEASE, 1, &slow[i].counted.job);
    }
    counted_init(&quick, work);
    work_submit(work, WORK_SHORT, 1, &quick.job);
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
        work_submit(work, WORK_LONG, 1, &slow[i].counted.job);
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

/* ---- users ------------------------------------------------------------------------------------------------------- */

/* Jobs that run until their gate opens, and the order in which they began. */
static const struct waiting *begun[64];

static void waiting_begins(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);

    assert_true(n_begun < sizeof(begun) / sizeof(begun[0]));
    begun[n_begun++] = container_of(c, struct waiting, counted);
}

static void waiting_submit(struct waiting *w, struct work *work, enum work_class class, uid_t uid)
{
    bool spare = w->counted.job.spare;

    counted_init(&w->counted, work);
    w->counted.job.run = waiting_run;
    w->counted.job.begins = waiting_begins;
    w->counted.job.spare = spare;
    sem_init(&w->gate, 0, 0);
    work_submit(work, class, uid, &w->counted.job);
}

/* Lets one end, and waits until the loop knows. */
static void waiting_end(struct waiting *w, struct work *work)
{
    sem_post(&w->gate);
    while (!w->counted.n_done) {
        assert_true(wait_readable(work_fd(work)));
        assert_int_equal(work_dispatch(work), 0);
    }
    sem_destroy(&w->gate);
}

static void users_take_turns(void **state)
{
    enum { A = 6, B = 3 };
    struct waiting a[A] = {0}, b[B] = {0};
    const struct waiting *order[] = {&a[0], &b[0], &a[1], &b[1], &a[2], &b[2], &a[3], &a[4], &a[5]};
    _cleanup_(work_freep) struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, 1), 0);
    for (unsigned i = 0; i < A; i++)
        waiting_submit(&a[i], work, WORK_LONG, 1);
    for (unsigned i = 0; i < B; i++)
        waiting_submit(&b[i], work, WORK_LONG, 2);
    for (unsigned i = 0; i < A + B; i++) {
        assert_int_equal(n_begun, i + 1);
        assert_ptr_equal(begun[i], order[i]);
        waiting_end((struct waiting *)order[i], work);
    }
}

/* Who is alone has all workers; but whoever has none at work comes before whoever has one. */
static void each_has_one_at_work_before_anybody_has_two(void **state)
{
    enum { A = 5, THREADS = 3 };
    struct waiting a[A] = {0}, b[2] = {0}, c[2] = {0};
    _cleanup_(work_freep) struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, THREADS), 0);
    for (unsigned i = 0; i < A; i++)
        waiting_submit(&a[i], work, WORK_RELEASE, 1);
    assert_int_equal(n_begun, THREADS);
    for (unsigned i = 0; i < 2; i++) {
        waiting_submit(&b[i], work, WORK_RELEASE, 2);
        waiting_submit(&c[i], work, WORK_RELEASE, WORK_UNOWNED);
    }
    waiting_end(&a[0], work);
    assert_ptr_equal(begun[3], &b[0]);
    waiting_end(&a[1], work);
    assert_ptr_equal(begun[4], &c[0]);
    /* now each has one, and they take turns with what else they have */
    waiting_end(&b[0], work);
    assert_ptr_equal(begun[5], &b[1]);
    waiting_end(&a[2], work);
    assert_ptr_equal(begun[6], &a[3]);
    waiting_end(&c[0], work);
    assert_ptr_equal(begun[7], &c[1]);
    waiting_end(&b[1], work);
    assert_ptr_equal(begun[8], &a[4]);
    waiting_end(&a[3], work);
    waiting_end(&a[4], work);
    waiting_end(&c[1], work);
    assert_int_equal(work_pending(work), 0);
}

static void who_may_be_kept_waiting_is_limited(void **state)
{
    enum { MANY = 10, AT_ONCE = 2 };
    struct waiting a[MANY] = {0}, b = {0}, quick[4] = {0};
    _cleanup_(work_freep) struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, 1), 0);
    for (unsigned i = 0; i < MANY; i++)
        waiting_submit(&a[i], work, WORK_BLOCKING, 1);
    assert_int_equal(n_begun, AT_ONCE);
    assert_false(work_is_busy(work));
    waiting_submit(&b, work, WORK_BLOCKING, 2);
    assert_int_equal(n_begun, AT_ONCE + 1);
    assert_ptr_equal(begun[AT_ONCE], &b);
    waiting_end(&b, work);
    /* all else goes on, of the same user, too */
    for (unsigned i = 0; i < 4; i++) {
        waiting_submit(&quick[i], work, (enum work_class)i, 1);
        assert_true(work_is_busy(work));
        waiting_end(&quick[i], work);
    }
    for (unsigned i = 0; i < MANY; i++)
        waiting_end(&a[i], work);
}

/* All threads of the class are in use: of sixteen users, two each. */
static void so_many_may_be_kept_waiting_in_all(void **state)
{
    enum { AT_ONCE = 32, MORE = 8 };
    static struct waiting w[AT_ONCE + MORE];
    _cleanup_(work_freep) struct work *work = NULL;

    memset(w, 0, sizeof(w));
    n_begun = 0;
    assert_int_equal(work_new(&work, 1), 0);
    for (unsigned i = 0; i < AT_ONCE + MORE; i++)
        waiting_submit(&w[i], work, WORK_BLOCKING, i / 2);
    assert_int_equal(n_begun, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE + MORE; i++)
        waiting_end(&w[i], work);
    assert_int_equal(n_begun, AT_ONCE + MORE);
}

/* ---- pausing ----------------------------------------------------------------------------------------------------- */

struct sliced {
    struct counted counted;
    atomic_bool end;
    atomic_uint slices;
};

/* A job of many slices that pauses when it should. */
static void sliced_run(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    struct sliced *s = container_of(c, struct sliced, counted);

    counted_run(job);
    do {
        atomic_fetch_add(&s->slices, 1);
        wait_a_moment();
    } while (!atomic_load(&s->end) && !atomic_load(job->pause));
    job->paused = !atomic_load(&s->end);
}

static void sliced_submit(struct sliced *s, struct work *work, bool spare, uid_t uid)
{
    counted_init(&s->counted, work);
    s->counted.job.run = sliced_run;
    s->counted.job.begins = NULL;
    s->counted.job.spare = spare;
    work_submit(work, WORK_LONG, uid, &s->counted.job);
}

static void counted_end(struct counted *c, struct work *work)
{
    while (!c->n_done) {
        assert_true(wait_readable(work_fd(work)));
        assert_int_equal(work_dispatch(work), 0);
    }
}

static void a_long_job_pauses_for_another_user(void **state)
{
    struct sliced slow = {0}, spare = {0};
    struct counted mine, other;
    _cleanup_(work_freep) struct work *work = NULL;

    assert_int_equal(work_new(&work, 1), 0);
    sliced_submit(&slow, work, false, 1);
    assert_true(WAIT_UNTIL(atomic_load(&slow.slices) > 0));
    /* not for the user's own, nor for a spare one */
    counted_init(&mine, work);
    work_submit(work, WORK_LONG, 1, &mine.job);
    sliced_submit(&spare, work, true, 3);
    assert_true(stays_quiet(work_fd(work)));
    for (unsigned i = 1; i <= 3; i++) {
        counted_init(&other, work);
        work_submit(work, WORK_LONG, 2, &other.job);
        counted_end(&other, work);
        assert_int_equal(slow.counted.n_done, 0);
    }
    assert_int_equal(mine.n_done, 0);
    atomic_store(&slow.end, true);
    counted_end(&slow.counted, work);
    assert_true(slow.counted.n_run > 1);
    counted_end(&mine, work);
    /* a spare one pauses for anybody */
    assert_true(WAIT_UNTIL(atomic_load(&spare.slices) > 0));
    counted_init(&mine, work);
    work_submit(work, WORK_LONG, 1, &mine.job);
    counted_end(&mine, work);
    assert_int_equal(spare.counted.n_done, 0);
    atomic_store(&spare.end, true);
    counted_end(&spare.counted, work);
}

static void a_spare_job_waits_for_all_others(void **state)
{
    struct waiting first = {0}, spare = {.counted.job.spare = true}, others[3] = {0};
    _cleanup_(work_freep) struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, 1), 0);
    waiting_submit(&first, work, WORK_SHORT, 1);
    waiting_submit(&spare, work, WORK_SHORT, WORK_UNOWNED);
    for (unsigned i = 0; i < 3; i++)
        waiting_submit(&others[i], work, WORK_SHORT, 1);
    waiting_end(&first, work);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(begun[n_begun - 1], &others[i]);
        waiting_end(&others[i], work);
    }
    assert_ptr_equal(begun[n_begun - 1], &spare);
    waiting_end(&spare, work);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void what_has_not_begun_can_be_withdrawn(void **state)
{
    struct waiting w[3] = {0};
    _cleanup_(work_freep) struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, 1), 0);
    for (unsigned i = 0; i < 3; i++)
        waiting_submit(&w[i], work, WORK_LONG, 1);
    assert_false(work_withdraw(work, &w[0].counted.job));
    assert_true(work_withdraw(work, &w[1].counted.job));
    assert_false(work_withdraw(work, &w[1].counted.job));
    /* from the loop, not from the call, and while the worker is at work */
    assert_int_equal(w[1].counted.n_done, 0);
    counted_end(&w[1].counted, work);
    assert_true(w[1].counted.job.withdrawn);
    assert_int_equal(w[1].counted.n_run, 0);
    waiting_end(&w[0], work);
    assert_ptr_equal(begun[1], &w[2]);
    waiting_end(&w[2], work);
    assert_false(work_withdraw(work, &w[2].counted.job));
    assert_int_equal(n_begun, 2);
    sem_destroy(&w[1].gate);
}

static sem_t came_back;

static void hung_run(struct work_job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    struct waiting *w = container_of(c, struct waiting, counted);

    while (sem_wait(&w->gate) < 0)
        ;
    sem_post(&came_back);
}

/* They are static, since a thread still has the first when this returns. */
static void what_hangs_does_not_keep_the_end_waiting(void **state)
{
    static struct waiting hung, behind[3], quick;
    struct work *work = NULL;

    n_begun = 0;
    assert_int_equal(work_new(&work, 1), 0);
    counted_init(&hung.counted, work);
    hung.counted.job.run = hung_run;
    sem_init(&hung.gate, 0, 0);
    sem_init(&came_back, 0, 0);
    work_submit(work, WORK_BLOCKING, 1, &hung.counted.job);
    waiting_submit(&behind[0], work, WORK_BLOCKING, 1);
    waiting_submit(&behind[1], work, WORK_BLOCKING, 1);
    waiting_submit(&behind[2], work, WORK_BLOCKING, 1);
    waiting_submit(&quick, work, WORK_LONG, 1);
    sem_post(&quick.gate);
    sem_post(&behind[0].gate);
    assert_null(work_free(work));
    assert_int_equal(quick.counted.n_done, 1);
    assert_int_equal(behind[0].counted.n_run, 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(behind[i].counted.n_done, 1);
        assert_int_equal(behind[i].counted.job.withdrawn, i > 0);
    }
    assert_int_equal(hung.counted.n_done, 0);
    sem_post(&hung.gate);
    assert_true(WAIT_UNTIL(sem_trywait(&came_back) == 0));
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
        work_submit(work, WORK_RELEASE, i % 3, &jobs[i].job);
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
        cmocka_unit_test(who_is_told_of_the_end_of_a_job_ends_it),
        cmocka_unit_test(a_short_job_passes_the_long_ones),
        cmocka_unit_test(a_job_begins_when_a_worker_is_free),
        cmocka_unit_test(users_take_turns),
        cmocka_unit_test(each_has_one_at_work_before_anybody_has_two),
        cmocka_unit_test(who_may_be_kept_waiting_is_limited),
        cmocka_unit_test(so_many_may_be_kept_waiting_in_all),
        cmocka_unit_test(a_long_job_pauses_for_another_user),
        cmocka_unit_test(a_spare_job_waits_for_all_others),
        cmocka_unit_test(what_has_not_begun_can_be_withdrawn),
        cmocka_unit_test(what_hangs_does_not_keep_the_end_waiting),
        cmocka_unit_test(stopping_finishes_everything),
        cmocka_unit_test(senseless_sizes_are_refused),
    };

    return test_run(tests, NULL, NULL);
}
