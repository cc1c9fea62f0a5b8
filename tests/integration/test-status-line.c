/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager is told for the line that systemctl status shows: what the broker serves, by figures, and
 * not often.
 */
#include "tests/integration/clients.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

static int manager = -1;
static char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];

static void begin_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, sizeof(path), "%s/notify.%d", folder ? folder : "/tmp", (int)getpid());
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(manager >= 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    /* it keeps no descriptors */
    assert_int_equal(setenv("FDSTORE", "0", 1), 0);
}

static int end_manager(void **state)
{
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("FDSTORE");
    (void)unlink(path);
    close(manager);
    return broker_cleanup(state);
}

/* Reads what it was told, up to a line like this. */
static bool is_told(const char *pattern, unsigned *figures)
{
    char line[512];
    ssize_t n;

    while ((n = recv(manager, line, sizeof(line) - 1, 0)) > 0) {
        line[n] = '\0';
        *figures += !fnmatch("STATUS=Serving * client*", line, 0);
        if (!fnmatch(pattern, line, 0))
            return true;
    }
    return false;
}

static void the_line_says_what_is_served(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *bufs[5];
    unsigned figures = 0;

    begin_manager();
    broker = broker_for_test("[pools]\ncapacity = 16M\n");
    ctx = broker_connect(broker);
    assert_true(WAIT_UNTIL(is_told("READY=1*", &figures)));
    assert_int_equal(figures, 0);
    for (unsigned i = 0; i < 5; i++)
        assert_done(memclient_alloc(ctx, UINT64_C(1) << 20, NULL, &bufs[i]));
    assert_true(WAIT_UNTIL(is_told("STATUS=Serving * pool*, 5 buffers, 5.0 M of *, 1 client", &figures)));
    /* it may have been told between two of the allocations, and not again soon */
    assert_true(figures <= 2);
    for (unsigned i = 0; i < 5; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_context_close(ctx);
    broker_finish(broker);
    assert_true(WAIT_UNTIL(is_told("STOPPING=1", &figures)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_line_says_what_is_served, end_manager),
    };

    return test_run(tests, NULL, NULL);
}
