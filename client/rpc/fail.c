/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence is in static thread-local storage: nothing can fail while a failure is told, and nothing is freed. */
#include "rpc/fail.h"

#include <errno.h>
#include <string.h>

#include "base/problem.h"
#include "proto/status.h"

static __thread struct problem last;
static __thread unsigned last_status;

int fail_with(int err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    problem_setv(&last, format, arguments);
    va_end(arguments);
    last_status = 0;
    return -err;
}

int fail_refused(unsigned status, const char *sentence)
{
    if (sentence && *sentence)
        problem_set(&last, "%s", sentence);
    else
        problem_set(&last, "%s", status_text(status));
    last_status = status;
    return -status_errno(status);
}

int fail_errno(const char *what)
{
    int err = errno ? errno : EIO;
    char text[128];

    return fail_with(err, "%s: %s", what, strerror_r(err, text, sizeof(text)));
}

const char *fail_sentence(void)
{
    return last.sentence;
}

unsigned fail_status(void)
{
    return last_status;
}

struct fail_saved fail_save(int err)
{
    struct fail_saved saved = {.err = err, .status = last_status};

    memcpy(saved.sentence, last.sentence, sizeof(saved.sentence));
    return saved;
}

int fail_restore(const struct fail_saved *saved)
{
    memcpy(last.sentence, saved->sentence, sizeof(last.sentence));
    last_status = saved->status;
    return saved->err;
}
