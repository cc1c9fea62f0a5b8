/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I5 after thousands of random operations: every sum is proven after each hundred of them, and in the middle of
 * them, while they go on. What the seed is, is printed; MEMORYD_TEST_SEED repeats a run.
 */
#include "tests/unit/broker/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "account/account.h"
#include "mem/pools.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define OPERATIONS 20000
#define SESSIONS   8
#define BUFFERS    64
#define FDS        24
#define TOKENS     32

static uint64_t sessions[SESSIONS], buffers[BUFFERS], reservations[SESSIONS];
static uint8_t tokens[TOKENS][32];
static int fds[FDS];
static uint64_t seed;
static unsigned spread;     /* allocations that named several nodes */
static uint32_t first_node; /* the node that the next one names first */

static uint32_t pick(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

static void a_session(uint32_t i)
{
    sessions[i] = host_session_of(i + 1, getpid(), 6000 + i / 2);
}

static void one_alloc(uint64_t session)
{
    static struct alloc_spec args;
    struct memory_spec *memory = &args.memory;
    static struct opened result;

    args = (struct alloc_spec){.n = 1 + pick(3), .memory.flags = pick(8)};
    memset(&result, 0, sizeof(result));
    if (host.nodes && pick(2)) {
        memory->placement = 1 + pick(5);
        for (; memory->n_nodes < host.nodes; memory->n_nodes++)
            memory->nodes[memory->n_nodes] = (memory->n_nodes + first_node) % host.nodes;
        first_node = (first_node + 1) % host.nodes;
        memory->part_size = pick(2) ? 0 : UINT64_C(64) << 10;
        if (memory->placement != 3)
            memory->part_size = 0;
        if (memory->placement == 4)
            for (; memory->n_weights < memory->n_nodes; memory->n_weights++)
                memory->weights[memory->n_weights] = 1 + pick(3);
    }
    for (uint32_t i = 0; i < args.n; i++)
        args.sizes[i] = pick(20) ? 1 + pick(64 << 10) : 1 + pick(4 << 20);
    if (args.n == 1 && !pick(3)) {
        (void)snprintf(args.name.name, sizeof(args.name.name), "n%u", pick(20));
        args.name.policy = pick(3);
        args.name.keep_ms = pick(20);
    }
    if (!CALL(session, op_alloc, &args, &result)) {
        spread += memory->n_nodes > 1;
        for (uint32_t i = 0; i < result.n; i++)
            buffers[pick(BUFFERS)] = result.items[i].id;
    }
    fdset_deinit(&result.fds);
}

static void random_operation(void)
{
    uint32_t s = pick(SESSIONS);
    uint64_t session = sessions[s], buffer = buffers[pick(BUFFERS)], address;
    uint32_t f = pick(FDS), t = pick(TOKENS);
    struct share_args terms = {.rights = 1 + pick(15)};
    char name[16];

    (void)snprintf(name, sizeof(name), "n%u", pick(20));
    switch (pick(20)) {
    case 0:
    case 1:
    case 2:
        one_alloc(session);
        break;
    case 3:
    case 4:
    case 5:
        host_release(session, buffer);
        break;
    case 6:
    case 7:
        if (fds[f] >= 0)
            close(fds[f]);
        fds[f] = host_export(session, buffer, 1 + 2 * pick(2));
        break;
    case 8:
        if (fds[f] >= 0)
            close(fds[f]);
        fds[f] = -1;
        break;
    case 9:
        if (fds[f] >= 0)
            (void)host_import(session, fds[f], NULL);
        break;
    case 10:
        terms.uses = pick(3);
        terms.flags = pick(2) && terms.uses;
        terms.expiry_ms = pick(3) ? 0 : 1 + pick(30);
        terms.rights |= 1;
        (void)host_share(session, buffer, &terms, tokens[t]);
        break;
    case 11:
    case 12:
        (void)host_open(session, tokens[t], 0, NULL);
        break;
    case 13: {
        struct revoke_args revoke = {.buffer = buffer};
        uint32_t revoked;

        if (!pick(3)) {
            revoke.by_token = true;
            memcpy(revoke.token, tokens[t], 32);
        }
        (void)CALL(session, op_revoke, &revoke, &revoked);
        break;
    }
    case 14:
        (void)host_bind(session, buffer, name, pick(3), pick(20));
        break;
    case 15:
        (void)CALL(session, op_name_unbind, name);
        break;
    case 16:
        (void)host_lookup(session, name, 0, pick(4), NULL);
        break;
    case 17:
        if (!pick(4)) {
            (void)CALL(session, op_destroy, buffer, false);
        } else if (!pick(3)) {
            (void)CALL(session, op_move, buffer, pick(host.nodes + 1));
        } else if (pick(2)) {
            (void)CALL(session, op_publish, buffer, pick(2));
        } else {
            (void)CALL(session, op_discard, buffer, 0, 0);
        }
        break;
    case 18:
        if (pick(2)) {
            (void)CALL(session, op_reserve, (1 + pick(64)) * (64 << 10), 0, 0, &reservations[s], &address);
        } else if (pick(2)) {
            (void)CALL(session, op_unreserve, reservations[s]);
        } else {
            (void)CALL(session, op_place, buffer, reservations[s], 0);
        }
        break;
    case 19:
        if (!pick(4)) {
            assert_int_equal(CALL(session, op_goodbye), 0);
            a_session(s);
        }
        break;
    }
    if (!pick(4))
        host_turn(0);
}

static void I5_the_sums_are_exact_after_every_operation(void **state)
{
    uint64_t admin = host_session(99);
    static struct call check;
    static struct check_result result;
    bool running = false;
    const char *given = getenv("MEMORYD_TEST_SEED");

    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("MEMORYD_TEST_SEED=%llu\n", (unsigned long long)seed);
    memset(fds, -1, sizeof(fds));
    spread = 0;
    for (uint32_t i = 0; i < SESSIONS; i++)
        a_session(i);
    for (unsigned i = 1; i <= OPERATIONS; i++) {
        random_operation();
        if (running && check.ended) {
            assert_int_equal(check.status, 0);
            for (uint32_t k = 0; k < result.n_sentences; k++)
                print_error("%s\n", result.sentences[k]);
            assert_int_equal(result.faults, 0);
            running = false;
        }
        if (!running && !pick(8)) {
            call_init(&check, admin);
            assert_int_equal(op_check(&check.op, &result), OP_PENDING);
            running = true;
        }
        if (i % 100 == 0)
            assert_int_equal(host_check(admin), 0);
    }
    if (running)
        assert_true(HOST_UNTIL(check.ended));
    assert_true(!host.nodes || spread > 10);
    for (unsigned i = 0; i < FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (uint32_t i = 0; i < SESSIONS; i++)
        assert_int_equal(CALL(sessions[i], op_goodbye), 0);
    host_settle();
    assert_int_equal(host_check(admin), 0);
    /* what is left has a name or a keeping token */
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned uid = 6000; uid < 6000 + SESSIONS; uid++) {
            char name[40];

            (void)snprintf(name, sizeof(name), "uid:%u/n%u", uid, i);
            (void)CALL(admin, op_name_unbind, name);
        }
    }
    host_settle();
    for (unsigned i = 0; i < BUFFERS; i++) {
        struct revoke_args revoke = {.buffer = buffers[i]};
        uint32_t revoked;

        (void)CALL(admin, op_revoke, &revoke, &revoked);
    }
    host_settle();
    assert_int_equal(host_check(admin), 0);
}

