/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a heap dies, or is stopped for good, before each step of each operation that another process can see.
 *
 * While it is stopped, the others allocate, free, give, take, sweep, trim, join and leave, and wait for nobody. Once it
 * is killed, one sweep has everything back: every block there is can be allocated, each once, and nobody is left in the
 * books. If it goes on instead, its operation is done as if nothing had been. For each row the broker proves its sums.
 *
 * HEAP_STEPS=1 tries every step (make check-long), the default is every tenth, beginning somewhere else each time.
 * HEAP_ROW=name tries that row.
 */
#include "tests/integration/clients.h"
#include "tests/torture/steps.h"

#include <memclient/heap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "heap/heap.h"

enum { BLOCKS = 136, SLABS_MAX = 3, GIFTS = 4 };

#define BLOCK 64u
#define NAME  "steps"

struct row {
    const char *name;
    void (*prepare)(void);          /* by the judge, before the member is there */
    void (*open)(void);             /* by the member: opens the heap and so on */
    void (*equip)(uint64_t member); /* by the judge then: fills in `gifts`, for one */
    void (*operate)(void);          /* what is traced */
    unsigned left;                  /* blocks that are taken when it is done */
    bool invited; /* it may die before it has come, and its invitation waits as long as the judge lives */
};

/* What happens to a member that is stopped. */
enum fate {
    DIES,           /* at once */
    STAYS_AND_DIES, /* once the others have worked */
    STAYS_AND_GOES_ON,
    FATES,
};

/* The judge's, of which a child has a copy. */
static struct broker_process *broker;
static struct memclient_context *ctx;
static struct memclient_heap *heap;
static struct memclient_token token, invitation;
static struct memclient_block_token gifts[GIFTS];
static struct memclient_heap *reader;
static struct memclient_context *reads;

/* The child's. */
static struct memclient_context *own_ctx;
static struct memclient_heap *own;
static void *blocks[200];
static struct memclient_block given;

static struct memclient_heap_info info_of(struct memclient_heap *of)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;

    assert_done(memclient_heap_query(of, &info));
    return info;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static void open_heap(void)
{
    own_ctx = broker_connect_in_child(broker->socket);
    CHECK_DONE(memclient_heap_open_token(own_ctx, &token, &own));
}

/* So many blocks, and so a slab. */
static void open_with(unsigned n)
{
    open_heap();
    for (unsigned i = 0; i < n; i++)
        CHECK_DONE(memclient_heap_alloc(own, BLOCK, &blocks[i]));
}

static void open_with_one(void)
{
    open_with(1);
}

static void open_with_cached(void)
{
    open_with(2);
    CHECK_DONE(memclient_heap_free(own, blocks[1]));
}

/* As many hints as a cache has room for: the next one makes it give half of them back. */
static void open_with_full_cache(void)
{
    open_with(CACHE_HINTS + 1);
    for (unsigned i = 0; i < CACHE_HINTS; i++)
        CHECK_DONE(memclient_heap_free(own, blocks[i + 1]));
}

static void open_with_others(void)
{
    open_with(20);
    CHECK_DONE(memclient_block_give(own, blocks[1], 0, &given));
}

static void open_with_free_slab(void)
{
    open_with(1);
    CHECK_DONE(memclient_heap_free(own, blocks[0]));
}

static void open_context(void)
{
    own_ctx = broker_connect_in_child(broker->socket);
}

static void open_reader(void)
{
    own_ctx = broker_connect_in_child(broker->socket);
    CHECK_DONE(memclient_heap_open_token(own_ctx, &invitation, &own));
}

static void open_inherited(void)
{
    own = heap;
}

static void do_alloc(void)
{
    CHECK_DONE(memclient_heap_alloc(own, BLOCK, &blocks[0]));
}

static void do_free(void)
{
    CHECK_DONE(memclient_heap_free(own, blocks[0]));
}

static void do_give(void)
{
    CHECK_DONE(memclient_block_give(own, blocks[0], 0, &given));
}

static void do_give_to_judge(void)
{
    CHECK_DONE(memclient_block_give(own, blocks[0], memclient_heap_member(heap), &given));
}

