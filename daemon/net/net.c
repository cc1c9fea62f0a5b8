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

/* How often the timer polls: at first, and when nobody could send anything for long. */
#define BUDGET_FIRST_US 2000
#define BUDGET_LAST_US  64000
/* How many connections it looks at, each time others. */
#define BUDGET_SLICE 64
/* And of those that wait. */
#define WAITING_SLICE 256
/*
 * How long a turn is: what a user who was not waiting yet waits for at most, beside a task. To ask the kernel who else
 * there is takes about 1 us, so where there are several users that is a part of what the broker can do at most, and
 * none of what it takes to answer a client that waits for its reply.
 */
#define TURN_NS       2000
#define TURN_ALONE_NS 50000
/* So many users that have left are remembered while others are served. */
#define USERS_LEFT_MAX 64

/* Processor time of the thread that asks. */
static uint64_t net_clock_used(void)
{
    struct timespec ts = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static const struct fair_clocks net_clocks = {.now = clock_now_ns, .used = net_clock_used};

static void net_arm_budget(struct net *net)
{
    if (!list_is_empty(&net->waiting))
        (void)event_add(&net->budget_event, &(struct timeval){.tv_usec = (suseconds_t)net->budget_us});
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

/* The first one is tried in any case: it looks at others of its user, which may have received something. */
static void net_try_waiting(struct net *net)
{
    struct list seen = LIST_INIT(seen);
    struct list *link;

    for (unsigned n = 0; n < WAITING_SLICE && (link = list_pop(&net->waiting)); n++) {
        struct connection *connection = container_of(link, struct connection, waiting_link);

        list_append(&seen, link);
        if (n && !connection_has_room(connection))
            continue;
        connection->writable = true;
        connection_schedule(connection);
    }
    list_splice(&net->waiting, &seen);
}

static void on_budget(evutil_socket_t fd, short events, void *userdata)
{
    struct net *net = userdata;

    net_check_in_flight(net);
    net_try_waiting(net);
    /* it is known of none how long it will wait: as long again as it has waited is soon enough */
    net->budget_us = net->budget_us < BUDGET_LAST_US ? 2 * net->budget_us : BUDGET_LAST_US;
    net_arm_budget(net);
}

void net_close_socket(struct net *net, uid_t uid, int fd, bool peeks)
{
    if (!peeks || sockio_is_spent(fd)) {
        fd_close(fd);
        return;
    }
    /* the close may take long, but the client need not wait for it */
    (void)shutdown(fd, SHUT_RDWR);
    net->handler->end(net->userdata, uid, fd);
}

static struct net_user *net_user_new(uid_t uid)
{
    struct net_user *user = calloc(1, sizeof(*user));

    if (!user)
        return NULL;
    user->uid = uid;
    user->share = SHARE_ALL;
    user->refs = 1;
    fair_flow_init(&user->flow);
    list_init(&user->unidentified);
    list_init(&user->unread_by);
    list_init(&user->in_left);
    return user;
}

int net_new(struct net **ret, struct event_base *base, const struct net_handler *handler, void *userdata,
            const struct net_limits *limits)
{
    struct net *net = calloc(1, sizeof(*net));

    if (!net)
        return -ENOMEM;
    net->buffer = malloc(MEMORYD_FRAME_MAX + 1);
    net->nobody = net_user_new((uid_t)-1);
    if (!net->buffer || !net->nobody) {
        free(net->nobody);
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
    list_init(&net->left);
    fair_queue_init(&net->queue, &net_clocks);
    if (event_assign(&net->budget_event, base, -1, 0, on_budget, net) < 0) {
        free(net->nobody);
        free(net->buffer);
        free(net);
        return -EINVAL;
    }
    *ret = net;
    return 0;
}

static void net_forget_users(struct net *net, unsigned keep)
{
    while (net->n_left > keep) {
        struct net_user *user = container_of(list_pop(&net->left), struct net_user, in_left);

        net->n_left--;
        fair_flow_remove(&net->queue, &user->flow);
        HASH_DEL(net->users, user);
        free(user);
    }
}

struct net *net_free(struct net *net)
{
    if (!net)
        return NULL;
    list_for_each_entry_safe(connection, &net->connections, struct connection, in_connections)
        connection_close(connection, LOG_LEVEL_DEBUG, "the broker is shutting down");
    while (fair_queue_run(&net->queue, UINT64_MAX))
        ;
    net_forget_users(net, 0);
    (void)event_del(&net->budget_event);
    free(net->nobody);
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
    bool more = fair_queue_run(&net->queue, HASH_COUNT(net->users) > 1 ? TURN_NS : TURN_ALONE_NS);

    net_forget_users(net, more ? USERS_LEFT_MAX : 0);
    return more;
}

static void net_task_turn(struct fair_task *fair)
{
    struct user_task *task = container_of(fair, struct user_task, task);
    struct net *net = task->net;
    struct net_user *user = steal_ptr(&task->user);

    task->run(task);
    net_user_unref(net, user);
}

static void net_task_queue(struct user_task *task, struct net *net, struct net_user *user)
{
    task->net = net;
    task->user = user;
    fair_task_init(&task->task, net_task_turn);
    fair_queue_add(&net->queue, &user->flow, &task->task);
}

void net_task_submit(struct user_task *task, struct net *net, uid_t uid)
{
    struct net_user *user = net_user_get(net, uid);

    if (user)
        net_task_queue(task, net, user);
    else
        net_task_submit_own(task, net);
}

void net_task_submit_own(struct user_task *task, struct net *net)
{
    if (task->user)
        return;
    net->nobody->refs++;
    net_task_queue(task, net, net->nobody);
}

void net_task_cancel(struct user_task *task)
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
    if (event_pending(&net->budget_event, EV_TIMEOUT, NULL))
        return;
    net->budget_us = BUDGET_FIRST_US;
    net_arm_budget(net);
}

void net_budget_helped(struct net *net)
{
    net->budget_us = BUDGET_FIRST_US;
}

struct net_user *net_user_get(struct net *net, uid_t uid)
{
    struct net_user *user;

    HASH_FIND(hh, net->users, &uid, sizeof(uid), user);
    if (user) {
        if (!user->refs++) {
            list_remove(&user->in_left);
            net->n_left--;
        }
        return user;
    }
    user = net_user_new(uid);
    if (!user)
        return NULL;
    HASH_ADD(hh, net->users, uid, sizeof(user->uid), user);
    if (!user->hh.tbl) {
        free(user);
        return NULL;
    }
    return user;
}

struct net_user *net_user_unref(struct net *net, struct net_user *user)
{
    if (--user->refs)
        return NULL;
    list_append(&net->left, &user->in_left);
    net->n_left++;
    return NULL;
}
