/* SPDX-License-Identifier: Apache-2.0 */
/* See free_queue.h. */
#include "opencl/free_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER; /* no thread is releasing anything */
static struct list queue = LIST_INIT(queue);
static unsigned n_releasing; /* threads */
static bool started;

/* Releases the first entry. The caller has the lock, which is not held meanwhile. False: the queue is empty. */
static bool free_queue_release_first(void)
{
    struct list *link = list_pop(&queue);
    struct queued_free *queued;

    if (!link)
        return false;
    n_releasing++;
    pthread_mutex_unlock(&lock);
    queued = container_of(link, struct queued_free, link);
    queued->release(queued);
    pthread_mutex_lock(&lock);
    if (!--n_releasing)
        pthread_cond_broadcast(&idle);
    return true;
}

static void *free_queue_thread(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;)
        if (!free_queue_release_first())
            pthread_cond_wait(&not_empty, &lock);
    return NULL;
}

/* Starts the thread, which blocks all signals: they are for the program's threads. The caller has the lock. */
static bool free_queue_start(void)
{
    sigset_t all, before;
    pthread_t thread;

    if (started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = !pthread_create(&thread, NULL, free_queue_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

void free_queue_put(struct queued_free *queued)
{
    pthread_mutex_lock(&lock);
    if (free_queue_start()) {
        list_append(&queue, &queued->link);
        pthread_cond_signal(&not_empty);
        queued = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (queued)
        queued->release(queued);
}

void free_queue_flush(void)
{
    pthread_mutex_lock(&lock);
    while (free_queue_release_first())
        ;
    while (n_releasing)
        pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
}

void free_queue_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void free_queue_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

void free_queue_in_child(void)
{
    list_init(&queue);
    n_releasing = 0;
    started = false;
    pthread_cond_init(&not_empty, NULL);
    pthread_cond_init(&idle, NULL);
    pthread_mutex_unlock(&lock);
}
