/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I5, the sum is exact: several processes do thousands of random things with buffers of their own and of each other,
 * some are killed in the middle, and after every batch the broker proves its accounts.
 *
 * The seed is printed; MEMORYD_TEST_SEED repeats a run, as far as processes that race can be repeated.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WORKERS    4
#define BATCHES    12
#define OPERATIONS 400 /* of each worker in a batch */
#define HELD       24
#define BOARD      64

/* What workers leave for each other. A torn token is as good a test as a whole one. */
struct board {
    struct memclient_token tokens[BOARD];
    uint64_t ids[BOARD];
};

struct worker {
    const char *socket;
    struct board *board;
    uint64_t random;
    struct memclient_context *ctx;
    struct memclient_buffer *bufs[HELD];
    struct memclient_reservation *reservations[4];
    unsigned long refused;
};

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static uint64_t below(struct worker *w, uint64_t n)
{
    return next(&w->random) % n;
}

/* Refusals are part of the game, broken connections and broken protocols are not. */
static bool went(struct worker *w, int r)
{
    static const int fine[] = {EINVAL,      ENOMEM,      EDQUOT,     ENOENT,     EEXIST,        EACCES,      EROFS,
                               EBUSY,       ENXIO,       ESTALE,     EBADMSG,    EREMOTE,       EOVERFLOW,   EFAULT,
                               EKEYEXPIRED, EKEYREVOKED, EADDRINUSE, EOPNOTSUPP, EADDRNOTAVAIL, EKEYREJECTED};

    if (r >= 0)
        return true;
    w->refused++;
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        if (r == -fine[i])
            return false;
    fprintf(stderr, "worker %d: %s (%s)\n", getpid(), memclient_error(), strerror(-r));
    child_give_up("an error that no operation may have", __FILE__, __LINE__);
}

static void put(struct worker *w, struct memclient_buffer *buf)
{
    size_t i = below(w, HELD);

    memclient_buffer_unref(w->bufs[i]);
    w->bufs[i] = buf;
}

static void make_some(struct worker *w)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[4];
    uint64_t sizes[4];
    size_t n = 1 + below(w, 4);

    options.flags = below(w, 3) == 0 ? MEMCLIENT_ALLOC_PUBLISHABLE : 0;
    if (below(w, 4) == 0)
        options.flags |= MEMCLIENT_ALLOC_NO_HOME;
    if (below(w, 2) == 0)
        options.pool = "tight";
    for (size_t i = 0; i < n; i++)
        sizes[i] = 1 + below(w, 600 * KIB);
    if (went(w, memclient_alloc_many(w->ctx, n, sizes, &options, bufs)))
        for (size_t i = 0; i < n; i++)
            put(w, bufs[i]);
}

static void map_and_write(struct worker *w, struct memclient_buffer *buf)
{
    void *p;

    if (!went(w, memclient_map(buf, NULL, &p)))
        return;
    if (memclient_buffer_rights(buf) & MEMCLIENT_WRITE && !(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED))
        *(volatile char *)p = 1;
    if (below(w, 4) > 0)
        went(w, memclient_unmap(w->ctx, p, 0));
}

static void share(struct worker *w, struct memclient_buffer *buf)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    size_t i = below(w, BOARD);

    options.rights = below(w, 2) ? 0 : MEMCLIENT_READ;
    if (below(w, 3) == 0) {
        options.flags = MEMCLIENT_TOKEN_KEEPING;
        options.uses = 1 + (uint32_t)below(w, 2);
        options.expiry_ms = 1 + below(w, 300);
    }
    if (went(w, memclient_share(buf, &options, &w->board->tokens[i])))
        w->board->ids[i] = memclient_buffer_id(buf);
}

static void pass_on(struct worker *w, struct memclient_buffer *buf)
{
    struct memclient_buffer *again;
    int fd;

    if (!went(w, memclient_export_fd(buf, 0, &fd)))
        return;
    if (below(w, 2) && went(w, memclient_import_fd(w->ctx, fd, &again)))
        put(w, again);
    close(fd);
}

static void name(struct worker *w, struct memclient_buffer *buf)
{
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_buffer *found;
    char text[16];

    snprintf(text, sizeof(text), "n/%u", (unsigned)below(w, 20));
    switch (below(w, 3)) {
    case 0:
        options.policy = (unsigned)below(w, 3);
        options.keep_ms = options.policy == MEMCLIENT_NAME_KEEP_FOR ? 1 + below(w, 200) : 0;
        went(w, memclient_bind_name(buf, text, &options));
        break;
    case 1:
        went(w, memclient_unbind_name(w->ctx, text));
        break;
    default:
        if (went(w, memclient_open_name(w->ctx, text, 0, &found)))
            put(w, found);
        break;
    }
}

