/* SPDX-License-Identifier: Apache-2.0 */
/* The native API against a real broker: buffers, sharing, publication, names, addresses, listings, events. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/integration/context.h"
#include "tests/support/memory.h"

#define SIZE (4 << 20)

/* After every test nothing is left, and the sums are right. */
static int clean(void **state)
{
    if (!WAIT_UNTIL(broker_buffers(ctx) == 0))
        fail_msg("a buffer is left");
    broker_check(&broker);
    return 0;
}

static void *map(struct memclient_buffer *buf)
{
    void *p = NULL;

    assert_done(memclient_map(buf, NULL, &p));
    return p;
}

static void unmap(void *p)
{
    assert_done(memclient_unmap(ctx, p, 0));
}

static void a_buffer_is_what_was_asked_for(void **state)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buf = make(SIZE + 1, 0);
    char *p;

    assert_int_equal(memclient_buffer_size(buf), SIZE + 1);
    assert_int_equal(memclient_buffer_bytes(buf), SIZE + memclient_buffer_granule(buf));
    assert_int_equal(memclient_buffer_rights(buf), 15);
    p = map(buf);
    assert_ptr_equal(p, memclient_buffer_home(buf));
    for (size_t i = 0; i <= SIZE; i += 4096)
        assert_int_equal(p[i], 0);
    p[SIZE] = 1;
    assert_done(memclient_buffer_query(buf, &info));
    assert_int_equal(info.id, memclient_buffer_id(buf));
    assert_int_equal(info.length, SIZE + 1);
    assert_int_equal(info.uid, geteuid());
    assert_int_equal(info.pid, getpid());
    assert_int_equal(info.holds, 1);
    assert_int_equal(info.address, (uintptr_t)p);
    memclient_buffer_unref(buf);
    unmap(p);
}

static void bad_arguments_are_refused_before_any_harm(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_alloc_options unsized = {0};
    struct memclient_buffer *buf = (void *)1;
    uint32_t node = 4711;

    assert_refused(memclient_alloc(ctx, 0, NULL, &buf), EINVAL);
    assert_refused(memclient_alloc(ctx, UINT64_MAX, NULL, &buf), EOVERFLOW);
    assert_refused(memclient_alloc(ctx, UINT64_C(1) << 60, NULL, &buf), EFBIG);
    assert_string_equal(memclient_status_name(memclient_error_status()), "TOO_BIG");
    assert_refused(memclient_alloc(ctx, 1, &unsized, &buf), EINVAL);
    assert_int_equal(memclient_error_status(), 0);
    options.pool = "no such pool";
    assert_refused(memclient_alloc(ctx, 1, &options, &buf), ENODEV);
    options.pool = NULL;
    options.nodes = &node;
    options.n_nodes = 1;
    assert_refused(memclient_alloc(ctx, 1, &options, &buf), ENXIO);
    options.n_nodes = 0;
    options.pages = 99;
    assert_refused(memclient_alloc(ctx, 1, &options, &buf), EINVAL);
    options.pages = 0;
    options.flags = 0x80000000;
    assert_refused(memclient_alloc(ctx, 1, &options, &buf), EINVAL);
    assert_ptr_equal(buf, (void *)1);
}

