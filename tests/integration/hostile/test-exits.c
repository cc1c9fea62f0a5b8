/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I4, I5: holders of one buffer end in any order, each in any way, and the broker dies in between. Whoever is left has
 * the contents and may change them. The user who has held the buffer longest of those left pays, and everything is
 * credited when the last mapping is gone, whose ever that is.
 *
 * The holders are the owner, who writes; one that opened a token, and writes; one that imported a descriptor, to read;
 * and a child that the owner forked, which has a mapping and no session. make check tries all orders, with each holder
 * ending in each way in each of them; make check-long all combinations of ways, too (EXITS=all).
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define TIGHT "[pool tight]\nnodes = 0\ncapacity = 4M\n"
#define SIZE  (64 * KIB)

#define UID_FIRST 61011

enum holder { OWNER, OPENER, IMPORTER, FORKED, HOLDERS };

static const char *const names[HOLDERS] = {"the owner", "who opened a token", "who imported a descriptor",
                                           "the forked child"};

#define ORDERS 24

enum way { EXIT, KILL, CLOSE, WAYS };

/* 3^4 */
#define WAYS_OF_ALL 81

/* What a holder is told to do. */
struct command {
    enum { VERIFY, WRITE, END_BY_EXIT, END_BY_CLOSING } what;
    uint64_t version; /* of the contents */
};

/* What the owner hands over, with a descriptor for reading beside it, and another one: the forked child's channel. */
struct handed_over {
    uint64_t id;
    struct memclient_token token;
    pid_t forked;
};

struct start {
    const char *socket;
    enum holder holder;
    struct memclient_token token;
    int fd;
};

/* ---- holders ----------------------------------------------------------------------------------------------------- */

struct holding {
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    void *p;
};

static void holding_close(struct holding *h)
{
    CHECK_DONE(memclient_unmap(h->ctx, h->p, 0));
    memclient_buffer_unref(h->buf);
    memclient_context_close(h->ctx);
}

/* Until the other end is closed. */
static void holding_obey(struct holding *h, int channel)
{
    struct command command;

    while (take_bytes(channel, &command, sizeof(command))) {
        switch (command.what) {
        case VERIFY:
            CHECK(pattern_holds(h->p, SIZE, command.version));
            break;
        case WRITE:
            pattern_write(h->p, SIZE, command.version);
            break;
        case END_BY_EXIT:
            _exit(EXIT_SUCCESS);
        case END_BY_CLOSING:
            holding_close(h);
            break;
        }
        tell(channel);
    }
    _exit(EXIT_SUCCESS);
}

static uid_t uid_of(enum holder holder)
{
    return geteuid() ? geteuid() : UID_FIRST + (uid_t)holder;
}

static struct holding holding_begin(const struct start *start)
{
    struct holding h = {.ctx = NULL};

    if (!geteuid())
        become(uid_of(start->holder));
    h.ctx = broker_connect_in_child(start->socket);
    return h;
}

