/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of memoryd.conf: numbers, sizes, times and lists as people write them.
 *
 * Each returns true and writes, or returns false and writes nothing. None accepts anything after the value, a sign, or
 * a number that does not fit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "42", "0x2a" */
bool value_number(const char *text, uint64_t *ret);
/* "4096", "64K", "8M", "2G", "1T"; powers of 1024 */
bool value_size(const char *text, uint64_t *ret);
/* "50%": 1 to 100 */
bool value_percent(const char *text, unsigned *ret);
/* "500ms", "10s", "2min", "1h" in milliseconds; a unit is needed, except for 0 */
bool value_time(const char *text, uint64_t *ret_ms);
/* "0,2-4 7": at most `most` numbers, in the order written, none above `top` */
bool value_list(const char *text, uint32_t *values, uint32_t *n, uint32_t most, uint32_t top);

/* How many letters must change to turn one into the other; for "did you mean". */
unsigned value_distance(const char *a, const char *b);
