/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as a whole: its version, and forks. There is nothing to set up or tear down, since all that the library
 * has belongs to providers and pools. So umfInit() and umfTearDown() need not be balanced, and pools may outlive them.
 */
#include <pthread.h>

#include <memclient/umf/umf.h>

#include "umf/ipc_lock.h"
#include "umf/log.h"
#include "umf/mutex.h"
#include "umf/opened.h"
#include "umf/owned.h"
#include "umf/pool_threads.h"

static void library_before_fork(void)
{
    log_flush();
    thread_parts_lock_all();
    pthread_mutex_lock(&opened_mutex);
    pthread_mutex_lock(&owned_mutex);
    ipc_lock();
}

static void library_in_parent(void)
{
    ipc_unlock();
    pthread_mutex_unlock(&owned_mutex);
    pthread_mutex_unlock(&opened_mutex);
    thread_parts_unlock_all();
}

static void library_in_child(void)
{
    ipc_lock_in_child();
    mutex_renew(&owned_mutex);
    mutex_renew(&opened_mutex);
    opened_in_child();
    thread_parts_in_child();
}

__attribute__((__constructor__)) static void library_loaded(void)
{
    log_init();
    (void)pthread_atfork(library_before_fork, library_in_parent, library_in_child);
}

__attribute__((__destructor__)) static void library_unloaded(void)
{
    log_deinit();
}

int umfInit(void)
{
    return 0;
}

void umfTearDown(void) {}

int umfGetCurrentVersion(void)
{
    return UMF_VERSION_CURRENT;
}
