/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I2, rights are the kernel's: a reader cannot write by any of the ways there are, a published buffer is written by
 * nobody; and what publishing and discarding mean to those who hold a buffer.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <sys/stat.h>

/*
 * Guests are forked before anything is mapped: what they inherit they could not map once more at the same place. The
 * token comes over the channel.
 */
struct guest {
    const char *socket;
    struct memclient_token token;
};

static struct guest await_token(int channel, const char *socket)
{
    struct guest guest = {.socket = socket};

    CHECK(take_bytes(channel, &guest.token, sizeof(guest.token)));
    return guest;
}

static void give_token(struct child *child, const struct memclient_token *token)
{
    assert_true(pass_bytes(child->channel, token, sizeof(*token)));
}

static struct memclient_token share(struct memclient_buffer *buf, unsigned rights)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_token token;

    options.rights = rights;
    assert_done(memclient_share(buf, &options, &token));
    return token;
}

static void check_cannot_write(int fd, size_t size)
{
    struct stat st;
    char path[40];
    void *p;

    CHECK_MAP_ERRNO(map_shared(fd, size, PROT_READ | PROT_WRITE), EACCES);
    p = map_shared(fd, size, PROT_READ);
    CHECK(p != MAP_FAILED);
    CHECK_ERRNO(mprotect(p, size, PROT_READ | PROT_WRITE), EACCES);
    munmap(p, size);
    CHECK(pwrite(fd, "x", 1, 0) < 0);
    CHECK(memfd_punch(fd, 0, size) < 0);
    CHECK(ftruncate(fd, 0) < 0);
    CHECK(!fstat(fd, &st));
    /* root may open everything, and the broker's own user owns the inode */
    if (geteuid() != 0 && geteuid() != st.st_uid) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        CHECK_ERRNO(open(path, O_RDWR | O_CLOEXEC), EACCES);
    }
}

static void read_only(struct guest *guest)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect_in_child(guest->socket);
    struct memclient_buffer *buf, *again;
    void *p;
    int fd;

    CHECK_REFUSED(memclient_open_token(ctx, &guest->token, MEMCLIENT_READ | MEMCLIENT_WRITE, &buf), EACCES);
    CHECK_DONE(memclient_open_token(ctx, &guest->token, 0, &buf));
    CHECK(memclient_buffer_rights(buf) == MEMCLIENT_READ);
    options.access = MEMCLIENT_READ | MEMCLIENT_WRITE;
    CHECK_REFUSED(memclient_map(buf, &options, &p), EACCES);
    CHECK_DONE(memclient_map(buf, NULL, &p));
    CHECK(pattern_holds(p, MIB, 1));
    CHECK_REFUSED(memclient_protect(ctx, p, 0, MEMCLIENT_READ | MEMCLIENT_WRITE), EACCES);
    CHECK_ERRNO(mprotect(p, MIB, PROT_READ | PROT_WRITE), EACCES);
    CHECK_REFUSED(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd), EACCES);
    CHECK_DONE(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    check_cannot_write(fd, MIB);
    /* handing the descriptor back to the broker gives no more either */
    CHECK_DONE(memclient_import_fd(ctx, fd, &again));
    CHECK_REFUSED(memclient_export_fd(again, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd), EACCES);
    CHECK_REFUSED(memclient_share(buf,
                                  &(struct memclient_share_options){.size = sizeof(struct memclient_share_options),
                                                                    .rights = MEMCLIENT_WRITE},
                                  &guest->token),
                  EACCES);
    CHECK_REFUSED(memclient_bind_name(buf, "mine", NULL), EACCES);
    CHECK_REFUSED(memclient_publish(buf, 0), EACCES);
    CHECK_REFUSED(memclient_discard(buf, 0, 0), EACCES);
    CHECK_REFUSED(memclient_revoke_all_tokens(buf), EACCES);
    memclient_context_close(ctx);
}

static void read_only_as_oneself(int channel, void *context)
{
    struct guest guest = await_token(channel, context);

    read_only(&guest);
}

static void read_only_as_stranger(int channel, void *context)
{
    struct guest guest = await_token(channel, context);

    become(UID_STRANGER);
    read_only(&guest);
}

