/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that does nothing, against the bare echo of a packet of the same size between two processes.
 */
#include <memclient/memclient.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { PACKET = 32 };

static void
ping(void *context)
{
    (void)context;
    bench_must(!memclient_ping(NULL), memclient_error());
}

static void
echo(void *context)
{
    char packet[PACKET] = {0};
    int line = *(int *)context;

    bench_must(send(line, packet, sizeof(packet), 0) == PACKET && recv(line, packet, sizeof(packet), 0) == PACKET,
               "echo");
}

int
main(int argc, char **argv)
{
    int pair[2];
    const struct bench benches[] = {
        {.name = "null call", .ours = {"memclient_ping", ping, NULL}, .floor = {"raw SEQPACKET echo", echo, NULL},
         .context = &pair[0], .rounds = 40, .a_round = 500, .hold = 1.5},
    };

    bench_must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
    if (!fork()) {
        char packet[PACKET];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        while (recv(pair[1], packet, sizeof(packet), 0) == PACKET)
            bench_must(send(pair[1], packet, sizeof(packet), 0) == PACKET, "echo");
        _exit(0);
    }
    close(pair[1]);
    return bench_main(argc, argv, benches, 1);
}
