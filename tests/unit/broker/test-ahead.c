/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers ahead: charged like any other, shown to nobody until they are used, and given only from stock, where there is
 * plenty.
 */
#include "tests/unit/broker/host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/internal.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "sys/sys.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/keeper.h"

#define SIZE (UINT64_C(64) << 10)

static struct opened got;
static uint32_t flags; /* besides */

/* So many ahead, and these are used. */
static int ahead(uint64_t session, uint32_t n, uint32_t n_taken, const uint64_t *taken)
{
    static struct alloc_args args;

    args = (struct alloc_args){.n = n, .flags = BUFFER_AHEAD | flags, .taken = {.n = n_taken}};
    for (uint32_t i = 0; i < n; i++)
        args.sizes[i] = SIZE;
    for (uint32_t i = 0; i < n_taken; i++)
        args.taken.id[i] = taken[i];
    memset(&got, 0, sizeof(got));
    return CALL(session, op_alloc, &args, &got);
}

/* Plenty is in stock, from which they come; what was asked for to that end is given back. */
static void have_stock(uint64_t session)
{
    int64_t end = wait_now_ms() + PATIENCE_MS;
    uint64_t buffers[16];

    while (host_stock() < 8 * SIZE && wait_now_ms() < end) {
        for (unsigned i = 0; i < 16; i++)
            assert_int_equal(host_alloc(session, SIZE, 0, &buffers[i]), 0);
        for (unsigned i = 0; i < 16; i++)
            assert_int_equal(host_release(session, buffers[i]), 0);
        host_turn(5);
    }
    assert_true(host_stock() >= 8 * SIZE);
    assert_true(HOST_UNTIL(!host_used()));
}

static bool are_given(uint64_t session, uint32_t n, uint32_t n_taken, const uint64_t *taken)
{
    return !ahead(session, n, n_taken, taken) && got.n == n;
}

/* As soon as there is stock again. */
static void get(uint64_t session, uint32_t n, uint32_t n_taken, const uint64_t *taken)
{
    assert_true(HOST_UNTIL(are_given(session, n, n_taken, taken)));
}

/* There is stock, and yet. */
static void get_none(uint64_t session, uint32_t n)
{
    assert_true(HOST_UNTIL(host_stock() >= n * SIZE));
    assert_int_equal(ahead(session, n, 0, NULL), 0);
    assert_int_equal(got.n, 0);
}

struct shown {
    uint64_t buffers, bytes, pools, nodes, holds, session_bytes;
    struct status_info status;
};

static bool add_buffer(void *userdata, const struct buffer_info *info)
{
    struct shown *shown = userdata;

    shown->buffers++;
    shown->bytes += info->bytes;
    return true;
}

static bool add_pool(void *userdata, const struct pool_info *info)
{
    ((struct shown *)userdata)->pools += info->used;
    return true;
}

static bool add_node(void *userdata, const struct node_info *info)
{
    ((struct shown *)userdata)->nodes += info->used;
    return true;
}

static bool add_session(void *userdata, const struct session_info *info)
{
    struct shown *shown = userdata;

    shown->holds += info->holds;
    shown->session_bytes += info->bytes;
    return true;
}

/* All that anybody is shown says that there are so many buffers, of SIZE each, and the sums are right. */
static void assert_shown(uint64_t session, uint64_t n)
{
    struct shown shown = {.buffers = 0};
    struct list_args args = {.userdata = &shown};
    uint64_t next;

    assert_int_equal(CALL(session, op_list_buffers, &args, &next, add_buffer), 0);
    assert_int_equal(CALL(session, op_list_pools, &args, &next, add_pool), 0);
    assert_int_equal(CALL(session, op_list_nodes, &args, &next, add_node), 0);
    assert_int_equal(CALL(session, op_list_sessions, &args, &next, add_session), 0);
    assert_int_equal(CALL(session, op_status, &shown.status), 0);
    assert_int_equal(shown.buffers, n);
    assert_int_equal(shown.bytes, n * SIZE);
    assert_int_equal(shown.pools, n * SIZE);
    assert_int_equal(shown.nodes, n * SIZE);
    assert_int_equal(shown.holds, n);
    assert_int_equal(shown.session_bytes, n * SIZE);
    assert_int_equal(shown.status.buffers, n);
    assert_int_equal(shown.status.bytes, n * SIZE);
    assert_int_equal(host_check(session), 0);
}

