/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers ahead, against a broker that the test plays: what is used is locked, and it is told of that and of no other;
 * it gets back the rest, and is asked only if it knows what that means. Programs get each buffer once, whatever it
 * answers.
 *
 * How often the library asks depends on how fast the machine is, so a program here goes on until it has.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memclient/memclient.h>

#include "base/clock.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/client/fake.h"

#define IDS  100000
#define KEPT 4

/* Requests for more, where the broker gives any. */
#define ENOUGH 60

enum state { NEVER, HELD, AHEAD, GIVEN_BACK };

/* What the broker makes of ALLOC with AHEAD. */
enum manner { GENEROUS, WITHOUT_PLENTY, REFUSING, WITHOUT_DESCRIPTORS, FICKLE, CONFUSED };

static struct world {
    char path[108];
    int listening;
    int broker;
    unsigned version;
    enum manner manner;
    unsigned fds;

    /* the broker's */
    enum state states[IDS];
    atomic_int ts[IDS]; /* one more than its descriptor of what was given ahead, or 0 */
    uint64_t last;
    unsigned taken;
    unsigned n_refused;
    uint64_t refused[MEMORYD_BATCH_MAX]; /* what it was told by the request before, and that was refused */
    atomic_uint asked; /* … ahead, or with an old broker, at all */
    uint64_t in_vain;  /* when it was last told that there is no plenty */

    /* the program's */
    uint64_t page;
    enum state had[IDS];
} w;

static bool is_locked(int t)
{
    struct flock lock = {.l_type = F_WRLCK, .l_start = MEMORYD_AHEAD_LOCK, .l_len = 1};

    return !fcntl(t, F_OFD_GETLK, &lock) && lock.l_type == F_WRLCK;
}

/* What it complains of, or NULL. */
static void *program(void *data)
{
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    struct memclient_buffer *kept[KEPT] = {NULL};
    struct memclient *ctx = NULL;
    bool in_vain = w.manner == WITHOUT_PLENTY || w.manner == REFUSING || w.manner == WITHOUT_DESCRIPTORS;
    unsigned enough = w.version < 2 ? 200 : in_vain ? 6 : ENOUGH;
    int64_t end = wait_now_ms() + PATIENCE_MS / 2;

    (void)data;
    options.socket = w.path;
    options.deadline_ms = PATIENCE_MS;
    if (memclient_open(&options, &ctx))
        return (char *)"no session";
    for (unsigned i = 0; atomic_load(&w.asked) < enough && wait_now_ms() < end; i++) {
        struct memclient_buffer *buf = NULL;
        uint64_t id;
        int r = memclient_alloc(ctx, w.page, NULL, &buf);

        /* what a connection that ends with nonsense had to tell is lost */
        if (r == -EPROTO && w.manner == CONFUSED)
            continue;
        if (r)
            return (char *)"no buffer";
        id = memclient_buffer_id(buf);
        if (w.had[id] != NEVER)
            return (char *)"one buffer given twice";
        w.had[id] = HELD;
        if (atomic_load(&w.ts[id]) && !is_locked(atomic_load(&w.ts[id]) - 1))
            return (char *)"what is used is not locked";
        memclient_buffer_unref(kept[i % KEPT]);
        kept[i % KEPT] = buf;
    }
    for (unsigned i = 0; i < KEPT; i++)
        memclient_buffer_unref(kept[i]);
    memclient_close(ctx);
    return NULL;
}

/* By another description than the program gets. */
static void keep(uint64_t id, int fd)
{
    char path[64];
    int t;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    t = open(path, O_RDWR | O_CLOEXEC);
    assert_true(t >= 0);
    atomic_store(&w.ts[id], t + 1);
}

static void forget(uint64_t id)
{
    int t = atomic_exchange(&w.ts[id], 0) - 1;

    if (t >= 0)
        assert_ok(close(t));
}

