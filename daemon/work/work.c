/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See work.h. There is no lock: a worker may lose its processor for long, and the loop would wait as long for a lock
 * that the worker holds. The loop gives a job to a worker that has none; the worker puts itself, with the job, on a
 * list that the loop takes as a whole. Then it writes to the eventfd, which the loop reads before it takes the list, so
 * that no job is missed. It writes even if the list had a worker already, since that one may have lost its processor
 * before it wrote.
 *
 * A job without a worker waits on the loop's side, so that the loop can announce that it begins before it does.
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

#include "log/log.h"
#include "sys/schedule.h"

/* At work: longer than any other thread's, so that a thread that wakes up runs before a worker. */
#define SLICE_NS UINT64_C(20000000)
/*
 * Without a job: as short as possible. A killed thread has to run once more to die, and the process ends, and another
 * broker takes its place, only when the last thread has died. On a busy machine, a nice thread with a long slice waits
 * for that for seconds. For the same reason none is SCHED_IDLE, which has no slice of its own.
 */
#define IDLE_SLICE_NS UINT64_C(100000)

/* Jobs that move more memory have less priority, and those that nobody waits for the least. */
static const struct sys_schedule schedules[WORK_CLASSES] = {
    [WORK_SHORT] = {.policy = SCHED_OTHER, .slice = SLICE_NS},
    [WORK_LONG] = {.policy = SCHED_BATCH, .nicer = 5, .slice = SLICE_NS},
    [WORK_RELEASE] = {.policy = SCHED_BATCH, .nicer = 10, .slice = SLICE_NS},
    [WORK_STOCK] = {.policy = SCHED_BATCH, .nicer = 19, .slice = IDLE_SLICE_NS},
};

struct worker {
    struct work *work;
    enum work_class class;
    sem_t wake;
    struct work_job *job; /* the loop's, and the worker's from `wake` to the list of finished ones; NULL: end */
    struct worker *next;  /* in the list of those without a job, or of the finished ones */
    pthread_t thread;
};

struct lane {
    struct list waiting;
    struct worker *idle;
};

struct work {
    struct worker *finished; /* atomic; the last one first */
    int event;
    /* the loop's */
    struct lane lanes[WORK_CLASSES];
    unsigned pending;
    unsigned n_workers;
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
    struct sys_schedule schedule = schedules[worker->class];
    uint64_t slice = schedule.slice;

    schedule.slice = IDLE_SLICE_NS;
    (void)sys_schedule_self(&schedule);
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

static struct work *work_destroy(struct work *work)
{
    for (unsigned i = 0; i < work->n_workers; i++) {
        work->workers[i].job = NULL;
        sem_post(&work->workers[i].wake);
    }
    for (unsigned i = 0; i < work->n_workers; i++) {
        pthread_join(work->workers[i].thread, NULL);
        sem_destroy(&work->workers[i].wake);
    }
    fd_close(work->event);
    free(work);
    return NULL;
}

static void worker_park(struct work *work, struct worker *worker)
{
    struct lane *lane = &work->lanes[worker->class];

    worker->job = NULL;
    worker->next = lane->idle;
    lane->idle = worker;
}

static int start_worker(struct work *work, enum work_class class)
{
    struct worker *worker = &work->workers[work->n_workers];
    int r;

    worker->work = work;
    worker->class = class;
    sem_init(&worker->wake, 0, 0);
    r = pthread_create(&worker->thread, NULL, run_worker, worker);
    if (r) {
        sem_destroy(&worker->wake);
        return -r;
    }
    work->n_workers++;
    worker_park(work, worker);
    return 0;
}

/* Signals are for the loop: workers start with all of them blocked. */
static int start_workers(struct work *work, unsigned threads)
{
    sigset_t all;
    sigset_t before;
    int r = 0;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return -EINVAL;
    for (unsigned i = 0; i < WORK_CLASSES * threads && !r; i++)
        r = start_worker(work, (enum work_class)(i % WORK_CLASSES));
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int work_new(struct work **ret, unsigned threads)
{
    struct work *work;
    int r;

    if (!threads || threads > 64)
        return -EINVAL;
    work = calloc(1, sizeof(*work) + WORK_CLASSES * threads * sizeof(work->workers[0]));
    if (!work)
        return -ENOMEM;
    work->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (work->event < 0) {
        r = -errno;
        free(work);
        return fatal(r);
    }
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        list_init(&work->lanes[i].waiting);
    r = start_workers(work, threads);
    if (r < 0) {
        work_destroy(work);
        return fatal(r);
    }
    *ret = work;
    return 0;
}

/* Gives jobs to idle workers. */
static void hand_out(struct lane *lane)
{
    struct list *link;

    while (lane->idle && (link = list_pop(&lane->waiting))) {
        struct work_job *job = container_of(link, struct work_job, link);
        struct worker *worker = lane->idle;

        lane->idle = worker->next;
        if (job->begins)
            job->begins(job);
        worker->job = job;
        sem_post(&worker->wake);
    }
}

static void work_finish(struct work *work)
{
    struct worker *last = __atomic_exchange_n(&work->finished, NULL, __ATOMIC_ACQUIRE);
    struct worker *first = NULL;
    struct worker *next;

    for (; last; last = next) {
        next = last->next;
        last->next = first;
        first = last;
    }
    for (; first; first = next) {
        struct work_job *job = first->job;

        next = first->next;
        work->pending--;
        worker_park(work, first);
        job->done(job);
    }
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        hand_out(&work->lanes[i]);
}

struct work *work_free(struct work *work)
{
    if (!work)
        return NULL;
    while (work->pending) {
        struct pollfd p = {.fd = work->event, .events = POLLIN};

        (void)poll(&p, 1, -1);
        (void)work_dispatch(work);
    }
    return work_destroy(work);
}

void work_submit(struct work *work, enum work_class kind, struct work_job *job)
{
    struct lane *lane = &work->lanes[kind];

    assert(!list_is_linked(&job->link));
    work->pending++;
    list_append(&lane->waiting, &job->link);
    hand_out(lane);
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

unsigned work_pending(const struct work *work)
{
    return work->pending;
}
