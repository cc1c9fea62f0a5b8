/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps used by threads together: each block has one owner at a time, whatever else goes on. */
#include "tests/integration/heaps.h"

#include <pthread.h>

#define THREADS 4

/* ---- allocated and freed ----------------------------------------------------------------------------------------- */

#define ROUNDS 20000

static struct memclient_heap *shared;

/* A block that two threads had would have the other one's mark. */
static void *allocate_and_free(void *arg)
{
    uint64_t mark = (uintptr_t)arg, *held[8] = {NULL};
    void *p;

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned at = i * 7 % 8;

        if (held[at]) {
            if (*held[at] != mark || memclient_heap_free(shared, held[at]) < 0)
                return (void *)"was given twice";
            held[at] = NULL;
        } else {
            if (memclient_heap_alloc(shared, 64, &p) < 0)
                return (void *)"no block";
            held[at] = p;
            *held[at] = mark;
        }
    }
    for (unsigned at = 0; at < 8; at++)
        if (held[at] && (*held[at] != mark || memclient_heap_free(shared, held[at]) < 0))
            return (void *)"was given twice";
    return NULL;
}

static void join_all(pthread_t *threads, unsigned n)
{
    const char *first = NULL;
    void *failure;

    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        first = first ? first : failure;
    }
    if (first)
        fail_msg("%s", first);
}

static void threads_never_get_the_same_block(void **state)
{
    /* just enough blocks, so that they take each other's hints */
    struct heap_test test = heap_begin_of_size(64, 8 * THREADS * 64, 1);
    pthread_t threads[THREADS];

    shared = test.heap;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + 1)), 0);
    join_all(threads, THREADS);
    assert_int_equal(info_of(shared).blocks_free, 8 * THREADS);
    heap_end(&test);
}

/* ---- handed on, while slabs come and go -------------------------------------------------------------------------- */

#define GIVERS 3
#define GIVES  800
#define TAKERS 2

/* A block that somebody has given away, for whoever is the next to look. */
struct box {
    pthread_cond_t changed;
    bool full;
    struct memclient_block_token token;
    uint64_t mark;
};

static struct bustle {
    struct memclient_heap *heap, *reader;
    uint64_t reader_number;
    pthread_mutex_t lock; /* of what follows */
    struct box for_members, for_reader;
    unsigned givers; /* that have not ended */
} bustle;

/* Waits until it is empty; or only looks: false. */
static bool box_put(struct box *box, bool waits, const struct memclient_block_token *token, uint64_t mark)
{
    bool put;

    pthread_mutex_lock(&bustle.lock);
    while (waits && box->full)
        pthread_cond_wait(&box->changed, &bustle.lock);
    put = !box->full;
    if (put) {
        box->full = true;
        box->token = *token;
        box->mark = mark;
        pthread_cond_broadcast(&box->changed);
    }
    pthread_mutex_unlock(&bustle.lock);
    return put;
}

/* Waits until it is full. False: nobody gives any more. */
static bool box_take(struct box *box, struct memclient_block_token *token, uint64_t *mark)
{
    bool taken;

    pthread_mutex_lock(&bustle.lock);
    while (!box->full && bustle.givers)
        pthread_cond_wait(&box->changed, &bustle.lock);
    taken = box->full;
    if (taken) {
        *token = box->token;
        *mark = box->mark;
        box->full = false;
        pthread_cond_broadcast(&box->changed);
    }
    pthread_mutex_unlock(&bustle.lock);
    return taken;
}

/* Fills slabs and empties them, and gives one block of six away. NULL, or what is wrong. */
static const char *bustle_give_one(unsigned round, uint64_t mark)
{
    bool to_reader = round % 2;
    struct memclient_block_token token;
    void *blocks[6], *p;

    for (unsigned i = 0; i < 6; i++) {
        if (memclient_heap_alloc(bustle.heap, i % 3 ? SMALL : BLOCK, &blocks[i]) < 0)
            return "no block";
        *(uint64_t *)blocks[i] = mark;
    }
    for (unsigned i = 1; i < 6; i++)
        if (*(uint64_t *)blocks[i] != mark || memclient_heap_free(bustle.heap, blocks[i]) < 0)
            return "a block is another thread's, too";
    if (memclient_block_share(bustle.heap, blocks[0], to_reader ? bustle.reader_number : 0, &token) < 0)
        return "it cannot be given";
    /* what a reader was given cannot be taken back */
    if (box_put(to_reader ? &bustle.for_reader : &bustle.for_members, to_reader, &token, mark))
        return NULL;
    if (memclient_block_take(bustle.heap, &token.block, &p) < 0 || p != blocks[0] ||
        memclient_heap_free(bustle.heap, p) < 0)
        return "it cannot be taken back";
    return NULL;
}

