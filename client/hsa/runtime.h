/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HSA runtime as a whole: whether it is up, its session with the broker, and what every entry point begins with.
 *
 * hsa_init() counts up and hsa_shut_down() down; only the first and the last do anything. In between there is one
 * memclient context, and closing it takes back everything that HSA has in this process, mappings and all; what is left
 * to do then is to forget the records of it. So does the child of a fork, where nothing is up and the parent's memory
 * stays mapped as it is.
 *
 * An entry point begins like this:
 *
 *     _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
 *
 *     if (!ctx || !ptr || !size)
 *         return runtime_refusal(ctx);
 *
 * It has a read lock until the function's end, which the last hsa_shut_down() waits for, so the session stays open.
 * Functions of the application may shut down: they are called after runtime_leavep(&ctx). What reads only the topology,
 * which stays for good, begins with check() instead and takes no lock.
 *
 * Locks, in the order in which they are taken: starting and stopping (init.c); being in use (here); the records
 * (address_map.h). The last is never held while the broker is called.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/memclient.h>

#include "base/cleanup.h"
#include "hsa/topology.h"

/* Changed by init.c alone. */
extern struct runtime {
    int32_t count;             /* atomic */
    pthread_rwlock_t in_use;   /* read by entry points */
    struct memclient *context; /* while the count is not 0 */
} runtime;

/* One atomic load. */
bool runtime_is_up(void);

/* The session; NULL if HSA is not up. */
struct memclient *runtime_enter(void);
/* Does nothing if it is NULL, and makes it so. */
void runtime_leavep(struct memclient **ctx);
/* What an entry point returns that has not been entered, or has been given an argument that cannot be. */
static inline hsa_status_t runtime_refusal(const struct memclient *ctx)
{
    return ctx ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_ERROR_NOT_INITIALIZED;
}

/* The same for what takes no lock: `status`, if HSA is up and the arguments that are no handles are valid. */
static inline hsa_status_t check(bool is_valid, hsa_status_t status)
{
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    return is_valid ? status : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* And if the agent is one. */
static inline hsa_status_t check_agent(bool is_valid, hsa_agent_t agent, hsa_status_t status)
{
    return check(is_valid, topology_agent(agent) ? status : HSA_STATUS_ERROR_INVALID_AGENT);
}

/* The same session, between enter and leave. */
struct memclient *runtime_context(void);

/* What a failure of the native API is called here. */
hsa_status_t runtime_status(int r);

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

/* Decisions where the documents and today's ROCr differ: see memclient_hsa_set_profile(). */
bool runtime_is_like_rocr(void);

/* ---- what starting, stopping and forking call ------------------------------------------------------------ */

/* runtime.c, at hsa_init(): the environment's profile, unless the program has set one. */
hsa_status_t runtime_choose_profile(void);

/*
 * handlers.c: ends the thread, and waits for that, unless it is the caller: then it ends when the function that it is
 * in returns. Those that have not been called are not called any more. Before the runtime is locked, since a function
 * may be on its way in.
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
