/* SPDX-License-Identifier: Apache-2.0 */
/* See returns.h. */
#include "opencl/returns.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t something = PTHREAD_COND_INITIALIZER; /* is in the line */
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;      /* nobody is at work any more */
static struct list line = LIST_INIT(line);
static unsigned at_work; /* threads that are giving something back */
static bool started;

/* With the lock, which is not held meanwhile. False: there is nothing. */
static bool release_first(void)
{
    struct list *link = list_pop(&line);
    struct returned *returned;

    if (!link)
        return false;
    at_work++;
    pthread_mutex_unlock(&lock);
    returned = container_of(link, struct returned, link);
    returned->release(returned);
    pthread_mutex_lock(&lock);
    if (!--at_work)
        pthread_cond_broadcast(&done);
    return true;
}

static void *work(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;)
        if (!release_first())
            pthread_cond_wait(&something, &lock);
    return NULL;
}

/* With the lock. Signals are the program's own threads'. */
static bool start(void)
{
    sigset_t all, before;
    pthread_t thread;

    if (started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = !pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

void returns_put(struct returned *returned)
{
    pthread_mutex_lock(&lock);
    if (start()) {
        list_append(&line, &returned->link);
        pthread_cond_signal(&something);
        returned = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (returned)
        returned->release(returned);
}

void returns_flush(void)
{
    pthread_mutex_lock(&lock);
    while (release_first())
        ;
    while (at_work)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

void returns_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void returns_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

void returns_in_child(void)
{
    list_init(&line);
    at_work = 0;
    started = false;
    pthread_cond_init(&something, NULL);
    pthread_cond_init(&done, NULL);
    pthread_mutex_unlock(&lock);
}
