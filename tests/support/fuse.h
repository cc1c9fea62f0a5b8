/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a file system in user space whose server, a child of the test, does not answer: closing it waits in the
 * kernel for as long as that server lives, and no signal ends it. For root only.
 *
 * The file system is mounted in a namespace of the server's own, so it goes when that ends. It ends with the test
 * program, too, if that crashes, and lets go of all that hangs.
 */
#pragma once

#include "tests/support/child.h"

struct fuse {
    struct child server; /* .pid 0: there is none */
    struct fuse_counts *counts;
    bool caches; /* the kernel keeps what is written: closing does not wait for the server as long as another has the
                  * file open, but the last one, even if only of a message that is dropped, writes it, and waits */
};

#define FUSE_NULL ((struct fuse){.server = {.channel = -1}})

/* Skips where there is no FUSE. */
void fuse_start(struct fuse *fuse);
/* A new description of the file, for reading and writing; -1 and errno. CLOEXEC. Not in a process that executes another
 * program, or ends, before fuse_stop(): that waits, too. */
int fuse_open(const struct fuse *fuse);
/* How many closes, reads, and writes wait. */
unsigned fuse_flushes(const struct fuse *fuse);
unsigned fuse_writes(const struct fuse *fuse);
unsigned fuse_reads(const struct fuse *fuse);
/* Of a file that `caches`: leaves something to be written, by the next close that is the last one of a description. */
void fuse_write(int fd);
/* Whoever waits gets an error and goes on. Does nothing a second time. */
void fuse_stop(struct fuse *fuse);
