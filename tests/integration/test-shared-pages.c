/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes of a buffer, mapped several times at the same place: equal ranges, parts, and ranges that extend each
 * other, by one context and by several. Whoever unmaps takes only his own away.
 */
#include "tests/integration/clients.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/child.h"

#define PAGES 16

static struct broker_process *broker;
static struct memclient_context *ctx;
static struct memclient_buffer *buf;
static char *home;

static size_t size(void)
{
    return PAGES * page_size();
}

static void begin(void)
{
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, size(), NULL, &buf));
    home = memclient_buffer_home(buf);
}

static void end(void)
{
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static struct memclient_map_options part(size_t first, size_t n, unsigned access)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    options.offset = first * page_size();
    options.length = n * page_size();
    options.access = access;
    return options;
}

static void map_part(struct memclient_buffer *of, size_t first, size_t n, unsigned access)
{
    struct memclient_map_options options = part(first, n, access);
    void *at;

    assert_done(memclient_map(of, &options, &at));
    assert_ptr_equal(at, home + first * page_size());
}

static void unmap_part(struct memclient_context *by, size_t first, size_t n)
{
    assert_done(memclient_unmap(by, home + first * page_size(), n * page_size()));
}

static void read_body(int channel, void *p)
{
    (void)channel;
    (void)*(volatile char *)p;
}

static void write_body(int channel, void *p)
{
    (void)channel;
    *(volatile char *)p = 1;
}

/* What the kernel lets this process do with a page; its first bytes stay as they are. */
enum allows { NOTHING, READING, WRITING };

static enum allows allows(size_t page)
{
    char *p = home + page * page_size() + page_size() / 2;

    if (child_signal(read_body, p))
        return NOTHING;
    return child_signal(write_body, p) ? READING : WRITING;
}

#define assert_allows(page, what) assert_int_equal(allows(page), what)

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static void equal_ranges_are_counted(void **state)
{
    void *at;

    begin();
    for (int i = 0; i < 3; i++) {
        assert_done(memclient_map(buf, NULL, &at));
        assert_ptr_equal(at, home);
    }
    *home = 'a';
    for (int i = 0; i < 2; i++) {
        assert_done(memclient_unmap(ctx, home, 0));
        assert_int_equal(*home, 'a');
    }
    assert_done(memclient_unmap(ctx, home, 0));
    assert_allows(0, NOTHING);
    assert_refused(memclient_unmap(ctx, home, 0), EFAULT);
    end();
}

/* Of which the first that is mapped is not the first that goes. */
static void ranges_that_extend_each_other_end_in_either_order(void **state)
{
    begin();
    for (int order = 0; order < 2; order++) {
        map_part(buf, 0, 2, 0);
        map_part(buf, 1, 2, 0);
        home[page_size()] = 'x';
        home[3 * page_size() - 1] = 'y';
        if (order) {
            unmap_part(ctx, 1, 2);
            assert_allows(0, WRITING);
            assert_allows(2, NOTHING);
        } else {
            unmap_part(ctx, 0, 2);
            assert_allows(0, NOTHING);
            assert_allows(2, WRITING);
        }
        assert_allows(1, WRITING);
        assert_int_equal(home[page_size()], 'x');
        unmap_part(ctx, order ? 0 : 1, 2);
        for (size_t i = 0; i < 3; i++)
            assert_allows(i, NOTHING);
    }
    end();
}

/* The whole, and parts of it; who says no length has mapped the whole, whatever was mapped in it since. */
static void a_part_is_in_the_whole(void **state)
{
    void *at;

    begin();
    assert_done(memclient_map(buf, NULL, &at));
    map_part(buf, 3, 2, 0);
    assert_done(memclient_unmap(ctx, at, 0));
    assert_allows(2, NOTHING);
    assert_allows(3, WRITING);
    assert_allows(4, WRITING);
    assert_allows(5, NOTHING);
    /* and the whole around the part */
    assert_done(memclient_map(buf, NULL, &at));
    assert_ptr_equal(at, home);
    assert_allows(15, WRITING);
    unmap_part(ctx, 3, 2);
    assert_allows(3, WRITING);
    assert_done(memclient_unmap(ctx, at, 0));
    assert_allows(3, NOTHING);
    end();
}

