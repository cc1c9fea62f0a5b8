/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memoryd.conf: what is accepted, and that every mistake is named with its file and line, its key, what was
 * wrong and what is allowed.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/value.h"

static char path[256];
static char said[65536];
static unsigned complaints;

static void complain(void *userdata, const char *sentence)
{
    size_t n = strlen(said);

    snprintf(said + n, sizeof(said) - n, "%s\n", sentence);
    complaints++;
}

static int load_bytes(struct config **ret, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
    said[0] = '\0';
    complaints = 0;
    return config_load(ret, path, complain, NULL);
}

static int load(struct config **ret, const char *text)
{
    return load_bytes(ret, text, strlen(text));
}

static struct config *load_good(const char *text)
{
    struct config *config = NULL;
    int r = load(&config, text);

    if (r)
        fail_msg("refused: %s", said);
    assert_int_equal(complaints, 0);
    return config;
}

/* refused with just one complaint, which names file and line and holds `what` */
static void refuse_at(const char *text, unsigned line, const char *what)
{
    struct config *config = (void *)1;
    char start[300];

    assert_int_equal(load(&config, text), CONFIG_E_MISTAKES);
    assert_ptr_equal(config, (void *)1);
    if (line)
        snprintf(start, sizeof(start), "%s:%u: ", path, line);
    else
        snprintf(start, sizeof(start), "%s: ", path);
    if (complaints != 1 || strncmp(said, start, strlen(start)) != 0 || !strstr(said, what))
        fail_msg("wanted one complaint \"%s … %s\", got %u: %s", start, what, complaints, said);
}

static void defaults_need_no_file(void **state)
{
    struct config *config = NULL;

    assert_int_equal(config_load(&config, NULL, complain, NULL), 0);
    assert_int_equal(config->capacity.percent, 50);
    assert_true(config->arena_base == 0x400000000000);
    assert_true(config->arena_size == UINT64_C(16) << 40);
    assert_int_equal(config->idle_exit_ms, 60000);
    config_free(config);
}

static void everything_can_be_said(void **state)
{
    struct config *config = load_good("# a comment\n"
                                      "[topology]\n"
                                      "simulate_nodes = 4\n"
                                      "[pools]\n"
                                      "  capacity = 25%   ; of each node\n"
                                      "pages = base\n"
                                      "charge = client\n"
                                      "[pool fast]\n"
                                      "nodes = 0,2-3\n"
                                      "placement = split\n"
                                      "weights = 3,1 1\n"
                                      "pages = thp\n"
                                      "commit = lazy\n"
                                      "capacity = 2G\n"
                                      "[pool round]\n"
                                      "nodes=0-1\n"
                                      "placement=interleave\n"
                                      "charge=broker\n"
                                      "part_size=2M\n"
                                      "[pool huge]\n"
                                      "pages=hugetlb\n"
                                      "page_size=1G\n"
                                      "[arena]\n"
                                      "base = 0x566000000000\n"
                                      "size = 128G\n"
                                      "half = upper\n"
                                      "[limits]\n"
                                      "uid_bytes = 50%\n"
                                      "uid_buffers = 100\n"
                                      "session_buffers = 10\n"
                                      "uid_names = none\n"
                                      "connections = 12\n"
                                      "[session]\n"
                                      "grace = 2min\n"
                                      "handshake_timeout = 500ms\n"
                                      "overflow_uid = serve\n"
                                      "[broker]\n"
                                      "worker_threads = 3\n"
                                      "idle_exit = 0\n"
                                      "spin = off\n");

    assert_int_equal(config->simulate_nodes, 4);
    assert_int_equal(config->capacity.percent, 25);
    assert_int_equal(config->n_pools, 3);
    assert_string_equal(config->pools[0].name, "fast");
    assert_true(config->base_pages);
    assert_int_equal(config->charge, CONFIG_CHARGE_CLIENT);
    assert_int_equal(config->pools[0].charge, CONFIG_CHARGE_DEFAULT);
    assert_int_equal(config->pools[1].charge, CONFIG_CHARGE_BROKER);
    assert_int_equal(config->pools[0].line, 8);
    assert_int_equal(config->pools[0].n_nodes, 3);
    assert_int_equal(config->pools[0].nodes[2], 3);
    assert_int_equal(config->pools[0].n_weights, 3);
    assert_int_equal(config->pools[0].weights[0], 3);
    assert_int_equal(config->pools[0].placement, CONFIG_PLACEMENT_SPLIT);
    assert_int_equal(config->pools[0].pages, CONFIG_PAGES_THP);
    assert_true(config->pools[0].lazy);
    assert_true(config->pools[0].capacity.bytes == UINT64_C(2) << 30);
    assert_int_equal(config->pools[1].part_size, 2 << 20);
    assert_int_equal(config->pools[2].page_size, 1 << 30);
    assert_true(config->arena_base == 0x566000000000);
    assert_true(config->arena_size == UINT64_C(128) << 30);
    assert_int_equal(config->arena_half, CONFIG_HALF_UPPER);
    assert_int_equal(config->uid_bytes_percent, 50);
    assert_int_equal(config->uid_limits[CONFIG_LIMIT_BUFFERS], 100);
    assert_int_equal(config->session_limits[CONFIG_LIMIT_BUFFERS], 10);
    assert_true(config->uid_limits[CONFIG_LIMIT_NAMES] == CONFIG_NONE);
    assert_int_equal(config->connections, 12);
    assert_int_equal(config->grace_ms, 120000);
    assert_int_equal(config->handshake_ms, 500);
    assert_true(config->serve_overflow_uid);
    assert_int_equal(config->worker_threads, 3);
    assert_int_equal(config->idle_exit_ms, 0);
    assert_false(config->spin);
    config_free(config);
}

