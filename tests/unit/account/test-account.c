/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts and charges: limits at their boundaries, sums after everything, lives of accounts. */
#include <string.h>

#include "account/account.h"
#include "proto/status.h"
#include "tests/support/test.h"

static struct accounts accounts;

static void limits(uint64_t user, uint64_t session)
{
    struct account_limits limits = {.by_descriptors = false};

    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++) {
        limits.user[i] = user;
        limits.session[i] = session;
    }
    accounts_set_limits(&accounts, &limits);
}

static int setup(void **state)
{
    accounts_init(&accounts, NULL);
    return 0;
}

/* Every test gives everything back: the assertions at the end of life are part of each. */
static int teardown(void **state)
{
    assert_int_equal(accounts.count, 0);
    accounts_deinit(&accounts);
    return 0;
}

static void test_limit_is_reached_and_not_passed(void **state)
{
    struct charge a = CHARGE_NULL, b = CHARGE_NULL;
    struct problem problem = PROBLEM_NULL;
    struct account *user;

    limits(10, ACCOUNT_NO_LIMIT);
    assert_int_equal(account_of_user(&accounts, 1000, &user, NULL), 0);
    assert_int_equal(account_left(user, ACCOUNT_BUFFERS), 10);
    assert_int_equal(charge_init(&a, user, ACCOUNT_BUFFERS, 11, &problem), STATUS_LIMIT);
    assert_null(a.account);
    assert_int_equal(charge_init(&a, user, ACCOUNT_BUFFERS, 10, NULL), 0);
    assert_int_equal(account_left(user, ACCOUNT_BUFFERS), 0);
    assert_int_equal(charge_init(&b, user, ACCOUNT_BUFFERS, 1, &problem), STATUS_LIMIT);
    /* who, how much, and which key */
    assert_non_null(strstr(problem.sentence, "user 1000 has 10 buffers and asks for 1 more, but may have 10"));
    assert_non_null(strstr(problem.sentence, "uid_buffers in [limits]"));
    /* the other slots are other matters */
    assert_int_equal(charge_init(&b, user, ACCOUNT_NAMES, 1, NULL), 0);
    charge_deinit(&a);
    charge_deinit(&a);
    charge_deinit(&b);
    assert_int_equal(account_used(user, ACCOUNT_BUFFERS), 0);
    account_unref(user);
}

static void test_overflow_is_over_the_limit(void **state)
{
    struct charge charge = CHARGE_NULL;
    struct account *user;

    assert_int_equal(account_of_user(&accounts, 1, &user, NULL), 0);
    assert_int_equal(charge_init(&charge, user, ACCOUNT_BYTES, UINT64_MAX, NULL), STATUS_LIMIT);
    assert_int_equal(charge_init(&charge, user, ACCOUNT_BYTES, CHARGE_MAX + 1, NULL), STATUS_LIMIT);
    assert_int_equal(account_used(user, ACCOUNT_BYTES), 0);
    assert_int_equal(charge_init(&charge, user, ACCOUNT_BYTES, CHARGE_MAX, NULL), 0);
    assert_int_equal(account_used(user, ACCOUNT_BYTES), CHARGE_MAX);
    charge_deinit(&charge);
    assert_int_equal(charge_init(&charge, user, ACCOUNT_BYTES, 0, NULL), 0);
    charge_deinit(&charge);
    account_unref(user);
}

