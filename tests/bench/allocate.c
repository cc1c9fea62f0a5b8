/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From nothing to the first byte written: committed, shareable, mapped; and back to nothing.
 *
 * The floor makes a memory file by itself and pays no round trip, but nobody accounts for it, nobody else may use
 * it safely, and it is gone with its process. The second row is what sharing replaces: sending the bytes.
 */
#include <fcntl.h>
#include <memclient/memclient.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"

struct work {
    size_t size;
    int line;    /* to a process that reads what is sent */
    char *bytes; /* to send */
    struct memclient_buffer *shared;
};

static void
allocate(void *context)
{
    const struct work *work = context;
    struct memclient_buffer *buf;
    void *bytes;

    bench_must(!memclient_alloc(NULL, work->size, NULL, &buf), memclient_error());
    bench_must(!memclient_map(buf, NULL, &bytes), memclient_error());
    *(volatile char *)bytes = 1;
    bench_must(!memclient_unmap(NULL, bytes, 0), memclient_error());
    memclient_buffer_unref(buf);
}

static void
allocate_raw(void *context)
{
    const struct work *work = context;
    int fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    volatile char *bytes;

    bench_must(fd >= 0 && !ftruncate(fd, (off_t)work->size) && !fallocate(fd, 0, 0, (off_t)work->size)
                   && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
               "memfd");
    bytes = mmap(NULL, work->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bench_must(bytes != MAP_FAILED, "mmap");
    *bytes = 1;
    munmap((void *)(uintptr_t)bytes, work->size);
    close(fd);
}

/* What handing over costs, whatever the size: a token made, a token opened. */
static void
hand_over(void *context)
{
    const struct work *work = context;
    struct memclient_token token;
    struct memclient_buffer *buf;

    bench_must(!memclient_share(work->shared, NULL, &token), memclient_error());
    bench_must(!memclient_open_token(NULL, &token, 0, &buf), memclient_error());
    bench_must(!memclient_revoke(NULL, &token), memclient_error());
    memclient_buffer_unref(buf);
}

static void
send_bytes(void *context)
{
    const struct work *work = context;
    char done;

    for (size_t at = 0; at < work->size;) {
        ssize_t n = write(work->line, work->bytes + at, work->size - at);

        bench_must(n > 0, "write");
        at += (size_t)n;
    }
    bench_must(read(work->line, &done, 1) == 1, "read");
}

static void
receive_bytes(int line, size_t size)
{
    char *copy = malloc(size);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_must(!!copy, "malloc");
    for (;;) {
        for (size_t at = 0; at < size;) {
            ssize_t n = read(line, copy + at, size - at);

            if (n <= 0)
                _exit(0);
            at += (size_t)n;
        }
        bench_must(write(line, "d", 1) == 1, "write");
    }
}

int
main(int argc, char **argv)
{
    struct work small = {.size = 64 << 10}, large = {.size = 16 << 20};
    const struct bench benches[] = {
        {.name = "64 KiB made, mapped, freed", .ours = {"memclient_alloc", allocate, NULL},
         .floor = {"memfd, fallocate, seals, mmap", allocate_raw, NULL}, .context = &small, .rounds = 20,
         .a_round = 100, .hold = 0},
        {.name = "16 MiB handed over by token", .ours = {"share, open, revoke", hand_over, NULL},
         .floor = {"the bytes through a socket", send_bytes, NULL}, .context = &large, .rounds = 10, .a_round = 5,
         .hold = 0},
    };
    int pair[2];

    bench_must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
    if (!fork()) {
        close(pair[0]);
        receive_bytes(pair[1], large.size);
    }
    close(pair[1]);
    large.line = pair[0];
    large.bytes = malloc(large.size);
    bench_must(!!large.bytes, "malloc");
    memset(large.bytes, 1, large.size);
    bench_must(!memclient_alloc(NULL, large.size, NULL, &large.shared), memclient_error());
    return bench_main(argc, argv, benches, sizeof(benches) / sizeof(benches[0]));
}