static void unknown_keys_and_sections_name_the_nearest(void **state)
{
    refuse_at("[arena]\n\nbaes = 1\n", 3, "[arena] baes: no such key; did you mean base?");
    refuse_at("[limits]\ncapcity = 1\n", 2, "[limits] capcity: no such key; did you mean capacity in [pools]?");
    refuse_at("[limit]\nuid_names=1\n", 1, "did you mean [limits]?");
    refuse_at("[limit]\n", 1, "did you mean [limits]?");
    refuse_at("[pool x]\nnode = 1\n", 2, "did you mean nodes?");
    refuse_at("[broker]\ngrace = 1s\n", 2, "it belongs in [session]");
    refuse_at("capacity = 50%\n", 1, "a key before any [section]");
}

static void absurd_values_are_refused_with_what_is_allowed(void **state)
{
    refuse_at("[pools]\ncapacity = 0\n", 2, "1% to 100%");
    refuse_at("[pools]\ncapacity = 101%\n", 2, "\"101%\" is not a size");
    refuse_at("[pools]\ncapacity = 99999999999T\n", 2, "is not a size");
    refuse_at("[pools]\ncapacity = -1\n", 2, "is not a size");
    refuse_at("[pools]\ncapacity = 8MB\n", 2, "is not a size");
    refuse_at("[pools]\npages = hugetlb\n", 2, "auto or base");
    refuse_at("[arena]\nsize = 999999T\n", 2, "from 1G to 64T");
    refuse_at("[arena]\nbase = 0x7fff00000000\nsize=16T\n", 0, "no process can map it");
    refuse_at("[arena]\nbase = 0x400000001000\n", 0, "multiples of 1G");
    refuse_at("[session]\ngrace = 5\n", 2, "with its unit");
    refuse_at("[session]\nhandshake_timeout = 1000000h\n", 2, "168h");
    refuse_at("[topology]\nsimulate_nodes = 65\n", 2, "from 0 to 64");
    refuse_at("[broker]\nworker_threads = 1000\n", 2, "from 0 to 64");
    refuse_at("[session]\noverflow_uid = 65534\n", 2, "is not refuse or serve");
    refuse_at("[broker]\nspin = on\n", 2, "is not off or auto");
    refuse_at("[metrics]\nlisten = 0.0.0.0:9753\n", 2, "the absolute path of a socket");
    refuse_at("[limits]\nsession_names = 10\nuid_names = 5\n", 0, "more than its user");
}