static void many_buffers_are_made_all_or_none(void **state)
{
    struct memclient_buffer *bufs[MEMCLIENT_BATCH_MAX] = {NULL};
    uint64_t sizes[MEMCLIENT_BATCH_MAX];
    unsigned fds;

    for (unsigned i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        sizes[i] = (i + 1) * 100;
    assert_refused(memclient_alloc_many(ctx, MEMCLIENT_BATCH_MAX + 1, sizes, NULL, bufs), EINVAL);
    assert_done(memclient_alloc_many(ctx, MEMCLIENT_BATCH_MAX, sizes, NULL, bufs));
    for (unsigned i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        assert_int_equal(memclient_buffer_size(bufs[i]), sizes[i]);
    sizes[3] = 0;
    fds = fd_count();
    assert_refused(memclient_alloc_many(ctx, MEMCLIENT_BATCH_MAX, sizes, NULL, bufs), EINVAL);
    assert_int_equal(broker_buffers(ctx), MEMCLIENT_BATCH_MAX);
    assert_int_equal(fd_count(), fds);
    for (unsigned i = 0; i < MEMCLIENT_BATCH_MAX; i++)
        memclient_buffer_unref(bufs[i]);
}

static void a_thousand_buffers_are_not_a_thousand_descriptors(void **state)
{
    static struct memclient_buffer *bufs[1024];
    unsigned fds = fd_count();
    uint64_t sizes[64];

    for (unsigned i = 0; i < 64; i++)
        sizes[i] = 4096;
    for (unsigned i = 0; i < 1024; i += 64)
        assert_done(memclient_alloc_many(ctx, 64, sizes, NULL, bufs + i));
    assert_in_range(fd_count(), fds, fds + 64);
    /* one whose descriptor was pushed out is as good as any */
    for (unsigned i = 0; i < 1024; i += 100) {
        char *p = map(bufs[i]);

        p[0] = 1;
        unmap(p);
    }
    assert_in_range(fd_count(), fds, fds + 64);
    for (unsigned i = 0; i < 1024; i++)
        memclient_buffer_unref(bufs[i]);
    assert_int_equal(fd_count(), fds);
}

static void opening_again_counts_the_same_handle(void **state)
{
    struct memclient_buffer *buf = make(SIZE, 0), *again = NULL;
    struct memclient_token token;

    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_open_token(ctx, &token, 0, &again));
    assert_ptr_equal(again, buf);
    memclient_buffer_unref(buf);
    assert_int_equal(broker_buffers(ctx), 1);
    memclient_buffer_unref(again);
}

static void a_descriptor_is_a_shareable_handle(void **state)
{
    struct memclient_buffer *buf = make(SIZE, 0), *imported = NULL;
    struct memclient_context *other = broker_connect(&broker);
    int fd = -1, foreign = memfd_create("foreign", MFD_CLOEXEC);
    char *p = map(buf);
    char byte = 0;

    p[100] = 'x';
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, 100), 1);
    assert_int_equal(byte, 'x');
    assert_done(memclient_import_fd(other, fd, &imported));
    assert_int_equal(memclient_buffer_id(imported), memclient_buffer_id(buf));
    assert_false(memclient_buffer_rights(imported) & MEMCLIENT_WRITE);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_refused(memclient_import_fd(other, foreign, &imported), EREMOTE);
    assert_refused(memclient_import_fd(other, -1, &imported), EBADF);
    {
        FD_AUTO int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_refused(memclient_import_fd(other, socket_fd, &imported), EREMOTE);
    }
    fd_close(foreign);
    fd_close(fd);
    memclient_buffer_unref(imported);
    memclient_context_close(other);
    unmap(p);
    memclient_buffer_unref(buf);
}

