/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as a whole: being counted, and forks.
 *
 * There is nothing to initialise, so the count only says when the library is done with; being loaded counts as one.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <memclient/umf.h>

#include "umf/area.h"
#include "umf/tracker.h"
#include "umf/tracking.h"

static atomic_int count;

static void fork_prepare(void)
{
    tracking_fork_prepare();
    tracker_fork_prepare();
    area_fork_prepare();
}

static void fork_parent(void)
{
    area_fork_parent();
    tracker_fork_parent();
    tracking_fork_parent();
}

static void fork_child(void)
{
    area_fork_child();
    tracker_fork_child();
    tracking_fork_child();
}

__attribute__((__constructor__)) static void loaded(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
    (void)umfInit();
}

int umfInit(void)
{
    atomic_fetch_add(&count, 1);
    return 0;
}

void umfTearDown(void)
{
    int now = atomic_load(&count);

    while (now && !atomic_compare_exchange_weak(&count, &now, now - 1))
        ;
}

int umfGetCurrentVersion(void)
{
    return UMF_VERSION_CURRENT;
}
