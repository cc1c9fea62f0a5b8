/* SPDX-License-Identifier: Apache-2.0 */
/* See error.h. */
#include "nbla/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static __thread struct {
    int code;
    unsigned error_count;
    char text[512];
} last;

const char *nbla_strerror(int error)
{
    static const char *const names[] = {
        "unclassified",    "not_implemented",       "value",   "type", "memory", "io", "os",
        "target_specific", "target_specific_async", "runtime",
    };

    return error < 0 && error >= NBLA_ERROR_RUNTIME ? names[-error - 1] : names[0];
}

const char *nbla_error(void)
{
    return last.text;
}

int nbla_error_code(void)
{
    return last.code;
}

unsigned error_count(void)
{
    return last.error_count;
}

int fail(enum nbla_status error, const char *format, ...)
{
    va_list arguments;

    last.code = error;
    last.error_count++;
    va_start(arguments, format);
    (void)vsnprintf(last.text, sizeof(last.text), format, arguments);
    va_end(arguments);
    return error;
}

int wrap_error(int r, unsigned before, const char *what)
{
    if (r >= 0 || (last.error_count != before && last.code == r))
        return r;
    return fail(r, "this kind of memory failed to %s", what);
}

static enum nbla_status error_of_native(int error)
{
    switch (error) {
    case ENOMEM:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
        return NBLA_ERROR_MEMORY;
    case EINVAL:
    case EOVERFLOW:
    case EBADF:
    case ENODEV:
    case ENXIO:
    case EREMOTE:
    case EBADMSG:
    case ESTALE:
    case EKEYEXPIRED:
    case EKEYREVOKED:
    case EKEYREJECTED:
        return NBLA_ERROR_VALUE;
    case EOPNOTSUPP:
        return NBLA_ERROR_NOT_IMPLEMENTED;
    default:
        return NBLA_ERROR_OS;
    }
}

int fail_native(int r)
{
    return fail(error_of_native(-r), "%s", memclient_error());
}

int fail_alloc(int r)
{
    enum nbla_status error = NBLA_ERROR_MEMORY;

    if (r == -ENODEV || r == -ENXIO)
        error = NBLA_ERROR_VALUE;
    else if (!memclient_error_status() && error_of_native(-r) == NBLA_ERROR_OS)
        error = NBLA_ERROR_OS;
    return fail(error, "%s", memclient_error());
}

void *object_new(size_t size)
{
    void *object = calloc(1, size);

    if (!object)
        (void)fail(NBLA_ERROR_MEMORY, "no memory for an object");
    return object;
}

int fail_parents(void)
{
    return fail(NBLA_ERROR_RUNTIME, "it was allocated before the fork: this process has a copy, which it cannot share; "
                                    "share memory that was allocated since, or open that of the parent");
}