static void reserve(struct worker *w)
{
    struct memclient_reservation **slot = &w->reservations[below(w, 4)];

    if (*slot != NULL) {
        if (went(w, memclient_reservation_release(*slot)))
            *slot = NULL;
    } else {
        went(w, memclient_reserve(w->ctx, (1 + below(w, 64)) * page_size(), NULL, slot));
    }
}

static void something(struct worker *w)
{
    struct memclient_buffer *buf = w->bufs[below(w, HELD)], *found;
    size_t i = below(w, BOARD);

    switch (below(w, 13)) {
    case 0:
    case 1:
        make_some(w);
        return;
    case 2:
        if (went(w, memclient_open_token(w->ctx, &w->board->tokens[i], 0, &found)))
            put(w, found);
        return;
    case 3:
        put(w, NULL);
        return;
    case 4:
        reserve(w);
        return;
    default:
        break;
    }
    if (buf == NULL)
        return;
    switch (below(w, 12)) {
    case 0:
    case 1:
    case 2:
        map_and_write(w, buf);
        break;
    case 3:
    case 4:
        share(w, buf);
        break;
    case 5:
    case 6:
        pass_on(w, buf);
        break;
    case 7:
    case 8:
        name(w, buf);
        break;
    case 9:
        went(w, memclient_discard(buf, 0, memclient_buffer_granule(buf)));
        break;
    case 10:
        went(w, memclient_publish(buf, 0));
        break;
    case 11:
        went(w, memclient_move(buf, (uint32_t)below(w, 2)));
        break;
    default:
        went(w, below(w, 2) ? memclient_revoke_all_tokens(buf) : memclient_destroy_id(w->ctx, w->board->ids[i], 0));
        break;
    }
}

static void work(int channel, void *context)
{
    struct worker w = *(struct worker *)context;

    w.random ^= (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15);
    w.ctx = broker_connect_in_child(w.socket);
    for (;;) {
        char byte;

        if (!take_bytes(channel, &byte, 1) || byte == 'e')
            break;
        for (size_t i = 0; i < OPERATIONS; i++)
            something(&w);
        tell(channel);
    }
    for (size_t i = 0; i < HELD; i++)
        memclient_buffer_unref(w.bufs[i]);
    memclient_context_close(w.ctx);
}

static uint64_t a_seed(void)
{
    const char *given = getenv("MEMORYD_TEST_SEED");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return given != NULL ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec | 1;
}

static int unbind(const struct memclient_name_info *name, void *data)
{
    memclient_unbind_name(data, name->name);
    return 0;
}

static void I5_the_sums_agree_whatever_is_done_and_whoever_dies(void **state)
{
    struct broker_process *broker = broker_for_test("[pool tight]\nnodes = 0\ncapacity = 8M\n"
                                                    "[limits]\nuid_names = 12\nsession_tokens = 40\n");
    uint64_t seed = a_seed();
    struct worker w = {.socket = broker->socket, .random = seed};
    struct child workers[WORKERS];
    struct memclient_context *ctx;

    print_message("MEMORYD_TEST_SEED=%#llx\n", (unsigned long long)seed);
    w.board = mmap(NULL, sizeof(*w.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped((void *)w.board);
    for (size_t i = 0; i < WORKERS; i++)
        child_start(&workers[i], work, &w);
    for (size_t batch = 0; batch < BATCHES; batch++) {
        size_t victim = next(&seed) % WORKERS;

        for (size_t i = 0; i < WORKERS; i++)
            assert_true(pass_bytes(workers[i].channel, "w", 1));
        if (batch % 2 == 1) {
            struct timespec a_while = {.tv_nsec = (long)(next(&seed) % 20000000)};

            nanosleep(&a_while, NULL);
            child_kill(&workers[victim]);
        }
        broker_check(broker); /* while they work */
        for (size_t i = 0; i < WORKERS; i++)
            if (workers[i].channel >= 0)
                child_hear(&workers[i]);
        broker_check(broker);
        if (workers[victim].channel < 0)
            child_start(&workers[victim], work, &w);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        assert_true(pass_bytes(workers[i].channel, "e", 1));
        child_finish(&workers[i]);
    }
    /* all that is left now has a name, or a token that expires */
    ctx = broker_connect(broker);
    assert_done(memclient_list_names(ctx, unbind, ctx));
    memclient_context_close(ctx);
    assert_ok(munmap(w.board, sizeof(*w.board)));
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I5_the_sums_agree_whatever_is_done_and_whoever_dies),
    };

    return test_run(tests, NULL, NULL);
}