static void test_session_is_part_of_its_user(void **state)
{
    struct charge charges[4] = {CHARGE_NULL, CHARGE_NULL, CHARGE_NULL, CHARGE_NULL};
    struct problem problem = PROBLEM_NULL;
    struct account *one, *two;

    limits(10, 6);
    assert_int_equal(account_new_session(&accounts, 7, &one, NULL), 0);
    assert_int_equal(account_new_session(&accounts, 7, &two, NULL), 0);
    assert_ptr_equal(one->parent, two->parent);
    assert_int_equal(account_left(one, ACCOUNT_TOKENS), 6);

    assert_int_equal(charge_init(&charges[0], one, ACCOUNT_TOKENS, 7, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "session_tokens"));
    assert_int_equal(charge_init(&charges[0], one, ACCOUNT_TOKENS, 6, NULL), 0);
    /* the session may, the user may not: nothing is charged to either */
    assert_int_equal(account_left(two, ACCOUNT_TOKENS), 4);
    assert_int_equal(charge_init(&charges[1], two, ACCOUNT_TOKENS, 5, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "uid_tokens"));
    assert_int_equal(account_used(two, ACCOUNT_TOKENS), 0);
    assert_int_equal(charge_init(&charges[1], two, ACCOUNT_TOKENS, 4, NULL), 0);
    assert_int_equal(account_used(account_find(&accounts, 7), ACCOUNT_TOKENS), 10);
    /* the number of sessions is the user's only */
    for (int i = 0; i < 2; i++)
        assert_int_equal(charge_init(&charges[2 + i], two, ACCOUNT_SESSIONS, 5, NULL), 0);
    for (int i = 0; i < 4; i++)
        charge_deinit(&charges[i]);
    account_unref(one);
    account_unref(two);
    assert_null(account_find(&accounts, 7));
}

static void test_account_lives_as_long_as_its_charges(void **state)
{
    struct charge charge = CHARGE_NULL;
    struct account *session;

    assert_int_equal(account_new_session(&accounts, 7, &session, NULL), 0);
    assert_int_equal(charge_init(&charge, session, ACCOUNT_BYTES, 4096, NULL), 0);
    /* the session ends; what it made goes on, and is still its user's */
    account_unref(session);
    assert_int_equal(account_used(account_find(&accounts, 7), ACCOUNT_BYTES), 4096);
    charge_deinit(&charge);
    assert_null(account_find(&accounts, 7));
}

/* I5: when the owner's last claim ends, the charge moves, over the new owner's limit if need be. */
static void test_I5_charge_moves_over_the_limit(void **state)
{
    struct charge charge = CHARGE_NULL, more = CHARGE_NULL;
    struct account *from, *to;

    limits(100, ACCOUNT_NO_LIMIT);
    assert_int_equal(account_of_user(&accounts, 1, &from, NULL), 0);
    assert_int_equal(account_new_session(&accounts, 2, &to, NULL), 0);
    assert_int_equal(charge_init(&charge, from, ACCOUNT_BYTES, 100, NULL), 0);
    assert_int_equal(charge_init(&more, to, ACCOUNT_BYTES, 60, NULL), 0);
    charge_move(&charge, to);
    assert_int_equal(account_used(from, ACCOUNT_BYTES), 0);
    assert_int_equal(account_used(to, ACCOUNT_BYTES), 160);
    assert_int_equal(account_used(to->parent, ACCOUNT_BYTES), 160);
    assert_int_equal(account_left(to, ACCOUNT_BYTES), 0);
    charge_deinit(&more);
    assert_int_equal(charge_init(&more, to, ACCOUNT_BYTES, 1, NULL), STATUS_LIMIT);
    /* to where it is, with nothing else that keeps the account */
    account_unref(to);
    charge_move(&charge, charge.account);
    assert_int_equal(account_used(account_find(&accounts, 2), ACCOUNT_BYTES), 100);
    charge_deinit(&charge);
    account_unref(from);
}

/* I7: a lower limit takes nothing away and lets nothing in. */
static void test_I7_lower_limit_takes_nothing_away(void **state)
{
    struct charge charge = CHARGE_NULL, more = CHARGE_NULL;
    struct account *user;

    assert_int_equal(account_of_user(&accounts, 1, &user, NULL), 0);
    assert_int_equal(charge_init(&charge, user, ACCOUNT_BYTES, 100, NULL), 0);
    limits(50, 50);
    assert_int_equal(account_used(user, ACCOUNT_BYTES), 100);
    assert_int_equal(account_left(user, ACCOUNT_BYTES), 0);
    assert_int_equal(charge_init(&more, user, ACCOUNT_BYTES, 1, NULL), STATUS_LIMIT);
    charge_deinit(&charge);
    assert_int_equal(charge_init(&more, user, ACCOUNT_BYTES, 50, NULL), 0);
    charge_deinit(&more);
    account_unref(user);
}