static void pools_that_make_no_sense_are_refused(void **state)
{
    refuse_at("[pool]\n", 1, "a pool needs a name");
    refuse_at("[pool a b]\n", 1, "not a name");
    refuse_at("[pool a]\nnodes=0\n[pool a]\n", 3, "in line 1 already");
    refuse_at("[pool a]\nnodes=0\nnodes=1\n", 3, "given in line 2 already");
    refuse_at("[pool a]\nnodes=0,0\n", 2, "different node numbers");
    refuse_at("[pool a]\nnodes=0-64\n", 2, "different node numbers");
    refuse_at("[pool a]\nnodes=3-1\n", 2, "different node numbers");
    refuse_at("[pool a]\nnodes=0-1\nplacement=split\nweights=1\n", 1, "1 of them for 2 nodes");
    refuse_at("[pool a]\nweights=1\n", 1, "only for placement = split");
    refuse_at("[pool a]\npart_size=4K\n", 1, "only for placement = interleave");
    refuse_at("[pool a]\npage_size=2M\n", 1, "only for pages = hugetlb");
    refuse_at("[pool a]\npages=hugetlb\npage_size=3M\n", 1, "power of two");
    refuse_at("[pool a]\npages=hugetlb\ncommit=lazy\n", 1, "would kill the process");
    refuse_at("[pool a]\npages=hugetlb\ncharge=client\n", 1, "only for base and thp pages");
    refuse_at("[pool a]\ncommit=lazy\ncharge=broker\n", 1, "who touches a page first");
    refuse_at("[pool a]\ncharge=user\n", 2, "broker or client");
    refuse_at("[pool a]\nplacement=near\n", 2, "bind, preferred, interleave, split or local");
}

static void a_list_of_whom_a_pool_is_for_is_read_strictly(void **state)
{
    static const char *const bad[] = {"",         "61001",      "user:",         "user: a",        "user:a,group:b",
                                      "users:a",  "unit:a",     "unit:.service", "unit:a.slice",   "unit:a/b.service",
                                      "cgroup:a", "cgroup:/a/", "cgroup:/a//b",  "cgroup:/a/../b", "user:a cgroup"};
    const char *at = "user:a  unit:b@c.service\tcgroup:/d.slice/e group:7 ", *name;
    static const char *const names[] = {"a", "b@c.service", "/d.slice/e", "7"};
    static const enum config_allow kinds[] = {CONFIG_ALLOW_USER, CONFIG_ALLOW_UNIT, CONFIG_ALLOW_CGROUP,
                                              CONFIG_ALLOW_GROUP};
    enum config_allow kind;
    size_t length;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[128];

        snprintf(text, sizeof(text), "[pool p]\nallow = %s\n", bad[i]);
        refuse_at(text, 2, "is not a list of user:NAME");
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_true(config_allow_next(&at, &kind, &name, &length));
        assert_int_equal(kind, kinds[i]);
        assert_int_equal(length, strlen(names[i]));
        assert_memory_equal(name, names[i], length);
    }
    assert_false(config_allow_next(&at, &kind, &name, &length));
    assert_string_equal(at, "");
}

static void every_mistake_is_reported_in_one_go(void **state)
{
    struct config *config = NULL;

    assert_int_equal(load(&config, "[arena]\nbaes=1\nsize=0\n[nosuch]\nx=1\ny=2\n[session]\ngrace=x\nnonsense\n"),
                     CONFIG_E_MISTAKES);
    assert_int_equal(complaints, 5);
}

