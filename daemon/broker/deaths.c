/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See deaths.h. A pidfd hangs up when its process has been reaped, and that is all that the epoll instance waits for:
 * that it is readable, since the process is dead, is no news.
 */
#include "broker/deaths.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/broker.h"
#include "broker/lookup.h"
#include "broker/oom.h"
#include "broker/recover.h"
#include "broker/report.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "history/counters.h"
#include "sys/peer.h"

#define DEATHS_MAX      256
#define DEATHS_USER_MAX 32
/* for a worker that looks whether it was for want of memory, once the end is known */
#define DEATHS_LOOK_MS 10000
/* in one turn of the loop */
#define DEATHS_A_TURN 16

/* Whose end it is. */
struct death_who {
    uint64_t session;
    uid_t uid;
    pid_t pid;
    uint32_t index; /* of the record in the history */
};

struct death {
    struct list link;
    struct broker *broker;
    struct death_who who;
    int pidfd;             /* owned */
    struct oom_look *look; /* whether the kernel has killed for want of memory; or NULL */
    struct timer late;     /* nobody waits for that any longer */
    enum peer_end end;     /* and its status, once it is known */
    int status;
};

void deaths_prepare(struct deaths *deaths)
{
    list_init(&deaths->list);
    deaths->epoll = -1;
}

int deaths_init(struct broker *broker)
{
    broker->deaths.epoll = epoll_create1(EPOLL_CLOEXEC);
    return broker->deaths.epoll < 0 ? -errno : 0;
}

/* Closing does not do that: the keeper has the same description. */
static void death_unwatch(struct broker *broker, const struct death *death)
{
    (void)epoll_ctl(broker->deaths.epoll, EPOLL_CTL_DEL, death->pidfd, NULL);
}

static void death_free(struct broker *broker, struct death *death)
{
    oom_look_end(death->look);
    timer_disarm(&broker->timers, &death->late);
    list_remove(&death->link);
    broker->deaths.n--;
    death_unwatch(broker, death);
    (void)fd_close(death->pidfd);
    free(death);
}

void deaths_deinit(struct broker *broker)
{
    list_for_each_entry_safe(death, &broker->deaths.list, struct death, link)
        death_free(broker, death);
    broker->deaths.epoll = fd_close(broker->deaths.epoll);
}

static struct death_who death_who_was(const struct session_record *record, uint32_t index)
{
    return (struct death_who){record->head.id, record->uid, (pid_t)record->pid, index};
}

static void death_tell_end(struct broker *broker, const struct death_who *who, uint32_t end, uint32_t status)
{
    const struct broker_event event = {
        .kind = EVENT_DEATH, .session = who->session, .uid = who->uid, .pid = who->pid, .end = end, .status = status};

    event_death(broker, &event);
}

void death_tell(struct broker *broker, const struct session *session)
{
    const struct client *client = client_of(session);
    const struct death_who who = death_who_was(session->record, HISTORY_NONE);

    if (client->death_end)
        death_tell_end(broker, &who, client->death_end, client->death_status);
}

/* The cause is counted, and goes into the record, if that is still there and has none. */
static void death_enter(struct broker *broker, const struct death_who *who, enum history_end end, int status)
{
    const struct history_record *record = history_ended(broker->history, who->index, who->session);
    const struct session *session = sessions_find(&broker->sessions, who->session);

    counters_end(broker->counters, end);
    if (record && record->end == HISTORY_END_DIED) {
        history_set_end(broker->history, who->index, end, (uint32_t)status);
        event_history(broker, who->uid, false);
    }
    if (session) {
        client_of(session)->death_end = end;
        client_of(session)->death_status = (uint32_t)status;
    } else {
        death_tell_end(broker, who, end, (uint32_t)status);
    }
}

/* May it have been the OOM killer? */
static bool is_killed(enum peer_end end, int status)
{
    return end == PEER_END_SIGNAL && status == SIGKILL;
}

static void death_enter_end(struct broker *broker, const struct death_who *who, enum peer_end end, int status, bool oom)
{
    static const enum history_end ends[] = {
        [PEER_END_EXITED] = HISTORY_END_EXITED,
        [PEER_END_SIGNAL] = HISTORY_END_SIGNAL,
        [PEER_END_UNREAPED] = HISTORY_END_UNKNOWN,
        [PEER_END_UNKNOWN] = HISTORY_END_UNKNOWN,
    };

    death_enter(broker, who, oom && is_killed(end, status) ? HISTORY_END_OOM : ends[end], status);
}

static void death_finish(struct broker *broker, struct death *death)
{
    bool oom = death->look && is_killed(death->end, death->status) && oom_take(death->look);

    death_enter_end(broker, &death->who, death->end, death->status, oom);
    keeper_drop(broker->options.keeper, KEEPER_SESSION, death->who.session);
    death_free(broker, death);
}

static void death_is_late(struct timer *timer)
{
    struct death *death = container_of(timer, struct death, late);

    death_finish(death->broker, death);
}