#define OPENINGS 200

/* Against a model that counts each page. */
static void any_ranges_in_any_order(void **state)
{
    struct {
        size_t first, n;
    } open[OPENINGS];
    unsigned count[PAGES] = {0}, seed = 4711;
    size_t n_open = 0;

    begin();
    for (unsigned step = 0; step < 6 * OPENINGS || n_open; step++) {
        bool opens = step < 6 * OPENINGS && n_open < OPENINGS && rand_r(&seed) % 2;
        size_t which;

        if (opens) {
            which = n_open++;
            open[which].first = (size_t)rand_r(&seed) % PAGES;
            open[which].n = 1 + (size_t)rand_r(&seed) % (PAGES - open[which].first);
            map_part(buf, open[which].first, open[which].n, 0);
        } else if (n_open) {
            which = (size_t)rand_r(&seed) % n_open;
            unmap_part(ctx, open[which].first, open[which].n);
        } else {
            continue;
        }
        for (size_t i = open[which].first; i < open[which].first + open[which].n; i++)
            count[i] += opens ? 1 : -1U;
        if (!opens)
            open[which] = open[--n_open];
        for (size_t i = 0; i < PAGES; i++) {
            char *page = home + i * page_size();
            unsigned char resident;

            /* nobody else's page is there */
            assert_int_equal(mincore(page, page_size(), &resident) == 0, count[i] != 0);
            if (count[i])
                *page = (char)step;
        }
    }
    end();
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

/* Pages allow what any of the mappings wants, whichever came first, and no more when that has gone. */
static void pages_allow_what_any_mapping_wants(void **state)
{
    begin();
    map_part(buf, 0, 2, MEMCLIENT_READ);
    assert_allows(1, READING);
    map_part(buf, 1, 2, MEMCLIENT_READ | MEMCLIENT_WRITE);
    assert_allows(0, READING);
    assert_allows(1, WRITING);
    unmap_part(ctx, 1, 2);
    assert_allows(1, READING);
    unmap_part(ctx, 0, 2);

    map_part(buf, 1, 2, MEMCLIENT_READ | MEMCLIENT_WRITE);
    map_part(buf, 0, 2, MEMCLIENT_READ);
    map_part(buf, 0, 3, MEMCLIENT_NO_ACCESS);
    assert_allows(0, READING);
    assert_allows(1, WRITING);
    unmap_part(ctx, 0, 2);
    assert_allows(0, NOTHING);
    assert_allows(1, WRITING);
    unmap_part(ctx, 1, 2);
    assert_allows(1, NOTHING);
    /* and each by itself */
    map_part(buf, 0, 2, MEMCLIENT_READ);
    assert_done(memclient_protect(ctx, home, 3 * page_size(), MEMCLIENT_READ | MEMCLIENT_WRITE));
    assert_allows(0, WRITING);
    assert_done(memclient_protect(ctx, home, 3 * page_size(), MEMCLIENT_NO_ACCESS));
    assert_allows(0, READING);
    unmap_part(ctx, 0, 3);
    assert_allows(1, READING);
    unmap_part(ctx, 0, 2);
    end();
}

/* Of two that are alike nobody can say whose call it is: none ever has less than it wants. */
static void twins_keep_what_they_want(void **state)
{
    begin();
    map_part(buf, 0, 2, MEMCLIENT_READ | MEMCLIENT_WRITE);
    map_part(buf, 0, 2, MEMCLIENT_READ);
    unmap_part(ctx, 0, 2);
    assert_allows(0, WRITING);
    map_part(buf, 0, 2, MEMCLIENT_READ);
    assert_done(memclient_protect(ctx, home, 2 * page_size(), MEMCLIENT_NO_ACCESS));
    assert_allows(0, WRITING);
    assert_done(memclient_protect(ctx, home, 2 * page_size(), MEMCLIENT_READ));
    unmap_part(ctx, 0, 2);
    assert_allows(0, WRITING);
    unmap_part(ctx, 0, 2);
    assert_allows(0, NOTHING);
    end();
}

/* ---- several contexts -------------------------------------------------------------------------------------------- */

static struct memclient_buffer *open_in(struct memclient_context *other, unsigned rights)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *opened;
    struct memclient_token token;

    options.rights = rights;
    assert_done(memclient_share(buf, &options, &token));
    assert_done(memclient_open_token(other, &token, 0, &opened));
    return opened;
}

