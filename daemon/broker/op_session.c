/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions begin, lose their connection, come back and end (I3, I6).
 *
 * A session ends when it says so, when its process is dead, or when it has been without a connection for the grace
 * time and nothing that it holds is open or mapped anywhere. Ending takes as many turns of the loop as it holds
 * things for; from its first moment no verb finds the session any more.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/steal.h"
#include "broker/check.h"
#include "broker/claims.h"
#include "broker/events.h"
#include "broker/internal.h"
#include "broker/life.h"
#include "broker/lookup.h"
#include "log/log.h"
#include "mem/handle.h"

/* holds, names and the like given up in one turn: each may close a small buffer */
#define ENDING_SLICE 16

/* how long after its event a close is surely complete */
#define CLOSE_MS 50

/* ---- the beginning -------------------------------------------------------------------------------------- */

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
        .release_log = -1,
        .n_nodes = nodes_with_memory(broker->options.topology),
    };
    memcpy(result->secret, session->record->secret, sizeof(result->secret));
}

/*
 * The session's release log, or a new one that the keeper holds. A client can do without one, so nothing but the
 * keeper's end is an error.
 */
static int give_release_log(struct broker *broker, struct session *session, struct hello_result *result)
{
    struct problem ignored;
    int r = 0;

    if (session->release_log < 0) {
        r = session_make_release_log(session);
        if (!r)
            ledger_need(broker->ledger, LEDGER_HOLD_CACHE);
        if (!r)
            r = keeper_hold(broker->options.keeper, KEEPER_RELEASE_LOG, session->record->head.id,
                            session->release_log);
        if (r)
            session->release_log = fd_close(session->release_log);
    }
    if (!r)
        (void)handle_reopen(session->release_log, true, &result->release_log, &ignored);
    return r == -EPIPE ? r : 0;
}

static int resume(struct op *op, const struct hello_args *args, struct hello_result *result)
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

/* Its death must be noticed, by this broker and by the next one. */
static int watch_process(struct op *op, struct session *session)
{
    struct broker *broker = op->broker;
    uint64_t id = session->record->head.id;
    int r = broker->host.watch_process(broker->host.userdata, id, session->peer.pidfd);

    if (r)
        return refuse(&op->problem, STATUS_NO_DESCRIPTORS,
                      "the broker cannot watch one more process: %s; raise fs.epoll.max_user_watches",
                      strerrordesc_np(-r));
    r = keeper_hold(broker->options.keeper, KEEPER_SESSION, id, session->peer.pidfd);
    if (r) {
        broker->host.unwatch_process(broker->host.userdata, id);
        /* it is gone: this broker ends, and nobody gets an answer that the next one would not give */
        if (r == -EPIPE)
            return r;
        return refuse(&op->problem, STATUS_NO_DESCRIPTORS,
                      "the keeper cannot hold one more descriptor: %s; try again in a moment", strerrordesc_np(-r));
    }
    return 0;
}

/* Sessions of each administrator beyond the limit, so that who has to mend something gets in. */
#define KEPT_SESSIONS 16

int op_hello(struct op *op, const struct hello_args *args, struct hello_result *result)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct client *client;
    bool kept = args->administrator && is_admin_uid(broker, args->peer->uid);
    int r;

    if (broker->stopping)
        return refuse(&op->problem, STATUS_SHUTTING_DOWN, "the broker is stopping; try again in a moment");
    if (op->session)
        return refuse(&op->problem, STATUS_PROTOCOL, "this connection has a session already; HELLO comes once");
    if (args->resume)
        return resume(op, args, result);
    if (args->crowded && !kept)
        return refuse(&op->problem, STATUS_LIMIT, "%s", args->crowded);
    client = client_new();
    if (!client)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more session");
    r = session_new(&broker->sessions, args->peer, args->program, args->connection, kept ? KEPT_SESSIONS : 0, &session,
                    &op->problem);
    if (r) {
        free(client);
        return r;
    }
    client_join(client, session);
    r = watch_process(op, session);
    if (r) {
        session_free(session);
        free(client);
        return r;
    }
    record_commit(&broker->sessions.table, session);
    check_charged(broker, CHECK_SESSION, session);
    session_occupies(broker, session, args);
    op->session = session->record->head.id;
    fill_hello(broker, session, result);
    return args->release_log ? give_release_log(broker, session, result) : 0;
}

