/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served to whom over HTTP, and what is refused. The client is in the same thread: it sends, and the loop runs
 * until it is answered.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/broker.h"
#include "history/counters.h"
#include "mem/pool.h"
#include "observe/observe.h"
#include "sys/numa.h"
#include "tests/support/test.h"

#define ANSWER_MAX (1 << 20)

struct scene {
    struct event_base *base;
    struct topology topology;
    struct pools *pools;
    struct accounts accounts;
    struct account *user;
    struct counters *counters;
    bool administrator;
    uid_t asked; /* whose turns they are */
    struct observe_host host;
    struct observe *observe;
    struct user_task *waiting[2 * OBSERVE_CONNECTIONS_MAX];
    unsigned n_waiting, n_turns;
    bool stands; /* nobody has a turn */
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_un un;
    } address;
    socklen_t address_size;
};

static void host_figures(void *userdata, struct broker_figures *ret)
{
    struct scene *scene = userdata;

    *ret = (struct broker_figures){
        .topology = &scene->topology,
        .pools = scene->pools,
        .accounts = &scene->accounts,
        .counters = scene->counters->file,
    };
}

static void host_take_turn(void *userdata, struct user_task *task, uid_t uid)
{
    struct scene *scene = userdata;

    assert_true(scene->n_waiting < 2 * OBSERVE_CONNECTIONS_MAX);
    scene->asked = uid;
    scene->waiting[scene->n_waiting++] = task;
}

static bool host_is_administrator(void *userdata, uid_t uid)
{
    return ((struct scene *)userdata)->administrator;
}

static void begin(struct scene *scene, int family)
{
    const struct pools_config pools = {.capacity = {.bytes = 1 << 30}};
    struct problem problem = PROBLEM_NULL;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *scene = (struct scene){.address_size = sizeof(scene->address)};
    scene->base = event_base_new();
    assert_true(scene->base && fd >= 0);
    assert_int_equal(topology_load(&scene->topology, 0), 0);
    assert_int_equal(pools_new(&scene->pools, &scene->topology, &pools, &problem), 0);
    accounts_init(&scene->accounts, NULL);
    assert_int_equal(account_of_user(&scene->accounts, 4711, &scene->user, &problem), 0);
    assert_int_equal(counters_new(&scene->counters), 0);
    scene->host = (struct observe_host){scene, host_figures, host_take_turn, host_is_administrator};
    scene->address.any.sa_family = (sa_family_t)family;
    /* the kernel chooses port or name */
    if (family == AF_INET)
        scene->address.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, &scene->address.any, family == AF_INET ? sizeof(scene->address.in) : sizeof(sa_family_t)),
                     0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, &scene->address.any, &scene->address_size), 0);
    assert_int_equal(observe_new(&scene->observe, scene->base, fd, &scene->host), 0);
}

static void end(struct scene *scene)
{
    observe_free(scene->observe);
    event_base_loop(scene->base, EVLOOP_NONBLOCK);
    event_base_free(scene->base);
    counters_free(scene->counters);
    account_unref(scene->user);
    accounts_deinit(&scene->accounts);
    pools_free(scene->pools);
}

static void turn(struct scene *scene)
{
    event_base_loop(scene->base, EVLOOP_NONBLOCK);
    if (!scene->n_waiting || scene->stands)
        return;
    struct user_task *task = scene->waiting[0];

    memmove(scene->waiting, scene->waiting + 1, --scene->n_waiting * sizeof(task));
    scene->n_turns++;
    task->run(task);
}

static int client(const struct scene *scene, const char *request)
{
    int fd = socket(scene->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &scene->address.any, scene->address_size), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* All until the connection is closed, which is what ends it. To be freed. */
static char *answer(struct scene *scene, int fd)
{
    uint64_t deadline = deadline_after_ms(60000);
    char *text = calloc(1, ANSWER_MAX);
    size_t size = 0;
    ssize_t n;

    assert_non_null(text);
    do {
        turn(scene);
        if (!scene->n_waiting)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1);
        n = recv(fd, text + size, ANSWER_MAX - 1 - size, 0);
        size += n > 0 ? (size_t)n : 0;
        assert_false(deadline_passed(deadline, clock_now_ns()));
    } while (n > 0 || (n < 0 && errno == EAGAIN));
    assert_int_equal(close(fd), 0);
    return text;
}

static char *ask(struct scene *scene, const char *request)
{
    return answer(scene, client(scene, request));
}

