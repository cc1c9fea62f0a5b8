/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the small text files of /proc and /sys. They are read whole and then searched, since their lines come and go
 * with kernel versions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of the file with that path, at most size - 1 bytes, with a 0 after it. False and errno. */
bool text_read(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The decimal number after the first occurrence of `key` (and blanks). False, *ret untouched, if there is none. */
bool text_number_after(const char *text, const char *key, uint64_t *ret);

/* A field of /proc/PID/stat, counted from the state, which is 0: what is before that has the program's name in it. NULL
 * if there is none. */
const char *text_stat_field(const char *text, unsigned n);

/* The file with that path holds one number. */
bool text_read_number(uint64_t *ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
