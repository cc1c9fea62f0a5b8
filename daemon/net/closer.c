/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See closer.h. One lock guards all queues; nobody holds it while closing.
 *
 * A thread is started when its queue has something and stays for a moment after the last one, so that a burst takes
 * one. If no thread can be had, the queue waits for the next descriptor of anybody, when it is tried again.
 */
#include "net/closer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"
#include "log/log.h"
#include "sys/schedule.h"

/* How long a thread stays without work. */
#define IDLE_NS NSEC_PER_SEC
/* How long the end of the broker waits for a close that hangs. */
#define PATIENCE_NS NSEC_PER_SEC
/* Whoever wakes up goes before it. */
#define SLICE_NS UINT64_C(20000000)
/* All that a thread does is to call close(). */
#define STACK_SIZE (256u << 10)

enum thread_state {
    THREAD_NONE,
    THREAD_RUNS,
    THREAD_ENDED, /* to be joined, which does not wait */
};

struct queue {
    struct closer closer;
    struct closers *closers;
    uid_t uid;
    unsigned refs;    /* the loop's */
    unsigned pending; /* atomic: the one that is being closed is among them */
    /* under the lock */
    int first, last; /* -1: empty */
    enum thread_state state;
    pthread_t thread;
    pthread_cond_t wake;
    struct list link; /* in `queues` */
    UT_hash_handle hh;
};

struct closers {
    pthread_mutex_t lock;
    pthread_attr_t attributes;
    pthread_condattr_t monotonic;
    struct queue nobody;
    struct queue *by_uid; /* hash, the loop's */
    struct list queues;   /* the loop's: all, nobody's too */
    unsigned pending;     /* atomic */
    unsigned starved;     /* the loop's: queues whose thread could not be started, at the last try */
    bool stopping;        /* under the lock, like the two below */
    unsigned running;     /* threads */
    pthread_cond_t ended; /* one has */
    unsigned n_next;
    int next[]; /* under the lock: behind each descriptor that waits, -1 = none */
};

static struct queue *queue_of(struct closer *closer)
{
    return container_of(closer, struct queue, closer);
}

/* With the lock. */
static void queue_push(struct queue *queue, int fd)
{
    int *next = queue->closers->next;

    next[fd] = -1;
    if (queue->first < 0)
        queue->first = fd;
    else
        next[queue->last] = fd;
    queue->last = fd;
}

static int queue_pop(struct queue *queue)
{
    int fd = queue->first;

    if (fd >= 0)
        queue->first = queue->closers->next[fd];
    return fd;
}

static struct timespec closer_deadline(uint64_t ns)
{
    uint64_t at = clock_now_ns() + ns;

    return (struct timespec){.tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC)};
}

/* With the lock. False: nothing came, or the broker ends. */
static bool queue_wait(struct queue *queue)
{
    struct timespec until = closer_deadline(IDLE_NS);

    while (queue->first < 0 && !queue->closers->stopping)
        if (pthread_cond_timedwait(&queue->wake, &queue->closers->lock, &until) == ETIMEDOUT)
            break;
    return queue->first >= 0;
}

/* A socket that came by itself can be told not to wait; one that lies in another one's packets cannot. */
static void close_one(int fd)
{
    const struct linger at_once = {.l_onoff = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    fd_close(fd);
}

static void *closer_run(void *argument)
{
    struct queue *queue = argument;
    static const struct sys_schedule schedule = {.policy = SCHED_BATCH, .slice = SLICE_NS};
    struct closers *closers = queue->closers;

    (void)sys_schedule_self(&schedule);
    pthread_mutex_lock(&closers->lock);
    while (queue_wait(queue)) {
        int fd = queue_pop(queue);

        pthread_mutex_unlock(&closers->lock);
        close_one(fd);
        __atomic_sub_fetch(&queue->pending, 1, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&closers->pending, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&closers->lock);
    }
    queue->state = THREAD_ENDED;
    closers->running--;
    pthread_cond_signal(&closers->ended);
    pthread_mutex_unlock(&closers->lock);
    return NULL;
}

/* With the lock. Signals are the loop's business: the thread starts with all of them blocked. */
static bool queue_start(struct queue *queue)
{
    sigset_t all, before;
    int r;

    if (queue->state == THREAD_RUNS)
        return true;
    if (queue->state == THREAD_ENDED)
        pthread_join(queue->thread, NULL);
    queue->state = THREAD_NONE;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    r = pthread_create(&queue->thread, &queue->closers->attributes, closer_run, queue);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        return false;
    queue->state = THREAD_RUNS;
    queue->closers->running++;
    return true;
}

/* With the lock. Once more for those that wait without a thread. */
static void queues_start_starved(struct closers *closers)
{
    closers->starved = 0;
    list_for_each_entry(queue, &closers->queues, struct queue, link)
        if (queue->first >= 0 && !queue_start(queue))
            closers->starved++;
}

void closer_close(struct closer *closer, int fd)
{
    struct queue *queue = queue_of(closer);
    struct closers *closers = queue->closers;

    if (fd < 0)
        return;
    if ((unsigned)fd >= closers->n_next) {
        /* somebody has raised our limit from outside */
        fd_close(fd);
        return;
    }
    __atomic_add_fetch(&queue->pending, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&closers->pending, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&closers->lock);
    queue_push(queue, fd);
    if (closers->starved)
        queues_start_starved(closers);
    else if (!queue_start(queue))
        closers->starved = 1;
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&closers->lock);
}