/* Who may only read comes first; its pages become writable for who may write, and stay where they are. */
static void contexts_share_pages_with_the_rights_of_each(void **state)
{
    struct memclient_context *other;
    struct memclient_buffer *opened;
    char *page;

    begin();
    other = broker_connect(broker);
    opened = open_in(other, MEMCLIENT_READ);
    page = home + page_size();
    map_part(opened, 0, 2, 0);
    assert_allows(1, READING);
    map_part(buf, 1, 2, 0);
    assert_allows(1, WRITING);
    *page = 'w';
    assert_refused(memclient_protect(other, home, 2 * page_size(), MEMCLIENT_READ | MEMCLIENT_WRITE), EACCES);
    assert_refused(memclient_unmap(other, page, 2 * page_size()), EFAULT);
    assert_done(memclient_protect(other, home, 2 * page_size(), MEMCLIENT_NO_ACCESS));
    assert_allows(0, NOTHING);
    assert_allows(1, WRITING);
    assert_done(memclient_protect(other, home, 2 * page_size(), 0));
    unmap_part(ctx, 1, 2);
    assert_allows(1, READING);
    assert_int_equal(*page, 'w');

    /* of what a reader shows, some is by a writer's descriptor, and some is not */
    assert_done(memclient_unmap(other, home, 0));
    map_part(buf, 1, 1, 0);
    map_part(opened, 0, 4, 0);
    map_part(buf, 0, 4, 0);
    for (size_t i = 0; i < 4; i++)
        assert_allows(i, WRITING);
    unmap_part(ctx, 1, 1);
    unmap_part(ctx, 0, 4);
    assert_allows(1, READING);
    assert_done(memclient_unmap(other, home, 0));
    memclient_buffer_unref(opened);
    memclient_context_close(other);
    end();
}

static void a_context_that_ends_leaves_others_their_pages(void **state)
{
    struct memclient_context *other;
    struct memclient_buffer *opened;
    void *at;

    begin();
    other = broker_connect(broker);
    opened = open_in(other, MEMCLIENT_READ | MEMCLIENT_WRITE);
    assert_done(memclient_map(buf, NULL, &at));
    map_part(opened, 2, 3, 0);
    home[2 * page_size()] = 'k';
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    assert_allows(1, NOTHING);
    assert_allows(2, WRITING);
    assert_int_equal(home[2 * page_size()], 'k');
    memclient_buffer_unref(opened);
    memclient_context_close(other);
    assert_allows(2, NOTHING);
    broker_finish(broker);
}

