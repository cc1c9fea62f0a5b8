/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lies about a heap that are aimed at something: one at a time, by a member that writes what members share. Random
 * ones are in test-heap-garbage.c. What others have that is none of the heap's stays as it is, mapped and named, and
 * they spend little time on it, which is counted in what they look at and ask.
 */
#include "tests/integration/clients.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <memclient/heap.h>

#include "heap/block.h"
#include "heap/layout.h"

#define BLOCK 4096u

static struct memclient_heap *heap_new(struct memclient_context *ctx, const char *name, uint64_t block_size,
                                       uint64_t slab_size)
{
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap;

    options.block_sizes = &block_size;
    options.n_block_sizes = 1;
    options.slab_size = slab_size;
    options.slabs_max = 2;
    options.name = name;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    return heap;
}

/* Several in one process, whatever a test that failed has left. */
static const struct memclient_map_options anywhere = {.size = sizeof(anywhere), .flags = MEMCLIENT_MAP_ANYWHERE};

/* As a member, or a program that has the token, finds it. */
static void *map_token(struct memclient_context *ctx, const struct memclient_token *token,
                       struct memclient_buffer **buf)
{
    void *p;

    assert_done(memclient_open_token(ctx, token, 0, buf));
    assert_done(memclient_map(*buf, &anywhere, &p));
    return p;
}

static struct heap_control *map_control(struct memclient_context *ctx, struct memclient_heap *heap,
                                        struct memclient_buffer **buf)
{
    struct memclient_token token;

    assert_done(memclient_heap_share(heap, NULL, &token));
    return map_token(ctx, &token, buf);
}

static struct memclient_token token_of(struct memclient_buffer *buf)
{
    struct memclient_token token;

    assert_done(memclient_share(buf, NULL, &token));
    return token;
}

/* ---- memory that is none of the heap's --------------------------------------------------------------------------- */

struct victim {
    struct memclient_heap *heap;
    const uint64_t *own;
};

static void join_and_close(int channel, void *context)
{
    const struct victim *victim = context;
    void *p;

    (void)channel;
    CHECK_DONE(memclient_heap_alloc(victim->heap, BLOCK, &p));
    memclient_heap_close(victim->heap);
    CHECK(*victim->own == 7);
}

static uintptr_t map_own(struct memclient_context *ctx, struct memclient_buffer **buf)
{
    void *p;

    assert_done(memclient_alloc(ctx, BLOCK, NULL, buf));
    assert_done(memclient_map(*buf, &anywhere, &p));
    *(uint64_t *)p = 7;
    return (uintptr_t)p;
}

/*
 * The token of a slab leads to memory that would reach, if it were mapped there, just over what the child has behind
 * the slab: the kernel mostly puts one mapping right before or behind the last one.
 */
static void a_child_unmaps_nothing_but_slabs(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK);
    struct memclient_buffer *own[2], *control_buf, *large;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    struct victim victim = {.heap = heap};
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;
    uintptr_t before, slab, behind;
    void *p;

    before = map_own(ctx, &own[0]);
    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    assert_done(memclient_address_query(p, &where));
    slab = (uintptr_t)p - where.offset;
    behind = map_own(ctx, &own[1]);
    behind = before > slab ? before : behind;
    victim.own = (const void *)behind;
    assert_true(behind > slab && behind - slab < UINT64_C(1) << 30);
    assert_done(memclient_alloc(liar, behind - slab + BLOCK, NULL, &large));
    control->slabs[0].writing = token_of(large);
    child_run(join_and_close, &victim);
    memclient_buffer_unref(large);
    memclient_buffer_unref(control_buf);
    memclient_buffer_unref(own[0]);
    memclient_buffer_unref(own[1]);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A reader's entry leads to something else that this user may write. */
static void what_is_no_queue_is_not_written(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK);
    struct memclient_buffer *control_buf, *other;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    void *p;

    assert_done(memclient_alloc(ctx, sizeof(struct heap_queue), NULL, &other));
    assert_done(memclient_map(other, &anywhere, &p));
    pattern_write(p, sizeof(struct heap_queue), 3);
    for (unsigned number = 2; number < 6; number++) {
        control->members[number].queue = token_of(other);
        control->members[number].word = entry_make(ENTRY_READER, number % 2, number);
    }
    assert_done(memclient_heap_sweep(heap));
    assert_done(memclient_heap_sweep(heap));
    assert_true(pattern_holds(p, sizeof(struct heap_queue), 3));
    memclient_buffer_unref(other);
    memclient_buffer_unref(control_buf);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A queue that somebody has put something into, as the reader with that number has it. */
