/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See observe.h.
 *
 * libevent 2.1 neither bounds the connections of a server nor tells when one ends. So a reference to each is kept
 * here, and while there are any they are looked at again and again: one that libevent has done with has no callbacks
 * any more. A request outlives its connection where that ends first: libevent frees it when it is answered.
 */
#include "observe/observe.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "observe/exposition.h"
#include "observe/host.h"
#include "proto/sockio.h"
#include "sys/peer.h"

#define HEADERS_MAX 8192
/* How often connections are looked at. */
#define LOOK_MS          20
#define EVERY_METHOD     0xffff
#define STATUS_FORBIDDEN 403
/* A page has a few dozen kilobytes, and a hundred bytes more for each user. */
#define PAGE_MAX (1 << 20)

struct connection {
    struct bufferevent *bufferevent; /* a reference; NULL: there is none */
    uint64_t deadline;
};

struct observe {
    struct event_base *base;
    const struct observe_host *host;
    struct evhttp *http;
    struct evconnlistener *listener;
    struct event look_event;
    bool local; /* a Unix socket */
    struct connection connections[OBSERVE_CONNECTIONS_MAX];
    unsigned n_connections;
    unsigned n_scrapes;
};

/* A page that is being written. */
struct scrape {
    struct user_task task;
    struct observe *observe;
    struct evhttp_request *request;
    struct evbuffer *page;
    struct exposition exposition;
    uid_t uid;
};

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void connection_forget(struct observe *observe, struct connection *connection)
{
    (void)bufferevent_decref(connection->bufferevent);
    connection->bufferevent = NULL;
    observe->n_connections--;
}

static void connection_look(struct observe *observe, struct connection *connection, uint64_t now)
{
    bufferevent_event_cb callback;

    bufferevent_getcb(connection->bufferevent, NULL, NULL, &callback, NULL);
    if (!callback)
        connection_forget(observe, connection);
    else if (deadline_passed(connection->deadline, now))
        /* libevent sees the end, and frees it */
        (void)shutdown(bufferevent_getfd(connection->bufferevent), SHUT_RDWR);
}

static void on_look(evutil_socket_t fd, short events, void *userdata)
{
    static const struct timeval again = {.tv_usec = LOOK_MS * 1000};
    struct observe *observe = userdata;
    uint64_t now = clock_now_ns();

    for (unsigned i = 0; i < OBSERVE_CONNECTIONS_MAX; i++)
        if (observe->connections[i].bufferevent)
            connection_look(observe, &observe->connections[i], now);
    if (observe->n_connections < OBSERVE_CONNECTIONS_MAX)
        (void)evconnlistener_enable(observe->listener);
    if (observe->n_connections)
        (void)event_add(&observe->look_event, &again);
}

/* A connection was accepted. Where there is no memory for it, libevent tries it itself. */
static struct bufferevent *on_accepted(struct event_base *base, void *userdata)
{
    static const struct timeval soon = {.tv_usec = LOOK_MS * 1000};
    struct observe *observe = userdata;
    struct connection *connection = observe->connections;
    struct bufferevent *bufferevent = NULL;

    while (connection < observe->connections + OBSERVE_CONNECTIONS_MAX && connection->bufferevent)
        connection++;
    if (connection < observe->connections + OBSERVE_CONNECTIONS_MAX)
        bufferevent = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!bufferevent)
        return NULL;
    bufferevent_incref(bufferevent);
    *connection = (struct connection){bufferevent, deadline_after_ms(OBSERVE_TIME_MS)};
    if (++observe->n_connections == OBSERVE_CONNECTIONS_MAX)
        (void)evconnlistener_disable(observe->listener);
    if (!event_pending(&observe->look_event, EV_TIMEOUT, NULL))
        (void)event_add(&observe->look_event, &soon);
    return bufferevent;
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

