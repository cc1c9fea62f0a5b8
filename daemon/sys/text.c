/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. */

#include "sys/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

bool text_read(char *text, size_t size, const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;

    if (fd < 0)
        return false;
    while (length < size - 1) {
        ssize_t n = read(fd, text + length, size - 1 - length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0)
            break;
        length += (size_t)n;
    }
    text[length] = '\0';
    return true;
}

static bool number(const char *text, uint64_t *ret)
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

    return found && number(found + strlen(key), ret);
}

bool text_read_number(const char *path, uint64_t *ret)
{
    char text[64];

    return text_read(text, sizeof(text), path) && number(text, ret);
}
