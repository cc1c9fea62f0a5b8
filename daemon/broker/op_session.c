/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions begin, are resumed (I3), and continue with the next broker. How they end is in sessions.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/probe.h"
#include "broker/lookup.h"
#include "broker/oom.h"
#include "broker/recover.h"
#include "broker/sessions.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "log/log.h"

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static uint32_t nodes_with_memory(const struct topology *topology)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        n += topology->nodes[i].total != 0;
    return n;
}

static void fill_hello(struct broker *broker, const struct session *session, struct hello_result *result)
{
    *result = (struct hello_result){
        .session = session->record->head.id,
        .broker_id = ledger_broker_id(broker->ledger),
        .arena_base = broker->arena.base,
        .arena_size = broker->arena.size,
        .base_page = broker->options.topology->base_page,
        .broker_uid = broker->options.uid,
        .simulated = broker->options.topology->simulated,
        .n_nodes = nodes_with_memory(broker->options.topology),
    };
    memcpy(result->secret, session->record->secret, sizeof(result->secret));
}

/* Does its client know of it? If this broker ends before, the next one ends the session after a grace time. */
static void session_set_answered(struct broker *broker, struct session *session, bool answered)
{
    record_change(&broker->sessions.table, session)->lost_at = answered ? 0 : clock_now_ns();
}

/* Makes the session's release log if there is none. A client can do without one, so only the keeper's end is an
 * error. */
static int give_release_log(struct broker *broker, struct session *session, struct hello_result *result)
{
    int r = 0;

    if (session->release_log < 0) {
        r = session_make_release_log(session);
        if (!r)
            ledger_need(broker->ledger, LEDGER_HOLD_CACHE);
        if (!r)
            r = keeper_hold(broker->options.keeper, KEEPER_RELEASE_LOG, session->record->head.id, session->release_log);
        if (r)
            session->release_log = fd_close(session->release_log);
    }
    result->release_log = session->release_log >= 0;
    return r == -EPIPE ? r : 0;
}

static int session_resume(struct op *op, const struct hello_args *args, struct hello_result *result)
{
    struct broker *broker = op->broker;
    struct session *session = find_session(broker, args->resume);
    struct client *client;
    int r;

    if (!session) {
        if (ledger_id_was_given(broker->ledger, args->resume))
            return refuse(&op->problem, STATUS_STALE, "session %llu has ended; begin a new one",
                          (unsigned long long)args->resume);
        return refuse(&op->problem, STATUS_SESSION_REJECTED, "there never was a session %llu; begin a new one",
                      (unsigned long long)args->resume);
    }
    r = session_may_resume(session, args->secret, args->peer, &op->problem);
    if (r)
        return r;
    client = client_of(session);
    if (session->connection && session->connection != args->connection)
        broker->host.disconnect(broker->host.userdata, session->connection);
    session_attach(session, args->connection, args->peer);
    timers_clear_record(&broker->timers, TIME_GRACE, args->resume);
    list_remove(&client->lingering);
    if (session->n_holds)
        oom_begin(broker, session);
    op->session = args->resume;
    fill_hello(broker, session, result);
    return args->release_log ? give_release_log(broker, session, result) : 0;
}

static struct client *client_new(void)
{
    struct client *client = calloc(1, sizeof(*client));

    if (!client)
        return NULL;
    list_init(&client->in_ending);
    list_init(&client->subscribed);
    list_init(&client->lingering);
    return client;
}

static void client_join(struct client *client, struct session *session)
{
    client->session = session;
    client->id = session->record->head.id;
    session->userdata = client;
}

/* This broker and the next one must notice when the process dies. */
static int session_watch_process(struct op *op, struct session *session)
{
    struct broker *broker = op->broker;
    uint64_t id = session->record->head.id;
    int r = broker->host.watch_process(broker->host.userdata, id, session->record->uid, session->peer.pidfd);

    if (r)
        return refuse(&op->problem, STATUS_NO_DESCRIPTORS,
                      "the broker cannot watch one more process: %s; raise fs.epoll.max_user_watches",
                      strerrordesc_np(-r));
    r = keeper_hold(broker->options.keeper, KEEPER_SESSION, id, session->peer.pidfd);
    if (r) {
        broker->host.unwatch_process(broker->host.userdata, id);
        /* the keeper is gone: this broker ends and answers nobody */
        if (r == -EPIPE)
            return r;
        return refuse(&op->problem, STATUS_NO_DESCRIPTORS,
                      "the keeper cannot hold one more descriptor: %s; try again in a moment", strerrordesc_np(-r));
    }
    return 0;
}

