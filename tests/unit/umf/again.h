/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that run themselves again: where libraries are looked for is only read when a program starts. */
#pragma once

#include <stddef.h>

/* The path of a file in the build tree, given relative to this program's folder. */
void beside_us(char *path, size_t size, const char *file);

/* Runs this program with the argument, and looks for libraries in that folder first. Returns its exit status; -1 if it
 * died. */
int run_again(const char *library_path, const char *argument);