/* What returns is charged until it is back, and is counted as left before. */
static void test_reclaiming_is_left_and_not_free(void **state)
{
    struct charge charge = CHARGE_NULL, more = CHARGE_NULL;
    struct account *session, *to;

    limits(100, 80);
    assert_int_equal(account_new_session(&accounts, 1, &session, NULL), 0);
    assert_int_equal(account_new_session(&accounts, 1, &to, NULL), 0);
    assert_int_equal(charge_init(&charge, session, ACCOUNT_BYTES, 80, NULL), 0);
    assert_int_equal(account_left(session, ACCOUNT_BYTES), 0);
    charge_shift(&charge, TALLY_RECLAIMING);
    charge_shift(&charge, TALLY_RECLAIMING);
    assert_int_equal(account_left(session, ACCOUNT_BYTES), 80);
    assert_int_equal(account_left(session->parent, ACCOUNT_BYTES), 100);
    assert_int_equal(charge_init(&more, session, ACCOUNT_BYTES, 1, NULL), STATUS_LIMIT);
    charge_lower(&charge, 30);
    assert_int_equal(session->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING], 50);
    assert_int_equal(charge_init(&more, session, ACCOUNT_BYTES, 10, NULL), 0);
    assert_int_equal(account_left(session, ACCOUNT_BYTES), 70);
    charge_move(&charge, to);
    assert_int_equal(session->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING], 0);
    assert_int_equal(to->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING], 50);
    assert_int_equal(to->parent->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING], 50);
    charge_deinit(&charge);
    assert_int_equal(to->parent->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING], 0);
    assert_int_equal(account_left(to, ACCOUNT_BYTES), 80);
    /* and a charge that is made anew does not return */
    assert_int_equal(charge_init(&charge, session, ACCOUNT_BYTES, 10, NULL), 0);
    assert_int_equal(session->tallies[ACCOUNT_BYTES].in[TALLY_RECLAIMING], 0);
    charge_deinit(&charge);
    charge_deinit(&more);
    account_unref(to);
    account_unref(session);
}

/* A charge of bytes is one buffer's, and one of addresses one reservation's, whatever becomes of it. */
static void test_charge_counts_its_thing(void **state)
{
    struct charge bytes = CHARGE_NULL, more = CHARGE_NULL, addresses = CHARGE_NULL;
    struct problem problem = PROBLEM_NULL;
    struct account_limits few;
    struct account *one, *two;

    limits(ACCOUNT_NO_LIMIT, ACCOUNT_NO_LIMIT);
    few = accounts.limits;
    few.session[ACCOUNT_BUFFERS] = 1;
    accounts_set_limits(&accounts, &few);
    assert_int_equal(account_new_session(&accounts, 1, &one, NULL), 0);
    assert_int_equal(account_new_session(&accounts, 1, &two, NULL), 0);
    assert_int_equal(charge_init(&bytes, one, ACCOUNT_BYTES, 4096, NULL), 0);
    assert_int_equal(charge_init(&addresses, one, ACCOUNT_ADDRESSES, 8192, NULL), 0);
    assert_int_equal(account_used(one, ACCOUNT_BUFFERS), 1);
    assert_int_equal(account_used(one, ACCOUNT_RESERVATIONS), 1);
    /* one of no bytes is one nevertheless, and what is refused is not counted */
    assert_int_equal(charge_init(&more, one, ACCOUNT_BYTES, 0, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "session_buffers"));
    assert_int_equal(account_used(one->parent, ACCOUNT_BUFFERS), 1);
    charge_shift(&bytes, TALLY_RECLAIMING);
    charge_lower(&bytes, 4095);
    assert_int_equal(account_left(one, ACCOUNT_BUFFERS), 1);
    charge_move(&bytes, two);
    assert_int_equal(account_used(one, ACCOUNT_BUFFERS), 0);
    assert_int_equal(one->tallies[ACCOUNT_BUFFERS].in[TALLY_RECLAIMING], 0);
    assert_int_equal(account_used(two, ACCOUNT_BUFFERS), 1);
    assert_int_equal(two->tallies[ACCOUNT_BUFFERS].in[TALLY_RECLAIMING], 1);
    charge_deinit(&bytes);
    charge_deinit(&addresses);
    assert_int_equal(account_used(one->parent, ACCOUNT_BUFFERS), 0);
    assert_int_equal(one->parent->tallies[ACCOUNT_BUFFERS].in[TALLY_RECLAIMING], 0);
    assert_int_equal(account_used(one->parent, ACCOUNT_RESERVATIONS), 0);
    account_unref(one);
    account_unref(two);
}

