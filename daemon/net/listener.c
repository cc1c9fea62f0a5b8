/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel keeps those who connect in one queue, whoever they are. So one user's storm makes others wait behind it,
 * for as long as it takes to accept or refuse all that are in the queue. What is done here for each is therefore what
 * it takes to know whose limits apply, and no more; the rest of a connection's beginning is done in a turn of its user
 * (connection.c).
 *
 * Accepting takes turns with the users (fair_queue.h), one small step at a time, so that a storm has a part of the loop
 * like any other work. Who connects pays for that, so that it is not one more part beside the user's own. Who has left
 * meanwhile is not let in at all: that is most of a storm, and to let them in and see them leave costs several times as
 * much as to connect and leave does. Their user's part of the loop would not do, and it would soon have all the
 * connections that it may have.
 */

#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/problem.h"
#include "base/share.h"
#include "net/internal.h"
#include "proto/sockio.h"

#define TURN_AWAY_MAX 16
/*
 * A user's connections that wait for their first turn. With more, for each that comes some of the others are looked at:
 * two, so that there are at most about twice as many as are still open at the other end.
 */
#define UNIDENTIFIED_MANY 64
#define LEFT_LOOKED_AT    2

struct listener {
    struct net *net;
    int fd;
    int spare;
    unsigned pauses; /* in a row */
    struct fair_flow flow;
    struct fair_task task; /* accepts one, or does what comes of that */
    struct net_user *user; /* who connected last, while something comes of it; or NULL */
    int left;              /* its socket if it has left, to be closed; or -1 */
    unsigned looks;        /* so many of its other connections are to be looked at */
    struct event event;
    struct event pause_event;
};

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* The kernel has no descriptor or memory for one more. */
static void pause_accepting(struct listener *listener, const char *what)
{
    if (!listener->pauses++)
        log_warning("no client can be accepted now: %s; raise the limit of open files (LimitNOFILE=)", what);
    (void)event_del(&listener->event);
    (void)event_add(&listener->pause_event, &(struct timeval){.tv_usec = LISTENER_PAUSE_MS * 1000});
}

/* Accepts with the spare descriptor and closes at once, until the queue is empty. */
static void turn_away(struct listener *listener)
{
    unsigned n = 0;

    if (listener->spare < 0)
        return;
    for (; n < TURN_AWAY_MAX; n++) {
        int fd;

        listener->spare = fd_close(listener->spare);
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            net_close_socket(listener->net, (uid_t)-1, fd, !sockio_refuses_fds(fd));
        listener->spare = open_spare();
        if (fd < 0 || listener->spare < 0)
            break;
    }
    if (n)
        log_warning("%u clients were turned away: no descriptor is left for them", n);
}

static bool is_administrator(const struct net *net, uid_t uid)
{
    return !uid || uid == net->limits.administrator;
}

/* Is `fd` one of the last n descriptors? The kernel hands out the lowest first. */
static bool is_among_last(const struct net *net, int fd, unsigned n)
{
    return n && (unsigned)fd >= net->limits.descriptors - n;
}

/* The user's counters, with the share that it has now; NULL: no memory. */
static struct net_user *listener_user(const struct listener *listener, const struct peer *peer)
{
    struct net *net = listener->net;
    struct net_user *user = net_user_get(net, peer->uid);
    struct net_share share = {.percent = SHARE_ALL, .connections = net->limits.connections_uid};

    if (net->handler->share)
        share = net->handler->share(net->userdata, peer);
    if (user) {
        user->share = share.percent;
        user->connections_most = share.connections;
    }
    return user;
}

/* How many connections the user may have of those that the others leave, when there are so many. */
static uint64_t connections_of(const struct net *net, const struct net_user *user, unsigned n_connections)
{
    unsigned others = n_connections > user->connections ? n_connections - user->connections : 0;

    return share_of(net->limits.connections, others, user->share);
}

/*
 * Nobody is turned away for those who are leaving, whom HELLO waits for, as long as these are not very many: each has a
 * descriptor, and a user that connects and leaves all the time may always have some.
 */
static unsigned connections_that_stay(const struct net *net)
{
    unsigned most = net->limits.connections / 2;

    return net->n_connections - (net->n_leaving < most ? net->n_leaving : most);
}

/* Why HELLO will refuse this client, or NULL. An administrator may be let in all the same: see HELLO. `counted`: it is
 * one of those that there are. */
