/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a buffer: a memfd whose every byte has its page before anybody else sees it (I1).
 *
 * The result is T, the buffer's one description. It is re-opened through /proc, and the descriptor of memfd_create() is
 * closed, since otherwise the lease test of handle.h could not tell whether others have the memory (I4). It is mode
 * 0600, CLOEXEC, sealed SHRINK|GROW and, unless the buffer may be published later, SEAL.
 *
 * Each kind of page has its own best way, found by measuring:
 *   base      mbind on a mapping (the policy stays with the file), then fallocate; a small buffer and one for
 *             stock are written instead, since what is only allocated is cleared by whoever touches it first
 *   THP       the same, then MADV_HUGEPAGE and populate, in several threads: fallocate gives base pages
 *   hugetlb   the thread's own policy, then fallocate: the file keeps none for them
 *   lazy      only the size
 * A bound plan is verified page by page. Out of memory is an outcome, never a signal: each slice is taken only if the
 * node has it, because under a strict policy the kernel would rather kill a process than let fallocate fail.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/problem.h"
#include "mem/handle.h"
#include "mem/placement.h"
#include "sys/numa.h"

/* The loop may commit so much itself, which is as cheap as handing it to a worker. */
#define COMMIT_INLINE_MAX (UINT64_C(128) << 10)
/* Several such together, which are done in slices. */
#define COMMIT_SLICED_MAX (UINT64_C(1) << 20)
/* The cancel flag is read once for so many bytes. */
#define COMMIT_SLICE (UINT64_C(64) << 20)

struct commit {
    /* in */
    const struct topology *topology;
    char label[32];   /* what /proc/PID/maps shows, after "memfd:" */
    struct plan plan; /* brief.bytes is the size, a multiple of the granule */
    enum pages pages; /* not ANY */
    uint64_t page_size;
    bool lazy;
    bool publishable;
    bool clear;       /* base pages too, which takes more than twice as long as allocating them; huge ones always are */
    unsigned threads; /* how many may work at all large ones together, as far as that is faster; 0: only the caller */
    atomic_bool cancel;       /* set by the loop, read by the worker */
    const atomic_bool *pause; /* likewise: others wait for the worker; or NULL */

    /* how far it has got */
    int file; /* T; else -1 */
    bool verifying;
    uint64_t done; /* bytes filled, or verified */
    bool paused;   /* between two slices: commit_run() goes on */

    /* out; descriptor, identity and figures only if status is 0 */
    int status; /* 0, NO_MEMORY, MISPLACED, NO_DESCRIPTORS, NOT_SUPPORTED, TIMED_OUT (cancelled) */
    struct problem problem;
    int fd; /* T; else -1 */
    struct handle_identity identity;
    uint64_t huge_bytes; /* of THP: what got huge pages */
    bool verified;       /* every page was seen on its node */
};

/* All of it 0 but fd and the flag, which get their "nothing" values. */
void commit_init(struct commit *commit);
/* Closes the descriptors if nobody has taken it. Large buffers take long, and need a worker. */
void commit_deinit(struct commit *commit);

/* May the loop run it itself? */
bool commit_is_small(const struct commit *commit);

/* Does the commit map the memory? */
bool commit_maps(const struct commit *commit);

/* Makes the buffer, on any thread; nothing is left behind on failure. The status is in the struct and returned. If
 * commit->paused it is 0, and the commit is to be run again. */
int commit_run(struct commit *commit);
