/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes that are held until the end of a scope, and around a fork.
 *
 *     _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&lock);
 */
#pragma once

#include <pthread.h>

#include "base/cleanup.h"

static inline pthread_mutex_t *mutex_lock(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void mutex_unlockp(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

#define _cleanup_unlock_ __attribute__((__unused__)) _cleanup_(mutex_unlockp)

/* In the child of a fork, which has inherited the mutex locked: makes it anew, since it may count waiters that the
 * child does not have. */
static inline void mutex_renew(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    (void)pthread_mutex_init(mutex, NULL);
}
