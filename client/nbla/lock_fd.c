/* SPDX-License-Identifier: Apache-2.0 */
/* See lock_fd.h. */
#include "nbla/lock_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbla/error.h"
#include "nbla/process.h"

/* Descriptors stay open while they are few: a process that asks about much memory needs some for itself. */
enum { KEPT_MAX = 128 };
static unsigned kept;

void lock_fd_init(struct lock_fd *lock_fd, struct memclient_buffer *buffer, bool opened)
{
    *lock_fd = (struct lock_fd){.buffer = buffer, .opened = opened, .pid = process_id()};
}

bool lock_fd_is_parents(const struct lock_fd *lock_fd)
{
    return lock_fd->buffer && !lock_fd->opened && lock_fd->pid != process_id();
}

/* The descriptor, if this process opened it. A forked child inherits that of its parent, with the parent's locks. */
static int own_descriptor(uint64_t description)
{
    return description >> 32 == (uint32_t)process_id() ? (int)(uint32_t)description - 1 : -1;
}

/*
 * The descriptor, opened if there is none. Of several threads that try, the first one's stays. Only a lock needs it to
 * stay: otherwise, where there are many already, it is the caller's to close, in `once`.
 */
static int lock_fd_open(struct lock_fd *lock_fd, bool keep, int *once)
{
    uint64_t seen = __atomic_load_n(&lock_fd->description, __ATOMIC_ACQUIRE), made;
    int fd = own_descriptor(seen), r;

    if (fd >= 0)
        return fd;
    r = memclient_export_fd(lock_fd->buffer, MEMCLIENT_READ, &fd);
    if (r)
        return fail_native(r);
    if (!keep && !seen && __atomic_load_n(&kept, __ATOMIC_RELAXED) >= KEPT_MAX)
        return *once = fd;
    made = (uint64_t)process_id() << 32 | (uint32_t)(fd + 1);
    if (__atomic_compare_exchange_n(&lock_fd->description, &seen, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        (void)fd_close((int)(uint32_t)seen - 1);
        if (!seen)
            __atomic_add_fetch(&kept, 1, __ATOMIC_RELAXED);
        return fd;
    }
    (void)fd_close(fd);
    return own_descriptor(seen);
}

static int lock_fd_control(struct lock_fd *lock_fd, int command, short type, uint64_t offset, uint64_t length,
                           struct flock *lock)
{
    _cleanup_(fd_closep) int once = -1;
    int fd = lock_fd_open(lock_fd, command == F_OFD_SETLK, &once);

    if (fd < 0)
        return fd;
    *lock = (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = (off_t)length,
    };
    return fcntl(fd, command, lock) ? fail(NBLA_ERROR_OS, "locking device memory: %s", strerror(errno)) : 0;
}

nbla_device_memory_state lock_fd_state(struct lock_fd *lock_fd, uint64_t offset, uint64_t length)
{
    struct flock lock;

    if (lock_fd_is_parents(lock_fd))
        return NBLA_DEVICE_UNLOCKED;
    if (lock_fd_control(lock_fd, F_OFD_GETLK, F_WRLCK, offset, length, &lock) < 0)
        return NBLA_DEVICE_LOCKED;
    return lock.l_type == F_UNLCK ? NBLA_DEVICE_UNLOCKED : NBLA_DEVICE_LOCKED;
}

void lock_fd_lock(struct lock_fd *lock_fd, uint64_t offset, uint64_t length)
{
    struct flock lock;

    if (lock_fd->opened)
        (void)lock_fd_control(lock_fd, F_OFD_SETLK, F_RDLCK, offset, length, &lock);
}

void lock_fd_unlock(struct lock_fd *lock_fd, uint64_t offset, uint64_t length)
{
    struct flock lock;

    /* without a descriptor of its own this process has no lock */
    if (lock_fd->opened && own_descriptor(__atomic_load_n(&lock_fd->description, __ATOMIC_ACQUIRE)) >= 0)
        (void)lock_fd_control(lock_fd, F_OFD_SETLK, F_UNLCK, offset, length, &lock);
}

struct memclient_buffer *lock_fd_end(struct lock_fd *lock_fd)
{
    struct memclient_buffer *buffer = lock_fd->buffer;

    /* closing ends a lock only with the last descriptor of the description, and its sender may still have one */
    lock_fd_unlock(lock_fd, 0, 0);
    if (lock_fd->description)
        __atomic_sub_fetch(&kept, 1, __ATOMIC_RELAXED);
    (void)fd_close((int)(uint32_t)lock_fd->description - 1);
    *lock_fd = (struct lock_fd){0};
    return buffer;
}

void lock_fd_deinit(struct lock_fd *lock_fd)
{
    (void)memclient_buffer_unref(lock_fd_end(lock_fd));
}
