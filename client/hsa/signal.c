/* SPDX-License-Identifier: Apache-2.0 */
/* See signal.h: the table of signals, creating and sharing them. Their values are in signal_wait.c. */
#include "hsa/signal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/cleanup.h"
#include "hsa/ipc.h"
#include "hsa/runtime.h"

#define SIGNAL_BASE (UINT64_C(1) << 40) /* above the handles of agents and pools */

static pthread_rwlock_t signals_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct signal *signals; /* hash by id */
static uint64_t next_signal = SIGNAL_BASE;

/* The number of objects, including those without a handle. */
static pthread_mutex_t alive_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none_alive = PTHREAD_COND_INITIALIZER;
static uint64_t alive;

/* ---- the table --------------------------------------------------------------------------------------------------- */

struct signal *signal_find(hsa_signal_t handle)
{
    struct signal *signal;

    pthread_rwlock_rdlock(&signals_lock);
    HASH_FIND(hh, signals, &handle.handle, sizeof(handle.handle), signal);
    if (signal)
        atomic_fetch_add(&signal->refs, 1);
    pthread_rwlock_unlock(&signals_lock);
    return signal;
}

void signal_unref(struct signal *signal)
{
    if (!signal || atomic_fetch_sub(&signal->refs, 1) > 1)
        return;
    if (signal->buffer && signal->cell)
        (void)memclient_unmap(memclient_buffer_context(signal->buffer), signal->cell, 0);
    memclient_buffer_unref(signal->buffer);
    free(signal);
    pthread_mutex_lock(&alive_lock);
    if (!--alive)
        pthread_cond_broadcast(&none_alive);
    pthread_mutex_unlock(&alive_lock);
}

DEFINE_CLEANUP(struct signal *, signal_unref);

/* A signal without a handle. NULL without memory. */
static struct signal *signal_new(void)
{
    struct signal *signal = calloc(1, sizeof(*signal));

    if (!signal)
        return NULL;
    atomic_init(&signal->refs, 1);
    pthread_mutex_lock(&alive_lock);
    alive++;
    pthread_mutex_unlock(&alive_lock);
    return signal;
}

/* Assigns the handle, which takes over the reference. */
static hsa_status_t signal_publish(struct signal **signal, hsa_signal_t *handle)
{
    struct signal *new = *signal;
    hsa_status_t status = HSA_STATUS_ERROR_OUT_OF_RESOURCES;

    pthread_rwlock_wrlock(&signals_lock);
    new->id = next_signal++;
    HASH_ADD(hh, signals, id, sizeof(new->id), new);
    if (new->hh.tbl) {
        handle->handle = steal_ptr(signal)->id;
        status = HSA_STATUS_SUCCESS;
    }
    pthread_rwlock_unlock(&signals_lock);
    /* from now on other threads may destroy it */
    return status;
}

/* Ends a signal that has left the table. */
static void signal_end(struct signal *signal)
{
    atomic_store(&signal->dead, true);
    signal_wake(signal);
    signal_unref(signal);
}

hsa_status_t hsa_signal_destroy(hsa_signal_t handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct signal *signal;

    if (!ctx || !handle.handle)
        return runtime_refusal(ctx);
    pthread_rwlock_wrlock(&signals_lock);
    HASH_FIND(hh, signals, &handle.handle, sizeof(handle.handle), signal);
    if (signal)
        HASH_DELETE(hh, signals, signal);
    pthread_rwlock_unlock(&signals_lock);
    if (!signal)
        return HSA_STATUS_ERROR_INVALID_SIGNAL;
    signal_end(signal);
    return HSA_STATUS_SUCCESS;
}

void signals_stop(void)
{
    struct signal *taken, *signal, *next;

    pthread_rwlock_wrlock(&signals_lock);
    taken = signals;
    signals = NULL;
    pthread_rwlock_unlock(&signals_lock);
    HASH_ITER(hh, taken, signal, next) {
        HASH_DELETE(hh, taken, signal);
        signal_end(signal);
    }
    pthread_mutex_lock(&alive_lock);
    while (alive)
        pthread_cond_wait(&none_alive, &alive_lock);
    pthread_mutex_unlock(&alive_lock);
}

void signals_fork_prepare(void)
{
    pthread_rwlock_wrlock(&signals_lock);
    pthread_mutex_lock(&alive_lock);
}

void signals_fork_parent(void)
{
    pthread_mutex_unlock(&alive_lock);
    pthread_rwlock_unlock(&signals_lock);
}

/* Only the forking thread exists here, and it waits for no signal. So every signal with a handle is freed, whatever
 * references it has. */
void signals_fork_child(void)
{
    struct signal *signal, *next;

    /* made anew after the unlock: they may count waiters that the child does not have */
    pthread_mutex_unlock(&alive_lock);
    pthread_mutex_init(&alive_lock, NULL);
    pthread_rwlock_unlock(&signals_lock);
    pthread_rwlock_init(&signals_lock, NULL);
    pthread_cond_init(&none_alive, NULL);
    alive = 0;
    HASH_ITER(hh, signals, signal, next) {
        HASH_DELETE(hh, signals, signal);
        memclient_buffer_unref(signal->buffer);
        free(signal);
    }
}