/* Several users would be one to us: each would have what the others have. */
static int session_refuse_overflow_uid(struct op *op, uid_t uid)
{
    return refuse(&op->problem, STATUS_NO_RIGHT,
                  "uid %u is the overflow uid: it stands for every user that is not mapped into the broker's user "
                  "namespace; map this user there (/proc/PID/uid_map), or set overflow_uid = serve in [session]",
                  (unsigned)uid);
}

/* Sessions of each administrator beyond the limit, so that they get in to mend something. */
#define KEPT_SESSIONS 16

static int session_open(struct op *op, const struct hello_args *args, struct hello_result *result)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct client *client;
    bool kept = args->administrator && is_admin_uid(broker, args->peer->uid);
    const char *crowded = kept ? NULL : broker->host.crowded(broker->host.userdata, args->connection);
    int r;

    if (crowded)
        return refuse(&op->problem, STATUS_LIMIT, "%s", crowded);
    client = client_new();
    if (!client)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more session");
    r = session_new(&broker->sessions, args->peer, args->program, kept ? KEPT_SESSIONS : 0, &session, &op->problem);
    if (r) {
        free(client);
        return r;
    }
    session->connection = args->connection;
    client_join(client, session);
    r = session_watch_process(op, session);
    if (r) {
        session_free(session);
        free(client);
        return r;
    }
    record_commit(&broker->sessions.table, session);
    PROBE(session_begin, session->record->head.id, session->record->uid, session->record->pid,
          &session->record->program[0]);
    session_occupies(broker, session, args);
    op->session = session->record->head.id;
    fill_hello(broker, session, result);
    return 0;
}

/*
 * HELLO takes longer than other small requests: a process is to be watched, and the release log is made and sent. Each
 * of these is done in a turn of its own.
 *
 * And it may wait. Nobody is refused for those who have left: the ends of connections, processes and sessions take
 * turns with what others ask for, so a session that finds no room waits for those that have not had theirs yet; not for
 * long, since somebody may leave all the time.
 */
struct hello {
    struct op_state state;
    const struct hello_args *args; /* until the session is open */
    struct hello_result *result;
    uid_t uid;
    uint64_t deadline;
};

#define HELLO_WAIT_MS  3000
#define HELLO_RETRY_MS 1

static bool hello_may_wait(const struct broker *broker, int status)
{
    return status == STATUS_LIMIT && (!list_is_empty(&broker->ending) || broker->host.is_left(broker->host.userdata));
}

static void hello_end(struct hello *hello, int r)
{
    pending_end(&hello->state, r);
    free(hello);
}

static void hello_again(struct op_state *state);

/* Its connection is gone, and its arguments with it; or the session has ended. */
static void hello_cancel(struct op_state *state)
{
    struct broker *broker = state->op->broker;
    struct session *session = find_session(broker, state->op->session);

    if (session && session->connection) {
        session_detach(session);
        session_end(broker, session, HISTORY_END_SILENT);
    }
    pending_call_at(state, 0, hello_again);
}

static struct hello *hello_begin(struct op *op, const struct hello_args *args, uid_t uid, struct hello_result *result)
{
    struct hello *hello = calloc(1, sizeof(*hello));

    if (!hello)
        return NULL;
    hello->args = args;
    hello->result = result;
    hello->uid = uid;
    hello->deadline = deadline_after_ms(HELLO_WAIT_MS);
    pending_begin(&op->broker->pending, &hello->state, op, hello_cancel);
    return hello;
}

/* The session that was opened, unless it has ended: 0 or the status to end with. */
static int hello_session(struct op_state *state, struct session **ret)
{
    struct op *op = state->op;

    if (state->cancel_status)
        return state->cancel_status;
    *ret = find_session(op->broker, op->session);
    return *ret ? 0
                : refuse(&op->problem, STATUS_STALE, "session %llu has ended meanwhile",
                         (unsigned long long)op->session);
}

static void hello_answer_turn(struct op_state *state)
{
    struct broker *broker = state->op->broker;
    struct session *session;
    int r = hello_session(state, &session);

    if (!r)
        session_set_answered(broker, session, true);
    hello_end(container_of(state, struct hello, state), r);
}

