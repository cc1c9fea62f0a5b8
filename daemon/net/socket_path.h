/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket in the file system that only one broker has.
 *
 * A socket file outlives its process, so a new broker finds a file that may be stale, in use, or somebody else's. A
 * lock file lies beside it: the broker is who holds its lock, and only the holder touches the socket file. It replaces
 * that only if it is a socket of ours and nobody answers behind it.
 */
#pragma once

#include <stdbool.h>

#include "base/problem.h"

struct socket_path {
    char *path;
    char *lock_path;
    int lock_fd;
    bool bound; /* the file at `path` is ours to remove */
};

#define SOCKET_PATH_NULL ((struct socket_path){.lock_fd = -1})

enum {
    _SOCKET_PATH_E_SUCCESS,
    SOCKET_PATH_E_RUNNING, /* a broker serves there, or is about to */
    SOCKET_PATH_E_REFUSED  /* the sentence says why not, and what to do */
};

/* Makes the folder if it is missing, and takes the lock. 0, a positive outcome with its sentence, or -ENOMEM. */
int socket_path_lock(struct socket_path *ret, const char *path, struct problem *problem);
/* Takes over what another process made, which listens on `path` and holds the lock `lock_fd`; that stays the caller's.
 * 0 or a negative errno. */
int socket_path_adopt(struct socket_path *ret, const char *path, int lock_fd);
/* Listens there, for this user only if `private`, else for all. The umask changes for a moment: no other thread may
 * make files. */
int socket_path_listen(struct socket_path *path, bool private, int *ret_fd, struct problem *problem);
/* Does somebody accept connections there? */
bool socket_path_answers(const char *path);
/* Another process has it now: frees the struct and leaves lock and files alone. */
void socket_path_forget(struct socket_path *path);
/* Removes the files, in an order in which nobody else can lose theirs. */
void socket_path_deinit(struct socket_path *path);