static void closer_on_fdset(struct fd_closer *fds, int fd)
{
    closer_close(container_of(fds, struct closer, fds), fd);
}

unsigned closer_pending(const struct closer *closer)
{
    const struct queue *queue = container_of(closer, const struct queue, closer);

    return __atomic_load_n(&queue->pending, __ATOMIC_RELAXED);
}

unsigned closers_pending(const struct closers *closers)
{
    return __atomic_load_n(&closers->pending, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------------------------------------------ queues */

static void queue_init(struct queue *queue, struct closers *closers, uid_t uid)
{
    *queue = (struct queue){.closers = closers, .uid = uid, .first = -1, .last = -1, .state = THREAD_NONE};
    queue->closer.fds.close = closer_on_fdset;
    pthread_cond_init(&queue->wake, &closers->monotonic);
    list_init(&queue->link);
    list_append(&closers->queues, &queue->link);
}

/* Its thread has ended. */
static void queue_deinit(struct queue *queue)
{
    if (queue->state == THREAD_ENDED)
        pthread_join(queue->thread, NULL);
    list_remove(&queue->link);
    pthread_cond_destroy(&queue->wake);
}

/* Users who have gone and whose thread has. */
static void queues_sweep(struct closers *closers)
{
    list_for_each_entry_safe(queue, &closers->queues, struct queue, link)
    {
        bool over;

        if (queue == &closers->nobody || queue->refs)
            continue;
        pthread_mutex_lock(&closers->lock);
        over = queue->first < 0 && queue->state != THREAD_RUNS;
        pthread_mutex_unlock(&closers->lock);
        if (!over)
            continue;
        HASH_DEL(closers->by_uid, queue);
        queue_deinit(queue);
        free(queue);
    }
}

struct closer *closers_get(struct closers *closers, uid_t uid)
{
    struct queue *queue;

    HASH_FIND(hh, closers->by_uid, &uid, sizeof(uid), queue);
    if (!queue) {
        queues_sweep(closers);
        queue = malloc(sizeof(*queue));
        if (!queue)
            return closers_nobody(closers);
        queue_init(queue, closers, uid);
        HASH_ADD(hh, closers->by_uid, uid, sizeof(queue->uid), queue);
        if (!queue->hh.tbl) {
            queue_deinit(queue);
            free(queue);
            return closers_nobody(closers);
        }
    }
    queue->refs++;
    return &queue->closer;
}

struct closer *closers_nobody(struct closers *closers)
{
    return &closers->nobody.closer;
}

void closer_unref(struct closer *closer)
{
    struct queue *queue = queue_of(closer);

    if (queue != &queue->closers->nobody)
        queue->refs--;
}

/* -------------------------------------------------------------------------------------------------- start, end */

int closers_new(struct closers **ret, unsigned descriptors)
{
    /* a row is touched when its descriptor comes here, so a high limit costs addresses only */
    struct closers *closers = calloc(1, sizeof(*closers) + (size_t)descriptors * sizeof(closers->next[0]));

    if (!closers)
        return -ENOMEM;
    closers->n_next = descriptors;
    list_init(&closers->queues);
    pthread_mutex_init(&closers->lock, NULL);
    pthread_attr_init(&closers->attributes);
    (void)pthread_attr_setstacksize(&closers->attributes, STACK_SIZE);
    pthread_condattr_init(&closers->monotonic);
    (void)pthread_condattr_setclock(&closers->monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&closers->ended, &closers->monotonic);
    queue_init(&closers->nobody, closers, (uid_t)-1);
    *ret = closers;
    return 0;
}

struct closers *closers_free(struct closers *closers)
{
    struct timespec until = closer_deadline(PATIENCE_NS);
    unsigned hanging;

    if (!closers)
        return NULL;
    pthread_mutex_lock(&closers->lock);
    closers->stopping = true;
    list_for_each_entry(queue, &closers->queues, struct queue, link)
        pthread_cond_signal(&queue->wake);
    while (closers->running)
        if (pthread_cond_timedwait(&closers->ended, &closers->lock, &until) == ETIMEDOUT)
            break;
    hanging = closers->running;
    pthread_mutex_unlock(&closers->lock);
    if (hanging) {
        /* a thread that comes out of close() after all must find everything in its place */
        log_warning("what %u users sent takes long to close; the broker does not wait for it", hanging);
        return NULL;
    }
    list_for_each_entry_safe(queue, &closers->queues, struct queue, link)
    {
        while (queue->first >= 0)
            fd_close(queue_pop(queue)); /* no thread could be had for it */
        if (queue != &closers->nobody)
            HASH_DEL(closers->by_uid, queue);
        queue_deinit(queue);
        if (queue != &closers->nobody)
            free(queue);
    }
    pthread_cond_destroy(&closers->ended);
    pthread_condattr_destroy(&closers->monotonic);
    pthread_attr_destroy(&closers->attributes);
    pthread_mutex_destroy(&closers->lock);
    free(closers);
    return NULL;
}
