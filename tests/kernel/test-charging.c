/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who pays for shared memory, of the control groups of those who made, filled, mapped and touched it.
 *
 * What `charge` of a pool can promise, and what SECURITY.md says of MemoryMax=, is what is seen here. "broker" and
 * "client" are two groups with such processes in them; the test itself is in neither.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/cgroup.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SIZE  (16 * MIB)
#define LIMIT "8388608"
/* Counters of the kernel are kept by processor and summed up later. */
#define SLACK MIB

enum way { ALLOCATE, WRITE_ALL, READ_ALL, POPULATE, PUNCH };

struct filling {
    const char *group; /* of who fills */
    int fd;
    enum way way;
};

/* What its processes and files have, without what programs bring along: code and tables. */
static bool has_shared(const char *group, size_t bytes)
{
    uint64_t shared = cgroup_stat(group, "memory.stat", "shmem");

    return shared + SLACK >= bytes && shared <= bytes + SLACK;
}

#define assert_pays(group, bytes) assert_true(WAIT_UNTIL(has_shared((group), (bytes))))

static void begin(void)
{
    test_needs_root();
    cgroup_begin_memory();
    cgroup_make("broker");
    cgroup_make("client");
}

static void fill(int channel, void *context)
{
    const struct filling *filling = context;
    bool reads = filling->way == READ_ALL;
    volatile char *map;

    CHECK(cgroup_put(filling->group, 0));
    switch (filling->way) {
    case ALLOCATE:
        CHECK(fallocate(filling->fd, 0, 0, SIZE) == 0);
        return;
    case PUNCH:
        CHECK(memfd_punch(filling->fd, 0, SIZE) == 0);
        return;
    case WRITE_ALL:
    case READ_ALL:
    case POPULATE:
        break;
    }
    map = map_shared(filling->fd, SIZE, reads ? PROT_READ : PROT_READ | PROT_WRITE);
    CHECK(map != MAP_FAILED);
    /* before 5.14 the kernel cannot; then it is touched */
    if (filling->way == POPULATE && madvise((void *)(uintptr_t)map, SIZE, MADV_POPULATE_WRITE) == 0)
        return;
    for (size_t i = 0; i < SIZE; i += page_size())
        if (reads)
            (void)map[i];
        else
            map[i] = 1;
}

static void fill_by(const char *group, int fd, enum way way)
{
    struct filling filling = {group, fd, way};

    child_run(fill, &filling);
}

/* charge = broker: who is given memory that is allocated pays nothing for writing it, and stock is the broker's too. */
static void who_allocates_pays(void **state)
{
    FD_AUTO int fd = -1;

    begin();
    fd = memfd_new(SIZE, 0);
    fill_by("broker", fd, ALLOCATE);
    assert_pays("broker", SIZE);
    fill_by("client", fd, WRITE_ALL);
    assert_pays("broker", SIZE);
    assert_pays("client", 0);
}

/* charge = client: the broker makes a file of that size only. So does who merely reads what nobody has written. */
static void of_what_nobody_allocated_the_first_who_touches_pays(void **state)
{
    static const enum way ways[] = {ALLOCATE, WRITE_ALL, READ_ALL, POPULATE};

    begin();
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        FD_AUTO int fd = memfd_new(SIZE, 0), reader = fd_reopen(fd, O_RDONLY);

        fill_by("client", ways[i] == READ_ALL ? reader : fd, ways[i]);
        assert_pays("client", SIZE);
        assert_int_equal(memfd_allocated(fd), SIZE);
        fill_by("broker", fd, WRITE_ALL);
        assert_pays("broker", 0);
        fd_closep(&fd);
        fd_closep(&reader);
        assert_pays("client", 0);
    }
}

/* A hole is new memory: who punched it is credited by whoever pays, and who touches it next is charged. */
static void what_was_punched_is_paid_by_the_next_who_touches(void **state)
{
    FD_AUTO int fd = -1;

    begin();
    fd = memfd_new(SIZE, 0);
    fill_by("broker", fd, ALLOCATE);
    assert_pays("broker", SIZE);
    fill_by("client", fd, PUNCH);
    assert_pays("broker", 0);
    fill_by("client", fd, WRITE_ALL);
    assert_pays("client", SIZE);
    assert_pays("broker", 0);
}

static void be_moved(int channel, void *context)
{
    fill(channel, context);
    CHECK(cgroup_put("broker", 0));
}

/* Nothing moves a charge, also not that who pays goes elsewhere or ends. */
static void a_charge_stays_where_it_is(void **state)
{
    struct filling filling = {.group = "client", .way = WRITE_ALL};
    FD_AUTO int fd = -1;

    begin();
    filling.fd = fd = memfd_new(SIZE, 0);
    child_run(be_moved, &filling);
    assert_pays("client", SIZE);
    assert_pays("broker", 0);
}

/* Memory that outlives its group is still charged to those above it; a group of the same name begins with nothing. */
static void what_outlives_its_group_is_paid_by_those_above(void **state)
{
    FD_AUTO int fd = -1;

    begin();
    fd = memfd_new(SIZE, 0);
    fill_by("client", fd, ALLOCATE);
    cgroup_remove_one("client");
    assert_true(cgroup_number("", "memory.current") >= SIZE);
    assert_pays("", SIZE);
    cgroup_make("client");
    assert_pays("client", 0);
    fd_closep(&fd);
    assert_pays("", 0);
}

/* ---- beyond the limit -------------------------------------------------------------------------------------------- */

static int status_of_filling(int fd, enum way way)
{
    struct filling filling = {"client", fd, way};
    struct child child;

    child_start(&child, fill, &filling);
    return child_wait(&child);
}

