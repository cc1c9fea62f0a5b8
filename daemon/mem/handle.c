/* SPDX-License-Identifier: Apache-2.0 */
/* See handle.h. */

#include "mem/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "proto/status.h"
#include "sys/sys.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define WRITE_SEALS   (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)
#define DISCARD_SLICE (UINT64_C(64) << 20)

int handle_reopen(int t, bool writable, int *ret_fd, struct problem *problem)
{
    int fd = sys->reopen(t, writable ? O_RDWR : O_RDONLY);

    if (fd >= 0) {
        *ret_fd = fd;
        return 0;
    }
    switch (errno) {
    case EMFILE:
    case ENFILE:
        return refuse(problem, STATUS_NO_DESCRIPTORS,
                      "memoryd may have no more descriptors; release something, or raise its LimitNOFILE");
    case ENOMEM:
        return refuse(problem, STATUS_NO_MEMORY, "the kernel had no memory for another descriptor");
    case ENOENT:
        return refuse(problem, STATUS_NOT_SUPPORTED, "memoryd needs /proc to be mounted");
    default:
        return refuse(problem, STATUS_NOT_SUPPORTED, "a buffer could not be opened again: %s", strerror(errno));
    }
}

bool handle_is_writable(int t)
{
    return (fcntl(t, F_GETFL) & O_ACCMODE) == O_RDWR;
}

int handle_duplicate(int t, int *ret_fd, struct problem *problem)
{
    _cleanup_close_ int fd = fcntl(t, F_DUPFD_CLOEXEC, 3);

    if (fd < 0 || sys_fd_check(fd) < 0)
        return refuse(problem, STATUS_NO_DESCRIPTORS,
                      "memoryd may have no more descriptors; release something, or raise its LimitNOFILE");
    *ret_fd = steal_fd(&fd);
    return 0;
}

int handle_sole(int t, bool *ret_sole, struct problem *problem)
{
    if (sys->set_lease(t, F_WRLCK) == 0) {
        /* dropped at once: as long as it is held, whoever opens the file would wait */
        (void)sys->set_lease(t, F_UNLCK);
        *ret_sole = true;
        return 0;
    }
    /* without memory there is no answer now; to say that somebody has it is safe */
    if (errno == EAGAIN || errno == EBUSY || errno == ENOMEM) {
        *ret_sole = false;
        return 0;
    }
    return refuse(problem, STATUS_NOT_SUPPORTED, "the kernel gives no lease on this buffer: %s", strerror(errno));
}

uint32_t handle_seals(int t)
{
    int seals = sys->get_seals(t);

    return seals < 0 ? 0 : (uint32_t)seals;
}

int handle_publish(int t, bool future_only, struct problem *problem)
{
    int seals = sys->get_seals(t);
    int wanted = F_SEAL_SEAL | (future_only && !(seals & F_SEAL_WRITE) ? F_SEAL_FUTURE_WRITE : F_SEAL_WRITE);

    if (seals < 0)
        return refuse(problem, STATUS_NOT_SUPPORTED, "the kernel seals no such buffer: %s", strerror(errno));
    if ((seals & wanted) == wanted)
        return 0;
    if (seals & F_SEAL_SEAL)
        return refuse(problem, STATUS_NOT_SUPPORTED, "the buffer can no longer be sealed against writing");
    if (sys->add_seals(t, wanted) == 0)
        return 0;
    if (errno == EBUSY)
        return refuse(problem, STATUS_BUSY,
                      "somebody has the buffer mapped for writing or its pages pinned; unmap it there and try "
                      "again, or publish for future writers only");
    return refuse(problem, STATUS_NOT_SUPPORTED, "the kernel does not seal this buffer: %s", strerror(errno));
}