/* Somebody's home is in a reservation of another's, which is given back. */
static void a_reservation_goes_and_what_is_at_home_stays(void **state)
{
    struct memclient_alloc_options no_address = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_reservation *res;
    struct memclient_buffer *opened;
    struct memclient_context *other;
    void *at;

    begin();
    memclient_buffer_unref(buf);
    other = broker_connect(broker);
    no_address.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_done(memclient_alloc(ctx, size(), &no_address, &buf));
    assert_done(memclient_reserve(ctx, 3 * size(), NULL, &res));
    options.address = (char *)memclient_reservation_address(res) + size();
    assert_done(memclient_map(buf, &options, &at));
    home = at;
    opened = open_in(other, MEMCLIENT_READ | MEMCLIENT_WRITE);
    map_part(opened, 1, 2, 0);
    assert_refused(memclient_reservation_release(res), EBUSY);
    assert_done(memclient_unmap(ctx, home, 0));
    assert_allows(0, NOTHING);
    assert_allows(1, WRITING);
    assert_done(memclient_reservation_release(res));
    assert_allows(1, WRITING);
    unmap_part(other, 1, 2);
    assert_allows(1, NOTHING);
    /* nothing is left of it */
    assert_done(memclient_reserve(ctx, 3 * size(), RESERVE_PRIVATE(.address = (uintptr_t)home - size()), &res));
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref(opened);
    memclient_context_close(other);
    end();
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Where something else is, nothing is shared; where nothing is, nothing need be reserved. */
static void at_an_address_that_is_not_reserved(void **state)
{
    struct memclient_map_options options = part(0, 2, 0);
    struct memclient_reservation *res;
    struct memclient_buffer *second;
    void *at;
    char *there;

    begin();
    there = mmap(NULL, size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_mapped(there);
    options.flags = MEMCLIENT_MAP_UNRESERVED;
    assert_refused(memclient_map(buf, &options, &at), EINVAL);
    options.address = there;
    assert_refused(memclient_map(buf, &options, &at), EADDRINUSE);
    assert_ok(munmap(there, size()));
    assert_done(memclient_reserve(ctx, size(), RESERVE_PRIVATE(.address = (uintptr_t)there), &res));
    assert_refused(memclient_map(buf, &options, &at), EADDRINUSE);
    assert_done(memclient_reservation_release(res));
    assert_done(memclient_map(buf, &options, &at));
    assert_ptr_equal(at, there);
    options = part(1, 2, 0);
    options.flags = MEMCLIENT_MAP_UNRESERVED;
    options.address = there + page_size();
    assert_done(memclient_map(buf, &options, &at));
    there[2 * page_size()] = 'c';
    /* the same bytes elsewhere, other bytes here, another buffer here */
    options.address = there + 2 * page_size();
    assert_refused(memclient_map(buf, &options, &at), EADDRINUSE);
    assert_done(memclient_alloc(ctx, size(), NULL, &second));
    options.address = there + page_size();
    assert_refused(memclient_map(second, &options, &at), EADDRINUSE);
    options.flags |= MEMCLIENT_MAP_ALONE;
    assert_refused(memclient_map(buf, &options, &at), EADDRINUSE);
    assert_done(memclient_unmap(ctx, there, 2 * page_size()));
    assert_int_equal(there[2 * page_size()], 'c');
    assert_done(memclient_unmap(ctx, there + page_size(), 0));
    memclient_buffer_unref(second);
    end();
}

/* What is refused half way leaves what was there as it was, and nothing else. */
static void a_refusal_leaves_all_as_it_was(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *at, *in_the_way;

    begin();
    map_part(buf, 4, 1, MEMCLIENT_READ);
    map_part(buf, 8, 1, MEMCLIENT_READ);
    in_the_way =
        mmap(home + 10 * page_size(), page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_mapped(in_the_way);
    assert_refused(memclient_map(buf, NULL, &at), EADDRINUSE);
    for (size_t i = 0; i < PAGES; i++)
        assert_allows(i, i == 4 || i == 8 || i == 10 ? READING : NOTHING);
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    assert_done(memclient_map(buf, &options, &at));
    assert_ptr_not_equal(at, home);
    assert_done(memclient_unmap(ctx, at, 0));
    assert_ok(munmap(in_the_way, page_size()));
    end();
}

/* ---- what else happens to mappings ------------------------------------------------------------------------------- */

/* All mappings of the process become such for reading; a refusal makes them again what they were. */
static void shared_pages_are_published(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *reader;
    struct memclient_context *other;

    begin();
    memclient_buffer_unref(buf);
    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, size(), &options, &buf));
    home = memclient_buffer_home(buf);
    other = broker_connect(broker);
    reader = open_in(other, MEMCLIENT_READ);
    map_part(reader, 0, 2, 0);
    map_part(buf, 1, 2, 0);
    map_part(buf, 2, 2, MEMCLIENT_READ);
    home[page_size()] = 'p';
    /* the pages that only the reader has left are still by the writer's descriptor */
    unmap_part(ctx, 1, 2);
    assert_done(memclient_publish(buf, 0));
    for (size_t i = 0; i < 4; i++)
        assert_allows(i, READING);
    assert_int_equal(home[page_size()], 'p');
    unmap_part(ctx, 2, 2);
    unmap_part(other, 0, 2);
    memclient_buffer_unref(reader);
    memclient_context_close(other);
    end();
}

static void look_from_child(int channel, void *data)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    (void)channel;
    (void)data;
    CHECK(home[page_size()] == 'f');
    home[page_size()] = 'g';
    CHECK(memclient_address_query(home, &info) == -EFAULT);
    CHECK(memclient_address_query(home + page_size(), &info) == 0);
    CHECK_DONE(memclient_unmap(ctx, home + page_size(), 2 * page_size()));
    CHECK(memclient_address_query(home + page_size(), &info) == -EFAULT);
}