static void test_walk(void **state)
{
    static const uid_t uids[] = {5, 0, UINT32_MAX - 1, 1000};
    static const uid_t order[] = {0, 5, 1000, UINT32_MAX - 1};
    struct account *users[4];
    uid_t from = 0;

    for (int i = 0; i < 4; i++)
        assert_int_equal(account_of_user(&accounts, uids[i], &users[i], NULL), 0);
    for (int i = 0; i < 4; i++) {
        struct account *account = account_next(&accounts, from);

        assert_non_null(account);
        assert_int_equal(account->uid, order[i]);
        from = account->uid + 1;
    }
    assert_null(account_next(&accounts, from));
    for (int i = 0; i < 4; i++)
        account_unref(users[i]);
}

/* I5: the sum is exact after every operation, whatever the order. */
#define N_CHARGES 512
#define N_USERS   5
#define N_OWNERS  (3 * N_USERS)

static void test_I5_sums_are_exact(void **state)
{
    static struct charge charges[N_CHARGES];
    struct account *owners[N_OWNERS];
    uint64_t random = 88172645463325252u;

    memset(charges, 0, sizeof(charges));
    limits(20000, 9000);
    for (unsigned i = 0; i < N_OWNERS; i++) {
        if (i < N_USERS)
            assert_int_equal(account_of_user(&accounts, i, &owners[i], NULL), 0);
        else
            assert_int_equal(account_new_session(&accounts, i % N_USERS, &owners[i], NULL), 0);
    }
    for (int round = 0; round < 100000; round++) {
        struct charge *charge;
        struct account *owner;
        uint64_t before = 0, after = 0;

        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        charge = &charges[random % N_CHARGES];
        owner = owners[(random >> 10) % N_OWNERS];
        for (uid_t uid = 0; uid < N_USERS; uid++)
            before += account_used(account_find(&accounts, uid), ACCOUNT_BYTES);
        if (!charge->account) {
            uint64_t amount = random >> 20 & 1023;
            int r = charge_init(charge, owner, ACCOUNT_BYTES, amount, NULL);

            assert_true(r == 0 || r == STATUS_LIMIT);
            before += r ? 0 : amount;
        } else if (random >> 40 & 1) {
            charge_move(charge, owner);
        } else {
            before -= charge->amount;
            charge_deinit(charge);
        }
        for (uid_t uid = 0; uid < N_USERS; uid++)
            after += account_used(account_find(&accounts, uid), ACCOUNT_BYTES);
        assert_int_equal(before, after);
        if (round % 1000 == 0) {
            uint64_t sums[N_USERS] = {0};

            for (unsigned i = 0; i < N_CHARGES; i++)
                if (charges[i].account)
                    sums[charges[i].account->uid] += charges[i].amount;
            for (uid_t uid = 0; uid < N_USERS; uid++)
                assert_int_equal(sums[uid], account_used(account_find(&accounts, uid), ACCOUNT_BYTES));
        }
    }
    for (unsigned i = 0; i < N_CHARGES; i++)
        charge_deinit(&charges[i]);
    for (unsigned i = 0; i < N_OWNERS; i++)
        account_unref(owners[i]);
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

static struct account_limits shared(unsigned share, uint64_t total)
{
    struct account_limits limits = {.share = share, .administrator = 999};

    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++) {
        limits.user[i] = limits.session[i] = ACCOUNT_NO_LIMIT;
        limits.total[i] = total;
    }
    return limits;
}

