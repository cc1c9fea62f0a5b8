/* SPDX-License-Identifier: Apache-2.0 */
/* A test that runs itself again, since where libraries are looked for is only asked when a program starts. */
#pragma once

#include <stddef.h>

/* A file of the build tree, given from the folder of this program. */
void beside_us(char *path, size_t size, const char *file);

/* This program with that argument, and libraries looked for in that folder first. Its exit status; -1 if it died. */
int run_again(const char *library_path, const char *argument);
