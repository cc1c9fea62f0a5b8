/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of random operations by several members of a heap and readers, each of which must do and answer just what a
 * model says, right and wrong ones alike; and every hundred of them the books must be the model's. The seed is printed;
 * MEMORYD_TEST_SEED repeats a run.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/integration/heaps.h"

/* Who has the heap open: members, and behind them readers. */
enum { MEMBERS = 4, READERS = 2, ALL = MEMBERS + READERS };
enum { PER_SLAB = 8, SLABS_MAX = 4, BLOCKS = PER_SLAB * SLABS_MAX, REFERENCES = 64, OPERATIONS = 12000 };

/* for whom a block is */
#define ANYBODY ALL
#define NOBODY  (ALL + 1)

/* A block that there is; those of slabs that were given back are forgotten. */
struct block {
    void *address; /* NULL: there is none */
    bool is_free;
    unsigned owner; /* or NOBODY, of what a member that has left had given away */
    unsigned to;    /* or NOBODY: it was not given away */
    uint64_t pass;  /* counts what makes references stale, and is what its owner has written into it */
    void *opened;   /* by the reader that owns it: where it has it */
    bool returned;  /* by that reader, and no member has noticed yet */
};

struct reference {
    struct memclient_block_token token;
    void *address;
    uint64_t pass; /* 0: none */
};

static struct memclient_context *contexts[ALL];
static struct memclient_heap *heaps[ALL];
static uint64_t readers[READERS]; /* their numbers */
static struct memclient_token token;
static struct block blocks[BLOCKS];
static struct reference references[REFERENCES];
static uint64_t seed, passes;
static bool keeps;

static uint32_t pick(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

static struct block *block_at(const void *address)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].address && blocks[i].address == address)
            return &blocks[i];
    return NULL;
}

static unsigned count_free(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BLOCKS; i++)
        n += blocks[i].address && blocks[i].is_free;
    return n;
}

static unsigned count_known(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BLOCKS; i++)
        n += blocks[i].address != NULL;
    return n;
}

static unsigned count_returned(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BLOCKS; i++)
        n += blocks[i].address && blocks[i].returned;
    return n;
}

static void pass(struct block *block, bool is_free, unsigned owner, unsigned to)
{
    *block = (struct block){.address = block->address, .is_free = is_free, .owner = owner, .to = to, .pass = ++passes};
}

static struct block *block_new(void *address)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (!blocks[i].address) {
            blocks[i].address = address;
            return &blocks[i];
        }
    fail_msg("there are more blocks than there may be");
    return NULL;
}

/* Slabs of which all blocks are free may be gone. The model knows no slabs: it learns of blocks when it gets them. */
static void forget_free(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].address && blocks[i].is_free)
            blocks[i].address = NULL;
}

/* A member has swept: what readers have freed is free. */
static void was_swept(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].address && blocks[i].returned)
            pass(&blocks[i], true, NOBODY, NOBODY);
    forget_free();
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* One who finds no free block sweeps. */
static void one_alloc(unsigned member)
{
    bool sweeps = !info_of(heaps[member]).blocks_free;
    struct block *block;
    void *p;
    int r = memclient_heap_alloc(heaps[member], SMALL, &p);

    if (r) {
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(count_free() + count_returned(), 0);
        assert_int_equal(count_known(), BLOCKS);
        return;
    }
    if (sweeps)
        was_swept();
    block = block_at(p);
    if (!block)
        block = block_new(p);
    else
        assert_true(block->is_free);
    pass(block, false, member, NOBODY);
}

/* What freeing or giving is answered with. */
static int refusal(const struct block *block, unsigned member)
{
    if (block->is_free)
        return -EALREADY;
    if (block->to != NOBODY)
        return -EBUSY;
    return block->owner == member ? 0 : -EPERM;
}

static void one_free(unsigned member, struct block *block)
{
    int wanted = refusal(block, member);

    assert_int_equal(memclient_heap_free(heaps[member], block->address), wanted);
    if (!wanted)
        pass(block, true, NOBODY, NOBODY);
    else
        assert_refused(memclient_heap_free(heaps[member], (char *)block->address + 64), EINVAL);
}

static uint64_t number_of(unsigned who)
{
    if (who == ANYBODY)
        return 0;
    return who < MEMBERS ? memclient_heap_member(heaps[who]) : readers[who - MEMBERS];
}

