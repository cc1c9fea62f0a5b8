/* SPDX-License-Identifier: Apache-2.0 */
/* Listings page, show to each what he may see, and go on while things come and go. Also many of everything. */
#include "tests/unit/broker/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/state.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(4) << 10)

struct page {
    unsigned most; /* items that fit; 0 = any */
    unsigned n;
    unsigned total;
    uint64_t ids[4096];
    struct buffer_info buffer; /* the last of each */
    struct name_info name;
    struct token_info token;
    struct session_info session;
    struct reservation_info reservation;
    struct pool_info pool;
    struct node_info node;
};

static struct page page;

static bool fits(uint64_t id)
{
    if (page.most && page.n == page.most)
        return false;
    page.n++;
    /* nothing comes twice */
    for (unsigned i = 0; i < page.total; i++)
        assert_true(page.ids[i] != id);
    page.ids[page.total++] = id;
    return true;
}

#define ITEM(kind, id_member)                                        \
    static bool on_##kind(void *userdata, const union list_row *row) \
    {                                                                \
        assert_ptr_equal(userdata, &page);                           \
        if (!fits(row->kind.id_member))                              \
            return false;                                            \
        page.kind = row->kind;                                       \
        return true;                                                 \
    }
ITEM(buffer, id)
ITEM(session, id)
ITEM(reservation, id)
ITEM(token, serial)
ITEM(node, node)

static bool on_name(void *userdata, const union list_row *row)
{
    (void)userdata;
    page.n++;
    page.total++;
    page.name = row->name;
    return true;
}

static struct limit_info limits[64];

static bool on_limit(void *userdata, const union list_row *row)
{
    (void)userdata;
    assert_true(page.n < sizeof(limits) / sizeof(limits[0]));
    limits[page.n++] = row->limit;
    return true;
}

static bool on_pool(void *userdata, const union list_row *row)
{
    (void)userdata;
    page.n++;
    page.total++;
    page.pool = row->pool;
    return true;
}

/* All pages of `at_most` items; how many there were. */
#define LIST(session_id, kind, of_buffer, at_most, fn)                                \
    __extension__({                                                                   \
        struct list_args list_ = {.buffer = (of_buffer), .userdata = &page};          \
        uint64_t next_ = 0;                                                           \
        memset(&page, 0, sizeof(page));                                               \
        page.most = (at_most);                                                        \
        do {                                                                          \
            page.n = 0;                                                               \
            list_.cursor = next_;                                                     \
            assert_int_equal(CALL(session_id, op_list, kind, &list_, &next_, fn), 0); \
        } while (next_);                                                              \
        page.total;                                                                   \
    })

static void buffers_page(void **state)
{
    uint64_t session = host_session(1), other = host_session_of(2, getpid(), 7001), buffers[300], more;
    struct list_args args = {.userdata = &page};
    uint64_t next = 0;

    assert_int_equal(LIST(session, LIST_BUFFERS, 0, 0, on_buffer), 0);
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(host_alloc(i < 100 ? other : session, SIZE, 0, &buffers[i]), 0);
    assert_int_equal(LIST(session, LIST_BUFFERS, 0, 0, on_buffer), 300);
    assert_int_equal(LIST(session, LIST_BUFFERS, 0, 7, on_buffer), 300);
    assert_int_equal(LIST(session, LIST_BUFFERS, 0, 1, on_buffer), 300);
    assert_int_equal(LIST(other, LIST_BUFFERS, 0, 7, on_buffer), 100);
    assert_int_equal(LIST(session, LIST_BUFFERS, buffers[5], 7, on_buffer), 1);
    assert_int_equal(page.buffer.uid, 7001);
    assert_int_equal(page.buffer.bytes, SIZE);
    assert_true(page.buffer.pool[0]);
    assert_int_equal(page.buffer.node_bytes[0], SIZE);

    /* what was there all the time is met once, whatever else comes and goes */
    memset(&page, 0, sizeof(page));
    page.most = 50;
    do {
        page.n = 0;
        args.cursor = next;
        assert_int_equal(CALL(session, op_list, LIST_BUFFERS, &args, &next, on_buffer), 0);
        if (page.total <= 300) {
            assert_int_equal(host_alloc(session, SIZE, 0, &more), 0);
            assert_int_equal(host_release(session, more), 0);
        }
    } while (next);
    for (unsigned i = 0; i < 300; i++) {
        bool met = false;

        for (unsigned k = 0; k < page.total; k++)
            met = met || page.ids[k] == buffers[i];
        assert_true(met);
    }
}

