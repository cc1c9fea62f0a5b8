/* SPDX-License-Identifier: Apache-2.0 */
/* See door.h. */
#include "rpc/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/sockio.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/fail.h"
#include "rpc/interrupt.h"

/* A door that takes longer to answer may hang, and the broker is asked for another socket: to the same door if it only
 * has much to do, to another one if it hangs. */
#define PATIENCE_NS (250 * NSEC_PER_MSEC)
/* How often to try again while too many descriptors are in flight. */
#define RETRY_NS (10 * NSEC_PER_MSEC)

void door_init(struct channel_door *door)
{
    pthread_mutex_init(&door->lock, NULL);
    pthread_cond_init(&door->free, NULL);
    door->busy = false;
    door->socket = -1;
}

static void door_close(struct channel_door *door)
{
    door->socket = file_id_close(door->id, door->socket);
}

void door_deinit(struct channel_door *door)
{
    door_close(door);
    pthread_cond_destroy(&door->free);
    pthread_mutex_destroy(&door->lock);
}

void door_fork_child(struct channel_door *door)
{
    door_close(door);
    door_init(door);
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

/* With the lock, which is not held while the program is asked. 0: another turn. */
static int door_wait_on(struct channel_door *door, uint64_t deadline)
{
    bool wanted;

    if (deadline_passed(deadline, clock_now_ns()))
        return fail_with(ETIMEDOUT, "other threads showed descriptors to the broker for too long");
    pthread_mutex_unlock(&door->lock);
    wanted = interrupt_is_wanted();
    pthread_mutex_lock(&door->lock);
    return wanted ? interrupt_fail() : 0;
}

static int door_begin(struct channel_door *door, uint64_t deadline)
{
    int r = 0;

    pthread_mutex_lock(&door->lock);
    while (door->busy && !r)
        if (deadline_cond_wait(&door->free, &door->lock, interrupt_deadline(deadline)) && door->busy)
            r = door_wait_on(door, deadline);
    if (!r)
        door->busy = true;
    pthread_mutex_unlock(&door->lock);
    return r;
}

static void door_end(struct channel_door *door)
{
    pthread_mutex_lock(&door->lock);
    door->busy = false;
    pthread_cond_signal(&door->free);
    pthread_mutex_unlock(&door->lock);
}

static int decode_door(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    int *fd = result;

    *fd = fdset_steal(fds, 0);
    return 0;
}

/* Has a socket, from before or new. */
static int door_open(struct channel *channel, uint64_t deadline)
{
    const struct channel_request request = {
        .method = METHOD_DOOR,
        .message = REQUEST(Door, door),
        .decode = decode_door,
        .result = &channel->door.socket,
    };
    int r;

    /* the program may have closed it, and the number be another file's */
    if (channel->door.socket >= 0 && file_id_is(channel->door.id, channel->door.socket))
        return 0;
    channel->door.socket = -1;
    r = channel_call(channel, &request, deadline);
    if (r)
        return r;
    if (channel->door.socket < 0)
        return fail_with(ENFILE, "the broker has no descriptor for its door now; try again in a moment");
    channel->door.id = file_id_of(channel->door.socket);
    return 0;
}

/* -EINTR: the program wants the wait to end. It is asked only if nothing came. */
static int door_poll(struct pollfd *p, nfds_t n, uint64_t until, uint64_t now)
{
    return poll(p, n, deadline_poll_ms(until, now)) <= 0 && interrupt_is_wanted() ? interrupt_fail() : 0;
}

/* As sockio_send(), or as door_poll(). */
static int door_ask(struct channel_door *door, int fd, enum door_kind kind, uint64_t until)
{
    uint8_t packet[MEMORYD_DOOR_REQUEST];
    const struct iovec iov = {.iov_base = packet, .iov_len = sizeof(packet)};
    int r;

    door_request_encode(packet, kind);
    while ((r = sockio_send(door->socket, &iov, 1, &fd, 1)) == SOCKIO_E_AGAIN || r == SOCKIO_E_TOO_MANY_IN_FLIGHT) {
        uint64_t now = clock_now_ns(), soon = deadline_at(now, RETRY_NS);

        if (deadline_passed(until, now))
            break;
        if (door_poll(NULL, 0, soon < until ? soon : until, now))
            return -EINTR;
    }
    return r;
}

/* 1; 0 if none came; or as door_poll(). */
static int door_hear(struct channel_door *door, struct door_answer *answer, uint64_t until)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    uint8_t packet[DOOR_ANSWER_MAX];
    struct pollfd p = {.fd = door->socket, .events = POLLIN};
    size_t size;
    int r;

    while ((r = sockio_recv(door->socket, packet, sizeof(packet), &size, &fds)) == SOCKIO_E_AGAIN) {
        uint64_t now = clock_now_ns();

        if (deadline_passed(until, now))
            return 0;
        if (door_poll(&p, 1, until, now))
            return -EINTR;
    }
    return !r && door_answer_decode(packet, size, answer);
}

/* 1; 0 if it takes too long; or negative. */
static int door_ask_once(struct channel_door *door, int fd, enum door_kind kind, uint64_t until,
                         struct door_answer *answer)
{
    int r = door_ask(door, fd, kind, until);

    if (!r)
        return door_hear(door, answer, until);
    if (r < 0 && r != -EINTR)
        return fail_with(-r, "the descriptor could not be shown to the broker");
    return r < 0 ? r : 0;
}

static int door_try(struct channel *channel, int fd, enum door_kind kind, uint64_t deadline, uint64_t *ticket)
{
    uint64_t until;
    struct door_answer answer;
    int r;

    for (;;) {
        r = door_open(channel, deadline);
        if (r)
            return r;
        until = deadline_after_ns(PATIENCE_NS);
        until = until < deadline ? until : deadline;
        r = door_ask_once(&channel->door, fd, kind, until, &answer);
        if (r > 0)
            break;
        /* an answer that comes late must not be taken for the next one */
        door_close(&channel->door);
        if (r < 0)
            return r;
        if (deadline_passed(deadline, clock_now_ns()))
            return fail_with(ETIMEDOUT, "the broker's door did not answer in time");
    }
    if (answer.status)
        return fail_refused(answer.status, answer.sentence);
    *ticket = answer.ticket;
    return 0;
}

int door_show(struct channel *channel, int fd, enum door_kind kind, uint64_t deadline, uint64_t *ticket)
{
    int r;

    if (fcntl(fd, F_GETFD) < 0)
        return fail_with(EBADF, "not an open descriptor");
    r = door_begin(&channel->door, deadline);
    if (r)
        return r;
    r = door_try(channel, fd, kind, deadline, ticket);
    door_end(&channel->door);
    return r;
}
