/* SPDX-License-Identifier: Apache-2.0 */
/* See raw.h. */
#include "tests/bench/raw.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

/* What the kernel takes in one message. */
enum { FDS_A_MESSAGE = 253, ECHO_MAX = 4096 };

/* ---- processes --------------------------------------------------------------------------------------------------- */

void peer_start(struct peer *peer, void (*body)(int line, void *context), void *context)
{
    int pair[2];

    bench_must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
    peer->pid = fork();
    bench_must(peer->pid >= 0, "fork");
    if (!peer->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        body(pair[1], context);
        _exit(0);
    }
    close(pair[1]);
    peer->line = pair[0];
}

void peer_end(struct peer *peer)
{
    int status;

    /* processes that were begun later have this end of it, too */
    shutdown(peer->line, SHUT_RDWR);
    close(peer->line);
    bench_must(waitpid(peer->pid, &status, 0) == peer->pid && !status, "another process of this benchmark");
}

void peer_kill(struct peer *peer)
{
    bench_must(!kill(peer->pid, SIGKILL) && waitpid(peer->pid, NULL, 0) == peer->pid, "kill");
    close(peer->line);
}

int line_hear(int line)
{
    char byte;

    return recv(line, &byte, 1, 0) == 1;
}

void line_tell(int line)
{
    bench_must(send(line, "", 1, MSG_NOSIGNAL) == 1, "telling another process");
}

bool raw_can_preload(const char *library)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                          "/usr/lib", "/usr/local/lib"};
    char path[256];

    for (size_t i = 0; library && i < sizeof(folders) / sizeof(*folders); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folders[i], library);
        if (!access(path, R_OK))
            return true;
    }
    return !library;
}

void raw_echo(int line, void *context)
{
    char packet[ECHO_MAX];
    ssize_t n;

    (void)context;
    while ((n = recv(line, packet, sizeof(packet), 0)) > 0)
        bench_must(send(line, packet, (size_t)n, 0) == n, "echo");
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

int raw_memfd(size_t size, unsigned flags)
{
    int fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    bench_must(fd >= 0 && !ftruncate(fd, (off_t)size) && !fallocate(fd, 0, 0, (off_t)size) &&
                   !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
               "a memory file");
    return fd;
}

char *raw_map(int fd, size_t size)
{
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    bench_must(bytes != MAP_FAILED, "mmap");
    return bytes;
}

void raw_touch(char *bytes, size_t size, size_t page)
{
    for (size_t i = 0; i < size; i += page)
        ((volatile char *)bytes)[i] = 1;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(FDS_A_MESSAGE * sizeof(int))];
};

void raw_send_fds(int line, const int *fds, size_t n)
{
    union control control;
    char byte = 0;
    struct msghdr message = {.msg_iov = &(struct iovec){.iov_base = &byte, .iov_len = 1}, .msg_iovlen = 1};

    for (size_t done = 0, part; done < n; done += part) {
        part = n - done < FDS_A_MESSAGE ? n - done : FDS_A_MESSAGE;
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(part * sizeof(int));
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(part * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds + done, part * sizeof(int));
        bench_must(sendmsg(line, &message, 0) == 1, "sendmsg");
    }
}

void raw_receive_fds(int line, int *fds, size_t n)
{
    union control control;
    char byte;

    for (size_t done = 0, part; done < n; done += part) {
        struct msghdr message = {.msg_iov = &(struct iovec){.iov_base = &byte, .iov_len = 1},
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control)};

        bench_must(recvmsg(line, &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen, "recvmsg");
        part = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
        bench_must(part <= n - done, "as many descriptors as were sent");
        memcpy(fds + done, CMSG_DATA(&control.header), part * sizeof(int));
    }
}