/* ---- making and sharing ------------------------------------------------------------------------------------------ */

static hsa_status_t signal_check_consumers(uint32_t n, const hsa_agent_t *consumers)
{
    uint64_t seen = 0;

    if (n && !consumers)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    /* the loop ends at the first repeated agent, however large n is */
    for (uint32_t i = 0; i < n; i++) {
        const struct agent *agent = topology_agent(consumers[i]);

        if (!agent)
            return HSA_STATUS_ERROR_INVALID_AGENT;
        if (seen & agent_bit(agent))
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        seen |= agent_bit(agent);
    }
    return HSA_STATUS_SUCCESS;
}

/* Maps the cell of a signal that has a buffer. */
static int signal_map_cell(struct signal *signal)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *address;
    int r;

    options.flags = MEMCLIENT_MAP_ANYWHERE;
    options.access = MEMCLIENT_READ | MEMCLIENT_WRITE;
    r = memclient_map(signal->buffer, &options, &address);
    if (!r)
        signal->cell = address;
    return r;
}

static int signal_make_shared(struct signal *signal)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    int r;

    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    r = memclient_alloc(runtime_context(), sizeof(struct cell), &options, &signal->buffer);
    if (!r)
        r = memclient_share(signal->buffer, NULL, &signal->token);
    return r ? r : signal_map_cell(signal);
}

hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                   const hsa_agent_t *consumers, uint64_t attributes, hsa_signal_t *handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(signal_unrefp) struct signal *signal = NULL;
    hsa_status_t status;
    int r;

    if (!ctx || !handle || attributes & ~(uint64_t)(HSA_AMD_SIGNAL_AMD_GPU_ONLY | HSA_AMD_SIGNAL_IPC))
        return runtime_refusal(ctx);
    status = signal_check_consumers(num_consumers, consumers);
    if (status)
        return status;
    signal = signal_new();
    if (!signal)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    signal->may_be_exposed = attributes & (HSA_AMD_SIGNAL_AMD_GPU_ONLY | HSA_AMD_SIGNAL_IPC);
    if (attributes & HSA_AMD_SIGNAL_IPC) {
        r = signal_make_shared(signal);
        if (r < 0)
            return runtime_status(r);
    } else {
        signal->cell = &signal->own;
    }
    signal->cell->magic = CELL_MAGIC;
    atomic_store(&signal->cell->value, initial_value);
    return signal_publish(&signal, handle);
}

hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers, const hsa_agent_t *consumers,
                               hsa_signal_t *handle)
{
    return hsa_amd_signal_create(initial_value, num_consumers, consumers, 0, handle);
}

hsa_status_t hsa_amd_ipc_signal_create(hsa_signal_t handle, hsa_amd_ipc_signal_t *ipc)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(signal_unrefp) struct signal *signal = NULL;

    if (!ctx || !ipc)
        return runtime_refusal(ctx);
    signal = signal_find(handle);
    if (!signal)
        return HSA_STATUS_ERROR_INVALID_SIGNAL;
    if (!signal->buffer)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    memcpy(ipc->handle, signal->token.bytes, sizeof(ipc->handle));
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_ipc_signal_attach(const hsa_amd_ipc_signal_t *ipc, hsa_signal_t *handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(signal_unrefp) struct signal *signal = NULL;
    int r;

    if (!ctx || !ipc || !handle)
        return runtime_refusal(ctx);
    signal = signal_new();
    if (!signal)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    memcpy(signal->token.bytes, ipc->handle, sizeof(ipc->handle));
    r = memclient_open_token(ctx, &signal->token, MEMCLIENT_READ | MEMCLIENT_WRITE, &signal->buffer);
    if (r < 0)
        return ipc_status(r);
    /* the token may be of other memory */
    if (memclient_buffer_size(signal->buffer) != sizeof(struct cell))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    r = signal_map_cell(signal);
    if (r < 0)
        return runtime_status(r);
    if (signal->cell->magic != CELL_MAGIC)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    signal->may_be_exposed = true;
    return signal_publish(&signal, handle);
}

hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t handle, volatile hsa_signal_value_t **value_ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(signal_unrefp) struct signal *signal = NULL;

    if (!ctx || !value_ptr)
        return runtime_refusal(ctx);
    signal = signal_find(handle);
    if (!signal)
        return HSA_STATUS_ERROR_INVALID_SIGNAL;
    if (!signal->may_be_exposed)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    /* wake the waiters that sleep: from now on they poll */
    atomic_store(&signal->cell->is_exposed, 1);
    signal_wake(signal);
    *value_ptr = (volatile hsa_signal_value_t *)&signal->cell->value;
    return HSA_STATUS_SUCCESS;
}
