/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of I5: sums are made from the records alone and compared with those that are kept.
 */
#include "broker/check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/lookup.h"
#include "broker/op_move.h"
#include "broker/recover.h"
#include "broker/state.h"
#include "mem/pool.h"
#include "session/kept.h"

struct account_sum {
    RB_ENTRY(account_sum) link;
    struct account *account; /* a reference, so that the address is not used again meanwhile */
    struct tally tallies[ACCOUNT_SLOTS];
    struct tally places[]; /* of a user's account */
};

RB_HEAD(account_sums, account_sum);

struct budget_sum {
    const struct budget *budget;
    struct tally bytes;
};

struct pool_sum {
    struct tally bytes;
    struct tally buffers;
};

/* In the order in which they are walked. */
enum check_kind {
    CHECK_BUFFER,
    CHECK_TOKEN,
    CHECK_NAME,
    CHECK_RESERVATION,
    CHECK_SESSION,
    CHECK_HOLD,
    CHECK_KEPT,
    CHECK_KINDS
};

struct check {
    struct check *next;
    struct op_state state;
    struct timer timer;
    struct broker *broker;
    struct check_result *result; /* the caller's */
    struct check_result found;
    bool no_memory;
    enum check_kind kind; /* being walked; those before it are done */
    uint64_t cursor;
    struct account_sums accounts;
    struct budget_sum *budgets;
    uint32_t n_budgets;
    struct pool_sum *pools; /* of each */
    uint64_t bytes;
    uint64_t tokens; /* that there are, … */
    uint64_t keeping;
    uint64_t counted; /* … and that buffers count */
    uint64_t counted_keeping;
};

static int compare_accounts(struct account_sum *a, struct account_sum *b)
{
    return (uintptr_t)a->account < (uintptr_t)b->account ? -1 : (uintptr_t)a->account > (uintptr_t)b->account;
}

TREE_GENERATE(account_sums, account_sum, link, compare_accounts)

/* The slots that have records. Network traffic comes and goes without. */
static const enum account_slot recorded[] = {
    ACCOUNT_BYTES,     ACCOUNT_BUFFERS,  ACCOUNT_TOKENS, ACCOUNT_RESERVATIONS,
    ACCOUNT_ADDRESSES, ACCOUNT_SESSIONS, ACCOUNT_NAMES,  ACCOUNT_METADATA,
};

static char *next_sentence(struct check_result *found)
{
    return found->n_sentences < MEMORYD_CHECK_SENTENCES_MAX ? found->sentences[found->n_sentences++] : NULL;
}

__attribute__((format(printf, 2, 3))) static void check_fault(struct check *check, const char *format, ...)
{
    char *sentence = next_sentence(&check->found);
    va_list arguments;

    check->found.faults++;
    if (!sentence)
        return;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof(check->found.sentences[0]), format, arguments);
    va_end(arguments);
}

/* It is no fault of the sums: damaged records are in none. */
static void tell_of_quarantine(struct check *check)
{
    uint64_t n = quarantined_records(check->broker);
    char *sentence = n ? next_sentence(&check->found) : NULL;

    if (sentence)
        (void)snprintf(sentence, sizeof(check->found.sentences[0]),
                       "%llu records were found damaged and are left alone; the log says which ones and why",
                       (unsigned long long)n);
}

/* ---- adding up --------------------------------------------------------------------------------------------------- */

static struct account_sum *sum_of(struct check *check, struct account *account)
{
    struct account_sum key = {.account = account};
    struct account_sum *sum = RB_FIND(account_sums, &check->accounts, &key);

    if (sum)
        return sum;
    sum = calloc(1, sizeof(*sum) + (account->parent ? 0 : account->accounts->n_places) * sizeof(*sum->places));
    if (!sum) {
        check->no_memory = true;
        return NULL;
    }
    sum->account = account_ref(account);
    RB_INSERT(account_sums, &check->accounts, sum);
    return sum;
}

/* The sum wraps where something is taken off before a later visit adds it; the result is exact. */
static void sum_add(uint64_t *sum, uint64_t amount, int sign)
{
    *sum = sign > 0 ? *sum + amount : *sum - amount;
}

static void add_place(struct check *check, struct account *user, uint32_t place, enum tally_state state,
                      uint64_t amount, int sign)
{
    struct account_sum *sum = place < user->accounts->n_places ? sum_of(check, user) : NULL;

    if (sum)
        sum_add(&sum->places[place].in[state], amount, sign);
}

