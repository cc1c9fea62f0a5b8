/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both forms of the page, line by line as their formats have it, and which of them a client gets.
 */
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/counters.h"
#include "mem/pool.h"
#include "observe/exposition.h"
#include "observe/host.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "sys/numa.h"
#include "tests/support/test.h"

struct scene {
    struct topology topology;
    struct pools *pools;
    struct accounts accounts;
    struct account *users[3];
    struct counters *counters;
};

static void begin(struct scene *scene)
{
    const struct pools_config pools = {.capacity = {.bytes = 1 << 30}};
    struct problem problem = PROBLEM_NULL;

    *scene = (struct scene){.pools = NULL};
    assert_int_equal(topology_load(&scene->topology, 2), 0);
    assert_int_equal(pools_new(&scene->pools, &scene->topology, &pools, &problem), 0);
    accounts_init(&scene->accounts, NULL);
    for (uid_t i = 0; i < 3; i++)
        assert_int_equal(account_of_user(&scene->accounts, i ? i + 999 : 0, &scene->users[i], &problem), 0);
    assert_int_equal(counters_new(&scene->counters), 0);
}

static void end(struct scene *scene)
{
    counters_free(scene->counters);
    for (unsigned i = 0; i < 3; i++)
        account_unref(scene->users[i]);
    accounts_deinit(&scene->accounts);
    pools_free(scene->pools);
}

/* To be freed. */
static char *page_of(const struct scene *scene, bool openmetrics, bool users)
{
    struct exposition exposition = {
        .figures = {.topology = &scene->topology,
                    .pools = scene->pools,
                    .accounts = &scene->accounts,
                    .counters = scene->counters->file,
                    .fds = 7},
        .openmetrics = openmetrics,
        .users = users,
    };
    struct evbuffer *out = evbuffer_new();
    size_t size;
    char *text;
    int r;

    assert_non_null(out);
    while ((r = exposition_next(&exposition, out)) == 1)
        ;
    assert_int_equal(r, 0);
    size = evbuffer_get_length(out);
    text = calloc(1, size + 1);
    assert_non_null(text);
    assert_int_equal(evbuffer_remove(out, text, size), size);
    evbuffer_free(out);
    return text;
}

static bool has(const char *page, const char *lines)
{
    for (const char *at = page; (at = strstr(at, lines)); at++)
        if (at == page || at[-1] == '\n')
            return true;
    return false;
}

static void openmetrics_has_all_that_it_wants(void **state)
{
    _cleanup_free_ char *page = NULL;
    struct scene scene;

    begin(&scene);
    counters_refusal(scene.counters, STATUS_POOL_FULL);
    counters_wait(scene.counters, 1042);
    page = page_of(&scene, true, false);
    assert_true(
        has(page,
            "# TYPE memoryd_build info\n# HELP memoryd_build The version that serves.\nmemoryd_build_info{version=\""));
    assert_true(has(page, "# TYPE memoryd_pool_capacity_bytes gauge\n# UNIT memoryd_pool_capacity_bytes bytes\n"
                          "# HELP memoryd_pool_capacity_bytes "));
    assert_true(has(page, "memoryd_pool_capacity_bytes{pool=\"node0-4k\",pages=\"base\"} 1073741824\n"));
    assert_true(has(page, "memoryd_node_capacity_bytes{node=\"1\"} 1073741824\n"));
    assert_true(has(page, "# TYPE memoryd_refusals counter\n# HELP memoryd_refusals "));
    assert_true(
        has(page, "memoryd_refusals_total{status=\"POOL_FULL\"} 1\nmemoryd_refusals_total{status=\"NO_MEMORY\"} 0\n"));
    assert_true(has(page, "memoryd_wait_seconds_total 1.042\n"));
    assert_true(has(page, "memoryd_open_fds 7\n"));
    assert_string_equal(page + strlen(page) - 6, "# EOF\n");
    assert_null(strstr(page, "uid="));
    end(&scene);
}

static void the_text_format_has_names_of_samples_and_no_end(void **state)
{
    _cleanup_free_ char *page = NULL;
    struct scene scene;

    begin(&scene);
    page = page_of(&scene, false, false);
    assert_true(has(page, "# TYPE memoryd_build_info gauge\n"));
    assert_true(has(page, "# TYPE memoryd_refusals_total counter\n# HELP memoryd_refusals_total "));
    assert_null(strstr(page, "# EOF"));
    assert_null(strstr(page, "# UNIT"));
    end(&scene);
}