/* What is given to a reader is owned by it at once. */
static void one_give(unsigned member, struct block *block)
{
    struct reference *reference = &references[pick(REFERENCES)];
    struct memclient_block_token given;
    unsigned to = pick(ANYBODY + 1);
    bool to_reader = to >= MEMBERS && to != ANYBODY;
    int wanted = refusal(block, member);

    assert_int_equal(memclient_block_share(heaps[member], block->address, number_of(to) + (UINT64_C(9) << 40), &given),
                     -ESRCH);
    if (!wanted)
        *(uint64_t *)block->address = passes + 1;
    assert_int_equal(memclient_block_share(heaps[member], block->address, number_of(to), &given), wanted);
    if (wanted)
        return;
    pass(block, false, to_reader ? to : member, to_reader ? NOBODY : to);
    *reference = (struct reference){.token = given, .address = block->address, .pass = block->pass};
}

static int answer_to_take(const struct block *block, const struct reference *reference, unsigned member)
{
    if (!block || block->pass != reference->pass)
        return -ESTALE;
    if (block->to == NOBODY)
        return block->owner == member ? -EALREADY : -ESTALE;
    return block->to == member || block->to == ANYBODY || block->owner == member ? 0 : -EPERM;
}

static void one_take(unsigned member)
{
    const struct reference *reference = &references[pick(REFERENCES)];
    struct block *block = block_at(reference->address);
    int wanted = answer_to_take(block, reference, member);
    void *p = NULL;

    if (!reference->pass)
        return;
    assert_int_equal(pick(2) ? memclient_block_take(heaps[member], &reference->token.block, &p)
                             : memclient_block_open(heaps[member], &reference->token, &p),
                     wanted);
    if (wanted)
        return;
    assert_ptr_equal(p, block->address);
    assert_int_equal(*(uint64_t *)p, block->pass);
    block->owner = member;
    block->to = NOBODY;
}

static int answer_to_open(const struct block *block, const struct reference *reference, unsigned reader)
{
    if (!block || block->pass != reference->pass || block->is_free)
        return -ESTALE;
    if (block->owner != reader)
        return -EPERM;
    if (block->returned)
        return -ESTALE;
    return block->opened ? -EALREADY : 0;
}

static void one_opens(unsigned reader)
{
    const struct reference *reference = &references[pick(REFERENCES)];
    struct block *block = block_at(reference->address);
    int wanted = answer_to_open(block, reference, reader);
    void *p = NULL;

    if (!reference->pass)
        return;
    assert_int_equal(memclient_block_open(heaps[reader], &reference->token, &p), wanted);
    if (wanted)
        return;
    assert_int_equal(*(uint64_t *)p, block->pass);
    block->opened = p;
}

static void one_returns(unsigned reader, struct block *block)
{
    struct memclient_block_token given;

    if (block->owner != reader || !block->opened)
        return;
    assert_int_equal(memclient_block_share(heaps[reader], block->opened, 0, &given), -EPERM);
    assert_int_equal(memclient_heap_free(heaps[reader], (char *)block->opened + 64), -EINVAL);
    assert_int_equal(memclient_heap_free(heaps[reader], block->opened), block->returned ? -EALREADY : 0);
    block->returned = true;
}

/* Whoever opens the heap trims it. */
static void one_leaves(unsigned member)
{
    memclient_heap_close(heaps[member]);
    assert_done(memclient_heap_open_token(contexts[member], &token, &heaps[member]));
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct block *block = &blocks[i];

        if (!block->address || block->is_free || (block->owner != member && block->to != member))
            continue;
        if (keeps && block->to != NOBODY && block->to != member)
            block->owner = NOBODY;
        else
            pass(block, true, NOBODY, NOBODY);
    }
    was_swept();
}

/* Some member, at random, invites another one in its place. */
static void reader_comes(unsigned reader)
{
    struct memclient_token invitation;

    assert_done(memclient_heap_invite(heaps[pick(MEMBERS)], &invitation, &readers[reader - MEMBERS]));
    assert_done(memclient_heap_open_token(contexts[reader], &invitation, &heaps[reader]));
    assert_int_equal(memclient_heap_member(heaps[reader]), readers[reader - MEMBERS]);
}