static void set_header(struct evhttp_request *request, const char *name, const char *value)
{
    (void)evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/* One request for each connection. */
static void reply(struct evhttp_request *request, int status, const char *reason, const char *type,
                  struct evbuffer *body)
{
    bool is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
    char length[24];

    (void)snprintf(length, sizeof(length), "%zu", evbuffer_get_length(body));
    set_header(request, "Content-Type", type);
    set_header(request, "Content-Length", length);
    set_header(request, "X-Content-Type-Options", "nosniff");
    set_header(request, "Connection", "close");
    evhttp_send_reply(request, status, reason, is_head ? NULL : body);
}

static void reply_error(struct evhttp_request *request, int status, const char *reason, const char *sentence)
{
    struct evbuffer *body = evbuffer_new();

    if (!body || evbuffer_add_printf(body, "%s\n", sentence) < 0)
        evhttp_send_error(request, HTTP_INTERNAL, NULL);
    else
        reply(request, status, reason, "text/plain; charset=utf-8", body);
    if (body)
        evbuffer_free(body);
}

static void scrape_end(struct scrape *scrape)
{
    scrape->observe->n_scrapes--;
    evbuffer_free(scrape->page);
    free(scrape);
}

static void scrape_turn(struct user_task *task)
{
    struct scrape *scrape = container_of(task, struct scrape, task);
    const struct observe_host *host = scrape->observe->host;
    uint64_t begin = slice_begin();
    int r;

    do
        r = exposition_next(&scrape->exposition, scrape->page);
    while (r > 0 && !slice_is_over(begin));
    if (r > 0 && evbuffer_get_length(scrape->page) <= PAGE_MAX) {
        host->take_turn(host->userdata, task, scrape->uid);
        return;
    }
    if (r)
        reply_error(scrape->request, HTTP_SERVUNAVAIL, "Service Unavailable", "there is no memory for the page");
    else
        reply(scrape->request, HTTP_OK, "OK", scrape->exposition.openmetrics ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT,
              scrape->page);
    scrape_end(scrape);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Who is at the other end of a Unix socket; (uid_t)-1: that is not known. */
static uid_t uid_of(struct evhttp_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *bufferevent = connection ? evhttp_connection_get_bufferevent(connection) : NULL;
    struct peer peer = PEER_NULL;
    uid_t uid;

    if (!bufferevent || peer_init_user(&peer, bufferevent_getfd(bufferevent)))
        return (uid_t)-1;
    uid = peer.uid;
    peer_deinit(&peer);
    return uid;
}

static void scrape_begin(struct observe *observe, struct evhttp_request *request)
{
    const struct observe_host *host = observe->host;
    const char *accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
    struct scrape *scrape = observe->n_scrapes < OBSERVE_CONNECTIONS_MAX ? calloc(1, sizeof(*scrape)) : NULL;

    if (scrape)
        scrape->page = evbuffer_new();
    if (!scrape || !scrape->page) {
        free(scrape);
        reply_error(request, HTTP_SERVUNAVAIL, "Service Unavailable", "too many pages are being written");
        return;
    }
    observe->n_scrapes++;
    scrape->observe = observe;
    scrape->request = request;
    scrape->task.run = scrape_turn;
    scrape->uid = observe->local ? uid_of(request) : (uid_t)-1;
    scrape->exposition.openmetrics = exposition_is_openmetrics(accept);
    scrape->exposition.users = scrape->uid != (uid_t)-1 && host->is_administrator(host->userdata, scrape->uid);
    host->figures(host->userdata, &scrape->exposition.figures);
    host->take_turn(host->userdata, &scrape->task, scrape->uid);
}

static void on_request(struct evhttp_request *request, void *userdata)
{
    struct observe *observe = userdata;
    enum evhttp_cmd_type method = evhttp_request_get_command(request);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = evhttp_uri_get_path(uri);
    const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");

    /* a request to a proxy names its host in the first line */
    if (!observe->local && (evhttp_uri_get_host(uri) || !host_is_ours(host))) {
        reply_error(request, STATUS_FORBIDDEN, "Forbidden",
                    "name this machine by its address, as localhost or by its host name");
    } else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        set_header(request, "Allow", "GET, HEAD");
        reply_error(request, HTTP_BADMETHOD, "Method Not Allowed", "only GET and HEAD");
    } else if (!path || strcmp(path, "/metrics") != 0) {
        reply_error(request, HTTP_NOTFOUND, "Not Found", "only /metrics is here");
    } else {
        scrape_begin(observe, request);
    }
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static bool is_local(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t size = sizeof(domain);

    return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX;
}

int observe_new(struct observe **ret, struct event_base *base, int fd, const struct observe_host *host)
{
    struct observe *observe = calloc(1, sizeof(*observe));

    if (!observe)
        return -ENOMEM;
    observe->base = base;
    observe->host = host;
    observe->local = is_local(fd);
    /* to close one of a hostile user may hang; where the kernel is too old, only the socket's mode helps */
    if (observe->local)
        (void)sockio_refuse_fds(fd);
    observe->http = evhttp_new(base);
    if (observe->http)
        observe->listener = evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!observe->listener || !evhttp_bind_listener(observe->http, observe->listener)) {
        if (observe->http)
            evhttp_free(observe->http);
        free(observe);
        return -ENOMEM;
    }
    (void)event_assign(&observe->look_event, base, -1, 0, on_look, observe);
    evhttp_set_bevcb(observe->http, on_accepted, observe);
    evhttp_set_gencb(observe->http, on_request, observe);
    evhttp_set_allowed_methods(observe->http, EVERY_METHOD);
    evhttp_set_max_headers_size(observe->http, HEADERS_MAX);
    evhttp_set_max_body_size(observe->http, 0);
    evhttp_set_timeout(observe->http, OBSERVE_TIME_MS / 1000);
    *ret = observe;
    return 0;
}

struct observe *observe_free(struct observe *observe)
{
    if (!observe)
        return NULL;
    evhttp_free(observe->http);
    (void)event_del(&observe->look_event);
    for (unsigned i = 0; i < OBSERVE_CONNECTIONS_MAX; i++)
        if (observe->connections[i].bufferevent)
            connection_forget(observe, &observe->connections[i]);
    free(observe);
    return NULL;
}
