/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "hsa/job.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"
#include "hsa/signal.h"

#define STACK_BYTES (256 << 10)
#define FAILED      (-1) /* value of the completion signal */

struct job {
    struct rows rows;
    bool is_timed;
    struct signal *completion; /* or NULL */
    uint32_t n_needed;
    struct signal *needed[]; /* that must become 0 first */
};

static _Atomic bool jobs_are_timed;

DEFINE_CLEANUP(struct signal *, signal_unref);

static void job_free(struct job *job)
{
    for (uint32_t i = 0; i < job->n_needed; i++)
        signal_unref(job->needed[i]);
    signal_unref(job->completion);
    free(job);
}

/* A negative value of a signal means that its operation has failed. */
static bool job_wait(const struct job *job)
{
    for (uint32_t i = 0; i < job->n_needed; i++)
        if (signal_wait(job->needed[i], HSA_SIGNAL_CONDITION_LT, 1, DEADLINE_NEVER, HSA_WAIT_STATE_BLOCKED) != 0)
            return false;
    return true;
}

typedef bool row_function(char *to, const char *from, size_t size);

static bool job_may_copy(char *to, const char *from, size_t size)
{
    return pointer_allows_copy(to, from, size);
}

static bool job_copy(char *to, const char *from, size_t size)
{
    copier_copy(to, from, size);
    return true;
}

static bool job_for_each_row(const struct rows *rows, row_function *visit)
{
    for (uint32_t z = 0; z < rows->n_slices; z++)
        for (uint32_t y = 0; y < rows->n_rows; y++)
            if (!visit(rows->to + z * rows->to_slice + y * rows->to_pitch,
                       rows->from + z * rows->from_slice + y * rows->from_pitch, rows->width))
                return false;
    return true;
}

/* If any row may not be copied, nothing is. */
static bool job_copy_rows(const struct rows *rows)
{
    return job_for_each_row(rows, job_may_copy) && job_for_each_row(rows, job_copy);
}

static void job_complete(const struct job *job, bool is_done, uint64_t start)
{
    if (!job->completion)
        return;
    if (job->is_timed && is_done) {
        atomic_store(&job->completion->copy_start, start);
        atomic_store(&job->completion->copy_end, clock_now_ns());
    }
    if (is_done)
        signal_change(job->completion, SIGNAL_SUBTRACT, 1);
    else
        signal_change(job->completion, SIGNAL_EXCHANGE, FAILED);
}

static void *job_run(void *data)
{
    struct job *job = data;
    bool is_ready = job_wait(job);
    uint64_t start = clock_now_ns();

    job_complete(job, is_ready && job_copy_rows(&job->rows), start);
    job_free(job);
    return NULL;
}

/* The thread blocks the application's signals. */
static int job_start_thread(struct job *job)
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
    error = pthread_create(&thread, &attributes, job_run, job);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -error;
}

static hsa_status_t job_find_signals(struct job *job, const hsa_signal_t *needed, uint32_t n, hsa_signal_t completion,
                                     bool is_optional)
{
    for (uint32_t i = 0; i < n; i++) {
        job->needed[i] = signal_find(needed[i]);
        if (!job->needed[i])
            return HSA_STATUS_ERROR_INVALID_SIGNAL;
        job->n_needed++;
    }
    if (is_optional && !completion.handle)
        return HSA_STATUS_SUCCESS;
    job->completion = signal_find(completion);
    return job->completion ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_SIGNAL;
}

hsa_status_t job_start(const struct rows *rows, uint32_t n_needed, const hsa_signal_t *needed, hsa_signal_t completion,
                       bool is_optional)
{
    struct job *job = calloc(1, sizeof(*job) + n_needed * sizeof(job->needed[0]));
    hsa_status_t status;

    if (!job)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    job->rows = *rows;
    job->is_timed = atomic_load(&jobs_are_timed);
    status = job_find_signals(job, needed, n_needed, completion, is_optional);
    if (!status && job_start_thread(job) < 0)
        status = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    if (status)
        job_free(job);
    return status;
}

hsa_status_t hsa_amd_profiling_async_copy_enable(bool enable)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    atomic_store(&jobs_are_timed, enable);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal, hsa_amd_profiling_async_copy_time_t *time)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(signal_unrefp) struct signal *found = NULL;

    if (!ctx || !time)
        return runtime_refusal(ctx);
    found = signal_find(signal);
    if (!found)
        return HSA_STATUS_ERROR_INVALID_SIGNAL;
    if (!atomic_load(&found->copy_end))
        return HSA_STATUS_ERROR;
    time->start = atomic_load(&found->copy_start);
    time->end = atomic_load(&found->copy_end);
    return HSA_STATUS_SUCCESS;
}