static void do_share_with_reader(void)
{
    CHECK_DONE(memclient_block_share(own, blocks[0], memclient_heap_member(reader), &gifts[0]));
}

static void do_take(void)
{
    CHECK_DONE(memclient_block_take(own, &gifts[0].block, &blocks[0]));
}

static void do_open(void)
{
    CHECK_DONE(memclient_block_open(own, &gifts[0], &blocks[0]));
}

static void do_open_and_free(void)
{
    for (unsigned i = 0; i < GIFTS; i++) {
        CHECK_DONE(memclient_block_open(own, &gifts[i], &blocks[i]));
        CHECK_DONE(memclient_heap_free(own, blocks[i]));
    }
}

static void do_share_heap(void)
{
    struct memclient_token made;

    CHECK_DONE(memclient_heap_share(own, NULL, &made));
}

static void do_invite(void)
{
    uint64_t number;

    CHECK_DONE(memclient_heap_invite(own, &invitation, &number));
}

static void do_sweep(void)
{
    CHECK_DONE(memclient_heap_sweep(own));
}

static void do_trim(void)
{
    CHECK_DONE(memclient_heap_trim(own));
}

static void do_join(void)
{
    CHECK_DONE(memclient_heap_open_token(own_ctx, &token, &own));
}

static void do_join_reader(void)
{
    CHECK_DONE(memclient_heap_open_token(own_ctx, &invitation, &own));
}

static void do_close(void)
{
    memclient_heap_close(own);
}

static void do_destroy(void)
{
    CHECK_DONE(memclient_heap_destroy(own));
}

/* ---- what the judge does before ---------------------------------------------------------------------------------- */

static void have_a_slab(void)
{
    void *p;

    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    assert_done(memclient_heap_free(heap, p));
}

static void invite(void)
{
    uint64_t number;

    have_a_slab();
    assert_done(memclient_heap_invite(heap, &invitation, &number));
}

/* A reader in this process. */
static void have_a_reader(void)
{
    invite();
    assert_done(memclient_heap_open_token(reads, &invitation, &reader));
}

static void give_gifts(uint64_t member)
{
    void *p;

    for (unsigned i = 0; i < GIFTS; i++) {
        assert_done(memclient_heap_alloc(heap, BLOCK, &p));
        assert_done(memclient_block_share(heap, p, member, &gifts[i]));
    }
}

/* The child of a fork, with what it has of its parent. */
static void be_a_victim(int channel, void *context)
{
    uint64_t judge = *(uint64_t *)context, number;
    struct memclient_token unused;
    struct memclient_block block;
    void *p;

    for (unsigned i = 0; i < 10; i++) {
        CHECK_DONE(memclient_heap_alloc(heap, BLOCK, &p));
        if (i % 2)
            CHECK_DONE(memclient_block_give(heap, p, i % 3 ? 0 : judge, &block));
    }
    CHECK_DONE(memclient_heap_invite(heap, &unused, &number));
    tell(channel);
    hear(channel);
}

/* Blocks and an invitation of one that is dead, and what a reader has freed, wait to be swept. */
static void leave_work(uint64_t member)
{
    uint64_t judge = memclient_heap_member(heap);
    struct child child;
    void *p;

    (void)member;
    give_gifts(memclient_heap_member(reader));
    for (unsigned i = 0; i < GIFTS; i++) {
        assert_done(memclient_block_open(reader, &gifts[i], &p));
        assert_done(memclient_heap_free(reader, p));
    }
    child_start(&child, be_a_victim, &judge);
    child_hear(&child);
    child_kill(&child);
}