/* The kernel ends a process of the group, however the memory is allocated: there is no error to be had, and SIGBUS is
 * not the signal. What it had allocated so far stays in the file; nobody else loses anything. */
static void beyond_the_limit_the_process_is_killed(void **state)
{
    static const enum way ways[] = {ALLOCATE, WRITE_ALL, READ_ALL, POPULATE};

    begin();
    assert_true(cgroup_write("client", "memory.max", LIMIT));
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        FD_AUTO int fd = memfd_new(SIZE, 0);
        int status = status_of_filling(fd, ways[i]);

        print_message("way %d: status 0x%x, %zu of %zu bytes allocated, %d killed\n", (int)ways[i], (unsigned)status,
                      memfd_allocated(fd), SIZE, (int)cgroup_stat("client", "memory.events", "oom_kill"));
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_int_equal(cgroup_stat("client", "memory.events", "oom_kill"), i + 1);
        assert_true(memfd_allocated(fd) <= strtoul(LIMIT, NULL, 10));
        fd_closep(&fd);
        assert_pays("client", 0);
    }
}

/* ---- a process of the broker in the client's group --------------------------------------------------------------- */

struct entering {
    uid_t uid; /* 0: as who runs the test */
    bool by_clone;
};

/* EACCES unless it may write the group's cgroup.procs, and that of the nearest group above both. */
static void enter(int channel, void *context)
{
    const struct entering *entering = context;
    char path[256];

    CHECK(cgroup_put("broker", 0));
    if (entering->uid)
        become(entering->uid);
    if (entering->by_clone) {
        int group = open(cgroup_folder("client", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (__u64)group};
        long pid;

        CHECK(group >= 0);
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0)
            _exit(0);
        if (pid < 0 && entering->uid)
            CHECK(errno == EACCES);
        CHECK((pid < 0) == (entering->uid != 0));
    } else if (entering->uid) {
        CHECK(!cgroup_put("client", 0));
        CHECK(errno == EACCES);
    } else {
        CHECK(cgroup_put("client", 0));
    }
}

/* A broker that runs as a user of its own cannot go there, also not into a group that was made over to that user. */
static void only_root_may_enter_the_group_of_others(void **state)
{
    char path[256], file[300];

    begin();
    for (int given = 0; given < 2; given++) {
        for (int i = 0; i < 4; i++)
            child_run(enter, &(struct entering){.uid = i & 1 ? UID_BROKER : 0, .by_clone = i & 2});
        (void)snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup_folder("client", path));
        assert_ok(chown(path, UID_BROKER, -1));
        assert_ok(chown(file, UID_BROKER, -1));
    }
}

static void live_in_the_group(int channel, void *context)
{
    char *own;

    CHECK(cgroup_put("client", 0));
    own = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED);
    for (size_t i = 0; i < 4 * MIB; i += page_size())
        own[i] = 1;
    tell(channel);
    hear(channel);
}

/* A helper of the broker that allocates there makes the client pay, and the client is who is killed for it. */
static void a_helper_there_has_the_client_killed(void **state)
{
    struct filling filling = {.group = "client", .way = ALLOCATE};
    struct child client, helper;
    FD_AUTO int fd = -1;
    int of_client, of_helper;

    begin();
    assert_true(cgroup_write("client", "memory.max", LIMIT));
    child_start(&client, live_in_the_group, NULL);
    child_hear(&client);
    filling.fd = fd = memfd_new(SIZE, 0);
    child_start(&helper, fill, &filling);
    of_helper = child_wait(&helper);
    assert_true(cgroup_stat("client", "memory.events", "oom_kill") >= 1);
    assert_true(WAIT_UNTIL(waitpid(client.pid, &of_client, WNOHANG) == client.pid));
    print_message("client: status 0x%x, helper: status 0x%x, %d killed\n", (unsigned)of_client, (unsigned)of_helper,
                  (int)cgroup_stat("client", "memory.events", "oom_kill"));
    assert_true(WIFSIGNALED(of_client));
}

/* ---- huge pages -------------------------------------------------------------------------------------------------- */

/* Huge pages of the system are no memory to these limits, unless cgroup2 is mounted with memory_hugetlb_accounting. */
static void huge_pages_are_not_charged(void **state)
{
    size_t huge = huge_page_size();
    FD_AUTO int fd = -1;
    struct filling filling = {.group = "client", .way = ALLOCATE};

    begin();
    if (!huge || huge > SIZE)
        test_skip("huge pages are %zu bytes here", huge);
    settings_huge_pages(huge, SIZE / huge);
    assert_true(cgroup_write("client", "memory.max", LIMIT));
    filling.fd = fd = memfd_new(SIZE, MFD_HUGETLB);
    child_run(fill, &filling);
    assert_int_equal(memfd_allocated(fd), SIZE);
    assert_true(cgroup_number("client", "memory.current") < SLACK);
}

static int remove_all(void **state)
{
    (void)settings_release(state);
    return cgroup_remove(state);
}

#define at_groups(function) cmocka_unit_test_teardown(function, remove_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_groups(who_allocates_pays),
        at_groups(of_what_nobody_allocated_the_first_who_touches_pays),
        at_groups(what_was_punched_is_paid_by_the_next_who_touches),
        at_groups(a_charge_stays_where_it_is),
        at_groups(what_outlives_its_group_is_paid_by_those_above),
        at_groups(beyond_the_limit_the_process_is_killed),
        at_groups(only_root_may_enter_the_group_of_others),
        at_groups(a_helper_there_has_the_client_killed),
        at_groups(huge_pages_are_not_charged),
    };

    return test_run(tests, NULL, NULL);
}