static void a_file_that_is_no_configuration_is_refused(void **state)
{
    static char big[200000];
    struct config *config = NULL;

    refuse_at("[arena\n", 1, "not closed");
    refuse_at("[arena] base=1\n", 1, "after the bracket");
    memset(big, 'a', sizeof(big));
    assert_int_equal(load_bytes(&config, big, sizeof(big)), CONFIG_E_MISTAKES);
    memset(big, 0, sizeof(big));
    (void)load_bytes(&config, big, sizeof(big));
    config = config_free(config);
    said[0] = '\0';
    assert_int_equal(config_load(&config, "/nonexistent/memoryd.conf", complain, NULL), CONFIG_E_UNREADABLE);
    assert_string_equal(said, "/nonexistent/memoryd.conf: cannot be read: No such file or directory\n");
    assert_int_equal(config_load(&config, "/dev/zero", complain, NULL), CONFIG_E_UNREADABLE);
    assert_int_equal(config_load(&config, "/", complain, NULL), CONFIG_E_UNREADABLE);
}

static void values_are_read_strictly(void **state)
{
    uint64_t v;
    uint32_t list[4];
    uint32_t n;

    assert_true(value_size("1k", &v) && v == 1024);
    assert_true(value_size("16777215T", &v));
    assert_false(value_size("16777216T", &v));
    assert_false(value_size(" 1", &v) || value_size("1 K", &v) || value_size("+1", &v) || value_size("", &v));
    assert_false(value_number("18446744073709551616", &v));
    assert_true(value_number("0xFF", &v) && v == 255);
    assert_false(value_number("0x", &v));
    assert_true(value_time("0", &v) && v == 0);
    assert_false(value_time("1", &v));
    assert_false(value_time("9999999999999999999min", &v));
    assert_true(value_list("1, 3-4", list, &n, 4, 9) && n == 3 && list[2] == 4);
    assert_false(value_list("0-4", list, &n, 4, 9));
    assert_false(value_list("", list, &n, 4, 9) || value_list("1,,2", list, &n, 4, 9));
    assert_false(value_list("0-18446744073709551615", list, &n, 4, UINT32_MAX));
}

