/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the last call of this thread failed.
 *
 * The library returns a negative errno; for people there is a sentence as well, kept here per thread. The function that
 * finds out sets it, and its callers pass the number on:
 *
 *     if (length > left)
 *         return fail_with(EOVERFLOW, "...");
 */
#pragma once

#include <stdarg.h>

/* For %llu and %llx of a uint64_t. */
#define ULL(number) ((unsigned long long)(number))

/* Sets the sentence and returns -err. */
int fail_with(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The broker's refusal: its status and sentence. Returns the status's negative errno. */
int fail_refused(unsigned status, const char *sentence);

/* The kernel refused a system call: "what: reason". Returns -errno. */
int fail_errno(const char *what);

/* Of this thread's last failure: "" and 0 before any. */
const char *fail_sentence(void);
unsigned fail_status(void);

/* A failure that is kept while something else, which may fail as well, is done. fail_restore() returns its `err`. */
struct fail_saved {
    int err;
    unsigned status;
    char sentence[256];
};
struct fail_saved fail_save(int err);
int fail_restore(const struct fail_saved *saved);
