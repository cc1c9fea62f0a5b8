/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a heap, and brokers, are killed in the middle of whatever they do. No block is lost, none is given twice,
 * and the books are exact.
 *
 * Several processes do random things with one heap, and mark each block while it is theirs, so that two owners would
 * meet each other's mark. They hand blocks to each other over one socket, on which references stay when a process dies,
 * and to a certain one over a socket of its own, which the next one in its place goes on with.
 * After each life the heap is swept by one who goes on; and now and then all are killed, and it must be possible to
 * allocate every block there is, each once.
 *
 * HEAP_KILLS=1000 is how many are killed (make check-long). The seed is printed; HEAP_SEED repeats a run, as far as the
 * kernel likes.
 */
#include <fcntl.h>
#include <memclient/heap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/integration/clients.h"

enum { WORKERS = 3, HELD = 24, BLOCKS = 64, SLABS_MAX = 6, EACH = 10 };

#define SMALL 256u
#define LARGE 4096u

static uint64_t seed;
static char socket_path[200];
static int mailbox[2], reader_mailbox[2], own_mailbox[WORKERS][2];

/* Shared by all: member numbers, while there is one. */
static struct numbers {
    uint64_t reader;
    uint64_t workers[WORKERS];
} * numbers;

struct start {
    uint64_t seed;
    unsigned place; /* among the workers */
};