static void add_charge(struct check *check, const struct charge *charge, enum account_slot slot, uint64_t amount,
                       int sign)
{
    for (struct account *account = charge->account; account; account = account->parent) {
        struct account_sum *sum = sum_of(check, account);

        if (!sum)
            continue;
        sum_add(&sum->tallies[slot].in[charge->state], amount, sign);
        sum_add(&sum->tallies[ACCOUNT_METADATA].in[charge->state], account->accounts->metadata[slot], sign);
    }
}

static void add_metadata(struct check *check, struct account *account, uint64_t bytes, int sign)
{
    for (; account; account = account->parent) {
        struct account_sum *sum = sum_of(check, account);

        if (sum)
            sum_add(&sum->tallies[ACCOUNT_METADATA].in[TALLY_USED], bytes, sign);
    }
}

static struct budget_sum *budget_of(struct check *check, const struct budget *budget)
{
    struct budget_sum *more;

    for (uint32_t i = 0; i < check->n_budgets; i++)
        if (check->budgets[i].budget == budget)
            return &check->budgets[i];
    more = reallocarray(check->budgets, check->n_budgets + 1, sizeof(*more));
    if (!more) {
        check->no_memory = true;
        return NULL;
    }
    check->budgets = more;
    more[check->n_budgets] = (struct budget_sum){.budget = budget};
    return &more[check->n_budgets++];
}

/* What the user has of the pool of the plan, and of its nodes. */
static void add_payer(struct check *check, struct account *user, const struct pool *pool, const struct plan *plan,
                      enum tally_state state, int sign)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        add_place(check, user, pool_node_budget(pool, plan->nodes.node[i])->place, state, plan->nodes.bytes[i], sign);
    add_place(check, user, pool->place, state, plan->brief.bytes, sign);
}

/* Their amount is what was wasted when they were taken, which no record has. */
static void add_addresses(struct check *check, const struct charge *charge, int sign)
{
    add_charge(check, charge, ACCOUNT_RESERVATIONS, 1, sign);
    add_charge(check, charge, ACCOUNT_ADDRESSES, charge->amount, sign);
}

/* A buffer may have so many tokens that they are not counted one by one: the sums must agree. */
static void add_buffer(struct check *check, const void *object, int sign)
{
    const struct buffer *buffer = object;
    const struct pool *pool = buffer_pool(&check->broker->buffers, buffer);
    const struct charge *home = waste_of_home(&check->broker->reservations.wastes, &buffer->home);
    enum tally_state state = buffer_tally_state(buffer);
    uint64_t bytes = buffer->record->bytes;
    struct plan plan;

    add_charge(check, &buffer->charge, ACCOUNT_BYTES, bytes, sign);
    add_charge(check, &buffer->charge, ACCOUNT_BUFFERS, 1, sign);
    if (home)
        add_addresses(check, home, sign);
    sum_add(&check->counted, buffer->n_tokens, sign);
    sum_add(&check->counted_keeping, buffer->n_keeping, sign);
    if (!buffer_is_unowned(buffer))
        sum_add(&check->bytes, bytes, sign);
    if (!pool)
        return;
    sum_add(&check->pools[pool->index].bytes.in[state], bytes, sign);
    sum_add(&check->pools[pool->index].buffers.in[state], 1, sign);
    buffer_plan(&check->broker->buffers, buffer, &plan);
    for (uint32_t i = 0; i < plan.brief.n_nodes; i++) {
        struct budget_sum *sum = budget_of(check, pool_node_budget(pool, plan.nodes.node[i]));

        if (sum)
            sum_add(&sum->bytes.in[state], plan.nodes.bytes[i], sign);
    }
    if (buffer->charge.account)
        add_payer(check, account_user(buffer->charge.account), pool, &plan, state, sign);
}

static bool is_keeping(const struct token *token)
{
    return token->record->flags & TOKEN_KEEPING;
}

static void add_token(struct check *check, const void *object, int sign)
{
    const struct token *token = object;

    add_charge(check, &token->charge, ACCOUNT_TOKENS, 1, sign);
    sum_add(&check->tokens, 1, sign);
    sum_add(&check->keeping, is_keeping(token), sign);
}

static void add_name(struct check *check, const void *object, int sign)
{
    const struct name *name = object;

    add_charge(check, &name->charge, ACCOUNT_NAMES, 1, sign);
}

