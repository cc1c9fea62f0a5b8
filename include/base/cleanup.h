/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership: release at the end of the scope, or hand-over.
 *
 * A function that acquires three things and may fail after each has four ways out, and nobody runs the error paths. So
 * what a function owns is declared with `_cleanup_(fn)`, and the compiler calls fn(&variable) on every way out. The one
 * place that hands ownership on takes the value out of the variable by steal_fd() or steal_ptr(), which leave "owns
 * nothing" behind.
 *
 *     _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
 *     ...
 *     *fdp = steal_fd(&fd);           (success: the caller owns it now)
 *
 * Variables are released in the reverse order of their declaration, so declare what is used before what uses it, and
 * give each a value at its declaration. Every helper here leaves errno as it was, so that it still says why the
 * function failed.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls fn(&variable) when the variable goes out of scope. */
#define _cleanup_(fn) __attribute__((__cleanup__(fn)))

/*
 * Defines fn##p(), which `_cleanup_` wants, from a destructor that takes the object itself: DEFINE_CLEANUP(struct pool
 * *, pool_free) makes pool_freep(). NULL is skipped. An embedded object with a deinit function needs none of this:
 * `_cleanup_(fdset_deinit) struct fdset fds = FDSET_NULL;` works as it is.
 */
#define DEFINE_CLEANUP(type, fn)       \
    static inline void fn##p(type *_p) \
    {                                  \
        if (*_p) {                     \
            int _saved = errno;        \
                                       \
            (void)fn(*_p);             \
            errno = _saved;            \
        }                              \
    }                                  \
    struct _cleanup_needs_a_semicolon

/*
 * Closes fd unless it is negative, and returns -1: `fd = fd_close(fd)`. On Linux the descriptor is gone after EINTR, so
 * there is nothing to repeat, and without unwritten data there is no failure worth reporting.
 */
static inline int fd_close(int fd)
{
    if (fd >= 0) {
        int saved = errno;

        (void)close(fd);
        errno = saved;
    }
    return -1;
}

static inline void fd_closep(int *fd)
{
    *fd = fd_close(*fd);
}

/* `p` points at a pointer of some type, which is copied rather than read as a void pointer. */
static inline void freep(void *p)
{
    void *mem;
    int saved = errno;

    memcpy(&mem, p, sizeof(mem));
    free(mem);
    errno = saved;
}

DEFINE_CLEANUP(FILE *, fclose);

#define _cleanup_close_  _cleanup_(fd_closep)
#define _cleanup_free_   _cleanup_(freep)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* The value of the variable, which owns nothing afterwards. */
static inline int steal_fd(int *fd)
{
    int stolen = *fd;

    *fd = -1;
    return stolen;
}

#define steal_ptr(pp)                                \
    ({                                               \
        __typeof__(pp) _steal_pp = (pp);             \
        __typeof__(*_steal_pp) _stolen = *_steal_pp; \
                                                     \
        *_steal_pp = NULL;                           \
        _stolen;                                     \
    })