static void own(int channel, void *context)
{
    struct holding h = holding_begin(context);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct handed_over handed_over;
    int ends[2], fd;

    options.pool = "tight";
    CHECK_DONE(memclient_alloc(h.ctx, SIZE, &options, &h.buf));
    CHECK_DONE(memclient_map(h.buf, NULL, &h.p));
    pattern_write(h.p, SIZE, 0);
    CHECK_DONE(memclient_share(h.buf, NULL, &handed_over.token));
    CHECK_DONE(memclient_export_fd(h.buf, MEMCLIENT_READ, &fd));
    handed_over.id = memclient_buffer_id(h.buf);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    handed_over.forked = fork();
    CHECK(handed_over.forked >= 0);
    if (!handed_over.forked) {
        CHECK(close(fd) == 0 && close(ends[0]) == 0 && close(channel) == 0);
        holding_obey(&h, ends[1]);
    }
    CHECK(pass_bytes(channel, &handed_over, sizeof(handed_over)));
    CHECK(fd_send_one(channel, fd) == 1 && fd_send_one(channel, ends[0]) == 1);
    CHECK(close(fd) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
    holding_obey(&h, channel);
}

static void open_token(int channel, void *context)
{
    const struct start *start = context;
    struct holding h = holding_begin(start);

    CHECK(close(start->fd) == 0);
    CHECK_DONE(memclient_open_token(h.ctx, &start->token, 0, &h.buf));
    CHECK_DONE(memclient_map(h.buf, NULL, &h.p));
    tell(channel);
    holding_obey(&h, channel);
}

static void import_descriptor(int channel, void *context)
{
    const struct start *start = context;
    struct holding h = holding_begin(start);

    CHECK_DONE(memclient_import_fd(h.ctx, start->fd, &h.buf));
    CHECK(close(start->fd) == 0);
    CHECK_DONE(memclient_map(h.buf, NULL, &h.p));
    tell(channel);
    holding_obey(&h, channel);
}

/* ---- one round --------------------------------------------------------------------------------------------------- */

struct round {
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child children[HOLDERS];
    bool lives[HOLDERS];
    uint64_t id;
    uint64_t version;
    uid_t payer;
    char text[256]; /* how it goes, for who reads of a failure */
};

/* What the buffer is like; the state of one that is gone is -1. */
struct look {
    uint64_t id;
    int state;
    uint32_t charged_uid;
    uint32_t holds;
};

static int look_at(const struct memclient_buffer_info *info, void *data)
{
    struct look *look = data;

    if (info->id == look->id)
        *look = (struct look){info->id, (int)info->state, info->charged_uid, info->holds};
    return 0;
}

static struct look round_look(const struct round *round)
{
    struct look look = {.id = round->id, .state = -1};

    assert_done(memclient_list_buffers(round->ctx, look_at, &look));
    return look;
}

static void round_command(struct round *round, enum holder holder, struct command command)
{
    struct child *child = &round->children[holder];
    char byte;

    assert_true(pass_bytes(child->channel, &command, sizeof(command)));
    if (!take_bytes(child->channel, &byte, 1))
        fail_msg("%s: %s has not done %d", round->text, names[holder], (int)command.what);
}

static void round_begin(struct round *round)
{
    struct start start = {.socket = round->broker->socket};
    struct child *owner = &round->children[OWNER], *forked = &round->children[FORKED];
    struct handed_over handed_over;

    child_start(owner, own, &start);
    assert_true(take_bytes(owner->channel, &handed_over, sizeof(handed_over)));
    start.fd = fd_receive_one(owner->channel);
    forked->channel = fd_receive_one(owner->channel);
    forked->pid = handed_over.forked;
    assert_true(start.fd >= 0 && forked->channel >= 0);
    start.token = handed_over.token;
    start.holder = OPENER;
    child_start(&round->children[OPENER], open_token, &start);
    child_hear(&round->children[OPENER]);
    start.holder = IMPORTER;
    child_start(&round->children[IMPORTER], import_descriptor, &start);
    child_hear(&round->children[IMPORTER]);
    assert_ok(close(start.fd));
    for (unsigned i = 0; i < HOLDERS; i++)
        round->lives[i] = true;
    round->id = handed_over.id;
    round->version = 0;
    round->payer = uid_of(OWNER);
}

static void round_end_one(struct round *round, enum holder holder, enum way way)
{
    struct child *child = &round->children[holder];
    const struct command by_exit = {.what = END_BY_EXIT};

    if (way == CLOSE)
        round_command(round, holder, (struct command){.what = END_BY_CLOSING});
    else if (way == EXIT)
        assert_true(pass_bytes(child->channel, &by_exit, sizeof(by_exit)));
    else
        assert_ok(kill(child->pid, SIGKILL));
    round->lives[holder] = false;
}

/* The processes, those too that have closed all and live until nobody has their channel; later ones have it as well. */
static void round_reap(struct round *round)
{
    for (unsigned i = 0; i < HOLDERS; i++)
        assert_ok(close(round->children[i].channel));
    for (unsigned i = 0; i < HOLDERS; i++)
        if (i != FORKED)
            assert_int_equal(waitpid(round->children[i].pid, NULL, 0), round->children[i].pid);
}

/* Who is left has a claim, and the first of those pays when who paid has none any more. */
static void round_check_charge(struct round *round)
{
    unsigned left = 0;
    uid_t oldest = 0;
    bool payer_lives = false;
    struct look look;

    for (unsigned i = FORKED; i-- > 0;) {
        if (!round->lives[i])
            continue;
        left++;
        oldest = uid_of((enum holder)i);
        payer_lives |= oldest == round->payer;
    }
    if (left && !payer_lives)
        round->payer = oldest;
    if (left || round->lives[FORKED]) {
        int state = left ? MEMCLIENT_BUFFER_STATE_LIVE : MEMCLIENT_BUFFER_STATE_DETACHED;

        if (!WAIT_UNTIL((look = round_look(round),
                         look.state == state && look.holds == left && look.charged_uid == round->payer)))
            fail_msg("%s: state %d, %u holds, charged to %u; wanted state %d, %u holds, charged to %u", round->text,
                     look.state, look.holds, look.charged_uid, state, left, (unsigned)round->payer);
        assert_int_equal(broker_pool_used(round->ctx, "tight"), SIZE);
    } else if (!WAIT_UNTIL(round_look(round).state == -1 && broker_pool_used(round->ctx, "tight") == 0)) {
        fail_msg("%s: state %d, %llu bytes in the pool", round->text, round_look(round).state,
                 (unsigned long long)broker_pool_used(round->ctx, "tight"));
    }
}

/* Whoever is left reads what was written last, and the first writer writes something else. */
static void round_check_contents(struct round *round)
{
    bool written = false;

    for (unsigned i = 0; i < HOLDERS; i++)
        if (round->lives[i])
            round_command(round, (enum holder)i, (struct command){.what = VERIFY, .version = round->version});
    for (unsigned i = 0; i < HOLDERS && !written; i++) {
        if (!round->lives[i] || i == IMPORTER)
            continue;
        round_command(round, (enum holder)i, (struct command){.what = WRITE, .version = ++round->version});
        written = true;
    }
}

static void check_sums(struct memclient_context *ctx)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    assert_done(memclient_broker_check(ctx, &result));
    if (result.faults)
        fail_msg("check: %s", result.sentences[0]);
}