static void tokens_grant_what_they_say_and_fail_each_in_its_way(void **state)
{
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *buf = make(SIZE, 0), *opened = NULL;
    struct memclient_context *other = broker_connect(&broker);
    struct memclient_token token, bad;
    char text[MEMCLIENT_TOKEN_TEXT_SIZE];
    void *p = NULL;

    terms.rights = MEMCLIENT_READ;
    terms.uses = 1;
    assert_done(memclient_share(buf, &terms, &token));
    memclient_token_format(&token, text);
    assert_done(memclient_token_parse(text, &bad));
    assert_memory_equal(&bad, &token, sizeof(token));
    bad.bytes[31] ^= 1;
    assert_refused(memclient_open_token(other, &bad, 0, &opened), EKEYREJECTED);
    bad = token;
    bad.bytes[0] ^= 1;
    assert_refused(memclient_open_token(other, &bad, 0, &opened), EREMOTE);
    assert_refused(memclient_open_token(other, &token, MEMCLIENT_WRITE, &opened), EACCES);
    assert_done(memclient_open_token(other, &token, 0, &opened));
    assert_int_equal(memclient_buffer_rights(opened), MEMCLIENT_READ);
    {
        struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

        options.access = MEMCLIENT_READ | MEMCLIENT_WRITE;
        options.flags = MEMCLIENT_MAP_NOT_HOME;
        assert_refused(memclient_map(opened, &options, &p), EACCES);
        options.access = 0;
        assert_done(memclient_map(opened, &options, &p));
        /* the kernel's word, not only ours */
        assert_errno(mprotect(p, 4096, PROT_READ | PROT_WRITE), EACCES);
        assert_refused(memclient_protect(other, p, 0, MEMCLIENT_WRITE), EACCES);
        assert_done(memclient_unmap(other, p, 0));
    }
    memclient_buffer_unref(opened);
    assert_refused(memclient_open_token(other, &token, 0, &opened), EKEYEXPIRED);

    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_revoke_token(ctx, &token));
    assert_refused(memclient_open_token(other, &token, 0, &opened), EKEYREVOKED);
    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_revoke_all_tokens(buf));
    assert_refused(memclient_open_token(other, &token, 0, &opened), EKEYREVOKED);
    assert_done(memclient_share(buf, NULL, &token));
    memclient_buffer_unref(buf);
    assert_done(memclient_broker_ping(ctx)); /* what was given back before has arrived */
    assert_refused(memclient_open_token(other, &token, 0, &opened), ESTALE);
    memclient_context_close(other);
}

static void many_tokens_have_each_their_own_result(void **state)
{
    enum { N = 150 };
    struct memclient_buffer *bufs[N], *opened[N];
    struct memclient_context *other = broker_connect(&broker);
    struct memclient_token tokens[N];
    int results[N];

    for (unsigned i = 0; i < N; i++)
        bufs[i] = make(1, 0);
    assert_done(memclient_share_many(N, bufs, NULL, tokens, results));
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(results[i], 0);
    memset(tokens[70].bytes + 16, 0, 16);
    assert_done(memclient_open_token_many(other, N, tokens, MEMCLIENT_READ, opened, results));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(results[i], i == 70 ? -EKEYREJECTED : 0);
        assert_int_equal(!opened[i], i == 70);
        memclient_buffer_unref(opened[i]);
        memclient_buffer_unref(bufs[i]);
    }
    memclient_context_close(other);
}

static void write_to(void *p)
{
    *(volatile char *)p = 1;
}

static void write_body(int channel, void *p)
{
    (void)channel;
    write_to(p);
}

static void publishing_makes_immutable_for_good(void **state)
{
    struct memclient_buffer *buf = make(SIZE, MEMCLIENT_ALLOC_PUBLISHABLE), *plain = make(1, 0);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    char *p = map(buf);
    void *q = NULL;
    int fd = -1;

    assert_refused(memclient_publish(plain, 0), EOPNOTSUPP);
    memclient_buffer_unref(plain);
    p[0] = 'p';
    assert_done(memclient_publish(buf, 0));
    assert_int_equal(p[0], 'p');
    assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED);
    assert_int_equal(child_signal(write_body, p), SIGSEGV);
    assert_refused(memclient_protect(ctx, p, 0, MEMCLIENT_WRITE), EACCES);
    assert_refused(memclient_publish(buf, 0), EROFS);
    options.access = MEMCLIENT_WRITE;
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    assert_refused(memclient_map(buf, &options, &q), EROFS);
    options.access = 0;
    assert_done(memclient_map(buf, &options, &q));
    assert_int_equal(*(char *)q, 'p');
    unmap(q);
    assert_refused(memclient_export_fd(buf, MEMCLIENT_WRITE, &fd), EROFS);
    assert_done(memclient_export_fd(buf, 0, &fd));
    assert_errno(write(fd, "x", 1), EBADF);
    fd_close(fd);
    assert_refused(memclient_discard(buf, 0, 0), EROFS);
    unmap(p);
    memclient_buffer_unref(buf);
}

