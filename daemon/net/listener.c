/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel keeps those who connect in one queue, whoever they are. So one user's storm makes others wait behind it,
 * for as long as it takes to accept or refuse all that are in the queue. What is done here for each is therefore what
 * it takes to know whose limits apply, and no more; the rest of a connection's beginning is done in a turn of its user
 * (connection.c).
 *
 * One wake-up accepts for a bounded time: a storm gets a turn like any other work.
 */

#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/problem.h"
#include "base/share.h"
#include "net/internal.h"

/* In one wake-up. */
#define ACCEPT_NS     50000
#define TURN_AWAY_MAX 16

struct listener {
    struct net *net;
    int fd;
    int spare;
    unsigned pauses; /* in a row */
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
            net_close_socket(closers_nobody(listener->net->closers), fd);
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

/* How many connections the user may have of those that the others leave. */
static uint64_t connections_of(const struct net *net, const struct net_user *user)
{
    return share_of(net->limits.connections, net->n_connections - user->connections, user->share);
}

/* Why HELLO will refuse this client, or NULL. An administrator may be let in all the same: see HELLO. */
static const char *why_crowded(const struct net *net, int fd, struct net_user *user)
{
    uint64_t most = connections_of(net, user);

    if (net->n_connections >= net->limits.connections)
        return "the broker has as many connections as it may have; try again later, or raise connections in [limits]";
    if (user->share != SHARE_ALL && user->connections >= most) {
        (void)snprintf(user->why_crowded, sizeof(user->why_crowded),
                       "user %u has %u connections, but may have %llu, %u%% of what the others leave; close some, or "
                       "configure [user %u] share = 100%%",
                       (unsigned)user->uid, user->connections, (unsigned long long)most, user->share,
                       (unsigned)user->uid);
        return user->why_crowded;
    }
    if (is_among_last(net, fd, net->limits.last_descriptors))
        return "the broker has hardly any descriptors left; try again later, or raise its LimitNOFILE";
    return NULL;
}

/* Takes the socket if it is let in. */
static void listener_admit(struct listener *listener, int *fd, struct peer *peer, struct net_user *user)
{
    struct net *net = listener->net;
    struct log_client who = {.uid = peer->uid, .pid = peer->pid};
    bool administrator = is_administrator(net, peer->uid);
    unsigned extra = administrator ? net->limits.administrators : 0;
    const char *crowded = NULL;
    struct problem why = PROBLEM_NULL;
    struct connection *connection = NULL;

    if (net->n_connections >= net->limits.connections + net->limits.crowded + extra)
        problem_set(&why, "there are %u connections, and connections in [limits] allows no more", net->n_connections);
    else if (!administrator && is_among_last(net, *fd, net->limits.last_descriptors / 2))
        problem_set(&why, "hardly any descriptor is left (LimitNOFILE=)");
    else if (user->connections >= user->connections_most + (uint64_t)extra)
        problem_set(&why, "its user has %u connections, and uid_sessions in [limits] allows no more",
                    user->connections);
    else if (user->connections >= connections_of(net, user) + net->limits.crowded + extra)
        problem_set(&why, "its user has %u connections, its share of what the others leave", user->connections);
    else if (net_user_is_backlogged(net, user))
        problem_set(&why, "%u descriptors that its user sent are not closed yet", closer_pending(user->closer));
    else {
        crowded = why_crowded(net, *fd, user);
        connection = connection_new(net, *fd, peer, user);
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
    int r = peer_init_user(&peer, fd);

    if (r)
        log_client(LOG_LEVEL_INFO, nobody, "turned away: its process cannot be identified (%d)", r);
    else if (!(user = listener_user(listener, &peer)))
        log_client(LOG_LEVEL_WARNING, nobody, "turned away: no memory");
    else
        listener_admit(listener, &fd, &peer, user);
    if (fd >= 0)
        net_close_socket(user ? user->closer : closers_nobody(net->closers), fd);
    if (user)
        net_user_unref(net, user);
    peer_deinit(&peer);
}

/* Each client that is turned away with packets of its own is one more descriptor to close. */
static bool listener_is_backlogged(const struct net *net)
{
    return closers_pending(net->closers) > net->limits.unclosed_all;
}

/* False: nobody is waiting, or there is no room. */
static bool accept_one(struct listener *listener)
{
    int fd;

    if (listener_is_backlogged(listener->net)) {
        pause_accepting(listener, "too many descriptors that clients sent are not closed yet");
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

static void on_connection(evutil_socket_t fd, short events, void *userdata)
{
    struct listener *listener = userdata;
    uint64_t end = deadline_after_ns(ACCEPT_NS);

    if (listener->spare < 0)
        listener->spare = open_spare();
    while (accept_one(listener) && !deadline_passed(end, clock_now_ns()))
        ;
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
    listener->spare = open_spare();
    if (listener->spare < 0 ||
        event_assign(&listener->event, net->base, fd, EV_READ | EV_PERSIST, on_connection, listener) < 0 ||
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
    fd_close(listener->spare);
    fd_close(listener->fd);
    free(listener);
    return NULL;
}
