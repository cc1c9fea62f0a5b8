/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UMF_LOG: failures are logged where it says, and only there; and mistakes in it are reported. The program runs itself
 * again, since UMF_LOG is read when the library is loaded.
 */
#include <fcntl.h>
#include <regex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/support/child.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tests/unit/umf/again.h"

/* ---- what is run ------------------------------------------------------------------------------------------------- */

/* Fails in every way that needs no broker, and makes some calls that succeed. */
static int fail_all_ways(void)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t os, shared, memoryd, none;
    umf_memory_pool_handle_t pool;
    _Alignas(max_align_t) char handle[1024] = "damaged";
    void *ptr, *fine;

    CHECK(!umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &os));
    params.visibility = UMF_MEM_MAP_SHARED;
    CHECK(!umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &shared));
    CHECK(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &memoryd));
    CHECK(!umfMemoryProviderAlloc(os, 4096, 0, &fine));
    CHECK(umfMemoryProviderAlloc(os, SIZE_MAX, 0, &ptr) == UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    CHECK(umfMemoryProviderFree(NULL, fine, 4096) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(umfMemoryProviderOpenIPCHandle(shared, handle, &ptr) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(umfMemoryProviderOpenIPCHandle(memoryd, handle, &ptr) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    params.visibility = 0;
    CHECK(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &none) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(!umfMemoryProviderFree(os, fine, 4096));
    CHECK(!umfPoolCreate(umfProxyPoolOps(), os, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool));
    CHECK(!umfPoolMalloc(pool, SIZE_MAX));
    CHECK(umfOpenIPCHandle(pool, (umf_ipc_handle_t)(void *)handle, &ptr) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(shared);
    umfMemoryProviderDestroy(memoryd);
    return 0;
}

/* Nobody listens on the socket. */
static int miss_the_broker(void)
{
    umf_memory_provider_handle_t memoryd;
    void *ptr;

    CHECK(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &memoryd));
    CHECK(umfMemoryProviderAlloc(memoryd, 4096, 0, &ptr) != UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(memoryd);
    return 0;
}

/* ---- running it -------------------------------------------------------------------------------------------------- */

static char outputs[3][16384]; /* standard output, standard error, the file */
enum { OUT, ERR, LOG_FILE };

static int redirect(int fd, const char *name)
{
    char path[PATH_MAX + 16];
    int kept = dup(fd), file;

    (void)snprintf(path, sizeof(path), "%s/%s", files_root, name);
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && file >= 0);
    assert_ok(dup2(file, fd));
    close(file);
    return kept;
}

static void read_file(const char *name, char *text, size_t size)
{
    char path[PATH_MAX + 16];
    ssize_t n = 0;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", files_root, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        n = read(fd, text, size - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    if (fd >= 0)
        close(fd);
}

static const char *to_file(const char *more)
{
    static char value[PATH_MAX + 64];

    (void)snprintf(value, sizeof(value), "output:file,%s/log%s", files_root, more);
    return value;
}

/* Runs the program with this UMF_LOG, or without if it is NULL. */
static void run(const char *value, const char *argument)
{
    int out, err, status;

    assert_ok(value ? setenv("UMF_LOG", value, 1) : unsetenv("UMF_LOG"));
    (void)fflush(NULL);
    out = redirect(STDOUT_FILENO, "out");
    err = redirect(STDERR_FILENO, "err");
    status = run_again("/nonexistent", argument);
    assert_ok(dup2(out, STDOUT_FILENO));
    assert_ok(dup2(err, STDERR_FILENO));
    close(out);
    close(err);
    read_file("out", outputs[OUT], sizeof(outputs[OUT]));
    read_file("err", outputs[ERR], sizeof(outputs[ERR]));
    read_file("log", outputs[LOG_FILE], sizeof(outputs[LOG_FILE]));
    if (status)
        print_message("%s\n%s\n", outputs[OUT], outputs[ERR]);
    assert_int_equal(status, 0);
}

/* Counts the lines that match the extended regular expression. */
static unsigned lines(int output, const char *expression)
{
    regmatch_t match;
    unsigned n = 0;
    regex_t regex;

    assert_int_equal(regcomp(&regex, expression, REG_EXTENDED | REG_NEWLINE), 0);
    for (const char *text = outputs[output]; !regexec(&regex, text, 1, &match, 0); n++) {
        text += match.rm_eo;
        text += strcspn(text, "\n");
        text += *text == '\n';
        if (!*text) {
            n++;
            break;
        }
    }
    regfree(&regex);
    return n;
}

#define assert_lines(output, wanted, expression)                   \
    do {                                                           \
        if (lines((output), (expression)) != (wanted))             \
            print_message("%s\n", outputs[output]);                \
        assert_int_equal(lines((output), (expression)), (wanted)); \
    } while (0)

/* ---- what it says ------------------------------------------------------------------------------------------------ */

static void each_failure_has_a_line(int output)
{
    assert_lines(output, 2, "ERROR UMF\\] umfMemoryProviderAlloc: provider OS: MEMORY_PROVIDER_SPECIFIC: memory alloc");
    assert_lines(output, 1, "ERROR UMF\\] umfMemoryProviderFree: INVALID_ARGUMENT: the provider is NULL$");
    assert_lines(output, 1, "umfMemoryProviderOpenIPCHandle: provider OS: INVALID_ARGUMENT: the handle is damaged");
    assert_lines(output, 1, "umfMemoryProviderOpenIPCHandle: provider memoryd: INVALID_ARGUMENT: the handle is dam");
    assert_lines(output, 1, "umfOpenIPCHandle: INVALID_ARGUMENT: the handle is damaged");
    assert_lines(output, 1, "umfMemoryProviderCreate: INVALID_ARGUMENT: the protection, visibility");
    assert_lines(output, 7, "ERROR UMF\\] ");
}

static void says_what_fails(void **state)
{
    run("output:stderr", "fail");
    each_failure_has_a_line(ERR);
    assert_lines(ERR, 7, "^");
    assert_lines(ERR, 7, "^\\[ERROR UMF\\] ");
    assert_string_equal(outputs[OUT], "");
    run("output:stdout;level:error;flush:fatal", "fail");
    each_failure_has_a_line(OUT);
    assert_string_equal(outputs[ERR], "");
    run(to_file(";pid:no;timestamp:no"), "fail");
    each_failure_has_a_line(LOG_FILE);
    assert_string_equal(outputs[ERR], "");
    /* a file is appended to */
    run(to_file(";"), "fail");
    assert_lines(LOG_FILE, 14, "ERROR UMF\\] ");
}

/* The broker's sentence is logged. */
static void says_what_the_broker_says(void **state)
{
    run("output:stderr", "broker");
    assert_lines(ERR, 1, "umfMemoryProviderAlloc: provider memoryd: [A-Z_]+: .*/nonexistent/sock");
}

static void says_as_much_as_is_wanted(void **state)
{
    run("level:fatal;output:stderr", "fail");
    assert_string_equal(outputs[ERR], "");
    run("level:info;output:stderr", "fail");
    assert_lines(ERR, 1, "^\\[INFO  UMF\\] log_init: .* level: info, flush: error$");
    assert_lines(ERR, 0, "DEBUG");
    run("level:debug;flush:debug;output:stderr;pid:yes", "fail");
    assert_lines(ERR, 3, "^\\[PID:[0-9]+ +TID:[0-9]+ +DEBUG UMF\\] umfMemoryProviderCreate: provider [A-Za-z]+ is at");
    assert_lines(ERR, 1, "DEBUG UMF\\] umfPoolCreate: pool at 0x");
    run("output:stderr;timestamp:yes", "fail");
    assert_lines(ERR, 7, "^\\[20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9] ERROR UMF\\] ");
}

static void complains(const char *value, const char *expression)
{
    run(value, "fail");
    assert_lines(ERR, 1, expression);
}

static void complains_of_what_is_wrong(void **state)
{
    /* without an output only this is printed */
    complains("level:debug", "^memclient-umf: UMF_LOG: \"level:debug\": nothing is logged without output:");
    assert_lines(ERR, 0, "\\] ");
    complains("output:printer", "^memclient-umf: UMF_LOG: \"output:printer\": the output must be stdout, stderr or");
    complains("output:file,", "the output must be stdout");
    complains("output:file,/nonexistent/log", "\"output:file,/nonexistent/log\": cannot open it: No such file");
    assert_lines(ERR, 0, "\\] ");
    /* the other items take effect */
    complains("level:loud;output:stderr", "\"level:loud\": the level must be debug, info, warning, error or fatal$");
    each_failure_has_a_line(ERR);
    complains("flush:;output:stderr", "\"flush:\": the level must be");
    complains("pid:perhaps;output:stderr", "\"pid:perhaps\": must be yes or no$");
    complains("timestamp:1;output:stderr", "\"timestamp:1\": must be yes or no$");
    complains("output:stderr;colour:yes", "\"colour:yes\": unknown, must be level:, flush:, output:, timestamp: or");
    complains("output:stderr;level", "\"level\": unknown");
}

static void is_silent_unless_asked(void **state)
{
    for (int empty = 0; empty < 2; empty++) {
        run(empty ? "" : NULL, "fail");
        assert_string_equal(outputs[ERR], "");
        assert_string_equal(outputs[OUT], "");
    }
}

int main(int argc, char **argv)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, files_set_up, files_clean_up)
    const struct CMUnitTest tests[] = {
        TEST(says_what_fails),           TEST(says_what_the_broker_says),
        TEST(says_as_much_as_is_wanted), TEST(complains_of_what_is_wrong),
        TEST(is_silent_unless_asked),
    };

    setenv("MEMORYD_SOCKET", "/nonexistent/sock", 1);
    setenv("MEMORYD_AUTOSTART", "0", 1);
    if (argc > 1)
        return strcmp(argv[1], "fail") ? miss_the_broker() : fail_all_ways();
    return test_run(tests, NULL, NULL);
}
