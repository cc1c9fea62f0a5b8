/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the kernel's own calls. Those that the C library does not offer, or only together with libnuma, are made
 * here by number. Fallbacks are in memory.c.
 */

#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/pidfd.h"
#include "sys/groups.h"
#include "sys/text.h"

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142 /* younger than some headers, as is the next */
#endif
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

struct fd_path {
    char text[32];
};

static struct fd_path fd_path_of(int fd)
{
    struct fd_path path;

    (void)snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
    return path;
}

static int call_reopen(int fd, int flags)
{
    return open(fd_path_of(fd).text, flags | O_CLOEXEC);
}

static int call_add_seals(int fd, int seals)
{
    return fcntl(fd, F_ADD_SEALS, seals);
}

static int call_get_seals(int fd)
{
    return fcntl(fd, F_GET_SEALS);
}

static int call_set_lease(int fd, int type)
{
    return fcntl(fd, F_SETLEASE, type);
}

static long call_mbind(void *address, size_t length, int mode, const unsigned long *nodes, unsigned flags)
{
    return syscall(SYS_mbind, address, length, mode, nodes, (unsigned long)SYS_NODE_MASK_BITS, flags);
}

static long call_set_mempolicy(int mode, const unsigned long *nodes)
{
    return syscall(SYS_set_mempolicy, mode, nodes, nodes ? (unsigned long)SYS_NODE_MASK_BITS : 0);
}

static long call_get_mempolicy(int *mode, unsigned long *nodes)
{
    return syscall(SYS_get_mempolicy, mode, nodes, (unsigned long)SYS_NODE_MASK_BITS, NULL, 0);
}

static long call_page_nodes(unsigned long count, void **pages, int *status)
{
    return syscall(SYS_move_pages, 0, count, pages, NULL, status, 0);
}

static int call_inotify_init(void)
{
    return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

static int call_inotify_add(int inotify, int fd, uint32_t mask)
{
    return inotify_add_watch(inotify, fd_path_of(fd).text, mask);
}

/* The name comes first, which costs nothing, and which a file may have by chance. */
static int call_check_dma_buf(int fd)
{
    static const char prefix[] = "/dmabuf:";
    char text[sizeof(prefix)];
    struct statfs fs;

    if (readlink(fd_path_of(fd).text, text, sizeof(text)) >= (ssize_t)strlen(prefix) &&
        !memcmp(text, prefix, strlen(prefix)) && fstatfs(fd, &fs) == 0 && fs.f_type == DMA_BUF_MAGIC)
        return 0;
    errno = EINVAL;
    return -1;
}

static int call_pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

/* Older kernels have one inode for all pidfds, in another file system. */
static int call_pidfd_inode(int pidfd, uint64_t *ret)
{
    struct statfs fs;
    struct stat st;

    if (fstatfs(pidfd, &fs) < 0 || fstat(pidfd, &st) < 0)
        return -1;
    if (fs.f_type != PID_FS_MAGIC) {
        errno = EOPNOTSUPP;
        return -1;
    }
    *ret = st.st_ino;
    return 0;
}

static int call_pidfd_status(int pidfd, int *ret)
{
    struct pidfd_end end = {.mask = PIDFD_END_STATUS};

    if (ioctl(pidfd, PIDFD_END_REQUEST, &end) < 0)
        return -1;
    if (!(end.mask & PIDFD_END_STATUS)) {
        errno = EAGAIN;
        return -1;
    }
    *ret = end.status;
    return 0;
}

/* Free pages and half of the cached files, since the others may be in use; of the machine the kernel's own estimate. */
static uint64_t available_at(int physical_node)
{
    char text[8192];
    uint64_t free_kib;
    uint64_t active = 0;
    uint64_t inactive = 0;

    if (physical_node < 0) {
        if (!text_read(text, sizeof(text), "/proc/meminfo") || !text_number_after(text, "MemAvailable:", &free_kib))
            return UINT64_MAX;
        return free_kib * 1024;
    }
    if (!text_read(text, sizeof(text), "/sys/devices/system/node/node%d/meminfo", physical_node) ||
        !text_number_after(text, "MemFree:", &free_kib))
        return UINT64_MAX;
    (void)text_number_after(text, "Active(file):", &active);
    (void)text_number_after(text, "Inactive(file):", &inactive);
    return (free_kib + (active + inactive) / 2) * 1024;
}

static uint64_t call_available(int physical_node)
{
    uint64_t there = available_at(physical_node), ours = groups_memory("");

    return there < ours ? there : ours;
}

static int call_huge_pages(int physical_node, uint64_t size, enum sys_huge what, uint64_t *ret)
{
    static const char *const files[] = {
        [SYS_HUGE_ALL] = "nr_hugepages",
        [SYS_HUGE_FREE] = "free_hugepages",
        [SYS_HUGE_SURPLUS] = "surplus_hugepages",
        [SYS_HUGE_OVERCOMMIT] = "nr_overcommit_hugepages",
    };
    unsigned long long kib = size / 1024;
    bool good;

    if (physical_node < 0)
        good = text_read_number(ret, "/sys/kernel/mm/hugepages/hugepages-%llukB/%s", kib, files[what]);
    else
        good = text_read_number(ret, "/sys/devices/system/node/node%d/hugepages/hugepages-%llukB/%s", physical_node,
                                kib, files[what]);
    return good ? 0 : -1;
}

const struct sys_calls sys_kernel = {
    .memfd_create = memfd_create,
    .ftruncate = ftruncate,
    .fallocate = fallocate,
    .pwrite = pwrite,
    .fchmod = fchmod,
    .fstat = fstat,
    .reopen = call_reopen,
    .add_seals = call_add_seals,
    .get_seals = call_get_seals,
    .set_lease = call_set_lease,
    .mmap = mmap,
    .munmap = munmap,
    .madvise = madvise,
    .mbind = call_mbind,
    .set_mempolicy = call_set_mempolicy,
    .get_mempolicy = call_get_mempolicy,
    .page_nodes = call_page_nodes,
    .inotify_init = call_inotify_init,
    .inotify_add = call_inotify_add,
    .inotify_remove = inotify_rm_watch,
    .read = read,
    .check_dma_buf = call_check_dma_buf,
    .getsockopt = getsockopt,
    .pidfd_open = call_pidfd_open,
    .pidfd_inode = call_pidfd_inode,
    .pidfd_status = call_pidfd_status,
    .huge_pages = call_huge_pages,
    .available = call_available,
    .proc = "/proc",
};

const struct sys_calls *sys = &sys_kernel;

pid_t sys_fork_sharing_fds(void)
{
    /* without a stack the child goes on here, on its copy of ours */
    return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
}

pid_t sys_fork_sibling(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
}
