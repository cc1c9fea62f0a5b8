/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that does nothing, against the bare echo of a packet of the same size between two processes.
 */
#include <memclient/memclient.h>
#include <sys/socket.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

/* a header, see proto/frame.h */
enum { PACKET = 32 };

static void ping(void *context)
{
    (void)context;
    bench_did(memclient_ping(NULL));
}

static void echo(void *context)
{
    struct peer *peer = context;
    char packet[PACKET] = {0};

    bench_must(send(peer->line, packet, PACKET, 0) == PACKET && recv(peer->line, packet, PACKET, 0) == PACKET, "echo");
}

int main(int argc, char **argv)
{
    static const struct bench_row row = {.name = "rpc_null", .unit = BENCH_US, .hold = 1.5};
    struct peer peer;

    bench_begin(argc, argv, &row, 1);
    peer_start(&peer, raw_echo, NULL);
    (void)bench_run(&row, &(struct bench){.ours = {.once = ping},
                                          .other = {.once = echo, .workers = (pid_t[]){peer.pid, 0}},
                                          .context = &peer,
                                          .rounds = 40,
                                          .a_round = 500});
    peer_end(&peer);
    return bench_end();
}
