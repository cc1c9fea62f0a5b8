/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See work.h. One lock guards all queues: jobs take milliseconds, holding it takes nanoseconds. The
 * eventfd is written only when the list of finished jobs stops being empty, and read before that list is
 * taken, so that no job can be missed and none is signalled for nothing.
 *
 * A lane is handed no more jobs than it has threads; the others wait on the loop's side, so that the loop can say of
 * each that it begins before it does.
 */

#include "work/work.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log/log.h"

struct lane {
    struct work *work;
    struct list queue; /* handed to the threads; under the lock */
    pthread_cond_t wake;
    struct list waiting; /* not yet; this and the next are the loop's */
    unsigned at_work;
};

struct work {
    pthread_mutex_t lock;
    struct lane lanes[WORK_CLASSES]; /* queues under the lock */
    struct list finished;            /* under the lock */
    bool stopping;                   /* under the lock */
    int event;
    unsigned pending; /* the loop's */
    unsigned per_lane; /* threads */
    unsigned n_threads;
    pthread_t threads[];
};

static void take(struct work *work)
{
    int r = pthread_mutex_lock(&work->lock);

    assert(r == 0);
    (void)r;
}

static void give(struct work *work)
{
    int r = pthread_mutex_unlock(&work->lock);

    assert(r == 0);
    (void)r;
}

/* An eventfd that nobody reads is full after 2^64 - 2 of these, so it never is. */
static void ring(struct work *work)
{
    uint64_t one = 1;
    ssize_t n;

    do
        n = write(work->event, &one, sizeof(one));
    while (n < 0 && errno == EINTR);
}

static void *worker(void *argument)
{
    struct lane *lane = argument;
    struct work *work = lane->work;

    take(work);
    for (;;) {
        struct list *link;

        while (!(link = list_pop(&lane->queue)) && !work->stopping)
            pthread_cond_wait(&lane->wake, &work->lock);
        if (!link)
            break;
        give(work);

        struct work_job *job = container_of(link, struct work_job, link);

        job->run(job);

        take(work);
        bool first = list_is_empty(&work->finished);

        list_append(&work->finished, link);
        if (first)
            ring(work);
    }
    give(work);
    return NULL;
}

static void stop_threads(struct work *work)
{
    take(work);
    work->stopping = true;
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        pthread_cond_broadcast(&work->lanes[i].wake);
    give(work);
    for (unsigned i = 0; i < work->n_threads; i++)
        pthread_join(work->threads[i], NULL);
    work->n_threads = 0;
}

static struct work *destroy(struct work *work)
{
    fd_close(work->event);
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        pthread_cond_destroy(&work->lanes[i].wake);
    pthread_mutex_destroy(&work->lock);
    free(work);
    return NULL;
}

/* Signals are the loop's business: workers start with all of them blocked. */
static int start_threads(struct work *work, unsigned threads)
{
    sigset_t all;
    sigset_t before;
    int r = 0;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return -EINVAL;
    for (unsigned i = 0; i < WORK_CLASSES * threads && !r; i++) {
        r = pthread_create(&work->threads[i], NULL, worker, &work->lanes[i % WORK_CLASSES]);
        if (!r)
            work->n_threads++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int work_new(struct work **ret, unsigned threads)
{
    struct work *work;
    int r;

    if (!threads || threads > 64)
        return -EINVAL;
    work = calloc(1, sizeof(*work) + WORK_CLASSES * threads * sizeof(work->threads[0]));
    if (!work)
        return -ENOMEM;
    work->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (work->event < 0) {
        r = -errno;
        free(work);
        return fatal(r);
    }
    work->per_lane = threads;
    pthread_mutex_init(&work->lock, NULL);
    list_init(&work->finished);
    for (unsigned i = 0; i < WORK_CLASSES; i++) {
        work->lanes[i].work = work;
        list_init(&work->lanes[i].queue);
        list_init(&work->lanes[i].waiting);
        pthread_cond_init(&work->lanes[i].wake, NULL);
    }
    r = start_threads(work, threads);
    if (r < 0) {
        stop_threads(work);
        destroy(work);
        return fatal(r);
    }
    *ret = work;
    return 0;
}

/* Those that have a thread to go to. */
static void hand_out(struct work *work, struct lane *lane)
{
    struct list *link;

    while (lane->at_work < work->per_lane && (link = list_pop(&lane->waiting))) {
        struct work_job *job = container_of(link, struct work_job, link);

        lane->at_work++;
        if (job->begins)
            job->begins(job);
        take(work);
        list_append(&lane->queue, link);
        pthread_cond_signal(&lane->wake);
        give(work);
    }
}

static void finish(struct work *work)
{
    struct list finished = LIST_INIT(finished);
    struct list *link;

    take(work);
    list_splice(&finished, &work->finished);
    give(work);
    while ((link = list_pop(&finished))) {
        struct work_job *job = container_of(link, struct work_job, link);

        work->pending--;
        work->lanes[job->class].at_work--;
        job->done(job);
    }
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        hand_out(work, &work->lanes[i]);
}

struct work *work_free(struct work *work)
{
    if (!work)
        return NULL;
    stop_threads(work);
    /* a done() may submit another job, which no thread would run any more */
    while (work->pending) {
        finish(work);
        for (unsigned i = 0; i < WORK_CLASSES; i++) {
            struct list *link = list_pop(&work->lanes[i].queue);

            if (link) {
                struct work_job *job = container_of(link, struct work_job, link);

                job->run(job);
                list_append(&work->finished, link);
            }
        }
    }
    return destroy(work);
}

void work_submit(struct work *work, enum work_class kind, struct work_job *job)
{
    struct lane *lane = &work->lanes[kind];

    assert(!list_is_linked(&job->link));
    work->pending++;
    job->class = kind;
    list_append(&lane->waiting, &job->link);
    hand_out(work, lane);
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
    finish(work);
    return 0;
}

unsigned work_pending(const struct work *work)
{
    return work->pending;
}
