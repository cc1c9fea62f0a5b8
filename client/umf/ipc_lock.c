/* SPDX-License-Identifier: Apache-2.0 */
/* See ipc_lock.h. */
#include "umf/ipc_lock.h"

#include <pthread.h>

#define LOCKS 16

/* Writers go first: they are few, and there is always another reader. */
static struct {
    pthread_rwlock_t lock;
} __attribute__((__aligned__(128))) locks[LOCKS] = {
    [0 ... LOCKS - 1] = {PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP},
};

/* Each thread keeps to one of the locks. */
static pthread_rwlock_t *reader_lock(void)
{
    static unsigned threads;
    static __thread unsigned mine; /* 0: none yet */

    if (!mine)
        mine = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % LOCKS + 1;
    return &locks[mine - 1].lock;
}

void ipc_lock_read(void)
{
    pthread_rwlock_rdlock(reader_lock());
}

void ipc_unlock_read(void)
{
    pthread_rwlock_unlock(reader_lock());
}

void ipc_lock(void)
{
    for (unsigned i = 0; i < LOCKS; i++)
        pthread_rwlock_wrlock(&locks[i].lock);
}

void ipc_unlock(void)
{
    for (unsigned i = LOCKS; i--;)
        pthread_rwlock_unlock(&locks[i].lock);
}

/* They are made anew, since they have an owner, and count waiters, that the child does not have. */
void ipc_lock_in_child(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

    ipc_unlock();
    for (unsigned i = 0; i < LOCKS; i++)
        locks[i].lock = fresh;
}