int op_goodbye(struct op *op)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    session_end(op->broker, session, STATUS_STALE);
    return 0;
}

int op_subscribe(struct op *op, uint32_t mask)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    record_change(&op->broker->sessions.table, session)->subscribed = mask;
    list_remove(&client_of(session)->subscribed);
    if (mask)
        list_append(&op->broker->subscribers, &client_of(session)->subscribed);
    return 0;
}

/* ---- the end -------------------------------------------------------------------------------------------- */

void session_end(struct broker *broker, struct session *session, int status)
{
    struct client *client = client_of(session);
    uint64_t id = session->record->head.id;
    void *connection = session->connection;

    if (client->ended)
        return;
    client->ended = true;
    record_change(&broker->sessions.table, session)->ended = 1;
    /* Both sides forget each other at once, so that neither is left with what the other has freed. */
    if (connection) {
        session_detach(session);
        broker->host.disconnect(broker->host.userdata, connection);
    }
    list_remove(&client->subscribed);
    list_remove(&client->lingering);
    list_append(&broker->ending, &client->in_ending);
    timers_clear_record(&broker->timers, TIME_GRACE, id);
    if (session->peer.pidfd >= 0)
        broker->host.unwatch_process(broker->host.userdata, id);
    pending_hurry(&broker->pending, id, status);
    timer_arm(&broker->timers, &broker->ending_turn, 0);
}

/* Gives up one thing of it; false if there is none left. */
static bool give_up_one(struct broker *broker, struct session *session)
{
    struct hold *hold = session_next_hold(session, 0);
    struct list *link;

    if (hold) {
        struct buffer *buffer = hold->buffer;

        caches_hold_ends(broker, hold);
        hold_free(hold);
        life_claim_gone(broker, buffer);
        return true;
    }
    link = list_first(&session->names);
    if (link) {
        name_outlives(broker, container_of(link, struct name, in_session));
        return true;
    }
    link = list_pop(&session->tokens);
    if (link) {
        token_leave_session(container_of(link, struct token, in_session));
        return true;
    }
    link = list_first(&session->reservations);
    if (link) {
        struct reservation *reservation = container_of(link, struct reservation, in_session);

        if (!reservation->record->buffers)
            check_crediting(broker, CHECK_RESERVATION, reservation);
        reservation_release(reservation);
        return true;
    }
    link = list_first(&session->kept);
    if (link) {
        kept_free(container_of(link, struct kept, in_session));
        return true;
    }
    return false;
}

void sessions_take_apart(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, ending_turn);

    for (unsigned i = 0; i < ENDING_SLICE; i++) {
        struct list *link = list_first(&broker->ending);
        struct client *client;
        struct session *session;

        if (!link)
            return;
        client = container_of(link, struct client, in_ending);
        session = client->session;
        if (give_up_one(broker, session))
            continue;
        list_remove(&client->in_ending);
        list_append(&broker->gone, &client->in_ending);
        check_crediting(broker, CHECK_SESSION, session);
        client->has_release_log = session->release_log >= 0;
        session_free(session);
    }
    timer_arm(&broker->timers, timer, 0);
}

void sessions_forget(struct broker *broker)
{
    struct list *link;

    while ((link = list_pop(&broker->gone))) {
        struct client *client = container_of(link, struct client, in_ending);

        keeper_drop(broker->options.keeper, KEEPER_SESSION, client->id);
        if (client->has_release_log)
            keeper_drop(broker->options.keeper, KEEPER_RELEASE_LOG, client->id);
        free(client);
    }
}

int broker_session_exited(struct broker *broker, uint64_t id)
{
    struct session *session = sessions_find(&broker->sessions, id);

    if (session)
        session_end(broker, session, STATUS_STALE);
    broker_commit(broker);
    return 0;
}

/* ---- without a connection (I6) -------------------------------------------------------------------------- */

