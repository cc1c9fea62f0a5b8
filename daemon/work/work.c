/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See work.h. There is no lock: a worker may lose its processor for long, and the loop would wait as long for a lock
 * that the worker holds. The loop gives a job to a worker that has none; the worker puts itself, with the job, on a
 * list that the loop takes as a whole. Then it writes to the eventfd, which the loop reads before it takes the list, so
 * that no job is missed. It writes even if the list had a worker already, since that one may have lost its processor
 * before it wrote.
 *
 * A job without a worker waits on the loop's side, so that the loop can choose whose is next, and announce that it
 * begins before it does.
 */

#include "work/work.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"
#include "sandbox/sandbox.h"
#include "sys/schedule.h"
#include "work/lanes.h"

/* At work: longer than any other thread's, so that a thread that wakes up runs before a worker. */
#define SLICE_NS UINT64_C(20000000)
/*
 * Without a job: as short as possible. A killed thread has to run once more to die, and the process ends, and another
 * broker takes its place, only when the last thread has died. On a busy machine, a nice thread with a long slice waits
 * for that for seconds. For the same reason none is SCHED_IDLE, which has no slice of its own.
 */
#define IDLE_SLICE_NS UINT64_C(100000)

/* How long stopping waits for jobs that the kernel keeps waiting. */
#define STOP_MS 1000

/*
 * Jobs that move more memory have less priority, and those that nobody waits for the least. Where the number of threads
 * is given, all but the first are made when they are needed.
 */
static const struct {
    struct sys_schedule schedule;
    unsigned threads;  /* 0: as work_new() is told */
    unsigned user_max; /* threads that may run jobs of one user; 0: all */
} classes[WORK_CLASSES] = {
    [WORK_SHORT] = {{.policy = SCHED_OTHER, .slice = SLICE_NS}, 0, 0},
    [WORK_LONG] = {{.policy = SCHED_BATCH, .nicer = 5, .slice = SLICE_NS}, 0, 0},
    [WORK_RELEASE] = {{.policy = SCHED_BATCH, .nicer = 10, .slice = SLICE_NS}, 0, 0},
    [WORK_STOCK] = {{.policy = SCHED_BATCH, .nicer = 19, .slice = IDLE_SLICE_NS}, 0, 0},
    [WORK_BLOCKING] = {{.policy = SCHED_BATCH, .nicer = 5, .slice = SLICE_NS}, 32, 2},
    [WORK_CLOSING] = {{.policy = SCHED_BATCH, .nicer = 10, .slice = SLICE_NS}, 8, 2},
};

struct worker {
    struct work *work;
    enum work_class class;
    sem_t wake;
    struct work_job *job; /* the loop's, and the worker's from `wake` to the list of finished ones; NULL: end */
    struct worker *next;  /* in the list of those without a job, or of the finished ones */
    pthread_t thread;
};

struct group {
    struct lanes lanes;
    struct worker *idle;
    struct worker *workers;
    unsigned n_workers;
    unsigned workers_max;
    unsigned pending;
    /* set by the loop, read by jobs between two slices: somebody waits whose turn it is */
    atomic_bool pause;       /* a user of whom nothing runs */
    atomic_bool pause_spare; /* any */
};

struct work {
    struct worker *finished; /* atomic; the last one first */
    int event;
    /* the loop's */
    struct group groups[WORK_CLASSES];
    struct list withdrawn; /* their done() is still to be called */
    void (*ended)(void *userdata, struct work_job *job);
    void *userdata; /* of ended() */
    bool stopping;
    struct worker workers[];
};

/* An eventfd takes 2^64 - 2 of these, so it is never full. */
static void work_ring(struct work *work)
{
    uint64_t one = 1;
    ssize_t n;

    do
        n = write(work->event, &one, sizeof(one));
    while (n < 0 && errno == EINTR);
}

