/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Very many at once: 1 000 client processes with 14 000 live buffers, on a machine whose hard limit of open files
 * is 20 000. Nothing is refused and all comes back. A limit that is too low is met with a sentence that says which.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CLIENTS      1000
#define BUFFERS_EACH 14
/* where a process is dear */
#define CLIENTS_OF_SANITIZERS 100

/* Seen by all: how many are where. */
struct crowd {
    atomic_uint ready;
    atomic_uint failed;
};

struct crowd_setup {
    struct crowd *crowd;
    const char *socket;
    int start[2]; /* pipes: who reads from one waits until its other end is closed everywhere */
    int end[2];
    unsigned buffers_each;
    unsigned contexts_each;
};

static void wait_for(int fd)
{
    char byte;
    ssize_t n;

    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
}

static bool allocate_all(const struct crowd_setup *setup)
{
    struct memclient_buffer *bufs[BUFFERS_EACH];
    uint64_t sizes[BUFFERS_EACH];
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx;
    void *p;

    options.socket = setup->socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    options.deadline_ms = PATIENCE_MS;
    for (size_t i = 0; i < BUFFERS_EACH; i++)
        sizes[i] = 1;
    for (unsigned c = 0; c < setup->contexts_each; c++) {
        if (memclient_context_open(&options, &ctx) < 0 ||
            memclient_alloc_many(ctx, setup->buffers_each, sizes, NULL, bufs) < 0 ||
            memclient_map(bufs[0], NULL, &p) < 0) {
            fprintf(stderr, "client %d: %s\n", getpid(), memclient_error());
            return false;
        }
        pattern_write(p, page_size(), (uint64_t)getpid());
        if (!pattern_holds(p, page_size(), (uint64_t)getpid()))
            return false;
    }
    return true;
}

static _Noreturn void be_a_client(const struct crowd_setup *setup)
{
    alarm(2 * PATIENCE_MS / 1000);
    close(setup->start[1]);
    close(setup->end[1]);
    wait_for(setup->start[0]);
    if (!allocate_all(setup))
        atomic_fetch_add(&setup->crowd->failed, 1);
    atomic_fetch_add(&setup->crowd->ready, 1);
    wait_for(setup->end[0]);
    _exit(EXIT_SUCCESS); /* as a crash: the broker finds out by itself */
}

static void I5_a_thousand_clients_with_fourteen_thousand_buffers(void **state)
{
    bool dear = TEST_ASAN || TEST_TSAN || TEST_MSAN;
    unsigned n = dear ? CLIENTS_OF_SANITIZERS : CLIENTS;
    struct crowd_setup setup = {.buffers_each = BUFFERS_EACH, .contexts_each = CLIENTS / n};
    static pid_t pids[CLIENTS];
    struct memclient_broker_info status;
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct rlimit limit;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 20000)
        test_skip("the hard limit of open files is %lu: fewer than 14 000 buffers", (unsigned long)limit.rlim_max);
    assert_ok(getrlimit(RLIMIT_NPROC, &limit));
    if (geteuid() != 0 && limit.rlim_cur < n + 200)
        test_skip("the limit of processes is %lu", (unsigned long)limit.rlim_cur);
    broker = broker_for_test(NULL);
    setup.socket = broker->socket;
    setup.crowd = mmap(NULL, sizeof(*setup.crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped((void *)setup.crowd);
    assert_ok(pipe2(setup.start, O_CLOEXEC));
    assert_ok(pipe2(setup.end, O_CLOEXEC));
    fflush(NULL);
    for (unsigned i = 0; i < n; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            be_a_client(&setup);
    }
    close(setup.start[0]);
    close(setup.end[0]);
    close(setup.start[1]); /* all at once */
    for (int tries = 0; tries < 4 && atomic_load(&setup.crowd->ready) < n; tries++)
        (void)WAIT_UNTIL(atomic_load(&setup.crowd->ready) == n);
    assert_int_equal(atomic_load(&setup.crowd->ready), n);
    assert_int_equal(atomic_load(&setup.crowd->failed), 0);

    ctx = broker_connect(broker);
    status = broker_status(ctx);
    assert_int_equal(status.buffers, CLIENTS * BUFFERS_EACH);
    assert_int_equal(status.sessions, CLIENTS + 1);
    assert_int_equal(status.bytes, CLIENTS * BUFFERS_EACH * page_size());
    print_message("%u processes, %llu sessions, %llu buffers, %llu of %llu descriptors\n", n,
                  (unsigned long long)status.sessions, (unsigned long long)status.buffers,
                  (unsigned long long)status.fds, (unsigned long long)status.fds_limit);
    broker_check(broker);

    close(setup.end[1]);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    memclient_context_close(ctx);
    assert_ok(munmap(setup.crowd, sizeof(*setup.crowd)));
    broker_finish(broker);
}

/* ---- limits that are too low ------------------------------------------------------------------------------------- */

/* Allocates until it is refused; how many there were. */
static size_t allocate_until_refused(struct memclient_context *ctx, struct memclient_buffer **bufs, size_t most,
                                     int *error)
{
    size_t n = 0;

    *error = 0;
    while (n < most) {
        int r = memclient_alloc(ctx, 1, NULL, &bufs[n]);

        if (r < 0) {
            *error = -r;
            break;
        }
        n++;
    }
    return n;
}

static void too_low_a_limit_of_open_files_is_told(void **state)
{
    enum { NOFILE = 600 };
    struct memclient_buffer *bufs[NOFILE];
    struct broker_process *broker = broker_for_test_with_nofile(NOFILE, NULL);
    struct memclient_context *ctx = broker_connect(broker), *other;
    int error;
    size_t n;

    assert_true(broker_said(broker, "the limit of open files is 600"));
    n = allocate_until_refused(ctx, bufs, NOFILE, &error);
    assert_in_range(n, 100, NOFILE - 1);
    assert_true(error == EDQUOT || error == ENFILE);
    assert_sentence(error == EDQUOT ? "limit" : "LimitNOFILE");
    /* others go on */
    other = broker_connect(broker);
    assert_done(memclient_broker_ping(other));
    memclient_context_close(other);
    broker_check(broker);
    for (size_t i = 0; i < n; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I5_a_thousand_clients_with_fourteen_thousand_buffers),
        at_broker(too_low_a_limit_of_open_files_is_told),
    };

    return test_run(tests, NULL, NULL);
}
