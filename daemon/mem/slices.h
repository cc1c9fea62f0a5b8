/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of a file as a commit describes them, a slice at a time: what making a buffer (commit.c) and moving
 * one (migrate.c) have in common.
 *
 * A slice is mapped, allocated and checked at a time, so that neither page tables nor the time until a cancel flag is
 * read grow with the file. The reason of each refusal is in commit->problem.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/commit.h"
#include "sys/sys.h"

struct slice {
    uint64_t offset;
    size_t length;
    uint32_t node; /* physical */
};

/*
 * The slice at `offset`: at most COMMIT_SLICE (or one huge page, if that is more), and if `one_node`, not
 * beyond what lies on the same node.
 */
struct slice slice_at(const struct commit *commit, uint64_t offset, bool one_node);

/* Has the machine, or the slice's node, so much unused memory? 0 or NO_MEMORY. */
int slice_ask_available(struct commit *commit, const struct slice *slice);
/* The same, but for small slices it asks only now and then. */
int slice_check_available(struct commit *commit, const struct slice *slice);

/* The pages of a slice, mapped at `map` and touched: are they on its node? 1: not all; -1: not all can be seen now. */
int slice_probe(const struct commit *commit, char *map, const struct slice *slice);
/* Maps the slice to ask the same, more than once if need be. 0 or MISPLACED. */
int slice_verify(struct commit *commit, int fd, const struct slice *slice);
/* Refuses a slice that slice_probe() has seen so. */
int slice_misplaced(struct commit *commit, const struct slice *slice, int seen);

/* Gives each part of the file its node by a policy that stays with the file. 0, MISPLACED, NO_MEMORY, TIMED_OUT. */
int slices_place(struct commit *commit, int fd);

/*
 * Allocates all pages of a file whose policy is set, or those up to where it pauses, by huge pages as far as the kernel
 * has them, and adds to *huge how much that was. For a large file several threads do it next to its memory, as many as
 * commit->threads allows and other commits leave. 0 or the status of the refusal; the caller closes the file then.
 */
int commit_thp(struct commit *commit, int t, uint64_t *huge);

/* ---- for each of these ------------------------------------------------------------------------------------------- */

int commit_policy_mode(const struct commit *commit);
void node_mask(unsigned long mask[SYS_NODE_MASK_WORDS], uint32_t node);

/* Outcomes for errno. */
int commit_refuse_errno(struct commit *commit, const char *what);
int commit_refuse_node(struct commit *commit, uint32_t node);
/* TIMED_OUT if it has been cancelled. */
int commit_check_cancel(struct commit *commit);
/* Does somebody wait for this worker? */
bool commit_should_pause(const struct commit *commit);
