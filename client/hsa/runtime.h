/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HSA runtime as a whole: whether it is up, its session with the broker, and what every entry point begins with.
 *
 * hsa_init() counts up and hsa_shut_down() down; only the first and the last do anything. In between there is one
 * memclient context, and closing it takes back everything that HSA has in this process, mappings and all; what is left
 * to do then is to forget the records of it. So does the child of a fork, where nothing is up and the parent's memory
 * stays mapped as it is.
 *
 * An entry point begins like this, and the rest of it cannot have the ground taken away:
 *
 *     RUNTIME_NEEDED();
 *
 * It takes a read lock until the function's end, which is what the last hsa_shut_down() waits for. So functions of the
 * application are called after it, or between runtime_leave() and runtime_enter(): they may shut down. What reads only
 * the topology, which stays for good, asks runtime_is_up() instead and takes no lock.
 *
 * Locks, in the order in which they are taken: starting and stopping (init.c); being in use (here); the records
 * (place.h). The last is never held while the broker is called.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/memclient.h>

#include "base/cleanup.h"

/* Changed by init.c alone. */
extern struct runtime {
    int32_t count;             /* atomic */
    pthread_rwlock_t in_use;   /* read by entry points */
    struct memclient *context; /* while the count is not 0 */
} runtime;

/* One atomic load. */
bool runtime_is_up(void);

/* NOT_INITIALIZED, or SUCCESS; then runtime_leave() follows. */
hsa_status_t runtime_enter(void);
void runtime_leave(void);

static inline void runtime_leavep(const bool *entered)
{
    if (*entered)
        runtime_leave();
}

#define RUNTIME_NEEDED()                                                  \
    if (runtime_enter() != HSA_STATUS_SUCCESS)                            \
        return HSA_STATUS_ERROR_NOT_INITIALIZED;                          \
    _cleanup_(runtime_leavep) __attribute__((__unused__)) const bool runtime_entered_ = true

/* For functions that call the application at their end: RUNTIME_NEEDED_UNTIL(entered); ... RUNTIME_DONE(entered); */
#define RUNTIME_NEEDED_UNTIL(entered)                                     \
    if (runtime_enter() != HSA_STATUS_SUCCESS)                            \
        return HSA_STATUS_ERROR_NOT_INITIALIZED;                          \
    _cleanup_(runtime_leavep) __attribute__((__unused__)) bool entered = true
#define RUNTIME_DONE(entered) (runtime_leave(), (entered) = false)

/* The session; between enter and leave. */
struct memclient *runtime_context(void);

/* What a failure of the native API is called here. */
hsa_status_t runtime_status(int r);

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

/* At hsa_init(): the environment's profile, unless the program has set one. */
hsa_status_t runtime_choose_profile(void);
/* Decisions where the documents and today's ROCr differ: see memclient_hsa_set_profile(). */
bool runtime_is_like_rocr(void);
