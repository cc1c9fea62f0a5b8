/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to hand memory from one process to another, side by side: made, written, told to the other process, there
 * mapped or copied, each page written there, and heard back. What cannot be shared (malloc(), jemalloc, TBB's malloc,
 * mmap()) is copied by the receiver with the one copy that it takes, process_vm_readv().
 *
 * One process has one malloc(). So each way is a child, this program again with that one preloaded, and a child of it
 * that receives; the ways take turns with memoryd's.
 *
 * Of memoryd there are two: a buffer each time, which is nobody else's memory, and, for those who hand over chunk after
 * chunk to the same process, chunks of a pool, whose slabs both have mapped.
 */
#include <fcntl.h>
#include <memclient/memclient.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/iceoryx.h"
#include "tests/bench/raw.h"

#define PAGE      ((size_t)4096)
#define SMALL_MAX ((size_t)1 << 20)

/* What the receiver is told, and what either side has of it. */
struct parcel {
    size_t size;
    char *bytes;
    pid_t from;
    struct memclient_buffer *buf;
    int fd;
    union {
        struct memclient_token token;
        char name[32];
        _Alignas(max_align_t) char handle[256];
    };
};

struct way {
    const char *name, *preload;
    void (*make)(struct parcel *parcel);
    void (*take)(int line, struct parcel *parcel); /* after what was told has been received */
    void (*drop)(struct parcel *parcel);
    bool passes_fd;
    bool (*is_here)(void);                  /* on this machine; NULL: always */
    void (*begin)(bool maker);              /* in either process; NULL: nothing is to be done */
    void (*publish)(struct parcel *parcel); /* when it is written, likewise */
    bool read_only;                         /* there */
    size_t size_max;                        /* 0: any */
};

/* ---- memoryd ----------------------------------------------------------------------------------------------------- */

static void map_ours(struct parcel *parcel)
{
    void *bytes;

    bench_did(memclient_map(parcel->buf, NULL, &bytes));
    parcel->bytes = bytes;
}

static void make_ours(struct parcel *parcel)
{
    bench_did(memclient_alloc(NULL, parcel->size, NULL, &parcel->buf));
    bench_did(memclient_share(parcel->buf, NULL, &parcel->token));
    map_ours(parcel);
}

static void take_ours(int line, struct parcel *parcel)
{
    (void)line;
    bench_did(memclient_open_token(NULL, &parcel->token, 0, &parcel->buf));
    map_ours(parcel);
}

static void drop_ours(struct parcel *parcel)
{
    bench_did(memclient_unmap(NULL, parcel->bytes, 0));
    memclient_buffer_unref(parcel->buf);
}

/* ---- a pool over it ---------------------------------------------------------------------------------------------- */

static umf_memory_pool_handle_t pool; /* of either process */

static void begin_pool(bool maker)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t provider;
    size_t size;

    (void)maker;
    params.SlabMinSize = (size_t)2 << 20;
    params.MaxPoolableSize = SMALL_MAX;
    params.Capacity = 4;
    bench_must(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider), "umfMemoryProviderCreate");
    bench_must(!umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
               "umfPoolCreate");
    bench_must(!umfPoolGetIPCHandleSize(pool, &size) && size <= sizeof(((struct parcel *)0)->handle),
               "umfPoolGetIPCHandleSize");
}

static void make_pooled(struct parcel *parcel)
{
    parcel->bytes = umfPoolMalloc(pool, parcel->size);
    bench_must(!!parcel->bytes, "umfPoolMalloc");
}

static void publish_pooled(struct parcel *parcel)
{
    umf_ipc_handle_t handle;
    size_t size;

    bench_must(!umfGetIPCHandle(parcel->bytes, &handle, &size), "umfGetIPCHandle");
    memcpy(parcel->handle, handle, size);
    (void)umfPutIPCHandle(handle);
}

/* The last one stays open until the next has come, and with it the slab that it is in. */
static void take_pooled(int line, struct parcel *parcel)
{
    static void *last;
    void *bytes;

    (void)line;
    bench_must(!umfOpenIPCHandle(pool, (umf_ipc_handle_t)(void *)parcel->handle, &bytes), "umfOpenIPCHandle");
    if (last)
        (void)umfCloseIPCHandle(last);
    last = parcel->bytes = bytes;
}