static void the_rest_is_listed_too(void **state)
{
    uint64_t admin = host_session(1), session = host_session_of(2, getpid(), 7001), buffer, id, address;
    const struct share_args terms = {.rights = RIGHT_READ, .uses = 3, .expiry_ms = 60000};
    struct status_info status;
    uint8_t token[32];

    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(session, buffer, &terms, token), 0);
    assert_int_equal(host_bind(session, buffer, "some/name", 2, 50), 0);
    assert_int_equal(CALL(session, op_reserve, 16 * SIZE, 0, 0, &id, &address), 0);

    assert_int_equal(LIST(admin, LIST_SESSIONS, 0, 1, on_session), 2);
    assert_int_equal(LIST(session, LIST_SESSIONS, 0, 1, on_session), 1);
    assert_int_equal(page.session.uid, 7001);
    assert_int_equal(page.session.pid, getpid());
    assert_int_equal(page.session.bytes, SIZE);
    assert_int_equal(page.session.holds, 1);
    assert_int_equal(page.session.tokens, 1);
    assert_int_equal(page.session.reservations, 1);
    assert_int_equal(page.session.fds_in_flight, 1);
    assert_string_equal(page.session.program, "test");
    assert_int_equal(LIST(admin, LIST_SESSIONS, buffer, 0, on_session), 1);

    assert_int_equal(LIST(admin, LIST_TOKENS, 0, 1, on_token), 1);
    assert_int_equal(page.token.buffer, buffer);
    assert_int_equal(page.token.uses_left, 3);
    assert_true(page.token.expires_ms > 0 && page.token.expires_ms <= 60001);
    assert_int_equal(LIST(admin, LIST_TOKENS, buffer + 1, 1, on_token), 0);

    assert_int_equal(LIST(admin, LIST_NAMES, 0, 1, on_name), 1);
    assert_string_equal(page.name.name, "some/name");
    assert_int_equal(page.name.uid, 7001);
    assert_int_equal(page.name.keep_ms, 50);

    assert_int_equal(LIST(admin, LIST_RESERVATIONS, 0, 1, on_reservation), 1);
    assert_int_equal(page.reservation.address, address);
    assert_int_equal(page.reservation.session, session);

    assert_true(LIST(session, LIST_POOLS, 0, 0, on_pool) > 0);
    assert_true(LIST(session, LIST_NODES, 0, 1, on_node) > 0);
    assert_true(page.node.total > 0);

    assert_int_equal(CALL(session, op_status, &status), 0);
    assert_int_equal(status.sessions, 2);
    assert_int_equal(status.buffers, 1);
    assert_int_equal(status.buffers_detached, 0);
    assert_int_equal(status.bytes, SIZE);
    assert_int_equal(status.names, 1);
    assert_int_equal(status.tokens, 1);
    assert_int_equal(status.reservations, 1);
    assert_true(status.fds > 0 && status.fds <= status.fds_limit);

    /* what is another user's is nobody's business */
    uint64_t stranger = host_session_of(3, getpid(), 7002);
    struct buffer_info info;
    assert_int_equal(LIST(stranger, LIST_BUFFERS, 0, 0, on_buffer), 0);
    assert_int_equal(LIST(stranger, LIST_NAMES, 0, 0, on_name), 0);
    assert_int_equal(LIST(stranger, LIST_TOKENS, 0, 0, on_token), 0);
    assert_int_equal(LIST(stranger, LIST_RESERVATIONS, 0, 0, on_reservation), 0);
    assert_int_equal(host_info(stranger, buffer, &info), STATUS_NO_RIGHT);
    assert_int_equal(host_lookup(stranger, NULL, buffer, 0, NULL), STATUS_NO_RIGHT);
    assert_int_equal(host_lookup(stranger, "uid:7001/some/name", 0, 0, NULL), STATUS_NO_RIGHT);
    assert_int_equal(CALL(stranger, op_name_unbind, "uid:7001/some/name"), STATUS_NO_RIGHT);
    assert_int_equal(CALL(stranger, op_destroy, buffer, false), STATUS_NO_RIGHT);
    assert_int_equal(CALL(stranger, op_destroy, buffer, true), STATUS_NOT_ADMIN);
    assert_int_equal(host_export(stranger, buffer, RIGHT_READ), -1);
    assert_int_equal(host_status, STATUS_NO_RIGHT);
}

