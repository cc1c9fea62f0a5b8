/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next connection: connect to where the last one was, say HELLO with the session and its secret, send again what
 * has no reply. If nobody listens, that is no failure: the broker is being replaced. But where a private broker may be
 * started, one is started after a while; the session is then probably unknown, which ends the channel.
 */
#include "rpc/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/envelope.h"
#include "proto/hold_cache.h"
#include "proto/sockio.h"
#include "proto/status.h"
#include "rpc/connect.h"
#include "rpc/convert.h"
#include "rpc/fail.h"
#include "rpc/requests.h"

/* After so many attempts, in about half a second, a private broker is started. */
#define AUTOSTART_ATTEMPTS 9

struct resumption {
    struct connected at; /* of the session; its socket is not used */
    char program[MEMORYD_PROGRAM_MAX + 1];
    struct rpc_session session;

    unsigned attempt;      /* since the last connection */
    uint64_t next_attempt; /* when it may be made */
    struct call hello;
    struct rpc_session hello_reply;
    uint8_t request[MEMORYD_PROGRAM_MAX + 128]; /* the HELLO, packed */
};

/*
 * This process allocates the pages, so that they are there when it writes to them (I1). The child of a fork has a
 * session of its own, and must not write into this one's, so it does not get them.
 */
static void resume_map_memory(struct channel *channel, int fd, bool with_cache)
{
    void *memory = MAP_FAILED;
    struct stat st;
    size_t size = 0;

    if (fd >= 0 && !fstat(fd, &st))
        size = with_cache && st.st_size >= SESSION_MEMORY_SIZE ? SESSION_MEMORY_SIZE
               : st.st_size >= RELEASE_LOG_SIZE                ? RELEASE_LOG_SIZE
                                                               : 0;
    if (size && !fallocate(fd, 0, 0, (off_t)size))
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)fd_close(fd);
    if (memory != MAP_FAILED && madvise(memory, size, MADV_DONTFORK) < 0) {
        (void)munmap(memory, size);
        memory = MAP_FAILED;
    }
    if (memory == MAP_FAILED)
        return;
    channel->release_log = memory;
    if (size < SESSION_MEMORY_SIZE)
        return;
    channel->cache = &((struct session_memory *)memory)->cache;
    /* tells the broker that the page is there */
    __atomic_store_n(&channel->cache->in_hand, 1, __ATOMIC_SEQ_CST);
}

int channel_may_resume(struct channel *channel, const struct connected *connected, const char *program,
                       struct rpc_session *session)
{
    struct resumption *next = calloc(1, sizeof(*next));
    _cleanup_close_ int log = steal_fd(&session->release_log);

    if (!next)
        return fail_with(ENOMEM, "no memory for a session");
    next->at = *connected;
    snprintf(next->program, sizeof(next->program), "%s", program);
    next->session = *session;
    next->hello_reply.release_log = -1;
    pthread_mutex_lock(&channel->lock);
    resume_map_memory(channel, steal_fd(&log), true);
    __atomic_store_n(&channel->minor, session->version, __ATOMIC_RELAXED);
    __atomic_store_n(&channel->has_nodes, session->n_nodes > 1, __ATOMIC_RELAXED);
    channel->resumption = next;
    pthread_mutex_unlock(&channel->lock);
    return 0;
}

void resume_deinit(struct channel *channel)
{
    struct resumption *next = channel->resumption;

    if (!next)
        return;
    (void)fd_close(next->hello_reply.release_log);
    explicit_bzero(next, sizeof(*next));
    free(next);
    channel->resumption = NULL;
}

int resume_timed_out(struct channel *channel)
{
    const char *path = channel->resumption->at.path;

    return channel->link == LINK_DOWN
               ? fail_with(ETIMEDOUT, "the broker at %s has gone, and did not come back in time", path)
               : fail_with(ETIMEDOUT, "the broker at %s did not take the session up again in time", path);
}

static void resume_later(struct channel *channel)
{
    struct resumption *next = channel->resumption;

    channel->link = LINK_DOWN;
    /* what was sent after a HELLO that was refused */
    requests_lost(channel);
    channel->socket = file_id_close(channel->socket_id, channel->socket);
    next->next_attempt = deadline_after_ns(connect_pause_ns(next->attempt++));
}

/* The calls that wait now fail; later ones may try again. */
static void resume_fail_all(struct channel *channel, int err, unsigned status, const char *sentence)
{
    requests_fail(channel, err, status, sentence, false);
    resume_later(channel);
}

