/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one user leaves in memory another never sees (I4), by whatever path the memory comes back: nothing of it in
 * buffers made afterwards, and nothing of those in pages that the first one has pinned in a pipe or still has mapped.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define LEFT   0x5a
#define SECRET 0x53

/* How it ends. */
enum how {
    RELEASED,
    PUBLISHED,
    CACHED,    /* in the process, which the broker takes it from */
    DESTROYED, /* by force, while it is mapped */
    KILLED,    /* with its process: the page stays pinned in a pipe that another one has */
};

struct left_over {
    const char *socket;
    uint64_t size;
    enum memclient_pages pages;
    enum how how;
    int pipe[2];
    size_t in_pipe;
};

static struct memclient_alloc_options options_of(const struct left_over *left)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pages = left->pages;
    options.pool = left->pages == MEMCLIENT_PAGES_BASE ? "tight" : NULL;
    options.flags = left->how == PUBLISHED ? MEMCLIENT_ALLOC_PUBLISHABLE : 0;
    return options;
}

/* All of it was written to before. Nothing but that, or zeros, is ever seen there. */
static bool holds_no_secret(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] && bytes[i] != LEFT)
            return false;
    return true;
}

static void leave(int channel, void *context)
{
    const struct left_over *left = context;
    struct memclient_alloc_options options = options_of(left);
    struct iovec part = {.iov_len = left->in_pipe};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    uint64_t id;
    void *p;

    become(UID_STRANGER);
    ctx = broker_connect_in_child(left->socket);
    CHECK_DONE(memclient_alloc(ctx, left->size, &options, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    CHECK(all_zero(p, left->size));
    memset(p, LEFT, left->size);
    part.iov_base = p;
    CHECK(vmsplice(left->pipe[1], &part, 1, 0) == (ssize_t)left->in_pipe);
    id = memclient_buffer_id(buf);
    switch (left->how) {
    case RELEASED:
        CHECK_DONE(memclient_unmap(ctx, p, 0));
        buf = memclient_buffer_unref(buf);
        break;
    case PUBLISHED: /* refused as long as pages are pinned for writing; its mapping is read-only now, or as before */
        (void)memclient_publish(buf, MEMCLIENT_PUBLISH_FUTURE_ONLY);
        CHECK_DONE(memclient_unmap(ctx, p, 0));
        buf = memclient_buffer_unref(buf);
        break;
    case CACHED:
        CHECK_DONE(memclient_cache_put(buf));
        break;
    case DESTROYED:
    case KILLED:
        break;
    }
    CHECK_DONE(memclient_broker_ping(ctx));
    CHECK(write(channel, &id, sizeof(id)) == sizeof(id));
    hear(channel);
    if (buf) {
        CHECK(holds_no_secret(p, left->size));
        memset(p, LEFT, left->size);
    }
    if (buf) {
        CHECK_DONE(memclient_unmap(ctx, p, 0));
        memclient_buffer_unref(buf);
    }
    memclient_context_close(ctx);
}

/* What is made afterwards: at last of the size of what was left, as whoever reuses memory would reuse that. What caches
 * have goes only to those who find no other room. */
#define PIECES_MAX 16

struct taken {
    struct memclient_buffer *bufs[PIECES_MAX + 1];
    size_t n;
};

static void take_one(struct taken *taken, struct memclient_context *ctx, const struct left_over *left, uint64_t size)
{
    struct memclient_alloc_options options = options_of(left);
    void *p;

    options.wait_ms = PATIENCE_MS;
    assert_done(memclient_alloc(ctx, size, &options, &taken->bufs[taken->n]));
    assert_done(memclient_map(taken->bufs[taken->n++], NULL, &p));
    assert_true(all_zero(p, size));
    memset(p, SECRET, size);
}

/* Makes as much as there may be of it, and writes to it. */
static void take_all(struct taken *taken, struct memclient_context *ctx, const struct left_over *left, uint64_t size)
{
    uint64_t pieces = size / left->size < PIECES_MAX ? size / left->size : PIECES_MAX;

    taken->n = 0;
    if (size > pieces * left->size)
        take_one(taken, ctx, left, size - pieces * left->size);
    for (uint64_t i = 0; i < pieces; i++)
        take_one(taken, ctx, left, left->size);
}

static void check_left_over(struct left_over *left, uint64_t all)
{
    static unsigned char bytes[1 << 20];
    /* of few huge pages stock could take what is asked for next, in other sizes */
    struct broker_process *broker = broker_for_test(
        left->pages == MEMCLIENT_PAGES_HUGETLB ? "[pools]\nstock = 0\n" : "[pool tight]\nnodes = 0\ncapacity = 64M\n");
    struct memclient_context *ctx;
    struct taken taken;
    struct child child;
    uint64_t id;

    left->socket = broker->socket;
    assert_ok(pipe2(left->pipe, O_CLOEXEC));
    /* more than the default, as far as an unprivileged user may */
    assert_ok(fcntl(left->pipe[1], F_SETPIPE_SZ, sizeof(bytes)));
    left->in_pipe = left->size < sizeof(bytes) ? left->size : sizeof(bytes);
    child_start(&child, leave, left);
    assert_true(take_bytes(child.channel, &id, sizeof(id)));
    ctx = broker_connect(broker);
    if (left->how == DESTROYED)
        assert_done(memclient_destroy_id(ctx, id, MEMCLIENT_DESTROY_FORCE));
    if (left->how == KILLED)
        child_kill(&child);
    /* one that is destroyed stays charged as long as it is mapped, and a page of one that was cached */
    if (left->how == DESTROYED)
        all -= left->size;
    else if (left->how == CACHED && left->pages == MEMCLIENT_PAGES_BASE)
        all -= page_size();
    take_all(&taken, ctx, left, all);
    assert_int_equal(read(left->pipe[0], bytes, left->in_pipe), left->in_pipe);
    assert_true(holds_no_secret(bytes, left->in_pipe));
    if (left->how != KILLED) {
        child_tell(&child);
        child_finish(&child);
    }
    assert_ok(close(left->pipe[0]));
    assert_ok(close(left->pipe[1]));
    memclient_buffer_unref_many(taken.n, taken.bufs);
    memclient_context_close(ctx);
    /* and what it has had open until now */
    ctx = broker_connect(broker);
    take_all(&taken, ctx, left, left->size);
    memclient_buffer_unref_many(taken.n, taken.bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void base_pages(enum how how)
{
    /* one that the loop empties, and those that workers do */
    static const uint64_t sizes[] = {64 * KIB, MIB, 20 * MIB};

    test_needs_root();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        check_left_over(&(struct left_over){.size = sizes[i], .pages = MEMCLIENT_PAGES_BASE, .how = how}, 64 * MIB);
}

static void I4_nothing_is_left_of_what_is_released(void **state)
{
    base_pages(RELEASED);
}

static void I4_nothing_is_left_of_what_is_published(void **state)
{
    base_pages(PUBLISHED);
}

static void I4_nothing_is_left_of_what_was_cached(void **state)
{
    base_pages(CACHED);
}

static void I4_nothing_is_left_of_what_is_destroyed(void **state)
{
    base_pages(DESTROYED);
}

static void I4_nothing_is_left_of_the_dead(void **state)
{
    base_pages(KILLED);
}

static void I4_nothing_is_left_in_transparent_huge_pages(void **state)
{
    test_needs_root();
    settings_shmem_thp();
    for (enum how how = RELEASED; how <= KILLED; how++)
        check_left_over(&(struct left_over){.size = 4 * MIB, .pages = MEMCLIENT_PAGES_THP, .how = how}, 16 * MIB);
}

/* A page in a pipe stays taken, so there is one more. */
static void I4_nothing_is_left_in_huge_pages_of_the_system(void **state)
{
    size_t huge = huge_page_size();

    test_needs_root();
    settings_huge_pages(huge, 4);
    for (enum how how = RELEASED; how <= KILLED; how++) {
        if (how == PUBLISHED || how == DESTROYED)
            continue; /* the first keeps its pages as long as one is pinned; the second is not left until unmapped */
        check_left_over(&(struct left_over){.size = 2 * huge, .pages = MEMCLIENT_PAGES_HUGETLB, .how = how}, 2 * huge);
    }
}

/* What was brought is never anybody else's, and nobody's contents ever get there. */
static void adopt_and_leave(int channel, void *context)
{
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    void *p;
    int fd;

    become(UID_STRANGER);
    ctx = broker_connect_in_child(context);
    fd = memfd_new(MIB, 0);
    p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    memset(p, LEFT, MIB);
    CHECK_DONE(memclient_adopt_fd(ctx, fd, &buf));
    memclient_buffer_unref(buf);
    CHECK_DONE(memclient_broker_ping(ctx));
    tell(channel);
    hear(channel);
    for (size_t i = 0; i < MIB; i++)
        CHECK(((unsigned char *)p)[i] == LEFT);
    memclient_context_close(ctx);
}

static void I4_what_was_adopted_stays_its_owners(void **state)
{
    struct left_over left = {.size = MIB, .pages = MEMCLIENT_PAGES_BASE};
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct taken taken;
    struct child child;

    test_needs_root();
    broker = broker_for_test("[pool tight]\nnodes = 0\ncapacity = 64M\n");
    child_start(&child, adopt_and_leave, broker->socket);
    child_hear(&child);
    ctx = broker_connect(broker);
    take_all(&taken, ctx, &left, 64 * MIB);
    child_tell(&child);
    child_finish(&child);
    memclient_buffer_unref_many(taken.n, taken.bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I4_nothing_is_left_of_what_is_released),
        at_broker(I4_nothing_is_left_of_what_is_published),
        at_broker(I4_nothing_is_left_of_what_was_cached),
        at_broker(I4_nothing_is_left_of_what_is_destroyed),
        at_broker(I4_nothing_is_left_of_the_dead),
        at_broker_with_settings(I4_nothing_is_left_in_transparent_huge_pages),
        at_broker_with_settings(I4_nothing_is_left_in_huge_pages_of_the_system),
        at_broker(I4_what_was_adopted_stays_its_owners),
    };

    return test_run(tests, NULL, NULL);
}
