/* SPDX-License-Identifier: Apache-2.0 */
/* Who may allocate from a pool: by user, group, control group and unit; and what only looks like one of them. */
#include "mem/allow.h"

#include <string.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/test.h"

static gid_t groups[] = {71001, 71002};
static const struct peer peer = {.uid = 61001, .gid = 61009, .pidfd = -1, .groups = groups, .n_groups = 2};

/* One entry, of which `text` is the name. */
static bool has(enum allow_kind kind, uint32_t id, const char *text, const char *path)
{
    struct allow allow;

    allow_init(&allow, text);
    allow_add(&allow, kind, id, allow.text, strlen(text));
    return allow_has(&allow, &peer, path);
}

static void a_user_is_its_own_number(void **state)
{
    assert_true(has(ALLOW_USER, 61001, "u", ""));
    assert_false(has(ALLOW_USER, 61009, "u", ""));
    assert_false(has(ALLOW_USER, 71001, "u", ""));
    assert_false(has(ALLOW_NONE, 61001, "u", ""));
    assert_false(has(ALLOW_NONE, 0, "u", "/u"));
}

static void a_group_is_any_of_the_process(void **state)
{
    assert_true(has(ALLOW_GROUP, 61009, "g", ""));
    assert_true(has(ALLOW_GROUP, 71002, "g", ""));
    assert_false(has(ALLOW_GROUP, 61001, "g", ""));
}

static void a_control_group_has_those_below_it(void **state)
{
    assert_true(has(ALLOW_CGROUP, 0, "/a.slice/b", "/a.slice/b"));
    assert_true(has(ALLOW_CGROUP, 0, "/a.slice/b", "/a.slice/b/c"));
    assert_true(has(ALLOW_CGROUP, 0, "/", "/anything"));
    assert_false(has(ALLOW_CGROUP, 0, "/a.slice/b", "/a.slice/bc"));
    assert_false(has(ALLOW_CGROUP, 0, "/a.slice/b", "/a.slice"));
    assert_false(has(ALLOW_CGROUP, 0, "/a.slice/b", "/x/a.slice/b"));
    assert_false(has(ALLOW_CGROUP, 0, "/", ""));
}

static void a_unit_is_the_first_that_is_no_slice(void **state)
{
    assert_true(has(ALLOW_UNIT, 0, "b.service", "/system.slice/b.service"));
    assert_true(has(ALLOW_UNIT, 0, "b.service", "/b.service/sub"));
    assert_true(has(ALLOW_UNIT, 0, "b@1.service", "/system.slice/system-b.slice/b@1.service"));
    assert_true(has(ALLOW_UNIT, 0, "memory.service", "/system.slice/_memory.service"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", "/user.slice/user-1.slice/user@1.service/b.service"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", "/user.slice/user-1.slice/user@1.service/app.slice/b.service"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", "/system.slice/bb.service"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", "/system.slice/b.service2"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", "/system.slice"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", "/"));
    assert_false(has(ALLOW_UNIT, 0, "b.service", ""));
}

static void without_a_list_it_is_for_everybody(void **state)
{
    struct allow allow;
    struct problem problem = PROBLEM_NULL;

    allow_init(&allow, "");
    assert_int_equal(allow_check(&allow, "p", &peer, &problem), 0);
    allow_init(&allow, "user:1");
    allow_add(&allow, ALLOW_NONE, 0, allow.text + 5, 1);
    assert_int_equal(allow_check(&allow, "p", &peer, &problem), STATUS_NO_RIGHT);
    assert_non_null(strstr(problem.sentence, "pool p is not for uid 61001: allow in [pool p]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_is_its_own_number),           cmocka_unit_test(a_group_is_any_of_the_process),
        cmocka_unit_test(a_control_group_has_those_below_it), cmocka_unit_test(a_unit_is_the_first_that_is_no_slice),
        cmocka_unit_test(without_a_list_it_is_for_everybody),
    };

    return test_run(tests, NULL, NULL);
}
