/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions and one buffer: by descriptor, by token, by name, with no more rights than were given. */
#include "tests/unit/broker/host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(64) << 10)
#define RW   (RIGHT_READ | RIGHT_WRITE)

static void write_word(int fd, uint64_t word)
{
    uint64_t *p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);

    assert_mapped(p);
    *p = word;
    assert_ok(munmap(p, SIZE));
}

static uint64_t read_word(int fd)
{
    uint64_t *p = map_shared(fd, SIZE, PROT_READ);
    uint64_t word;

    assert_mapped(p);
    word = *p;
    assert_ok(munmap(p, SIZE));
    return word;
}

static void by_descriptor(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer, found;
    _cleanup_close_ int fd = -1, mine = -1;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    fd = host_export(maker, buffer, RW);
    assert_true(fd >= 0);
    write_word(fd, 4711);

    /* I1: what left the broker cannot be cut, is whole, and keeps its seals */
    assert_errno(ftruncate(fd, 0), EPERM);
    assert_int_equal(memfd_allocated(fd), SIZE);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS_BUFFER, SEALS_BUFFER);

    assert_int_equal(host_import(other, fd, &found), 0);
    assert_int_equal(found, buffer);
    assert_int_equal(host_opened.rights, RW | RIGHT_SHARE);
    assert_int_equal(host_opened.size, SIZE);
    mine = host_export(other, buffer, RIGHT_READ);
    assert_int_equal(read_word(mine), 4711);
    /* I2: reading is all that it can do */
    assert_map_errno(map_shared(mine, SIZE, PROT_READ | PROT_WRITE), EACCES);
    assert_int_equal(host_check(maker), 0);
}

static void a_read_only_descriptor_imports_as_such(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int fd = -1;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    fd = host_export(maker, buffer, RIGHT_READ);
    assert_int_equal(host_import(other, fd, NULL), 0);
    assert_int_equal(host_opened.rights, RIGHT_READ | RIGHT_SHARE);
    assert_int_equal(host_export(other, buffer, RW), -1);
    assert_int_equal(host_status, STATUS_NO_RIGHT);
}

static void foreign_descriptors_are_refused(void **state)
{
    uint64_t session = host_session(1);
    _cleanup_close_ int memfd = memfd_new(SIZE, 0), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int pair[2];

    assert_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    assert_int_equal(host_import(session, memfd, NULL), STATUS_FD_FOREIGN);
    assert_int_equal(host_import(session, null, NULL), STATUS_FD_FOREIGN);
    assert_int_equal(host_import(session, pair[0], NULL), STATUS_FD_FOREIGN);
    close(pair[0]);
    close(pair[1]);
}

static void by_token(void **state)
{
    const struct share_args reading = {.rights = RIGHT_READ};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int mine = -1, theirs = -1;
    uint8_t token[32], wrong[32];

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    mine = host_export(maker, buffer, RW);
    write_word(mine, 42);
    assert_int_equal(host_share(maker, buffer, &reading, token), 0);

    memcpy(wrong, token, 32);
    wrong[31] ^= 1;
    assert_int_equal(host_open(other, wrong, 0, NULL), STATUS_TOKEN_REJECTED);
    memcpy(wrong, token, 32);
    wrong[0] ^= 1;
    assert_int_equal(host_open(other, wrong, 0, NULL), STATUS_TOKEN_FOREIGN);
    memset(wrong, 0, 32);
    assert_int_equal(host_open(other, wrong, 0, NULL), STATUS_TOKEN_MALFORMED);

    assert_int_equal(host_open(other, token, RW, NULL), STATUS_NO_RIGHT);
    assert_int_equal(host_open(other, token, 0, &theirs), 0);
    assert_int_equal(host_opened.rights, RIGHT_READ);
    assert_int_equal(read_word(theirs), 42);
    assert_map_errno(map_shared(theirs, SIZE, PROT_READ | PROT_WRITE), EACCES);
    /* it grants no right to pass it on */
    assert_int_equal(host_share(other, buffer, &reading, token), STATUS_NO_RIGHT);
    assert_int_equal(host_check(maker), 0);
}

static void the_uses_of_a_token_are_exact(void **state)
{
    const struct share_args twice = {.rights = RW, .uses = 2};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    uint8_t token[32];

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &twice, token), 0);
    /* an open that fails costs no use */
    assert_int_equal(host_open(other, token, RIGHT_MANAGE, NULL), STATUS_NO_RIGHT);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    assert_int_equal(host_open(other, token, RIGHT_MANAGE, NULL), STATUS_NO_RIGHT);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(host_check(maker), 0);
}

static void a_token_is_revoked(void **state)
{
    const struct share_args terms = {.rights = RW};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    struct revoke_args revoke = {.by_token = true};
    uint32_t revoked = 0;
    uint8_t token[32], second[32];

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_share(maker, buffer, &terms, second), 0);
    memcpy(revoke.token, token, 32);
    assert_int_equal(CALL(maker, op_revoke, &revoke, &revoked), 0);
    assert_int_equal(revoked, 1);
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_REVOKED);
    assert_int_equal(host_open(other, second, 0, NULL), 0);
    revoke = (struct revoke_args){.buffer = buffer};
    assert_int_equal(CALL(other, op_revoke, &revoke, &revoked), STATUS_NO_RIGHT);
    assert_int_equal(CALL(maker, op_revoke, &revoke, &revoked), 0);
    assert_int_equal(revoked, 1);
    assert_int_equal(host_open(other, second, 0, NULL), STATUS_TOKEN_REVOKED);
    assert_int_equal(host_check(maker), 0);
}

