/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/memory_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

static int compare_inodes(const void *a, const void *b)
{
    ino_t x = ((const struct memory_file *)a)->inode, y = ((const struct memory_file *)b)->inode;

    return x < y ? -1 : x > y;
}

static void sort_and_join(struct memory_files *files)
{
    size_t n = 0;

    if (files->n)
        qsort(files->of, files->n, sizeof(*files->of), compare_inodes);
    for (size_t i = 0; i < files->n; i++)
        if (!n || files->of[n - 1].inode != files->of[i].inode)
            files->of[n++] = files->of[i];
    files->n = n;
}

bool memory_files_add(struct memory_files *files, pid_t pid)
{
    char path[64], target[256];
    struct dirent *entry;
    struct stat st;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    if (dir == NULL)
        return errno != EACCES && errno != EPERM;
    while ((entry = readdir(dir)) != NULL) {
        ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        if (size < 0)
            continue;
        target[size] = '\0';
        if (strncmp(target, MEMORY_FILE, strlen(MEMORY_FILE)) != 0 || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0)
            continue;
        files->of = reallocarray(files->of, files->n + 1, sizeof(*files->of));
        assert_non_null(files->of);
        files->of[files->n++] = (struct memory_file){.inode = st.st_ino, .bytes = (uint64_t)st.st_blocks * 512};
    }
    closedir(dir);
    sort_and_join(files);
    return true;
}

const struct memory_file *memory_files_find(const struct memory_files *files, ino_t inode)
{
    struct memory_file wanted = {.inode = inode};

    return files->n ? bsearch(&wanted, files->of, files->n, sizeof(wanted), compare_inodes) : NULL;
}

uint64_t memory_files_bytes(const struct memory_files *files)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < files->n; i++)
        bytes += files->of[i].bytes;
    return bytes;
}

void memory_files_deinit(struct memory_files *files)
{
    free(files->of);
    *files = (struct memory_files){.n = 0};
}