static void assert_status(const char *text, const char *status)
{
    if (strncmp(text, "HTTP/1.", 7) != 0 || strncmp(text + 9, status, strlen(status)) != 0)
        fail_msg("%s instead of: %.80s", text, status);
}

static void assert_refused(struct scene *scene, const char *request, const char *status)
{
    _cleanup_free_ char *text = ask(scene, request);

    assert_status(text, status);
    assert_null(strstr(text, "memoryd_build"));
}

#define HOST "Host: 127.0.0.1\r\n"

static void a_page_is_whole_and_the_connection_closes(void **state)
{
    _cleanup_free_ char *text = NULL, *head = NULL;
    struct scene scene;
    const char *body;
    char length[64];

    begin(&scene, AF_INET);
    text = ask(&scene, "GET /metrics HTTP/1.1\r\n" HOST "Accept: application/openmetrics-text\r\n\r\n");
    assert_status(text, "200");
    assert_non_null(strstr(text, "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
    body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    body += 4;
    assert_string_equal(body + strlen(body) - 6, "# EOF\n");
    (void)snprintf(length, sizeof(length), "\r\nContent-Length: %zu\r\n", strlen(body));
    assert_non_null(strstr(text, length));
    assert_int_equal(scene.asked, (uid_t)-1);

    head = ask(&scene, "HEAD /metrics HTTP/1.1\r\n" HOST "Accept: application/openmetrics-text\r\n\r\n");
    assert_status(head, "200");
    assert_non_null(strstr(head, length));
    assert_string_equal(strstr(head, "\r\n\r\n"), "\r\n\r\n");
    end(&scene);
}

static void nothing_else_is_served(void **state)
{
    struct scene scene;

    begin(&scene, AF_INET);
    assert_refused(&scene, "GET / HTTP/1.1\r\n" HOST "\r\n", "404");
    assert_refused(&scene, "GET /metrics/ HTTP/1.1\r\n" HOST "\r\n", "404");
    assert_refused(&scene, "GET /%6detrics HTTP/1.1\r\n" HOST "\r\n", "404");
    assert_refused(&scene, "DELETE /metrics HTTP/1.1\r\n" HOST "\r\n", "405");
    assert_refused(&scene, "OPTIONS /metrics HTTP/1.1\r\n" HOST "\r\n", "405");
    assert_refused(&scene, "POST /metrics HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "405");
    assert_refused(&scene, "POST /metrics HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", "4");
    end(&scene);
}

static void a_page_of_another_site_gets_nothing(void **state)
{
    struct scene scene;

    begin(&scene, AF_INET);
    assert_refused(&scene, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403");
    assert_refused(&scene, "GET /metrics HTTP/1.1\r\nHost: evil.example:9753\r\n\r\n", "403");
    assert_refused(&scene, "GET http://evil.example/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "403");
    assert_refused(&scene, "GET /metrics HTTP/1.1\r\n\r\n", "403");
    assert_refused(&scene, "GET /metrics HTTP/1.0\r\n\r\n", "403");
    end(&scene);
}

static void only_administrators_see_users(void **state)
{
    _cleanup_free_ char *first = NULL, *second = NULL, *third = NULL;
    struct scene scene;

    begin(&scene, AF_UNIX);
    /* nobody can point a browser to it */
    first = ask(&scene, "GET /metrics HTTP/1.1\r\nHost: whatever\r\n\r\n");
    assert_status(first, "200");
    assert_null(strstr(first, "4711"));
    assert_int_equal(scene.asked, getuid());
    scene.administrator = true;
    second = ask(&scene, "GET /metrics HTTP/1.1\r\nHost: whatever\r\n\r\n");
    assert_non_null(strstr(second, "memoryd_user_bytes{uid=\"4711\"} 0\n"));
    end(&scene);

    begin(&scene, AF_INET);
    scene.administrator = true;
    third = ask(&scene, "GET /metrics HTTP/1.1\r\n" HOST "\r\n");
    assert_status(third, "200");
    assert_null(strstr(third, "4711"));
    end(&scene);
}

/* Whatever the client sends: the connection ends, and the next one is served. */
static void garbage_ends_its_connection(void **state)
{
    static const char *const garbage[] = {
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET /metrics\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost\r\n\r\n",
        "BREW /metrics HTTP/1.1\r\n" HOST "\r\n",
        "GET http://[/metrics HTTP/1.1\r\n" HOST "\r\n",
        "POST /metrics HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n",
        "POST /metrics HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n",
        "POST /metrics HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    };
    struct scene scene;

    begin(&scene, AF_INET);
    for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
        int fd = client(&scene, garbage[i]);
        _cleanup_free_ char *text = NULL, *good = NULL;

        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        text = answer(&scene, fd);
        assert_null(strstr(text, "memoryd_build"));
        good = ask(&scene, "GET /metrics HTTP/1.1\r\n" HOST "\r\n");
        assert_status(good, "200");
    }
    end(&scene);
}

static void a_request_has_a_bounded_size(void **state)
{
    _cleanup_free_ char *request = calloc(1, 40000), *text = NULL;
    struct scene scene;

    begin(&scene, AF_INET);
    assert_non_null(request);
    (void)snprintf(request, 40000, "GET /metrics HTTP/1.1\r\n" HOST "X: ");
    memset(request + strlen(request), 'x', 30000);
    text = ask(&scene, request);
    assert_null(strstr(text, "memoryd_build"));
    end(&scene);
}

/* The others wait in the socket's queue, and are served when there is room. */
static void there_are_few_connections_at_a_time(void **state)
{
    int fds[3 * OBSERVE_CONNECTIONS_MAX];
    struct scene scene;

    begin(&scene, AF_UNIX);
    scene.stands = true;
    for (unsigned i = 0; i < 3 * OBSERVE_CONNECTIONS_MAX; i++)
        fds[i] = client(&scene, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    for (unsigned i = 0; i < 50; i++)
        turn(&scene);
    assert_int_equal(scene.n_waiting, OBSERVE_CONNECTIONS_MAX);
    scene.stands = false;
    for (unsigned i = 0; i < 3 * OBSERVE_CONNECTIONS_MAX; i++) {
        _cleanup_free_ char *text = answer(&scene, fds[i]);

        assert_status(text, "200");
    }
    end(&scene);
}

/* Its page is still being written. */
static void a_client_may_leave_at_any_time(void **state)
{
    _cleanup_free_ char *text = NULL;
    struct scene scene;

    begin(&scene, AF_UNIX);
    for (unsigned i = 0; i < 3 * OBSERVE_CONNECTIONS_MAX; i++) {
        int fd = client(&scene, i % 2 ? "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" : "GET /met");

        scene.stands = true;
        for (unsigned n = 0; n < i % 5; n++)
            turn(&scene);
        assert_int_equal(close(fd), 0);
        turn(&scene);
        scene.stands = false;
        for (unsigned n = 0; n < 200; n++)
            turn(&scene);
        assert_int_equal(scene.n_waiting, 0);
    }
    text = ask(&scene, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_status(text, "200");
    end(&scene);
}

/* Who says nothing makes room for others. */
static void a_connection_has_a_bounded_time(void **state)
{
    int fds[OBSERVE_CONNECTIONS_MAX];
    _cleanup_free_ char *text = NULL;
    struct scene scene;

    begin(&scene, AF_UNIX);
    for (unsigned i = 0; i < OBSERVE_CONNECTIONS_MAX; i++)
        fds[i] = client(&scene, "GET /metrics HTTP/1.1\r\nHos");
    text = ask(&scene, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_status(text, "200");
    for (unsigned i = 0; i < OBSERVE_CONNECTIONS_MAX; i++)
        free(answer(&scene, fds[i]));
    end(&scene);
}

/* Each slice is one turn. */
static void a_page_takes_several_turns(void **state)
{
    _cleanup_free_ char *text = NULL;
    struct scene scene;

    begin(&scene, AF_INET);
    for (uint16_t method = 0; method < COUNTERS_METHODS; method++)
        counters_reply(scene.counters, method, 1);
    text = ask(&scene, "GET /metrics HTTP/1.1\r\n" HOST "\r\n");
    assert_status(text, "200");
    assert_true(scene.n_turns > 1);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_whole_and_the_connection_closes),
        cmocka_unit_test(nothing_else_is_served),
        cmocka_unit_test(a_page_of_another_site_gets_nothing),
        cmocka_unit_test(only_administrators_see_users),
        cmocka_unit_test(garbage_ends_its_connection),
        cmocka_unit_test(a_request_has_a_bounded_size),
        cmocka_unit_test(there_are_few_connections_at_a_time),
        cmocka_unit_test(a_client_may_leave_at_any_time),
        cmocka_unit_test(a_connection_has_a_bounded_time),
        cmocka_unit_test(a_page_takes_several_turns),
    };

    /* as in the broker: a client may be gone */
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
