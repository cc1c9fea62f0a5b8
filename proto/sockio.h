/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree's only recvmsg() and sendmsg(), and its only send().
 *
 * Descriptors that cross a socket are the easiest thing to lose: they arrive
 * although the packet is refused, they arrive in part when a table is full, and a
 * plain read() destroys them. So there is one function each way, and each either
 * succeeds as a whole or leaves nothing open. Neither ever waits unless it is told
 * to; who wants to wait for more than this polls first. (sockio_is_spent() only looks.)
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
    /* Nothing there, or no room: try again when poll() says so. */
    SOCKIO_E_AGAIN,
    /* Receiving: the peer has closed, and there is nothing more. An empty packet looks the same. */
    SOCKIO_E_EOF,
    /* Receiving: the peer closed without having read all we sent. Its own last packets come behind
     * this: receive until SOCKIO_E_EOF. */
    SOCKIO_E_RESET,
    /* Receiving: a packet larger than the buffer. It is gone, its descriptors are closed. */
    SOCKIO_E_TRUNCATED,
    /* Receiving: a packet with more than MEMORYD_FDS_MAX descriptors. They are closed. */
    SOCKIO_E_TOO_MANY_FDS,
    /* Receiving: not all descriptors could be given to us (our table is full, or a security module
     * said no). What came is closed. The bytes are all there: to see what has been lost. */
    SOCKIO_E_FDS_LOST,
    /* Sending: nobody will ever read it. */
    SOCKIO_E_GONE,
    /* Sending: larger than the socket's buffer. */
    SOCKIO_E_TOO_BIG,
    /* Sending: our user has too many descriptors on their way already, to this peer or another. Try
     * again when a peer has read; poll() does not tell. */
    SOCKIO_E_TOO_MANY_IN_FLIGHT,
};

/*
 * Receives one packet into `buffer`, its length (at least 1) into *length and its descriptors into
 * `fds`, which must be empty. What is refused goes to the closer of `fds`. Anything
 * but 0 and SOCKIO_E_FDS_LOST leaves `fds` empty, *length untouched and nothing open; the buffer's contents are then
 * undefined. A negative errno is ours (EBADF, ENOTSOCK), never the peer's doing.
 */
int sockio_recv(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds);

/*
 * The same, but if nothing is there it waits, at most as long as sockio_set_wait() has set: one system call where
 * poll() and another would be two. SOCKIO_E_AGAIN also after a signal.
 */
int sockio_recv_wait(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds);

/* How long sockio_recv_wait() waits on this socket, for all that share it. 0 or a negative errno. */
int sockio_set_wait(int socket, unsigned milliseconds);

/*
 * Sends one packet of n_iov pieces, not empty, with n_fds descriptors (at most MEMORYD_FDS_MAX).
 * These stay the caller's; when it is sent (0), the kernel has its own reference to each. Anything
 * but 0: nothing was sent.
 */
int sockio_send(int socket, const struct iovec *iov, unsigned n_iov, const int *fds,
                unsigned n_fds);

/*
 * Has the peer taken everything that was sent to it? Until then descriptors on their way count
 * against our user. Costs one system call. 0, or a negative errno.
 */
int sockio_is_drained(int socket, bool *drained);

/*
 * Will nothing come any more, and is nothing left to receive? Packets that nobody has received keep their
 * descriptors open, which go when the socket is closed, and that may take as long as their sender wants (see
 * fdset.h). No more can be received afterwards.
 */
bool sockio_is_spent(int socket);

/*
 * Is one of them a socket? A socket sent over a socket can make a cycle that only the kernel's
 * garbage collector gets rid of, and no method wants one. Asks the socket layer, not the file: a
 * stat() of a file in a peer's own file system would wait for the peer.
 */
bool sockio_has_socket(const struct fdset *fds);
bool sockio_is_socket(int fd);
