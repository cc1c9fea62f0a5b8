/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a buffer's pages to another node, while it is in use.
 *
 * The file's policy is changed, so that pages that are yet to come go there as well, and the kernel is asked to
 * migrate those that exist; contents, inode, descriptors and addresses stay. The kernel migrates only pages that no
 * other process has in its page tables: a mapping that has not been touched since, or that was emptied with
 * MADV_DONTNEED, does not count. Then every page is checked. If one stays behind all of them go back, as far as they
 * can.
 *
 * The file is mapped by a description of its own that cannot write, so that publishing stays possible meanwhile.
 * Hugetlb pages cannot be moved, since their policies do not stay with the file, nor can lazy buffers, whose pages
 * cannot be checked without making them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "mem/commit.h"

struct migration {
    /* in: topology, plan, pages and page_size as they are to be; out: status, problem, huge_bytes, verified */
    struct commit to;
    struct plan from;
    const atomic_bool *cancel; /* until it is done; the way back is not cancelled */
    bool displaced;            /* out, of one that failed: not all pages are where a bound plan had them */
};

/* Slow. 0; BUSY: some pages are in use elsewhere; NO_MEMORY, MISPLACED, NO_DESCRIPTORS, NOT_SUPPORTED, TIMED_OUT
 * (cancelled). Status is in the struct and returned. */
int migrate_run(struct migration *migration, int t);
