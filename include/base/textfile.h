/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's small text files about the machine: one line each, with a word, a number, or a list like "0-3,8,10-11".
 */
#pragma once

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The first line of a file, whose path is formatted, without its end. False if there is none. */
static inline bool textfile_line(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool textfile_line(char *text, size_t size, const char *format, ...)
{
    _cleanup_fclose_ FILE *file = NULL;
    char path[PATH_MAX];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(path))
        return false;
    file = fopen(path, "re");
    if (!file || !fgets(text, (int)size, file))
        return false;
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* The next range of a list, which then begins after it. False at the end, or if it is no list. */
static inline bool textfile_range(const char **list, unsigned *first, unsigned *last)
{
    unsigned long from, to;
    char *end;

    if (**list < '0' || **list > '9')
        return false;
    from = to = strtoul(*list, &end, 10);
    if (*end == '-')
        to = strtoul(end + 1, &end, 10);
    if (to < from || to > UINT_MAX)
        return false;
    *first = (unsigned)from;
    *last = (unsigned)to;
    *list = *end == ',' ? end + 1 : end;
    return true;
}
