/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shared state, and what happens between turns of the loop: marked connections are freed, and packets that wait for
 * descriptors in flight are tried again. The kernel does not notify when a client has received its descriptors, so a
 * timer polls, but only while a packet waits.
 */

#include "net/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/share.h"
#include "proto/limits.h"
#include "proto/sockio.h"

/* How often the timer polls. */
#define BUDGET_INTERVAL_US 2000

static void net_reap(struct net *net)
{
    struct list *link;

    while ((link = list_pop(&net->closing))) {
        struct connection *connection = container_of(link, struct connection, closing_link);
        int r = net->handler->closed(net->userdata, connection);

        connection_free(connection);
        if (r < 0)
            net_fail(net, r);
    }
}

static void on_reap(evutil_socket_t fd, short events, void *userdata)
{
    net_reap(userdata);
}

static void net_arm_budget(struct net *net)
{
    if (!list_is_empty(&net->waiting))
        (void)event_add(&net->budget_event, &(struct timeval){.tv_usec = BUDGET_INTERVAL_US});
}

/* Finds out who has received what was sent, and disconnects those who make others wait too long. */
static void on_budget(evutil_socket_t fd, short events, void *userdata)
{
    struct net *net = userdata;
    uint64_t now = clock_now_ns();
    struct list turn = LIST_INIT(turn);
    struct list *link;

    list_for_each_entry_safe(connection, &net->in_flight, struct connection, in_flight_link) {
        if (connection_settle(connection))
            continue;
        if (now - connection->fds_sent_at > net->limits.stall_ms * NSEC_PER_MSEC)
            connection_close(connection, LOG_LEVEL_WARNING,
                             "disconnected: it did not receive the descriptors sent to it, and others wait");
    }
    list_splice(&turn, &net->waiting);
    while ((link = list_pop(&turn)))
        connection_flush(container_of(link, struct connection, waiting_link));
    net_arm_budget(net);
}

void net_close_socket(struct closer *closer, int fd)
{
    if (sockio_is_spent(fd)) {
        fd_close(fd);
        return;
    }
    /* the close may take long, but the client need not wait for it */
    (void)shutdown(fd, SHUT_RDWR);
    closer_close(closer, fd);
}

bool net_user_is_backlogged(const struct net *net, const struct net_user *user)
{
    return closer_pending(user->closer) > net->limits.unclosed_uid;
}

int net_new(struct net **ret, struct event_base *base, const struct net_handler *handler, void *userdata,
            const struct net_limits *limits)
{
    struct net *net = calloc(1, sizeof(*net));

    if (!net)
        return -ENOMEM;
    net->buffer = malloc(MEMORYD_FRAME_MAX + 1);
    if (!net->buffer || closers_new(&net->closers, limits->descriptors) < 0) {
        free(net->buffer);
        free(net);
        return -ENOMEM;
    }
    net->base = base;
    net->handler = handler;
    net->userdata = userdata;
    net->limits = *limits;
    list_init(&net->connections);
    list_init(&net->in_flight);
    list_init(&net->waiting);
    list_init(&net->closing);
    if (event_assign(&net->reap_event, base, -1, 0, on_reap, net) < 0 ||
        event_assign(&net->budget_event, base, -1, 0, on_budget, net) < 0) {
        closers_free(net->closers);
        free(net->buffer);
        free(net);
        return -EINVAL;
    }
    *ret = net;
    return 0;
}

struct net *net_free(struct net *net)
{
    if (!net)
        return NULL;
    list_for_each_entry_safe(connection, &net->connections, struct connection, in_connections)
        connection_close(connection, LOG_LEVEL_DEBUG, "the broker is shutting down");
    net_reap(net);
    (void)event_del(&net->reap_event);
    (void)event_del(&net->budget_event);
    closers_free(net->closers);
    free(net->buffer);
    free(net);
    return NULL;
}

void net_set_limits(struct net *net, const struct net_limits *limits)
{
    net->limits = *limits;
}

void net_fail(struct net *net, int error)
{
    if (!net->error)
        net->error = error;
    (void)event_base_loopbreak(net->base);
}

void net_wait_for_budget(struct net *net, struct connection *connection)
{
    if (!list_is_linked(&connection->waiting_link))
        list_append(&net->waiting, &connection->waiting_link);
    if (!event_pending(&net->budget_event, EV_TIMEOUT, NULL))
        net_arm_budget(net);
}

struct net_user *net_user_get(struct net *net, uid_t uid)
{
    struct net_user *user;

    HASH_FIND(hh, net->users, &uid, sizeof(uid), user);
    if (user)
        return user;
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->uid = uid;
    user->share = SHARE_ALL;
    user->closer = closers_get(net->closers, uid);
    HASH_ADD(hh, net->users, uid, sizeof(user->uid), user);
    if (!user->hh.tbl) {
        closer_unref(user->closer);
        free(user);
        return NULL;
    }
    return user;
}

void net_user_drop(struct net *net, struct net_user *user)
{
    if (user->connections)
        return;
    HASH_DEL(net->users, user);
    closer_unref(user->closer);
    free(user);
}