static void a_refused_publication_puts_mappings_back(void **state)
{
    struct memclient_buffer *buf = make(SIZE, MEMCLIENT_ALLOC_PUBLISHABLE);
    char *p = map(buf);
    void *outside;
    int fd = -1;

    assert_done(memclient_protect(ctx, p, 4096, MEMCLIENT_READ));
    assert_done(memclient_export_fd(buf, 0, &fd));
    outside = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_mapped(outside);
    assert_refused(memclient_publish(buf, 0), EBUSY);
    p[4096] = 'w';
    assert_int_equal(((char *)outside)[4096], 'w');
    assert_int_equal(child_signal(write_body, p), SIGSEGV); /* the first page's access is as it was */
    assert_ok(munmap(outside, SIZE));
    fd_close(fd);
    assert_done(memclient_publish(buf, 0));
    assert_int_equal(p[4096], 'w');
    assert_done(memclient_unmap(ctx, p, SIZE));
    memclient_buffer_unref(buf);
}

static void discarded_pages_read_as_zeros(void **state)
{
    struct memclient_buffer *buf = make(SIZE, 0);
    char *p = map(buf);

    memset(p, 1, SIZE);
    assert_done(memclient_discard(buf, 8192, 4096));
    assert_int_equal(p[8191], 1);
    assert_int_equal(p[8192], 0);
    assert_int_equal(p[12287], 0);
    assert_int_equal(p[12288], 1);
    unmap(p);
    memclient_buffer_unref(buf);
}

static void names_keep_buffers(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf = NULL, *found = NULL;
    char *p;

    options.name = "test/a";
    assert_done(memclient_alloc(ctx, SIZE, &options, &buf));
    assert_refused(memclient_alloc(ctx, SIZE, &options, &found), EEXIST);
    p = map(buf);
    p[0] = 'n';
    unmap(p);
    memclient_buffer_unref(buf);
    assert_done(memclient_open_name(ctx, "test/a", 0, &found));
    p = map(found);
    assert_int_equal(p[0], 'n');
    assert_done(memclient_bind_name(found, "test/b", NULL));
    assert_done(memclient_unbind_name(ctx, "test/a"));
    assert_refused(memclient_unbind_name(ctx, "test/a"), ENOENT);
    assert_refused(memclient_open_name(ctx, "test/a", 0, &buf), ENOENT);
    assert_refused(memclient_open_name(ctx, "a//b", 0, &buf), EINVAL);
    assert_refused(memclient_open_name(ctx, "", 0, &buf), EINVAL);
    assert_refused(memclient_open_name(ctx, "tab\there", 0, &buf), EINVAL);
    assert_done(memclient_open_id(ctx, memclient_buffer_id(found), 0, &buf));
    assert_ptr_equal(buf, found);
    assert_done(memclient_unbind_name(ctx, "test/b"));
    unmap(p);
    memclient_buffer_unref(buf);
    memclient_buffer_unref(found);
}

static void a_taken_home_is_an_error_or_another_address_I9(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf = make(SIZE, 0);
    void *home = memclient_buffer_home(buf), *p = NULL;

    assert_ptr_equal(mmap(home, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), home);
    assert_refused(memclient_map(buf, NULL, &p), EADDRINUSE);
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    assert_done(memclient_map(buf, &options, &p));
    assert_ptr_not_equal(p, home);
    unmap(p);
    assert_ok(munmap(home, 4096));
    assert_done(memclient_map(buf, &options, &p));
    assert_ptr_equal(p, home);
    unmap(p);
    memclient_buffer_unref(buf);

    buf = make(SIZE, MEMCLIENT_ALLOC_NO_HOME);
    assert_null(memclient_buffer_home(buf));
    assert_refused(memclient_map(buf, NULL, &p), EADDRNOTAVAIL);
    assert_done(memclient_map(buf, &options, &p));
    unmap(p);
    memclient_buffer_unref(buf);
}