static void a_token_for_one_only(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    struct share_args terms = {.rights = RIGHT_READ, .flags = TOKEN_ONLY_UID, .uid = getuid() + 1};
    uint8_t token[32];

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_NOT_YOURS);
    terms = (struct share_args){.rights = RIGHT_READ, .flags = TOKEN_ONLY_PID, .pid = getppid()};
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_NOT_YOURS);
    terms.pid = getpid();
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    terms = (struct share_args){.rights = RIGHT_READ, .flags = TOKEN_ONLY_GID, .gid = getgid() + 12345};
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_NOT_YOURS);
}

static void by_name(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int mine = -1, theirs = -1;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    mine = host_export(maker, buffer, RW);
    write_word(mine, 99);
    assert_int_equal(host_bind(maker, buffer, "a/b", 0, 0), 0);
    assert_int_equal(host_bind(maker, buffer, "a/b", 0, 0), STATUS_NAME_EXISTS);
    assert_int_equal(host_lookup(other, "a/c", 0, 0, NULL), STATUS_NO_SUCH_NAME);
    assert_int_equal(host_lookup(other, "a/b", 0, RIGHT_READ, &theirs), 0);
    assert_int_equal(host_opened.id, buffer);
    assert_int_equal(read_word(theirs), 99);

    /* the name keeps it when nobody else does */
    assert_int_equal(host_release(maker, buffer), 0);
    assert_int_equal(host_release(other, buffer), 0);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(CALL(other, op_name_unbind, "a/b"), 0);
    theirs = fd_close(theirs);
    mine = fd_close(mine);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_lookup(other, "a/b", 0, 0, NULL), STATUS_NO_SUCH_NAME);
    assert_int_equal(host_lookup(other, NULL, buffer, 0, NULL), STATUS_STALE);
    assert_int_equal(host_lookup(other, NULL, buffer + 1000, 0, NULL), STATUS_NO_SUCH_ID);
    assert_int_equal(host_check(maker), 0);
}

static void a_name_ends_with_its_session_if_it_should(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), freed, kept, while_;

    assert_int_equal(host_alloc(maker, SIZE, 0, &freed), 0);
    assert_int_equal(host_alloc(maker, SIZE, 0, &kept), 0);
    assert_int_equal(host_alloc(maker, SIZE, 0, &while_), 0);
    assert_int_equal(host_bind(maker, freed, "free", 1, 0), 0);
    assert_int_equal(host_bind(maker, kept, "keep", 0, 0), 0);
    assert_int_equal(host_bind(maker, while_, "keep-for", 2, 30), 0);
    assert_int_equal(CALL(maker, op_goodbye), 0);
    assert_true(HOST_UNTIL(host_used() == SIZE));
    assert_int_equal(host_lookup(other, "free", 0, 0, NULL), STATUS_NO_SUCH_NAME);
    assert_int_equal(host_lookup(other, "keep-for", 0, 0, NULL), STATUS_NO_SUCH_NAME);
    assert_int_equal(host_lookup(other, "keep", 0, 0, NULL), 0);
    assert_int_equal(CALL(other, op_name_unbind, "keep"), 0);
    assert_int_equal(host_check(other), 0);
}

static void a_keeping_token_keeps(void **state)
{
    struct share_args terms = {.rights = RW, .flags = TOKEN_KEEPING, .uses = 1};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    uint8_t token[32];

    /* until it is used */
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_release(maker, buffer), 0);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    assert_int_equal(host_check(maker), 0);
    assert_int_equal(host_release(other, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_EXHAUSTED);

    /* or its time is over */
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    terms.uses = 0;
    terms.expiry_ms = 20;
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_release(maker, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_EXHAUSTED);

    /* or it is revoked; a session's end changes nothing */
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    terms = (struct share_args){.rights = RW, .flags = TOKEN_KEEPING, .uses = 3};
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(CALL(maker, op_goodbye), 0);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(other), 0);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    assert_int_equal(host_release(other, buffer), 0);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    struct revoke_args revoke = {.by_token = true};
    uint32_t revoked;
    memcpy(revoke.token, token, 32);
    assert_int_equal(CALL(other, op_revoke, &revoke, &revoked), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(other), 0);
}

