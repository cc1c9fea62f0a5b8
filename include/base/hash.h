/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash tables: uthash, with two settings.
 *
 * Running out of memory does not end the process: after HASH_ADD the object is in the table unless its `hh.tbl` is
 * NULL. The hash function is one without fall-through between labels, about which our compilers warn. Keys are numbers
 * that the kernel or this program gave out, never a peer's bytes.
 */
#pragma once

#define HASH_NONFATAL_OOM                1
#define HASH_FUNCTION(key, length, hash) HASH_FNV(key, length, hash)

#include <uthash.h>