static const char *why_crowded(const struct net *net, int fd, struct net_user *user, bool counted)
{
    uint64_t most = connections_of(net, user, net->n_connections);

    if (net->n_connections - counted >= net->limits.connections)
        return "the broker has as many connections as it may have; try again later, or raise connections in [limits]";
    if (user->share != SHARE_ALL && user->connections - counted >= most) {
        (void)snprintf(user->why_crowded, sizeof(user->why_crowded),
                       "user %u has %u connections, but may have %llu, %u%% of what the others leave; close some, or "
                       "configure [user %u] share = 100%%",
                       (unsigned)user->uid, user->connections - counted, (unsigned long long)most, user->share,
                       (unsigned)user->uid);
        return user->why_crowded;
    }
    if (is_among_last(net, fd, net->limits.last_descriptors))
        return "the broker has hardly any descriptors left; try again later, or raise its LimitNOFILE";
    return NULL;
}

const char *connection_crowded(struct connection *connection)
{
    if (connection->crowded)
        connection->crowded = why_crowded(connection->net, connection->fd, connection->user, true);
    return connection->crowded;
}

/* Takes the socket if it is let in. */
static void listener_admit(struct listener *listener, int *fd, struct peer *peer, struct net_user *user, bool peeks)
{
    struct net *net = listener->net;
    struct log_client who = {.uid = peer->uid, .pid = peer->pid};
    bool administrator = is_administrator(net, peer->uid);
    unsigned extra = administrator ? net->limits.administrators : 0;
    const char *crowded = NULL;
    struct problem why = PROBLEM_NULL;
    struct connection *connection = NULL;
    unsigned n = connections_that_stay(net), unended, all;

    if (n >= net->limits.connections + net->limits.crowded + extra)
        problem_set(&why, "there are %u connections, and connections in [limits] allows no more", n);
    else if (!administrator && is_among_last(net, *fd, net->limits.last_descriptors / 2))
        problem_set(&why, "hardly any descriptor is left (LimitNOFILE=)");
    else if (user->connections >= user->connections_most + (uint64_t)extra)
        problem_set(&why, "its user has %u connections, and uid_sessions in [limits] allows no more",
                    user->connections);
    else if (user->connections >= connections_of(net, user, n) + net->limits.crowded + extra)
        problem_set(&why, "its user has %u connections, its share of what the others leave", user->connections);
    else if ((unended = net->handler->unended(net->userdata, peer->uid, &all)) > net->limits.unended_uid)
        problem_set(&why, "%u connections on which its user sent descriptors cannot be closed", unended);
    else {
        crowded = why_crowded(net, *fd, user, false);
        connection = connection_new(net, *fd, peer, user, peeks);
        if (!connection)
            problem_set(&why, "no memory");
    }
    if (!connection) {
        log_client(LOG_LEVEL_WARNING, who, "turned away: %s", why.sentence);
        return;
    }
    (void)steal_fd(fd);
    connection->crowded = crowded;
}

/* Takes the socket. */
static void listener_receive(struct listener *listener, int fd)
{
    const struct log_client nobody = {.uid = (uid_t)-1};
    struct net *net = listener->net;
    struct peer peer = PEER_NULL;
    struct net_user *user = NULL;
    bool peeks = !sockio_refuses_fds(fd);
    uid_t uid;
    int r;

    if (!peeks && socket_is_left(fd)) {
        listener->left = fd;
        listener->looks = 0;
        if (!peer_uid(fd, &uid))
            listener->user = net_user_get(net, uid);
        return;
    }
    r = peer_init_user(&peer, fd);
    if (peeks)
        (void)sockio_refuse_fds(fd);
    if (r)
        log_client(LOG_LEVEL_INFO, nobody, "turned away: its process cannot be identified (%d)", r);
    else if (!(user = listener_user(listener, &peer)))
        log_client(LOG_LEVEL_WARNING, nobody, "turned away: no memory");
    else
        listener_admit(listener, &fd, &peer, user, peeks);
    if (fd >= 0)
        net_close_socket(net, r ? (uid_t)-1 : peer.uid, fd, peeks);
    peer_deinit(&peer);
    listener->looks = LEFT_LOOKED_AT;
    listener->user = user;
}