static void try_to_write_a_read_only_buffer(struct broker_process *broker, child_body *body)
{
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct child child;
    void *p;

    child_start(&child, body, broker->socket);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, MIB, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    pattern_write(p, MIB, 1);
    token = share(buf, MEMCLIENT_READ);
    give_token(&child, &token);
    child_finish(&child);
    assert_true(pattern_holds(p, MIB, 1));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

static void I2_a_reader_cannot_write(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);

    try_to_write_a_read_only_buffer(broker, read_only_as_oneself);
    broker_finish(broker);
}

static void I2_another_user_cannot_write_what_he_may_read(void **state)
{
    struct broker_process *broker;

    test_needs_root();
    broker = broker_for_test(NULL);
    try_to_write_a_read_only_buffer(broker, read_only_as_stranger);
    broker_finish(broker);
}

/* As it is installed: the broker has a user of its own, which owns the inode, and nobody else may open that. */
static void I2_a_broker_with_its_own_user_owns_every_inode(void **state)
{
    struct broker_process *broker = broker_for_test_as(UID_BROKER, NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_buffer *buf;
    struct stat st;
    int fd;

    assert_done(memclient_context_query(ctx, &connection));
    assert_int_equal(connection.broker_uid, UID_BROKER);
    assert_done(memclient_alloc(ctx, MIB, NULL, &buf));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    assert_ok(fstat(fd, &st));
    assert_int_equal(st.st_uid, UID_BROKER);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    memclient_buffer_unref(buf);
    try_to_write_a_read_only_buffer(broker, read_only_as_stranger);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- publish ----------------------------------------------------------------------------------------------------- */

static struct memclient_buffer *publishable(struct memclient_context *ctx, size_t size)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}

static void check_reads_only(int channel, void *context)
{
    struct guest guest = await_token(channel, context);
    struct memclient_context *ctx = broker_connect_in_child(guest.socket);
    struct memclient_buffer *buf;
    void *p;
    int fd;

    CHECK_REFUSED(memclient_open_token(ctx, &guest.token, MEMCLIENT_READ | MEMCLIENT_WRITE, &buf), EROFS);
    CHECK_DONE(memclient_open_token(ctx, &guest.token, MEMCLIENT_READ, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    CHECK(pattern_holds(p, MIB, 2));
    CHECK_DONE(memclient_export_fd(buf, 0, &fd));
    CHECK((fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE) != 0);
    CHECK_MAP_ERRNO(map_shared(fd, MIB, PROT_READ | PROT_WRITE), EACCES);
    CHECK(pwrite(fd, "x", 1, 0) < 0);
    /* root may re-open it for writing, and cannot write for all that */
    fd = fd_reopen(fd, O_RDWR);
    if (fd >= 0) {
        CHECK_MAP_ERRNO(map_shared(fd, MIB, PROT_READ | PROT_WRITE), EPERM);
        CHECK(pwrite(fd, "x", 1, 0) < 0);
        CHECK(memfd_punch(fd, 0, MIB) < 0);
    }
    memclient_context_close(ctx);
}

/* The owner's writable mappings and descriptors do not stand in the way, and are readable afterwards at their place. */
static void I2_a_published_buffer_is_written_by_nobody(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_map_options anywhere = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct child child;
    void *p, *q, *none;
    int fd;

    child_start(&child, check_reads_only, broker->socket);
    ctx = broker_connect(broker);
    buf = publishable(ctx, MIB);
    token = share(buf, 0);
    assert_done(memclient_map(buf, NULL, &p));
    anywhere.flags = MEMCLIENT_MAP_NOT_HOME;
    anywhere.access = MEMCLIENT_READ; /* a mapping for reading of a description that may write counts as a writer */
    assert_done(memclient_map(buf, &anywhere, &q));
    anywhere.access = MEMCLIENT_NO_ACCESS;
    assert_done(memclient_map(buf, &anywhere, &none));
    pattern_write(p, MIB, 2);
    assert_done(memclient_publish(buf, 0));
    assert_true(pattern_holds(p, MIB, 2));
    assert_true(pattern_holds(q, MIB, 2));
    assert_int_equal(mprotect(p, MIB, PROT_READ | PROT_WRITE), -1);
    assert_refused(memclient_protect(ctx, p, 0, MEMCLIENT_READ | MEMCLIENT_WRITE), EACCES);
    assert_true(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED);
    assert_true(broker_info(buf).flags & MEMCLIENT_BUFFER_PUBLISHED);
    assert_refused(memclient_publish(buf, 0), EROFS);
    assert_refused(memclient_discard(buf, 0, 0), EROFS);
    assert_refused(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd), EROFS);
    give_token(&child, &token);
    child_finish(&child);
    memclient_buffer_unref(buf);
    assert_done(memclient_unmap(ctx, p, 0));
    assert_done(memclient_unmap(ctx, q, 0));
    assert_done(memclient_unmap(ctx, none, 0));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void hold_a_writable_mapping(int channel, void *context)
{
    struct guest guest = await_token(channel, context);
    struct memclient_context *ctx = broker_connect_in_child(guest.socket);
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_buffer *buf;
    void *p;

    CHECK_DONE(memclient_open_token(ctx, &guest.token, 0, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    CHECK_DONE(memclient_context_query(ctx, &connection));
    CHECK(pass_bytes(channel, &connection.session, sizeof(connection.session)));
    hear(channel);
    *(volatile uint64_t *)p = 7; /* it still may */
    CHECK_DONE(memclient_unmap(ctx, p, 0));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
}

static void somebody_elses_writable_mapping_forbids_publishing(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_buffer *buf, *plain;
    struct memclient_token token;
    struct memclient_context *ctx;
    struct child child;
    uint64_t session;
    char number[24];
    void *p;

    child_start(&child, hold_a_writable_mapping, broker->socket);
    ctx = broker_connect(broker);
    buf = publishable(ctx, MIB);
    assert_done(memclient_map(buf, NULL, &p));
    token = share(buf, 0);
    give_token(&child, &token);
    assert_true(take_bytes(child.channel, &session, sizeof(session)));
    assert_refused(memclient_publish(buf, 0), EBUSY);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)session);
    assert_sentence(number);
    *(volatile uint64_t *)p = 1; /* one's own mappings are as before */
    child_tell(&child);
    child_finish(&child);
    assert_true(WAIT_UNTIL(memclient_publish(buf, 0) == 0));
    assert_int_equal(*(volatile uint64_t *)p, 7);
    assert_done(memclient_alloc(ctx, MIB, NULL, &plain));
    assert_refused(memclient_publish(plain, 0), EOPNOTSUPP);
    memclient_buffer_unref(plain);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void publishing_for_the_future_leaves_mappings_that_exist(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_buffer *buf;
    struct memclient_token token;
    struct memclient_context *ctx;
    struct child child;
    uint64_t session;
    void *p;

    child_start(&child, hold_a_writable_mapping, broker->socket);
    ctx = broker_connect(broker);
    buf = publishable(ctx, MIB);
    token = share(buf, 0);
    give_token(&child, &token);
    assert_true(take_bytes(child.channel, &session, sizeof(session)));
    assert_done(memclient_publish(buf, MEMCLIENT_PUBLISH_FUTURE_ONLY));
    child_tell(&child);
    child_finish(&child);
    assert_true(broker_info(buf).flags & MEMCLIENT_BUFFER_FUTURE_ONLY);
    assert_done(memclient_map(buf, NULL, &p));
    assert_int_equal(*(volatile uint64_t *)p, 7);
    assert_int_equal(mprotect(p, MIB, PROT_READ | PROT_WRITE), -1);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Whoever held it for writing before finds out when he maps it. */
static void a_handle_learns_that_somebody_published_the_buffer(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_map_options writing = MEMCLIENT_MAP_OPTIONS_INIT, reserved = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf = publishable(ctx, MIB), *theirs;
    struct memclient_token token = share(buf, 0);
    struct memclient_reservation *res;
    void *p;

    assert_done(memclient_open_token(other, &token, 0, &theirs));
    assert_done(memclient_map(theirs, NULL, &p));
    assert_done(memclient_unmap(other, p, 0));
    assert_done(memclient_publish(buf, 0));
    writing.access = MEMCLIENT_READ | MEMCLIENT_WRITE;
    assert_refused(memclient_map(theirs, &writing, &p), EROFS);
    assert_done(memclient_map(theirs, NULL, &p));
    assert_int_equal(mprotect(p, MIB, PROT_READ | PROT_WRITE), -1);
    assert_true(memclient_buffer_flags(theirs) & MEMCLIENT_BUFFER_PUBLISHED);
    assert_done(memclient_reserve(other, MIB, NULL, &res));
    reserved.address = memclient_reservation_address(res);
    assert_done(memclient_map(theirs, &reserved, &p));
    assert_done(memclient_unmap(other, p, 0));
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref(theirs);
    memclient_buffer_unref(buf);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A context keeps the descriptors of the buffers that it mapped last. */
#define OTHERS 64

static void map_others(struct memclient_context *ctx, struct memclient_buffer *others[static OTHERS])
{
    void *p;

    for (unsigned i = 0; i < OTHERS; i++) {
        assert_done(memclient_alloc(ctx, 1, NULL, &others[i]));
        assert_done(memclient_map(others[i], NULL, &p));
    }
}

/* The flags say that somebody may still write, also if the handle learns it from a refusal. */
static void a_handle_learns_that_it_was_for_the_future(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker),
                             *third = broker_connect(broker);
    const unsigned both = MEMCLIENT_BUFFER_PUBLISHED | MEMCLIENT_BUFFER_FUTURE_ONLY;
    struct memclient_buffer *buf = publishable(ctx, MIB), *mapped, *unmapped, *others[OTHERS];
    struct memclient_token token = share(buf, 0);
    void *p;

    /* the one has a descriptor that is open for writing, the other has none and asks for one */
    assert_done(memclient_open_token(other, &token, 0, &mapped));
    assert_done(memclient_map(mapped, NULL, &p));
    assert_done(memclient_open_token(third, &token, 0, &unmapped));
    map_others(third, others);
    assert_done(memclient_publish(buf, MEMCLIENT_PUBLISH_FUTURE_ONLY));
    assert_done(memclient_unmap(other, p, 0));
    assert_done(memclient_map(mapped, NULL, &p));
    assert_int_equal(memclient_buffer_flags(mapped) & both, both);
    assert_done(memclient_map(unmapped, NULL, &p));
    assert_int_equal(memclient_buffer_flags(unmapped) & both, both);
    memclient_buffer_unref_many(OTHERS, others);
    memclient_buffer_unref(mapped);
    memclient_buffer_unref(unmapped);
    memclient_buffer_unref(buf);
    memclient_context_close(third);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- discard ----------------------------------------------------------------------------------------------------- */

static void discarded_bytes_read_as_zeros_and_stay_charged(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf, *theirs;
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct memclient_token token;
    int fd, events;
    char *p;

    assert_done(memclient_alloc(ctx, 2 * MIB, NULL, &buf));
    token = share(buf, MEMCLIENT_READ);
    assert_done(memclient_open_token(other, &token, 0, &theirs));
    assert_done(memclient_event_subscribe(other, MEMCLIENT_EVENT_DISCARDED));
    assert_done(memclient_event_fd(other, &events));
    assert_done(memclient_map(buf, NULL, (void **)&p));
    pattern_write(p, 2 * MIB, 3);
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    assert_done(memclient_discard(buf, MIB, MIB));
    assert_true(pattern_holds(p, MIB, 3));
    assert_int_equal(memfd_allocated(fd), MIB);
    assert_true(all_zero(p + MIB, MIB));
    assert_int_equal(broker_info(buf).bytes, 2 * MIB);
    assert_int_equal(broker_pool_used(ctx, NULL), 2 * MIB);
    assert_refused(memclient_discard(buf, 1, MIB), EINVAL);
    assert_refused(memclient_discard(buf, MIB, 2 * MIB), EOVERFLOW);
    assert_refused(memclient_discard(theirs, 0, 0), EACCES);
    assert_true(WAIT_UNTIL(memclient_event_next(other, &event) == 0));
    assert_int_equal(event.kind, MEMCLIENT_EVENT_DISCARDED);
    assert_int_equal(event.buffer, memclient_buffer_id(buf));
    close(fd);
    memclient_buffer_unref(buf);
    memclient_buffer_unref(theirs);
    memclient_context_close(ctx);
    memclient_context_close(other);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I2_a_reader_cannot_write),
        at_broker(I2_another_user_cannot_write_what_he_may_read),
        at_broker(I2_a_broker_with_its_own_user_owns_every_inode),
        at_broker(I2_a_published_buffer_is_written_by_nobody),
        at_broker(somebody_elses_writable_mapping_forbids_publishing),
        at_broker(a_handle_learns_that_somebody_published_the_buffer),
        at_broker(a_handle_learns_that_it_was_for_the_future),
        at_broker(publishing_for_the_future_leaves_mappings_that_exist),
        at_broker(discarded_bytes_read_as_zeros_and_stay_charged),
    };

    return test_run(tests, NULL, NULL);
}
