/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that make, place, seal, prove and watch memory.
 *
 * They go through one table, for two reasons. A test replaces `sys` by a copy of sys_kernel in which the third
 * fallocate fails, and sees what becomes of the descriptors. And nothing else in the daemon may make them
 * (tests/lint), so every use of them is found by `sys->`.
 *
 * Members behave like the C library's functions of the same name: -1 (MAP_FAILED for mmap) and errno. Below the table
 * are the few calls that need a fallback on older kernels; 5.10 is the floor, and what a kernel lacks is found by
 * trying, never by its version. All of it is safe on any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

enum sys_huge {
    SYS_HUGE_ALL, /* reserved or made on demand */
    SYS_HUGE_FREE,
    SYS_HUGE_SURPLUS,    /* made on demand */
    SYS_HUGE_OVERCOMMIT, /* how many may be made on demand; of the machine only */
};

struct sys_calls {
    int (*memfd_create)(const char *name, unsigned flags);
    int (*ftruncate)(int fd, off_t size);
    int (*fallocate)(int fd, int mode, off_t offset, off_t length);
    ssize_t (*pwrite)(int fd, const void *bytes, size_t size, off_t offset);
    int (*fchmod)(int fd, mode_t mode);
    int (*fstat)(int fd, struct stat *st);
    int (*reopen)(int fd, int flags); /* a new description of the same file; O_CLOEXEC is added */
    int (*add_seals)(int fd, int seals);
    int (*get_seals)(int fd);
    int (*set_lease)(int fd, int type);

    void *(*mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t length);
    int (*madvise)(void *address, size_t length, int advice);

    /* node masks have SYS_NODE_MASK_BITS bits; flags as of mbind() */
    long (*mbind)(void *address, size_t length, int mode, const unsigned long *nodes, unsigned flags);
    long (*set_mempolicy)(int mode, const unsigned long *nodes);
    long (*get_mempolicy)(int *mode, unsigned long *nodes);
    /* move_pages() as a question */
    long (*page_nodes)(unsigned long count, void **pages, int *status);

    int (*inotify_init)(void);                              /* non-blocking, CLOEXEC */
    int (*inotify_add)(int inotify, int fd, uint32_t mask); /* by /proc/self/fd */
    int (*inotify_remove)(int inotify, int wd);
    ssize_t (*read)(int fd, void *buffer, size_t size);

    /* 0 if it is one. Of another file with such a name the file system is asked, which may take as long as it likes. */
    int (*check_dma_buf)(int fd);

    int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *size);
    int (*pidfd_open)(pid_t pid, unsigned flags);
    int (*pidfd_inode)(int pidfd, uint64_t *ret); /* whose number is that process's alone; from Linux 6.9 on */
    /* The wait status of a process that has ended, of any user's; EAGAIN until its parent has reaped it; ESRCH if
     * that happens during the call; another error if the kernel does not tell (before 6.15). */
    int (*pidfd_status)(int pidfd, int *ret);

    /* A figure of the kernel's about huge pages of that size, of a node or (< 0) of the machine; -1 if it has none. */
    int (*huge_pages)(int physical_node, uint64_t size, enum sys_huge what, uint64_t *ret);
    /* What a node (< 0: the whole machine) has available without swapping, as far as the control groups of this process
     * allow; UINT64_MAX if unknown. */
    uint64_t (*available)(int physical_node);

    const char *proc; /* where the kernel shows processes */
};

#define SYS_NODE_MASK_BITS  1024
#define SYS_NODE_MASK_WORDS (SYS_NODE_MASK_BITS / (8 * sizeof(unsigned long)))

extern const struct sys_calls sys_kernel;
extern const struct sys_calls *sys;

/* Descriptors from this number on are left for new clients, and may not be kept for long: the kernel gives out the
 * lowest free number. For all threads. */
void sys_set_fd_end(unsigned end);
/* May this one be kept? 0, or -1 with EMFILE. */
int sys_fd_check(int fd);

/* A fork that shares the table of descriptors with this process, whose only thread calls it. As fork(). */
pid_t sys_fork_sharing_fds(void);
/* A fork of this process, which has one thread only, that is its parent's child. As fork(). */
pid_t sys_fork_sibling(void);

/* A sealable, CLOEXEC memfd, not executable where the kernel can ensure that. `huge` is the page size of hugetlb, 0 for
 * shared memory. -1 and errno. */
int sys_memfd_new(const char *name, uint64_t huge);
/* One for a program's own figures: of this size for good, by its seals, and with all of its pages, since what lacks one
 * would be a SIGBUS one day. A descriptor, or -1 and errno. */
int sys_memfd_new_fixed(const char *name, size_t size);
/* May one that was handed over be mapped as such? */
bool sys_memfd_is_fixed(int fd, size_t size);

enum sys_change {
    SYS_SET,
    SYS_ADD,
    SYS_SET_BITS,
};

/*
 * Changes a word, at a multiple of its size in the file, of memory from which others may punch pages: the kernel does
 * it atomically, and what would be a SIGBUS is an error. Where the file has no page it makes none: ENODATA. The operand
 * is less than 2048. -1 and errno.
 *
 * It takes no lock of the inode, as write() and lseek() would: a process that may write to the file can have it
 * forever, in a write() of its own from memory whose page never comes.
 */
int sys_change_word(int fd, size_t offset, enum sys_change how, unsigned operand);

/* Allocates every page under a writable shared mapping, as its policy and advice say. -1 and errno; never a signal. */
int sys_populate(void *address, size_t length);

/* Bytes of the mapping at `address` (all of it, no more) that are mapped by huge pages; 0 if unknown. */
uint64_t sys_huge_mapped(const void *address);

/* A shared mapping whose address and offset differ by a multiple of `alignment` (a power of two), as huge pages need
 * it; flags: MAP_POPULATE or 0. MAP_FAILED and errno. */
void *sys_map_aligned(int fd, uint64_t offset, size_t length, size_t alignment, int protection, int flags);
