/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as the OS provider sees it: a table, so that tests can let it fail. */
#pragma once

#include <stddef.h>

struct os_calls {
    void *(*mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t length);
    int (*madvise)(void *address, size_t length, int advice);
    long (*mbind)(void *address, unsigned long length, int mode, const unsigned long *nodes, unsigned long max,
                  unsigned flags);
    long (*get_mempolicy)(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned long flags);
};

/* Never NULL. */
extern const struct os_calls *os_calls;
