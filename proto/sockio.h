/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree's only recvmsg() and sendmsg(), and its only send().
 *
 * Descriptors that cross a socket are easily lost: they arrive although the packet is refused, they arrive in part when
 * a table is full, and a plain read() destroys them. So there is one function for each direction, and it either
 * succeeds as a whole or leaves nothing open. Neither waits, except sockio_recv_wait(). (sockio_is_spent() and
 * sockio_peek() only peek.)
 *
 * The sockets are SOCK_SEQPACKET: one call, one packet, its descriptors with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "proto/fdset.h"

enum {
    _SOCKIO_E_SUCCESS,
    /* Nothing to receive, or no room to send: try again when poll() says so. If errno is ENOMEM or ENOBUFS, the kernel
     * has no memory for it now: try again soon, since poll() does not tell when. */
    SOCKIO_E_AGAIN,
    /* Receiving: the peer has closed, and there is nothing more. An empty packet looks the same. */
    SOCKIO_E_EOF,
    /* Receiving: the peer closed without having read all we sent. Its own last packets come after this: receive until
     * SOCKIO_E_EOF. */
    SOCKIO_E_RESET,
    /* Receiving: a packet larger than the buffer. It is gone, and its descriptors are closed. */
    SOCKIO_E_TRUNCATED,
    /* Receiving: a packet with more than MEMORYD_FDS_MAX descriptors. They are closed. */
    SOCKIO_E_TOO_MANY_FDS,
    /* Receiving: the kernel could not give us all descriptors (our table is full, or a security module said no). Those
     * that came are closed. The bytes are all there, and show what has been lost. */
    SOCKIO_E_FDS_LOST,
    /* Sending: nobody will ever read it. */
    SOCKIO_E_GONE,
    /* Sending: larger than the socket's buffer. */
    SOCKIO_E_TOO_BIG,
    /* Sending: our user has too many descriptors in flight, to this peer or another. Try again when a peer has read;
     * poll() does not report that. */
    SOCKIO_E_TOO_MANY_IN_FLIGHT,
};

/*
 * Receives one packet into `buffer`, its length (at least 1) into *length and its descriptors into `fds`, which must be
 * empty. Any result but 0 and SOCKIO_E_FDS_LOST leaves `fds` empty, *length untouched and nothing open; the buffer's
 * contents are then undefined. A negative errno is our mistake (EBADF, ENOTSOCK), never the peer's.
 */
int sockio_recv(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds);

/*
 * The same, but it waits for a packet, as long as sockio_set_wait() has set: one system call instead of poll() and
 * another. SOCKIO_E_AGAIN also after a signal.
 */
int sockio_recv_wait(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds);

/* How long sockio_recv_wait() waits on this socket, for all that share it. 0 or a negative errno. */
int sockio_set_wait(int socket, unsigned milliseconds);

/*
 * Sends one packet of n_iov pieces, not empty, with n_fds descriptors (at most MEMORYD_FDS_MAX). These stay the
 * caller's; once it is sent (0), the kernel has its own reference to each. Any other result: nothing was sent.
 */
int sockio_send(int socket, const struct iovec *iov, unsigned n_iov, const int *fds, unsigned n_fds);

/*
 * How much memory the kernel has for what was sent and the peer has not received: as long as it is not 0, there may be
 * descriptors in flight, which count against our user. Takes one system call. 0, or a negative errno.
 */
int sockio_unread(int socket, size_t *bytes);

/* The most that a packet of so many bytes takes of that: its buffers are as large as powers of two, beside what the
 * kernel notes of each. */
static inline size_t sockio_unread_max(size_t size)
{
    return 2 * size + 1280;
}

/*
 * From now on the kernel refuses, with EPERM, to send descriptors to this socket or, if it listens, to those that are
 * made by it. What was queued before stays. False: this kernel cannot (before 6.16).
 */
bool sockio_refuse_fds(int socket);
/* Were descriptors refused from the beginning of the connection? */
bool sockio_refuses_fds(int socket);

/*
 * Will nothing come any more, and is nothing left to receive? Closing the socket also closes the descriptors in packets
 * that nobody has received, and their sender can make that block (fdset.h). Nothing can be received afterwards.
 */
bool sockio_is_spent(int socket);

/*
 * Does the next packet bring descriptors? It stays where it is, and they are not received: not even for a moment, since
 * this process would be the one that closes them last. SOCKIO_E_FDS_LOST: it does, and its first bytes are in the
 * buffer, *length of them. 0: it brings none, or nothing comes any more. SOCKIO_E_AGAIN: there is none, and the next
 * may bring some, so sockio_recv() must not be called.
 */
int sockio_peek(int socket, void *buffer, size_t size, size_t *length);

/* Is it a socket? This asks the socket layer, not the file: a stat() of a file in a peer's own file system would wait
 * for the peer. */
bool sockio_is_socket(int fd);
