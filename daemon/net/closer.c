/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See closer.h. One lock guards all queues; nobody holds it while closing.
 *
 * A thread starts when its queue gets a descriptor and stays for a moment after the last one, so that a burst needs one
 * thread. A queue whose thread cannot be started tries again at the next descriptor of anybody.
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
/* How long closers_free() waits for a close that hangs. */
#define PATIENCE_NS NSEC_PER_SEC
/* A long slice: a thread that wakes up runs before it. */
#define SLICE_NS UINT64_C(20000000)
/* A thread only calls close(). */
#define STACK_SIZE (256u << 10)

enum thread_state {
    THREAD_NONE,
    THREAD_RUNS,
    THREAD_ENDED, /* to be joined, which does not wait */
};

struct closer {
    struct fd_closer fds;
    struct closers *closers;
    uid_t uid;
    unsigned refs;    /* the loop's */
    unsigned pending; /* atomic; includes the one that is being closed */
    /* under the lock */
    int first, last; /* -1: empty */
    enum thread_state state;
    pthread_t thread;
    pthread_cond_t wake;
    struct list link; /* in the list of all */
    UT_hash_handle hh;
};

struct closers {
    pthread_mutex_t lock;
    pthread_attr_t attributes;
    pthread_condattr_t monotonic;
    struct closer nobody;
    struct closer *by_uid; /* hash, the loop's */
    struct list list;      /* the loop's: all, nobody's too */
    unsigned pending;      /* atomic */
    unsigned starved;      /* the loop's: how many had no thread after the last try */
    bool stopping;         /* under the lock, like the two below */
    unsigned running;      /* threads */
    pthread_cond_t ended;  /* one has */
    unsigned n_next;
    int next[]; /* under the lock: the one after each descriptor that waits, -1: none */
};

/* With the lock. */
static void closer_push(struct closer *closer, int fd)
{
    int *next = closer->closers->next;

    next[fd] = -1;
    if (closer->first < 0)
        closer->first = fd;
    else
        next[closer->last] = fd;
    closer->last = fd;
}

static int closer_pop(struct closer *closer)
{
    int fd = closer->first;

    if (fd >= 0)
        closer->first = closer->closers->next[fd];
    return fd;
}

static struct timespec closer_deadline(uint64_t ns)
{
    uint64_t at = clock_now_ns() + ns;

    return (struct timespec){.tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC)};
}

/* With the lock. False: nothing came, or the broker is shutting down. */
static bool closer_wait(struct closer *closer)
{
    struct timespec until = closer_deadline(IDLE_NS);

    while (closer->first < 0 && !closer->closers->stopping)
        if (pthread_cond_timedwait(&closer->wake, &closer->closers->lock, &until) == ETIMEDOUT)
            break;
    return closer->first >= 0;
}

