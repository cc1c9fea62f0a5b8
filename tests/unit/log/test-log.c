/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reaches the operator: levels, one line per message whatever a client put into it, and a bound on what
 * one user can cause.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "log/log.h"

static FILE *captured;
static int real_stderr;

static int capture(void **state)
{
    captured = tmpfile();
    assert_non_null(captured);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_int_equal(dup2(fileno(captured), STDERR_FILENO), STDERR_FILENO);
    assert_true(log_set_level("notice"));
    return 0;
}

static int release(void **state)
{
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    fclose(captured);
    return 0;
}

/* everything said so far */
static const char *said(void)
{
    static char text[65536];
    ssize_t n = pread(fileno(captured), text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void levels_below_the_threshold_are_silent(void **state)
{
    log_info("quiet");
    log_notice("heard");
    log_warning("careful");
    assert_string_equal(said(), "memoryd: heard\nmemoryd: warning: careful\n");
    assert_true(log_set_level("info"));
    log_info("now heard");
    assert_non_null(strstr(said(), "now heard\n"));
    assert_false(log_set_level("loud"));
}

static void control_characters_cannot_forge_a_line(void **state)
{
    log_warning("program %s", "x\nmemoryd: all is well\033[2J");
    assert_int_equal(count_lines(said()), 1);
    assert_null(strchr(said(), '\033'));
}

static void long_lines_are_cut_not_lost(void **state)
{
    char *longest = malloc(5000);

    assert_non_null(longest);
    memset(longest, 'a', 4999);
    longest[4999] = '\0';
    log_warning("%s", longest);
    free(longest);
    assert_int_equal(count_lines(said()), 1);
    assert_true(strlen(said()) > 500);
}

static void I7_a_user_cannot_flood_the_log(void **state)
{
    struct log_client loud = {.uid = 1000, .pid = getpid()};
    /* whose number once had the same place in a table */
    struct log_client other = {.uid = 1064, .pid = 0};
    unsigned long before = log_client_suppressed();

    for (int i = 0; i < 1000; i++)
        log_client(LOG_LEVEL_WARNING, loud, "broke the protocol");
    assert_int_equal(count_lines(said()), LOG_CLIENT_LINES + 1);
    assert_int_equal(log_client_suppressed() - before, 1000 - LOG_CLIENT_LINES);
    log_client(LOG_LEVEL_WARNING, other, "still heard");
    assert_non_null(strstr(said(), "client 0 \"?\" of uid 1064: still heard\n"));
}

/* It says first who it is, by what it cannot choose. */
static void I8_a_program_cannot_forge_a_line_by_its_name(void **state)
{
    char wanted[128];

    assert_ok(prctl(PR_SET_NAME, "a\" of uid 0:\n\033\x9b"));
    log_client(LOG_LEVEL_WARNING, (struct log_client){.uid = 2000, .pid = getpid()}, "said \"%s\"",
               "\xc2\x9b"
               "2J");
    assert_ok(prctl(PR_SET_NAME, "test-log"));
    snprintf(wanted, sizeof(wanted),
             "memoryd: warning: client %d \"a\\x22 of uid 0:\\x0a\\x1b\\x9b\" of uid 2000: said \"\\x9b2J\"\n",
             (int)getpid());
    assert_string_equal(said(), wanted);
}

static void a_fatal_error_shows_its_way(void **state)
{
    assert_int_equal(fatal(-ENOMEM), -ENOMEM);
    assert_non_null(strstr(said(), "error: "));
    assert_non_null(strstr(said(), "test-log.c:"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, capture, release)

/* A pager that was left open, say. A line that waited would be the end of this test by its alarm. */
static void I8_nobody_waits_for_who_reads_the_log(void **state)
{
    static char full[1 << 20];
    int ends[2];
    ssize_t n;

    assert_ok(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    while (write(ends[1], full, 4096) > 0)
        ;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)alarm(20);
    log_notice("lost");
    log_notice("lost as well");
    (void)alarm(0);
    while (read(ends[0], full, sizeof(full)) > 0)
        ;
    log_notice("somebody reads again");
    n = read(ends[0], full, sizeof(full) - 1);
    assert_true(n > 0);
    full[n] = '\0';
    assert_string_equal(full, "memoryd: warning: 2 lines were lost: nobody read the log\n"
                              "memoryd: somebody reads again\n");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(levels_below_the_threshold_are_silent),
        TEST(control_characters_cannot_forge_a_line),
        TEST(long_lines_are_cut_not_lost),
        TEST(I7_a_user_cannot_flood_the_log),
        TEST(I8_a_program_cannot_forge_a_line_by_its_name),
        TEST(a_fatal_error_shows_its_way),
        TEST(I8_nobody_waits_for_who_reads_the_log),
    };

    return test_run(tests, NULL, NULL);
}
