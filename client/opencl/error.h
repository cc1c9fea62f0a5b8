/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence of memclient_svm_error(). */
#pragma once

/* Notes it for this thread, and returns r, a negative errno. */
int svm_fail(int r, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
/* The same with the sentence of memclient_error(), if r is negative. */
int svm_native(int r);
