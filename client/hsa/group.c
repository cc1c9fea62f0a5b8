/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of signals: lists with a handle, which hold no reference to their signals. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "hsa/runtime.h"
#include "hsa/watch.h"

#define GROUP_BASE (UINT64_C(1) << 41) /* above the handles of signals */

struct group {
    uint64_t id;
    UT_hash_handle hh;
    unsigned refs; /* needs the lock */
    uint32_t n;
    hsa_signal_t signals[];
};

static pthread_mutex_t groups_lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups; /* hash by id */
static uint64_t next_group = GROUP_BASE;

static void group_unref(struct group *group)
{
    bool is_last;

    if (!group)
        return;
    pthread_mutex_lock(&groups_lock);
    is_last = !--group->refs;
    pthread_mutex_unlock(&groups_lock);
    if (is_last)
        free(group);
}

DEFINE_CLEANUP(struct group *, group_unref);

/* A new reference, or NULL. */
static struct group *group_find(hsa_signal_group_t handle)
{
    struct group *group;

    pthread_mutex_lock(&groups_lock);
    HASH_FIND(hh, groups, &handle.handle, sizeof(handle.handle), group);
    if (group)
        group->refs++;
    pthread_mutex_unlock(&groups_lock);
    return group;
}

static hsa_status_t group_check_signals(uint32_t n, const hsa_signal_t *signals)
{
    for (uint32_t i = 0; i < n; i++) {
        struct signal *signal = signal_find(signals[i]);

        if (!signal)
            return HSA_STATUS_ERROR_INVALID_SIGNAL;
        signal_unref(signal);
    }
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t group_publish(struct group *group, hsa_signal_group_t *handle)
{
    bool is_in;

    pthread_mutex_lock(&groups_lock);
    group->id = next_group++;
    group->refs = 1;
    HASH_ADD(hh, groups, id, sizeof(group->id), group);
    is_in = group->hh.tbl;
    if (is_in)
        handle->handle = group->id;
    pthread_mutex_unlock(&groups_lock);
    if (!is_in)
        free(group);
    return is_in ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_signal_group_create(uint32_t num_signals, const hsa_signal_t *signals, uint32_t num_consumers,
                                     const hsa_agent_t *consumers, hsa_signal_group_t *signal_group)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct group *group;
    hsa_status_t status;
    uint64_t set;

    if (!ctx || !num_signals || !signals || (num_consumers && !consumers) || !signal_group)
        return runtime_refusal(ctx);
    status = group_check_signals(num_signals, signals);
    if (status)
        return status;
    if (num_consumers && !topology_agents(num_consumers, consumers, &set))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    group = calloc(1, sizeof(*group) + num_signals * sizeof(group->signals[0]));
    if (!group)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    group->n = num_signals;
    memcpy(group->signals, signals, num_signals * sizeof(group->signals[0]));
    return group_publish(group, signal_group);
}

hsa_status_t hsa_signal_group_destroy(hsa_signal_group_t signal_group)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(group_unrefp) struct group *group = NULL;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&groups_lock);
    HASH_FIND(hh, groups, &signal_group.handle, sizeof(signal_group.handle), group);
    if (group)
        HASH_DELETE(hh, groups, group);
    pthread_mutex_unlock(&groups_lock);
    return group ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP;
}

/* It does not stay in the runtime while it waits: shutting down ends the signals, which ends the wait. */
hsa_status_t hsa_signal_group_wait_any_scacquire(hsa_signal_group_t signal_group,
                                                 const hsa_signal_condition_t *conditions,
                                                 const hsa_signal_value_t *compare_values,
                                                 hsa_wait_state_t wait_state_hint, hsa_signal_t *signal,
                                                 hsa_signal_value_t *value)
{
    _cleanup_(group_unrefp) struct group *group = NULL;
    hsa_status_t status = check(conditions && compare_values && signal && value, HSA_STATUS_SUCCESS);
    struct several_list list;
    uint32_t index;

    if (status)
        return status;
    group = group_find(signal_group);
    if (!group)
        return HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP;
    list = (struct several_list){group->n, group->signals, conditions, compare_values};
    index = several_wait_any(&list, DEADLINE_NEVER, wait_state_hint, value);
    if (index == SEVERAL_NONE)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    *signal = group->signals[index];
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_group_wait_any_relaxed(hsa_signal_group_t signal_group,
                                               const hsa_signal_condition_t *conditions,
                                               const hsa_signal_value_t *compare_values,
                                               hsa_wait_state_t wait_state_hint, hsa_signal_t *signal,
                                               hsa_signal_value_t *value)
{
    return hsa_signal_group_wait_any_scacquire(signal_group, conditions, compare_values, wait_state_hint, signal,
                                               value);
}

void groups_stop(void)
{
    struct group *all, *group, *next;

    pthread_mutex_lock(&groups_lock);
    all = steal_ptr(&groups);
    pthread_mutex_unlock(&groups_lock);
    HASH_ITER(hh, all, group, next) {
        HASH_DELETE(hh, all, group);
        group_unref(group);
    }
}

void groups_fork_prepare(void)
{
    pthread_mutex_lock(&groups_lock);
}

void groups_fork_parent(void)
{
    pthread_mutex_unlock(&groups_lock);
}

void groups_fork_child(void)
{
    pthread_mutex_unlock(&groups_lock);
    pthread_mutex_init(&groups_lock, NULL);
    groups_stop();
}
