/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transparent huge pages for a file: of those that commit.c makes, the ones that several processors make sooner.
 */
#pragma once

#include <stdint.h>

#include "mem/commit.h"

/*
 * Allocates all pages of a file whose policy is set, by huge pages as far as the kernel has them, and says in *huge how
 * much that was. Of a large one in several threads next to its memory, as many as commit->threads allows and other
 * commits leave. 0 or what it is refused with; the caller closes the file then.
 */
int commit_thp(struct commit *commit, int t, uint64_t *huge);
