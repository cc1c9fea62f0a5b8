/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fd.h"

#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned fd_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert(dir != NULL);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 3; /* ".", "..", and the directory itself */
}

unsigned long fd_raise_limit(void)
{
    struct rlimit limit;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    return limit.rlim_cur;
}

int fd_reopen(int fd, int flags)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

ssize_t fd_send(int socket, const void *bytes, size_t size, const int *fds, unsigned n, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    assert(n <= FD_PASS_MAX);
    if (n > 0) {
        struct cmsghdr *header;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(header), fds, n * sizeof(int));
    }
    return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ssize_t fd_send_one(int socket, int fd)
{
    return fd_send(socket, "", 1, &fd, 1, 0);
}

struct fd_received fd_receive(int socket, void *bytes, size_t size, unsigned room, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = room > 0 ? CMSG_LEN(room * sizeof(int)) : 0,
    };
    struct fd_received received = {.n = 0};

    assert(room <= FD_PASS_MAX);
    received.size = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    if (received.size < 0)
        return received;
    received.flags = message.msg_flags;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h != NULL; h = CMSG_NXTHDR(&message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        received.n = (unsigned)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(received.fds, CMSG_DATA(h), received.n * sizeof(int));
    }
    return received;
}

void fd_received_close(struct fd_received *received)
{
    int error = errno;

    for (unsigned i = 0; i < received->n; i++)
        close(received->fds[i]);
    received->n = 0;
    errno = error;
}

int fd_receive_one(int socket)
{
    struct fd_received received;
    char byte;

    if (!wait_readable(socket))
        return -1;
    received = fd_receive(socket, &byte, 1, 1, 0);
    if (received.size == 1 && received.n == 1)
        return received.fds[0];
    fd_received_close(&received);
    return -1;
}

/* Longer than any test runs. */
#define LINGER_SECONDS 3600

int fd_that_lingers(int *reader)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct linger linger = {.l_onoff = 1, .l_linger = LINGER_SECONDS};
    socklen_t size = sizeof(address);
    FD_AUTO int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static char bytes[65536];
    int fd;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
        test_skip("no TCP over the loopback device: %s", strerror(errno));
    assert_ok(listen(listener, 1));
    assert_ok(getsockname(listener, (struct sockaddr *)&address, &size));
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_ok(fd);
    if (connect(fd, (struct sockaddr *)&address, size) < 0)
        test_skip("no TCP over the loopback device: %s", strerror(errno));
    *reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_ok(*reader);
    /* until neither end takes any more for a moment: what is on its way would make room again */
    do {
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        }
    } while (wait_for_events(fd, POLLOUT, QUIET_MS) & POLLOUT);
    assert_ok(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
    return fd;
}