static void make_some(const struct fake_request *request, const Memoryd__V1__AllocRequest *m, bool ahead)
{
    bool wants_fds = m->flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS &&
                     !(ahead && w.manner == WITHOUT_DESCRIPTORS);
    unsigned n = (unsigned)m->n_sizes;
    int fds[MEMORYD_BATCH_MAX];

    assert_in_range(n, 1, MEMORYD_AHEAD_MAX);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(m->sizes[i], w.page);
        assert_true(w.last + i + 1 < IDS);
        w.states[w.last + i + 1] = ahead ? AHEAD : HELD;
        fds[i] = memfd_create("fake", MFD_CLOEXEC);
        assert_true(fds[i] >= 0);
        assert_ok(ftruncate(fds[i], (off_t)w.page));
        if (ahead)
            keep(w.last + i + 1, fds[i]);
    }
    fake_buffers(w.broker, METHOD_ALLOC, request->header.sequence, w.last + 1, n, wants_fds ? fds : NULL);
    for (unsigned i = 0; i < n; i++)
        assert_ok(close(fds[i]));
    w.last += n;
}

static bool is_refused(void)
{
    return w.manner == REFUSING || (w.manner == FICKLE && atomic_load(&w.asked) % 3 == 0);
}

/* Not at last, so that the program may end in peace. */
static bool is_confused(void)
{
    return w.manner == CONFUSED && w.asked % 4 == 1 && w.asked < ENOUGH - 10;
}

static bool is_among(uint64_t id, const Memoryd__V1__AllocRequest *m)
{
    for (size_t i = 0; i < m->n_taken; i++)
        if (m->taken[i] == id)
            return true;
    return false;
}

