/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that lives through the loss of everything: survivor NAME. It has a buffer under NAME mapped and waits for
 * SIGUSR1. By then another broker serves, which knows nothing of it: the call on the old buffer must say so, its memory
 * must be as it was, and new buffers must be there at once, mapped at their homes. Ends with status 0 then.
 */
#include <errno.h>
#include <memclient/memclient.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SIZE     1048576
#define NEW_ONES 32

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, memclient_error());
    return 1;
}

static int go_on(void)
{
    for (int i = 0; i < NEW_ONES; i++) {
        struct memclient_buffer *buf;
        void *at;

        if (memclient_alloc(NULL, SIZE, NULL, &buf))
            return failed("memclient_alloc");
        if (memclient_map(buf, NULL, &at) || at != memclient_buffer_home(buf))
            return failed("memclient_map");
        memset(at, i, SIZE);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *old;
    sigset_t set;
    int signal;
    char *at;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    options.name = argv[argc - 1];
    if (memclient_alloc(NULL, SIZE, &options, &old) || memclient_map(old, NULL, (void **)&at))
        return failed("memclient_alloc, memclient_map");
    memset(at, 'x', SIZE);
    puts("waits");
    fflush(stdout);
    sigwait(&set, &signal);
    if (memclient_buffer_query(old, &info) != -ESTALE)
        return failed("the old buffer is not stale");
    if (go_on())
        return 1;
    for (size_t i = 0; i < SIZE; i++)
        if (at[i] != 'x')
            return failed("the old buffer has other bytes");
    return 0;
}
