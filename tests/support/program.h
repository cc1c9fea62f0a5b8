/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users' programs among the tests have in common, whichever interface they are written to: they say nothing when
 * all is well, and else a sentence, and end with 1.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define NEED_TRUE(expression)                                                          \
    do {                                                                               \
        if (!(expression))                                                             \
            give_up("%s:%d: it is not true that %s", __FILE__, __LINE__, #expression); \
    } while (0)

static void give_up(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static inline void give_up(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

/* How often to do what is done often; the long tests do it more often. */
static inline unsigned rounds(unsigned usual)
{
    const char *text = getenv("PROGRAM_ROUNDS");
    unsigned long times = text ? strtoul(text, NULL, 10) : 1;

    return usual * (times > 0 && times <= 1000 ? (unsigned)times : 1);
}