static void await_program(void)
{
    assert_true(wait_readable(w.listening));
    w.broker = accept4(w.listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(w.broker >= 0);
}

/* One more than was asked for, so that the program gives up the connection. */
static void confuse(const struct fake_request *request, const Memoryd__V1__AllocRequest *m)
{
    fake_buffers(w.broker, METHOD_ALLOC, request->header.sequence, IDS, (unsigned)m->n_sizes + 1, NULL);
    assert_ok(close(w.broker));
    await_program();
}

static void answer_alloc(const struct fake_request *request)
{
    const Memoryd__V1__AllocRequest *m = (const Memoryd__V1__AllocRequest *)request->message;
    uint64_t sequence = request->header.sequence;

    if (!(m->flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__AHEAD)) {
        w.asked += w.version < 2;
        assert_int_equal(m->n_taken, 0);
        make_some(request, m, false);
        return;
    }
    assert_true(w.version >= 2);
    atomic_fetch_add(&w.asked, 1);
    /* what it says then is said again */
    if (is_confused()) {
        confuse(request, m);
        return;
    }
    assert_true(!m->name && !m->address && !m->wait_ms);
    /* what it would not hear it is told again, unless that has been given back */
    for (unsigned i = 0; i < w.n_refused; i++)
        assert_true(w.states[w.refused[i]] == GIVEN_BACK || is_among(w.refused[i], m));
    w.n_refused = 0;
    for (size_t i = 0; i < m->n_taken; i++) {
        assert_int_equal(w.states[m->taken[i]], AHEAD);
        w.taken++;
        if (is_refused())
            w.refused[w.n_refused++] = m->taken[i];
        else
            w.states[m->taken[i]] = HELD;
    }
    switch (w.manner) {
    case CONFUSED:
    case GENEROUS:
    case WITHOUT_DESCRIPTORS:
        make_some(request, m, true);
        break;
    case WITHOUT_PLENTY:
        /* each time it stays away for twice as long */
        if (w.in_vain)
            assert_true(clock_now_ns() - w.in_vain >= (10 * NSEC_PER_MSEC) << (w.asked - 2));
        w.in_vain = clock_now_ns();
        fake_buffers(w.broker, METHOD_ALLOC, sequence, 1, 0, NULL);
        break;
    case REFUSING:
    case FICKLE:
        if (is_refused())
            fake_refuse(w.broker, METHOD_ALLOC, sequence, STATUS_LIMIT, "not now");
        else
            make_some(request, m, true);
        break;
    }
}

static void answer_release(const struct fake_request *request)
{
    const Memoryd__V1__ReleaseRequest *m = (const Memoryd__V1__ReleaseRequest *)request->message;
    Memoryd__V1__Statuses reply = MEMORYD__V1__STATUSES__INIT;
    uint32_t statuses[MEMORYD_BATCH_MAX] = {0};

    for (size_t i = 0; i < m->n_buffers; i++) {
        assert_true(w.states[m->buffers[i]] == HELD || w.states[m->buffers[i]] == AHEAD);
        w.states[m->buffers[i]] = GIVEN_BACK;
        forget(m->buffers[i]);
    }
    reply.n_statuses = m->n_buffers;
    reply.statuses = statuses;
    fake_reply(w.broker, METHOD_RELEASE, request->header.sequence, &reply.base, NULL, 0);
}

/* Until the program says goodbye. */
static void serve(void)
{
    struct fake_request request;
    bool left = false;

    while (!left && fake_receive(w.broker, &request)) {
        switch (request.header.method) {
        case METHOD_HELLO:
            fake_greet(w.broker, request.header.sequence, 5, w.version);
            break;
        case METHOD_ALLOC:
            answer_alloc(&request);
            break;
        case METHOD_RELEASE:
            answer_release(&request);
            break;
        case METHOD_GOODBYE:
            fake_reply(w.broker, METHOD_GOODBYE, request.header.sequence, NULL, NULL, 0);
            left = true;
            break;
        default:
            fail_msg("method %u", request.header.method);
        }
        fake_request_deinit(&request);
    }
    assert_true(left);
}

static void play(unsigned version, enum manner manner)
{
    const char *folder = getenv("TMPDIR");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;
    void *complaint;

    memset(&w, 0, sizeof(w));
    w.fds = fd_count();
    w.version = version;
    w.manner = manner;
    w.page = (uint64_t)sysconf(_SC_PAGESIZE);
    snprintf(w.path, sizeof(w.path), "%.80s/ahead.%d", folder ? folder : "/tmp", getpid());
    (void)unlink(w.path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", w.path);
    w.listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_ok(bind(w.listening, (const struct sockaddr *)&address, sizeof(address)));
    assert_ok(listen(w.listening, 1));
    assert_int_equal(pthread_create(&thread, NULL, program, NULL), 0);
    await_program();
    serve();
    assert_ok(close(w.broker));
    assert_int_equal(pthread_join(thread, &complaint), 0);
    if (complaint)
        fail_msg("%s", (const char *)complaint);
    assert_ok(close(w.listening));
    assert_ok(unlink(w.path));
    for (uint64_t id = 1; id <= w.last; id++)
        forget(id);
    assert_int_equal(fd_count(), w.fds);

    /* what the program has had was used, as far as the broker knows, and is given back */
    for (uint64_t id = 1; id <= w.last && manner != CONFUSED; id++) {
        if (w.had[id] == HELD)
            assert_int_equal(w.states[id], GIVEN_BACK);
        assert_int_not_equal(w.states[id], HELD);
    }
}

static void what_is_used_is_told_and_the_rest_comes_back(void **state)
{
    (void)state;
    play(MEMORYD_MINOR_MAX, GENEROUS);
}

static void a_broker_without_plenty_harms_nobody(void **state)
{
    (void)state;
    play(MEMORYD_MINOR_MAX, WITHOUT_PLENTY);
    assert_int_equal(w.taken, 0);
}

static void a_broker_that_refuses_harms_nobody(void **state)
{
    (void)state;
    play(MEMORYD_MINOR_MAX, REFUSING);
    assert_int_equal(w.taken, 0);
}

static void what_comes_without_a_descriptor_goes_back(void **state)
{
    (void)state;
    play(MEMORYD_MINOR_MAX, WITHOUT_DESCRIPTORS);
    assert_int_equal(w.taken, 0);
}

static void a_refusal_now_and_then_harms_nobody(void **state)
{
    (void)state;
    play(MEMORYD_MINOR_MAX, FICKLE);
}

/* It asks again, though nobody has answered the request before. */
static void a_broker_that_talks_nonsense_harms_nobody(void **state)
{
    (void)state;
    play(MEMORYD_MINOR_MAX, CONFUSED);
    assert_true(w.taken);
}

static void an_older_broker_is_not_asked(void **state)
{
    (void)state;
    play(1, GENEROUS);
    assert_int_equal(w.taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_used_is_told_and_the_rest_comes_back),
        cmocka_unit_test(a_broker_without_plenty_harms_nobody),
        cmocka_unit_test(a_broker_that_refuses_harms_nobody),
        cmocka_unit_test(what_comes_without_a_descriptor_goes_back),
        cmocka_unit_test(a_refusal_now_and_then_harms_nobody),
        cmocka_unit_test(a_broker_that_talks_nonsense_harms_nobody),
        cmocka_unit_test(an_older_broker_is_not_asked),
    };

    return test_run(tests, NULL, NULL);
}
