/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread's last failure, a code and a sentence; the native API's errors become nnabla's. */
#pragma once

#include <memclient/nbla.h>

/* Notes both, and returns the code. */
__attribute__((__format__(__printf__, 2, 3))) int fail(enum nbla_status error, const char *format, ...);

/* The number of failures that this thread has noted. */
unsigned error_count(void);
/* Returns an operation's result r. Notes a sentence if it is an error without one, as a program's own may be. */
int wrap_error(int r, unsigned before, const char *what);

/* Notes the failure r, a negative errno, of the last call of the native API, with its sentence. */
int fail_native(int r);
/*
 * Likewise of an allocation. What the broker refuses is an error of MEMORY, whatever its reason: freeing memory and
 * trying again may help. Where no broker answers, it does not.
 */
int fail_alloc(int r);
/* Notes that a child of fork() cannot share what its parent allocated. */
int fail_parents(void);

/* Zeroed memory for an object. NULL: it has failed. */
void *object_new(size_t size);

/* Notes that an argument is NULL which must not be. */
#define fail_null(name) fail(NBLA_ERROR_VALUE, name " is NULL")
