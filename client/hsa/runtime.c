/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping, and being in use meanwhile.
 *
 * The count says whether HSA is up. It goes from 0 to 1 and from 1 to 0 under one mutex, with everything that this
 * means; between other numbers it moves by itself, so that hsa_init() in a thousand threads costs each an atomic
 * instruction. Whoever is stopping sets it to 0 first, so that nobody enters any more, and then waits for those inside.
 */
#include "hsa/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa_ext_memoryd.h>

#include "hsa/group.h"
#include "hsa/handlers.h"
#include "hsa/memory.h"
#include "hsa/place.h"
#include "hsa/room.h"
#include "hsa/signal.h"
#include "hsa/svm.h"
#include "hsa/topology.h"
#include "hsa/vmem.h"

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t in_use = PTHREAD_RWLOCK_INITIALIZER;
static int32_t count;               /* atomic */
static struct memclient *context;   /* while the count is not 0 */
static int profile = -1;            /* atomic; -1 = as the environment says */

/* ---- the profile ----------------------------------------------------------------------------------------- */

static hsa_status_t choose_profile(void)
{
    const char *text = secure_getenv("MEMORYD_HSA_PROFILE");
    int unset = -1, wanted = MEMCLIENT_HSA_PROFILE_DOCUMENT;

    if (text && !strcmp(text, "rocr"))
        wanted = MEMCLIENT_HSA_PROFILE_ROCR;
    else if (text && *text && strcmp(text, "document") != 0 && __atomic_load_n(&profile, __ATOMIC_RELAXED) == unset)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    (void)__atomic_compare_exchange_n(&profile, &unset, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t memclient_hsa_set_profile(enum memclient_hsa_profile wanted)
{
    if (wanted != MEMCLIENT_HSA_PROFILE_DOCUMENT && wanted != MEMCLIENT_HSA_PROFILE_ROCR)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    __atomic_store_n(&profile, (int)wanted, __ATOMIC_RELAXED);
    return HSA_STATUS_SUCCESS;
}

bool runtime_is_like_rocr(void)
{
    return __atomic_load_n(&profile, __ATOMIC_RELAXED) == MEMCLIENT_HSA_PROFILE_ROCR;
}

/* ---- fork ------------------------------------------------------------------------------------------------ */

static void fork_prepare(void)
{
    places_lock();
    handlers_fork_prepare();
    groups_fork_prepare();
    signals_fork_prepare();
}

static void fork_parent(void)
{
    signals_fork_parent();
    groups_fork_parent();
    handlers_fork_parent();
    places_unlock();
}

static void forget_records(void)
{
    signals_fork_child();
    groups_fork_child();
    handlers_fork_child();
    places_fork_child();
    places_forget();
    svm_forget();
    handles_forget();
}

/* Nothing is up here. The parent's context stays where the native library has it, and so do its mappings. */
static void begin_anew(void)
{
    (void)pthread_rwlock_init(&in_use, NULL);
    (void)pthread_mutex_init(&starting, NULL);
    room_fork_child();
    assign_fork_child();
    context = NULL;
    __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
}

/* Before anybody starts: another thread may fork meanwhile. */
static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, begin_anew);
}

/* After the native library's own handlers, so that before a fork ours is the first to take a lock. */
static void keep_records_whole(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, forget_records);
}

/* ---- up and down ----------------------------------------------------------------------------------------- */

/* With `starting`. */
static hsa_status_t start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct memclient *ctx;
    hsa_status_t status = choose_profile();

    if (status)
        return status;
    if (memclient_open(NULL, &ctx) < 0)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    (void)pthread_once(&once, keep_records_whole);
    status = topology_load(ctx);
    if (status) {
        memclient_close(ctx);
        return status;
    }
    context = ctx;
    room_start();
    return HSA_STATUS_SUCCESS;
}

/* With `starting`, and the count at 0. A handler may be about to enter, so it is waited for first; who was inside may
 * have added another one meanwhile. */
static void stop(void)
{
    handlers_stop();
    pthread_rwlock_wrlock(&in_use);
    handlers_stop();
    groups_stop();
    signals_stop();
    memclient_close(context);
    context = NULL;
    places_lock(); /* only for a fork meanwhile: nobody else is here */
    places_forget();
    svm_forget();
    handles_forget();
    places_unlock();
    pthread_rwlock_unlock(&in_use);
}

hsa_status_t hsa_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    hsa_status_t status = HSA_STATUS_SUCCESS;

    for (;;) {
        if (n == INT32_MAX)
            return HSA_STATUS_ERROR_REFCOUNT_OVERFLOW;
        if (n) {
            if (__atomic_compare_exchange_n(&count, &n, n + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return HSA_STATUS_SUCCESS;
            continue;
        }
        (void)pthread_once(&once, watch_forks);
        pthread_mutex_lock(&starting);
        n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
        if (!n) {
            status = start();
            if (!status)
                __atomic_store_n(&count, 1, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&starting);
        if (!n)
            return status;
    }
}

hsa_status_t hsa_shut_down(void)
{
    int32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    bool done;

    for (;;) {
        if (!n)
            return HSA_STATUS_ERROR_NOT_INITIALIZED;
        if (n > 1) {
            if (__atomic_compare_exchange_n(&count, &n, n - 1, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return HSA_STATUS_SUCCESS;
            continue;
        }
        pthread_mutex_lock(&starting);
        done = __atomic_compare_exchange_n(&count, &n, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        if (done)
            stop();
        pthread_mutex_unlock(&starting);
        if (done)
            return HSA_STATUS_SUCCESS;
    }
}

bool runtime_is_up(void)
{
    return __atomic_load_n(&count, __ATOMIC_ACQUIRE) > 0;
}

/* Asks before it takes the lock as well: else callers that come too late could keep stop() waiting for ever. */
hsa_status_t runtime_enter(void)
{
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    pthread_rwlock_rdlock(&in_use);
    if (runtime_is_up())
        return HSA_STATUS_SUCCESS;
    pthread_rwlock_unlock(&in_use);
    return HSA_STATUS_ERROR_NOT_INITIALIZED;
}

void runtime_leave(void)
{
    pthread_rwlock_unlock(&in_use);
}

struct memclient *runtime_context(void)
{
    return context;
}

hsa_status_t runtime_status(int r)
{
    switch (-r) {
    case 0:
        return HSA_STATUS_SUCCESS;
    case EINVAL:
    case EOVERFLOW:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    case EFBIG:
    case EREMOTE:
    case ESTALE:
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    case ENOMEM:
    case EDQUOT:
    case ENFILE:
    case EMFILE:
    case EAGAIN:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case ETIMEDOUT:
    case ENODEV:
    case ENXIO:
    /* no broker, or none that lets us in */
    case ENOENT:
    case ECONNREFUSED:
    case EACCES:
    case EPROTONOSUPPORT:
    case EPROTO:
    case ECONNRESET:
    case ENOTCONN:
    case ESHUTDOWN:
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    default:
        return HSA_STATUS_ERROR;
    }
}
