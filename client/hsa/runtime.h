/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HSA runtime: whether it is up, its session with the broker, and how every entry point begins.
 *
 * hsa_init() counts up and hsa_shut_down() down; only the first and the last call do anything else. In between there is
 * one memclient context. Closing it unmaps and releases everything that HSA has in this process, so only records remain
 * to be freed. The child of a fork frees them too: there HSA is not up, and the parent's memory stays mapped.
 *
 * An entry point begins like this:
 *
 *     _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
 *
 *     if (!ctx || !ptr || !size)
 *         return runtime_refusal(ctx);
 *
 * It holds a read lock until it returns. The last hsa_shut_down() waits for that, so the session stays open. Functions
 * of the application may shut HSA down, so they are called after runtime_leavep(&ctx). An entry point that needs only
 * the topology, which is never freed, begins with check() and takes no lock.
 *
 * Locks, in the order of taking them: starting and stopping (init.c); being in use (here); the records (address_map.h).
 * The last one is never held while the broker is called.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/memclient.h>

#include "base/cleanup.h"
#include "hsa/topology.h"

/* Only init.c changes it. */
extern struct runtime {
    int32_t count;                     /* atomic */
    pthread_rwlock_t in_use;           /* read-locked by entry points */
    struct memclient_context *context; /* while the count is not 0 */
} runtime;

/* One atomic load. */
bool runtime_is_up(void);

/* Returns the session, or NULL if HSA is not up. */
struct memclient_context *runtime_enter(void);
/* Sets *ctx to NULL. Does nothing if it is NULL. */
void runtime_leavep(struct memclient_context **ctx);
/* The status of an entry point that could not enter, or whose arguments are invalid. */
static inline hsa_status_t runtime_refusal(const struct memclient_context *ctx)
{
    return ctx ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_ERROR_NOT_INITIALIZED;
}

/* The same without the lock: `status`, if HSA is up and the arguments that are no handles are valid. */
static inline hsa_status_t check(bool is_valid, hsa_status_t status)
{
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    return is_valid ? status : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* The same, if the agent exists as well. */
static inline hsa_status_t check_agent(bool is_valid, hsa_agent_t agent, hsa_status_t status)
{
    return check(is_valid, topology_agent(agent) ? status : HSA_STATUS_ERROR_INVALID_AGENT);
}

/* The session. Needs the runtime to be entered. */
struct memclient_context *runtime_context(void);

/* The status for r, a result of the native API. */
hsa_status_t runtime_status(int r);

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

/* Which of two behaviours applies where AMD's documents and ROCr differ: see memclient_hsa_set_profile(). */
bool runtime_is_like_rocr(void);

/* ---- what starting, stopping and forking call -------------------------------------------------------------------- */

/* runtime.c, at hsa_init(): reads the profile from the environment, unless the program has set one. */
hsa_status_t runtime_choose_profile(void);

/*
 * handlers.c: ends the thread and waits for it, unless the thread itself calls this: then it ends when its handler
 * returns. Pending handlers are not called any more. The caller must not have locked the runtime, since a handler may
 * be about to enter it.
 */
void handlers_stop(void);
/* Around a fork. The child has no thread and no handlers. */
void handlers_fork_prepare(void);
void handlers_fork_parent(void);
void handlers_fork_child(void);

/* group.c: forgets all groups. */
void groups_stop(void);
/* Around a fork. The child has no group. */
void groups_fork_prepare(void);
void groups_fork_parent(void);
void groups_fork_child(void);

/* svm.c, with the lock of the records: forgets all attributes. */
void svm_forget(void);
/* assign.c */
void assign_fork_child(void);