/* Children get what any mapping of it gives them, and unmap by themselves. */
static void children_have_the_pages_that_are_for_them(void **state)
{
    begin();
    map_part(buf, 0, 2, 0);
    assert_done(memclient_dont_fork(ctx, home, 2 * page_size()));
    assert_allows(1, NOTHING);
    map_part(buf, 1, 2, 0);
    home[page_size()] = 'f';
    child_run(look_from_child, NULL);
    assert_int_equal(home[page_size()], 'g');
    unmap_part(ctx, 1, 2);
    assert_allows(1, NOTHING); /* for a child again */
    assert_int_equal(home[page_size()], 'g');
    unmap_part(ctx, 0, 2);
    end();
}

#define THREADS 4

static void *open_and_close(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    uintptr_t wrong = 0;

    for (int i = 0; i < 2000; i++) {
        size_t first = (size_t)rand_r(&seed) % PAGES, n = 1 + (size_t)rand_r(&seed) % (PAGES - first);
        struct memclient_map_options options = part(first, n, 0);
        void *at;

        if (memclient_map(buf, &options, &at) || at != home + first * page_size()) {
            wrong++;
            break;
        }
        for (size_t page = 0; page < n; page++)
            ((volatile char *)at)[page * page_size()] = 1;
        wrong += memclient_unmap(ctx, at, n * page_size()) != 0;
    }
    return (void *)wrong;
}

static void threads_share_pages(void **state)
{
    pthread_t threads[THREADS];

    begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, (void *)(i + 1)), 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        void *wrong;

        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(mincore(home + i * page_size(), page_size(), &(unsigned char){0}), -1);
    end();
}

static void a_broker_that_is_replaced_meanwhile_is_no_matter(void **state)
{
    begin();
    map_part(buf, 0, 2, 0);
    broker_kill_child(broker);
    map_part(buf, 1, 2, 0);
    home[page_size()] = 'r';
    unmap_part(ctx, 0, 2);
    assert_done(memclient_broker_ping(ctx));
    map_part(buf, 0, 2, 0);
    assert_int_equal(home[page_size()], 'r');
    unmap_part(ctx, 1, 2);
    unmap_part(ctx, 0, 2);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(equal_ranges_are_counted),
        at_broker(ranges_that_extend_each_other_end_in_either_order),
        at_broker(a_part_is_in_the_whole),
        at_broker(any_ranges_in_any_order),
        at_broker(pages_allow_what_any_mapping_wants),
        at_broker(twins_keep_what_they_want),
        at_broker(contexts_share_pages_with_the_rights_of_each),
        at_broker(a_context_that_ends_leaves_others_their_pages),
        at_broker(a_reservation_goes_and_what_is_at_home_stays),
        at_broker(at_an_address_that_is_not_reserved),
        at_broker(a_refusal_leaves_all_as_it_was),
        at_broker(shared_pages_are_published),
        at_broker(children_have_the_pages_that_are_for_them),
        at_broker(threads_share_pages),
        at_broker(a_broker_that_is_replaced_meanwhile_is_no_matter),
    };

    return test_run(tests, NULL, NULL);
}
