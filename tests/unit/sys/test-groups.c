/* SPDX-License-Identifier: Apache-2.0 */
/* What control groups leave, as their files tell it. */
#include "tests/support/files.h"
#include "tests/support/test.h"

#include "sys/groups.h"

static void without_any_nothing_is_limited(void **state)
{
    assert_int_equal(groups_memory(files_root), UINT64_MAX);
    files_put("proc/self/cgroup", "0::/\n");
    assert_int_equal(groups_memory(files_root), UINT64_MAX);
    files_put("sys/fs/cgroup/memory.current", "5000\n");
    files_put("sys/fs/cgroup/memory.max", "max\n");
    assert_int_equal(groups_memory(files_root), UINT64_MAX);
}

static void the_one_that_leaves_least_counts(void **state)
{
    files_put("proc/self/cgroup", "0::/pod/app\n");
    files_put("sys/fs/cgroup/pod/app/memory.max", "9000\n");
    files_put("sys/fs/cgroup/pod/app/memory.current", "1000\n");
    assert_int_equal(groups_memory(files_root), 8000);
    files_put("sys/fs/cgroup/pod/memory.max", "10000\n");
    files_put("sys/fs/cgroup/pod/memory.current", "7000\n");
    assert_int_equal(groups_memory(files_root), 3000);
    /* lowered afterwards */
    files_put("sys/fs/cgroup/pod/app/memory.max", "500\n");
    assert_int_equal(groups_memory(files_root), 0);
}

static void a_container_sees_its_own_as_the_first(void **state)
{
    files_put("proc/self/cgroup", "0::/docker/0123\n");
    files_put("sys/fs/cgroup/memory.max", "700\n");
    files_put("sys/fs/cgroup/memory.current", "100\n");
    assert_int_equal(groups_memory(files_root), 600);
}

static void cached_files_are_given_up_first(void **state)
{
    files_put("proc/self/cgroup", "0::/app\n5:memory:/app\n");
    files_put("sys/fs/cgroup/app/memory.max", "9000\n");
    files_put("sys/fs/cgroup/app/memory.current", "8000\n");
    files_put("sys/fs/cgroup/app/memory.stat", "anon 100\nfile 7000\ninactive_file 4000\nactive_file 2000\n");
    assert_int_equal(groups_memory(files_root), 1000 + 3000);
    files_put("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "9000\n");
    files_put("sys/fs/cgroup/memory/app/memory.usage_in_bytes", "9000\n");
    files_put("sys/fs/cgroup/memory/app/memory.stat",
              "cache 7000\ninactive_file 1\nactive_file 1\ntotal_inactive_file 30\ntotal_active_file 10\n");
    assert_int_equal(groups_memory(files_root), 20);
}

static void those_of_the_first_version_have_other_files(void **state)
{
    files_put("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/x\n3:cpuset:/\n0::/\nnonsense\n1:memory\n");
    files_put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "400\n");
    files_put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "300\n");
    files_put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    files_put("sys/fs/cgroup/memory/memory.usage_in_bytes", "300\n");
    assert_int_equal(groups_memory(files_root), 100);
}

#define PID 4711

static void kills_are_counted_where_memory_is_charged(void **state)
{
    char path[PATH_MAX], expected[PATH_MAX + 64];
    uint64_t kills = 0;

    assert_false(groups_find_kills(files_root, PID, path, sizeof(path)));
    files_put("proc/4711/cgroup", "0::/pod/app\n");
    assert_false(groups_find_kills(files_root, PID, path, sizeof(path)));
    /* the one above it */
    files_put("sys/fs/cgroup/pod/app/cgroup.procs", "4711\n");
    files_put("sys/fs/cgroup/pod/memory.events", "low 0\noom 7\noom_kill 3\noom_group_kill 0\n");
    assert_true(groups_find_kills(files_root, PID, path, sizeof(path)));
    (void)snprintf(expected, sizeof(expected), "%s/sys/fs/cgroup/pod/memory.events", files_root);
    assert_string_equal(path, expected);
    assert_true(groups_read_kills(path, &kills));
    assert_int_equal(kills, 3);
    files_put("sys/fs/cgroup/pod/app/memory.events", "low 0\noom 1\noom_kill 1\n");
    assert_true(groups_find_kills(files_root, PID, path, sizeof(path)));
    assert_true(groups_read_kills(path, &kills));
    assert_int_equal(kills, 1);
    assert_false(groups_find_kills(files_root, PID, path, 16));
    files_put("sys/fs/cgroup/pod/app/memory.events", NULL);
    assert_false(groups_read_kills(path, &kills));
    /* what is outside of this process's namespace is another one here */
    files_put("proc/4711/cgroup", "0::/../pod\n");
    assert_false(groups_find_kills(files_root, PID, path, sizeof(path)));
}

static void the_first_version_counts_kills_in_another_file(void **state)
{
    char path[PATH_MAX];
    uint64_t kills = 0;

    files_put("proc/4711/cgroup", "9:name=systemd:/x\n4:cpu,memory:/x\n0::/y\n");
    files_put("sys/fs/cgroup/memory/x/memory.oom_control", "oom_kill_disable 5\nunder_oom 6\noom_kill 2\n");
    assert_true(groups_find_kills(files_root, PID, path, sizeof(path)));
    assert_true(groups_read_kills(path, &kills));
    assert_int_equal(kills, 2);
}

/* A part of the groups is mounted, or another container's: what is at its root is not above this one. */
static void a_group_that_is_not_mounted_here_has_none_above_it(void **state)
{
    char path[PATH_MAX];

    files_put("proc/4711/cgroup", "4:memory:/x/y\n0::/pod/app\n");
    files_put("sys/fs/cgroup/memory.events", "low 0\noom_kill 3\n");
    files_put("sys/fs/cgroup/pod/memory.events", "low 0\noom_kill 3\n");
    files_put("sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\noom_kill 2\n");
    assert_false(groups_find_kills(files_root, PID, path, sizeof(path)));
    files_put("sys/fs/cgroup/pod/app/cgroup.procs", "4711\n");
    assert_true(groups_find_kills(files_root, PID, path, sizeof(path)));
}

static void in_the_first_version_none_is_charged_to_the_one_above(void **state)
{
    char path[PATH_MAX];

    files_put("proc/4711/cgroup", "4:memory:/x/y\n");
    files_put("sys/fs/cgroup/memory/x/y/cgroup.procs", "4711\n");
    files_put("sys/fs/cgroup/memory/x/memory.oom_control", "under_oom 0\noom_kill 2\n");
    assert_false(groups_find_kills(files_root, PID, path, sizeof(path)));
    files_put("sys/fs/cgroup/memory/x/y/memory.oom_control", "under_oom 0\noom_kill 2\n");
    assert_true(groups_find_kills(files_root, PID, path, sizeof(path)));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, files_set_up, files_clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_any_nothing_is_limited),
        TEST(the_one_that_leaves_least_counts),
        TEST(a_container_sees_its_own_as_the_first),
        TEST(cached_files_are_given_up_first),
        TEST(those_of_the_first_version_have_other_files),
        TEST(kills_are_counted_where_memory_is_charged),
        TEST(the_first_version_counts_kills_in_another_file),
        TEST(a_group_that_is_not_mounted_here_has_none_above_it),
        TEST(in_the_first_version_none_is_charged_to_the_one_above),
    };

    return test_run(tests, NULL, NULL);
}