/* Since when session number `of` holds the buffer. */
static uint64_t held_since(uint64_t buffer, uint64_t of)
{
    struct buffer_info info;

    assert_int_equal(host_info(of, buffer, &info), 0);
    for (uint32_t i = 0; i < info.n_holders; i++)
        if (info.holders[i] == of)
            return info.holder_since_ms[i];
    fail_msg("session %llu does not hold it", (unsigned long long)of);
    return 0;
}

static void sleep_until(uint64_t wall_ms)
{
    while (clock_wall_ms() <= wall_ms)
        (void)usleep(1000);
}

static void a_hold_is_listed_with_its_beginning(void **state)
{
    uint64_t maker = host_session(1), other = host_session(2), buffer, since, later;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_bind(maker, buffer, "held", 0, 0), 0);
    since = held_since(buffer, maker);
    assert_true(since && since <= clock_wall_ms());
    sleep_until(since);
    assert_int_equal(host_lookup(other, "held", 0, 0, NULL), 0);
    later = held_since(buffer, other);
    assert_true(later > since);
    /* one more reference is no new hold, one after the last is */
    sleep_until(later);
    assert_int_equal(host_lookup(other, "held", 0, 0, NULL), 0);
    assert_int_equal(held_since(buffer, other), later);
    assert_int_equal(host_release(other, buffer), 0);
    assert_int_equal(held_since(buffer, other), later);
    assert_int_equal(host_release(other, buffer), 0);
    assert_int_equal(host_lookup(other, "held", 0, 0, NULL), 0);
    assert_true(held_since(buffer, other) > later);
    assert_int_equal(held_since(buffer, maker), since);
}

static unsigned n_of_state[4];

static bool count_state(void *userdata, const union list_row *row)
{
    (void)userdata;
    n_of_state[row->buffer.state]++;
    return true;
}

/* Each buffer is in one of the sums that status gives, the one that listings have it in. */
static void status_and_listings_agree(void **state)
{
    uint64_t admin = host_session(1), session = host_session_of(2, getpid(), 7001), live, detached, ending, next;
    const struct list_args all = {.buffer = 0};
    struct status_info status;
    _cleanup_close_ int fd = -1;

    assert_int_equal(host_alloc(session, SIZE, 0, &live), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &detached), 0);
    fd = host_export(session, detached, RIGHT_READ);
    assert_true(fd >= 0);
    assert_int_equal(host_release(session, detached), 0);
    host_settle();
    /* so large that a worker is at its pages, until the loop hears of it */
    assert_int_equal(host_alloc(session, UINT64_C(8) << 20, 0, &ending), 0);
    assert_int_equal(host_release(session, ending), 0);
    assert_int_equal(CALL(admin, op_list, LIST_BUFFERS, &all, &next, count_state), 0);
    assert_int_equal(CALL(admin, op_status, &status), 0);
    assert_int_equal(n_of_state[BUFFER_DETACHED], 1);
    assert_int_equal(n_of_state[BUFFER_ENDING], 1);
    assert_int_equal(status.buffers, 1);
    assert_int_equal(status.buffers_detached, 1);
    assert_int_equal(status.buffers_ending, 1);
    host_settle();
    assert_true(HOST_UNTIL(host_used() == 2 * SIZE));
    assert_int_equal(CALL(admin, op_status, &status), 0);
    assert_int_equal(status.buffers_detached, 1);
    assert_int_equal(status.buffers_ending, 0);
    fd = fd_close(fd);
    assert_true(HOST_UNTIL(host_used() == SIZE));
    assert_int_equal(CALL(admin, op_status, &status), 0);
    assert_int_equal(status.buffers, 1);
    assert_int_equal(status.buffers_detached, 0);
}

static void names_are_told_to_those_who_may_know(void **state)
{
    uint64_t maker = host_session_of(1, getpid(), 7001), mate = host_session_of(2, getpid(), 7001),
             stranger = host_session_of(3, getpid(), 7002), admin = host_session(4), buffer;

    assert_int_equal(CALL(mate, op_subscribe, 4), 0);
    assert_int_equal(CALL(stranger, op_subscribe, 4), 0);
    assert_int_equal(CALL(admin, op_subscribe, 4 | 8), 0);
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_bind(maker, buffer, "told", 1, 0), 0);
    host_settle();
    assert_int_equal(host.n_events, 2);
    for (unsigned i = 0; i < 2; i++) {
        bool mine = host.events[i].connection == (void *)2;

        assert_string_equal(host.events[i].name, mine ? "told" : "uid:7001/told");
        assert_true(host.events[i].event.bound);
        assert_int_equal(host.events[i].event.buffer, buffer);
    }
    host.n_events = 0;
    assert_int_equal(CALL(maker, op_goodbye), 0);
    host_settle();
    assert_int_equal(host.n_events, 2);
    assert_false(host.events[0].event.bound);
    host.n_events = 0;
    broker_announce_shutdown(host.broker);
    assert_int_equal(host.n_events, 1);
    assert_ptr_equal(host.events[0].connection, (void *)4);
}

