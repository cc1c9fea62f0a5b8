/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves metrics over HTTP on a socket that somebody else has made: GET and HEAD of /metrics, and nothing else.
 *
 * libevent parses; what a client may cost is bounded here. There are few connections at a time, each with one request
 * of a bounded size and a bounded time until its reply is read. A page is written in slices, each in a turn of the user
 * who asks (work/turn.h), so that who scrapes all the time takes what any user takes who always asks for something.
 *
 * On a Unix socket it is the kernel that says who asks, and administrators see what each user has. On TCP it could be
 * anybody: there are sums only, and a request must name a host that no page of another site can have (host.h).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "work/turn.h"

struct broker_figures;
struct event_base;
struct observe;

struct observe_host {
    void *userdata;
    /* The figures of now. */
    void (*figures)(void *userdata, struct broker_figures *ret);
    /* Runs the task in a turn of this user, or if that is (uid_t)-1 of the broker itself. */
    void (*take_turn)(void *userdata, struct user_task *task, uid_t uid);
    bool (*is_administrator)(void *userdata, uid_t uid);
};

#define OBSERVE_CONNECTIONS_MAX 8
/* Of one connection, from when it is accepted until it is closed. */
#define OBSERVE_TIME_MS 10000

/* On a listening stream socket, which is taken on success; the host is borrowed. 0 or a negative errno. */
int observe_new(struct observe **ret, struct event_base *base, int fd, const struct observe_host *host);
/* For tests: nothing is being served. */
struct observe *observe_free(struct observe *observe);