static const struct row rows[] = {
    {.name = "alloc", .open = open_with_cached, .operate = do_alloc, .left = 2},
    {.name = "refill", .prepare = have_a_slab, .open = open_heap, .operate = do_alloc, .left = 1},
    {.name = "slab", .open = open_heap, .operate = do_alloc, .left = 1},
    {.name = "free", .open = open_with_one, .operate = do_free},
    {.name = "flush", .open = open_with_full_cache, .operate = do_free},
    {.name = "give", .open = open_with_one, .operate = do_give, .left = 1},
    {.name = "give-to", .open = open_with_one, .operate = do_give_to_judge, .left = 1},
    {.name = "give-reader",
     .prepare = have_a_reader,
     .open = open_with_one,
     .operate = do_share_with_reader,
     .left = 1},
    {.name = "take", .equip = give_gifts, .open = open_heap, .operate = do_take, .left = GIFTS},
    {.name = "share", .open = open_heap, .operate = do_share_heap},
    {.name = "invite", .open = open_heap, .operate = do_invite},
    {.name = "sweep", .prepare = have_a_reader, .equip = leave_work, .open = open_heap, .operate = do_sweep},
    {.name = "trim", .open = open_with_free_slab, .operate = do_trim},
    {.name = "join", .prepare = have_a_reader, .equip = leave_work, .open = open_context, .operate = do_join},
    {.name = "join-inherited", .prepare = have_a_slab, .open = open_inherited, .operate = do_alloc, .left = 1},
    {.name = "sweep-inherited",
     .prepare = have_a_reader,
     .equip = leave_work,
     .open = open_inherited,
     .operate = do_sweep},
    {.name = "leave", .open = open_with_others, .operate = do_close},
    {.name = "destroy", .open = open_with_others, .operate = do_destroy},
    {.name = "reader-join", .prepare = invite, .open = open_context, .operate = do_join_reader, .invited = true},
    {.name = "reader-open",
     .prepare = invite,
     .equip = give_gifts,
     .open = open_reader,
     .operate = do_open,
     .left = GIFTS},
    {.name = "reader-free", .prepare = invite, .equip = give_gifts, .open = open_reader, .operate = do_open_and_free},
};

/* ---- the member -------------------------------------------------------------------------------------------------- */

static void watch_shared(void)
{
    if (!own)
        return;
    steps_watch(own->control ? (void *)own->control : (void *)own->queue, memclient_buffer_bytes(own->control_buf));
    for (unsigned i = 0; i < heap_n_slabs(own); i++)
        if (heap_slab(own, i) && own->control)
            steps_watch(heap_slab(own, i)->base, memclient_buffer_bytes(heap_slab(own, i)->buf));
    for (unsigned i = 0; i < HEAP_MEMBERS; i++)
        if (own->queues[i])
            steps_watch(own->queues[i]->queue, memclient_buffer_bytes(own->queues[i]->buf));
}

static void be_a_member(int channel, void *context)
{
    const struct row *row = context;
    uint64_t member;

    row->open();
    member = own ? memclient_heap_member(own) : 0;
    CHECK(pass_bytes(channel, &member, sizeof(member)));
    CHECK(take_bytes(channel, gifts, sizeof(gifts)));
    watch_shared();
    steps_begin();
    row->operate();
    steps_end();
    tell(channel);
    hear(channel);
}

/* ---- the judge --------------------------------------------------------------------------------------------------- */

static void heap_new(void)
{
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    const uint64_t size = BLOCK;

    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.slab_size = BLOCKS * BLOCK;
    options.slabs_max = SLABS_MAX;
    options.name = NAME;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    assert_done(memclient_heap_share(heap, NULL, &token));
}

/* Whatever the one that is stopped was about to do, nobody waits for it. */
static void others_work(void)
{
    struct memclient_heap *other;
    struct memclient_block block;
    void *p, *q;

    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    memset(p, 1, BLOCK);
    assert_done(memclient_heap_alloc(heap, BLOCK, &q));
    assert_ptr_not_equal(p, q);
    assert_done(memclient_heap_free(heap, q));
    assert_done(memclient_heap_sweep(heap));
    assert_done(memclient_block_give(heap, p, 0, &block));
    assert_done(memclient_heap_open_token(reads, &token, &other));
    assert_done(memclient_block_take(other, &block, &q));
    assert_int_equal(*(char *)q, 1);
    assert_done(memclient_heap_free(other, q));
    assert_done(memclient_heap_alloc(other, BLOCK, &q));
    memclient_heap_close(other);
    assert_done(memclient_heap_trim(heap));
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

    return x < y ? -1 : x > y;
}