static void add_reservation(struct check *check, const void *object, int sign)
{
    const struct reservation *reservation = object;

    add_addresses(check, &reservation->charge, sign);
}

static void add_session(struct check *check, const void *object, int sign)
{
    const struct session *session = object;

    add_charge(check, &session->charge, ACCOUNT_SESSIONS, 1, sign);
    add_metadata(check, session->account, session->subscription_bytes, sign);
}

static void add_hold(struct check *check, const void *object, int sign)
{
    const struct hold *hold = object;

    add_metadata(check, hold->session->account, table_entry_bytes(&check->broker->sessions.holds), sign);
}

static void add_kept(struct check *check, const void *object, int sign)
{
    const struct kept *kept = object;

    add_metadata(check, kept->session->account, kept_cost(&check->broker->sessions, kept), sign);
}

/* ---- each for itself --------------------------------------------------------------------------------------------- */

static uint32_t list_length(const struct list *list)
{
    uint32_t n = 0;

    list_for_each(link, list)
        n++;
    return n;
}

/* A buffer in stock costs nobody anything, or the user that it is earmarked for. */
static bool is_charged(const struct buffer *buffer)
{
    const struct buffer_record *record = buffer->record;
    const struct charge *charge = &buffer->charge;

    if (!charge->account)
        return buffer_is_unowned(buffer);
    return charge->amount == record->bytes &&
           (buffer_is_unowned(buffer) ? record->state == BUFFER_STOCK : charge->account->uid == record->charged_uid);
}

static void check_buffer(struct check *check, const void *object)
{
    const struct buffer *buffer = object;
    const struct buffer_record *record = buffer->record;
    unsigned long long id = record->head.id;
    uint32_t holds = 0;

    if (!buffer_is_unowned(buffer)) {
        check->found.buffers++;
        check->found.records++;
    }
    for (struct hold *hold = NULL; (hold = buffer_next_hold(buffer, hold)); holds++)
        if (session_hold(hold->session, id) != hold)
            check_fault(check, "session %llu does not know its hold on buffer %llu",
                        (unsigned long long)hold->record->session, id);
    if (holds != buffer->n_holds || list_length(&buffer->names) != buffer->n_names)
        check_fault(check, "buffer %llu counts its holds or names wrongly", id);
    /* a token keeps no buffer whose life is over, and it may take a while until it is gone */
    if (buffer_is_unreferenced(buffer) ? buffer->n_holds || buffer->n_names
                                       : (record->state == BUFFER_LIVE) != buffer_is_kept(buffer))
        check_fault(check, "buffer %llu is in state %u with %u holds, %u names and %u keeping tokens", id,
                    record->state, buffer->n_holds, buffer->n_names, buffer->n_keeping);
    if (!is_charged(buffer))
        check_fault(check, "buffer %llu: %llu bytes are charged to nobody or to the wrong user", id,
                    (unsigned long long)record->bytes);
}

static void check_token(struct check *check, const void *object)
{
    const struct token *token = object;

    if (token->buffer->record->head.id != token->record->buffer || !list_is_linked(&token->in_buffer))
        check_fault(check, "token %llu is not among those of buffer %llu", (unsigned long long)token->record->head.id,
                    (unsigned long long)token->record->buffer);
}

