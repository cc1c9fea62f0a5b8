/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. */
#include "tests/bench/stream.h"

#include <memclient/memclient.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/bench/bench.h"

enum { REPLY_MAX = 512, EVENTS = 16 };

static void send_request(int line, uint16_t method, uint64_t sequence, const void *payload, size_t size)
{
    uint8_t packet[MEMORYD_HEADER_LONG + REPLY_MAX];
    const struct frame_header header = {
        .method = method, .payload_length = (uint32_t)size, .sequence = sequence, .acknowledged = sequence - 1};
    size_t length = frame_encode(packet, FRAME_FROM_CLIENT, &header);

    if (size)
        memcpy(packet + length, payload, size);
    length += size;
    bench_must(send(line, packet, length, MSG_NOSIGNAL) == (ssize_t)length, "sending a request");
}

static void receive_reply(int line)
{
    uint8_t packet[REPLY_MAX];

    bench_must(recv(line, packet, sizeof(packet), 0) >= MEMORYD_HEADER_SIZE, "receiving a reply");
}

void stream_run(int line, unsigned depth, unsigned n)
{
    static uint64_t sequence = 1; /* that of HELLO */

    for (unsigned sent = 0, received = 0; received < n;) {
        if (sent < n && sent - received < depth) {
            send_request(line, METHOD_PING, ++sequence, NULL, 0);
            sent++;
        } else {
            receive_reply(line);
            received++;
        }
    }
}

int stream_connect(void)
{
    Memoryd__V1__HelloRequest hello = MEMORYD__V1__HELLO_REQUEST__INIT;
    struct memclient_context_info info = MEMCLIENT_CONTEXT_INFO_INIT;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint8_t payload[REPLY_MAX], reply[REPLY_MAX];
    struct frame_header header;
    const uint8_t *bytes;
    struct memclient_context *ctx;
    size_t size;
    ssize_t n;
    int line;

    bench_did(memclient_context_open(NULL, &ctx));
    bench_did(memclient_context_query(ctx, &info));
    memclient_context_close(ctx);
    memcpy(address.sun_path, info.socket, sizeof(address.sun_path));
    line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bench_must(line >= 0 && !connect(line, (struct sockaddr *)&address, sizeof(address)), "connecting");
    hello.version_max = MEMORYD_MINOR_MAX;
    bench_must(!envelope_pack(&hello.base, payload, sizeof(payload), &size), "HELLO");
    send_request(line, METHOD_HELLO, 1, payload, size);
    n = recv(line, reply, sizeof(reply), 0);
    bench_must(n > 0 && !frame_decode(reply, (size_t)n, 0, FRAME_FROM_BROKER, &header, &bytes) && !header.status,
               "HELLO");
    return line;
}

/* ---- the echo ---------------------------------------------------------------------------------------------------- */

static _Noreturn void echo(const int *lines, size_t n)
{
    struct epoll_event events[EVENTS];
    char packet[REPLY_MAX];
    int loop = epoll_create1(EPOLL_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = lines[i]};

        bench_must(!epoll_ctl(loop, EPOLL_CTL_ADD, lines[i], &event), "epoll_ctl");
    }
    for (;;) {
        int ready = epoll_wait(loop, events, EVENTS, -1);

        bench_must(ready > 0, "epoll_wait");
        for (int i = 0; i < ready; i++) {
            ssize_t size = recv(events[i].data.fd, packet, sizeof(packet), 0);

            if (size <= 0)
                _exit(0);
            bench_must(send(events[i].data.fd, packet, (size_t)size, 0) == size, "echo");
        }
    }
}

pid_t stream_start_echo(int *lines, size_t n)
{
    int ends[EVENTS], pair[2];
    pid_t pid;

    bench_must(n <= EVENTS, "so many lines");
    for (size_t i = 0; i < n; i++) {
        bench_must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
        lines[i] = pair[0];
        ends[i] = pair[1];
    }
    pid = fork();
    bench_must(pid >= 0, "fork");
    if (!pid) {
        for (size_t i = 0; i < n; i++)
            close(lines[i]);
        echo(ends, n);
    }
    for (size_t i = 0; i < n; i++)
        close(ends[i]);
    return pid;
}