/* Its grace is over: while anything that it holds is open or mapped somewhere, it may well be by its process. */
static void grace_is_over(void *userdata, uint64_t id)
{
    struct broker *broker = userdata;
    struct session *session = find_session(broker, id);
    struct client *client;
    struct hold *hold;

    if (!session || session->connection)
        return;
    client = client_of(session);
    /* one that cannot come back now, stopped or in a debugger, has as long again */
    if (process_pauses((pid_t)session->record->pid) &&
        !timers_set_record(&broker->timers, TIME_GRACE, id, deadline_after_ms(broker->options.grace_ms),
                           grace_is_over, broker))
        return;
    for (unsigned i = 0; i < SLICE; i++) {
        bool sole = true;

        hold = session_next_hold(session, client->scanned);
        if (!hold) {
            log_client(LOG_LEVEL_INFO, (struct log_client){session->record->uid, (pid_t)session->record->pid},
                       "session %llu of pid %u ends: no connection, and nothing of it is in use",
                       (unsigned long long)id, session->record->pid);
            session_end(broker, session, STATUS_STALE);
            return;
        }
        /* What never left the broker is in nobody's use. Where the kernel does not answer, or cannot, it is. */
        if (buffer_is_foreign(hold->buffer) ||
            (hold->buffer->record->watch >= 0 && handle_sole(hold->buffer->fd, &sole, NULL)))
            sole = false;
        if (!sole) {
            client->in_use = hold->record->buffer;
            list_remove(&client->lingering);
            list_append(&broker->lingering, &client->lingering);
            return;
        }
        client->scanned = hold->record->buffer + 1;
    }
    if (timers_set_record(&broker->timers, TIME_GRACE, id, 0, grace_is_over, broker))
        session_end(broker, session, STATUS_STALE);
}

void sessions_stop_lingering(struct broker *broker, uint64_t buffer)
{
    list_for_each_entry_safe(client, &broker->lingering, struct client, lingering)
    {
        if (buffer && client->in_use != buffer)
            continue;
        client->scanned = 0;
        /* Not at once: the kernel tells of a close a moment before it is true. Without memory for a timer it goes
         * on lingering until the next event. */
        if (!timers_set_record(&broker->timers, TIME_GRACE, client->session->record->head.id,
                               deadline_after_ms(CLOSE_MS), grace_is_over, broker))
            list_remove(&client->lingering);
    }
}

int broker_connection_lost(struct broker *broker, uint64_t id, void *connection)
{
    struct session *session = sessions_find(&broker->sessions, id);

    /* News of a connection that another one has replaced come late, and say nothing. */
    if (!session || session->connection != connection)
        return 0;
    /* went with this broker: for the next one it was not lost */
    if (broker->leaving) {
        session->connection = NULL;
        return 0;
    }
    session_detach(session);
    broker_commit(broker);
    if (client_of(session)->ended)
        return 0;
    client_of(session)->scanned = 0;
    if (timers_set_record(&broker->timers, TIME_GRACE, id, deadline_after_ms(broker->options.grace_ms),
                          grace_is_over, broker))
        return fatal(-ENOMEM);
    return 0;
}

/* ---- what it gave back while there was no broker --------------------------------------------------------- */

bool broker_next_release_log(struct broker *broker, uint64_t *cursor, struct broker_release_log *ret)
{
    unsigned budget = UINT32_MAX;
    struct session *session;

    while ((session = sessions_next(&broker->sessions, cursor, &budget))) {
        const struct session_record *record = session->record;

        if (session->release_log < 0 || client_of(session)->ended)
            continue;
        if (pread(session->release_log, &ret->log, sizeof(ret->log), 0) != (ssize_t)sizeof(ret->log)) {
            log_error("the release log of session %llu cannot be read", (unsigned long long)record->head.id);
            continue;
        }
        ret->session = record->head.id;
        ret->who = (struct log_client){record->uid, (pid_t)record->pid};
        return true;
    }
    return false;
}

/* ---- after another broker ------------------------------------------------------------------------------- */

/* Whose connection went with that broker has no grace running: it was not lost. */
int session_goes_on(struct broker *broker, struct session *session)
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
        session_end(broker, session, STATUS_STALE);
        return 0;
    }
    r = broker->host.watch_process(broker->host.userdata, client->id, session->peer.pidfd);
    if (r)
        return fatal(r);
    if (record->subscribed)
        list_append(&broker->subscribers, &client->subscribed);
    if (record->lost_at &&
        timers_set_record(&broker->timers, TIME_GRACE, client->id,
                          deadline_at(record->lost_at, broker->options.grace_ms * NSEC_PER_MSEC), grace_is_over,
                          broker))
        return fatal(-ENOMEM);
    return 0;
}
