/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives and sends one packet; sockio.h says what each outcome leaves behind.
 *
 * A call for several packets (recvmmsg(), sendmmsg()) was measured and left out: with eight waiting a packet costs a
 * third less to receive and a seventh less to send, but a single one, which is the usual case, a quarter and a tenth
 * more; and each of the eight needs a buffer for the largest. Sending a small packet without descriptors as one piece
 * by send() does pay: it costs a tenth less, since the kernel has no message header and no list of pieces to copy and
 * check.
 */
#include "proto/sockio.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

/* SCM_MAX_FD: the kernel allows no more in one message. With room for all of them, MSG_CTRUNC can only mean that
 * descriptors were lost, never that there were too many. */
#define KERNEL_FDS_MAX 253

union control_in {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(KERNEL_FDS_MAX * sizeof(int))];
};

union control_out {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(MEMORYD_FDS_MAX * sizeof(int))];
};

/* Of Linux 6.16; not in all headers. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Keeps the descriptors that fit, if any are wanted, and closes the others. True: there were others. */
static bool take_fds(struct msghdr *message, bool keep, struct fdset *fds)
{
    bool closed = false;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        size_t n;

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
            if (!keep || fdset_push(fds, fd)) {
                (void)fd_close(fd);
                closed = true;
            }
        }
    }
    return closed;
}

static int receive_packet(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds, int flags)
{
    union control_in control;
    struct iovec iov = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n;
    bool keep;

    assert(!fdset_count(fds));
    do {
        n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR && flags & MSG_DONTWAIT);
    if (n < 0) {
        switch (errno) {
        case EAGAIN:
        case EINTR:
        /* the kernel has no memory to deliver the packet now; the packet stays there */
        case ENOMEM:
        case ENOBUFS:
            return SOCKIO_E_AGAIN;
        case ECONNRESET:
            return SOCKIO_E_RESET;
        /* kernels before 6.3: a send to the peer met its close() */
        case ENOTCONN:
            return SOCKIO_E_EOF;
        }
        return -errno;
    }

    keep = n > 0 && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    if (take_fds(&message, keep, fds) && keep) {
        fdset_deinit(fds);
        return SOCKIO_E_TOO_MANY_FDS;
    }
    if (n == 0)
        return SOCKIO_E_EOF;
    if (message.msg_flags & MSG_TRUNC)
        return SOCKIO_E_TRUNCATED;
    *length = (size_t)n;
    return message.msg_flags & MSG_CTRUNC ? SOCKIO_E_FDS_LOST : 0;
}

int sockio_recv(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds)
{
    return receive_packet(socket, buffer, size, length, fds, MSG_DONTWAIT);
}

int sockio_peek(int socket, void *buffer, size_t size, size_t *length)
{
    struct iovec iov = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    /* sockio_recv() finds what came after the error, and the same end */
    do {
        n = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0 && (errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS))
        return SOCKIO_E_AGAIN;
    if (n < 0 || !(message.msg_flags & MSG_CTRUNC))
        return 0;
    *length = (size_t)n;
    return SOCKIO_E_FDS_LOST;
}

int sockio_recv_wait(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds)
{
    return receive_packet(socket, buffer, size, length, fds, 0);
}

int sockio_set_wait(int socket, unsigned milliseconds)
{
    const struct timeval most = {.tv_sec = milliseconds / 1000, .tv_usec = (suseconds_t)(milliseconds % 1000) * 1000};
    int flags = fcntl(socket, F_GETFL);

    if (flags < 0 || fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) < 0)
        return -errno;
    return 0;
}

/* Up to this size, copying the pieces together is cheaper than having the kernel do it. */
#define ONE_PIECE_MAX 512

static size_t pieces_length(const struct iovec *iov, unsigned n_iov)
{
    size_t length = 0;

    for (unsigned i = 0; i < n_iov; i++)
        length += iov[i].iov_len;
    return length;
}

/* At most ONE_PIECE_MAX bytes, as one piece. */
static ssize_t send_one_piece(int socket, const struct iovec *iov, unsigned n_iov)
{
    uint8_t bytes[ONE_PIECE_MAX];
    size_t n = 0;

    for (unsigned i = 0; i < n_iov; i++) {
        memcpy(bytes + n, iov[i].iov_base, iov[i].iov_len);
        n += iov[i].iov_len;
    }
    return send(socket, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t send_message(int socket, const struct iovec *iov, unsigned n_iov, const int *fds, unsigned n_fds)
{
    union control_out control;
    struct msghdr message = {
        .msg_iov = (struct iovec *)(uintptr_t)iov, /* the kernel only reads it */
        .msg_iovlen = n_iov,
    };

    if (n_fds) {
        memset(&control, 0, sizeof(control));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int sockio_send(int socket, const struct iovec *iov, unsigned n_iov, const int *fds, unsigned n_fds)
{
    bool small = !n_fds && pieces_length(iov, n_iov) <= ONE_PIECE_MAX;
    ssize_t n;

    assert(n_fds <= MEMORYD_FDS_MAX);
    do {
        n = small ? send_one_piece(socket, iov, n_iov) : send_message(socket, iov, n_iov, fds, n_fds);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        switch (errno) {
        case EAGAIN:
        case ENOMEM:
        case ENOBUFS:
            return SOCKIO_E_AGAIN;
        case EPIPE:
        case ECONNRESET:
        /* kernels before 6.3, when the peer is closing at this moment, and afterwards */
        case ECONNREFUSED:
        case ENOTCONN:
            return SOCKIO_E_GONE;
        case EMSGSIZE:
            return SOCKIO_E_TOO_BIG;
        case ETOOMANYREFS:
            return SOCKIO_E_TOO_MANY_IN_FLIGHT;
        }
        return -errno;
    }
    assert(n > 0);
    return 0;
}

int sockio_unread(int socket, size_t *bytes)
{
    int n;

    if (ioctl(socket, SIOCOUTQ, &n) < 0)
        return -errno;
    *bytes = (size_t)n;
    return 0;
}

bool sockio_refuse_fds(int socket)
{
    const int off = 0;

    return !setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

bool sockio_refuses_fds(int socket)
{
    int on = 1;
    socklen_t size = sizeof(on);

    return !getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &on, &size) && !on;
}

bool sockio_is_spent(int socket)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    const int on = 1;
    ssize_t n;

    /* an empty packet looks like the end, but now comes with credentials, which the end does not */
    if (shutdown(socket, SHUT_RD) < 0 || setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return false;
    do {
        n = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    return n == 0 && !message.msg_controllen && !(message.msg_flags & MSG_CTRUNC);
}

bool sockio_is_socket(int fd)
{
    int saved = errno;
    int type;
    socklen_t size = sizeof(type);
    /* EBADF: it is an O_PATH descriptor. Any other failure means a socket, to which a security module said no. */
    bool found = !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || (errno != ENOTSOCK && errno != EBADF);

    errno = saved;
    return found;
}