static void hello_log_turn(struct op_state *state)
{
    struct hello *hello = container_of(state, struct hello, state);
    struct broker *broker = state->op->broker;
    struct session *session;
    int r = hello_session(state, &session);

    if (!r)
        r = give_release_log(broker, session, hello->result);
    if (r)
        hello_end(hello, r);
    else
        pending_call_in_turn(state, hello->uid, hello_answer_turn);
    broker_commit(broker);
}

/* The session is open. */
static void hello_make_log(struct hello *hello)
{
    struct op *op = hello->state.op;

    session_set_answered(op->broker, find_session(op->broker, op->session), false);
    pending_call_in_turn(&hello->state, hello->uid, hello_log_turn);
}

static void hello_again(struct op_state *state)
{
    struct hello *hello = container_of(state, struct hello, state);
    struct op *op = state->op;
    int r = state->cancel_status;

    if (!r) {
        op->problem = (struct problem)PROBLEM_NULL;
        r = session_open(op, hello->args, hello->result);
    }
    if (hello_may_wait(op->broker, r) && !deadline_passed(hello->deadline, clock_now_ns()))
        pending_call_at(state, deadline_after_ms(HELLO_RETRY_MS), hello_again);
    else if (!r && hello->args->release_log)
        hello_make_log(hello);
    else
        hello_end(hello, r);
}

int op_hello(struct op *op, const struct hello_args *args, struct hello_result *result)
{
    struct broker *broker = op->broker;
    const uid_t uid = args->peer->uid;
    struct hello *hello;
    int r;

    if (op->session)
        return refuse(&op->problem, STATUS_PROTOCOL, "this connection has a session already; HELLO comes once");
    if (args->resume)
        return session_resume(op, args, result);
    if (broker->options.refuse_overflow_uid && peer_is_overflow_uid(uid))
        return session_refuse_overflow_uid(op, uid);
    r = session_open(op, args, result);
    if (!hello_may_wait(broker, r) && (r || !args->release_log))
        return r;
    hello = hello_begin(op, args, uid, result);
    if (!hello) /* a client can do without a release log */
        return r;
    if (r)
        pending_call_at(&hello->state, deadline_after_ms(HELLO_RETRY_MS), hello_again);
    else
        hello_make_log(hello);
    return OP_PENDING;
}

int op_goodbye(struct op *op)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    session_end(op->broker, session, HISTORY_END_GOODBYE);
    return 0;
}

int op_subscribe(struct op *op, uint32_t mask)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    return subscribe_all(op->broker, session, mask, &op->problem);
}

int op_subscribe_to(struct op *op, uint32_t mask, uint64_t id, const char *name)
{
    const struct buffer *buffer;
    struct session *session;
    struct name_key key;
    int r = op_session(op, &session);

    if (!r && name[0])
        r = name_parse(name, session->record->uid, &key, &op->problem);
    if (r)
        return r;
    if (name[0])
        return subscribe_name(op->broker, session, &key, mask, &op->problem);
    buffer = buffers_find(&op->broker->buffers, id);
    if (mask && (!buffer || buffer->record->state != BUFFER_LIVE || buffer_is_unowned(buffer)))
        return no_such(op->broker, &op->problem, id, "buffer");
    r = mask ? op_may_see(op, session, buffer) : 0;
    return r ? r : subscribe_buffer(op->broker, session, id, mask, &op->problem);
}

/* ---- after another broker ---------------------------------------------------------------------------------------- */

/* No grace runs for a connection that ended with that broker: it was not lost. */
int session_restore(struct broker *broker, struct session *session)
{
    const struct session_record *record = session->record;
    int *release_log = handed_fd(broker, KEEPER_RELEASE_LOG, record->head.id);
    struct client *client = client_new();
    int r;

    if (!client)
        return fatal(-ENOMEM);
    client_join(client, session);
    if (release_log)
        session->release_log = steal_fd(release_log);
    if (record->ended) {
        client->ended = true;
        list_append(&broker->ending, &client->in_ending);
        timer_arm(&broker->timers, &broker->ending_turn, 0);
        return 0;
    }
    if (session->peer.pidfd < 0) {
        session_end(broker, session, HISTORY_END_DIED);
        return 0;
    }
    r = broker->host.watch_process(broker->host.userdata, client->id, record->uid, session->peer.pidfd);
    if (r)
        return fatal(r);
    r = subscribe_restore(broker, session);
    if (r)
        return fatal(r);
    return record->lost_at ? session_begin_grace(broker, session) : 0;
}
