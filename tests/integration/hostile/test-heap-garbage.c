/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a heap that writes nonsense into everything that members share, and a reader that writes nonsense into
 * its queue, while others work with the heap. Each call of theirs ends, with success or an errno; each block that they
 * get can be written from end to end; and no reader frees what is not its own.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <memclient/heap.h>

#include "heap/layout.h"

#define BLOCK 4096u

enum { OPERATIONS = 600, OPERATIONS_WITH_CALLS = 150, HELD = 16 };

static uint64_t seed;

static uint32_t pick(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

/* So that it does not take all processors from those who work. */
static void pause_at_times(unsigned i)
{
    if (i % 2048 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static uint64_t nonsense(void)
{
    static const uint64_t likely[] = {0, 1, 2, 3, UINT64_MAX, UINT32_MAX, WORD_RETIRED, UINT64_C(1) << 63};

    return pick(3) ? (uint64_t)pick(UINT32_MAX) << 32 | pick(UINT32_MAX) : likely[pick(8)];
}

static struct memclient_heap *heap_new(struct memclient_context *ctx)
{
    const uint64_t sizes[] = {BLOCK, 64};
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap;

    options.block_sizes = sizes;
    options.n_block_sizes = 2;
    options.slab_size = 64 * BLOCK;
    options.slabs_max = 20;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    return heap;
}

struct start {
    char socket[200];
    struct memclient_token token;
    unsigned part;
};

/* ---- who lies ---------------------------------------------------------------------------------------------------- */

enum { PART_DIRECTORY, PART_TOKENS, PART_MEMBERS, PART_WORDS, PARTS };

/* Lies about tokens cost each operation many calls to the broker, so fewer operations meet as many lies. */
static unsigned operations_of(unsigned part)
{
    return part == PART_TOKENS || part == PART_MEMBERS ? OPERATIONS_WITH_CALLS : OPERATIONS;
}

/* Tokens that open something, but not what they should. */
static void prepare_tokens(struct memclient_context *ctx, struct memclient_token *tokens, unsigned n)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *buf;

    for (unsigned i = 0; i < n; i++) {
        CHECK_DONE(memclient_alloc(ctx, i % 2 ? 64 : 2 * MIB, NULL, &buf));
        options.rights = i % 3 ? 0 : MEMCLIENT_READ;
        CHECK_DONE(memclient_share(buf, &options, &tokens[i]));
        if (i % 4 == 3)
            memclient_buffer_unref(buf);
    }
}

static void lie_once(struct heap_control *control, unsigned part, const struct memclient_token *tokens)
{
    unsigned number = pick(pick(4) ? 24 : HEAP_SLABS), member = 1 + pick(pick(4) ? 8 : HEAP_MEMBERS - 1);
    struct slab_entry *slab = &control->slabs[number];

    switch (part) {
    case PART_DIRECTORY:
        slab->class = pick(2) ? pick(3) : nonsense();
        __atomic_store_n(&slab->word, pick(2) ? entry_make(pick(4), pick(1024), pick(3)) : nonsense(),
                         __ATOMIC_SEQ_CST);
        break;
    case PART_TOKENS:
        slab->writing = pick(2) ? tokens[pick(8)] : control->slabs[pick(8)].writing;
        slab->class = pick(2);
        __atomic_store_n(&slab->word, entry_make(ENTRY_LIVE, 0, pick(4)), __ATOMIC_SEQ_CST);
        break;
    case PART_MEMBERS:
        control->members[member].queue = tokens[pick(8)];
        __atomic_store_n(&control->members[member].word,
                         pick(2) ? entry_make(pick(4), pick(1024), pick(3)) : nonsense(), __ATOMIC_SEQ_CST);
        break;
    default:
        ((uint64_t *)(void *)&control->geometry)[pick(sizeof(control->geometry) / 8)] = nonsense();
    }
}

/* The words and hints of a slab, and its head, but not the blocks, which belong to others. */
static void lie_in_slabs(struct memclient_context *ctx, const struct heap_control *control)
{
    struct memclient_buffer *buf;
    uint64_t *words;
    uint64_t from, n;
    void *p;

    if (memclient_open_token(ctx, &control->slabs[0].writing, 0, &buf) < 0)
        return;
    CHECK_DONE(memclient_map(buf, NULL, &p));
    from = 64 * BLOCK;
    n = (memclient_buffer_bytes(buf) - from) / 8;
    words = (void *)((char *)p + from);
    for (unsigned i = 1;; i++) {
        pause_at_times(i);
        __atomic_store_n(&words[pick((uint32_t)n)], pick(2) ? word_make(pick(4), pick(4) * 341, pick(4)) : nonsense(),
                         __ATOMIC_SEQ_CST);
    }
}

static void lie(int channel, void *context)
{
    const struct start *start = context;
    struct memclient_context *ctx = broker_connect_in_child(start->socket);
    struct memclient_token tokens[8];
    struct heap_control *control;
    struct memclient_buffer *buf;
    void *p;

    seed = 7 + start->part;
    prepare_tokens(ctx, tokens, 8);
    CHECK_DONE(memclient_open_token(ctx, &start->token, 0, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    control = p;
    tell(channel);
    if (start->part == PART_WORDS)
        lie_in_slabs(ctx, control);
    for (unsigned i = 1;; i++) {
        pause_at_times(i);
        lie_once(control, start->part, tokens);
    }
}

/* ---- who works --------------------------------------------------------------------------------------------------- */

/* Of the block that was shared last. */
static uint64_t shared_generation;

static void *work_on(struct memclient_heap *heap, void *held)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;
    struct memclient_block_token token;
    struct memclient_block block;
    void *p = NULL;

    switch (pick(12)) {
    case 0:
        (void)memclient_heap_sweep(heap);
        return held;
    case 1:
        CHECK_DONE(memclient_heap_query(heap, &info));
        return held;
    case 2:
        block = (struct memclient_block){.position = nonsense(), .generation = nonsense()};
        if (pick(2))
            block = (struct memclient_block){(uint64_t)pick(4) << 48 | pick(100), shared_generation ^ pick(4)};
        if (memclient_block_take(heap, &block, &p) < 0)
            return held;
        memset(p, 1, 64);
        return held;
    case 3:
        if (!held || memclient_block_share(heap, held, pick(2) ? 0 : pick(9), &token) < 0)
            return held;
        shared_generation = token.block.generation;
        return memclient_block_open(heap, &token, &p) < 0 ? NULL : p;
    case 4:
        if (!pick(8))
            (void)memclient_heap_trim(heap);
        return held;
    default:
        break;
    }
    if (held) {
        memset(held, 2, 64);
        (void)memclient_heap_free(heap, held);
        return NULL;
    }
    if (memclient_heap_alloc(heap, pick(2) ? 64 : BLOCK, &p) < 0)
        return NULL;
    memset(p, 3, 64);
    return p;
}

/* Whatever the words and the directory say of a block meanwhile, its memory is there until it is freed or given. */
static void work(int channel, void *context)
{
    const struct start *start = context;
    struct memclient_context *ctx = broker_connect_in_child(start->socket);
    struct memclient_heap *heap, *again;
    unsigned n = operations_of(start->part);
    void *held[HELD] = {NULL};
    int r;

    CHECK_DONE(memclient_heap_open_token(ctx, &start->token, &heap));
    tell(channel);
    hear(channel); /* the other one has begun */
    seed = 1 + start->part;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = pick(HELD);

        held[at] = work_on(heap, held[at]);
        if (i % (n / 3) == n / 3 - 1) {
            r = memclient_heap_open_token(ctx, &start->token, &again);
            CHECK(r <= 0);
            if (!r)
                memclient_heap_close(again);
        }
    }
    memclient_heap_close(heap);
    memclient_context_close(ctx);
    tell(channel);
}

static void a_member_lies_about(unsigned part)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx);
    struct start start = {.part = part};
    struct child victim, liar;
    void *p;

    (void)snprintf(start.socket, sizeof(start.socket), "%s", broker->socket);
    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    assert_done(memclient_heap_share(heap, NULL, &start.token));
    child_start(&victim, work, &start);
    child_hear(&victim);
    child_start(&liar, lie, &start);
    child_hear(&liar);
    child_tell(&victim);
    child_hear(&victim);
    child_finish(&victim);
    child_kill(&liar);
    memclient_heap_close(heap);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void nonsense_in_the_directory_harms_nobody(void **state)
{
    a_member_lies_about(PART_DIRECTORY);
}

static void tokens_of_other_memory_harm_nobody(void **state)
{
    a_member_lies_about(PART_TOKENS);
}

static void nonsense_about_members_harms_nobody(void **state)
{
    a_member_lies_about(PART_MEMBERS);
}

static void nonsense_in_words_and_hints_harms_nobody(void **state)
{
    a_member_lies_about(PART_WORDS);
}

static void nonsense_in_the_geometry_harms_nobody(void **state)
{
    a_member_lies_about(PARTS);
}

/* ---- a reader that lies ------------------------------------------------------------------------------------------ */

static void lie_in_queue(int channel, void *context)
{
    const struct start *start = context;
    struct memclient_context *ctx = broker_connect_in_child(start->socket);
    struct memclient_heap *heap;
    struct memclient_buffer *buf;
    struct heap_queue *queue;
    void *p;

    CHECK_DONE(memclient_heap_open_token(ctx, &start->token, &heap));
    CHECK_DONE(memclient_open_token(ctx, &start->token, 0, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    queue = p;
    seed = 3;
    tell(channel);
    for (unsigned i = 1;; i++) {
        unsigned at = pick(HEAP_QUEUE_ENTRIES);

        pause_at_times(i);
        __atomic_store_n(&queue->entries[at], pick(8) ? return_make(pick(2), pick(64), pick(4)) : nonsense(),
                         __ATOMIC_SEQ_CST);
        if (!pick(64))
            __atomic_store_n(&queue->head, queue->tail + pick(UINT32_MAX), __ATOMIC_SEQ_CST);
        if (!pick(1000))
            __atomic_store_n(&queue->tail, nonsense(), __ATOMIC_SEQ_CST);
        if (!pick(1000))
            queue->number = pick(2000);
    }
}

static void a_reader_frees_nothing_but_its_own(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx);
    struct memclient_block_token token;
    struct start start = {.part = 0};
    uint64_t number, *blocks[64];
    struct child child;
    void *p;

    (void)snprintf(start.socket, sizeof(start.socket), "%s", broker->socket);
    assert_done(memclient_heap_invite(heap, &start.token, &number));
    child_start(&child, lie_in_queue, &start);
    child_hear(&child);
    for (unsigned i = 0; i < 64; i++) {
        assert_done(memclient_heap_alloc(heap, BLOCK, &p));
        blocks[i] = p;
        *blocks[i] = i;
    }
    for (unsigned i = 0; i < 32; i++)
        assert_done(memclient_block_share(heap, blocks[2 * i], number, &token));
    for (unsigned i = 0; i < 500; i++) {
        assert_done(memclient_heap_sweep(heap));
        assert_done(memclient_heap_alloc(heap, BLOCK, &p));
        *(uint64_t *)p = UINT64_MAX;
        for (unsigned k = 1; k < 64; k += 2)
            assert_int_equal(*blocks[k], k);
        assert_done(memclient_heap_free(heap, p));
    }
    child_kill(&child);
    assert_done(memclient_heap_sweep(heap));
    for (unsigned k = 1; k < 64; k += 2)
        assert_done(memclient_heap_free(heap, blocks[k]));
    memclient_heap_close(heap);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(nonsense_in_the_directory_harms_nobody), at_broker(tokens_of_other_memory_harm_nobody),
        at_broker(nonsense_about_members_harms_nobody),    at_broker(nonsense_in_words_and_hints_harms_nobody),
        at_broker(nonsense_in_the_geometry_harms_nobody),  at_broker(a_reader_frees_nothing_but_its_own),
    };
    return test_run(tests, NULL, NULL);
}