/* What it has is its own until a member sweeps. */
static void one_reader_leaves(unsigned reader)
{
    memclient_heap_close(heaps[reader]);
    assert_done(memclient_heap_sweep(heaps[pick(MEMBERS)]));
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].address && !blocks[i].is_free && blocks[i].owner == reader)
            pass(&blocks[i], true, NOBODY, NOBODY);
    was_swept();
    reader_comes(reader);
}

static void one_trims(unsigned member)
{
    struct memclient_heap_info info;

    assert_done(pick(2) ? memclient_heap_trim(heaps[member]) : memclient_heap_sweep(heaps[member]));
    was_swept();
    for (unsigned i = 0; i < MEMBERS; i++) {
        info = info_of(heaps[i]);
        assert_int_equal(info.blocks - info.blocks_free, count_known());
    }
}

static void the_books_are_exact(void)
{
    uint64_t mine[ALL] = {0}, owned = 0, given = 0;

    for (unsigned i = 0; i < BLOCKS; i++) {
        const struct block *block = &blocks[i];

        if (!block->address || block->is_free)
            continue;
        if (block->to != NOBODY)
            given++;
        else
            owned++, mine[block->owner]++;
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct memclient_heap_info info = info_of(heaps[i]);

        assert_int_equal(info.blocks_given, given);
        assert_int_equal(info.blocks_owned, owned);
        assert_int_equal(info.blocks_mine, mine[i]);
        assert_int_equal(info.blocks_free, info.blocks - owned - given);
        assert_int_equal(info.members, MEMBERS);
        assert_int_equal(info.readers, READERS);
    }
}

static void one_of_a_reader(unsigned reader, struct block *block)
{
    unsigned what = pick(300);

    if (!what)
        one_reader_leaves(reader);
    else if (what < 150)
        one_opens(reader);
    else if (block->address)
        one_returns(reader, block);
}

static void one_of_a_member(unsigned member, struct block *block)
{
    unsigned what = pick(300);

    /* maps what others have added, so that it knows all addresses */
    (void)info_of(heaps[member]);
    if (!what)
        one_leaves(member);
    else if (what == 1)
        one_trims(member);
    else if (what < 100)
        one_alloc(member);
    else if (what < 180)
        one_take(member);
    else if (block->address)
        (what < 220 ? one_free : one_give)(member, block);
}

static void members_do_what_the_model_says(void)
{
    const uint64_t size = SMALL;
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct broker_process *broker = broker_for_test(NULL);

    memset(blocks, 0, sizeof(blocks));
    memset(references, 0, sizeof(references));
    for (unsigned i = 0; i < ALL; i++)
        contexts[i] = broker_connect(broker);
    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.slab_size = PER_SLAB * SMALL;
    options.slabs_max = SLABS_MAX;
    options.flags = keeps ? MEMCLIENT_HEAP_KEEP_GIVEN : 0;
    assert_done(memclient_heap_create(contexts[0], &options, &heaps[0]));
    assert_done(memclient_heap_share(heaps[0], NULL, &token));
    for (unsigned i = 1; i < MEMBERS; i++)
        assert_done(memclient_heap_open_token(contexts[i], &token, &heaps[i]));
    for (unsigned i = MEMBERS; i < ALL; i++)
        reader_comes(i);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        unsigned who = pick(ALL);

        (who < MEMBERS ? one_of_a_member : one_of_a_reader)(who, &blocks[pick(BLOCKS)]);
        if (i % 100 == 99)
            the_books_are_exact();
    }
    for (unsigned i = ALL; i-- > 0;)
        memclient_heap_close(heaps[i]);
    for (unsigned i = 0; i < ALL; i++)
        memclient_context_close(contexts[i]);
    broker_finish(broker);
}

static void blocks_of_who_leaves_are_free(void **state)
{
    keeps = false;
    members_do_what_the_model_says();
}

static void blocks_that_were_given_stay(void **state)
{
    keeps = true;
    members_do_what_the_model_says();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(blocks_of_who_leaves_are_free),
        at_broker(blocks_that_were_given_stay),
    };
    const char *repeat = getenv("MEMORYD_TEST_SEED");

    seed = repeat ? strtoull(repeat, NULL, 10) : (uint64_t)time(NULL);
    printf("MEMORYD_TEST_SEED=%llu\n", (unsigned long long)seed);
    return test_run(tests, NULL, NULL);
}
