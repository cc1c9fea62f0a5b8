/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. */

#include "sys/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

__attribute__((format(printf, 3, 0))) static bool text_read_path(char *text, size_t size, const char *format,
                                                                 va_list args)
{
    _cleanup_close_ int fd = -1;
    char path[PATH_MAX];
    size_t length = 0;
    int n = vsnprintf(path, sizeof(path), format, args);

    if (n < 0 || (size_t)n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (length < size - 1) {
        ssize_t got = read(fd, text + length, size - 1 - length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    return true;
}

bool text_read(char *text, size_t size, const char *format, ...)
{
    va_list args;
    bool good;

    va_start(args, format);
    good = text_read_path(text, size, format, args);
    va_end(args);
    return good;
}

static bool parse_number(const char *text, uint64_t *ret)
{
    char *end;
    unsigned long long value;

    text += strspn(text, " \t");
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno)
        return false;
    *ret = value;
    return true;
}

bool text_number_after(const char *text, const char *key, uint64_t *ret)
{
    const char *found = strstr(text, key);

    return found && parse_number(found + strlen(key), ret);
}

const char *text_stat_field(const char *text, unsigned n)
{
    /* the program's name may have brackets in it */
    const char *at = strrchr(text, ')');

    if (!at || at[1] != ' ')
        return NULL;
    at += 2;
    for (; at && n; n--) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at;
}

bool text_read_number(uint64_t *ret, const char *format, ...)
{
    char text[64];
    va_list args;
    bool good;

    va_start(args, format);
    good = text_read_path(text, sizeof(text), format, args) && parse_number(text, ret);
    va_end(args);
    return good;
}
