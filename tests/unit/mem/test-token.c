/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: the layout of the 32 bytes, every outcome, and what a wrong secret does not tell. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "tests/support/child.h"
#include "tests/unit/mem/state.h"

static struct tokens tokens;
static struct buffer *buffer;
static gid_t groups[] = {20, 30};
static struct peer bearer;

static int setup(void **state)
{
    state_setup(state);
    tokens_init(&tokens, s.ledger);
    buffer = state_live_buffer();
    bearer = (struct peer){
        .uid = 1000, .gid = 10, .pid = 500, .pidfd = -1, .identity = 12345, .groups = groups, .n_groups = 2};
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(buffer->n_tokens, 0);
    assert_int_equal(buffer->n_keeping, 0);
    assert_int_equal(account_used(s.account, ACCOUNT_TOKENS), 0);
    buffer_free(&s.buffers, buffer);
    tokens_forget_ended(&tokens);
    tokens_deinit(&tokens);
    return state_teardown(state);
}

static struct token *token_with(struct token_args args)
{
    struct token *token;

    args.buffer = buffer;
    args.account = s.account;
    args.session = 99;
    args.in_session = &s.in_session;
    args.maker_uid = 1000;
    args.rights = RIGHT_READ;
    if (!args.expires_at)
        args.expires_at = DEADLINE_NEVER;
    assert_int_equal(token_new(&tokens, &args, &token, NULL), 0);
    record_commit(&tokens.table, token);
    return token;
}

/* A refusal has a sentence, and gives nothing. */
static int check_at(const uint8_t *wire, uint64_t now)
{
    struct problem problem = PROBLEM_NULL;
    struct token *token = NULL;
    int r = tokens_check(&tokens, wire, &bearer, now, &token, &problem);

    assert_int_equal(!!r, !token);
    assert_int_equal(!r, !problem.sentence[0]);
    return r;
}

static int check(const uint8_t *wire)
{
    return check_at(wire, 1);
}