static void a_reservation_is_filled_cut_and_emptied(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_buffer *buf = make(SIZE, MEMCLIENT_ALLOC_NO_HOME);
    struct memclient_reservation *res = NULL;
    char *base, *at;
    void *p = NULL, *q = NULL;

    assert_done(memclient_reserve(ctx, 16 * SIZE, RESERVE_WITH(.alignment = SIZE), &res));
    base = memclient_reservation_address(res);
    assert_int_equal((uintptr_t)base % SIZE, 0);
    at = base + SIZE;
    options.address = at;
    assert_done(memclient_map(buf, &options, &p));
    assert_ptr_equal(p, at);
    assert_ptr_equal(memclient_buffer_home(buf), at); /* the first placing makes the home */
    options.flags = MEMCLIENT_MAP_ALONE;
    assert_refused(memclient_map(buf, &options, &q), EADDRINUSE);
    options.flags = 0;

    /* an alias of its second half, inside */
    options.address = base + 4 * SIZE;
    options.offset = SIZE / 2;
    assert_done(memclient_map(buf, &options, &q));
    at[SIZE / 2] = 'a';
    assert_int_equal(*(char *)q, 'a');
    options.address = base + 16 * SIZE - 4096;
    assert_refused(memclient_map(buf, &options, &q), EADDRNOTAVAIL);

    assert_done(memclient_address_query(at + 5000, &info));
    assert_int_equal(info.offset, 5000);
    assert_ptr_equal(info.buffer, buf);
    assert_ptr_equal(info.reservation, res);
    assert_done(memclient_address_query(base, &info));
    assert_null(info.buffer);
    assert_int_equal(info.length, 16 * SIZE);
    assert_refused(memclient_address_query(&info, &info), EFAULT);

    /* a hole in the middle */
    assert_done(memclient_unmap(ctx, at + 4096, 4096));
    at[0] = at[8192] = 1;
    assert_int_equal(child_signal(write_body, at + 4096), SIGSEGV);
    assert_ok(mincore(at + 4096, 4096, &(unsigned char){0})); /* and is still taken */
    assert_refused(memclient_unmap(ctx, at, SIZE), EFAULT);
    assert_refused(memclient_protect(ctx, at, SIZE, MEMCLIENT_READ), EFAULT);
    at[0] = 2;
    options.address = at + 4096;
    options.offset = 4096;
    options.length = 4096;
    assert_done(memclient_map(buf, &options, &q));

    /* now a run of three mappings */
    assert_done(memclient_protect(ctx, at, SIZE, MEMCLIENT_READ));
    assert_int_equal(child_signal(write_body, at + 4096), SIGSEGV);
    assert_int_equal(at[0], 2);
    assert_done(memclient_protect(ctx, at, 12288, MEMCLIENT_NO_ACCESS));
    assert_done(memclient_protect(ctx, at, SIZE, 0));
    at[8192] = 3;
    assert_refused(memclient_reservation_release(res), EBUSY);
    assert_done(memclient_unmap(ctx, at, SIZE));
    assert_done(memclient_unmap(ctx, base + 4 * SIZE, 0));
    assert_done(memclient_reservation_release(res));
    assert_refused(memclient_address_query(base, &info), EFAULT);
    memclient_buffer_unref(buf);
}

static void a_mapping_keeps_its_buffer(void **state)
{
    struct memclient_buffer *buf = make(SIZE, 0);
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    char *p = map(buf);

    memclient_buffer_unref(buf);
    p[0] = 1;
    assert_done(memclient_address_query(p, &info));
    assert_int_equal(memclient_buffer_size(info.buffer), SIZE);
    assert_int_equal(broker_buffers(ctx), 1);
    assert_done(memclient_unmap(ctx, p, SIZE / 2));
    p[SIZE / 2] = 1;
    assert_done(memclient_unmap(ctx, p + SIZE / 2, SIZE / 2));
}

