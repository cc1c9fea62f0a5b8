/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committing: allocating all pages of a buffer, in the process that it was allocated for.
 *
 * The kernel has the control group of whoever allocates a page pay for it, and never moves that charge. So the broker
 * makes only the file of a buffer whose pages are to be this program's (`charge` of its pool), and the pages are
 * allocated here, before the handle is returned: what is promised of buffers holds for these as well. The broker gives
 * nobody else a descriptor before. Beyond the limit of its group the kernel ends a process of the group, just as with
 * memory of malloc(); it returns no error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "core/buffer.h"
#include "core/pages.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* A signal takes a step back, so that it must be short. */
#define COMMIT_STEP (UINT64_C(256) << 10)

/* 0 if the kernel has none. */
static uint64_t commit_thp_size(void)
{
    _cleanup_close_ int fd = open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", O_RDONLY | O_CLOEXEC);
    char text[24] = "";
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    uint64_t size = n > 0 ? strtoull(text, NULL, 10) : 0;

    return is_power_of_two(size) ? size : 0;
}

/*
 * Transparent huge pages come only to a mapping that asks for them. Those that do not come, since there are none or the
 * kernel cannot populate, are left to be allocated as base pages. None may reach beyond the end of the file.
 */
static void commit_thp(int fd, uint64_t bytes)
{
    uint64_t thp = commit_thp_size(), whole = thp ? align_down(bytes, thp) : 0;
    void *reserved, *at;

    if (!whole)
        return;
    reserved = pages_map_inaccessible(0, whole + thp, 0);
    if (reserved == MAP_FAILED)
        return;
    at = mmap((void *)(uintptr_t)align_up((uintptr_t)reserved, thp), (size_t)whole, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED, fd, 0);
    if (at != MAP_FAILED && !madvise(at, (size_t)whole, MADV_HUGEPAGE))
        while (madvise(at, (size_t)whole, MADV_POPULATE_WRITE) < 0 && errno == EINTR)
            continue;
    munmap(reserved, (size_t)(whole + thp));
}

static int commit_all(int fd, uint64_t bytes)
{
    uint64_t done = 0;

    while (done < bytes) {
        uint64_t step = bytes - done < COMMIT_STEP ? bytes - done : COMMIT_STEP;

        if (!fallocate(fd, 0, (off_t)done, (off_t)step))
            done += step;
        else if (errno != EINTR)
            return -1;
    }
    return 0;
}

/* A descriptor of its own, since another thread may have the cached one closed meanwhile. */
static int commit_fd(struct memclient_buffer *buf, uint64_t deadline, int *fd)
{
    int r = buffer_cache_fd(buf, true, deadline);

    if (r)
        return r;
    pthread_mutex_lock(&buf->ctx->lock);
    *fd = buffer_cached_fd(buf, true);
    if (*fd >= 0)
        *fd = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    pthread_mutex_unlock(&buf->ctx->lock);
    return *fd < 0 ? fail_with(EMFILE, "no descriptor is left to allocate the pages of buffer #%llu by", ULL(buf->id))
                   : 0;
}

int buffer_commit(struct memclient_buffer *buf, uint64_t deadline)
{
    unsigned flags = buffer_flags(buf);
    _cleanup_close_ int fd = -1;
    char text[128];
    int r;

    if (!(flags & MEMCLIENT_BUFFER_CLIENT_CHARGED))
        return 0;
    r = commit_fd(buf, deadline, &fd);
    if (r)
        return r;
    if (flags & MEMCLIENT_BUFFER_WANTS_THP)
        commit_thp(fd, buf->bytes);
    if (commit_all(fd, buf->bytes) < 0)
        return fail_with(ENOMEM,
                         "the kernel has no memory for buffer #%llu (%llu bytes), which this process pays for: %s",
                         ULL(buf->id), ULL(buf->bytes), strerror_r(errno, text, sizeof(text)));
    return 0;
}