static void a_histogram_is_cumulative(void **state)
{
    static const char wanted[] = "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"5e-06\"} 1\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"1e-05\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"2.5e-05\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"5e-05\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"0.0001\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"0.00025\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"0.001\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"0.005\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"0.025\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"0.1\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"1.0\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"10.0\"} 2\n"
                                 "memoryd_request_duration_seconds_bucket{method=\"alloc\",le=\"+Inf\"} 3\n"
                                 "memoryd_request_duration_seconds_count{method=\"alloc\"} 3\n"
                                 "memoryd_request_duration_seconds_sum{method=\"alloc\"} 11.000010000\n";
    _cleanup_free_ char *page = NULL;
    struct scene scene;

    begin(&scene);
    counters_reply(scene.counters, METHOD_ALLOC, 3000);
    counters_reply(scene.counters, METHOD_ALLOC, 7000);
    counters_reply(scene.counters, METHOD_ALLOC, 11000000000);
    page = page_of(&scene, true, false);
    assert_true(has(page, wanted));
    /* nobody has called it */
    assert_null(strstr(page, "method=\"ping\""));
    end(&scene);
}

static void users_are_for_administrators(void **state)
{
    _cleanup_free_ char *page = NULL;
    struct scene scene;

    begin(&scene);
    page = page_of(&scene, true, true);
    assert_true(has(page, "memoryd_user_bytes{uid=\"0\"} 0\nmemoryd_user_bytes{uid=\"1000\"} 0\n"
                          "memoryd_user_bytes{uid=\"1001\"} 0\n# TYPE memoryd_user_buffers gauge\n"));
    end(&scene);
}

/* OpenMetrics wants all of a family together, and each name once. */
static void each_family_is_there_once(void **state)
{
    _cleanup_free_ char *page = NULL;
    struct scene scene;

    begin(&scene);
    page = page_of(&scene, true, true);
    for (unsigned i = 0; i < n_families; i++) {
        char line[128];
        const char *at;

        (void)snprintf(line, sizeof(line), "# TYPE %s ", families[i].name);
        at = strstr(page, line);
        assert_non_null(at);
        assert_null(strstr(at + 1, line));
        if (families[i].unit)
            assert_string_equal(families[i].name + strlen(families[i].name) - strlen(families[i].unit),
                                families[i].unit);
    }
    end(&scene);
}

static void the_form_is_what_the_client_accepts(void **state)
{
    static const char *const openmetrics[] = {
        "application/openmetrics-text",
        /* Prometheus */
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;q=0.75,text/plain;q=0.5,*/*;q=0.1",
        "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8",
        "text/plain; q=0.3 , Application/OpenMetrics-Text; Q=0.7",
        "application/openmetrics-text;q=0.5,text/plain;q=0.5",
    };
    static const char *const text[] = {
        NULL,
        "",
        "*/*",
        "text/plain",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.000",
        "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-textile",
        "application/openmetrics-text;q=0.4,text/plain;q=0.5",
        "application/openmetrics-text;q=",
        ";;;,,,;q=1",
        "application/openmetrics-text;version",
    };

    for (size_t i = 0; i < sizeof(openmetrics) / sizeof(*openmetrics); i++)
        assert_true(exposition_is_openmetrics(openmetrics[i]));
    for (size_t i = 0; i < sizeof(text) / sizeof(*text) - 1; i++)
        assert_false(exposition_is_openmetrics(text[i]));
    /* a parameter without a value says nothing */
    assert_true(exposition_is_openmetrics(text[sizeof(text) / sizeof(*text) - 1]));
}

static void a_host_is_one_that_no_page_can_have(void **state)
{
    static const char *const ours[] = {"localhost", "LocalHost:9090", "127.0.0.1", "127.0.0.1:1",
                                       "[::1]",     "[::1]:9753",     "10.1.2.3:9"};
    static const char *const others[] = {NULL,
                                         "",
                                         "evil.example",
                                         "localhost.evil.example:80",
                                         "127.0.0.1.x",
                                         "[::1",
                                         "[evil]",
                                         "localhost:80x",
                                         ":80",
                                         "[::1]x",
                                         "127.0.0.1:80:80",
                                         "evil.example:127.0.0.1",
                                         "localhost@x",
                                         "localhost/",
                                         "localhost localhost"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        assert_true(host_is_ours(ours[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_false(host_is_ours(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openmetrics_has_all_that_it_wants),
        cmocka_unit_test(the_text_format_has_names_of_samples_and_no_end),
        cmocka_unit_test(a_histogram_is_cumulative),
        cmocka_unit_test(users_are_for_administrators),
        cmocka_unit_test(each_family_is_there_once),
        cmocka_unit_test(the_form_is_what_the_client_accepts),
        cmocka_unit_test(a_host_is_one_that_no_page_can_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