/* The account of somebody who has nothing is to be compared as well. */
static void check_session(struct check *check, const void *object)
{
    const struct session *session = object;

    (void)sum_of(check, session->account);
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static const struct {
    size_t table;                                                   /* in the broker */
    void (*add)(struct check *check, const void *object, int sign); /* what it costs */
    void (*check)(struct check *check, const void *object);         /* for itself, if anything */
} kinds[CHECK_KINDS] = {
    [CHECK_BUFFER] = {offsetof(struct broker, buffers.table), add_buffer, check_buffer},
    [CHECK_TOKEN] = {offsetof(struct broker, tokens.table), add_token, check_token},
    [CHECK_NAME] = {offsetof(struct broker, names.table), add_name, NULL},
    [CHECK_RESERVATION] = {offsetof(struct broker, reservations.table), add_reservation, NULL},
    [CHECK_SESSION] = {offsetof(struct broker, sessions.table), add_session, check_session},
    [CHECK_HOLD] = {offsetof(struct broker, sessions.holds), add_hold, NULL},
    [CHECK_KEPT] = {offsetof(struct broker, sessions.kept), add_kept, NULL},
};

static struct table *table_of(struct broker *broker, enum check_kind kind)
{
    return (struct table *)(void *)((char *)broker + kinds[kind].table);
}

static bool was_met(const struct check *check, enum check_kind kind, const void *object)
{
    return kind < check->kind ||
           (kind == check->kind && table_slot(table_of(check->broker, kind), object) < check->cursor);
}

static void check_follow(void *userdata, const struct table *table, const void *object, int sign)
{
    struct broker *broker = userdata;
    enum check_kind kind = CHECK_BUFFER;

    while (table_of(broker, kind) != table)
        kind++;
    for (struct check *check = broker->checks; check; check = check->next) {
        const struct token *token = kind == CHECK_TOKEN ? object : NULL;

        if (was_met(check, kind, object))
            kinds[kind].add(check, object, sign);
        if (token && was_met(check, CHECK_BUFFER, token->buffer)) {
            sum_add(&check->counted, 1, sign);
            sum_add(&check->counted_keeping, is_keeping(token), sign);
        }
    }
}

void check_init(struct broker *broker)
{
    for (enum check_kind kind = CHECK_BUFFER; kind < CHECK_KINDS; kind++) {
        table_of(broker, kind)->audit = check_follow;
        table_of(broker, kind)->audit_userdata = broker;
    }
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static void compare_tallies(struct check *check, const char *whose, const char *what, const struct tally *kept,
                            const struct tally *records)
{
    static const char *const states[TALLY_STATES] = {
        [TALLY_USED] = "in use", [TALLY_RECLAIMING] = "being reclaimed", [TALLY_STOCK] = "in stock"};

    for (unsigned state = TALLY_USED; state < TALLY_STATES; state++)
        if (kept->in[state] != records->in[state])
            check_fault(check, "%s is charged with %llu %s %s, and its records say %llu", whose,
                        (unsigned long long)kept->in[state], what, states[state],
                        (unsigned long long)records->in[state]);
}

static void compare_account(struct check *check, const struct account *account, const struct account_sum *records)
{
    static const char *const keys[] = {
#define X(NAME, key, what) #key,
        ACCOUNT_SLOTS_TABLE(X)
#undef X
    };
    char whose[40];

    (void)snprintf(whose, sizeof(whose), "%suid %u", account->parent ? "a session of " : "", (unsigned)account->uid);
    for (unsigned i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
        compare_tallies(check, whose, keys[recorded[i]], &account->tallies[recorded[i]],
                        &records->tallies[recorded[i]]);
    for (uint32_t i = 0; !account->parent && records->account && i < account->accounts->n_places; i++)
        compare_tallies(check, whose, "bytes of a node or pool", &account->places[i], &records->places[i]);
}

static void compare_accounts_all(struct check *check)
{
    static const struct account_sum none;
    struct accounts *accounts = &check->broker->accounts;
    struct account_sum *sum;
    struct account *account;

    RB_FOREACH(sum, account_sums, &check->accounts)
        compare_account(check, sum->account, sum);
    for (account = account_next(accounts, 0); account;
         account = account->uid == (uid_t)-1 ? NULL : account_next(accounts, account->uid + 1)) {
        struct account_sum key = {.account = account};

        if (!RB_FIND(account_sums, &check->accounts, &key))
            compare_account(check, account, &none);
    }
}

/* Buffers that are being moved are charged where they are, and have reserved what they need where they go. */
static void add_moves(struct check *check)
{
    list_for_each_entry(move, &check->broker->moves, struct move, link) {
        const struct pool_demand *room = &move->room;
        const struct budget *budget = pool_node_budget(room->pool, room->node);
        struct budget_sum *sum = budget_of(check, budget);

        check->pools[room->pool->index].bytes.in[TALLY_USED] += room->in_pool;
        if (sum)
            sum->bytes.in[TALLY_USED] += room->on_node;
        add_place(check, room->payer, budget->place, TALLY_USED, room->on_node, 1);
        add_place(check, room->payer, room->pool->place, TALLY_USED, room->in_pool, 1);
    }
}

static void compare_pool(struct check *check, const struct pool *pool)
{
    char whose[POOL_NAME_MAX + 64];

    (void)snprintf(whose, sizeof(whose), "pool %s", pool->name);
    compare_tallies(check, whose, "bytes", &pool->bytes, &check->pools[pool->index].bytes);
    compare_tallies(check, whose, "buffers", &pool->buffers, &check->pools[pool->index].buffers);
    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        const struct budget *budget = pool_node_budget(pool, pool->nodes[i]);
        const struct budget_sum *sum = budget_of(check, budget);

        (void)snprintf(whose, sizeof(whose), "node %u, for pages like those of pool %s,", pool->nodes[i], pool->name);
        if (sum)
            compare_tallies(check, whose, "bytes", &budget->bytes, &sum->bytes);
    }
}

static void compare_pools(struct check *check)
{
    struct pools *pools = check->broker->options.pools;

    for (uint32_t i = 0; i < pools_count(pools); i++)
        compare_pool(check, pools_get(pools, i));
    if (check->bytes != check->broker->buffers.bytes)
        check_fault(check, "the broker counts %llu bytes in all buffers, and records say %llu",
                    (unsigned long long)check->broker->buffers.bytes, (unsigned long long)check->bytes);
}

static void compare_tokens(struct check *check)
{
    if (check->counted != check->tokens || check->counted_keeping != check->keeping)
        check_fault(check, "buffers count %llu tokens, of which %llu keep them, and there are %llu and %llu",
                    (unsigned long long)check->counted, (unsigned long long)check->counted_keeping,
                    (unsigned long long)check->tokens, (unsigned long long)check->keeping);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void check_free(struct check *check)
{
    struct account_sum *sum;

    while ((sum = RB_MIN(account_sums, &check->accounts))) {
        RB_REMOVE(account_sums, &check->accounts, sum);
        account_unref(sum->account);
        free(sum);
    }
    free(check->budgets);
    free(check->pools);
    free(check);
}

static void check_finish(struct check *check)
{
    struct broker *broker = check->broker;
    struct problem *problem = &check->state.op->problem;
    int r = 0;

    if (check->state.cancel_status) {
        r = refuse(problem, check->state.cancel_status, "the check was given up before its end");
    } else {
        add_moves(check);
        compare_accounts_all(check);
        compare_pools(check);
        compare_tokens(check);
        tell_of_quarantine(check);
    }
    if (!r && check->no_memory)
        r = refuse(problem, STATUS_NO_MEMORY, "the broker has no memory to add all this up");
    if (!r)
        *check->result = check->found;
    for (struct check **link = &broker->checks; *link; link = &(*link)->next) {
        if (*link == check) {
            *link = check->next;
            break;
        }
    }
    pending_end(&check->state, r);
    check_free(check);
}

static void check_turn(struct timer *timer)
{
    struct check *check = container_of(timer, struct check, timer);
    unsigned budget = SLICE;

    while (check->kind < CHECK_KINDS && !check->state.cancel_status) {
        const void *object;

        /* A walk must not begin with nothing left: it would seem to have ended. */
        if (!budget) {
            timer_arm(&check->broker->timers, timer, 0);
            return;
        }
        object = table_next(table_of(check->broker, check->kind), &check->cursor, &budget);

        if (object) {
            check->found.records += check->kind != CHECK_BUFFER && check->kind < CHECK_HOLD;
            if (kinds[check->kind].check)
                kinds[check->kind].check(check, object);
            kinds[check->kind].add(check, object, 1);
        } else if (!check->cursor) {
            check->kind++;
        }
    }
    check_finish(check);
}

int op_check(struct op *op, struct check_result *result)
{
    struct broker *broker = op->broker;
    uint32_t n_pools = pools_count(broker->options.pools);
    struct session *session;
    struct check *check;
    int r = op_session(op, &session);

    if (r)
        return r;
    if (!is_admin(broker, session))
        return refuse(&op->problem, STATUS_NOT_ADMIN, "only root and uid %u may have the sums checked",
                      (unsigned)broker->options.uid);
    check = calloc(1, sizeof(*check));
    if (check)
        check->pools = calloc(n_pools + 1, sizeof(*check->pools));
    if (!check || !check->pools) {
        if (check)
            check_free(check);
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory to add all this up");
    }
    check->broker = broker;
    check->result = result;
    check->timer = (struct timer)TIMER_INIT(check_turn);
    check->next = broker->checks;
    broker->checks = check;
    pending_begin(&broker->pending, &check->state, op, NULL);
    timer_arm(&broker->timers, &check->timer, 0);
    return OP_PENDING;
}
