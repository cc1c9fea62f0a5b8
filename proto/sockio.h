/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree's only recvmsg() and sendmsg(), and its only send().
 *
 * Descriptors that cross a socket are easily lost: they arrive although the packet is refused, they arrive in part when
 * a table is full, and a plain read() destroys them. So there is one function for each direction, and it either
 * succeeds as a whole or leaves nothing open. Neither waits, except sockio_recv_wait(). (sockio_is_spent() only peeks.)
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
 * empty. Refused descriptors go to the closer of `fds`. Any result but 0 and SOCKIO_E_FDS_LOST leaves `fds` empty,
 * *length untouched and nothing open; the buffer's contents are then undefined. A negative errno is our mistake (EBADF,
 * ENOTSOCK), never the peer's.
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
 * Has the peer received everything that was sent to it? Until then, descriptors in flight count against our user. Takes
 * one system call. 0, or a negative errno.
 */
int sockio_is_drained(int socket, bool *drained);

/*
 * Will nothing come any more, and is nothing left to receive? Closing the socket also closes the descriptors in packets
 * that nobody has received, and their sender can make that block (fdset.h). Nothing can be received afterwards.
 */
bool sockio_is_spent(int socket);

/*
 * Is one of them a socket? A socket sent over a socket can make a cycle that only the kernel's garbage collector frees,
 * and no method takes one. This asks the socket layer, not the file: a stat() of a file in a peer's own file system
 * would wait for the peer.
 */
bool sockio_has_socket(const struct fdset *fds);
bool sockio_is_socket(int fd);
