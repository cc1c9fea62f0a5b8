/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as a whole: its version, and forks. There is nothing to set up and nothing to end: what the library
 * has belongs to providers and pools, which their owner destroys. So calls for that need not even be counted, and
 * one too many, or pools that outlive the last, do no harm.
 */
#include <pthread.h>

#include <memclient/umf/umf.h>

#include "umf/ipc_lock.h"
#include "umf/log.h"
#include "umf/opened.h"
#include "umf/owned.h"
#include "umf/pool_threads.h"

static void fork_prepare(void)
{
    log_fork_prepare();
    thread_parts_fork_prepare();
    opened_fork_prepare();
    owned_fork_prepare();
    ipc_lock_fork_prepare();
}

static void fork_parent(void)
{
    ipc_lock_fork_parent();
    owned_fork_parent();
    opened_fork_parent();
    thread_parts_fork_parent();
}

static void fork_child(void)
{
    ipc_lock_fork_child();
    owned_fork_child();
    opened_fork_child();
    thread_parts_fork_child();
}

__attribute__((__constructor__)) static void loaded(void)
{
    log_init();
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

__attribute__((__destructor__)) static void unloaded(void)
{
    log_deinit();
}

int umfInit(void)
{
    return 0;
}

void umfTearDown(void)
{
}

int umfGetCurrentVersion(void)
{
    return UMF_VERSION_CURRENT;
}
