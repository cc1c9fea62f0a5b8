/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks around a fork. They are held by whoever forks, so that the child finds whole what they guard; library.c and
 * shared.c take them.
 */
#pragma once

#include <pthread.h>

/* In the child: given up, and then made anew, since it may count waiters that the child does not have. */
static inline void fork_renew_mutex(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    (void)pthread_mutex_init(mutex, NULL);
}
