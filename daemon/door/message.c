/* SPDX-License-Identifier: Apache-2.0 */
/* See message.h. */
#include "door/message.h"

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "proto/fdset.h"
#include "proto/sockio.h"

/* How often to try again while the kernel lets no more descriptors be in flight. */
#define RETRY_MS 1

int door_message_send(int link, const struct door_message *message, int fd)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message)};
    struct pollfd room = {.fd = link, .events = POLLOUT};
    int r;

    while ((r = sockio_send(link, &iov, 1, &fd, fd >= 0)) == SOCKIO_E_AGAIN || r == SOCKIO_E_TOO_MANY_IN_FLIGHT)
        (void)poll(&room, r == SOCKIO_E_AGAIN, r == SOCKIO_E_AGAIN ? -1 : RETRY_MS);
    return r;
}

int door_message_receive(int link, struct door_message *ret, int *ret_fd)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    size_t size;
    int r = sockio_recv(link, ret, sizeof(*ret), &size, &fds);

    if (r)
        return r;
    if (size != sizeof(*ret))
        return -EPROTO;
    *ret_fd = fdset_steal(&fds, 0);
    return 0;
}
