/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on bytes of a buffer, which belong to one open file description and end with it (fcntl(2)). None ever waits. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

/* 1: it is held now by this description. 0: another one holds it. -errno: the kernel refuses. */
static inline int lock_try(int fd, unsigned byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    if (!fcntl(fd, F_OFD_SETLK, &lock))
        return 1;
    return errno == EAGAIN || errno == EACCES ? 0 : -errno;
}

static inline void lock_drop(int fd, unsigned byte)
{
    (void)fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1});
}

/* Does another description hold it? If the kernel does not say, it might. */
static inline bool lock_is_held(int fd, unsigned byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}