static struct heap_queue *queue_of(struct memclient_context *ctx, const struct heap_control *control, uint32_t number,
                                   struct memclient_buffer **buf)
{
    struct heap_queue *queue;
    void *p;

    assert_done(memclient_alloc(ctx, sizeof(*queue), NULL, buf));
    assert_done(memclient_map(*buf, &anywhere, &p));
    queue = p;
    queue->version = HEAP_VERSION;
    memcpy(queue->id, control->geometry.id, sizeof(queue->id));
    queue->number = number;
    queue->incarnation = 1;
    queue->magic = HEAP_QUEUE;
    queue->head = 3;
    return queue;
}

/* It leads to a queue, but to another reader's, heap's or version's. */
static void the_queue_of_another_reader_is_not_written(void **state)
{
    enum { ITS_OWN, OTHER_MAGIC, OTHER_VERSION, OTHER_NUMBER, OTHER_INCARNATION, OTHER_ID, QUEUES };
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK);
    struct memclient_buffer *control_buf, *bufs[QUEUES];
    struct heap_control *control = map_control(liar, heap, &control_buf);
    struct heap_queue *queues[QUEUES];

    for (uint32_t i = 0; i < QUEUES; i++)
        queues[i] = queue_of(liar, control, i + 2, &bufs[i]);
    queues[OTHER_MAGIC]->magic++;
    queues[OTHER_VERSION]->version++;
    queues[OTHER_NUMBER]->number++;
    queues[OTHER_INCARNATION]->incarnation++;
    queues[OTHER_ID]->id[15]++;
    for (uint32_t i = 0; i < QUEUES; i++) {
        control->members[i + 2].queue = token_of(bufs[i]);
        control->members[i + 2].word = entry_make(ENTRY_READER, 1, 1);
    }
    assert_done(memclient_heap_sweep(heap));
    assert_done(memclient_heap_sweep(heap));
    for (unsigned i = 0; i < QUEUES; i++) {
        assert_int_equal(queues[i]->tail, i == ITS_OWN ? 3 : 0);
        assert_int_equal(queues[i]->revoked, 0);
        memclient_buffer_unref(bufs[i]);
    }
    memclient_buffer_unref(control_buf);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What another version may have laid out otherwise, and geometry that no heap has, is opened by nobody. */
static void what_is_laid_out_otherwise_is_not_opened(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK), *opened = NULL;
    struct memclient_token token, invitation;
    struct memclient_buffer *bufs[2];
    struct heap_control *control = map_control(liar, heap, &bufs[0]);
    struct heap_queue *queue;
    uint64_t number;

    assert_done(memclient_heap_share(heap, NULL, &token));
    assert_done(memclient_heap_invite(heap, &invitation, &number));
    queue = map_token(liar, &invitation, &bufs[1]);
    control->version++;
    queue->version++;
    assert_refused(memclient_heap_open_token(ctx, &token, &opened), EPROTONOSUPPORT);
    assert_refused(memclient_heap_open_token(ctx, &invitation, &opened), EPROTONOSUPPORT);
    control->version = queue->version = HEAP_VERSION;
    control->geometry.n_classes = queue->n_classes = HEAP_CLASSES + 1;
    assert_refused(memclient_heap_open_token(ctx, &token, &opened), EBADMSG);
    assert_sentence("damaged");
    assert_refused(memclient_heap_open_token(ctx, &invitation, &opened), EBADMSG);
    control->geometry.n_classes = queue->n_classes = 1;
    control->geometry.classes[0].n_blocks = UINT64_MAX;
    assert_refused(memclient_heap_open_token(ctx, &token, &opened), EBADMSG);
    control->geometry.classes[0].n_blocks = 16;
    control->magic++;
    assert_refused(memclient_heap_open_token(ctx, &token, &opened), EBADMSG);
    assert_sentence("no heap");
    control->magic--;
    assert_done(memclient_heap_open_token(liar, &token, &opened));
    memclient_heap_close(opened);
    memclient_buffer_unref(bufs[0]);
    memclient_buffer_unref(bufs[1]);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void take_without_descriptors(int channel, void *context)
{
    const char *socket = context;
    struct memclient_context *ctx = broker_connect_in_child(socket);
    struct memclient_heap *heap;
    struct memclient_block block;
    struct rlimit limit;
    rlim_t before;
    int next;
    void *p;

    CHECK_DONE(memclient_heap_open_name(ctx, "few", &heap));
    tell(channel);
    CHECK(take_bytes(channel, &block, sizeof(block)));
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    before = limit.rlim_cur;
    /* so many are open, and it can still poll() them */
    next = dup(channel);
    CHECK(next > 0 && !close(next));
    limit.rlim_cur = (rlim_t)next;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    CHECK(memclient_block_take(heap, &block, &p) == -EMFILE);
    CHECK(strstr(memclient_error(), "ulimit -n"));
    limit.rlim_cur = before;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    CHECK_DONE(memclient_block_take(heap, &block, &p));
    memclient_heap_close(heap);
    memclient_context_close(ctx);
}