static void every_block_is_there_once(void)
{
    static uintptr_t all[SLABS_MAX * BLOCKS + 1];
    unsigned n = 0;
    void *p;

    while (n <= SLABS_MAX * BLOCKS && memclient_heap_alloc(heap, BLOCK, &p) == 0)
        all[n++] = (uintptr_t)p;
    assert_int_equal(n, SLABS_MAX * BLOCKS);
    qsort(all, n, sizeof(*all), by_address);
    for (unsigned i = 1; i < n; i++)
        assert_true(all[i] - all[i - 1] >= BLOCK);
    for (unsigned i = 0; i < n; i++)
        assert_done(memclient_heap_free(heap, (void *)all[i]));
}

/* One sweep is enough: the kernel has said that it is dead. */
static void nothing_is_lost(const struct row *row)
{
    struct memclient_heap_info info;

    memclient_heap_close(reader);
    reader = NULL;
    assert_done(memclient_heap_sweep(heap));
    info = info_of(heap);
    assert_int_equal(info.members, 1);
    assert_true(info.readers <= row->invited);
    assert_int_equal(info.blocks_free, info.blocks);
    every_block_is_there_once();
    assert_done(memclient_heap_trim(heap));
    assert_int_equal(info_of(heap).slabs, 0);
    assert_done(memclient_heap_destroy(heap));
    assert_int_equal(broker_status(ctx).names, 0);
}

static void it_is_done(struct child *child, const struct row *row)
{
    struct memclient_heap_info info;

    steps_let_go(child->pid);
    child_hear(child);
    /* what a reader has freed waits for that */
    assert_done(memclient_heap_sweep(heap));
    info = info_of(heap);
    assert_int_equal(info.blocks_owned + info.blocks_given, row->left);
}

/* False: the operation has no such step. */
static bool try_step(const struct row *row, unsigned step, enum fate fate)
{
    struct child child;
    uint64_t member;
    bool stopped;

    heap_new();
    if (row->prepare)
        row->prepare();
    child_start(&child, be_a_member, (void *)(uintptr_t)row);
    assert_true(take_bytes(child.channel, &member, sizeof(member)));
    if (row->equip)
        row->equip(member);
    assert_true(pass_bytes(child.channel, gifts, sizeof(gifts)));
    stopped = steps_run(child.pid, step);
    if (stopped && fate != DIES)
        others_work();
    if (!stopped || fate == STAYS_AND_GOES_ON)
        it_is_done(&child, row);
    child_kill(&child);
    nothing_is_lost(row);
    return stopped;
}

/* Every n-th step, with one fate after the other; or all with all. */
static unsigned try_row(const struct row *row, unsigned every, unsigned turn)
{
    unsigned tried = 0;

    for (unsigned step = turn % every;; step += every) {
        enum fate fate = every > 1 ? turn++ % FATES : DIES, last = every > 1 ? fate : STAYS_AND_GOES_ON;

        for (; fate <= last; fate++) {
            if (!try_step(row, step, fate))
                return tried;
            tried++;
        }
    }
}

/* Its first steps, where there are not many. */
static unsigned try_row_somewhere(const struct row *row, unsigned every)
{
    static unsigned turn;
    unsigned tried;

    if (!turn)
        turn = (unsigned)getpid();
    tried = try_row(row, every, turn++);
    if (!tried)
        tried = try_row(row, 2, turn++);
    broker_wait_until_empty(broker);
    broker_check(broker);
    return tried;
}

static void nobody_dies_at_a_bad_place(void **state)
{
    const char *steps = getenv("HEAP_STEPS"), *only = getenv("HEAP_ROW");
    unsigned every = steps ? (unsigned)strtoul(steps, NULL, 10) : 10, all = 0;

    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    reads = broker_connect(broker);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned tried;

        if (only && strcmp(only, rows[i].name) != 0)
            continue;
        tried = try_row_somewhere(&rows[i], every);
        print_message("%-16s %4u\n", rows[i].name, tried);
        all += tried;
    }
    print_message("%-16s %4u\n", "all", all);
    memclient_context_close(reads);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(nobody_dies_at_a_bad_place),
    };
    return test_run(tests, NULL, NULL);
}
