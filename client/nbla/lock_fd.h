/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer that this process has made or opened, and a descriptor that locks its bytes.
 *
 * The lock is a read lock of the kernel's, on an open file description that only this lock_fd has. So it ends with the
 * process, however that ends; it holds while the broker is down; and it costs no message. Asking for the state tries a
 * write lock, which conflicts with the locks of others and not with its own. The broker opens each descriptor that it
 * gives anew, so that each has a description of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <memclient/nbla.h>

struct lock_fd {
    struct memclient_buffer *buffer; /* a reference, or NULL */
    bool opened;                     /* not made here */
    pid_t pid;                       /* of the process that made it */
    uint64_t description;            /* the pid of its opener, and its descriptor + 1; 0 = none yet */
};

/* Takes over the reference to the buffer. */
void lock_fd_init(struct lock_fd *lock_fd, struct memclient_buffer *buffer, bool opened);
/* Ends its locks, and drops the reference. */
void lock_fd_deinit(struct lock_fd *lock_fd);
/* The same, but the reference becomes the caller's. */
struct memclient_buffer *lock_fd_end(struct lock_fd *lock_fd);

/* Did the parent of a fork make it? What this process has of it is a copy, or nothing. */
bool lock_fd_is_parents(const struct lock_fd *lock_fd);
/* LOCKED if another lock_fd, of this process or another, locks any of these bytes. */
nbla_device_memory_state lock_fd_state(struct lock_fd *lock_fd, uint64_t offset, uint64_t length);
/* Locks only what was opened: of memory that was made here it does nothing. */
void lock_fd_lock(struct lock_fd *lock_fd, uint64_t offset, uint64_t length);
void lock_fd_unlock(struct lock_fd *lock_fd, uint64_t offset, uint64_t length);