/* A socket can be set not to linger; one in a packet that nobody has received cannot. */
static void close_one(int fd)
{
    const struct linger at_once = {.l_onoff = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    fd_close(fd);
}

static void *closer_run(void *argument)
{
    struct closer *closer = argument;
    static const struct sys_schedule schedule = {.policy = SCHED_BATCH, .slice = SLICE_NS};
    struct closers *closers = closer->closers;

    (void)sys_schedule_self(&schedule);
    pthread_mutex_lock(&closers->lock);
    while (closer_wait(closer)) {
        int fd = closer_pop(closer);

        pthread_mutex_unlock(&closers->lock);
        close_one(fd);
        __atomic_sub_fetch(&closer->pending, 1, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&closers->pending, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&closers->lock);
    }
    closer->state = THREAD_ENDED;
    closers->running--;
    pthread_cond_signal(&closers->ended);
    pthread_mutex_unlock(&closers->lock);
    return NULL;
}

/* With the lock. Signals are the loop's business: the thread starts with all of them blocked. */
static bool closer_start(struct closer *closer)
{
    sigset_t all, before;
    int r;

    if (closer->state == THREAD_RUNS)
        return true;
    if (closer->state == THREAD_ENDED)
        pthread_join(closer->thread, NULL);
    closer->state = THREAD_NONE;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    r = pthread_create(&closer->thread, &closer->closers->attributes, closer_run, closer);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        return false;
    closer->state = THREAD_RUNS;
    closer->closers->running++;
    return true;
}

/* With the lock: tries again for those that wait without a thread. */
static void closers_start_starved(struct closers *closers)
{
    closers->starved = 0;
    list_for_each_entry(closer, &closers->list, struct closer, link)
        if (closer->first >= 0 && !closer_start(closer))
            closers->starved++;
}

void closer_close(struct closer *closer, int fd)
{
    struct closers *closers = closer->closers;

    if (fd < 0)
        return;
    if ((unsigned)fd >= closers->n_next) {
        /* somebody raised our limit from outside */
        fd_close(fd);
        return;
    }
    __atomic_add_fetch(&closer->pending, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&closers->pending, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&closers->lock);
    closer_push(closer, fd);
    if (closers->starved)
        closers_start_starved(closers);
    else if (!closer_start(closer))
        closers->starved = 1;
    pthread_cond_signal(&closer->wake);
    pthread_mutex_unlock(&closers->lock);
}

static void closer_on_fdset(struct fd_closer *fds, int fd)
{
    closer_close(container_of(fds, struct closer, fds), fd);
}

struct fd_closer *closer_fds(struct closer *closer)
{
    return &closer->fds;
}

unsigned closer_pending(const struct closer *closer)
{
    return __atomic_load_n(&closer->pending, __ATOMIC_RELAXED);
}

unsigned closers_pending(const struct closers *closers)
{
    return __atomic_load_n(&closers->pending, __ATOMIC_RELAXED);
}

/* ---- one of a user ----------------------------------------------------------------------------------------------- */

static void closer_init(struct closer *closer, struct closers *closers, uid_t uid)
{
    *closer = (struct closer){.closers = closers, .uid = uid, .first = -1, .last = -1, .state = THREAD_NONE};
    closer->fds.close = closer_on_fdset;
    pthread_cond_init(&closer->wake, &closers->monotonic);
    list_init(&closer->link);
    list_append(&closers->list, &closer->link);
}

/* Its thread is not running. */
static void closer_deinit(struct closer *closer)
{
    if (closer->state == THREAD_ENDED)
        pthread_join(closer->thread, NULL);
    list_remove(&closer->link);
    pthread_cond_destroy(&closer->wake);
}

/* Frees those of users who have gone, if their thread has ended. */
static void closers_sweep(struct closers *closers)
{
    list_for_each_entry_safe(closer, &closers->list, struct closer, link) {
        bool over;

        if (closer == &closers->nobody || closer->refs)
            continue;
        pthread_mutex_lock(&closers->lock);
        over = closer->first < 0 && closer->state != THREAD_RUNS;
        pthread_mutex_unlock(&closers->lock);
        if (!over)
            continue;
        HASH_DEL(closers->by_uid, closer);
        closer_deinit(closer);
        free(closer);
    }
}

struct closer *closers_get(struct closers *closers, uid_t uid)
{
    struct closer *closer;

    HASH_FIND(hh, closers->by_uid, &uid, sizeof(uid), closer);
    if (!closer) {
        closers_sweep(closers);
        closer = malloc(sizeof(*closer));
        if (!closer)
            return closers_nobody(closers);
        closer_init(closer, closers, uid);
        HASH_ADD(hh, closers->by_uid, uid, sizeof(closer->uid), closer);
        if (!closer->hh.tbl) {
            closer_deinit(closer);
            free(closer);
            return closers_nobody(closers);
        }
    }
    closer->refs++;
    return closer;
}

struct closer *closers_nobody(struct closers *closers)
{
    return &closers->nobody;
}

void closer_unref(struct closer *closer)
{
    if (closer != &closer->closers->nobody)
        closer->refs--;
}

/* ---- start, end -------------------------------------------------------------------------------------------------- */

int closers_new(struct closers **ret, unsigned descriptors)
{
    /* a row is touched when its descriptor arrives, so a high limit costs addresses only */
    struct closers *closers = calloc(1, sizeof(*closers) + (size_t)descriptors * sizeof(closers->next[0]));

    if (!closers)
        return -ENOMEM;
    closers->n_next = descriptors;
    list_init(&closers->list);
    pthread_mutex_init(&closers->lock, NULL);
    pthread_attr_init(&closers->attributes);
    (void)pthread_attr_setstacksize(&closers->attributes, STACK_SIZE);
    pthread_condattr_init(&closers->monotonic);
    (void)pthread_condattr_setclock(&closers->monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&closers->ended, &closers->monotonic);
    closer_init(&closers->nobody, closers, (uid_t)-1);
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
    list_for_each_entry(closer, &closers->list, struct closer, link)
        pthread_cond_signal(&closer->wake);
    while (closers->running)
        if (pthread_cond_timedwait(&closers->ended, &closers->lock, &until) == ETIMEDOUT)
            break;
    hanging = closers->running;
    pthread_mutex_unlock(&closers->lock);
    if (hanging) {
        /* a thread whose close() returns after all still needs everything */
        log_warning("descriptors that %u users sent take long to close; the broker does not wait for them", hanging);
        return NULL;
    }
    list_for_each_entry_safe(closer, &closers->list, struct closer, link) {
        while (closer->first >= 0)
            fd_close(closer_pop(closer)); /* it never had a thread */
        if (closer != &closers->nobody)
            HASH_DEL(closers->by_uid, closer);
        closer_deinit(closer);
        if (closer != &closers->nobody)
            free(closer);
    }
    pthread_cond_destroy(&closers->ended);
    pthread_condattr_destroy(&closers->monotonic);
    pthread_attr_destroy(&closers->attributes);
    pthread_mutex_destroy(&closers->lock);
    free(closers);
    return NULL;
}
