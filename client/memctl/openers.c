/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See openers.h. What is open somewhere need not be of a file system that answers, so no file is asked for anything:
 * /proc has paths and inode numbers of its own.
 */
#include "memctl/openers.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

struct search {
    json_t *rows;
    const char *key;
    pid_t broker, keeper;
    uint64_t mount; /* of memory files */
    pid_t pid;      /* whom it looks into */
    bool no_memory;
};

/* What is behind the key and blanks in the line that begins with it; empty: there is none. */
static void openers_value_in(const char *path, const char *key, char *value, size_t size)
{
    _cleanup_fclose_ FILE *file = fopen(path, "re");
    char line[256];

    value[0] = '\0';
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, strlen(key)))
            continue;
        (void)snprintf(value, size, "%s", line + strlen(key) + strspn(line + strlen(key), " \t"));
        return;
    }
}

static uint64_t openers_number_in(const char *path, const char *key)
{
    char value[24];

    openers_value_in(path, key, value, sizeof(value));
    return strtoull(value, NULL, 10);
}

static bool openers_is_memory(const char *path)
{
    return !strncmp(path, "/memfd:", strlen("/memfd:")) || !strncmp(path, "/dmabuf:", strlen("/dmabuf:"));
}

/* The process has this inode. */
static void openers_note(struct search *search, uint64_t inode)
{
    size_t index, n;
    json_t *row;

    if (!inode)
        return;
    json_array_foreach(search->rows, index, row) {
        json_t *list = json_object_get(row, search->key);

        if ((uint64_t)json_integer_value(json_object_get(row, "inode")) != inode)
            continue;
        n = json_array_size(list);
        if (!n || json_integer_value(json_array_get(list, n - 1)) != search->pid)
            search->no_memory |= json_array_append_new(list, json_integer(search->pid)) != 0;
    }
}

/*
 * One that cannot be stopped in executing a program, say: who reads where its descriptors lead, what it has mapped, or
 * its stat, waits for it. The kernel waits for nobody to tell its status, nor what there is to say of each descriptor.
 */
static bool openers_hangs(pid_t pid)
{
    char path[64], state[8];

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    openers_value_in(path, "State:", state, sizeof(state));
    return !state[0] || state[0] == 'D';
}

/* The mount that memory files are on, as the kernel has numbered it; 0: none was to be had. */
static uint64_t openers_memory_mount(void)
{
    _cleanup_close_ int fd = memfd_create("memctl", MFD_CLOEXEC);
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    return fd < 0 ? 0 : openers_number_in(path, "mnt_id:");
}

static void openers_search_descriptors(struct search *search, bool hangs)
{
    char path[300], target[PATH_MAX];
    struct dirent *entry;
    DIR *folder;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)search->pid, hangs ? "fdinfo" : "fd");
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        (void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)search->pid, entry->d_name);
        if (!hangs) {
            n = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
            target[n > 0 ? n : 0] = '\0';
        }
        if (hangs ? openers_number_in(path, "mnt_id:") == search->mount : openers_is_memory(target))
            openers_note(search, openers_number_in(path, "ino:"));
    }
    if (folder)
        (void)closedir(folder);
}

/* What is behind so many fields of a line. */
static const char *openers_skip(const char *line, unsigned fields)
{
    while (fields--) {
        line += strcspn(line, " \n");
        line += strspn(line, " ");
    }
    return line;
}

static void openers_search_mappings(struct search *search)
{
    _cleanup_fclose_ FILE *maps = NULL;
    char path[64], line[PATH_MAX + 128];

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)search->pid);
    maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        /* address, access, offset and device before it */
        const char *inode = openers_skip(line, 4);

        if (openers_is_memory(openers_skip(inode, 1)))
            openers_note(search, strtoull(inode, NULL, 10));
    }
}

/* It has what the broker has, and has nothing of its own. Whoever likes has its name, but not its parent. */
static bool openers_is_cleaner(const struct search *search)
{
    char path[64], name[32] = "";
    _cleanup_fclose_ FILE *file = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)search->pid);
    file = fopen(path, "re");
    if (!file || !fgets(name, sizeof(name), file) || strcmp(name, "memoryd-cleaner\n") != 0)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)search->pid);
    return openers_number_in(path, "PPid:") == (uint64_t)search->broker;
}

int openers_add(json_t *rows, const char *key, pid_t broker, pid_t keeper)
{
    struct search search = {
        .rows = rows, .key = key, .broker = broker, .keeper = keeper, .mount = openers_memory_mount()};
    struct dirent *entry;
    size_t index;
    bool hangs;
    json_t *row;
    DIR *proc;

    json_array_foreach(rows, index, row)
        if (json_object_set_new(row, key, json_array()))
            return -ENOMEM;
    proc = opendir("/proc");
    while (proc && !search.no_memory && (entry = readdir(proc))) {
        search.pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (search.pid <= 0 || search.pid == broker || search.pid == keeper || openers_is_cleaner(&search))
            continue;
        hangs = openers_hangs(search.pid);
        openers_search_descriptors(&search, hangs);
        if (!hangs)
            openers_search_mappings(&search);
    }
    if (proc)
        (void)closedir(proc);
    return search.no_memory ? -ENOMEM : 0;
}