static void nobody_is_shown_them_until_they_are_used(void **state)
{
    uint64_t session = host_session(1), ids[2];

    (void)state;
    have_stock(session);
    get(session, 2, 0, NULL);
    assert_int_equal(got.items[0].rights, RIGHTS_ALL);
    assert_int_equal(got.items[0].flags & BUFFER_AHEAD, 0);
    ids[0] = got.items[0].id;
    ids[1] = got.items[1].id;
    assert_int_equal(host.broker->buffers.bytes, 2 * SIZE);
    assert_shown(session, 0);
    /* said twice it is the same, and what never was means nothing */
    get(session, 1, 1, ids);
    assert_shown(session, 1);
    get(session, 1, 2, (uint64_t[]){ids[0], UINT64_MAX});
    assert_shown(session, 1);
    get(session, 1, 1, ids + 1);
    assert_shown(session, 2);
    assert_int_equal(host_release(session, ids[0]), 0);
    assert_int_equal(host_release(session, ids[1]), 0);
    assert_true(HOST_UNTIL(host.broker->buffers.bytes == 3 * SIZE));
    assert_shown(session, 0);
}

/* A lock on it, by its session's own description. */
static void take(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = MEMORYD_AHEAD_LOCK, .l_len = 1};

    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
}

/* Nobody says a word. */
static void whoever_locks_one_has_it(void **state)
{
    uint64_t session = host_session(1), ids[3];
    int fds[3];

    (void)state;
    have_stock(session);
    flags = BUFFER_WANT_FDS;
    get(session, 3, 0, NULL);
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = got.items[i].id;
        fds[i] = fdset_steal(&got.fds, i);
    }
    assert_shown(session, 0);
    take(fds[1]);
    assert_shown(session, 1);
    take(fds[0]);
    assert_shown(session, 2);
    /* once it is seen it stays so, and said later it is the same */
    close(fds[0]);
    close(fds[1]);
    get(session, 1, 3, ids);
    fdset_deinit(&got.fds);
    flags = 0;
    assert_shown(session, 3);
    close(fds[2]);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(host_release(session, ids[i]), 0);
    assert_true(HOST_UNTIL(host.broker->buffers.bytes == SIZE));
    assert_shown(session, 0);
}

static struct sys_calls calls;
static uint64_t look_ns; /* how long one takes at least */
static unsigned looks;

/* As if the session had made very many locks. */
static int look(int fd, off_t at)
{
    uint64_t begin = clock_now_ns();

    looks++;
    while (clock_now_ns() - begin < look_ns)
        continue;
    return sys_kernel.is_locked(fd, at);
}

static int setup_looking(void **state)
{
    (void)state;
    host_reset(0);
    calls = *sys;
    calls.is_locked = look;
    sys = &calls;
    host.stock = (struct pool_capacity){.percent = 25};
    /* so that 128 are little of it */
    host.pool_bytes = 128 * SIZE * POOL_AHEAD_PART;
    host_start();
    return 0;
}

static int teardown_looking(void **state)
{
    int r = host_teardown(state);

    sys = &sys_kernel;
    look_ns = 0;
    return r;
}

static void I7_one_that_takes_long_to_look_at_is_used(void **state)
{
    uint64_t session = host_session(1), ids[2];

    (void)state;
    have_stock(session);
    get(session, 2, 0, NULL);
    ids[0] = got.items[0].id;
    ids[1] = got.items[1].id;
    look_ns = NSEC_PER_MSEC;
    looks = 0;
    assert_shown(session, 2);
    assert_true(looks > 0);
    looks = 0;
    assert_shown(session, 2);
    assert_int_equal(looks, 0);
    assert_int_equal(host_release(session, ids[0]), 0);
    assert_int_equal(host_release(session, ids[1]), 0);
    assert_true(HOST_UNTIL(!host.broker->buffers.bytes));
    assert_shown(session, 0);
}

