/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker runs in, and the lines that memctl doctor prints about it. */
#include "tests/support/files.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memctl/service.h"

#define BROKER 4712
#define KEEPER 4711
#define NEEDED (UINT64_C(5) << 30)

static struct service service;
static char line[LINE_SIZE];

static void find(void)
{
    service_find(&service, files_root, "/run/it's here/m.sock", BROKER, KEEPER, 1000);
}

/* The shell can read it. */
static void assert_is_shell(const char *text)
{
    int status;
    pid_t child = fork();

    assert_ok(child);
    if (!child) {
        (void)execlp("bash", "bash", "-n", "-c", text, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void find_in_group(const char *cgroup)
{
    files_put("proc/4712/cgroup", cgroup);
    find();
}

static void a_unit_is_found_by_the_group_of_the_broker(void **state)
{
    find_in_group("0::/system.slice/memoryd.service\n");
    assert_string_equal(service.unit, "memoryd.service");
    assert_false(service.is_users);
    find_in_group("0::/user.slice/user-1000.slice/user@1000.service/app.slice/memoryd.service\n");
    assert_string_equal(service.unit, "memoryd.service");
    assert_true(service.is_users);
    find_in_group("4:memory:/x\n1:name=systemd:/system.slice/memoryd.service\n0::/\n");
    assert_string_equal(service.unit, "memoryd.service");
}

static void a_private_broker_is_in_no_unit_of_memoryds(void **state)
{
    static const char *const groups[] = {
        "0::/system.slice/ssh.service\n",
        "0::/system.slice/memoryd-test.service\n",
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        "0::/\n",
    };

    find();
    assert_string_equal(service.unit, "");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        find_in_group(groups[i]);
        assert_string_equal(service.unit, "");
    }
}

static void a_line_gives_the_broker_descriptors(void **state)
{
    find_in_group("0::/system.slice/memoryd.service\n");
    assert_string_equal(service_mend_descriptors(&service, 9000, line),
                        "mkdir -p /etc/systemd/system/memoryd.service.d && printf '[Service]\\nLimitNOFILE=9000\\n' "
                        ">/etc/systemd/system/memoryd.service.d/zz-memoryd-doctor.conf && systemctl daemon-reload && "
                        "systemctl restart memoryd.service");
    assert_is_shell(line);
    find_in_group("0::/user.slice/user-1000.slice/user@1000.service/app.slice/memoryd.service\n");
    assert_non_null(strstr(service_mend_descriptors(&service, 9000, line),
                           "'[Service]\\nLimitNOFILE=9000\\n' >/etc/systemd/system/user@1000.service.d/"));
    assert_is_shell(line);
    find_in_group("0::/\n");
    assert_string_equal(service_mend_descriptors(&service, 9000, line),
                        "prlimit --pid 4711 --nofile=9000:9000 && memctl --socket '/run/it'\\''s here/m.sock' upgrade");
    assert_is_shell(line);
}

static void without_a_limit_of_memory_no_line_is_needed(void **state)
{
    struct service_memory memory;

    files_put("proc/4712/cgroup", "0::/system.slice/memoryd.service\n");
    files_put("sys/fs/cgroup/system.slice/memoryd.service/memory.max", "max\n");
    files_put("sys/fs/cgroup/system.slice/memory.max", "5368709120\n");
    find();
    service_read_memory(&service, BROKER, NEEDED, &memory);
    assert_int_equal(memory.limit, NEEDED);
    assert_string_equal(memory.line, "");
    files_put("sys/fs/cgroup/system.slice/memory.max", "max\n");
    service_read_memory(&service, BROKER, NEEDED, &memory);
    assert_true(memory.limit == UINT64_MAX);
}

static void every_limit_that_is_too_low_is_lifted(void **state)
{
    struct service_memory memory;

    files_put("proc/4712/cgroup", "0::/system.slice/memoryd.service\n");
    files_put("sys/fs/cgroup/system.slice/memoryd.service/memory.max", "4096\n");
    files_put("sys/fs/cgroup/system.slice/memoryd.service/memory.high", "9000\n");
    files_put("sys/fs/cgroup/system.slice/memory.max", "8192\n");
    files_put("sys/fs/cgroup/memory.max", "1000000\n");
    find();
    service_read_memory(&service, BROKER, NEEDED, &memory);
    assert_int_equal(memory.limit, 4096);
    assert_false(memory.slows);
    assert_string_equal(memory.line, "systemctl set-property memoryd.service MemoryMax=5368709120 && systemctl "
                                     "set-property system.slice MemoryMax=5368709120 && echo max "
                                     ">/sys/fs/cgroup/memory.max && systemctl set-property memoryd.service "
                                     "MemoryHigh=5368709120");
    assert_is_shell(memory.line);
    files_put("sys/fs/cgroup/system.slice/memoryd.service/memory.high", "2000\n");
    service_read_memory(&service, BROKER, NEEDED, &memory);
    assert_int_equal(memory.limit, 2000);
    assert_true(memory.slows);
}

static void groups_that_are_no_units_are_files(void **state)
{
    struct service_memory memory;

    files_put("proc/4712/cgroup", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/memoryd.service\n"
                                  "4:cpu,memory:/it's\n");
    files_put("sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/memory.max", "1\n");
    files_put("sys/fs/cgroup/user.slice/memory.max", "7\n");
    files_put("sys/fs/cgroup/memory/it's/memory.limit_in_bytes", "5\n");
    files_put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    find();
    service_read_memory(&service, BROKER, NEEDED, &memory);
    assert_int_equal(memory.limit, 1);
    assert_string_equal(memory.line, "echo max >/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/"
                                     "memory.max && systemctl set-property user.slice MemoryMax=5368709120 && echo -1 "
                                     ">'/sys/fs/cgroup/memory/it'\\''s/memory.limit_in_bytes'");
    assert_is_shell(memory.line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_unit_is_found_by_the_group_of_the_broker, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(a_private_broker_is_in_no_unit_of_memoryds, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(a_line_gives_the_broker_descriptors, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(without_a_limit_of_memory_no_line_is_needed, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(every_limit_that_is_too_low_is_lifted, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(groups_that_are_no_units_are_files, files_set_up, files_clean_up),
    };

    return test_run(tests, NULL, NULL);
}
