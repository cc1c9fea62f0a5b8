/* SPDX-License-Identifier: Apache-2.0 */
/* See absent.h. */
#include "tests/unit/client/absent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/stubs.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

struct world w;

static void on_lost(void *data, struct channel *channel)
{
    (void)data;
    (void)channel;
    __atomic_add_fetch(&w.lost, 1, __ATOMIC_RELAXED);
}

static void on_resumed(void *data, struct channel *channel)
{
    (void)data;
    (void)channel;
    __atomic_add_fetch(&w.resumed, 1, __ATOMIC_RELAXED);
}

void listen_there(int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)unlink(w.at.path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", w.at.path);
    w.listening = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    assert_true(w.listening >= 0);
    assert_ok(bind(w.listening, (const struct sockaddr *)&address, sizeof(address)));
    assert_ok(listen(w.listening, 4));
}

void answer_connect(void)
{
    assert_true(wait_readable(w.listening));
    w.broker = accept4(w.listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(w.broker >= 0);
}

/* Its descriptor is for the client. */
static int make_release_log(void)
{
    int fd = memfd_create("releases", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_ok(ftruncate(fd, RELEASE_LOG_SIZE));
    w.log = dup(fd);
    w.releases = mmap(NULL, RELEASE_LOG_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(w.releases != MAP_FAILED);
    return fd;
}

static int setup_version(unsigned version, bool with_log)
{
    struct rpc_session session = {.version = version, .session = SESSION, .broker = 7, .release_log = -1};
    const struct channel_owner owner = {.lost = on_lost, .resumed = on_resumed};
    const char *folder = getenv("TMPDIR");

    w = (struct world){.fds = fd_count(), .at = {.socket = -1}, .log = -1};
    snprintf(w.at.path, sizeof(w.at.path), "%.80s/resume.%d", folder ? folder : "/tmp", getpid());
    memset(session.secret, SESSION, sizeof(session.secret));
    listen_there(SOCK_SEQPACKET);
    w.at.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect_once(w.at.socket, w.at.path, false), 0);
    answer_connect();
    assert_int_equal(channel_new(w.at.socket, &owner, &w.channel), 0);
    if (with_log)
        session.release_log = make_release_log();
    assert_int_equal(channel_may_resume(w.channel, &w.at, "test", &session), 0);
    return 0;
}

int setup(void **state)
{
    return setup_version(MEMORYD_MINOR_MAX, false);
}

int setup_with_log(void **state)
{
    return setup_version(MEMORYD_MINOR_MAX, true);
}

/* That takes descriptors with IMPORT and ADOPT. */
int setup_before_doors(void **state)
{
    return setup_version(3, false);
}

int setup_old_broker(void **state)
{
    return setup_version(0, false);
}

int teardown(void **state)
{
    channel_unref(w.channel);
    if (w.releases)
        assert_ok(munmap(w.releases, RELEASE_LOG_SIZE));
    w.log = fd_close(w.log);
    w.broker = fd_close(w.broker);
    w.listening = fd_close(w.listening);
    (void)unlink(w.at.path);
    assert_int_equal(fd_count(), w.fds);
    return 0;
}

void hang_up(void)
{
    w.broker = fd_close(w.broker);
}

void stop_listening(void)
{
    w.listening = fd_close(w.listening);
    assert_ok(unlink(w.at.path));
}

uint64_t expect_hello(uint64_t acknowledged)
{
    const Memoryd__V1__HelloRequest *hello;
    struct fake_request request;
    uint64_t sequence;

    answer_connect();
    sequence = expect(w.broker, METHOD_HELLO, &request);
    hello = (const Memoryd__V1__HelloRequest *)request.message;
    assert_int_equal(hello->session, SESSION);
    assert_int_equal(hello->secret.len, MEMORYD_SECRET_SIZE);
    assert_int_equal(hello->secret.data[0], SESSION);
    assert_string_equal(hello->program, "test");
    assert_int_equal(request.header.acknowledged, acknowledged);
    assert_int_equal(request.header.answered, 0);
    fake_request_deinit(&request);
    return sequence;
}

void welcome_back(uint64_t acknowledged)
{
    uint64_t hello = expect_hello(acknowledged);

    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
}

void start(struct caller *c, enum caller_wish what)
{
    caller_start(c, w.channel, what, PATIENCE_MS);
}

void call_works(void)
{
    struct caller c;

    start(&c, PING);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}