static struct account *user_of(uid_t uid)
{
    struct account *user;

    assert_int_equal(account_of_user(&accounts, uid, &user, NULL), 0);
    return user;
}

static void I7_a_user_has_its_share_of_what_others_leave(void **state)
{
    struct account_limits limits = shared(50, 1000);
    struct charge a = CHARGE_NULL, b = CHARGE_NULL, c = CHARGE_NULL, d = CHARGE_NULL;
    struct problem problem = PROBLEM_NULL;
    struct account *first = user_of(1000), *second = user_of(1001);

    accounts_set_limits(&accounts, &limits);
    assert_int_equal(account_left(first, ACCOUNT_NAMES), 500);
    assert_int_equal(charge_init(&a, first, ACCOUNT_NAMES, 501, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "user 1000 has 0 names and asks for 501 more, but may have 500"));
    assert_non_null(strstr(problem.sentence, "[user 1000] share = 100%"));
    assert_int_equal(charge_init(&a, first, ACCOUNT_NAMES, 500, NULL), 0);
    assert_int_equal(account_left(first, ACCOUNT_NAMES), 0);
    assert_int_equal(account_left(second, ACCOUNT_NAMES), 250);
    assert_int_equal(charge_init(&b, second, ACCOUNT_NAMES, 251, NULL), STATUS_LIMIT);
    assert_int_equal(charge_init(&b, second, ACCOUNT_NAMES, 250, NULL), 0);
    /* a share that has become smaller takes nothing away */
    assert_int_equal(account_used(first, ACCOUNT_NAMES), 500);
    assert_int_equal(charge_init(&c, first, ACCOUNT_NAMES, 1, NULL), STATUS_LIMIT);
    /* what is certain to be free soon is counted on, but not yet given out */
    charge_shift(&b, TALLY_RECLAIMING);
    assert_int_equal(account_left(second, ACCOUNT_NAMES), 250);
    assert_int_equal(charge_init(&c, second, ACCOUNT_NAMES, 1, NULL), STATUS_LIMIT);
    /* an administrator always gets some, beyond the total if need be; the broker's own user is one */
    {
        struct account *root = user_of(0), *own = user_of(999);

        assert_int_equal(charge_init(&c, root, ACCOUNT_NAMES, 2000, NULL), 0);
        assert_int_equal(charge_init(&d, own, ACCOUNT_NAMES, 2000, NULL), 0);
        charge_deinit(&c);
        charge_deinit(&d);
        account_unref(root);
        account_unref(own);
    }
    charge_deinit(&a);
    charge_deinit(&b);
    assert_int_equal(tally_used(&accounts.sums[ACCOUNT_NAMES]), 0);
    account_unref(first);
    account_unref(second);
}

