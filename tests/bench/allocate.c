/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From nothing to memory that another process was told of and that is written: allocated, committed, shareable, mapped.
 *
 * Each side tells the other process in its own way, a token's bytes or a descriptor, and does not wait for it. Who
 * makes a memory file by himself pays no round trip, but for clean pages; nobody accounts for it, and it is gone with
 * its processes. Between two there is a pause, as there is between the frames of a pipeline, in which the broker makes
 * memory ahead; `again` allows it none.
 */
#include <memclient/memclient.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define SIZE     ((size_t)64 << 10)
#define PAGE     ((size_t)4096)
#define PAUSE_US 4000
#define BATCH    ((size_t)MEMCLIENT_BATCH_MAX)

enum { MAP, AGAIN, BATCHED, ROWS };

static const struct bench_row rows[ROWS] = {
    /* 25 us where the other side takes 39 */
    [MAP] = {.name = "alloc_64k_map", .unit = BENCH_US, .hold = 0.64},
    [AGAIN] = {.name = "alloc_64k_again", .unit = BENCH_US, .hold = 1},
    [BATCHED] = {.name = "alloc_batched_buffers", .unit = BENCH_US, .operations = MEMCLIENT_BATCH_MAX},
};

struct work {
    struct peer peer; /* is told, and says so */
    struct memclient_buffer *bufs[MEMCLIENT_BATCH_MAX];
    int fds[MEMCLIENT_BATCH_MAX];
    void *bytes;
    unsigned pause_us;
};

/* Whatever is told, a token or a descriptor, it is dropped again. */
static void listen_to_all(int line, void *context)
{
    (void)context;
    for (;;) {
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct memclient_token token;
        struct msghdr message = {.msg_iov = &(struct iovec){.iov_base = &token, .iov_len = sizeof(token)},
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control)};

        if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) <= 0)
            return;
        if (message.msg_controllen)
            close(*(const int *)(const void *)CMSG_DATA(&control.header));
        line_tell(line);
    }
}

static void calm(struct work *work)
{
    if (work->pause_us)
        usleep(work->pause_us);
}

static void make(void *context)
{
    struct work *work = context;
    struct memclient_token token;

    bench_did(memclient_alloc(NULL, SIZE, NULL, work->bufs));
    bench_did(memclient_share(work->bufs[0], NULL, &token));
    bench_must(send(work->peer.line, &token, sizeof(token), 0) == sizeof(token), "send");
    bench_did(memclient_map(work->bufs[0], NULL, &work->bytes));
    raw_touch(work->bytes, SIZE, PAGE);
}

static void unmake(void *context)
{
    struct work *work = context;

    bench_must(line_hear(work->peer.line), "hearing");
    bench_did(memclient_unmap(NULL, work->bytes, 0));
    memclient_buffer_unref(work->bufs[0]);
    calm(work);
}

static void make_raw(void *context)
{
    struct work *work = context;

    work->fds[0] = raw_memfd(SIZE, 0);
    raw_send_fds(work->peer.line, work->fds, 1);
    work->bytes = raw_map(work->fds[0], SIZE);
    raw_touch(work->bytes, SIZE, PAGE);
}

static void unmake_raw(void *context)
{
    struct work *work = context;

    bench_must(line_hear(work->peer.line), "hearing");
    munmap(work->bytes, SIZE);
    close(work->fds[0]);
    calm(work);
}

static void make_many(void *context)
{
    struct work *work = context;
    uint64_t sizes[BATCH];

    for (size_t i = 0; i < BATCH; i++)
        sizes[i] = SIZE;
    bench_did(memclient_alloc_many(NULL, BATCH, sizes, NULL, work->bufs));
}

static void unmake_many(void *context)
{
    struct work *work = context;

    for (size_t i = 0; i < BATCH; i++)
        memclient_buffer_unref(work->bufs[i]);
    calm(work);
}

static void make_many_raw(void *context)
{
    struct work *work = context;

    for (size_t i = 0; i < BATCH; i++)
        work->fds[i] = raw_memfd(SIZE, 0);
}

static void unmake_many_raw(void *context)
{
    struct work *work = context;

    for (size_t i = 0; i < BATCH; i++)
        close(work->fds[i]);
    calm(work);
}

int main(int argc, char **argv)
{
    struct work work = {.pause_us = PAUSE_US};
    struct bench one = {
        .ours = {.once = make, .after = unmake},
        .other = {.once = make_raw, .after = unmake_raw},
        .context = &work,
        .rounds = 20,
        .a_round = 20,
    };
    const struct bench many = {
        .ours = {.once = make_many, .after = unmake_many},
        .other = {.once = make_many_raw, .after = unmake_many_raw},
        .context = &work,
        .rounds = 10,
        .a_round = 10,
    };

    bench_begin(argc, argv, rows, ROWS);
    peer_start(&work.peer, listen_to_all, NULL);
    (void)bench_run(&rows[MAP], &one);
    (void)bench_run(&rows[BATCHED], &many);
    work.pause_us = 0;
    one.a_round = 100;
    (void)bench_run(&rows[AGAIN], &one);
    peer_end(&work.peer);
    return bench_end();
}