/* The maker's. */
static void drop_pooled(struct parcel *parcel)
{
    if (parcel->from == getpid())
        (void)umfPoolFree(pool, parcel->bytes);
}

/* ---- the kernel's shared memory ---------------------------------------------------------------------------------- */

static void make_memfd(struct parcel *parcel)
{
    parcel->fd = raw_memfd(parcel->size, 0);
    parcel->bytes = raw_map(parcel->fd, parcel->size);
}

static void take_memfd(int line, struct parcel *parcel)
{
    raw_receive_fds(line, &parcel->fd, 1);
    parcel->bytes = raw_map(parcel->fd, parcel->size);
}

static void drop_shared(struct parcel *parcel)
{
    munmap(parcel->bytes, parcel->size);
    close(parcel->fd);
}

static void make_shm(struct parcel *parcel)
{
    (void)snprintf(parcel->name, sizeof(parcel->name), "/memoryd-bench-%d", getpid());
    parcel->fd = shm_open(parcel->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    bench_must(parcel->fd >= 0 && !ftruncate(parcel->fd, (off_t)parcel->size), "shm_open");
    parcel->bytes = raw_map(parcel->fd, parcel->size);
}

static void take_shm(int line, struct parcel *parcel)
{
    (void)line;
    parcel->fd = shm_open(parcel->name, O_RDWR, 0);
    bench_must(parcel->fd >= 0, "shm_open");
    shm_unlink(parcel->name);
    parcel->bytes = raw_map(parcel->fd, parcel->size);
}

/* ---- memory of one process --------------------------------------------------------------------------------------- */

static void copy(struct parcel *parcel, const char *theirs)
{
    struct iovec to = {.iov_base = parcel->bytes, .iov_len = parcel->size};
    struct iovec from = {.iov_base = (void *)(uintptr_t)theirs, .iov_len = parcel->size};

    bench_must(process_vm_readv(parcel->from, &to, 1, &from, 1, 0) == (ssize_t)parcel->size, "process_vm_readv");
}

static void make_malloc(struct parcel *parcel)
{
    parcel->bytes = malloc(parcel->size);
    bench_must(!!parcel->bytes, "malloc");
}

static void take_malloc(int line, struct parcel *parcel)
{
    const char *theirs = parcel->bytes;

    (void)line;
    make_malloc(parcel);
    copy(parcel, theirs);
}

static void drop_malloc(struct parcel *parcel)
{
    free(parcel->bytes);
}

static void make_mapping(struct parcel *parcel, int advice)
{
    parcel->bytes = mmap(NULL, parcel->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench_must(parcel->bytes != MAP_FAILED, "mmap");
    /* where the kernel has none, both are of small pages */
    (void)madvise(parcel->bytes, parcel->size, advice);
}

static void make_small(struct parcel *parcel)
{
    make_mapping(parcel, MADV_NOHUGEPAGE);
}

static void make_thp(struct parcel *parcel)
{
    make_mapping(parcel, MADV_HUGEPAGE);
}

static void take_small(int line, struct parcel *parcel)
{
    const char *theirs = parcel->bytes;

    (void)line;
    make_small(parcel);
    copy(parcel, theirs);
}

static void take_thp(int line, struct parcel *parcel)
{
    const char *theirs = parcel->bytes;

    (void)line;
    make_thp(parcel);
    copy(parcel, theirs);
}

static void drop_mapping(struct parcel *parcel)
{
    munmap(parcel->bytes, parcel->size);
}

/* ---- iceoryx ----------------------------------------------------------------------------------------------------- */

static void make_chunk(struct parcel *parcel)
{
    parcel->bytes = iceoryx_loan(parcel->size);
}

static void publish_chunk(struct parcel *parcel)
{
    iceoryx_publish(parcel->bytes);
    parcel->bytes = NULL;
}

static void take_chunk(int line, struct parcel *parcel)
{
    (void)line;
    parcel->bytes = (char *)(uintptr_t)iceoryx_take();
}

/* The maker has it no more. */
static void drop_chunk(struct parcel *parcel)
{
    if (parcel->bytes)
        iceoryx_release(parcel->bytes);
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

static const struct way buffers = {.name = "memoryd", .make = make_ours, .take = take_ours, .drop = drop_ours};
static const struct way chunks = {.name = "memoryd_pool",
                                  .make = make_pooled,
                                  .take = take_pooled,
                                  .drop = drop_pooled,
                                  .begin = begin_pool,
                                  .publish = publish_pooled};

static const struct way rivals[] = {
    {.name = "memfd", .make = make_memfd, .take = take_memfd, .drop = drop_shared, .passes_fd = true},
    {.name = "shm", .make = make_shm, .take = take_shm, .drop = drop_shared},
    {.name = "iceoryx",
     .make = make_chunk,
     .take = take_chunk,
     .drop = drop_chunk,
     .is_here = iceoryx_is_here,
     .begin = iceoryx_begin,
     .publish = publish_chunk,
     .read_only = true,
     .size_max = SMALL_MAX},
    {.name = "mmap", .make = make_small, .take = take_small, .drop = drop_mapping},
    {.name = "mmap_thp", .make = make_thp, .take = take_thp, .drop = drop_mapping},
    {.name = "malloc", .make = make_malloc, .take = take_malloc, .drop = drop_malloc},
    {.name = "jemalloc", .preload = "libjemalloc.so.2", .make = make_malloc, .take = take_malloc, .drop = drop_malloc},
    {.name = "tbb",
     .preload = "libtbbmalloc_proxy.so.2",
     .make = make_malloc,
     .take = take_malloc,
     .drop = drop_malloc},
};

static const struct {
    const char *name;
    const struct way *way;
    size_t size;
} ours[] = {
    {"hand_over_64k", &buffers, (size_t)64 << 10},
    {"hand_over_16m", &buffers, (size_t)16 << 20},
    {"loan_64k", &chunks, (size_t)64 << 10},
};

enum { RIVALS = sizeof(rivals) / sizeof(*rivals), OURS = sizeof(ours) / sizeof(*ours) };

static const struct way *way_of_name(const char *name)
{
    for (size_t i = 0; i < OURS; i++)
        if (!strcmp(ours[i].way->name, name))
            return ours[i].way;
    for (size_t i = 0; i < RIVALS; i++)
        if (!strcmp(rivals[i].name, name))
            return &rivals[i];
    bench_must(false, name);
    return NULL;
}

static void read_pages(const struct parcel *parcel)
{
    for (size_t i = 0; i < parcel->size; i += PAGE)
        (void)((const volatile char *)parcel->bytes)[i];
}

static void receive(int line, void *context)
{
    const struct way *way = context;
    struct parcel parcel;

    if (way->begin)
        way->begin(false);
    while (recv(line, &parcel, sizeof(parcel), 0) == sizeof(parcel)) {
        way->take(line, &parcel);
        if (way->read_only)
            read_pages(&parcel);
        else
            raw_touch(parcel.bytes, parcel.size, PAGE);
        line_tell(line);
        way->drop(&parcel);
        line_tell(line);
    }
    exit(0);
}

static double hand_over(const struct way *way, int line, size_t size)
{
    struct parcel parcel = {.size = size, .from = getpid()};
    double took = bench_now_us();

    way->make(&parcel);
    memset(parcel.bytes, 1, size);
    if (way->publish)
        way->publish(&parcel);
    bench_must(send(line, &parcel, sizeof(parcel), 0) == sizeof(parcel), "send");
    if (way->passes_fd)
        raw_send_fds(line, &parcel.fd, 1);
    bench_must(line_hear(line), "hearing");
    took = bench_now_us() - took;
    bench_must(line_hear(line), "hearing");
    way->drop(&parcel);
    return took;
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

/* What it says to an order: how many us it took, and who is the receiver. */
struct answer {
    double us;
    pid_t receiver;
};

/* What the child runs: hands over, as much as it is told to, until its line ends. */
static int serve(const char *name)
{
    const struct way *way = way_of_name(name);
    struct answer answer;
    struct peer receiver;
    size_t size;

    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    peer_start(&receiver, receive, (void *)(uintptr_t)way);
    if (way->begin)
        way->begin(true);
    while (recv(STDIN_FILENO, &size, sizeof(size), 0) == sizeof(size)) {
        answer = (struct answer){.us = hand_over(way, receiver.line, size), .receiver = receiver.pid};
        bench_must(send(STDIN_FILENO, &answer, sizeof(answer), 0) == sizeof(answer), "answering");
    }
    peer_end(&receiver);
    return 0;
}

static void become_server(int line, void *context)
{
    const struct way *way = context;

    bench_must(dup2(line, STDIN_FILENO) == STDIN_FILENO, "dup2");
    if (way->preload)
        (void)setenv("LD_PRELOAD", way->preload, 1);
    execl("/proc/self/exe", "rivals", "--serve", way->name, (char *)NULL);
    _exit(1);
}

struct contender {
    struct peer server;
    pid_t workers[5]; /* server and receiver, and with memoryd's the broker and its keeper */
};

struct contest {
    struct contender ours, other;
    size_t size;
};

static void start_contender(struct contender *contender, const struct way *way)
{
    *contender = (struct contender){0};
    peer_start(&contender->server, become_server, (void *)(uintptr_t)way);
    contender->workers[0] = contender->server.pid;
}

/* How many us it took; negative: it is not there any more. */
static double tell(struct contender *contender, size_t size)
{
    int line = contender->server.line;
    struct answer answer;

    if (send(line, &size, sizeof(size), MSG_NOSIGNAL) != sizeof(size) ||
        recv(line, &answer, sizeof(answer), 0) != sizeof(answer))
        return -1;
    contender->workers[1] = answer.receiver;
    return answer.us;
}

static double time_ours(void *context)
{
    struct contest *contest = context;
    double us = tell(&contest->ours, contest->size);

    bench_must(us >= 0, "handing over");
    return us;
}

static double time_other(void *context)
{
    struct contest *contest = context;
    double us = tell(&contest->other, contest->size);

    bench_must(us >= 0, "a rival");
    return us;
}

static void measure(struct contest *contest, const struct bench_row *row, const struct way *way, size_t size)
{
    if (!bench_wanted(row))
        return;
    if (way->size_max && size > way->size_max) {
        bench_skip(row, "it hands out no such size as it is set up by default");
        return;
    }
    if (!raw_can_preload(way->preload) || (way->is_here && !way->is_here())) {
        bench_skip(row, "it is not on this machine");
        return;
    }
    contest->size = size;
    start_contender(&contest->other, way);
    if (tell(&contest->other, size) < 0) {
        bench_skip(row, "it does not work on this machine");
        peer_kill(&contest->other.server);
        return;
    }
    (void)bench_run(row, &(struct bench){.ours = {.timed = time_ours, .workers = contest->ours.workers},
                                         .other = {.timed = time_other, .workers = contest->other.workers},
                                         .context = contest,
                                         .rounds = 8,
                                         .a_round = size > SMALL_MAX ? 4 : 25});
    peer_end(&contest->other.server);
}

int main(int argc, char **argv)
{
    static struct bench_row rows[OURS][RIVALS];
    static char names[OURS][RIVALS][32];
    struct contest contest;

    if (argc == 3 && !strcmp(argv[1], "--serve"))
        return serve(argv[2]);
    for (size_t i = 0; i < OURS; i++)
        for (size_t k = 0; k < RIVALS; k++) {
            (void)snprintf(names[i][k], sizeof(names[i][k]), "%s_vs_%s", ours[i].name, rivals[k].name);
            rows[i][k] = (struct bench_row){.name = names[i][k], .unit = BENCH_US, .rival = true};
        }
    bench_begin(argc, argv, rows[0], OURS * RIVALS);
    for (size_t i = 0; i < OURS; i++) {
        start_contender(&contest.ours, ours[i].way);
        (void)tell(&contest.ours, ours[i].size);
        contest.ours.workers[2] = bench_broker()[0];
        contest.ours.workers[3] = bench_broker()[1];
        for (size_t k = 0; k < RIVALS; k++)
            measure(&contest, &rows[i][k], &rivals[k], ours[i].size);
        peer_end(&contest.ours.server);
    }
    return bench_end();
}