/* Each of them is quickly looked at, and all together not: that happens once. */
static void I7_so_many_that_take_long_together_are_used(void **state)
{
    enum { SESSIONS = 16, EACH = MEMORYD_AHEAD_MAX, LOOK_US = 18 };
    uint64_t session = host_session(1), ids[SESSIONS * EACH], sessions[SESSIONS];

    (void)state;
    host.broker->ahead_max = SESSIONS * EACH;
    have_stock(session);
    for (unsigned i = 0; i < SESSIONS; i++) {
        sessions[i] = host_session(2 + i);
        get(sessions[i], EACH, 0, NULL);
        for (unsigned k = 0; k < EACH; k++)
            ids[i * EACH + k] = got.items[k].id;
    }
    assert_int_equal(host.broker->buffers.n_ahead, SESSIONS * EACH);
    look_ns = LOOK_US * NSEC_PER_USEC;
    looks = 0;
    assert_int_equal(host_check(session), 0);
    assert_true(looks > 0);
    looks = 0;
    assert_int_equal(host_check(session), 0);
    assert_int_equal(looks, 0);
    for (unsigned i = 0; i < SESSIONS * EACH; i++)
        assert_int_equal(host_release(sessions[i / EACH], ids[i]), 0);
    assert_true(HOST_UNTIL(!host.broker->buffers.bytes));
    assert_shown(session, 0);
}

static void those_of_a_session_are_not_taken_by_another(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), id;

    (void)state;
    have_stock(session);
    get(session, 1, 0, NULL);
    id = got.items[0].id;
    get(other, 1, 1, &id);
    assert_shown(session, 0);
}

/* Whatever is done with one makes it a buffer like others. */
static void whoever_uses_one_sees_it(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), reservation, address;
    struct share_args terms = {.rights = RIGHT_READ};
    struct buffer_info info;
    uint8_t token[32];
    int fd;

    (void)state;
    have_stock(session);
    for (unsigned way = 0; way < 6; way++) {
        get(session, 1, 0, NULL);
        assert_shown(session, way);
        switch (way) {
        case 0:
            assert_int_equal(host_info(other, got.items[0].id, &info), 0);
            assert_int_equal(info.flags & BUFFER_AHEAD, 0);
            break;
        case 1:
            fd = host_export(session, got.items[0].id, RIGHT_READ);
            assert_true(fd >= 0);
            close(fd);
            break;
        case 2:
            assert_int_equal(host_share(session, got.items[0].id, &terms, token), 0);
            break;
        case 3:
            assert_int_equal(host_bind(session, got.items[0].id, "it", 0, 0), 0);
            break;
        case 4:
            assert_int_equal(host_lookup(other, "", got.items[0].id, RIGHT_READ, NULL), 0);
            assert_int_equal(host_release(other, got.items[0].id), 0);
            break;
        default:
            /* refused, since it has a home, but for no other reason than one like others would be */
            assert_int_equal(CALL(session, op_reserve, SIZE, 0, 0, &reservation, &address), 0);
            assert_int_equal(CALL(session, op_place, got.items[0].id, reservation, 0), STATUS_BUSY);
            break;
        }
        assert_shown(session, way + 1);
    }
}

static uint64_t tokens_shown(uint64_t session)
{
    struct status_info status;

    assert_int_equal(CALL(session, op_status, &status), 0);
    return status.tokens;
}

