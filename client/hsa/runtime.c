/* SPDX-License-Identifier: Apache-2.0 */
/* See runtime.h: how entry points begin and end, and the statuses for failures of the native API. */
#include "hsa/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa_ext_memoryd.h>

struct runtime runtime = {.in_use = PTHREAD_RWLOCK_INITIALIZER};

static int profile = -1; /* atomic; -1: as the environment says */

/* ---- the profile ------------------------------------------------------------------------------------------------- */

hsa_status_t runtime_choose_profile(void)
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

/* ---- being in use ------------------------------------------------------------------------------------------------ */

bool runtime_is_up(void)
{
    return __atomic_load_n(&runtime.count, __ATOMIC_ACQUIRE) > 0;
}

/* The check before the lock is needed as well: without it, late callers could keep hsa_shut_down() waiting forever. */
struct memclient_context *runtime_enter(void)
{
    if (!runtime_is_up())
        return NULL;
    pthread_rwlock_rdlock(&runtime.in_use);
    if (runtime_is_up())
        return runtime.context;
    pthread_rwlock_unlock(&runtime.in_use);
    return NULL;
}

void runtime_leavep(struct memclient_context **ctx)
{
    if (*ctx)
        pthread_rwlock_unlock(&runtime.in_use);
    *ctx = NULL;
}

struct memclient_context *runtime_context(void)
{
    return runtime.context;
}

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

/* Statuses by errno. All others are HSA_STATUS_ERROR. */
static const hsa_status_t statuses[] = {
    [EINVAL] = HSA_STATUS_ERROR_INVALID_ARGUMENT,
    [EOVERFLOW] = HSA_STATUS_ERROR_INVALID_ARGUMENT,
    [EFBIG] = HSA_STATUS_ERROR_INVALID_ALLOCATION,
    [EREMOTE] = HSA_STATUS_ERROR_INVALID_ALLOCATION,
    [ESTALE] = HSA_STATUS_ERROR_INVALID_ALLOCATION,
    [ENOMEM] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EDQUOT] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ENFILE] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EMFILE] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EAGAIN] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EADDRINUSE] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EADDRNOTAVAIL] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ETIMEDOUT] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ENODEV] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ENXIO] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    /* no broker, or no access to it */
    [ENOENT] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ECONNREFUSED] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EACCES] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EPROTONOSUPPORT] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [EPROTO] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ECONNRESET] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ENOTCONN] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
    [ESHUTDOWN] = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
};

hsa_status_t runtime_status(int r)
{
    unsigned error = -(unsigned)r;

    if (!error)
        return HSA_STATUS_SUCCESS;
    return error < sizeof(statuses) / sizeof(statuses[0]) && statuses[error] ? statuses[error] : HSA_STATUS_ERROR;
}
