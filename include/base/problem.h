/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentence that goes with a refusal.
 *
 * The function that refuses knows best what is wrong and what can be done about it, so it writes the sentence, which
 * goes up with the status, unchanged, to the client:
 *
 *     if (!size)
 *         return refuse(problem, STATUS_SIZE_ZERO, "a buffer of 0 bytes; ask for at least 1");
 *
 * It is for people; programs look at the status. `item` is the index of the item of a batch that failed. What there was
 * too little of is noted as numbers, too, by problem_short_of(), for the history of refusals. A caller that wants no
 * sentence passes NULL.
 */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

#define PROBLEM_SENTENCE_MAX 256

/* Of a limit, or of the room of a pool. */
struct shortage {
    const char *pool;     /* its name, NULL if it is about none; stays as long as the process */
    const char *resource; /* a string literal, as configuration keys have it: "bytes", "tokens"; NULL: of nothing */
    uint64_t wanted;
    uint64_t used; /* of `limit` */
    uint64_t limit;
    uint64_t waited_ms; /* in vain */
};

struct problem {
    char sentence[PROBLEM_SENTENCE_MAX];
    uint32_t item;
    struct shortage shortage;
};

#define PROBLEM_NULL ((struct problem){.sentence = "", .item = 0})

/* Returns the status. */
static inline int problem_short_of(struct problem *problem, int status, struct shortage shortage)
{
    if (problem)
        problem->shortage = shortage;
    return status;
}

/* A sentence that is too long is cut between two characters, since a client's names may be long. Keeps errno. */
__attribute__((format(printf, 2, 0))) static inline void problem_setv(struct problem *problem, const char *format,
                                                                      va_list arguments)
{
    int saved = errno;

    if (problem) {
        int n = vsnprintf(problem->sentence, sizeof(problem->sentence), format, arguments);

        if (n < 0)
            problem->sentence[0] = '\0';
        else if ((size_t)n >= sizeof(problem->sentence))
            problem->sentence[utf8_cut(problem->sentence, sizeof(problem->sentence) - 1)] = '\0';
    }
    errno = saved;
}

__attribute__((format(printf, 2, 3))) static inline void problem_set(struct problem *problem, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    problem_setv(problem, format, arguments);
    va_end(arguments);
}

/* Sets the sentence and returns the status, for `return refuse(...)`. */
__attribute__((format(printf, 3, 4))) static inline int refuse(struct problem *problem, int status, const char *format,
                                                               ...)
{
    va_list arguments;

    va_start(arguments, format);
    problem_setv(problem, format, arguments);
    va_end(arguments);
    return status;
}