static bool resume_is_restarting(int r)
{
    return r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN || r == -ENOTDIR;
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

/* False if the deadline came first, or the channel is broken. */
static bool resume_pause(struct channel *channel, uint64_t deadline)
{
    uint64_t now = clock_now_ns();
    uint64_t until = channel->resumption->next_attempt;

    if (now >= until)
        return true;
    pthread_mutex_unlock(&channel->lock);
    poll(NULL, 0, deadline_poll_ms(until < deadline ? until : deadline, now));
    pthread_mutex_lock(&channel->lock);
    return until <= deadline && !channel->broken;
}

static void resume_say_hello(struct channel *channel)
{
    struct resumption *next = channel->resumption;
    Memoryd__V1__HelloRequest hello;
    struct pending *pending;
    size_t n;

    hello_request(&hello, next->program, &next->session, !channel->release_log);
    next->hello.state = CALL_OF_LEADER;
    next->hello.decode = hello_decode;
    next->hello.result = &next->hello_reply;
    next->hello.status = 0;
    next->hello.err = 0;
    pending = envelope_pack(&hello.base, next->request, sizeof(next->request), &n)
                  ? NULL
                  : request_enter(channel, schema_method(METHOD_HELLO), next->request, n, &next->hello);
    if (pending && !request_send(channel, pending)) {
        channel->link = LINK_HANDSHAKING;
        channel->since = clock_now_ns();
        return;
    }
    if (pending)
        request_drop(channel, pending);
    resume_later(channel);
}

/* The channel has the socket as soon as it exists, so that the child of a fork closes it. */
static int resume_connect(struct channel *channel)
{
    struct resumption *next = channel->resumption;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return fail_errno("socket");
    channel->socket = fd;
    channel->socket_id = file_id_of(fd);
    pthread_mutex_unlock(&channel->lock);
    r = connect_once(fd, next->at.path, next->at.private);
    if (!r)
        channel->may_wait = !sockio_set_wait(fd, LINK_WAIT_MS);
    pthread_mutex_lock(&channel->lock);
    return r;
}

static int resume_start_broker(struct channel *channel, uint64_t deadline)
{
    struct resumption *next = channel->resumption;
    int r;

    pthread_mutex_unlock(&channel->lock);
    r = autostart_broker(next->at.path, deadline);
    pthread_mutex_lock(&channel->lock);
    return r == -ETIMEDOUT ? 0 : r;
}

void resume_step(struct channel *channel, uint64_t deadline)
{
    struct resumption *next = channel->resumption;
    struct fail_saved saved = fail_save(0);
    int r;

    if (!resume_pause(channel, deadline))
        return;
    r = resume_connect(channel);
    if (!r && !channel->broken) {
        resume_say_hello(channel);
    } else if (resume_is_restarting(r)) {
        resume_later(channel);
        if (r != -EAGAIN && next->at.may_autostart && next->attempt > AUTOSTART_ATTEMPTS) {
            next->attempt = 0;
            r = resume_start_broker(channel, deadline);
            if (r)
                requests_fail(channel, -r, 0, fail_sentence(), false);
        }
    } else if (r) {
        resume_fail_all(channel, -r, 0, fail_sentence());
    }
    (void)fail_restore(&saved);
}

/* A listening socket that is full is tried again, at growing intervals, but not for long. */
void resume_at_once(struct channel *channel)
{
    uint64_t until = deadline_at(channel->since, LINK_LEAVE_NS);
    struct fail_saved saved = fail_save(0);
    int r;

    while ((r = resume_connect(channel)) == -EAGAIN && !deadline_passed(until, clock_now_ns())) {
        resume_later(channel);
        if (!resume_pause(channel, until))
            break;
    }
    if (!r && !channel->broken)
        resume_say_hello(channel);
    else
        resume_later(channel);
    (void)fail_restore(&saved);
}

void resume_if_due(struct channel *channel)
{
    struct fail_saved saved = fail_save(0);

    if (!deadline_passed(channel->resumption->next_attempt, clock_now_ns()))
        return;
    if (!resume_connect(channel) && !channel->broken)
        resume_say_hello(channel);
    else
        resume_later(channel);
    (void)fail_restore(&saved);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void resume_succeeded(struct channel *channel)
{
    struct resumption *next = channel->resumption;

    /* a log that comes late does not have earlier changes, nor what was let out, so its cache is not used */
    if (!channel->release_log)
        resume_map_memory(channel, steal_fd(&next->hello_reply.release_log), false);
    if (next->hello_reply.session != next->session.session || next->hello_reply.broker != next->session.broker) {
        channel_break_locked(channel, ECONNRESET, "another broker serves here now, which does not know the session");
        return;
    }
    __atomic_store_n(&channel->minor, next->hello_reply.version, __ATOMIC_RELAXED);
    __atomic_store_n(&channel->has_nodes, next->hello_reply.n_nodes > 1, __ATOMIC_RELAXED);
    channel->link = LINK_UP;
    /* if the connection is lost before anything is answered, the next one is not made at once */
    next->next_attempt = deadline_after_ns(connect_pause_ns(next->attempt++));
    requests_flush(channel);
    if (channel->owner.resumed) {
        pthread_mutex_unlock(&channel->lock);
        channel->owner.resumed(channel->owner.data, channel);
        pthread_mutex_lock(&channel->lock);
    }
}

void resume_check_hello(struct channel *channel)
{
    struct resumption *next = channel->resumption;

    if (channel->broken || next->hello.state != CALL_ANSWERED)
        return;
    next->hello.state = CALL_OF_LEADER;
    switch (next->hello.status) {
    case STATUS_OK:
        resume_succeeded(channel);
        break;
    case STATUS_STALE:
    case STATUS_NO_SUCH_ID:
    case STATUS_SESSION_REJECTED:
        channel_break_locked(channel, ECONNRESET,
                             "the connection was lost, and the broker does not know the session any more");
        break;
    case STATUS_SHUTTING_DOWN:
    case STATUS_NO_MEMORY:
    case STATUS_NO_DESCRIPTORS:
    case STATUS_LIMIT:
        resume_later(channel);
        break;
    default:
        resume_fail_all(channel, 0, next->hello.status, next->hello.sentence);
    }
}

void resume_confirm(struct channel *channel)
{
    struct resumption *next = channel->resumption;

    if (next && channel->link == LINK_UP) {
        next->attempt = 0;
        next->next_attempt = 0;
    }
}

void resume_lost_hello(struct channel *channel)
{
    struct resumption *next = channel->resumption;

    if (next->hello.state == CALL_OF_LEADER)
        request_drop(channel, next->hello.pending);
    next->hello_reply.release_log = fd_close(next->hello_reply.release_log);
    next->next_attempt = deadline_after_ns(connect_pause_ns(next->attempt++));
}
