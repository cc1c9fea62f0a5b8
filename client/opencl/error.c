/* SPDX-License-Identifier: Apache-2.0 */
/* See error.h. */
#include "opencl/error.h"

#include <stdarg.h>
#include <stdio.h>

#include <memclient/svm.h>

static __thread char sentence[512];

int svm_fail(int r, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return r;
}

int svm_native(int r)
{
    return r < 0 ? svm_fail(r, "%s", memclient_error()) : r;
}

const char *memclient_svm_error(void)
{
    return sentence;
}
