/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that fails: the n-th call of one kind returns an error, all others go through. A test tries
 * n = 1, 2, ... until nothing fails any more, and so has seen every call of an operation fail once.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "sys/sys.h"

#define FAULTS(X)                                                                                                \
    X(memfd_create, int, -1, (const char *name, unsigned flags), (name, flags))                                  \
    X(ftruncate, int, -1, (int fd, off_t size), (fd, size))                                                      \
    X(fallocate, int, -1, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length))            \
    X(pwrite, ssize_t, -1, (int fd, const void *bytes, size_t size, off_t offset), (fd, bytes, size, offset))    \
    X(fchmod, int, -1, (int fd, mode_t mode), (fd, mode))                                                        \
    X(fstat, int, -1, (int fd, struct stat *st), (fd, st))                                                       \
    X(reopen, int, -1, (int fd, int flags), (fd, flags))                                                         \
    X(add_seals, int, -1, (int fd, int seals), (fd, seals))                                                      \
    X(get_seals, int, -1, (int fd), (fd))                                                                        \
    X(set_lease, int, -1, (int fd, int type), (fd, type))                                                        \
    X(mmap, void *, MAP_FAILED, (void *address, size_t length, int protection, int flags, int fd, off_t offset), \
      (address, length, protection, flags, fd, offset))                                                          \
    X(madvise, int, -1, (void *address, size_t length, int advice), (address, length, advice))                   \
    X(mbind, long, -1, (void *address, size_t length, int mode, const unsigned long *nodes, unsigned flags),     \
      (address, length, mode, nodes, flags))                                                                     \
    X(set_mempolicy, long, -1, (int mode, const unsigned long *nodes), (mode, nodes))                            \
    X(get_mempolicy, long, -1, (int *mode, unsigned long *nodes), (mode, nodes))                                 \
    X(page_nodes, long, -1, (unsigned long count, void **pages, int *status), (count, pages, status))            \
    X(inotify_init, int, -1, (void), ())                                                                         \
    X(inotify_add, int, -1, (int inotify, int fd, uint32_t mask), (inotify, fd, mask))                           \
    X(read, ssize_t, -1, (int fd, void *buffer, size_t size), (fd, buffer, size))

enum fault {
#define X(name, type, bad, parameters, arguments) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_KINDS
};

static struct sys_calls faulty;
static enum fault fault_kind = FAULT_KINDS;
static unsigned fault_countdown;
static int fault_errno;
static bool fault_hit;

static inline bool fault_now(enum fault kind)
{
    if (kind != fault_kind || !fault_countdown || --fault_countdown)
        return false;
    fault_hit = true;
    errno = fault_errno;
    return true;
}

#define X(name, type, bad, parameters, arguments)                           \
    static inline type faulty_##name parameters                             \
    {                                                                       \
        return fault_now(FAULT_##name) ? (bad) : sys_kernel.name arguments; \
    }
FAULTS(X)
#undef X

static inline void fault_set(enum fault kind, unsigned nth, int error)
{
    faulty = sys_kernel;
#define X(name, type, bad, parameters, arguments) faulty.name = faulty_##name;
    FAULTS(X)
#undef X
    fault_kind = kind;
    fault_countdown = nth;
    fault_errno = error;
    fault_hit = false;
    sys = &faulty;
}

static inline int fault_clear(void **state)
{
    sys = &sys_kernel;
    return 0;
}