/* Is there something left to do for the last one that connected? */
static bool listener_goes_on(const struct listener *listener)
{
    return listener->left >= 0 ||
           (listener->user && listener->looks && listener->user->n_unidentified > UNIDENTIFIED_MANY);
}

/*
 * A little at a time: its socket is closed if it has left; and if many connections of its user wait for their first
 * turn, some are ended that have left. A client that connects and leaves as fast as it can would have all its user's
 * connections waiting otherwise.
 */
static void listener_go_on(struct listener *listener)
{
    if (listener->left >= 0) {
        listener->left = fd_close(listener->left);
        return;
    }
    listener->looks--;
    user_end_left(listener->user);
}

/* Each client that is turned away with packets of its own is one more connection to end. */
static bool listener_is_backlogged(const struct net *net)
{
    unsigned all;

    (void)net->handler->unended(net->userdata, (uid_t)-1, &all);
    return all > net->limits.unended_all;
}

/* False: nobody is waiting, or there is no room. */
static bool accept_one(struct listener *listener)
{
    int fd;

    if (listener_is_backlogged(listener->net)) {
        pause_accepting(listener, "too many connections on which clients sent descriptors cannot be closed");
        return false;
    }
    fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        switch (errno) {
        case EMFILE:
        case ENFILE:
            pause_accepting(listener, "no descriptor is left");
            return false;
        case ENOBUFS:
        case ENOMEM:
            pause_accepting(listener, "the kernel is out of memory");
            return false;
        case EINTR:
        case ECONNABORTED:
            return true;
        case EAGAIN:
            return false;
        default:
            net_fail(listener->net, fatal(-errno));
            return false;
        }
    }
    listener_receive(listener, fd);
    listener->pauses = 0;
    return true;
}

static void listener_turn(struct fair_task *task)
{
    struct listener *listener = container_of(task, struct listener, task);

    if (listener->spare < 0)
        listener->spare = open_spare();
    if (listener_goes_on(listener)) {
        listener_go_on(listener);
    } else {
        if (listener->user)
            listener->user = net_user_unref(listener->net, listener->user);
        if (!accept_one(listener))
            return;
    }
    if (listener->user)
        fair_queue_charge(&listener->net->queue, &listener->user->flow);
    fair_queue_add(&listener->net->queue, &listener->flow, task);
}

/* The kernel tells of each once (EV_ET): until nobody is found waiting any more. */
static void on_connection(evutil_socket_t fd, short events, void *userdata)
{
    struct listener *listener = userdata;

    fair_queue_add(&listener->net->queue, &listener->flow, &listener->task);
}

static void on_pause_over(evutil_socket_t fd, short events, void *userdata)
{
    struct listener *listener = userdata;

    if (listener->pauses >= LISTENER_PATIENCE && !listener_is_backlogged(listener->net))
        turn_away(listener);
    if (event_add(&listener->event, NULL) < 0)
        net_fail(listener->net, fatal(-ENOMEM));
}

int listener_new(struct listener **ret, struct net *net, int fd)
{
    struct listener *listener = calloc(1, sizeof(*listener));

    if (!listener)
        return -ENOMEM;
    listener->net = net;
    listener->fd = fd;
    listener->left = -1;
    fair_flow_init(&listener->flow);
    fair_task_init(&listener->task, listener_turn);
    /* one that somebody else has made, for those who connect from now on */
    (void)sockio_refuse_fds(fd);
    listener->spare = open_spare();
    if (listener->spare < 0 ||
        event_assign(&listener->event, net->base, fd, EV_READ | EV_ET | EV_PERSIST, on_connection, listener) < 0 ||
        event_assign(&listener->pause_event, net->base, -1, 0, on_pause_over, listener) < 0 ||
        event_add(&listener->event, NULL) < 0) {
        fd_close(listener->spare);
        free(listener);
        return -EMFILE;
    }
    *ret = listener;
    return 0;
}

struct listener *listener_free(struct listener *listener)
{
    if (!listener)
        return NULL;
    (void)event_del(&listener->event);
    (void)event_del(&listener->pause_event);
    fair_queue_remove(&listener->net->queue, &listener->flow, &listener->task);
    fair_flow_remove(&listener->net->queue, &listener->flow);
    if (listener->user)
        net_user_unref(listener->net, listener->user);
    fd_close(listener->left);
    fd_close(listener->spare);
    fd_close(listener->fd);
    free(listener);
    return NULL;
}
