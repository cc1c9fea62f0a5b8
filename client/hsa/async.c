/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying in the background.
 *
 * Each copy is a thread of its own, from the call until it is done: what a copy waits for may be what another one
 * completes, and a program that copies nothing has no thread of ours. The thread holds the signals, so they may be
 * destroyed meanwhile: the copy still completes its own, and fails if it was waiting for one that was destroyed.
 *
 * Shutting down ends all signals, so copies that still wait for others fail and those that have begun are done; it
 * goes on when the last of them has let go of its signals (signals_stop()), which is the last thing that a copy does.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/clock.h"
#include "hsa/copier.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"
#include "hsa/signal.h"

#define STACK_BYTES (256 << 10)
#define FAILED      (-1) /* what the completion signal becomes */

struct copy {
    void *to;
    const void *from;
    size_t size;
    struct signal *completion;
    uint32_t n_needed;
    struct signal *needed[]; /* to become 0 first */
};

static void copy_free(struct copy *copy)
{
    for (uint32_t i = 0; i < copy->n_needed; i++)
        signal_unref(copy->needed[i]);
    signal_unref(copy->completion);
    free(copy);
}

/* A negative value says that what it stands for has failed. */
static bool wait_for_all(const struct copy *copy)
{
    for (uint32_t i = 0; i < copy->n_needed; i++)
        if (signal_wait(copy->needed[i], HSA_SIGNAL_CONDITION_LT, 1, DEADLINE_NEVER, HSA_WAIT_STATE_BLOCKED) != 0)
            return false;
    return true;
}

static void *run(void *data)
{
    struct copy *copy = data;

    if (wait_for_all(copy) && pointer_allows_copy(copy->to, copy->from, copy->size)) {
        copier_copy(copy->to, copy->from, copy->size);
        signal_add(copy->completion, -1);
    } else {
        signal_store(copy->completion, FAILED);
    }
    copy_free(copy);
    return NULL;
}

/* The application's signal handlers are not for this thread. */
static int start(struct copy *copy)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int error;

    error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    error = pthread_create(&thread, &attributes, run, copy);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -error;
}

static hsa_status_t find_signals(struct copy *copy, const hsa_signal_t *needed, uint32_t n, hsa_signal_t completion)
{
    for (uint32_t i = 0; i < n; i++) {
        copy->needed[i] = signal_find(needed[i]);
        if (!copy->needed[i])
            return HSA_STATUS_ERROR_INVALID_SIGNAL;
        copy->n_needed++;
    }
    copy->completion = signal_find(completion);
    return copy->completion ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_SIGNAL;
}

hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent,
                                       size_t size, uint32_t num_dep_signals, const hsa_signal_t *dep_signals,
                                       hsa_signal_t completion_signal)
{
    struct copy *copy;
    hsa_status_t status;

    RUNTIME_NEEDED();
    if (!dst || !src || !num_dep_signals != !dep_signals)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!topology_agent(dst_agent) || !topology_agent(src_agent))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    copy = calloc(1, sizeof(*copy) + num_dep_signals * sizeof(copy->needed[0]));
    if (!copy)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    copy->to = dst;
    copy->from = src;
    copy->size = size;
    status = find_signals(copy, dep_signals, num_dep_signals, completion_signal);
    if (!status && start(copy) < 0)
        status = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    if (status)
        copy_free(copy);
    return status;
}
