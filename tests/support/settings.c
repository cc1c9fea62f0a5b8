/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/settings.h"

#include "tests/support/memory.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCK_DIRECTORY "/proc/sys/vm"
#define SAVED_MAX      32

struct saved {
    char path[160];
    char value[96];
};

static int lock_fd = -1;
static int guardian_fd = -1;
static pid_t guardian_pid;
static struct saved saved[SAVED_MAX];
static unsigned n_saved;

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool ok;

    if (file == NULL)
        return false;
    ok = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

static bool write_line(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = write(fd, value, strlen(value));
    close(fd);
    return n == (ssize_t)strlen(value);
}

static long read_number(const char *folder, const char *name)
{
    char path[192], line[32];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return read_line(path, line, sizeof(line)) ? strtol(line, NULL, 10) : 0;
}

/*
 * The number of huge pages that somebody has set. What is read from nr_hugepages has those in it as well that are
 * only there until they are free ("surplus"): pages of a process that is ending, say, for whom the last test set
 * them aside.
 */
static void leave_surplus_out(const char *path, char *line, size_t size)
{
    const char *slash = strrchr(path, '/');
    char folder[160];
    long pages, surplus;

    if (slash == NULL || strcmp(slash, "/nr_hugepages") != 0)
        return;
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    do {
        pages = read_number(folder, "nr_hugepages");
        surplus = read_number(folder, "surplus_hugepages");
    } while (read_number(folder, "nr_hugepages") != pages);
    snprintf(line, size, "%ld", pages - surplus);
}

/* Of a choice like "always [madvise] never", the one in brackets. */
static void choose(char *line)
{
    char *open_bracket = strchr(line, '[');
    char *close_bracket = open_bracket != NULL ? strchr(open_bracket, ']') : NULL;

    if (close_bracket == NULL)
        return;
    *close_bracket = '\0';
    memmove(line, open_bracket + 1, strlen(open_bracket + 1) + 1);
}

/* Learns old values, and puts them back on a message's request or when the test program is gone. */
_Noreturn static void be_the_guardian(int channel, int test_program)
{
    struct saved message;
    bool asked = false;

    setsid(); /* who kills the test program's process group does not mean us */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGALRM, SIG_IGN);
    while (!asked) {
        struct pollfd polled[] = {
            {.fd = channel, .events = POLLIN},
            {.fd = test_program, .events = POLLIN},
        };

        if (poll(polled, 2, -1) < 0)
            continue;
        if (recv(channel, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
            if (message.path[0] == '\0')
                asked = true;
            else if (n_saved < SAVED_MAX)
                saved[n_saved++] = message;
            (void)!send(channel, "", 1, MSG_NOSIGNAL);
        } else if (polled[1].revents != 0) {
            asked = true;
        }
    }
    while (n_saved > 0) {
        n_saved--;
        if (!write_line(saved[n_saved].path, saved[n_saved].value))
            fprintf(stderr, "could not put %s back to %s\n", saved[n_saved].path, saved[n_saved].value);
    }
    flock(lock_fd, LOCK_UN);
    _exit(EXIT_SUCCESS);
}

static void tell_the_guardian(const struct saved *message)
{
    char byte;

    assert_int_equal(send(guardian_fd, message, sizeof(*message), MSG_NOSIGNAL), sizeof(*message));
    assert_true(wait_readable(guardian_fd));
    assert_int_equal(recv(guardian_fd, &byte, 1, 0), 1);
}

void settings_hold(void)
{
    int64_t end = wait_now_ms() + PATIENCE_MS;
    int ends[2], self;

    if (lock_fd >= 0)
        return;
    if (geteuid() != 0)
        test_skip("changing the machine's memory settings needs root");
    lock_fd = open(LOCK_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_ok(lock_fd);
    while (flock(lock_fd, LOCK_EX | LOCK_NB) < 0) {
        assert_int_equal(errno, EWOULDBLOCK);
        if (wait_now_ms() > end) {
            close(lock_fd);
            lock_fd = -1;
            test_skip("another program has held the lock on %s for too long", LOCK_DIRECTORY);
        }
        wait_a_moment();
    }

    self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (self < 0 && errno == ENOSYS) {
        close(lock_fd);
        lock_fd = -1;
        test_skip("no pidfd for the guardian of the settings: is this valgrind?");
    }
    assert_ok(self);
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    fflush(NULL);
    n_saved = 0; /* the guardian inherits the list, and former ones are not its business */
    guardian_pid = fork();
    assert_true(guardian_pid >= 0);
    if (guardian_pid == 0) {
        close(ends[0]);
        be_the_guardian(ends[1], self);
    }
    close(ends[1]);
    close(self);
    guardian_fd = ends[0];
}

int settings_release(void **state)
{
    struct saved over = {.path = ""};

    if (lock_fd < 0)
        return 0;
    tell_the_guardian(&over);
    waitpid(guardian_pid, NULL, 0);
    close(guardian_fd);
    close(lock_fd);
    guardian_fd = lock_fd = -1;
    return 0;
}

void settings_write(const char *path, const char *value)
{
    struct saved old = {0};
    bool known = false;

    settings_hold();
    assert_true(snprintf(old.path, sizeof(old.path), "%s", path) < (int)sizeof(old.path));
    if (!read_line(path, old.value, sizeof(old.value)))
        test_skip("this kernel has no %s", path);
    choose(old.value);
    leave_surplus_out(path, old.value, sizeof(old.value));
    if (strcmp(old.value, value) == 0)
        return;
    for (unsigned i = 0; i < n_saved; i++)
        known |= strcmp(saved[i].path, path) == 0;
    if (!known) {
        assert_true(n_saved < SAVED_MAX);
        saved[n_saved++] = old;
        tell_the_guardian(&old);
    }
    if (!write_line(path, value))
        test_skip("cannot set %s to %s: %s", path, value, strerror(errno));
}

void settings_huge_pages_on_node(size_t size, unsigned n, int node)
{
    char global[96], folder[128], path[160], value[32];
    long available;

    if (size == 0)
        test_skip("this kernel has no huge pages");
    snprintf(global, sizeof(global), "/sys/kernel/mm/hugepages/hugepages-%zukB", size / KIB);
    if (node < 0)
        snprintf(folder, sizeof(folder), "%s", global);
    else
        snprintf(folder, sizeof(folder), "/sys/devices/system/node/node%d/hugepages/hugepages-%zukB", node, size / KIB);
    snprintf(path, sizeof(path), "%s/nr_overcommit_hugepages", global);
    settings_write(path, "0");

    /* Promised ("reserved") pages are free, but not for us. They are not counted by node. */
    settings_hold();
    available = read_number(folder, "free_hugepages") - read_number(folder, "resv_hugepages");
    snprintf(value, sizeof(value), "%ld", read_number(folder, "nr_hugepages") - available + n);
    snprintf(path, sizeof(path), "%s/nr_hugepages", folder);
    settings_write(path, value);
    available = read_number(folder, "free_hugepages") - read_number(folder, "resv_hugepages");
    if (available != (long)n)
        test_skip("wanted %u huge pages of %zu KiB, the machine gave %ld", n, size / KIB, available);
}

void settings_huge_pages(size_t size, unsigned n)
{
    settings_huge_pages_on_node(size, n, -1);
}

void settings_shmem_thp(void)
{
    if (thp_size() == 0)
        test_skip("this kernel has no transparent huge pages");
    settings_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "advise");
    settings_write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
}
