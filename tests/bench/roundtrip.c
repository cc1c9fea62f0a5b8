/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that does nothing, against the bare echo of a packet of the same size between two processes; and a descriptor
 * that is shown to the broker, through the door, against one that another process looks at.
 */
#include <fcntl.h>
#include <memclient/memclient.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

/* a header, see proto/frame.h */
enum { PACKET = 32, DESCRIBED = 65536 };

static void ping(void *context)
{
    (void)context;
    bench_did(memclient_broker_ping(NULL));
}

static void echo(void *context)
{
    struct peer *peer = context;
    char packet[PACKET] = {0};

    bench_must(send(peer->line, packet, PACKET, 0) == PACKET && recv(peer->line, packet, PACKET, 0) == PACKET, "echo");
}

/* ---- a descriptor ------------------------------------------------------------------------------------------------ */

struct shown {
    struct peer peer;
    int buffer; /* a descriptor of ours */
    int memory; /* of memory that is nobody's yet */
    struct memclient_buffer *got;
};

/* Looks at each that comes, as who takes one must. */
static void look_at_descriptors(int line, void *context)
{
    int fd;

    (void)context;
    for (;;) {
        struct stat st;

        raw_receive_fds(line, &fd, 1);
        bench_must(fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &st) == 0 && close(fd) == 0, "looking at a descriptor");
        line_tell(line);
    }
}

static void import(void *context)
{
    struct shown *shown = context;

    bench_did(memclient_import_fd(NULL, shown->buffer, &shown->got));
}

static void adopt(void *context)
{
    struct shown *shown = context;

    bench_did(memclient_adopt_fd(NULL, shown->memory, &shown->got));
}

static void give_back(void *context)
{
    struct shown *shown = context;

    memclient_buffer_unref(shown->got);
}

static void show(void *context)
{
    struct shown *shown = context;

    raw_send_fds(shown->peer.line, &shown->memory, 1);
    bench_must(line_hear(shown->peer.line), "hearing of a descriptor");
}

static void measure_descriptors(const struct bench_row *row_import, const struct bench_row *row_adopt)
{
    struct memclient_buffer *buffer;
    struct shown shown;
    struct bench bench = {.ours = {.once = import, .after = give_back},
                          .other = {.once = show, .workers = (pid_t[]){0, 0}},
                          .context = &shown,
                          .rounds = 40,
                          .a_round = 200};

    bench_did(memclient_alloc(NULL, DESCRIBED, NULL, &buffer));
    bench_did(memclient_export_fd(buffer, MEMCLIENT_READ | MEMCLIENT_WRITE, &shown.buffer));
    shown.memory = raw_memfd(DESCRIBED, 0);
    peer_start(&shown.peer, look_at_descriptors, NULL);
    bench.other.workers = (pid_t[]){shown.peer.pid, 0};
    (void)bench_run(row_import, &bench);
    bench.ours.once = adopt;
    (void)bench_run(row_adopt, &bench);
    peer_kill(&shown.peer);
    (void)close(shown.memory);
    (void)close(shown.buffer);
    memclient_buffer_unref(buffer);
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[] = {
        {.name = "rpc_null", .unit = BENCH_US, .hold = 1.5},
        {.name = "import_fd", .unit = BENCH_US},
        {.name = "adopt_fd", .unit = BENCH_US},
    };
    struct peer peer;

    bench_begin(argc, argv, rows, 3);
    peer_start(&peer, raw_echo, NULL);
    (void)bench_run(&rows[0], &(struct bench){.ours = {.once = ping},
                                              .other = {.once = echo, .workers = (pid_t[]){peer.pid, 0}},
                                              .context = &peer,
                                              .rounds = 40,
                                              .a_round = 500});
    peer_end(&peer);
    if (bench_wanted(&rows[1]) || bench_wanted(&rows[2]))
        measure_descriptors(&rows[1], &rows[2]);
    return bench_end();
}