/* Theirs are as little to be seen, and whoever has one uses its buffer by it. */
static void their_tokens_come_to_light_with_them(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), ids[3];
    uint8_t tokens[3][MEMORYD_TOKEN_SIZE];
    struct revoke_args revoke = {.by_token = true};
    uint32_t revoked = 0;

    (void)state;
    have_stock(session);
    flags = BUFFER_WANT_TOKENS;
    for (unsigned i = 0; i < 3; i++) {
        get(session, 1, 0, NULL);
        ids[i] = got.items[0].id;
        memcpy(tokens[i], got.items[0].token, sizeof(tokens[i]));
    }
    flags = 0;
    assert_int_equal(tokens_shown(session), 0);
    assert_shown(session, 0);
    get(session, 1, 1, ids);
    assert_int_equal(tokens_shown(session), 1);
    assert_shown(session, 1);
    assert_int_equal(host_open(other, tokens[1], RIGHT_READ, NULL), 0);
    assert_int_equal(host_opened.id, ids[1]);
    assert_int_equal(host_release(other, ids[1]), 0);
    assert_int_equal(tokens_shown(session), 2);
    assert_shown(session, 2);
    memcpy(revoke.token, tokens[2], sizeof(revoke.token));
    assert_int_equal(CALL(other, op_revoke, &revoke, &revoked), 0);
    assert_int_equal(tokens_shown(session), 2);
    assert_shown(session, 3);
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_true(HOST_UNTIL(host.broker->buffers.bytes == 0));
    assert_int_equal(tokens_shown(other), 0);
    assert_int_equal(host_check(other), 0);
}

static void they_end_with_their_session_and_when_they_are_given_back(void **state)
{
    uint64_t session = host_session(1), other = host_session(2);

    (void)state;
    have_stock(session);
    flags = BUFFER_WANT_TOKENS;
    get(session, 2, 0, NULL);
    flags = 0;
    assert_int_equal(host_release(session, got.items[1].id), 0);
    assert_int_equal(host.broker->buffers.n_ahead, 1);
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_true(HOST_UNTIL(host.broker->buffers.bytes == 0));
    assert_shown(other, 0);
}

static void there_are_only_a_few(void **state)
{
    uint64_t session = host_session(1);

    (void)state;
    have_stock(session);
    for (unsigned i = 0; i < MEMORYD_AHEAD_MAX; i++)
        get(session, 1, 0, NULL);
    get_none(session, 1);
}

/* Nor of all sessions together: their descriptors may stay on the way. */
static void there_are_only_a_few_of_all_sessions(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), id;
    struct rlimit limit;

    (void)state;
    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    assert_in_range(host.broker->ahead_max, 1, BUFFERS_AHEAD_MAX);
    assert_in_range(host.broker->ahead_max, 1, limit.rlim_cur / 64);
    host.broker->ahead_max = 3;
    have_stock(session);
    get(session, 2, 0, NULL);
    get_none(other, 2);
    get(other, 1, 0, NULL);
    id = got.items[0].id;
    get_none(other, 1);
    get_none(session, 1);
    /* one that is used leaves its place */
    get(other, 1, 1, &id);
    assert_shown(session, 1);
}

#define TOO_MANY (BUFFERS_AHEAD_MAX + 8)

static void make_too_many(void)
{
    uint64_t session = host_session_of(1, keeper_test, getuid()), id;

    for (unsigned i = 0; i < TOO_MANY; i++)
        assert_int_equal(host_alloc(session, 4096, 0, &id), 0);
}

/* As a broker may have left it that allows more. The others are shown: nobody needs to be looked at for that. */
static void another_broker_finds_no_more_than_it_may_have(void **state)
{
    struct buffer_record *record;

    (void)state;
    host_reset(0);
    generation_run(make_too_many);
    kept_header()->features |= LEDGER_AHEAD;
    for (unsigned i = 0; (record = kept_record(RECORD_BUFFER, i)) != NULL; i++)
        record->flags |= BUFFER_AHEAD;
    kept_unmap();
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host.broker->buffers.n_ahead, BUFFERS_AHEAD_MAX);
    assert_int_equal(host.broker->buffers.bytes_ahead, BUFFERS_AHEAD_MAX * UINT64_C(4096));
    assert_int_equal(host_check(host_session(2)), 0);
    generation_finish();
}