static int make_path(void **state)
{
    snprintf(path, sizeof(path), "%s/memoryd.conf", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return 0;
}

static int remove_path(void **state)
{
    unlink(path);
    return 0;
}

/* One value of each key that is not its default. */
static const struct {
    const char *section, *key, *value;
    bool live;
} others[] = {
    {"topology", "simulate_nodes", "2", false},
    {"pools", "capacity", "8G", false},
    {"pools", "pages", "base", true},
    {"pools", "charge", "client", false},
    {"pools", "stock", "0", false},
    {"pool p", "nodes", "1", false},
    {"pool p", "placement", "local", false},
    {"pool p", "part_size", "8K", false},
    {"pool p", "weights", "3", false},
    {"pool p", "page_size", "2M", false},
    {"pool p", "pages", "thp", false},
    {"pool p", "commit", "lazy", false},
    {"pool p", "charge", "client", false},
    {"pool p", "capacity", "1G", false},
    {"pool p", "stock", "1M", false},
    {"pool p", "allow", "user:61001 unit:a.service", true},
    {"arena", "base", "0x500000000000", false},
    {"arena", "size", "8T", false},
    {"arena", "half", "upper", false},
    {"limits", "uid_share", "30%", true},
    {"limits", "metadata", "1G", true},
    {"limits", "connections", "5", true},
    {"limits", "uid_bytes", "20%", true},
    {"limits", "uid_buffers", "5", true},
    {"limits", "uid_tokens", "5", true},
    {"limits", "uid_reservations", "5", true},
    {"limits", "uid_addresses", "1G", true},
    {"limits", "uid_sessions", "5", true},
    {"limits", "uid_names", "5", true},
    {"limits", "uid_queued_bytes", "1M", true},
    {"limits", "uid_fds_in_flight", "256", true},
    {"limits", "uid_metadata", "1G", true},
    {"limits", "session_bytes", "1G", true},
    {"limits", "session_buffers", "5", true},
    {"limits", "session_tokens", "5", true},
    {"limits", "session_reservations", "5", true},
    {"limits", "session_addresses", "1G", true},
    {"limits", "session_names", "5", true},
    {"limits", "session_queued_bytes", "512K", true},
    {"limits", "session_fds_in_flight", "128", true},
    {"limits", "session_metadata", "1M", true},
    {"user u", "share", "100%", true},
    {"group u", "share", "20%", true},
    {"user u", "bytes", "1G", true},
    {"user u", "buffers", "5", true},
    {"user u", "tokens", "none", true},
    {"user u", "reservations", "0", true},
    {"user u", "addresses", "1G", true},
    {"user u", "sessions", "5", true},
    {"user u", "names", "5", true},
    {"user u", "metadata", "1M", true},
    {"session", "grace", "1s", true},
    {"session", "handshake_timeout", "1s", true},
    {"session", "stall_timeout", "1s", true},
    {"session", "overflow_uid", "serve", true},
    {"broker", "worker_threads", "3", false},
    {"broker", "idle_exit", "1s", true},
    {"broker", "spin", "off", true},
    {"metrics", "listen", "127.0.0.1:9753", false},
};

static void differ(void *userdata, const char *key, bool live)
{
    char *text = userdata;

    snprintf(text + strlen(text), 256 - strlen(text), "%s %s\n", key, live ? "live" : "restart");
}

/* As [pool p] has it. What else the key needs to make sense is the same in both. */
static struct config *with(const char *section, const char *key, const char *value)
{
    bool is_pool = !strncmp(section, "pool ", 5), is_user = !strncmp(section, "user ", 5);
    char text[512];

    snprintf(text, sizeof(text), "[group u]\n%s[user u]\n%s%s%s%s[pool p]\n%s%s%s%s",
             value && !strncmp(section, "group ", 6) ? "share = 20%\n" : "", value && is_user ? key : "",
             value && is_user ? " = " : "", value && is_user ? value : "", value && is_user ? "\n" : "",
             !is_pool || strcmp(key, "nodes") != 0 ? "nodes = 0\n" : "",
             is_pool && !strcmp(key, "part_size") ? "placement = interleave\n" : "",
             is_pool && !strcmp(key, "weights") ? "placement = split\n" : "",
             is_pool && !strcmp(key, "page_size") ? "pages = hugetlb\n" : "");
    if (value && !is_pool && strchr(section, ' ') == NULL)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "[%s]\n", section);
    if (value && (is_pool || strchr(section, ' ') == NULL))
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s = %s\n", key, value);
    return load_good(text);
}

/* Each alone: it is named, and only it, and what a reload cannot put in force stays as it was. */
static void a_key_that_differs_is_named(void **state)
{
    const char *section, *key;
    size_t n = 0;

    while (config_key(n, &section, &key))
        n++;
    /* a group has the keys of a user, of which one is tried */
    assert_int_equal(n + 1, sizeof(others) / sizeof(others[0]));
    for (size_t i = 0; i <= n; i++) {
        struct config *before =
            with(others[i].section, others[i].key, strcmp(others[i].key, "nodes") != 0 ? NULL : "0");
        struct config *now = with(others[i].section, others[i].key, others[i].value);
        char wanted[128];
        char text[256] = "";

        config_compare(before, before, differ, text);
        assert_string_equal(text, "");
        config_compare(before, now, differ, text);
        snprintf(wanted, sizeof(wanted), "[%s] %s %s\n", others[i].section, others[i].key,
                 others[i].live ? "live" : "restart");
        assert_string_equal(text, wanted);
        assert_int_equal(config_keep_started(now, before), 0);
        *text = '\0';
        config_compare(before, now, differ, text);
        assert_string_equal(text, others[i].live ? wanted : "");
        config_free(before);
        config_free(now);
    }
}

static void a_pool_that_comes_or_goes_is_named(void **state)
{
    struct config *before = load_good("[pool a]\nnodes=0\n[pool b]\nnodes=1\n");
    struct config *now = load_good("[pool c]\n[pool b]\nnodes=1\n");
    char text[256] = "";

    config_compare(before, now, differ, text);
    assert_string_equal(text, "[pool c] restart\n[pool a] restart\n");
    assert_int_equal(config_keep_started(now, before), 0);
    assert_int_equal(now->n_pools, 2);
    assert_string_equal(now->pools[0].name, "a");
    config_free(before);
    config_free(now);
}