/* The worker belongs to the loop again as soon as it is in the list. */
static void worker_report(struct work *work, struct worker *worker)
{
    struct worker *last = __atomic_load_n(&work->finished, __ATOMIC_RELAXED);

    do
        worker->next = last;
    while (!__atomic_compare_exchange_n(&work->finished, &last, worker, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    work_ring(work);
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct sys_schedule schedule = classes[worker->class].schedule;
    uint64_t slice = schedule.slice;

    schedule.slice = IDLE_SLICE_NS;
    (void)sys_schedule_self(&schedule);
    (void)sandbox_enter(SANDBOX_WORKER);
    for (;;) {
        while (sem_wait(&worker->wake) < 0)
            ;
        if (!worker->job)
            return NULL;
        if (slice != IDLE_SLICE_NS)
            (void)sys_schedule_slice(slice);
        worker->job->run(worker->job);
        if (slice != IDLE_SLICE_NS)
            (void)sys_schedule_slice(IDLE_SLICE_NS);
        worker_report(worker->work, worker);
    }
}

/* What hangs in the kernel cannot be joined, and writes to all this when it comes back. */
static void work_destroy(struct work *work)
{
    bool all = true;

    for (unsigned i = 0; i < WORK_CLASSES; i++) {
        struct group *group = &work->groups[i];

        all = all && !group->pending;
        for (struct worker *worker = group->idle; worker; worker = worker->next) {
            sem_post(&worker->wake);
            pthread_join(worker->thread, NULL);
            sem_destroy(&worker->wake);
        }
        lanes_deinit(&group->lanes);
    }
    if (!all)
        return;
    fd_close(work->event);
    free(work);
}

static void worker_park(struct work *work, struct worker *worker)
{
    struct group *group = &work->groups[worker->class];

    worker->job = NULL;
    worker->next = group->idle;
    group->idle = worker;
}

/* Signals are for the loop: workers start with all of them blocked. 0 or a negative errno. */
static int worker_start(struct work *work, enum work_class class)
{
    struct group *group = &work->groups[class];
    struct worker *worker = &group->workers[group->n_workers];
    sigset_t all;
    sigset_t before;
    int r;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return -EINVAL;
    worker->work = work;
    worker->class = class;
    sem_init(&worker->wake, 0, 0);
    r = pthread_create(&worker->thread, NULL, run_worker, worker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r) {
        sem_destroy(&worker->wake);
        return -r;
    }
    group->n_workers++;
    worker_park(work, worker);
    return 0;
}

static unsigned workers_of(unsigned class, unsigned threads)
{
    return classes[class].threads ? classes[class].threads : threads;
}

static int start_workers(struct work *work, unsigned threads)
{
    struct worker *workers = work->workers;
    int r = 0;

    for (unsigned i = 0; i < WORK_CLASSES; i++) {
        struct group *group = &work->groups[i];

        group->workers = workers;
        group->workers_max = workers_of(i, threads);
        workers += group->workers_max;
        lanes_init(&group->lanes, classes[i].user_max ? classes[i].user_max : group->workers_max);
    }
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        for (unsigned k = 0; k < (classes[i].threads ? 1 : threads) && !r; k++)
            r = worker_start(work, (enum work_class)i);
    return r;
}

int work_new(struct work **ret, unsigned threads)
{
    struct work *work;
    unsigned n = 0;
    int r;

    if (!threads || threads > 64)
        return -EINVAL;
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        n += workers_of(i, threads);
    work = calloc(1, sizeof(*work) + n * sizeof(work->workers[0]));
    if (!work)
        return -ENOMEM;
    list_init(&work->withdrawn);
    work->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (work->event < 0) {
        r = -errno;
        free(work);
        return fatal(r);
    }
    r = start_workers(work, threads);
    if (r < 0) {
        work_destroy(work);
        return fatal(r);
    }
    *ret = work;
    return 0;
}

/* ---- handing out ------------------------------------------------------------------------------------------------- */

/* NULL: all have a job. Where no thread can be made, those that are there must do. */
static struct worker *worker_take(struct work *work, struct group *group)
{
    struct worker *worker;

    if (!group->idle && group->n_workers < group->workers_max)
        (void)worker_start(work, (enum work_class)(group - work->groups));
    worker = group->idle;
    if (worker)
        group->idle = worker->next;
    return worker;
}

static void job_withdraw(struct work *work, struct work_job *job)
{
    job->withdrawn = true;
    list_append(&work->withdrawn, &job->link);
    work_ring(work);
}

static void job_begin(struct worker *worker, struct work_job *job)
{
    if (job->begins && !job->has_begun)
        job->begins(job);
    job->has_begun = true;
    job->paused = false;
    worker->job = job;
    sem_post(&worker->wake);
}

static void group_hand_out(struct work *work, struct group *group)
{
    bool withdraw = work->stopping && group == &work->groups[WORK_BLOCKING];
    struct worker *worker = NULL;
    struct work_job *job = NULL;
    enum lanes_wait wait;

    while (withdraw && (job = lanes_next(&group->lanes))) {
        lanes_ended(&group->lanes, job);
        job_withdraw(work, job);
    }
    while (lanes_have(&group->lanes) && (worker = worker_take(work, group)))
        job_begin(worker, lanes_next(&group->lanes));
    wait = lanes_waiting(&group->lanes);
    atomic_store_explicit(&group->pause, wait == LANES_FIRST, memory_order_relaxed);
    atomic_store_explicit(&group->pause_spare, wait != LANES_NONE, memory_order_relaxed);
}

void work_job_end(struct work *work, struct work_job *job)
{
    work->groups[job->class].pending--;
    job->done(job);
}

static void job_ended(struct work *work, struct work_job *job)
{
    if (work->ended)
        work->ended(work->userdata, job);
    else
        work_job_end(work, job);
}

static void worker_finish(struct work *work, struct worker *worker)
{
    struct group *group = &work->groups[worker->class];
    struct work_job *job = worker->job;

    worker_park(work, worker);
    if (job->paused) {
        lanes_paused(&group->lanes, job);
    } else {
        lanes_ended(&group->lanes, job);
        job_ended(work, job);
    }
}

static void work_finish(struct work *work)
{
    struct worker *last = __atomic_exchange_n(&work->finished, NULL, __ATOMIC_ACQUIRE);
    struct list withdrawn = LIST_INIT(withdrawn);
    struct worker *first = NULL;
    struct worker *next;
    struct list *link;

    for (; last; last = next) {
        next = last->next;
        last->next = first;
        first = last;
    }
    for (; first; first = next) {
        next = first->next;
        worker_finish(work, first);
    }
    list_splice(&withdrawn, &work->withdrawn);
    while ((link = list_pop(&withdrawn)))
        job_ended(work, container_of(link, struct work_job, link));
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        group_hand_out(work, &work->groups[i]);
}

/* ---- what the loop calls ----------------------------------------------------------------------------------------- */

struct work *work_free(struct work *work)
{
    uint64_t end = deadline_after_ms(STOP_MS);

    if (!work)
        return NULL;
    work->stopping = true;
    group_hand_out(work, &work->groups[WORK_BLOCKING]);
    while (work_pending(work)) {
        bool hangs = work_pending(work) == work->groups[WORK_BLOCKING].pending;
        struct pollfd p = {.fd = work->event, .events = POLLIN};

        if (hangs && deadline_passed(end, clock_now_ns()))
            break;
        (void)poll(&p, 1, hangs ? (int)(deadline_left(end, clock_now_ns()) / NSEC_PER_MSEC) + 1 : -1);
        (void)work_dispatch(work);
    }
    work_destroy(work);
    return NULL;
}

void work_submit(struct work *work, enum work_class class, uid_t uid, struct work_job *job)
{
    struct group *group = &work->groups[class];

    assert(!list_is_linked(&job->link));
    job->class = class;
    job->uid = uid;
    job->has_begun = false;
    job->withdrawn = false;
    job->pause = job->spare ? &group->pause_spare : &group->pause;
    group->pending++;
    lanes_add(&group->lanes, uid, job);
    group_hand_out(work, group);
}

bool work_withdraw(struct work *work, struct work_job *job)
{
    struct group *group = &work->groups[job->class];

    if (!list_is_linked(&job->link) || job->has_begun || job->withdrawn)
        return false;
    lanes_remove(&group->lanes, job);
    job_withdraw(work, job);
    return true;
}

int work_fd(const struct work *work)
{
    return work->event;
}

int work_dispatch(struct work *work)
{
    uint64_t count;
    ssize_t n;

    do
        n = read(work->event, &count, sizeof(count));
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return fatal(-errno);
    work_finish(work);
    return 0;
}

void work_set_ended(struct work *work, void (*ended)(void *userdata, struct work_job *job), void *userdata)
{
    work->ended = ended;
    work->userdata = userdata;
}

unsigned work_pending(const struct work *work)
{
    unsigned pending = 0;

    for (unsigned i = 0; i < WORK_CLASSES; i++)
        pending += work->groups[i].pending;
    return pending;
}

bool work_is_busy(const struct work *work)
{
    return work_pending(work) > work->groups[WORK_BLOCKING].pending;
}
