/* SPDX-License-Identifier: Apache-2.0 */
/* The code and the sentence of each thread's last failure, and what the native API's errors are in nnabla's terms. */
#pragma once

#include <memclient/nbla.h>

/* Notes them, and returns the code. */
__attribute__((__format__(__printf__, 2, 3))) int fail(enum nbla_error error, const char *format, ...);

/* How often this thread has failed. */
unsigned error_count(void);
/* What an operation gave since then; a program's own may fail without a sentence, or with that of another code. */
int wrap_error(int r, unsigned before, const char *what);

/* The last call of the native API gave r, a negative errno: with its sentence. */
int fail_native(int r);
/*
 * Likewise, where memory was asked for: whatever the broker refused it for, giving some back and trying again may help.
 * Where no broker can be asked, it does not.
 */
int fail_alloc(int r);
/* What was made before a fork is to be shared by the child. */
int fail_parents(void);

/* Zeroed memory for an object. NULL: it has failed. */
void *object_new(size_t size);

/* An argument that must not be NULL. */
#define fail_null(name) fail(NBLA_ERROR_VALUE, name " is NULL")
