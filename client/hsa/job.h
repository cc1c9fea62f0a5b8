/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in the background. Each job has a thread of its own until it is done, since a job may wait for a signal that
 * another one completes, and a program without jobs has no thread of ours.
 *
 * The thread holds references to the signals, so they may be destroyed meanwhile. The job still completes its own
 * signal, and fails if a signal that it waits for is destroyed.
 *
 * Shutting down ends all signals, so jobs that wait for others fail, and jobs that have begun are finished.
 * signals_stop() waits until the last job has released its signals, which is the last thing that its thread does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

/* Memory, row by row. A range is one row. */
struct rows {
    char *to;
    const char *from;
    size_t to_pitch, to_slice, from_pitch, from_slice;
    size_t width; /* of a row, in bytes */
    uint32_t n_rows, n_slices;
};

/*
 * Copies the rows, if any, once all needed signals are 0. Then it decrements the completion signal, or sets it to -1 on
 * failure. It checks what all such functions have in common; the caller has checked its own arguments, except handles.
 * `completion` may be 0 if is_optional.
 */
hsa_status_t job_start(const struct rows *rows, uint32_t n_needed, const hsa_signal_t *needed, hsa_signal_t completion,
                       bool is_optional);
