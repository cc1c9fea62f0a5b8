/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of files instead of the machine's own /sys and /proc, for code that takes the root as a parameter. */
#pragma once

#include <limits.h>

/* Where it is, without a slash at the end. */
extern char files_root[PATH_MAX];

/* For cmocka, around each test: an empty tree, and it goes. */
int files_set_up(void **state);
int files_clean_up(void **state);

/* A file with that text, and the folders that it is in; without a text, it goes. The path begins without a slash. */
void files_put(const char *path, const char *text);
