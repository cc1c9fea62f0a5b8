/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shared state, and packets that wait for descriptors in flight. The kernel does not notify when a client has received
 * its descriptors, so a timer polls, but only while a packet waits.
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
/* How many connections it looks at, each time others. */
#define BUDGET_SLICE 64
/*
 * How long a turn is: what a user who was not waiting yet waits for at most, beside a task. To ask the kernel who else
 * there is takes about 1 us, so where there are several users that is a part of what the broker can do at most, and
 * none of what it takes to answer a client that waits for its reply.
 */
#define TURN_NS       5000
#define TURN_ALONE_NS 50000

static void net_arm_budget(struct net *net)
{
    if (!list_is_empty(&net->waiting))
        (void)event_add(&net->budget_event, &(struct timeval){.tv_usec = BUDGET_INTERVAL_US});
}

/* Finds out who has received what was sent, and disconnects those who make others wait too long. */
static void net_check_in_flight(struct net *net)
{
    uint64_t now = clock_now_ns();
    struct list seen = LIST_INIT(seen);
    struct list *link;

    for (unsigned n = 0; n < BUDGET_SLICE && (link = list_pop(&net->in_flight)); n++) {
        struct connection *connection = container_of(link, struct connection, in_flight_link);

        list_append(&seen, link);
        if (!connection_settle(connection) && now - connection->fds_sent_at > net->limits.stall_ms * NSEC_PER_MSEC)
            connection_close(connection, LOG_LEVEL_WARNING,
                             "disconnected: it did not receive the descriptors sent to it, and others wait");
    }
    list_splice(&net->in_flight, &seen);
}

static void on_budget(evutil_socket_t fd, short events, void *userdata)
{
    struct net *net = userdata;

    net_check_in_flight(net);
    list_for_each_entry(connection, &net->waiting, struct connection, waiting_link) {
        connection->writable = true;
        connection_schedule(connection);
    }
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
    fair_queue_init(&net->queue, clock_now_ns);
    if (event_assign(&net->budget_event, base, -1, 0, on_budget, net) < 0) {
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
    while (fair_queue_run(&net->queue, UINT64_MAX))
        ;
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

bool net_turn(struct net *net)
{
    return fair_queue_run(&net->queue, HASH_COUNT(net->users) > 1 ? TURN_NS : TURN_ALONE_NS);
}

static void net_task_turn(struct fair_task *fair)
{
    struct net_task *task = container_of(fair, struct net_task, task);
    struct net *net = task->net;
    struct net_user *user = steal_ptr(&task->user);

    task->run(task);
    net_user_unref(net, user);
}

void net_task_submit(struct net_task *task, struct net *net, uid_t uid)
{
    task->net = net;
    task->user = net_user_get(net, uid);
    if (!task->user) {
        task->run(task);
        return;
    }
    fair_task_init(&task->task, net_task_turn);
    fair_queue_add(&net->queue, &task->user->flow, &task->task);
}

void net_task_cancel(struct net_task *task)
{
    if (!task->user)
        return;
    fair_queue_remove(&task->net->queue, &task->user->flow, &task->task);
    task->user = net_user_unref(task->net, task->user);
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
    if (user) {
        user->refs++;
        return user;
    }
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->uid = uid;
    user->share = SHARE_ALL;
    user->refs = 1;
    fair_flow_init(&user->flow);
    user->closer = closers_get(net->closers, uid);
    HASH_ADD(hh, net->users, uid, sizeof(user->uid), user);
    if (!user->hh.tbl) {
        closer_unref(user->closer);
        free(user);
        return NULL;
    }
    return user;
}

struct net_user *net_user_unref(struct net *net, struct net_user *user)
{
    if (--user->refs)
        return NULL;
    fair_flow_remove(&net->queue, &user->flow);
    HASH_DEL(net->users, user);
    closer_unref(user->closer);
    free(user);
    return NULL;
}