static uint32_t pick(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

/* ---- one that will be killed ------------------------------------------------------------------------------------- */

struct worker {
    struct memclient_context *ctx;
    struct memclient_heap *heap;
    uint64_t mark;
    unsigned place;
    uint64_t *held[HELD];
};

static void worker_open(struct worker *worker)
{
    CHECK_DONE(memclient_heap_open_name(worker->ctx, "kills", &worker->heap));
    worker->mark = memclient_heap_member(worker->heap) ^ (uint64_t)getpid() << 40;
    __atomic_store_n(&numbers->workers[worker->place], memclient_heap_member(worker->heap), __ATOMIC_SEQ_CST);
}

static void worker_keep(struct worker *worker, unsigned at, void *p)
{
    worker->held[at] = p;
    __atomic_store_n(worker->held[at], worker->mark, __ATOMIC_SEQ_CST);
}

/* It is not this one's any more after that. */
static void worker_unmark(struct worker *worker, unsigned at)
{
    CHECK(__atomic_exchange_n(worker->held[at], 0, __ATOMIC_SEQ_CST) == worker->mark);
}

static void worker_alloc(struct worker *worker, unsigned at)
{
    void *p;
    int r = memclient_heap_alloc(worker->heap, pick(2) ? SMALL : LARGE, &p);

    CHECK(!r || r == -ENOMEM);
    if (!r)
        worker_keep(worker, at, p);
}

static void worker_free(struct worker *worker, unsigned at)
{
    worker_unmark(worker, at);
    CHECK_DONE(memclient_heap_free(worker->heap, worker->held[at]));
    worker->held[at] = NULL;
}

/* If the mailbox is full, the reference is as lost as one of the dead, but the block is not: it is taken back. */
static void worker_give(struct worker *worker, unsigned at)
{
    struct memclient_block block;
    void *p;

    worker_unmark(worker, at);
    CHECK_DONE(memclient_block_give(worker->heap, worker->held[at], 0, &block));
    worker->held[at] = NULL;
    if (send(mailbox[0], &block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(block))
        return;
    CHECK_DONE(memclient_block_take(worker->heap, &block, &p));
    worker_keep(worker, at, p);
}

/* The same, to one of them alone, who may have died or left the heap by then. */
static void worker_give_one(struct worker *worker, unsigned at)
{
    unsigned place = pick(WORKERS);
    uint64_t to = __atomic_load_n(&numbers->workers[place], __ATOMIC_SEQ_CST);
    struct memclient_block block;
    void *p;
    int r;

    worker_unmark(worker, at);
    r = to ? memclient_block_give(worker->heap, worker->held[at], to, &block) : -ESRCH;
    CHECK(!r || r == -ESRCH);
    if (r) {
        worker_keep(worker, at, worker->held[at]);
        return;
    }
    worker->held[at] = NULL;
    if (send(own_mailbox[place][0], &block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(block))
        return;
    /* it was swept, if that one has died since */
    r = memclient_block_take(worker->heap, &block, &p);
    CHECK(!r || r == -ESTALE);
    if (!r)
        worker_keep(worker, at, p);
}

/* Nobody takes back what was given to a reader; if it does not hear of it, the block is free when it dies. */
static void worker_give_reader(struct worker *worker, unsigned at)
{
    struct memclient_block_token token;
    uint64_t to = __atomic_load_n(&numbers->reader, __ATOMIC_SEQ_CST);
    int r;

    worker_unmark(worker, at);
    r = memclient_block_share(worker->heap, worker->held[at], to, &token);
    CHECK(!r || r == -ESRCH);
    if (r) {
        worker_keep(worker, at, worker->held[at]);
        return;
    }
    worker->held[at] = NULL;
    (void)send(reader_mailbox[0], &token, sizeof(token), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What the dead had given away was freed, or its slab is gone; then the reference is stale. And it may be for the one
 * that was in this place before: that one has it then, until it is swept. */
static void worker_take(struct worker *worker, unsigned at)
{
    bool own = pick(2);
    struct memclient_block block;
    void *p;
    int r;

    if (recv(own ? own_mailbox[worker->place][1] : mailbox[1], &block, sizeof(block), MSG_DONTWAIT) != sizeof(block))
        return;
    r = memclient_block_take(worker->heap, &block, &p);
    CHECK(!r || r == -ESTALE || (own && r == -EPERM));
    if (!r)
        worker_keep(worker, at, p);
}

static void worker_close(struct worker *worker)
{
    for (unsigned i = 0; i < HELD; i++) {
        if (worker->held[i])
            worker_unmark(worker, i);
        worker->held[i] = NULL;
    }
    memclient_heap_close(worker->heap);
    worker_open(worker);
}

/* What a dead member had is marked, so marks are looked at only while they are one's own. */
static void work(int channel, void *context)
{
    const struct start *start = context;
    struct worker worker = {.ctx = broker_connect_in_child(socket_path), .place = start->place};

    seed = start->seed;
    worker_open(&worker);
    tell(channel);
    for (;;) {
        unsigned at = pick(HELD), what = pick(400);

        if (!what)
            worker_close(&worker);
        else if (what < 3)
            CHECK_DONE(memclient_heap_sweep(worker.heap));
        else if (what < 5)
            CHECK_DONE(memclient_heap_trim(worker.heap));
        else if (!worker.held[at])
            (what % 3 ? worker_alloc : worker_take)(&worker, at);
        else if (what < 40 && numbers->reader)
            worker_give_reader(&worker, at);
        else if (what < 90)
            worker_give_one(&worker, at);
        else
            (what % 3 ? worker_free : worker_give)(&worker, at);
    }
}

/* A reader keeps some of what it gets, and checks that nobody writes there: only who has a block marks it. */
static void read_and_free(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(socket_path);
    const uint64_t *held[HELD] = {NULL};
    struct memclient_block_token token;
    struct memclient_heap *heap;
    void *p;
    int r;

    CHECK_DONE(memclient_heap_open_token(ctx, context, &heap));
    tell(channel);
    for (;;) {
        unsigned at = pick(HELD);

        if (held[at]) {
            CHECK(__atomic_load_n(held[at], __ATOMIC_SEQ_CST) == 0);
            r = memclient_heap_free(heap, (void *)(uintptr_t)held[at]);
            CHECK(!r || r == -EAGAIN);
            held[at] = r ? held[at] : NULL;
        }
        if (held[at] || recv(reader_mailbox[1], &token, sizeof(token), 0) != sizeof(token))
            continue;
        /* it was for a former reader */
        r = memclient_block_open(heap, &token, &p);
        CHECK(!r || r == -ESTALE || r == -EPERM);
        held[at] = r ? NULL : p;
    }
}

/* ---- the judge --------------------------------------------------------------------------------------------------- */

static struct memclient_heap_info info_of(struct memclient_heap *heap)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;

    assert_done(memclient_heap_query(heap, &info));
    return info;
}

/* Whoever is not dead by the judge's signal has found something wrong, and has said what. */
static void kill_worker(struct child *child)
{
    assert_ok(kill(child->pid, SIGKILL));
    assert_int_equal(child_wait(child), SIGKILL);
}

static void start_worker(struct child *child, unsigned place)
{
    static struct start start;

    start = (struct start){.seed = seed ^ pick(UINT32_MAX), .place = place};
    child_start(child, work, &start);
    child_hear(child);
}

static void start_reader(struct child *child, struct memclient_heap *heap)
{
    static struct memclient_token invitation;
    uint64_t number;

    assert_done(memclient_heap_invite(heap, &invitation, &number));
    child_start(child, read_and_free, &invitation);
    child_hear(child);
    __atomic_store_n(&numbers->reader, number, __ATOMIC_SEQ_CST);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

    return x < y ? -1 : x > y;
}

/* Nobody else is there: all blocks of one size, until there is none any more. */
static unsigned take_all(struct memclient_heap *heap, uint64_t size, uintptr_t *blocks)
{
    unsigned n = 0;
    void *p;

    while (memclient_heap_alloc(heap, size, &p) == 0) {
        assert_true(n < SLABS_MAX * BLOCKS);
        blocks[n++] = (uintptr_t)p;
    }
    qsort(blocks, n, sizeof(*blocks), by_address);
    for (unsigned i = 1; i < n; i++)
        assert_true(blocks[i] - blocks[i - 1] >= size);
    return n;
}

static void nothing_is_lost(struct memclient_heap *heap)
{
    static uintptr_t blocks[2][SLABS_MAX * BLOCKS];
    struct memclient_heap_info info;
    struct memclient_block block;
    unsigned n[2];

    while (recv(mailbox[1], &block, sizeof(block), MSG_DONTWAIT) > 0)
        continue;
    for (unsigned i = 0; i < WORKERS; i++)
        while (recv(own_mailbox[i][1], &block, sizeof(block), MSG_DONTWAIT) > 0)
            continue;
    assert_true(WAIT_UNTIL(memclient_heap_sweep(heap) == 0 && info_of(heap).members == 1));
    info = info_of(heap);
    assert_int_equal(info.readers, 0);
    assert_int_equal(info.blocks_free, info.blocks);
    n[0] = take_all(heap, LARGE, blocks[0]);
    n[1] = take_all(heap, SMALL, blocks[1]);
    info = info_of(heap);
    assert_int_equal(info.slabs, SLABS_MAX);
    assert_int_equal(info.blocks, n[0] + n[1]);
    assert_int_equal(info.blocks_mine, info.blocks);
    for (unsigned class = 0; class < 2; class ++)
        for (unsigned i = 0; i < n[class]; i++)
            assert_done(memclient_heap_free(heap, (void *)blocks[class][i]));
    assert_done(memclient_heap_trim(heap));
    assert_int_equal(info_of(heap).slabs, 0);
}

static void a_round(struct broker_process *broker, struct memclient_heap *heap, struct child *workers)
{
    unsigned which = pick(WORKERS + 1);

    nanosleep(&(struct timespec){.tv_nsec = pick(3000000)}, NULL);
    if (!pick(8)) {
        broker_kill_child(broker);
        return;
    }
    kill_worker(&workers[which]);
    if (pick(2))
        assert_done(memclient_heap_sweep(heap));
    if (which == WORKERS)
        start_reader(&workers[which], heap);
    else
        start_worker(&workers[which], which);
}

static struct memclient_heap *heap_new(struct memclient_context *ctx)
{
    const uint64_t sizes[] = {SMALL, LARGE};
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap;

    options.block_sizes = sizes;
    options.n_block_sizes = 2;
    options.slab_size = SMALL * BLOCKS;
    options.slabs_max = SLABS_MAX;
    options.name = "kills";
    assert_done(memclient_heap_create(ctx, &options, &heap));
    return heap;
}

/* The reader is the last one. */
static void start_all(struct child *workers, struct memclient_heap *heap)
{
    start_reader(&workers[WORKERS], heap);
    for (unsigned i = 0; i < WORKERS; i++)
        start_worker(&workers[i], i);
}

static void kill_all(struct child *workers)
{
    for (unsigned i = 0; i <= WORKERS; i++)
        kill_worker(&workers[i]);
    *numbers = (struct numbers){.reader = 0};
}

static void no_block_is_lost_or_given_twice(void **state)
{
    const char *kills = getenv("HEAP_KILLS"), *repeat = getenv("HEAP_SEED");
    unsigned long rounds = kills ? strtoul(kills, NULL, 10) : 30;
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx);
    struct child workers[WORKERS + 1];

    seed = repeat ? strtoull(repeat, NULL, 10) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 20;
    print_message("HEAP_SEED=%llu, %lu rounds\n", (unsigned long long)seed, rounds);
    (void)snprintf(socket_path, sizeof(socket_path), "%s", broker->socket);
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, mailbox));
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reader_mailbox));
    for (unsigned i = 0; i < WORKERS; i++)
        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own_mailbox[i]));
    numbers = mmap(NULL, sizeof(*numbers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped(numbers);
    start_all(workers, heap);
    for (unsigned long round = 1; round <= rounds; round++) {
        a_round(broker, heap, workers);
        if (round % EACH && round != rounds)
            continue;
        kill_all(workers);
        nothing_is_lost(heap);
        if (round != rounds)
            start_all(workers, heap);
    }
    assert_ok(munmap(numbers, sizeof(*numbers)));
    for (unsigned i = 0; i < WORKERS; i++) {
        close(own_mailbox[i][0]);
        close(own_mailbox[i][1]);
    }
    close(reader_mailbox[0]);
    close(reader_mailbox[1]);
    close(mailbox[0]);
    close(mailbox[1]);
    assert_done(memclient_heap_destroy(heap));
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(no_block_is_lost_or_given_twice),
    };
    return test_run(tests, NULL, NULL);
}