/* It is told once all is known. */
static void death_settle(struct broker *broker, struct death *death)
{
    if (death->end == PEER_END_UNREAPED)
        return;
    if (death->look && !oom_has_looked(death->look) && is_killed(death->end, death->status))
        timer_arm(&broker->timers, &death->late, deadline_after_ms(DEATHS_LOOK_MS));
    else
        death_finish(broker, death);
}

/* How many of this user's causes are waited for? */
static unsigned deaths_of(const struct deaths *deaths, uid_t uid)
{
    unsigned n = 0;

    list_for_each_entry(death, &deaths->list, struct death, link)
        n += death->who.uid == uid;
    return n;
}

static struct death *deaths_find(const struct broker *broker, uint64_t session)
{
    list_for_each_entry(death, &broker->deaths.list, struct death, link)
        if (death->who.session == session)
            return death;
    return NULL;
}

bool deaths_have(const struct broker *broker, uint64_t session)
{
    return deaths_find(broker, session);
}

static void death_counted(struct broker *broker, uint64_t session)
{
    struct death *death = deaths_find(broker, session);

    if (death)
        death_settle(broker, death);
}

/* Takes the descriptor if it waits: for the parent, and (of a session) for a worker that counts. */
static bool death_wait(struct broker *broker, const struct death_who *who, const struct session *counted, int *pidfd,
                       enum peer_end end, int status)
{
    struct deaths *deaths = &broker->deaths;
    struct epoll_event event = {.events = 0};
    struct death *death;

    if (deaths->n == DEATHS_MAX || deaths_of(deaths, who->uid) == DEATHS_USER_MAX)
        return false;
    death = malloc(sizeof(*death));
    if (!death)
        return false;
    *death = (struct death){.broker = broker,
                            .who = *who,
                            .pidfd = *pidfd,
                            .late = TIMER_INIT(death_is_late),
                            .end = end,
                            .status = status};
    event.data.ptr = death;
    if (end == PEER_END_UNREAPED && epoll_ctl(deaths->epoll, EPOLL_CTL_ADD, *pidfd, &event) < 0) {
        free(death);
        return false;
    }
    if (counted)
        death->look = oom_look(broker, counted, death_counted);
    if (end != PEER_END_UNREAPED && !death->look) {
        free(death);
        return false;
    }
    if (end != PEER_END_UNREAPED)
        timer_arm(&broker->timers, &death->late, deadline_after_ms(DEATHS_LOOK_MS));
    *pidfd = -1;
    deaths->n++;
    list_append(&deaths->list, &death->link);
    return true;
}

/* `session` is NULL if it is another broker's. */
static void death_look(struct broker *broker, const struct death_who *who, const struct session *session, int *pidfd)
{
    enum peer_end end = PEER_END_UNKNOWN;
    bool counts, waits;
    int status = 0;

    if (pidfd && *pidfd >= 0)
        end = peer_end(*pidfd, &status);
    counts = session && oom_is_known(session) && (end == PEER_END_UNREAPED || is_killed(end, status));
    waits = counts || end == PEER_END_UNREAPED;
    if (!waits || !death_wait(broker, who, counts ? session : NULL, pidfd, end, status))
        death_enter_end(broker, who, end, status, false);
}

/* A session whose process died while no broker ran has no pidfd: the one that the keeper had is still among what was
 * handed over. */
void death_begin(struct broker *broker, struct session *session, uint32_t index)
{
    const struct death_who who = death_who_was(session->record, index);
    uint64_t id = who.session;
    int *pidfd = session->peer.pidfd >= 0 ? &session->peer.pidfd : handed_fd(broker, KEEPER_SESSION, id);

    if (!deaths_have(broker, id))
        death_look(broker, &who, session, pidfd);
}

void deaths_recover(struct broker *broker)
{
    const struct history_record *record;

    for (uint32_t i = 0; (i = history_next_open(broker->history, i, &record)) != HISTORY_NONE; i++) {
        const struct death_who who = {record->session, record->uid, (pid_t)record->pid, i};

        death_look(broker, &who, NULL, handed_fd(broker, KEEPER_SESSION, who.session));
    }
}

int deaths_enumerate(const struct broker *broker, keeper_take_fn *give, void *to)
{
    int r = 0;

    list_for_each_entry(death, &broker->deaths.list, struct death, link) {
        r = give(to, KEEPER_SESSION, death->who.session, death->pidfd);
        if (r)
            break;
    }
    return r;
}

int broker_deaths_fd(struct broker *broker)
{
    return broker->deaths.epoll;
}

void broker_deaths_ready(struct broker *broker)
{
    struct epoll_event events[DEATHS_A_TURN];
    int n = epoll_wait(broker->deaths.epoll, events, DEATHS_A_TURN, 0);

    for (int i = 0; i < n; i++) {
        struct death *death = events[i].data.ptr;

        death->end = peer_end(death->pidfd, &death->status);
        if (death->end == PEER_END_UNREAPED)
            death->end = PEER_END_UNKNOWN;
        death_unwatch(broker, death);
        death_settle(broker, death);
    }
}
