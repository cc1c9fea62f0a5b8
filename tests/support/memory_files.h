/* SPDX-License-Identifier: Apache-2.0 */
/* The memory files that processes of a broker have open, and what the kernel has allocated for each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How the kernel shows a buffer's file; an id follows. The broker's own records are in files of other names. */
#define MEMORY_FILE "/memfd:memoryd-"

struct memory_file {
    ino_t inode;
    uint64_t bytes;
};

struct memory_files {
    struct memory_file *of; /* by inode, each once */
    size_t n;
};

/* Adds those of a process; one that has gone has none. False: this user may not look. */
bool memory_files_add(struct memory_files *files, pid_t pid);
/* NULL: none of them is this one. */
const struct memory_file *memory_files_find(const struct memory_files *files, ino_t inode);
uint64_t memory_files_bytes(const struct memory_files *files);
void memory_files_deinit(struct memory_files *files);
