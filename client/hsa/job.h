/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in the background: each piece is a thread of its own, from the call until it is done, since what a piece waits
 * for may be what another one completes, and a program that asks for none has no thread of ours.
 *
 * The thread holds the signals, so they may be destroyed meanwhile: the work still completes its own, and fails if it
 * was waiting for one that was destroyed.
 *
 * Shutting down ends all signals, so jobs that still wait for others fail and jobs that have begun are done. It waits
 * until the last of them has released its signals (signals_stop()), which is the last thing that a thread does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

/* Goes over memory row by row, a range being one row. */
struct rows {
    char *to;
    const char *from;
    size_t to_pitch, to_slice, from_pitch, from_slice;
    size_t width; /* bytes of a row */
    uint32_t n_rows, n_slices;
};

/*
 * Copies the rows, none of nothing, after all needed signals are 0, and counts completion down, or sets it to -1.
 * Checks what all such calls have in common, after the caller has checked its own arguments but handles. completion may
 * be 0 if is_optional.
 */
hsa_status_t job_start(const struct rows *rows, uint32_t n_needed, const hsa_signal_t *needed,
                       hsa_signal_t completion, bool is_optional);
