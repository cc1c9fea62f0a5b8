/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Different reasons that are remembered, to be told in the last line. */
#define REASONS_MAX 4

static unsigned skipped;
static unsigned n_reasons;
static char reasons[REASONS_MAX][160];

__attribute__((constructor)) static void start_the_alarm_clock(void)
{
    const char *limit = getenv("TEST_TIMEOUT");

    setvbuf(stdout, NULL, _IOLBF, 0);
    /* run-test, if there is one, ends a hang before, and needs a while to say where it is */
    alarm(limit ? 2 * (unsigned)strtoul(limit, NULL, 10) : 120);
}

static void remember(const char *reason)
{
    for (unsigned i = 0; i < n_reasons; i++)
        if (strcmp(reasons[i], reason) == 0)
            return;
    if (n_reasons < REASONS_MAX)
        memcpy(reasons[n_reasons++], reason, sizeof(reasons[0]));
}

_Noreturn void test_skip(const char *format, ...)
{
    char reason[sizeof(reasons[0])] = "";
    va_list ap;

    va_start(ap, format);
    vsnprintf(reason, sizeof(reason), format, ap);
    va_end(ap);
    fprintf(stderr, "SKIP: %s\n", reason);
    skipped++;
    remember(reason);
    skip();
    abort(); /* skip() does not return, but its prototype does not say so */
}

int test_finish(int failures)
{
    if (failures != 0)
        return EXIT_FAILURE;
    if (skipped == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "%u not tried: ", skipped);
    for (unsigned i = 0; i < n_reasons; i++)
        fprintf(stderr, "%s%s", i > 0 ? "; " : "", reasons[i]);
    fputc('\n', stderr);
    return TEST_SKIPPED;
}

void test_needs_root(void)
{
    if (geteuid() != 0)
        test_skip("needs root");
}

bool test_has_root(void)
{
    if (geteuid() != 0)
        fprintf(stderr, "SKIP: needs root\n");
    return geteuid() == 0;
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

bool test_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");

    return preloaded && strstr(preloaded, "vgpreload");
}