static void publishing_ends_all_writing(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int mine = -1;
    void *p;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(CALL(maker, op_publish, buffer, false), STATUS_NOT_SUPPORTED);
    assert_int_equal(host_alloc(maker, SIZE, BUFFER_PUBLISHABLE, &buffer), 0);
    mine = host_export(maker, buffer, RW);
    assert_int_equal(host_import(other, mine, NULL), 0);
    assert_int_equal(CALL(other, op_publish, buffer, false), STATUS_NO_RIGHT);
    p = map_shared(mine, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    memset(p, 7, SIZE);
    assert_int_equal(CALL(maker, op_publish, buffer, false), STATUS_BUSY);
    assert_non_null(strstr(host_sentence, "session"));
    assert_ok(munmap(p, SIZE));
    assert_int_equal(CALL(maker, op_publish, buffer, false), 0);
    assert_int_equal(CALL(maker, op_publish, buffer, false), STATUS_PUBLISHED);
    assert_map_errno(map_shared(mine, SIZE, PROT_READ | PROT_WRITE), EPERM);
    assert_int_equal(host_export(maker, buffer, RW), -1);
    assert_int_equal(host_status, STATUS_PUBLISHED);
    assert_int_equal(CALL(maker, op_discard, buffer, 0, 0), STATUS_PUBLISHED);
    assert_int_equal(host_check(maker), 0);
}

static void discarding_reads_as_zeros_and_stays_charged(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int mine = -1;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    mine = host_export(maker, buffer, RW);
    assert_int_equal(host_import(other, mine, NULL), 0);
    assert_int_equal(CALL(other, op_subscribe, 2), 0);
    write_word(mine, 5);
    assert_int_equal(CALL(other, op_discard, buffer, 0, 0), STATUS_NO_RIGHT);
    assert_int_equal(CALL(maker, op_discard, buffer, 1, 0), STATUS_INVALID_ARGUMENT);
    assert_int_equal(CALL(maker, op_discard, buffer, 2 * SIZE, SIZE), STATUS_SIZE_OVERFLOW);
    assert_int_equal(CALL(maker, op_discard, buffer, 0, 0), 0);
    assert_int_equal(read_word(mine), 0);
    assert_int_equal(host_used(), SIZE);
    host_settle();
    assert_int_equal(host.n_events, 1);
    assert_int_equal(host.events[0].event.buffer, buffer);
    assert_ptr_equal(host.events[0].connection, (void *)2);
}

static void more_news_than_are_kept_become_one_lost(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffers[2];
    char name[16];

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffers[0]), 0);
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffers[1]), 0);
    assert_int_equal(CALL(other, op_subscribe, 4), 0);
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(host_bind(maker, buffers[i / 50], name, 0, 0), 0);
    }
    host_settle();
    assert_true(host.n_events > 1 && host.n_events <= 64);
    for (unsigned i = 0; i + 1 < host.n_events; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(host.events[i].event.kind, 4);
        assert_string_equal(host.events[i].name, name);
    }
    assert_int_equal(host.events[host.n_events - 1].event.kind, 16);
    /* and then it goes on */
    host.n_events = 0;
    assert_int_equal(host_bind(maker, buffers[1], "after", 0, 0), 0);
    host_settle();
    assert_int_equal(host.n_events, 1);
    assert_string_equal(host.events[0].name, "after");
}

/* One bind is told to a thousand: not in one turn of the loop, but to each once, whoever comes and goes meanwhile. */
static void I7_news_for_many_are_told_in_slices(void **state)
{
    enum { MANY = 200 };
    uint64_t maker = host_session(1), sessions[MANY], buffer;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    for (unsigned i = 0; i < MANY; i++) {
        sessions[i] = host_session(100 + i);
        assert_int_equal(CALL(sessions[i], op_subscribe, 4), 0);
    }
    assert_int_equal(host_bind(maker, buffer, "a", 0, 0), 0);
    assert_int_equal(host.n_events, 0);
    for (unsigned told = 0, turns = 0; told < MANY - 40; turns++) {
        unsigned now;

        assert_true(turns < MANY);
        host.n_events = 0;
        assert_int_equal(broker_tick(host.broker), 0);
        now = host.n_events;
        assert_true(now && now <= 64);
        for (unsigned i = 0; i < now; i++)
            assert_ptr_equal(host.events[i].connection, (void *)(uintptr_t)(100 + told + i));
        told += now;
        /* the last who heard it, and those who will not any more */
        if (!turns) {
            assert_int_equal(CALL(sessions[told - 1], op_subscribe, 0), 0);
            for (unsigned i = MANY - 40; i < MANY; i++)
                assert_int_equal(CALL(sessions[i], op_subscribe, 0), 0);
        }
    }
    host.n_events = 0;
    host_settle();
    assert_int_equal(host.n_events, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
        TEST(by_descriptor),
        TEST(a_read_only_descriptor_imports_as_such),
        TEST(foreign_descriptors_are_refused),
        TEST(by_token),
        TEST(the_uses_of_a_token_are_exact),
        TEST(a_token_is_revoked),
        TEST(a_token_for_one_only),
        TEST(by_name),
        TEST(a_name_ends_with_its_session_if_it_should),
        TEST(a_keeping_token_keeps),
        TEST(publishing_ends_all_writing),
        TEST(discarding_reads_as_zeros_and_stays_charged),
        TEST(more_news_than_are_kept_become_one_lost),
        TEST(I7_news_for_many_are_told_in_slices),
#undef TEST
    };

    return test_run(tests, NULL, NULL);
}
