/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with T: grants, the question whether others have the memory, sealing, giving pages back. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mem/commit.h"
#include "mem/handle.h"
#include "mem/watch.h"
#include "proto/status.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/mem/faults.h"

static struct topology machine;

static int setup(void **state)
{
    signal(SIGIO, SIG_IGN);
    return topology_load(&machine, 0);
}

static int buffer(size_t size, bool publishable)
{
    struct commit c;
    const struct plan_brief brief = {.bytes = size, .n_nodes = 1, .node = machine.nodes[0].number};

    commit_init(&c);
    c.topology = &machine;
    c.pages = PAGES_BASE;
    c.page_size = page_size();
    c.publishable = publishable;
    plan_unpack(&c.plan, &brief, NULL);
    if (commit_run(&c))
        fail_msg("%s", c.problem.sentence);
    return c.fd;
}

static bool sole(int t)
{
    struct problem problem = PROBLEM_NULL;
    bool is = false;

    if (handle_sole(t, &is, &problem))
        fail_msg("%s", problem.sentence);
    return is;
}

static void I2_a_reader_cannot_write(void **state)
{
    int t = buffer(MIB, false);
    int reader = -1;
    int writer = -1;
    void *map;

    assert_int_equal(handle_reopen(t, false, &reader, NULL), 0);
    assert_int_equal(handle_reopen(t, true, &writer, NULL), 0);
    assert_int_equal(fcntl(reader, F_GETFD), FD_CLOEXEC);
    assert_map_errno(map_shared(reader, MIB, PROT_READ | PROT_WRITE), EACCES);
    map = map_shared(reader, MIB, PROT_READ);
    assert_mapped(map);
    assert_errno(mprotect(map, MIB, PROT_READ | PROT_WRITE), EACCES);
    assert_errno(write(reader, "x", 1), EBADF);
    munmap(map, MIB);
    map = map_shared(writer, MIB, PROT_READ | PROT_WRITE);
    assert_mapped(map);
    memset(map, 1, MIB);
    munmap(map, MIB);
    close(reader);
    close(writer);
    close(t);
}

static void I4_the_kernel_tells_whether_others_have_it(void **state)
{
    int t = buffer(MIB, false);
    int out = -1;
    int pair[2];
    void *map;

    assert_true(sole(t));
    assert_int_equal(handle_reopen(t, false, &out, NULL), 0);
    assert_false(sole(t));
    map = map_shared(out, MIB, PROT_READ);
    assert_mapped(map);
    close(out);
    assert_false(sole(t));
    munmap(map, MIB);
    assert_true(sole(t));

    /* in flight, with nobody having it open */
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    assert_int_equal(handle_reopen(t, true, &out, NULL), 0);
    assert_ok((int)fd_send_one(pair[0], out));
    close(out);
    assert_false(sole(t));
    close(pair[0]);
    close(pair[1]);
    assert_true(WAIT_UNTIL(sole(t)));
    close(t);
}

struct seen {
    int wd;
    unsigned closed;
    unsigned gone;
    unsigned other;
    unsigned overflow;
};

static void see(void *userdata, int wd, enum watch_event event)
{
    struct seen *seen = userdata;

    if (event == WATCH_OVERFLOW)
        seen->overflow++;
    else if (wd != seen->wd)
        seen->other++;
    else if (event == WATCH_CLOSED)
        seen->closed++;
    else
        seen->gone++;
}

static void hold_a_mapping(int channel, void *context)
{
    int *fd = context;

    CHECK(mmap(NULL, MIB, PROT_READ, MAP_SHARED, *fd, 0) != MAP_FAILED);
    close(*fd);
    tell(channel);
    hear(channel);
}

static void I4_a_killed_holder_is_noticed(void **state)
{
    struct watch watch = WATCH_NULL;
    struct seen seen = {0};
    struct child child;
    int t = buffer(MIB, false);
    int out = -1;

    assert_int_equal(watch_init(&watch), 0);
    assert_int_equal(watch_add(&watch, t, &seen.wd, NULL), 0);
    assert_true(sole(t));
    assert_true(stays_quiet(watch.fd)); /* asking makes no events */
    assert_int_equal(handle_reopen(t, false, &out, NULL), 0);
    child_start(&child, hold_a_mapping, &out);
    child_hear(&child);
    close(out);
    assert_false(sole(t));
    child_kill(&child);
    assert_true(wait_readable(watch.fd));
    assert_int_equal(watch_read(&watch, see, &seen), 0);
    assert_int_equal(seen.closed, 1);
    assert_true(sole(t));
    close(t);
    assert_true(wait_readable(watch.fd));
    assert_int_equal(watch_read(&watch, see, &seen), 0);
    assert_int_equal(seen.gone, 1);
    assert_int_equal(watch_read(&watch, see, &seen), 0);
    assert_int_equal(seen.other + seen.overflow, 0);
    watch_deinit(&watch);
    watch_deinit(&watch);
}