/* A proof that cannot fail proves nothing. */
static void I5_a_sum_that_is_wrong_is_found(void **state)
{
    uint64_t admin = host_session(1), other = host_session_of(2, getpid(), 6000), buffer;
    struct pool *pool = NULL;
    struct account *account;
    struct check_result result;

    assert_int_equal(host_alloc(admin, 5000, 0, &buffer), 0);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(CALL(other, op_check, &result), STATUS_NOT_ADMIN);
    for (uint32_t i = 0; i < pools_count(host.pools); i++)
        if (tally_used(&pools_get(host.pools, i)->bytes))
            pool = pools_get(host.pools, i);
    assert_non_null(pool);
    for (unsigned i = TALLY_USED; i < TALLY_STATES; i++) {
        struct tally *tallies[] = {&pool->bytes, &pool->buffers,
                                   &host.pools->budgets[pool->budget_index][pool->nodes[0]].bytes};

        for (unsigned k = 0; k < 3; k++) {
            tallies[k]->in[i]++;
            assert_int_equal(CALL(admin, op_check, &result), 0);
            /* several pools have the node's budget */
            assert_true(result.faults == 1 || (k == 2 && result.faults));
            assert_int_equal(result.n_sentences, result.faults);
            assert_non_null(strstr(result.sentences[0], k < 2 ? pool->name : "node 0"));
            tallies[k]->in[i]--;
        }
    }
    account = host_account(admin);
    account->tallies[ACCOUNT_BYTES].in[TALLY_USED] -= 4096;
    assert_int_equal(CALL(admin, op_check, &result), 0);
    assert_int_equal(result.faults, 1);
    account->tallies[ACCOUNT_BYTES].in[TALLY_USED] += 4096;
    assert_int_equal(host_check(admin), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(I5_a_sum_that_is_wrong_is_found, host_setup, host_teardown),
        cmocka_unit_test_setup_teardown(I5_the_sums_are_exact_after_every_operation, host_setup, host_teardown),
        {"I5_the_sums_are_exact_over_several_nodes", I5_the_sums_are_exact_after_every_operation, host_setup_nodes,
         host_teardown, NULL},
        {"I5_the_sums_are_exact_with_stock", I5_the_sums_are_exact_after_every_operation, host_setup_stock,
         host_teardown, NULL},
    };

    return test_run(tests, NULL, NULL);
}
