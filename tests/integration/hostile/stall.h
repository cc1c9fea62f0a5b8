/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may write to a file can keep the lock of its inode for as long as he likes: in a write() from memory whose page
 * does not come. Then whoever wants that lock sleeps and cannot be killed. Here the page is one of userfaultfd, which
 * needs a privilege (or /dev/userfaultfd); any user has the like in a mapped file of a FUSE file system of his own.
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>

struct stall {
    int pages; /* the userfaultfd */
    char *page;
    pthread_t thread;
    int fd;
    off_t at;
};

/* In a child that is still root; skips where the kernel has none. */
void stall_prepare(struct stall *stall);
/* Begins to write 8 zeros there; when this returns, the lock is taken. The descriptor stays the caller's. */
void stall_begin(struct stall *stall, int fd, off_t at);
/* The page comes, and the write ends. It may begin again. */
void stall_end(struct stall *stall);