int handle_discard(int t, uint64_t offset, uint64_t length, const atomic_bool *cancel, struct problem *problem)
{
    uint64_t most = DISCARD_SLICE;
    struct stat st;
    uint64_t end;

    if (sys->fstat(t, &st) < 0)
        return refuse(problem, STATUS_NOT_SUPPORTED, "the buffer cannot be asked for its size: %s", strerror(errno));
    /* part of a huge page is not given back */
    if ((uint64_t)st.st_blksize > most)
        most = (uint64_t)st.st_blksize;
    if (!length || !checked_add_u64(offset, length, &end) || end > (uint64_t)st.st_size)
        end = (uint64_t)st.st_size;
    while (offset < end) {
        uint64_t slice = end - offset < most ? end - offset : most;

        if (cancel && atomic_load(cancel))
            return refuse(problem, STATUS_TIMED_OUT, "discarding was cancelled before it was complete");
        if (sys->fallocate(t, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)slice) == 0)
            offset += slice;
        else if (errno == EPERM)
            return refuse(problem, STATUS_PUBLISHED, "a buffer that is sealed against writing keeps its contents");
        else if (errno != EINTR)
            return refuse(problem, STATUS_NOT_SUPPORTED, "the kernel does not take these pages back: %s",
                          strerror(errno));
    }
    return 0;
}

int handle_identity(int t, struct handle_identity *ret)
{
    struct stat st;

    if (sys->fstat(t, &st) < 0)
        return -errno;
    *ret = (struct handle_identity){
        .dev = st.st_dev,
        .ino = st.st_ino,
        .uid = st.st_uid,
        .mode = st.st_mode,
        .size = (uint64_t)st.st_size,
        .allocated = (uint64_t)st.st_blocks * 512,
    };
    return 0;
}

void handle_probe(int fd, struct handle_probe *ret)
{
    *ret = (struct handle_probe){.seals = sys->get_seals(fd)};
    if (ret->seals >= 0)
        ret->identified = handle_identity(fd, &ret->identity) == 0;
}

bool handle_is_ours(const struct handle_probe *probe, const struct handle_identity *identity, bool publishable,
                    bool *ret_published)
{
    int needed = F_SEAL_SHRINK | F_SEAL_GROW | (publishable ? 0 : F_SEAL_SEAL);
    const struct handle_identity *found = &probe->identity;
    int seals = probe->seals;

    if (seals < 0 || (seals & needed) != needed || !probe->identified || !S_ISREG(found->mode))
        return false;
    if (found->dev != identity->dev || found->ino != identity->ino || found->uid != identity->uid ||
        found->size != identity->size || (found->mode & ALLPERMS) != identity->mode)
        return false;
    *ret_published = seals & WRITE_SEALS;
    return true;
}

int handle_adoptable(int fd, struct handle_identity *ret, struct problem *problem)
{
    struct handle_identity identity;
    bool file = sys->get_seals(fd) >= 0; /* first, as below */
    int flags;

    if (!file && sys->check_dma_buf(fd) < 0)
        return refuse(problem, STATUS_NOT_SUPPORTED,
                      "only a dma-buf or a file of shared memory (memfd, tmpfs, huge pages) can be adopted");
    flags = fcntl(fd, F_GETFL);
    /* there is a fourth way to open a file, for neither */
    if (flags < 0 || ((flags & O_ACCMODE) != O_RDONLY && (flags & O_ACCMODE) != O_RDWR))
        return refuse(problem, STATUS_INVALID_ARGUMENT, "the descriptor is not open for reading; open it so");
    if (handle_identity(fd, &identity) < 0)
        return refuse(problem, STATUS_NOT_SUPPORTED, "the kernel does not say what the descriptor is of: %s",
                      strerror(errno));
    if (!file) {
        off_t size = lseek(fd, 0, SEEK_END); /* how a dma-buf is asked: it has no offset that could move */

        identity.size = size > 0 ? (uint64_t)size : 0;
    }
    if (!identity.size)
        return refuse(problem, STATUS_SIZE_ZERO, "the descriptor is of no memory: its size is 0");
    *ret = identity;
    return 0;
}

int handle_show(int fd, uid_t uid, struct handle_shown *ret, struct problem *problem)
{
    struct handle_identity identity;
    int flags;

    /* First the question that only a memfd answers: others, on a network say, could keep us waiting. */
    if (sys->get_seals(fd) < 0 || (flags = fcntl(fd, F_GETFL)) < 0 || handle_identity(fd, &identity) < 0 ||
        flags & (O_PATH | O_WRONLY) || !S_ISREG(identity.mode) || identity.uid != uid)
        return refuse(problem, STATUS_FD_FOREIGN,
                      "the descriptor is of no memory file of this broker's user (%u); send what EXPORT gave",
                      (unsigned)uid);
    *ret = (struct handle_shown){.identity = identity, .writable = (flags & O_ACCMODE) == O_RDWR, .fd = -1};
    return 0;
}