static void test_layout(void **state)
{
    struct token *weak = token_with((struct token_args){0});
    struct token *keeping = token_with((struct token_args){.flags = TOKEN_KEEPING, .uses = 1});
    uint32_t broker = ledger_broker_id(s.ledger);
    uint64_t serial = weak->record->head.id;
    uint8_t wire[MEMORYD_TOKEN_SIZE], other[MEMORYD_TOKEN_SIZE];
    unsigned bits = 0;

    token_write(weak, wire);
    token_write(keeping, other);
    for (int i = 0; i < 4; i++)
        assert_int_equal(wire[i], broker >> 8 * i & 255);
    assert_int_equal(wire[4], 1);
    assert_int_equal(wire[5], 0);
    assert_int_equal(other[5], 1);
    assert_int_equal(wire[6] | wire[7], 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(wire[8 + i], serial >> 8 * i & 255);
    /* two secrets of 16 random bytes differ in nearly all of them */
    for (int i = 16; i < 32; i++)
        bits += (unsigned)__builtin_popcount(wire[i] ^ other[i]);
    assert_true(bits > 24 && bits < 104);
    assert_int_equal(check(wire), 0);
    assert_int_equal(check(other), 0);
    token_free(weak);
    token_free(keeping);
}

static void test_malformed_and_foreign(void **state)
{
    struct token *token = token_with((struct token_args){0});
    uint8_t wire[MEMORYD_TOKEN_SIZE], bad[MEMORYD_TOKEN_SIZE] = {0};

    assert_int_equal(check(bad), STATUS_TOKEN_MALFORMED);
    memset(bad, 0xff, sizeof(bad));
    assert_int_equal(check(bad), STATUS_TOKEN_MALFORMED);
    token_write(token, wire);
    for (int i = 0; i < 8; i++) {
        memcpy(bad, wire, sizeof(bad));
        bad[i] ^= i == 5 ? 2 : 1;
        assert_int_equal(check(bad), i < 4 ? STATUS_TOKEN_FOREIGN : STATUS_TOKEN_MALFORMED);
    }
    /* weak made keeping */
    memcpy(bad, wire, sizeof(bad));
    bad[5] ^= 1;
    assert_int_equal(check(bad), STATUS_TOKEN_REJECTED);
    token_free(token);
}

/* Who has only guessed a serial does not learn how its token ended, or for whom it is. */
static void test_wrong_secret_tells_nothing(void **state)
{
    struct token *live = token_with((struct token_args){0});
    struct token *others = token_with((struct token_args){.flags = TOKEN_ONLY_UID, .uid = 4});
    struct token *revoked = token_with((struct token_args){0});
    struct token *used_up = token_with((struct token_args){.uses = 1});
    struct token *expired = token_with((struct token_args){.expires_at = 1});
    struct token *all[] = {live, others, revoked, used_up, expired};
    uint8_t wires[5][MEMORYD_TOKEN_SIZE];

    for (int i = 0; i < 5; i++)
        token_write(all[i], wires[i]);
    token_end(revoked, STATUS_TOKEN_REVOKED);
    token_end(used_up, STATUS_TOKEN_EXHAUSTED);
    for (int i = 0; i < 5; i++) {
        for (int byte = 16; byte < 32; byte++) {
            wires[i][byte] ^= 0x80;
            assert_int_equal(check(wires[i]), STATUS_TOKEN_REJECTED);
            wires[i][byte] ^= 0x80;
        }
    }
    assert_int_equal(check(wires[0]), 0);
    assert_int_equal(check(wires[1]), STATUS_TOKEN_NOT_YOURS);
    assert_int_equal(check(wires[2]), STATUS_TOKEN_REVOKED);
    assert_int_equal(check(wires[3]), STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(check(wires[4]), STATUS_TOKEN_EXHAUSTED);
    /* the id of something else, and one that was never given out */
    memset(wires[0] + 8, 0, 8);
    wires[0][8] = (uint8_t)buffer->record->head.id;
    assert_int_equal(check(wires[0]), STATUS_TOKEN_STALE);
    memset(wires[0] + 8, 0xff, 8);
    assert_int_equal(check(wires[0]), STATUS_TOKEN_REJECTED);
    memset(wires[0] + 8, 0, 8);
    assert_int_equal(check(wires[0]), STATUS_TOKEN_REJECTED);
    token_free(live);
    token_free(others);
    token_free(expired);
}

static void test_uses(void **state)
{
    struct token *token = token_with((struct token_args){.uses = 2}), *any = token_with((struct token_args){0});
    uint8_t wire[MEMORYD_TOKEN_SIZE];

    token_write(token, wire);
    /* checking uses nothing up */
    for (int i = 0; i < 5; i++)
        assert_int_equal(check(wire), 0);
    assert_true(token_use(token));
    assert_int_equal(check(wire), 0);
    assert_false(token_use(token));
    assert_int_equal(check(wire), STATUS_TOKEN_EXHAUSTED);
    token_end(token, STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(check(wire), STATUS_TOKEN_EXHAUSTED);
    for (int i = 0; i < 1000; i++)
        assert_true(token_use(any));
    token_free(any);
}

static void test_expiry(void **state)
{
    struct token *token = token_with((struct token_args){.expires_at = 1000});
    uint8_t wire[MEMORYD_TOKEN_SIZE];

    token_write(token, wire);
    assert_int_equal(check_at(wire, 999), 0);
    /* even if the timer that ends it has not fired */
    assert_int_equal(check_at(wire, 1000), STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(check_at(wire, UINT64_MAX), STATUS_TOKEN_EXHAUSTED);
    token_free(token);
}

static void test_for_whom_it_is(void **state)
{
    const struct {
        struct token_args args;
        int status;
    } cases[] = {
        {{.flags = TOKEN_ONLY_UID, .uid = 1000}, 0},
        {{.flags = TOKEN_ONLY_UID, .uid = 1001}, STATUS_TOKEN_NOT_YOURS},
        {{.flags = 0, .uid = 1001, .gid = 99, .pid = 1}, 0},
        {{.flags = TOKEN_ONLY_GID, .gid = 10}, 0},
        {{.flags = TOKEN_ONLY_GID, .gid = 30}, 0},
        {{.flags = TOKEN_ONLY_GID, .gid = 31}, STATUS_TOKEN_NOT_YOURS},
        {{.flags = TOKEN_ONLY_PID, .pid = 500, .identity = 12345}, 0},
        {{.flags = TOKEN_ONLY_PID, .pid = 501, .identity = 12345}, STATUS_TOKEN_NOT_YOURS},
        /* a later process of the same number */
        {{.flags = TOKEN_ONLY_PID, .pid = 500, .identity = 12344}, STATUS_TOKEN_NOT_YOURS},
        {{.flags = TOKEN_ONLY_UID | TOKEN_ONLY_GID, .uid = 1000, .gid = 31}, STATUS_TOKEN_NOT_YOURS},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct token *token = token_with(cases[i].args), *found = NULL;
        uint8_t wire[MEMORYD_TOKEN_SIZE];

        token_write(token, wire);
        assert_int_equal(check(wire), cases[i].status);
        /* who revokes it need not be who may open with it */
        assert_int_equal(tokens_identify(&tokens, wire, &found, NULL), 0);
        assert_ptr_equal(found, token);
        token_free(token);
    }
}

static void test_remembered_for_a_while(void **state)
{
    uint8_t first[MEMORYD_TOKEN_SIZE], second[MEMORYD_TOKEN_SIZE], gone[MEMORYD_TOKEN_SIZE];
    struct token *token = token_with((struct token_args){0});

    token_write(token, first);
    token_end(token, STATUS_TOKEN_REVOKED);
    token = token_with((struct token_args){0});
    token_write(token, second);
    token_end(token, STATUS_TOKEN_REVOKED);
    for (int i = 0; i < TOKENS_REMEMBERED - 1; i++)
        token_end(token_with((struct token_args){0}), STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(check(first), STATUS_TOKEN_STALE);
    assert_int_equal(check(second), STATUS_TOKEN_REVOKED);
    /* the buffer ended: there is nothing to tell but that */
    token = token_with((struct token_args){0});
    token_write(token, gone);
    token_free(token);
    assert_int_equal(check(gone), STATUS_TOKEN_STALE);
    assert_int_equal(check(second), STATUS_TOKEN_REVOKED);
}

struct wires {
    uint8_t oldest[MEMORYD_TOKEN_SIZE];
    uint8_t youngest[MEMORYD_TOKEN_SIZE];
};

/* A broker that dies: all that is left of it is the ledger. */
static void end_many_tokens(int channel, void *context)
{
    struct wires wires;
    struct token *token = token_with((struct token_args){0});

    (void)context;
    token_write(token, wires.oldest);
    token_end(token, STATUS_TOKEN_REVOKED);
    for (int i = 0; i < TOKENS_REMEMBERED - 2; i++)
        token_end(token_with((struct token_args){0}), STATUS_TOKEN_REVOKED);
    token = token_with((struct token_args){0});
    token_write(token, wires.youngest);
    token_end(token, STATUS_TOKEN_EXHAUSTED);
    ledger_commit(s.ledger);
    CHECK(write(channel, &wires, sizeof(wires)) == sizeof(wires));
}

static void test_remembered_by_the_next_broker(void **state)
{
    struct tokens none = tokens;
    uint8_t wire[MEMORYD_TOKEN_SIZE];
    struct ledger *ledger;
    struct token *token;
    struct child child;
    struct wires wires;

    child_start(&child, end_many_tokens, NULL);
    assert_int_equal(read(child.channel, &wires, sizeof(wires)), sizeof(wires));
    child_finish(&child);
    assert_int_equal(check(wires.youngest), STATUS_TOKEN_STALE);

    assert_int_equal(ledger_adopt(&ledger, fcntl(ledger_fd(s.ledger), F_DUPFD_CLOEXEC, 3)), 0);
    tokens_init(&tokens, ledger);
    assert_int_equal(tokens_recover_ended(&tokens), 0);
    assert_int_equal(check(wires.oldest), STATUS_TOKEN_REVOKED);
    assert_int_equal(check(wires.youngest), STATUS_TOKEN_EXHAUSTED);
    memcpy(wire, wires.youngest, sizeof(wire));
    wire[MEMORYD_TOKEN_SIZE - 1] ^= 1;
    assert_int_equal(check(wire), STATUS_TOKEN_REJECTED);
    /* as many as before, and the oldest of them goes first */
    token = token_with((struct token_args){0});
    token_write(token, wire);
    token_end(token, STATUS_TOKEN_REVOKED);
    assert_int_equal(check(wires.oldest), STATUS_TOKEN_STALE);
    assert_int_equal(check(wires.youngest), STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(check(wire), STATUS_TOKEN_REVOKED);
    tokens_forget_ended(&tokens);
    assert_int_equal(check(wire), STATUS_TOKEN_STALE);
    tokens_deinit(&tokens);
    ledger_free(ledger);
    tokens = none;
}

static void test_links_counts_and_limit(void **state)
{
    struct token_args args = {
        .buffer = buffer, .account = s.account, .rights = RIGHT_READ, .expires_at = DEADLINE_NEVER};
    struct token *keeping = token_with((struct token_args){.flags = TOKEN_KEEPING, .uses = 1});
    struct token *weak = token_with((struct token_args){0}), *none = NULL;
    uint64_t id = weak->record->head.id;

    assert_int_equal(buffer->n_tokens, 2);
    assert_int_equal(buffer->n_keeping, 1);
    assert_true(buffer_is_kept(buffer));
    assert_int_equal(account_used(s.account, ACCOUNT_TOKENS), 2);
    s.accounts.limits.session[ACCOUNT_TOKENS] = 2;
    assert_int_equal(token_new(&tokens, &args, &none, NULL), STATUS_LIMIT);
    assert_null(none);
    assert_int_equal(buffer->n_tokens, 2);
    assert_ptr_equal(list_first(&s.in_session), &keeping->in_session);
    token_leave_session(keeping);
    assert_int_equal(keeping->record->session, 0);
    assert_ptr_equal(list_first(&s.in_session), &weak->in_session);
    token_end(keeping, STATUS_TOKEN_EXHAUSTED);
    assert_false(buffer_is_kept(buffer));
    assert_ptr_equal(tokens_find(&tokens, id), weak);
    token_free(weak);
    assert_null(tokens_find(&tokens, id));
    /* the id of something else is no token */
    assert_null(tokens_find(&tokens, buffer->record->head.id));
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_layout),
        T(test_malformed_and_foreign),
        T(test_wrong_secret_tells_nothing),
        T(test_uses),
        T(test_expiry),
        T(test_for_whom_it_is),
        T(test_remembered_for_a_while),
        T(test_remembered_by_the_next_broker),
        T(test_links_counts_and_limit),
    };

    return test_run(tests, NULL, NULL);
}