static void users_and_groups_are_sections(void **state)
{
    struct config *config = load_good("[user alice]\nshare = 100%\n[group alice]\nbytes = 1G\ntokens = none\n"
                                      "[user 1000]\nnames=3\n[limits]\nuid_share = 20%\n");
    struct config *now = load_good("[user alice]\nshare = 50%\n[user bob]\n");
    char text[256] = "";

    assert_int_equal(config->uid_share, 20);
    assert_int_equal(config->n_users, 3);
    assert_string_equal(config->users[0].name, "alice");
    assert_false(config->users[0].is_group);
    assert_int_equal(config->users[0].share, 100);
    assert_int_equal(config->users[0].limits[CONFIG_LIMIT_BYTES], CONFIG_UNSET);
    assert_true(config->users[1].is_group);
    assert_int_equal(config->users[1].share, 0);
    assert_int_equal(config->users[1].limits[CONFIG_LIMIT_BYTES], UINT64_C(1) << 30);
    assert_int_equal(config->users[1].limits[CONFIG_LIMIT_TOKENS], CONFIG_NONE);
    assert_int_equal(config->users[2].limits[CONFIG_LIMIT_NAMES], 3);
    config_compare(config, now, differ, text);
    assert_string_equal(text, "[limits] uid_share live\n[user alice] share live\n[user bob] live\n"
                              "[group alice] live\n[user 1000] live\n");
    config_free(config);
    config_free(now);
    refuse_at("[user]\n", 1, "a user needs a name");
    refuse_at("[group a b]\n", 1, "not a name of a group");
    refuse_at("[user a]\n[group a]\n[user a]\n", 3, "in line 1 already");
    refuse_at("[user a]\nshare = 0%\n", 2, "a part from 1% to 100%");
    refuse_at("[user a]\nqueued_bytes = 1M\n", 2, "no such key");
    refuse_at("[user a]\nnodes = 0\n", 2, "it belongs in [pool]");
}

/* What a broker hands on is what it read. */
static void a_text_is_as_good_as_the_file(void **state)
{
    struct config *config = load_good("[limits]\nuid_tokens = 7"), *again = (void *)1;

    assert_int_equal(config->text_size, strlen("[limits]\nuid_tokens = 7"));
    unlink(path);
    assert_int_equal(config_parse(&again, config->path, config->text, config->text_size, complain, NULL), 0);
    assert_int_equal(again->uid_limits[CONFIG_LIMIT_TOKENS], 7);
    assert_string_equal(again->path, path);
    config_free(again);
    again = (void *)1;
    said[0] = '\0';
    assert_int_equal(config_parse(&again, path, "[limits]\nuid_tokens = x\n", 24, complain, NULL), CONFIG_E_MISTAKES);
    assert_ptr_equal(again, (void *)1);
    assert_non_null(strstr(said, ":2: [limits] uid_tokens"));
    config_free(config);
    assert_int_equal(config_parse(&again, path, "", 0, complain, NULL), 0);
    config_free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_need_no_file),
        cmocka_unit_test(everything_can_be_said),
        cmocka_unit_test(unknown_keys_and_sections_name_the_nearest),
        cmocka_unit_test(absurd_values_are_refused_with_what_is_allowed),
        cmocka_unit_test(pools_that_make_no_sense_are_refused),
        cmocka_unit_test(a_list_of_whom_a_pool_is_for_is_read_strictly),
        cmocka_unit_test(every_mistake_is_reported_in_one_go),
        cmocka_unit_test(a_file_that_is_no_configuration_is_refused),
        cmocka_unit_test(a_key_that_differs_is_named),
        cmocka_unit_test(a_pool_that_comes_or_goes_is_named),
        cmocka_unit_test(users_and_groups_are_sections),
        cmocka_unit_test(a_text_is_as_good_as_the_file),
        cmocka_unit_test(values_are_read_strictly),
    };

    return test_run(tests, make_path, remove_path);
}
