/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/cgroup.h"

#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS_MAX 8

static struct {
    const char *root;
    bool are_v1;
    char own[64]; /* "/memoryd-PID" */
    char made[GROUPS_MAX][256];
    unsigned n_made;
} groups;

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool write_file(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done;
    int err;

    if (fd < 0)
        return false;
    done = write(fd, value, strlen(value)) >= 0;
    err = errno;
    close(fd);
    errno = err;
    return done;
}

const char *cgroup_path(const char *name, char path[static 256])
{
    (void)snprintf(path, 256, "%s%s%s", groups.own, *name ? "/" : "", name);
    return path;
}

const char *cgroup_folder(const char *name, char path[static 256])
{
    (void)snprintf(path, 256, "%s%s%s%s", groups.root, groups.own, *name ? "/" : "", name);
    return path;
}

bool cgroup_write(const char *name, const char *file, const char *value)
{
    char folder[256], path[300];

    (void)snprintf(path, sizeof(path), "%s/%s", cgroup_folder(name, folder), file);
    return write_file(path, value);
}

bool cgroup_put(const char *name, pid_t pid)
{
    char path[300], text[16];

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    if (name)
        return cgroup_write(name, "cgroup.procs", text);
    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", groups.root);
    return write_file(path, text);
}

static FILE *open_to_read(const char *name, const char *file)
{
    char folder[256], path[300];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", cgroup_folder(name, folder), file);
    f = fopen(path, "re");
    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    return f;
}

uint64_t cgroup_number(const char *name, const char *file)
{
    uint64_t number = UINT64_MAX;
    FILE *f = open_to_read(name, file);

    if (fscanf(f, "%" SCNu64, &number) != 1)
        number = UINT64_MAX;
    fclose(f);
    return number;
}

uint64_t cgroup_stat(const char *name, const char *file, const char *key)
{
    FILE *f = open_to_read(name, file);
    char word[64];
    uint64_t number;

    while (fscanf(f, "%63s %" SCNu64, word, &number) == 2)
        if (!strcmp(word, key)) {
            fclose(f);
            return number;
        }
    fclose(f);
    fail_msg("%s has no line %s", file, key);
    return 0;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* Version 2, as the kernel of this machine has it: alone, or beside version 1. */
static const char *find_root(void)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
        if (access(path, W_OK) == 0)
            return roots[i];
    }
    test_skip("no control groups of version 2 that this user may make");
}

void cgroup_make(const char *name)
{
    char path[256];

    assert_true(groups.n_made < GROUPS_MAX);
    if (mkdir(cgroup_folder(name, path), 0755) < 0)
        test_skip("no control group can be made: %s", strerror(errno));
    memcpy(groups.made[groups.n_made++], path, sizeof(path));
}

void cgroup_remove_one(const char *name)
{
    char path[256];

    cgroup_folder(name, path);
    assert_true(WAIT_UNTIL(rmdir(path) == 0));
    for (unsigned i = 0; i < groups.n_made; i++)
        if (!strcmp(groups.made[i], path))
            memmove(groups.made[i], groups.made[--groups.n_made], sizeof(path));
}

void cgroup_begin(const char *suffix)
{
    groups.root = find_root();
    groups.n_made = 0;
    (void)snprintf(groups.own, sizeof(groups.own), "/memoryd-%d%s", (int)getpid(), suffix);
    cgroup_make("");
}

void cgroup_begin_memory(void)
{
    char path[300];

    cgroup_begin("");
    (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", groups.root);
    if (!write_file(path, "+memory") || !cgroup_write("", "cgroup.subtree_control", "+memory"))
        test_skip("no limits of memory by control groups of version 2 here: make check-vm has them");
}

void cgroup_begin_memory_of_any(void)
{
    static const char v1[] = "/sys/fs/cgroup/memory";

    groups.are_v1 = access("/sys/fs/cgroup/memory/cgroup.procs", W_OK) == 0;
    if (!groups.are_v1) {
        cgroup_begin_memory();
        return;
    }
    groups.root = v1;
    groups.n_made = 0;
    (void)snprintf(groups.own, sizeof(groups.own), "/memoryd-%d", (int)getpid());
    cgroup_make("");
}

bool cgroup_is_named(const char *name, pid_t pid)
{
    char path[256], file[64], line[PATH_MAX];
    bool found = false;
    FILE *f;

    cgroup_path(name, path);
    (void)snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
    f = fopen(file, "re");
    while (!found && f && fgets(line, sizeof(line), f)) {
        const char *group = strstr(line, ":/");

        line[strcspn(line, "\n")] = '\0';
        found = group && !strcmp(group + 1, path);
    }
    if (f)
        fclose(f);
    return found;
}

static bool is_there_swap(void)
{
    char line[PATH_MAX];
    FILE *f = fopen("/proc/swaps", "re");
    int lines = 0;

    while (f && lines < 2 && fgets(line, sizeof(line), f))
        lines++;
    if (f)
        fclose(f);
    return lines > 1; /* after the heading */
}

/* `file` is missing where swap is not counted, which is no matter where there is none. */
static bool limit_swap(const char *name, const char *file, const char *value)
{
    int err;

    if (cgroup_write(name, file, value))
        return true;
    err = errno;
    if (!is_there_swap())
        return true;
    errno = err;
    return false;
}

bool cgroup_limit_memory(const char *name, uint64_t bytes)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
    if (groups.are_v1)
        return cgroup_write(name, "memory.limit_in_bytes", text) &&
               limit_swap(name, "memory.memsw.limit_in_bytes", text);
    return limit_swap(name, "memory.swap.max", "0") && cgroup_write(name, "memory.max", text);
}

/* Also of a test that failed, whose child is still in one. */
int cgroup_remove(void **state)
{
    (void)state;
    if (groups.n_made) {
        (void)cgroup_put(NULL, 0);
        (void)cgroup_write("", "cgroup.kill", "1");
    }
    for (; groups.n_made; groups.n_made--) {
        const char *path = groups.made[groups.n_made - 1];

        if (!WAIT_UNTIL(rmdir(path) == 0))
            return -1;
    }
    return 0;
}
