/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping.
 *
 * The count says whether HSA is up. It changes under one mutex, together with everything that a step from 0 to 1 or
 * from 1 to 0 entails, and is read without it. The thread that stops sets it to 0 first, so that no other thread
 * enters, and then waits for those inside.
 */
#include <stdlib.h>

#include "hsa/headroom.h"
#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"
#include "hsa/signal.h"
#include "hsa/vmem.h"

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

/* ---- records ----------------------------------------------------------------------------------------------------- */

/*
 * Nothing is unmapped here: the context was closed, or belongs to the parent. A busy range belongs to a thread of the
 * parent that was in the middle of something, so only its record can be freed safely.
 */
static void init_forget_range(struct address_range *range)
{
    bool whole = !range->busy;

    callbacks_drop(range);
    switch (range->kind) {
    case RANGE_ALLOCATION:
        if (whole)
            memclient_buffer_unref(range_allocation(range)->buffer);
        free(range_allocation(range));
        break;
    case RANGE_ATTACHMENT:
        if (whole)
            memclient_buffer_unref(range_attachment(range)->buffer);
        free(range_attachment(range));
        break;
    case RANGE_LOCKED:
        free(range_locked(range));
        break;
    case RANGE_MAPPING:
        free(range_mapping(range));
        break;
    case RANGE_RESERVATION:
        if (whole)
            (void)memclient_reservation_release(range_reservation(range)->res);
        free(range_reservation(range));
        break;
    }
}

/* Needs the lock of the records. */
static void init_forget_records(void)
{
    struct address_range *range;

    attachments_forget();
    while ((range = address_map_pop()))
        init_forget_range(range);
    svm_forget();
    handles_forget();
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void init_fork_prepare(void)
{
    address_map_lock();
    handlers_fork_prepare();
    groups_fork_prepare();
    signals_fork_prepare();
}

static void init_fork_parent(void)
{
    signals_fork_parent();
    groups_fork_parent();
    handlers_fork_parent();
    address_map_unlock();
}

static void init_fork_child(void)
{
    signals_fork_child();
    groups_fork_child();
    handlers_fork_child();
    address_map_fork_child();
    init_forget_records();
}

/* HSA is not up in the child. The native library keeps the parent's context, and the mappings stay. */
static void init_child_anew(void)
{
    (void)pthread_rwlock_init(&runtime.in_use, NULL);
    (void)pthread_mutex_init(&starting, NULL);
    headroom_fork_child();
    assign_fork_child();
    runtime.context = NULL;
    __atomic_store_n(&runtime.count, 0, __ATOMIC_RELAXED);
}

/* Registered before the first start, since another thread may fork during it. */
static void init_watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, init_child_anew);
}

/* Registered after the native library's own handlers, so that before a fork ours takes its locks first. */
static void init_lock_forks(void)
{
    (void)pthread_atfork(init_fork_prepare, init_fork_parent, init_fork_child);
}

/* ---- up and down ------------------------------------------------------------------------------------------------- */

/* Needs `starting`. */
static hsa_status_t init_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct memclient_context *ctx;
    hsa_status_t status = runtime_choose_profile();

    if (status)
        return status;
    if (memclient_context_open(NULL, &ctx) < 0)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    (void)pthread_once(&once, init_lock_forks);
    status = topology_load(ctx);
    if (status) {
        memclient_context_close(ctx);
        return status;
    }
    runtime.context = ctx;
    headroom_start();
    return HSA_STATUS_SUCCESS;
}

/* Needs `starting`, and the count must be 0. A handler may be about to enter the runtime, so their thread is stopped
 * first. It is stopped again when all have left, since those that were inside may have added a handler meanwhile. */
static void init_stop(void)
{
    handlers_stop();
    pthread_rwlock_wrlock(&runtime.in_use);
    handlers_stop();
    groups_stop();
    signals_stop();
    memclient_context_close(runtime.context);
    runtime.context = NULL;
    address_map_lock(); /* only against a concurrent fork: no other thread is here */
    init_forget_records();
    address_map_unlock();
    pthread_rwlock_unlock(&runtime.in_use);
}

hsa_status_t hsa_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    hsa_status_t status = HSA_STATUS_SUCCESS;

    (void)pthread_once(&once, init_watch_forks);
    pthread_mutex_lock(&starting);
    if (runtime.count == INT32_MAX)
        status = HSA_STATUS_ERROR_REFCOUNT_OVERFLOW;
    else if (!runtime.count)
        status = init_start();
    if (!status)
        __atomic_store_n(&runtime.count, runtime.count + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&starting);
    return status;
}

hsa_status_t hsa_shut_down(void)
{
    hsa_status_t status = HSA_STATUS_SUCCESS;

    /* a handler gets here as well, while the thread that stops waits for it */
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&starting);
    if (!runtime.count) {
        status = HSA_STATUS_ERROR_NOT_INITIALIZED;
    } else {
        __atomic_store_n(&runtime.count, runtime.count - 1, __ATOMIC_RELEASE);
        if (!runtime.count)
            init_stop();
    }
    pthread_mutex_unlock(&starting);
    return status;
}