/* And none that is not there already. */
static void they_are_from_stock(void **state)
{
    uint64_t session = host_session(1);

    (void)state;
    assert_int_equal(ahead(session, 1, 0, NULL), 0);
    assert_int_equal(got.n, 0);
    assert_int_equal(host.broker->buffers.bytes, 0);
    /* but who asks for them again and again is heard */
    get(session, 1, 0, NULL);
    assert_shown(session, 0);
}

static void they_are_made_where_there_is_plenty(void **state)
{
    uint64_t session = host_session(1), buffer;

    (void)state;
    have_stock(session);
    host.limits.user[ACCOUNT_BUFFERS] = 3 * ACCOUNT_AHEAD_PART;
    broker_set_limits(host.broker, &host.limits);
    for (unsigned i = 0; i < 3; i++)
        get(session, 1, 0, NULL);
    get_none(session, 1);
    host_no_limits(&host.limits);
    host.limits.session[ACCOUNT_BYTES] = 3 * SIZE * ACCOUNT_AHEAD_PART;
    broker_set_limits(host.broker, &host.limits);
    get_none(session, 1);
    host_no_limits(&host.limits);
    broker_set_limits(host.broker, &host.limits);
    /* a pool that is more than half full */
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES / 2, 0, &buffer), 0);
    assert_int_equal(ahead(session, 1, 0, NULL), 0);
    assert_int_equal(got.n, 0);
    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 3 * SIZE));
    get(session, 1, 0, NULL);
    assert_shown(session, 0);
}

/* They count: what the others may have together with them is no more than the limit. */
static void limits_are_never_passed_by_them(void **state)
{
    const unsigned most = 2 * ACCOUNT_AHEAD_PART;
    uint64_t session = host_session(1), buffer, ids[2];

    (void)state;
    have_stock(session);
    host.limits.user[ACCOUNT_BUFFERS] = most;
    broker_set_limits(host.broker, &host.limits);
    get(session, 2, 0, NULL);
    ids[0] = got.items[0].id;
    ids[1] = got.items[1].id;
    for (unsigned i = 2; i < most; i++)
        assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), STATUS_LIMIT);
    assert_int_equal(host_release(session, ids[0]), 0);
    assert_int_equal(host_release(session, ids[1]), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_shown(session, most);
}

static void a_repeated_reply_uses_nothing(void **state)
{
    uint64_t session = host_session(1);
    struct export_args again = {.buffers = {.n = 1}, .rights = {RIGHT_READ | RIGHT_WRITE}, .again = true};
    struct statuses statuses;

    (void)state;
    have_stock(session);
    get(session, 1, 0, NULL);
    again.buffers.id[0] = got.items[0].id;
    assert_int_equal(CALL(session, op_export, &again, &statuses), 0);
    assert_int_equal(statuses.status[0], 0);
    fdset_deinit(&statuses.fds);
    assert_shown(session, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup_stock, host_teardown)
        TEST(nobody_is_shown_them_until_they_are_used),
        TEST(whoever_locks_one_has_it),
        cmocka_unit_test_setup_teardown(I7_one_that_takes_long_to_look_at_is_used, setup_looking, teardown_looking),
        cmocka_unit_test_setup_teardown(I7_so_many_that_take_long_together_are_used, setup_looking, teardown_looking),
        TEST(those_of_a_session_are_not_taken_by_another),
        TEST(whoever_uses_one_sees_it),
        TEST(their_tokens_come_to_light_with_them),
        TEST(they_end_with_their_session_and_when_they_are_given_back),
        TEST(there_are_only_a_few),
        TEST(there_are_only_a_few_of_all_sessions),
        cmocka_unit_test(another_broker_finds_no_more_than_it_may_have),
        TEST(they_are_from_stock),
        TEST(they_are_made_where_there_is_plenty),
        TEST(limits_are_never_passed_by_them),
        TEST(a_repeated_reply_uses_nothing),
#undef TEST
    };

    return test_run(tests, NULL, NULL);
}