static void events_are_read_in_bounded_pieces(void **state)
{
    enum { N = 600 };
    struct watch watch = WATCH_NULL;
    struct seen seen = {0};
    int fds[N];
    int first;

    assert_int_equal(watch_init(&watch), 0);
    for (int i = 0; i < N; i++) {
        fds[i] = memfd_new(page_size(), 0);
        assert_int_equal(watch_add(&watch, fds[i], &seen.wd, NULL), 0);
    }
    for (int i = 0; i < N; i++)
        close(fd_reopen(fds[i], O_RDONLY));
    assert_int_equal(watch_read(&watch, see, &seen), 0);
    first = (int)(seen.closed + seen.other);
    assert_in_range(first, 1, N - 1);
    while (wait_for_events(watch.fd, POLLIN, 0))
        assert_int_equal(watch_read(&watch, see, &seen), 0);
    assert_int_equal(seen.closed + seen.other, N);
    assert_int_equal(seen.closed, 1);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    watch_deinit(&watch);
}

static void I2_a_published_buffer_stays_as_it_is(void **state)
{
    int t = buffer(MIB, true);
    int writer = -1;
    int out = -1;
    void *map;
    struct problem problem = PROBLEM_NULL;

    assert_int_equal(pwrite(t, "for good", 8, 0), 8);
    assert_int_equal(handle_reopen(t, true, &writer, NULL), 0);
    map = map_shared(writer, MIB, PROT_READ | PROT_WRITE);
    assert_mapped(map);
    assert_int_equal(handle_publish(t, false, &problem), STATUS_BUSY);
    assert_true(strlen(problem.sentence) > 10);
    munmap(map, MIB);
    assert_int_equal(handle_publish(t, false, NULL), 0);
    assert_int_equal(handle_publish(t, false, NULL), 0);
    assert_int_equal(handle_publish(t, true, NULL), 0);
    assert_errno(pwrite(writer, "x", 1, 0), EPERM);
    assert_errno(pwrite(t, "x", 1, 0), EPERM);
    assert_map_errno(map_shared(writer, MIB, PROT_READ | PROT_WRITE), EPERM);
    assert_int_equal(handle_discard(t, 0, 0, NULL, NULL), STATUS_PUBLISHED);
    assert_int_equal(handle_reopen(t, false, &out, NULL), 0);
    close(out);
    close(writer);
    assert_true(sole(t));
    close(t);
}

static void publishing_has_its_terms(void **state)
{
    int sealed = buffer(MIB, false);
    int t = buffer(MIB, true);
    char *map = map_shared(t, MIB, PROT_READ | PROT_WRITE);

    assert_mapped(map);
    assert_int_equal(handle_publish(sealed, false, NULL), STATUS_NOT_SUPPORTED);
    assert_int_equal(handle_publish(t, true, NULL), 0);
    map[0] = 1; /* who wrote goes on, nobody begins */
    assert_map_errno(map_shared(t, MIB, PROT_READ | PROT_WRITE), EPERM);
    assert_int_equal(handle_publish(t, true, NULL), 0);
    assert_int_equal(handle_publish(t, false, NULL), STATUS_NOT_SUPPORTED);
    munmap(map, MIB);
    close(t);
    close(sealed);
}

static void discarded_pages_are_given_back(void **state)
{
    size_t size = 150 * MIB;
    int t = buffer(size, false);
    atomic_bool cancel = false;
    char byte = 1;

    assert_int_equal(pwrite(t, "x", 1, 0), 1);
    assert_int_equal(handle_discard(t, MIB, 2 * MIB, &cancel, NULL), 0);
    assert_int_equal(memfd_allocated(t), size - 2 * MIB);
    atomic_store(&cancel, true);
    assert_int_equal(handle_discard(t, 0, 0, &cancel, NULL), STATUS_TIMED_OUT);
    assert_int_equal(memfd_allocated(t), size - 2 * MIB);
    assert_int_equal(handle_discard(t, size + MIB, MIB, NULL, NULL), 0);
    assert_int_equal(handle_discard(t, 4 * MIB, UINT64_MAX, NULL, NULL), 0);
    assert_int_equal(memfd_allocated(t), 2 * MIB);
    assert_int_equal(handle_discard(t, 0, 0, NULL, NULL), 0);
    assert_int_equal(memfd_allocated(t), 0);
    assert_int_equal(pread(t, &byte, 1, 0), 1);
    assert_int_equal(byte, 0);
    close(t);
}

