/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned skipped;

__attribute__((constructor)) static void start_the_alarm_clock(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(TEST_PROGRAM_SECONDS);
}

_Noreturn void test_skip(const char *format, ...)
{
    va_list ap;

    skipped++;
    fputs("SKIP: ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    skip();
    abort(); /* skip() does not return, but its prototype does not say so */
}

int test_finish(int failures)
{
    if (failures != 0)
        return EXIT_FAILURE;
    if (skipped != 0) {
        fprintf(stderr, "%u not tried; the reasons are above\n", skipped);
        return TEST_SKIPPED;
    }
    return EXIT_SUCCESS;
}

void test_needs_root(void)
{
    if (geteuid() != 0)
        test_skip("needs root");
}

void test_fail_errno(const char *what, const char *file, int line)
{
    int error = errno;

    print_error("%s: %s\n", what, strerror(error));
    _fail(file, line);
}

void test_assert_errno(bool failed, int wanted, const char *what, const char *file, int line)
{
    int error = errno;

    if (failed && error == wanted)
        return;
    if (failed)
        print_error("%s: %s, not %s\n", what, strerror(error), strerror(wanted));
    else
        print_error("%s: succeeded, not %s\n", what, strerror(wanted));
    _fail(file, line);
}
