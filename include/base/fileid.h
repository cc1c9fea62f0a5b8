/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this descriptor still the same file?
 *
 * Some programs close every descriptor that they do not know (closefrom), the library's included, and open others,
 * which get the same numbers. So a descriptor that is kept for long is kept with the identity of its file, which is
 * checked before it is used or closed: writing to, mapping or closing somebody else's file is worse than any error. A
 * check costs an fstat().
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct file_id {
    dev_t dev;
    ino_t ino;
};

static inline struct file_id file_id_of(int fd)
{
    struct file_id id = {0};
    struct stat st;
    int saved = errno;

    if (!fstat(fd, &st))
        id = (struct file_id){st.st_dev, st.st_ino};
    errno = saved;
    return id;
}

/* Is the descriptor open, and the same file as then? */
static inline bool file_id_is(struct file_id id, int fd)
{
    struct file_id now = file_id_of(fd);

    return fd >= 0 && now.ino == id.ino && now.dev == id.dev && (id.ino || id.dev);
}

/* Closes the descriptor if it is; returns -1. */
static inline int file_id_close(struct file_id id, int fd)
{
    return file_id_is(id, fd) ? fd_close(fd) : -1;
}