/* Why a slab cannot be had is told in its own words, though the entry behind it leads to none. */
static void of_several_slabs_the_one_that_is_wanted_says_why(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, "few", BLOCK, 16 * BLOCK);
    struct memclient_buffer *control_buf;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    struct memclient_block block;
    struct child child;
    void *p;

    child_start(&child, take_without_descriptors, broker->socket);
    child_hear(&child);
    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    control->slabs[1].class = HEAP_CLASSES;
    control->slabs[1].word = entry_make(ENTRY_LIVE, 0, 2);
    assert_done(memclient_block_give(heap, p, 0, &block));
    assert_true(pass_bytes(child.channel, &block, sizeof(block)));
    child_finish(&child);
    control->slabs[1].word = entry_make(ENTRY_FREE, 0, 4);
    memclient_buffer_unref(control_buf);
    assert_done(memclient_heap_destroy(heap));
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- the memory itself ------------------------------------------------------------------------------------------- */

/* Of what a member maps, another one cannot cut anything off, so that nobody gets SIGBUS. */
static void no_member_cuts_what_others_map(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK);
    struct memclient_token invitation;
    struct memclient_buffer *bufs[3];
    struct heap_control *control = map_control(liar, heap, &bufs[0]);
    uint64_t number;
    void *p;
    int fd;

    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    assert_done(memclient_heap_invite(heap, &invitation, &number));
    assert_done(memclient_open_token(liar, &control->slabs[0].writing, 0, &bufs[1]));
    assert_done(memclient_open_token(liar, &invitation, 0, &bufs[2]));
    for (unsigned i = 0; i < 3; i++) {
        assert_done(memclient_export_fd(bufs[i], MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
        assert_true(ftruncate(fd, 0) < 0);
        assert_int_equal(errno, EPERM);
        close(fd);
        memclient_buffer_unref(bufs[i]);
    }
    memset(p, 1, BLOCK);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Memory that can be cut is no slab. */
static void memory_of_others_is_no_slab(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK);
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;
    struct memclient_buffer *control_buf, *foreign;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    int fd = memfd_create("foreign", MFD_CLOEXEC);
    struct slab_head head = {
        .magic = HEAP_SLAB, .version = HEAP_VERSION, .block_size = BLOCK, .n_blocks = 16, .incarnation = 1};

    assert_true(fd >= 0);
    memcpy(head.id, control->geometry.id, sizeof(head.id));
    assert_ok(ftruncate(fd, MIB));
    assert_int_equal(pwrite(fd, &head, sizeof(head), 16 * BLOCK), sizeof(head));
    assert_done(memclient_adopt_fd(liar, fd, &foreign));
    control->slabs[0].writing = token_of(foreign);
    control->slabs[0].word = entry_make(ENTRY_LIVE, 0, 1);
    assert_done(memclient_heap_query(heap, &info));
    assert_int_equal(info.slabs, 0);
    memclient_buffer_unref(foreign);
    memclient_buffer_unref(control_buf);
    close(fd);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A slab would be named so. Nor is the name unbound for a member that is said to have died in making that slab. */
static void other_buffers_keep_their_names(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, "cam", BLOCK, 16 * BLOCK);
    struct memclient_buffer *control_buf, *own[2], *found;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    const char *names[] = {"cam/0", "cam/1"};
    void *p;

    for (unsigned i = 0; i < 2; i++) {
        assert_done(memclient_alloc(ctx, BLOCK, NULL, &own[i]));
        assert_done(memclient_bind_name(own[i], names[i], NULL));
    }
    assert_refused(memclient_heap_alloc(heap, BLOCK, &p), EEXIST);
    assert_sentence("cam/0");
    control->slabs[1].word = entry_make(ENTRY_BUSY, 9, 0);
    control->members[9].word = entry_make(ENTRY_LIVE, 0, 0);
    assert_done(memclient_heap_sweep(heap));
    for (unsigned i = 0; i < 2; i++) {
        assert_done(memclient_open_name(ctx, names[i], 0, &found));
        assert_int_equal(memclient_buffer_id(found), memclient_buffer_id(own[i]));
        memclient_buffer_unref(found);
    }
    assert_done(memclient_unbind_name(ctx, names[0]));
    assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    control->slabs[1].word = entry_make(ENTRY_LIVE, 9, 0);
    memclient_buffer_unref(control_buf);
    assert_done(memclient_heap_destroy(heap));
    assert_done(memclient_unbind_name(ctx, names[1]));
    memclient_buffer_unref(own[0]);
    memclient_buffer_unref(own[1]);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

#define SMALL 64u

/*
 * All blocks are taken, and all hints say that they are not. How many were believed, the bitmap tells, since each is
 * noted there when it is looked at. The words of 131 072 blocks fill 2048 words of the bitmap.
 */
static void hints_that_lie_are_not_believed_for_long(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    const uint64_t n = 131072, words = slab_hint_words(n);
    struct memclient_heap *heap = heap_new(ctx, NULL, SMALL, n * SMALL);
    struct memclient_buffer *control_buf, *slab_buf;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;
    uint64_t *word, *hints, believed = 0;
    void *p, *blocks;

    assert_done(memclient_heap_alloc(heap, SMALL, &p));
    blocks = map_token(liar, &control->slabs[0].writing, &slab_buf);
    word = (void *)((char *)blocks + n * SMALL + sizeof(struct slab_head));
    hints = word + n;
    for (uint64_t i = 0; i < n; i++)
        word[i] = word_make(1, 0, (unsigned)memclient_heap_member(heap));
    memset(hints, 0, words * sizeof(*hints));
    assert_int_equal(block_alloc(heap, 0, &p), 0);
    for (uint64_t i = 0; i < words; i++)
        believed += (unsigned)__builtin_popcountll(hints[i]);
    assert_true(believed > 0 && believed <= 4 * words);
    /* one that is free is found nevertheless, whatever the hints say */
    word[n - 1] = word_make(2, 0, 0);
    memset(hints, 0, words * sizeof(*hints));
    assert_done(memclient_heap_alloc(heap, SMALL, &p));
    assert_done(memclient_address_query(p, &where));
    assert_int_equal(where.buffer_id, memclient_buffer_id(slab_buf));
    assert_int_equal(where.offset, (n - 1) * SMALL);
    memclient_buffer_unref(slab_buf);
    memclient_buffer_unref(control_buf);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

enum { LIE_ENDED_SLABS, LIE_OTHER_SLABS, LIE_BUSY_SLABS, LIE_ENDED_QUEUES, LIE_OTHER_QUEUES, LIES };

static void lie_everywhere(struct heap_control *control, unsigned lie, const struct memclient_token *ended,
                           const struct memclient_token *other, uint32_t incarnation)
{
    const struct memclient_token *token = lie == LIE_ENDED_SLABS || lie == LIE_ENDED_QUEUES ? ended : other;

    for (unsigned number = 1; lie <= LIE_BUSY_SLABS && number < HEAP_SLABS; number++) {
        control->slabs[number].class = 0;
        control->slabs[number].writing = *token;
        control->slabs[number].word =
            lie == LIE_BUSY_SLABS ? entry_make(ENTRY_BUSY, 900, incarnation) : entry_make(ENTRY_LIVE, 0, incarnation);
    }
    if (lie == LIE_BUSY_SLABS)
        control->members[900].word = entry_make(ENTRY_LIVE, 0, incarnation);
    for (unsigned number = 2; lie > LIE_BUSY_SLABS && number < HEAP_MEMBERS; number++) {
        control->members[number].queue = *token;
        control->members[number].word = entry_make(ENTRY_READER, 0, incarnation);
    }
}

/* A thousand entries that lead to nothing cost who allocates some dozens of calls, and not a thousand or several. */
static void lies_cost_few_calls(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, "lies", BLOCK, BLOCK);
    struct memclient_token ended, other;
    struct memclient_buffer *control_buf, *buf;
    struct heap_control *control = map_control(liar, heap, &control_buf);
    uint32_t incarnation = 1;
    void *p;

    assert_done(memclient_alloc(liar, sizeof(struct heap_queue), NULL, &buf));
    ended = token_of(buf);
    memclient_buffer_unref(buf);
    assert_done(memclient_alloc(liar, sizeof(struct heap_queue), NULL, &buf));
    other = token_of(buf);
    for (unsigned i = 0; i < 2; i++)
        assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    for (unsigned lie = 0; lie < LIES; lie++)
        for (unsigned i = 0; i < 3; i++) {
            uint64_t before;

            lie_everywhere(control, lie, &ended, &other, ++incarnation * 2);
            before = broker_status(liar).requests;
            assert_refused(memclient_heap_alloc(heap, BLOCK, &p), ENOMEM);
            assert_in_range(broker_status(liar).requests - before, 1, 200);
        }
    /* the last entry has its turn, though all others are written again each time */
    for (unsigned lie = LIE_ENDED_SLABS; lie <= LIE_ENDED_QUEUES; lie++) {
        uint64_t *last =
            lie == LIE_ENDED_QUEUES ? &control->members[HEAP_MEMBERS - 1].word : &control->slabs[HEAP_SLABS - 1].word;

        for (unsigned i = 0; lie != LIE_OTHER_SLABS && i < 40; i++) {
            uint64_t kept = *last;

            lie_everywhere(control, lie, &ended, &other, ++incarnation * 2);
            if (i)
                *last = kept;
            assert_refused(memclient_heap_alloc(heap, BLOCK, &p), ENOMEM);
        }
        assert_true(lie == LIE_OTHER_SLABS || entry_kind(*last) == ENTRY_FREE);
    }
    /* who sweeps is done with all that can be done */
    lie_everywhere(control, LIE_ENDED_QUEUES, &ended, &other, ++incarnation * 2);
    assert_done(memclient_heap_sweep(heap));
    for (unsigned number = 2; number < HEAP_MEMBERS; number++)
        assert_int_equal(entry_kind(control->members[number].word), ENTRY_FREE);
    memclient_buffer_unref(buf);
    memclient_buffer_unref(control_buf);
    assert_done(memclient_heap_destroy(heap));
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Queues that say that they are full, of a heap of a few blocks: who allocates looks into one of them, and goes on. */
static void full_queues_are_looked_into_by_turns(void **state)
{
    enum { QUEUES = 12 };
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *liar = broker_connect(broker);
    struct memclient_heap *heap = heap_new(ctx, NULL, BLOCK, 16 * BLOCK);
    struct memclient_buffer *control_buf, *bufs[QUEUES];
    struct heap_control *control = map_control(liar, heap, &control_buf);
    struct heap_queue *queues[QUEUES];
    uint64_t looked = 0;
    void *p;

    for (unsigned i = 0; i < 32; i++)
        assert_done(memclient_heap_alloc(heap, BLOCK, &p));
    for (uint32_t i = 0; i < QUEUES; i++) {
        queues[i] = queue_of(liar, control, i + 2, &bufs[i]);
        queues[i]->head = HEAP_QUEUE_ENTRIES;
        control->members[i + 2].queue = token_of(bufs[i]);
        control->members[i + 2].word = entry_make(ENTRY_READER, 1, 1);
    }
    assert_refused(memclient_heap_alloc(heap, BLOCK, &p), ENOMEM);
    for (unsigned i = 0; i < QUEUES; i++)
        looked += queues[i]->tail;
    assert_in_range(looked, 32, 2 * (HEAP_QUEUE_ENTRIES + 32));
    /* the last one has its turn, though the others are full again each time */
    for (unsigned i = 0; i < QUEUES; i++) {
        for (unsigned k = 0; k < QUEUES - 1; k++)
            queues[k]->head = queues[k]->tail + HEAP_QUEUE_ENTRIES;
        assert_refused(memclient_heap_alloc(heap, BLOCK, &p), ENOMEM);
    }
    assert_int_equal(queues[QUEUES - 1]->tail, HEAP_QUEUE_ENTRIES);
    for (unsigned i = 0; i < QUEUES; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_buffer_unref(control_buf);
    memclient_heap_close(heap);
    memclient_context_close(liar);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_child_unmaps_nothing_but_slabs),
        at_broker(what_is_no_queue_is_not_written),
        at_broker(the_queue_of_another_reader_is_not_written),
        at_broker(what_is_laid_out_otherwise_is_not_opened),
        at_broker(of_several_slabs_the_one_that_is_wanted_says_why),
        at_broker(no_member_cuts_what_others_map),
        at_broker(memory_of_others_is_no_slab),
        at_broker(other_buffers_keep_their_names),
        at_broker(hints_that_lie_are_not_believed_for_long),
        at_broker(lies_cost_few_calls),
        at_broker(full_queues_are_looked_into_by_turns),
    };
    return test_run(tests, NULL, NULL);
}
