/* SPDX-License-Identifier: Apache-2.0 */
/* See holding.h. */
#include "nbla/holding.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbla/error.h"
#include "nbla/process.h"

/* Descriptors are kept while they are few: a process that asks about much memory must have some left for itself. */
enum { KEPT_MAX = 128 };
static unsigned kept;

void holding_init(struct holding *holding, struct memclient_buffer *buffer, bool opened)
{
    *holding = (struct holding){.buffer = buffer, .opened = opened, .pid = process_id()};
}

bool holding_is_parents(const struct holding *holding)
{
    return holding->buffer && !holding->opened && holding->pid != process_id();
}

/* The descriptor, if this process has opened it: a forked child's is its parent's, with its parent's locks. */
static int own_descriptor(uint64_t description)
{
    return description >> 32 == (uint32_t)process_id() ? (int)(uint32_t)description - 1 : -1;
}

/*
 * Opens it where there is none. Several threads may try: one's stays. Only for a lock it must be kept; else, where many
 * are, it is the caller's, in `once`.
 */
static int descriptor(struct holding *holding, bool keep, int *once)
{
    uint64_t seen = __atomic_load_n(&holding->description, __ATOMIC_ACQUIRE), made;
    int fd = own_descriptor(seen), r;

    if (fd >= 0)
        return fd;
    r = memclient_export_fd(holding->buffer, MEMCLIENT_READ, &fd);
    if (r)
        return fail_native(r);
    if (!keep && !seen && __atomic_load_n(&kept, __ATOMIC_RELAXED) >= KEPT_MAX)
        return *once = fd;
    made = (uint64_t)process_id() << 32 | (uint32_t)(fd + 1);
    if (__atomic_compare_exchange_n(&holding->description, &seen, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        (void)fd_close((int)(uint32_t)seen - 1);
        if (!seen)
            __atomic_add_fetch(&kept, 1, __ATOMIC_RELAXED);
        return fd;
    }
    (void)fd_close(fd);
    return own_descriptor(seen);
}

static int control(struct holding *holding, int command, short type, uint64_t offset, uint64_t length,
                   struct flock *lock)
{
    _cleanup_(fd_closep) int once = -1;
    int fd = descriptor(holding, command == F_OFD_SETLK, &once);

    if (fd < 0)
        return fd;
    *lock = (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = (off_t)length,
    };
    return fcntl(fd, command, lock) ? fail(NBLA_ERROR_OS, "a lock of device memory: %s", strerror(errno)) : 0;
}

nbla_device_memory_state holding_state(struct holding *holding, uint64_t offset, uint64_t length)
{
    struct flock lock;

    if (holding_is_parents(holding))
        return NBLA_DEVICE_UNLOCKED;
    if (control(holding, F_OFD_GETLK, F_WRLCK, offset, length, &lock) < 0)
        return NBLA_DEVICE_LOCKED;
    return lock.l_type == F_UNLCK ? NBLA_DEVICE_UNLOCKED : NBLA_DEVICE_LOCKED;
}

void holding_lock(struct holding *holding, uint64_t offset, uint64_t length)
{
    struct flock lock;

    if (holding->opened)
        (void)control(holding, F_OFD_SETLK, F_RDLCK, offset, length, &lock);
}

void holding_unlock(struct holding *holding, uint64_t offset, uint64_t length)
{
    struct flock lock;

    /* without a descriptor of this process's there is no lock of it */
    if (holding->opened && own_descriptor(__atomic_load_n(&holding->description, __ATOMIC_ACQUIRE)) >= 0)
        (void)control(holding, F_OFD_SETLK, F_UNLCK, offset, length, &lock);
}

struct memclient_buffer *holding_end(struct holding *holding)
{
    struct memclient_buffer *buffer = holding->buffer;

    /* closing ends a lock only when nobody else has the description open, and who sent it may still have it */
    holding_unlock(holding, 0, 0);
    if (holding->description)
        __atomic_sub_fetch(&kept, 1, __ATOMIC_RELAXED);
    (void)fd_close((int)(uint32_t)holding->description - 1);
    *holding = (struct holding){0};
    return buffer;
}

void holding_deinit(struct holding *holding)
{
    (void)memclient_buffer_unref(holding_end(holding));
}