/* The n-th permutation. */
static void order_of(unsigned n, enum holder order[static HOLDERS])
{
    enum holder left[HOLDERS] = {OWNER, OPENER, IMPORTER, FORKED};

    for (unsigned i = HOLDERS; i; i--) {
        order[HOLDERS - i] = left[n % i];
        for (unsigned j = n % i; j + 1 < i; j++)
            left[j] = left[j + 1];
        n /= i;
    }
}

/* `killed`: the broker, before so many have ended; not at all if that is more than there are. */
static void round_run(struct round *round, unsigned number, const enum way ways[static HOLDERS], unsigned killed)
{
    static const char *const words[WAYS] = {"exits", "is killed", "closes"};
    enum holder order[HOLDERS];
    size_t n = 0;

    order_of(number, order);
    round_begin(round);
    for (unsigned i = 0; i < HOLDERS; i++) {
        enum holder holder = order[i];

        n += (size_t)snprintf(round->text + n, sizeof(round->text) - n, "%s%s%s %s", i ? ", " : "",
                              killed == i ? "the broker dies, " : "", names[holder], words[ways[holder]]);
        if (killed == i)
            broker_kill_child(round->broker);
        round_end_one(round, holder, ways[holder]);
        round_check_contents(round);
        round_check_charge(round);
        check_sums(round->ctx);
    }
    round_reap(round);
}

static void I4_I5_holders_end_in_any_order(void **state)
{
    struct round round = {.broker = broker_for_test(TIGHT)};
    const char *text = getenv("EXITS");
    bool all = text && !strcmp(text, "all");

    round.ctx = broker_connect(round.broker);
    for (unsigned number = 0; number < ORDERS; number++) {
        for (unsigned w = 0; w < (all ? WAYS_OF_ALL : WAYS); w++) {
            enum way ways[HOLDERS];

            for (unsigned i = 0, rest = w; i < HOLDERS; i++, rest /= WAYS)
                ways[i] = (enum way)((all ? rest : w + i) % WAYS);
            /* in make check-long with every place in turn, else now and then */
            round_run(&round, number, ways, all ? (number + w) % HOLDERS : (number + 3 * w) % (2 * HOLDERS));
        }
    }
    memclient_context_close(round.ctx);
    broker_finish(round.broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I4_I5_holders_end_in_any_order),
    };

    return test_run(tests, NULL, NULL);
}