/* A client with thousands of everything dies: others are served in between, and nothing of it is left. */
/* So much that others have is left to this user, of whom the broker remembers nothing afterwards. */
static void limits_of_who_has_nothing_are_told(void **state)
{
    uint64_t admin = host_session(1), session = host_session_of(2, getpid(), 7001), buffer, next;
    struct list_args of = {.userdata = &page, .of_user = true, .uid = 7002};
    uint64_t accounts;
    bool pool_seen = false;

    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    accounts = host.broker->accounts.count;
    page.n = 0;
    assert_int_equal(CALL(admin, op_list, LIST_LIMITS, &of, &next, on_limit), 0);
    assert_int_equal(next, 0);
    assert_int_equal(host.broker->accounts.count, accounts);
    assert_true(page.n > 5);
    for (unsigned i = 0; i < page.n; i++) {
        assert_int_equal(limits[i].uid, 7002);
        assert_int_equal(limits[i].used, 0);
        pool_seen |= limits[i].pool[0] && limits[i].available == limits[i].limit - SIZE;
    }
    assert_true(pool_seen);

    assert_int_equal(CALL(session, op_list, LIST_LIMITS, &of, &next, on_limit), STATUS_NO_RIGHT);
    of.uid = 7001;
    page.n = 0;
    assert_int_equal(CALL(session, op_list, LIST_LIMITS, &of, &next, on_limit), 0);
    assert_int_equal(limits[0].uid, 7001);
    assert_int_equal(limits[0].used, SIZE);
}

static void a_large_client_is_taken_apart_in_slices(void **state)
{
    enum { N = 3000 };
    uint64_t admin = host_session(1), victim = host_session(2), shared, buffer;
    const struct share_args terms = {.rights = RIGHT_READ};
    uint8_t token[32];
    unsigned turns = 0;

    if (fd_raise_limit() < N + 100)
        test_skip("fewer than %d descriptors here", N + 100);
    assert_int_equal(host_alloc(victim, SIZE, 0, &shared), 0);
    assert_int_equal(host_share(victim, shared, &terms, token), 0);
    assert_int_equal(host_open(admin, token, 0, NULL), 0);
    for (unsigned i = 0; i < N; i++) {
        char name[32];

        assert_int_equal(host_alloc(victim, SIZE, i % 2 ? BUFFER_WANT_FDS : 0, &buffer), 0);
        if (i % 3)
            continue;
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(host_bind(victim, buffer, name, 1, 0), 0);
        assert_int_equal(host_share(victim, buffer, &terms, token), 0);
    }
    assert_int_equal(host_used(), (N + 1) * SIZE);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(CALL(victim, op_goodbye), 0);
    while (host_used() != SIZE && turns++ < 100000) {
        /* somebody else's request between any two slices */
        struct buffer_info info;

        host_turn(0);
        assert_int_equal(host_info(admin, shared, &info), 0);
        /* it takes turns, too */
        if (turns % 100 == 0)
            assert_int_equal(host_check(admin), 0);
    }
    assert_true(turns > N / 16);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(admin), 0);
}

static void only_administrators_have_it_upgraded(void **state)
{
    uint64_t admin = host_session(1), stranger = host_session_of(2, getpid(), 7001);

    assert_int_equal(CALL(stranger, op_upgrade), STATUS_NOT_ADMIN);
    /* and here is no keeper */
    assert_int_equal(CALL(admin, op_upgrade), STATUS_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
        TEST(buffers_page),
        TEST(the_rest_is_listed_too),
        TEST(status_and_listings_agree),
        TEST(a_hold_is_listed_with_its_beginning),
        TEST(names_are_told_to_those_who_may_know),
        TEST(limits_of_who_has_nothing_are_told),
        TEST(a_large_client_is_taken_apart_in_slices),
        TEST(only_administrators_have_it_upgraded),
#undef TEST
    };

    return test_run(tests, NULL, NULL);
}