/* However many come, and whatever each takes. */
static void I7_there_is_always_something_left(void **state)
{
    struct account_limits limits = shared(50, 1 << 20);
    struct charge charges[20];
    struct account *users[20];

    accounts_set_limits(&accounts, &limits);
    for (unsigned i = 0; i < 20; i++) {
        charges[i] = (struct charge)CHARGE_NULL;
        users[i] = user_of(2000 + i);
        assert_int_equal(account_left(users[i], ACCOUNT_SESSIONS), (1 << 20) >> (i + 1));
        assert_int_equal(
            charge_init(&charges[i], users[i], ACCOUNT_SESSIONS, account_left(users[i], ACCOUNT_SESSIONS), NULL), 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        charge_deinit(&charges[i]);
        account_unref(users[i]);
    }
}

static void policies_are_of_users_then_of_groups(void **state)
{
    struct account_policy policies[] = {
        {.is_group = true, .id = 50, .share = 25}, {.id = 1000, .share = 100}, {.is_group = true, .id = 60}};
    struct account_limits limits = shared(50, 1000);
    const gid_t groups[] = {7, 60, 50};
    struct account *own = user_of(1000), *member = user_of(1001), *other = user_of(1002);
    struct problem problem = PROBLEM_NULL;
    struct charge charge = CHARGE_NULL;

    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++) {
        policies[0].user[i] = policies[1].user[i] = ACCOUNT_DEFAULT;
        policies[2].user[i] = 3;
    }
    limits.policies = policies;
    limits.n_policies = 3;
    accounts_set_limits(&accounts, &limits);
    account_set_groups(own, 50, groups, 3);
    assert_int_equal(account_share(own), 100);
    account_set_groups(member, 50, groups, 3);
    assert_int_equal(account_share(member), 25);
    assert_int_equal(account_left(member, ACCOUNT_NAMES), 250);
    account_set_groups(member, 1, groups, 3);
    assert_int_equal(account_share(member), 50);
    assert_int_equal(account_left(member, ACCOUNT_NAMES), 3);
    assert_int_equal(charge_init(&charge, member, ACCOUNT_NAMES, 4, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "names in [group 60]"));
    assert_int_equal(account_share(other), 50);
    assert_int_equal(account_left(other, ACCOUNT_NAMES), 500);
    /* without a policy for it, the group counts no more */
    limits.n_policies = 1;
    accounts_set_limits(&accounts, &limits);
    assert_int_equal(account_left(member, ACCOUNT_NAMES), 500);
    assert_int_equal(account_share(own), 25);
    account_unref(own);
    account_unref(member);
    account_unref(other);
}

static void records_are_charged_as_metadata(void **state)
{
    struct account_limits limits = shared(50, 0);
    struct charge a = CHARGE_NULL, b = CHARGE_NULL;
    struct problem problem = PROBLEM_NULL;
    struct account *session;

    limits.total[ACCOUNT_METADATA] = 500;
    accounts_set_limits(&accounts, &limits);
    accounts_set_metadata(&accounts, ACCOUNT_TOKENS, 100);
    accounts_set_metadata(&accounts, ACCOUNT_ADDRESSES, 151);
    assert_int_equal(account_new_session(&accounts, 1000, &session, NULL), 0);
    assert_int_equal(charge_init(&a, session, ACCOUNT_TOKENS, 1, NULL), 0);
    assert_int_equal(account_used(session, ACCOUNT_METADATA), 100);
    assert_int_equal(charge_init(&b, session, ACCOUNT_ADDRESSES, 1 << 20, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "bytes of the broker's own records"));
    assert_int_equal(charge_init(&b, session, ACCOUNT_TOKENS, 1, NULL), 0);
    assert_int_equal(account_used(session->parent, ACCOUNT_METADATA), 200);
    charge_deinit(&a);
    charge_deinit(&b);
    assert_int_equal(account_used(session, ACCOUNT_METADATA), 0);
    assert_int_equal(tally_used(&accounts.sums[ACCOUNT_METADATA]), 0);
    account_unref(session);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_limit_is_reached_and_not_passed),
        T(test_overflow_is_over_the_limit),
        T(test_session_is_part_of_its_user),
        T(test_account_lives_as_long_as_its_charges),
        T(test_I5_charge_moves_over_the_limit),
        T(test_I7_lower_limit_takes_nothing_away),
        T(test_reclaiming_is_left_and_not_free),
        T(test_charge_counts_its_thing),
        T(test_walk),
        T(test_I5_sums_are_exact),
        cmocka_unit_test_setup_teardown(I7_a_user_has_its_share_of_what_others_leave, setup, teardown),
        cmocka_unit_test_setup_teardown(I7_there_is_always_something_left, setup, teardown),
        cmocka_unit_test_setup_teardown(policies_are_of_users_then_of_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(records_are_charged_as_metadata, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
