/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: made from what the kernel said of a peer, resumed by the same peer only.
 */
#include "session/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "log/log.h"
#include "proto/hold_cache.h"
#include "proto/status.h"
#include "session/hold.h"
#include "session/kept.h"
#include "sys/sys.h"

void sessions_init(struct sessions *sessions, struct ledger *ledger, struct accounts *accounts)
{
    *sessions = (struct sessions){.accounts = accounts};
    table_init(&sessions->table, ledger, RECORD_SESSION, sizeof(struct session), true);
    table_init(&sessions->holds, ledger, RECORD_HOLD, sizeof(struct hold), false);
    kept_init(sessions);
}

void sessions_deinit(struct sessions *sessions)
{
    kept_deinit(sessions);
    table_deinit(&sessions->holds);
    table_deinit(&sessions->table);
}

static void init_object(struct sessions *sessions, struct session *session)
{
    session->sessions = sessions;
    session->peer = (struct peer)PEER_NULL;
    session->release_log = -1;
    RB_INIT(&session->holds);
    list_init(&session->tokens);
    list_init(&session->names);
    list_init(&session->reservations);
    list_init(&session->kept);
}

int session_new(struct sessions *sessions, struct peer *peer, const char *program, unsigned beyond,
                struct session **ret, struct problem *problem)
{
    _cleanup_(session_freep) struct session *session = NULL;
    struct session_record *record;
    void *object;
    int r;

    r = table_alloc(&sessions->table, &object, problem);
    if (r)
        return r;
    session = object;
    record = record_fresh(session);
    init_object(sessions, session);

    if (getrandom(record->secret, sizeof(record->secret), 0) != (ssize_t)sizeof(record->secret))
        return fatal(-errno);
    r = account_new_session(sessions->accounts, peer->uid, &session->account, problem);
    if (r)
        return r;
    account_set_groups(session->account, peer->gid, peer->groups, peer->n_groups);
    r = charge_init_beyond(&session->charge, session->account, ACCOUNT_SESSIONS, 1, beyond, problem);
    if (r)
        return r;
    record->uid = peer->uid;
    record->gid = peer->gid;
    record->pid = (uint32_t)peer->pid;
    record->identity = peer->identity;
    record->created_ms = clock_wall_ms();
    memcpy(record->program, program, strnlen(program, sizeof(record->program) - 1));

    session->peer = *peer;
    *peer = (struct peer)PEER_NULL;
    audit_after(&sessions->table, session);
    *ret = steal_ptr(&session);
    return 0;
}

int session_recover(struct sessions *sessions, struct session *session, int *pidfd, enum table_verdict *ret,
                    const char **why)
{
    const struct session_record *record = session->record;
    int none = -1;
    int r;

    *ret = TABLE_QUARANTINE;
    *why = "there can be no such process";
    if (record->uid == (uid_t)-1 || (pid_t)record->pid <= 0 || !memchr(record->program, 0, sizeof(record->program)))
        return 0;
    init_object(sessions, session);
    r = account_new_session(sessions->accounts, record->uid, &session->account, NULL);
    if (r)
        return fatal(-ENOMEM);
    charge_restore(&session->charge, session->account, ACCOUNT_SESSIONS, 1);
    *ret = TABLE_KEEP;
    r = peer_init_again(&session->peer, record->uid, record->gid, (pid_t)record->pid, record->identity,
                        pidfd ? pidfd : &none);
    if (r == PEER_NO_ROOM)
        return fatal(-EMFILE);
    return r < 0 ? r : 0;
}

struct session *session_free(struct session *session)
{
    if (!session)
        return NULL;
    assert(!session->n_holds && RB_EMPTY(&session->holds));
    assert(list_is_empty(&session->tokens));
    assert(list_is_empty(&session->names));
    assert(list_is_empty(&session->reservations));
    assert(list_is_empty(&session->kept));
    if (session->charge.account)
        audit_before(&session->sessions->table, session);
    charge_deinit(&session->charge);
    session->account = account_unref(session->account);
    peer_deinit(&session->peer);
    session->release_log = fd_close(session->release_log);
    explicit_bzero(record_change(&session->sessions->table, session)->secret, sizeof(session->record->secret));
    table_free(&session->sessions->table, session);
    return NULL;
}

int session_may_resume(const struct session *session, const uint8_t secret[static MEMORYD_SECRET_SIZE],
                       const struct peer *peer, struct problem *problem)
{
    if (!bytes_equal(session->record->secret, secret, MEMORYD_SECRET_SIZE) || session->peer.uid != peer->uid ||
        !peer_same_process(&session->peer, peer))
        return refuse(problem, STATUS_SESSION_REJECTED,
                      "only the process that opened a session can go on with it, and with its secret; "
                      "open a new one");
    return 0;
}

void session_attach(struct session *session, void *connection, struct peer *peer)
{
    gid_t *groups = session->peer.groups;
    size_t n_groups = session->peer.n_groups;

    session->peer.groups = peer->groups;
    session->peer.n_groups = peer->n_groups;
    peer->groups = groups;
    peer->n_groups = n_groups;
    /* of the same process */
    peer->pidfd = fd_close(peer->pidfd);
    session->connection = connection;
    account_set_groups(session->account, session->peer.gid, session->peer.groups, session->peer.n_groups);
    record_change(&session->sessions->table, session)->lost_at = 0;
}

void session_detach(struct session *session)
{
    session->connection = NULL;
    record_change(&session->sessions->table, session)->lost_at = clock_now_ns();
}

int session_make_release_log(struct session *session)
{
    _cleanup_close_ int fd = sys_memfd_new("memoryd:releases", 0);

    if (fd < 0 || sys_fd_check(fd) < 0 || sys->ftruncate(fd, SESSION_MEMORY_SIZE) < 0 || sys->fchmod(fd, 0600) < 0 ||
        sys->add_seals(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    session->release_log = steal_fd(&fd);
    return 0;
}

struct session *sessions_find(const struct sessions *sessions, uint64_t id)
{
    struct session *session = table_find(&sessions->table, id);

    return session && record_is_live(&session->record->head) ? session : NULL;
}