static void closing_takes_everything_along(void **state)
{
    struct memclient_context *other = broker_connect(&broker);
    struct memclient_reservation *res = NULL;
    struct memclient_buffer *buf = NULL, *more = NULL;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    unsigned fds = fd_count();
    void *p = NULL;

    assert_done(memclient_alloc(other, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    assert_done(memclient_reserve(other, SIZE, NULL, &res));
    memclient_context_close(other);
    assert_refused(memclient_address_query(p, &info), EFAULT);
    assert_int_equal(memclient_buffer_size(buf), SIZE);
    assert_refused(memclient_map(buf, NULL, &p), ESHUTDOWN);
    assert_refused(memclient_alloc(memclient_buffer_context(buf), 1, NULL, &more), ESHUTDOWN);
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref(buf);
    assert_int_equal(fd_count(), fds - 1);
}

/* What an earlier test had is listed until its pages are free. */
static int count(const struct memclient_buffer_info *info, void *data)
{
    *(unsigned *)data += info->state == MEMCLIENT_BUFFER_STATE_LIVE;
    return 0;
}

static int stop_at_once(const struct memclient_buffer_info *info, void *data)
{
    (void)data;
    return (int)info->id;
}

static void listings_page_until_the_end_or_as_told(void **state)
{
    enum { N = 1000 };
    static struct memclient_buffer *bufs[N];
    unsigned n = 0;

    for (unsigned i = 0; i < N; i++)
        bufs[i] = make(1, 0);
    assert_done(memclient_list_buffers(ctx, count, &n));
    assert_int_equal(n, N);
    assert_true(memclient_list_buffers(ctx, stop_at_once, NULL) > 0);
    for (unsigned i = 0; i < N; i++)
        memclient_buffer_unref(bufs[i]);
}

static void events_can_be_polled_for(void **state)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct memclient_buffer *buf = make(1, 0);
    int fd = -1;

    assert_refused(memclient_event_next(ctx, &event), EAGAIN);
    assert_done(memclient_event_fd(ctx, &fd));
    assert_done(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_NAME));
    assert_true(stays_quiet(fd));
    assert_done(memclient_bind_name(buf, "event/a", NULL));
    assert_true(wait_readable(fd));
    assert_true(WAIT_UNTIL(memclient_event_next(ctx, &event) == 0));
    assert_int_equal(event.kind, MEMCLIENT_EVENT_NAME);
    assert_string_equal(event.name, "event/a");
    assert_true(event.bound);
    assert_int_equal(event.buffer, memclient_buffer_id(buf));
    assert_done(memclient_event_subscribe(ctx, 0));
    assert_done(memclient_unbind_name(ctx, "event/a"));
    memclient_buffer_unref(buf);
}

#define TEST(f) cmocka_unit_test_teardown(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_buffer_is_what_was_asked_for),
        TEST(bad_arguments_are_refused_before_any_harm),
        TEST(many_buffers_are_made_all_or_none),
        TEST(a_thousand_buffers_are_not_a_thousand_descriptors),
        TEST(opening_again_counts_the_same_handle),
        TEST(a_descriptor_is_a_shareable_handle),
        TEST(tokens_grant_what_they_say_and_fail_each_in_its_way),
        TEST(many_tokens_have_each_their_own_result),
        TEST(publishing_makes_immutable_for_good),
        TEST(a_refused_publication_puts_mappings_back),
        TEST(discarded_pages_read_as_zeros),
        TEST(names_keep_buffers),
        TEST(a_taken_home_is_an_error_or_another_address_I9),
        TEST(a_reservation_is_filled_cut_and_emptied),
        TEST(a_mapping_keeps_its_buffer),
        TEST(closing_takes_everything_along),
        TEST(listings_page_until_the_end_or_as_told),
        TEST(events_can_be_polled_for),
    };

    return test_run(tests, context_setup, context_teardown);
}