static void strangers_are_no_candidates(void **state)
{
    struct handle_identity identity, of_t;
    struct handle_shown shown;
    int t = buffer(MIB, false);
    int out = -1;
    int by_path;
    int pair[2];
    FD_AUTO int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(handle_identity(t, &of_t), 0);
    assert_int_equal(of_t.size, MIB);
    assert_int_equal(of_t.allocated, MIB);
    assert_int_equal(handle_reopen(t, false, &out, NULL), 0);
    assert_int_equal(handle_show(out, geteuid(), &shown, NULL), 0);
    assert_false(shown.writable);
    assert_true(shown.identity.ino == of_t.ino && shown.identity.dev == of_t.dev);
    assert_int_equal(handle_show(t, geteuid(), &shown, NULL), 0);
    assert_true(shown.writable);
    assert_int_equal(handle_show(t, geteuid() + 1, &shown, NULL), STATUS_FD_FOREIGN);
    by_path = fd_reopen(t, O_PATH);
    assert_int_equal(handle_show(by_path, geteuid(), &shown, NULL), STATUS_FD_FOREIGN);
    assert_int_equal(handle_show(null, geteuid(), &shown, NULL), STATUS_FD_FOREIGN);
    assert_int_equal(handle_show(-1, geteuid(), &shown, NULL), STATUS_FD_FOREIGN);
    assert_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    assert_int_equal(handle_show(pair[0], geteuid(), &shown, NULL), STATUS_FD_FOREIGN);
    assert_int_equal(handle_identity(-1, &identity), -EBADF);
    close(pair[0]);
    close(pair[1]);
    close(by_path);
    close(out);
    close(t);
}

static void faults_have_their_status(void **state)
{
    unsigned fds = fd_count();
    struct watch watch = WATCH_NULL;
    int t = buffer(MIB, true);
    int fd = -1;
    int wd = -1;
    bool is = true;

    fault_set(FAULT_reopen, 1, EMFILE);
    assert_int_equal(handle_reopen(t, true, &fd, NULL), STATUS_NO_DESCRIPTORS);
    fault_set(FAULT_reopen, 1, ENOMEM);
    assert_int_equal(handle_reopen(t, true, &fd, NULL), STATUS_NO_MEMORY);
    fault_set(FAULT_reopen, 1, ENOENT);
    assert_int_equal(handle_reopen(t, true, &fd, NULL), STATUS_NOT_SUPPORTED);
    assert_int_equal(fd, -1);
    fault_set(FAULT_set_lease, 1, EACCES);
    assert_int_equal(handle_sole(t, &is, NULL), STATUS_NOT_SUPPORTED);
    fault_set(FAULT_get_seals, 1, EINVAL);
    assert_int_equal(handle_publish(t, false, NULL), STATUS_NOT_SUPPORTED);
    fault_set(FAULT_add_seals, 1, EINVAL);
    assert_int_equal(handle_publish(t, false, NULL), STATUS_NOT_SUPPORTED);
    fault_set(FAULT_fallocate, 1, EOPNOTSUPP);
    assert_int_equal(handle_discard(t, 0, 0, NULL, NULL), STATUS_NOT_SUPPORTED);
    fault_set(FAULT_fallocate, 1, EINTR);
    assert_int_equal(handle_discard(t, 0, 0, NULL, NULL), 0);
    fault_set(FAULT_inotify_init, 1, EMFILE);
    assert_int_equal(watch_init(&watch), -EMFILE);
    assert_int_equal(watch.fd, -1);
    fault_clear(NULL);
    assert_int_equal(watch_init(&watch), 0);
    fault_set(FAULT_inotify_add, 1, ENOSPC);
    assert_int_equal(watch_add(&watch, t, &wd, NULL), STATUS_LIMIT);
    fault_set(FAULT_inotify_add, 1, ENOMEM);
    assert_int_equal(watch_add(&watch, t, &wd, NULL), STATUS_NO_MEMORY);
    assert_int_equal(wd, -1);
    fault_set(FAULT_read, 1, EIO);
    assert_int_equal(watch_read(&watch, see, &(struct seen){0}), -EIO);
    fault_clear(NULL);
    watch_deinit(&watch);
    close(t);
    assert_int_equal(fd_count(), fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I2_a_reader_cannot_write),
        cmocka_unit_test(I2_a_published_buffer_stays_as_it_is),
        cmocka_unit_test(I4_the_kernel_tells_whether_others_have_it),
        cmocka_unit_test(I4_a_killed_holder_is_noticed),
        cmocka_unit_test(events_are_read_in_bounded_pieces),
        cmocka_unit_test(publishing_has_its_terms),
        cmocka_unit_test(discarded_pages_are_given_back),
        cmocka_unit_test(strangers_are_no_candidates),
        cmocka_unit_test_teardown(faults_have_their_status, fault_clear),
    };

    return test_run(tests, setup, NULL);
}
