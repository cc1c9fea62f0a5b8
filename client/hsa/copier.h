/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying and filling large ranges faster than the C library does.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Ranges that do not overlap. Uses several threads where that is faster; all is done when it returns. */
void copier_copy(void *to, const void *from, size_t size);
/* `to` and size, in bytes, are multiples of 4. */
void copier_fill(void *to, uint32_t pattern, size_t size);