/* Takes slabs away under those who work. */
static const char *bustle_trim(void)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;

    if (memclient_heap_trim(bustle.heap) < 0 || memclient_heap_query(bustle.heap, &info) < 0 || info.members != 1 ||
        info.readers != 1)
        return "it cannot be trimmed";
    return NULL;
}

static void *bustle_give(void *arg)
{
    const char *failure = NULL;

    for (unsigned i = 0; i < GIVES && !failure; i++) {
        failure = bustle_give_one(i, (uint64_t)(uintptr_t)arg << 32 | i);
        if (!failure && i % 32 == 0)
            failure = bustle_trim();
    }
    pthread_mutex_lock(&bustle.lock);
    bustle.givers--;
    pthread_cond_broadcast(&bustle.for_members.changed);
    pthread_cond_broadcast(&bustle.for_reader.changed);
    pthread_mutex_unlock(&bustle.lock);
    return (void *)(uintptr_t)failure;
}

/* As a member, or as the reader. One who fails goes on, since others wait for it. */
static void *bustle_take_all(struct memclient_heap *heap, struct box *box)
{
    struct memclient_block_token token;
    const char *failure = NULL;
    uint64_t mark;
    void *p, *q;

    while (box_take(box, &token, &mark)) {
        if (memclient_block_open(heap, &token, &p) < 0)
            failure = "it cannot be taken";
        else if (memclient_block_open(heap, &token, &q) >= 0)
            failure = "it is taken twice";
        else if (*(const uint64_t *)p != mark || memclient_heap_free(heap, p) < 0)
            failure = "what was taken is another block";
    }
    return (void *)(uintptr_t)failure;
}

static void *bustle_take(void *unused)
{
    return bustle_take_all(bustle.heap, &bustle.for_members);
}

static void *bustle_take_as_reader(void *unused)
{
    return bustle_take_all(bustle.reader, &bustle.for_reader);
}

static void threads_hand_blocks_on_while_slabs_come_and_go(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    struct memclient_context *reads = broker_connect(test.broker);
    pthread_t threads[GIVERS + TAKERS + 1];
    struct memclient_token invitation;
    unsigned n = 0;

    bustle = (struct bustle){.heap = test.heap,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .for_members.changed = PTHREAD_COND_INITIALIZER,
                             .for_reader.changed = PTHREAD_COND_INITIALIZER,
                             .givers = GIVERS};
    assert_done(memclient_heap_invite(test.heap, &invitation, &bustle.reader_number));
    assert_done(memclient_heap_open_token(reads, &invitation, &bustle.reader));
    for (uintptr_t i = 0; i < GIVERS; i++)
        assert_int_equal(pthread_create(&threads[n++], NULL, bustle_give, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_create(&threads[n++], NULL, bustle_take, NULL), 0);
    assert_int_equal(pthread_create(&threads[n++], NULL, bustle_take_as_reader, NULL), 0);
    join_all(threads, n);
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).blocks_owned, 0);
    assert_int_equal(info_of(test.heap).blocks_given, 0);
    memclient_heap_close(bustle.reader);
    memclient_context_close(reads);
    heap_end(&test);
}

/* ---- apart ------------------------------------------------------------------------------------------------------- */

#define APART 16

static pthread_barrier_t all_have_one;

static void *allocate_one(void *block)
{
    int r = memclient_heap_alloc(shared, BLOCK, block);

    pthread_barrier_wait(&all_have_one);
    return r < 0 ? (void *)"no block" : NULL;
}

/* Not all in the same 64, whose books lie in the same cache lines. */
static void threads_get_blocks_that_lie_apart(void **state)
{
    struct heap_test test = heap_begin_of_size(BLOCK, 256 * BLOCK, 1);
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;
    uint64_t parts = 0;
    pthread_t threads[APART];
    void *blocks[APART];

    shared = test.heap;
    assert_int_equal(pthread_barrier_init(&all_have_one, NULL, APART), 0);
    for (unsigned i = 0; i < APART; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_one, &blocks[i]), 0);
    join_all(threads, APART);
    for (unsigned i = 0; i < APART; i++) {
        assert_done(memclient_address_query(blocks[i], &where));
        parts |= UINT64_C(1) << where.offset / BLOCK / 64;
    }
    assert_true(parts & (parts - 1));
    pthread_barrier_destroy(&all_have_one);
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(threads_never_get_the_same_block),
        at_broker(threads_hand_blocks_on_while_slabs_come_and_go),
        at_broker(threads_get_blocks_that_lie_apart),
    };
    return test_run(tests, NULL, NULL);
}
