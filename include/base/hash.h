/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash tables: uthash, with the two settings that a daemon wants.
 *
 * Running out of memory is an outcome, not an exit: after HASH_ADD the object is in the table unless its `hh.tbl` is
 * NULL. And the hash function is one without fall-through between labels, which our warnings are about. What is
 * hashed here are numbers that the kernel or we ourselves gave out, never a peer's bytes.
 */
#pragma once

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, length, hash) HASH_FNV(key, length, hash)

#include <uthash.h>
