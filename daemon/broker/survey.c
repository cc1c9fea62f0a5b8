/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See survey.h. The thread gets some at a time. What is needed before the thread has seen it is marked, and not looked
 * at any more.
 */
#include "broker/survey.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* With fewer, making a thread costs more than it saves. */
#define WORTH_IT 256
/* So many are given to the thread at a time. */
#define SOME 64
/* Descriptors that this process has besides. */
#define SPARE 64

enum { TO_SEE, SEEN, NOT_NEEDED };

/* They are needed in another order than they came: one line of the cache each. */
struct entry {
    _Alignas(64) struct handle_probe look;
    int fd; /* -1: it is of no buffer */
    atomic_int state;
};

struct survey {
    pthread_t thread;
    sem_t come; /* some more, or it is over */
    atomic_bool over;
    size_t room;
    size_t n; /* that have come */
    struct entry entries[];
};

static void survey_look(struct entry *entry)
{
    if (entry->fd < 0 || atomic_load_explicit(&entry->state, memory_order_relaxed) != TO_SEE)
        return;
    handle_probe(entry->fd, &entry->look);
    atomic_store_explicit(&entry->state, SEEN, memory_order_release);
}

static void *survey_thread(void *argument)
{
    struct survey *survey = argument;

    for (size_t i = 0; i + SOME <= survey->room; i += SOME) {
        while (sem_wait(&survey->come) < 0)
            ;
        for (size_t k = 0; k < SOME; k++) {
            if (atomic_load_explicit(&survey->over, memory_order_relaxed))
                return NULL;
            survey_look(&survey->entries[i + k]);
        }
    }
    return NULL;
}

/* Signals are for the loop. */
static int survey_start(struct survey *survey)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&survey->thread, NULL, survey_thread, survey);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* A table of descriptors that two threads share would have to wait for all processors whenever it grows. */
static bool grow_fd_table(size_t n)
{
    int fd = n < INT_MAX - SPARE ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)n + SPARE) : -1;
    bool made = fd >= 0;

    (void)fd_close(fd);
    return made;
}

struct survey *survey_begin(size_t n)
{
    struct survey *survey;
    size_t size;

    if (n < WORTH_IT || !grow_fd_table(n))
        return NULL;
    size = sizeof(*survey) + n * sizeof(survey->entries[0]);
    survey = aligned_alloc(_Alignof(struct survey), size);
    if (!survey)
        return NULL;
    memset(survey, 0, size);
    survey->room = n;
    (void)sem_init(&survey->come, 0, 0);
    if (!survey_start(survey))
        return survey;
    (void)sem_destroy(&survey->come);
    free(survey);
    return NULL;
}

void survey_add(struct survey *survey, int fd)
{
    if (!survey || survey->n == survey->room)
        return;
    survey->entries[survey->n++].fd = fd;
    if (survey->n % SOME == 0)
        (void)sem_post(&survey->come);
}

const struct handle_probe *survey_seen(struct survey *survey, size_t i)
{
    struct entry *entry = survey && i < survey->n ? &survey->entries[i] : NULL;

    return entry && atomic_exchange_explicit(&entry->state, NOT_NEEDED, memory_order_acquire) == SEEN ? &entry->look
                                                                                                      : NULL;
}

struct survey *survey_end(struct survey *survey)
{
    if (!survey)
        return NULL;
    atomic_store_explicit(&survey->over, true, memory_order_relaxed);
    (void)sem_post(&survey->come);
    (void)pthread_join(survey->thread, NULL);
    (void)sem_destroy(&survey->come);
    free(survey);
    return NULL;
}
